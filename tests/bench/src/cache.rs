//! What a cache is good for: random reads of a hot set on a slow disk, with bcache and without, in one run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bcache::{CacheMode, Knob, SetKnob};
use devices::{Bytes, Sectors};
use rig::caching::{Caching, check, fill, format_backing, format_cache, register_backing, register_cache};
use rig::{Disk, tool};
use serde::Serialize;
use serde_json::Value;

use crate::report::{Report, time};
use crate::site;

/// The disks, both sparse and in memory; all that slows the backing disk is the delay.
const DISK: Bytes = Bytes::mib(512);
/// How long each read and write of the backing disk takes, in milliseconds: a seek of a disk that turns.
const DELAY: u32 = 5;
/// What is read again and again, in MiB.
const HOT: usize = 64;
/// How often the hot set may be read until the cache has it.
const PASSES: usize = 20;
/// How often each side has its turn.
const ROUNDS: usize = 3;

/// What one side achieved, by the median of its turns.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Reads {
    iops: f64,
    median_ns: u64,
    p99_ns: u64,
    /// How much was read, in KiB.
    #[serde(skip)]
    kib: f64,
}

/// Both sides.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Benefit {
    name: String,
    #[serde(rename = "where")]
    place: String,
    with: Reads,
    without: Reads,
    /// How many times more reads a second with the cache.
    ratio: f64,
    /// The share of what was read with the cache that it had, in percent.
    hits: f64,
}

impl fmt::Display for Benefit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {:.0} against {:.0} a second, {:.1} x, {:.2} % hits; median {} against {}, 99 of 100 within {} against {}",
            self.name,
            self.with.iops,
            self.without.iops,
            self.ratio,
            self.hits,
            time(self.with.median_ns),
            time(self.without.median_ns),
            time(self.with.p99_ns),
            time(self.without.p99_ns),
        )
    }
}

/// A disk behind dm-delay; gone when dropped.
struct Slow {
    name: String,
    _disk: Disk,
}

impl Slow {
    fn new() -> Result<Self> {
        let disk = Disk::new(DISK)?;
        let name = format!("slow{}", std::process::id());
        let table = format!("0 {} delay {} 0 {DELAY}", DISK.get() / 512, disk.path().display());
        tool::run("modprobe", ["dm-delay"])?;
        tool::run("dmsetup", ["create", &name, "--table", &table])?;
        Ok(Self { name, _disk: disk })
    }

    fn path(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.name)
    }

    /// How much was read from it so far (Documentation/admin-guide/iostats.rst: the third field, in sectors).
    fn read_so_far(&self) -> Result<Bytes> {
        let node = std::fs::canonicalize(self.path())?;
        let name = node.file_name().context("a device without a name")?.to_string_lossy().into_owned();
        let stat = std::fs::read_to_string(format!("/sys/class/block/{name}/stat"))?;
        let sectors = stat.split_whitespace().nth(2).context("no count of sectors")?.parse()?;
        Sectors::new(sectors).to_bytes().context("too many sectors")
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Err(error) = tool::run("dmsetup", ["remove", "--retry", &self.name]) {
            eprintln!("left behind: {error:#}");
        }
    }
}

/// Measures where there are device-mapper, bcache and fio, and says what is missing elsewhere.
pub(crate) fn run(report: &mut Report, budget: Duration) -> Result<()> {
    if rig::skip_unless_dm() || rig::caching::skip_unless_bcache() || rig::skip_unless_installed(&["fio"]) {
        return Ok(());
    }
    let slow = Slow::new()?;
    let caching = over(&slow)?;
    let cached = caching.device(0)?;
    // What is written is in the cache, and on the slow disk.
    fill(&cached, 1, HOT)?;
    warm(&slow, &cached)?;
    let turn = budget / 2;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let (mut all, mut missed) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let before = slow.read_so_far()?;
        let turn_with = read(&cached, turn)?;
        missed += kib(slow.read_so_far()?) - kib(before);
        all += turn_with.kib;
        with.push(turn_with);
        without.push(read(&slow.path(), turn)?);
    }
    let (with, without) = (median(with)?, median(without)?);
    let name = format!("random 4 KiB reads of {HOT} MiB, {DELAY} ms disk, with bcache and without");
    let ratio = with.iops / without.iops.max(f64::MIN_POSITIVE);
    let hits = 100.0 * (1.0 - missed / all.max(1.0));
    report.benefit(Benefit { name, place: report.place().to_owned(), with, without, ratio, hits });
    drop(caching);
    Ok(())
}

/// Reads the hot set until less than a hundredth of it comes from the slow disk: what is missed once is there the next time.
fn warm(slow: &Slow, cached: &Path) -> Result<()> {
    for _ in 0..PASSES {
        let before = slow.read_so_far()?;
        check(cached, 0, 1, HOT)?;
        let missed = slow.read_so_far()?.get().saturating_sub(before.get());
        if missed < (HOT as u64) << 20 >> 7 {
            return Ok(());
        }
    }
    bail!("the cache is not warm after the hot set was read {PASSES} times")
}

fn kib(size: Bytes) -> f64 {
    u32::try_from(size.get() >> 10).map_or(f64::MAX, f64::from)
}

/// A cache set over the slow disk that takes everything in.
fn over(slow: &Slow) -> Result<Caching> {
    let cache = Disk::new(DISK)?;
    let made = format_cache(cache.path())?;
    let uuid = format_backing(&slow.path(), &made, CacheMode::WriteThrough)?.uuid;
    let caching = Caching::of(cache, Vec::new(), made.set.context("a cache device has a set")?, vec![uuid]);
    let set = register_cache(caching.cache.path())?;
    register_backing(&slow.path())?.turn(&Knob::SequentialCutoff(Bytes::ZERO))?;
    for knob in [SetKnob::CongestedRead(Duration::ZERO), SetKnob::CongestedWrite(Duration::ZERO)] {
        set.turn(knob)?;
    }
    Ok(caching)
}

/// One turn of fio.
fn read(device: &Path, turn: Duration) -> Result<Reads> {
    let mut fio = std::process::Command::new(site::program("fio")?);
    fio.args(["--name=hot", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", "--readonly"])
        .args(["--time_based", "--output-format=json", "--allow_file_create=0"])
        .arg(format!("--filename={}", device.display()))
        .arg(format!("--size={HOT}M"))
        .arg(format!("--runtime={}ms", turn.as_millis().max(1000)));
    understood(&site::spawn(&mut fio)?)
}

/// What fio says of the reads of its only job.
fn understood(said: &[u8]) -> Result<Reads> {
    // fio may print warnings before the document.
    let start = said.iter().position(|byte| *byte == b'{').context("fio wrote no JSON")?;
    let said: Value = serde_json::from_slice(&said[start..]).context("understand fio")?;
    let reads = said.pointer("/jobs/0/read").context("fio tells of no reads")?;
    let percentile = |share: &str| {
        let value = reads.pointer("/clat_ns/percentile").and_then(|all| all.get(share)?.as_u64());
        value.with_context(|| format!("fio tells no percentile {share}"))
    };
    Ok(Reads {
        kib: reads.get("io_kbytes").and_then(Value::as_f64).context("fio does not tell how much it read")?,
        iops: reads.get("iops").and_then(Value::as_f64).context("fio tells no rate")?,
        median_ns: percentile("50.000000")?,
        p99_ns: percentile("99.000000")?,
    })
}

/// The turn with the median rate.
fn median(mut turns: Vec<Reads>) -> Result<Reads> {
    turns.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    turns.get(turns.len() / 2).copied().context("nothing was measured")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_says_is_understood() {
        let said = br#"fio: a warning
{"jobs": [{"read": {"iops": 190.5, "io_kbytes": 762, "clat_ns": {"percentile": {"50.000000": 5013504, "99.000000": 6000000}}}}]}"#;
        let reads = understood(said).unwrap();
        assert_eq!((reads.median_ns, reads.p99_ns), (5_013_504, 6_000_000));
        assert!((reads.iops - 190.5).abs() < 0.01);
        assert!(understood(b"{}").is_err());
    }
}
