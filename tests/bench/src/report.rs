//! The figures, for people and for programs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rig::Footprint;
use serde::Serialize;

use crate::cache::Benefit;
use crate::count::Cost;
use crate::profile::Split;
use crate::rounds::Spread;
use crate::site;

/// Where the figures were taken.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    #[serde(rename = "where")]
    pub(crate) place: String,
    machine: String,
    kernel: String,
    lvm_version: String,
}

impl Place {
    pub(crate) fn here(place: String) -> Result<Self> {
        let cpu = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
        let models: Vec<&str> = cpu
            .lines()
            .filter_map(|line| line.strip_prefix("model name"))
            .map(|rest| rest.trim_start_matches([' ', '\t', ':']))
            .collect();
        let model = models.first().copied().unwrap_or(std::env::consts::ARCH);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("read the kernel's release")?;
        let said = site::spawn(std::process::Command::new(site::program("lvm")?).args([
            "version",
            "--config",
            "global/activation=0",
        ]))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let version = said.lines().find_map(|line| line.trim().strip_prefix("LVM version:"));
        Ok(Self {
            place,
            machine: format!("{processors} processors, {model}"),
            kernel: kernel.trim().to_owned(),
            lvm_version: version.context("lvm told no version")?.trim().to_owned(),
        })
    }
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Side {
    #[serde(flatten)]
    pub(crate) time: Spread,
    /// `None` where it was not counted.
    #[serde(flatten)]
    pub(crate) cost: Option<Cost>,
}

impl Side {
    pub(crate) fn new(samples: Option<&Vec<Duration>>, cost: Option<Cost>) -> Self {
        Self { time: Spread::of(samples.map_or(&[], Vec::as_slice)), cost }
    }
}

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    #[serde(rename = "where")]
    pub(crate) place: String,
    /// What theirs is.
    pub(crate) against: String,
    pub(crate) ours: Side,
    pub(crate) theirs: Side,
    /// How many times ours is faster, by the medians.
    pub(crate) ratio: f64,
}

/// Several comparisons in two numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sum {
    pub(crate) name: String,
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) comparisons: usize,
    /// How many times ours is faster where it is least so: below 1, it is slower.
    pub(crate) least: f64,
    pub(crate) median: f64,
}

/// What the agent takes of memory, in proportional set sizes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    /// When.
    name: String,
    own_bytes: u64,
    workers_bytes: u64,
    workers: usize,
    #[serde(skip)]
    footprint: Footprint,
}

impl Memory {
    pub(crate) fn new(name: &str, footprint: Footprint) -> Self {
        Self {
            name: name.to_owned(),
            own_bytes: footprint.own.get(),
            workers_bytes: footprint.children.get(),
            workers: footprint.count,
            footprint,
        }
    }
}

/// All that was measured in one place.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    places: Vec<Place>,
    results: Vec<Comparison>,
    sums: Vec<Sum>,
    profile: Vec<Split>,
    cache: Vec<Benefit>,
    memory: Vec<Memory>,
}

impl Report {
    pub(crate) fn of(place: Place) -> Self {
        Self {
            places: vec![place],
            results: Vec::new(),
            sums: Vec::new(),
            profile: Vec::new(),
            cache: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// Prints where this is and the head of the table.
    pub(crate) fn print_head(&self) {
        for place in &self.places {
            println!("{}: {}, Linux {}, LVM {}", place.place, place.machine, place.kernel, place.lvm_version);
        }
        println!(
            "{:44} {:>10} {:>10} {:>8}  {:>15}  {:>15}",
            "median (p10 to p90 below 2 x unless marked ~)",
            "ours",
            "theirs",
            "ratio",
            "system calls",
            "KiB read"
        );
    }

    /// Adds a comparison, prints it and returns its ratio.
    pub(crate) fn compare(&mut self, name: &str, against: &str, ours: Side, theirs: Side) -> f64 {
        let place = self.places.first().map(|place| place.place.clone()).unwrap_or_default();
        let nanoseconds = |side: &Side| Duration::from_nanos(side.time.median_ns.max(1)).as_secs_f64();
        let ratio = nanoseconds(&theirs) / nanoseconds(&ours);
        let pair = |of: &dyn Fn(Cost) -> u64| match (ours.cost, theirs.cost) {
            (Some(ours), Some(theirs)) => format!("{}:{}", of(ours), of(theirs)),
            _ => String::new(),
        };
        println!(
            "{:44} {:>10} {:>10} {:>6.1} x  {:>15}  {:>15}",
            format!("{name}, vs {against}"),
            short(&ours.time),
            short(&theirs.time),
            ratio,
            pair(&|cost| cost.syscalls),
            pair(&|cost| cost.bytes_read / 1024),
        );
        let (name, against) = (name.to_owned(), against.to_owned());
        self.results.push(Comparison { name, place, against, ours, theirs, ratio });
        ratio
    }

    /// Adds the least and the median of some ratios, and prints them beside what is aimed at.
    pub(crate) fn sum_up(&mut self, name: &str, ratios: &[f64]) {
        let mut sorted = ratios.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        let (least, middle) = (at(0), sorted.len() / 2);
        let median = if sorted.len() % 2 == 1 {
            at(middle)
        } else {
            f64::midpoint(at(middle.saturating_sub(1)), at(middle))
        };
        println!("{name}: {least:.2} x at least (aim: 1), {median:.2} x in the median (aim: 1.5)");
        let place = self.place().to_owned();
        self.sums.push(Sum { name: name.to_owned(), place, comparisons: sorted.len(), least, median });
    }

    /// What this place is called.
    pub(crate) fn place(&self) -> &str {
        self.places.first().map_or("", |place| &place.place)
    }

    /// Adds what a cache was good for, and prints it.
    pub(crate) fn benefit(&mut self, benefit: Benefit) {
        println!("{benefit}");
        self.cache.push(benefit);
    }

    /// Adds what the agent takes, and prints it.
    pub(crate) fn memory(&mut self, memory: Memory) {
        println!("{}: {}", memory.name, memory.footprint);
        self.memory.push(memory);
    }

    /// Adds where the time of one step goes, and prints it.
    pub(crate) fn split(&mut self, split: Split) {
        println!("{split}");
        self.profile.push(split);
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("write the figures as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
    }
}

/// A median in a unit that suits it; `~` where its tenths lie more than twice apart.
fn short(spread: &Spread) -> String {
    let mark = if spread.p90 > spread.p10.saturating_mul(2) { "~" } else { "" };
    format!("{mark}{}", time(spread.median_ns))
}

/// Nanoseconds in a unit that suits them.
pub(crate) fn time(nanoseconds: u64) -> String {
    let seconds = Duration::from_nanos(nanoseconds).as_secs_f64();
    match nanoseconds {
        0..10_000 => format!("{:.2} us", seconds * 1e6),
        10_000..1_000_000 => format!("{:.1} us", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
