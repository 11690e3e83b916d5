//! Histories of a thin volume by chance, and what is told of the blocks that changed, compared with the bytes themselves.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::dm::{Dm, DmUuid};
use lvm::ops::Group;
use volumes::{Blocks, CreateSnapshot, Mode, SizeRange};

use crate::life::{class, id, new, snapshot_id};
use crate::node::{NodeLab, content};
use crate::power_cut::Random;
use crate::{eventually, tool};

/// A thin pool with small chunks, so that a small volume has many.
pub const CLASS: &str = "{thin: {chunkSize: 64Ki}}";
/// The group of a node's class.
pub const GROUP: &str = "gabion-lab";

const CHUNK: u64 = 64 << 10;
const BLOCK: u64 = 4096;
/// A volume begins with so many MiB, and grows to so many.
const SIZES: (u64, u64) = (12, 32);
/// After so many histories a volume has become large, and another one begins.
const ONE_VOLUME: usize = 20;

/// Every range that is told.
///
/// # Errors
///
/// If the reading fails.
pub fn collect(blocks: Blocks) -> Result<Vec<Range<Bytes>>> {
    Ok(blocks.collect::<Result<_, _>>()?)
}

/// Writes `count` blocks to places of chance in the first 48 MiB of a device, and through to the disk.
///
/// # Errors
///
/// If that fails.
pub fn scribble(device: &Path, seed: u64, count: usize) -> Result<()> {
    let (file, mut random) = (File::options().write(true).open(device)?, Random::new(seed));
    for _ in 0..count {
        let at = random.below((48 << 20) / BLOCK) * BLOCK;
        file.write_all_at(&content(&random.number().to_string(), 4096), at)?;
    }
    Ok(file.sync_all()?)
}

/// Fails if a pool goes on to hold its metadata.
///
/// # Errors
///
/// If the kernel cannot be asked.
pub fn wait_free(dm: &Dm, pool: &DmUuid) -> Result<()> {
    let held = dm.release_metadata(pool)?;
    ensure!(!held, "the pool still holds its metadata");
    Ok(())
}

/// A snapshot whose bytes are known.
#[derive(Debug)]
struct Known {
    name: String,
    bytes: Vec<u8>,
}

/// What was counted.
#[derive(Debug, Default)]
struct Figures {
    changed: u64,
    told: u64,
    reads: u64,
    writes: u64,
    readings: u64,
    looks: AtomicU64,
}

/// A volume of chance, and its snapshots.
#[derive(Debug)]
pub struct Histories {
    lab: NodeLab,
    group: Group,
    random: Random,
    dm: Dm,
    figures: Figures,
}

impl Histories {
    /// On a disk of its own.
    ///
    /// # Errors
    ///
    /// If the pool cannot be made.
    pub fn new() -> Result<Self> {
        let mut lab = NodeLab::new(1, Bytes::gib(1), &class(CLASS, 1, ""))?;
        let group = lab.group(GROUP)?;
        let random = Random::new(Random::seed());
        Ok(Self { lab, group, random, dm: Dm::open()?, figures: Figures::default() })
    }

    /// So many histories, each from one snapshot to another.
    ///
    /// # Errors
    ///
    /// If a block was missed, or something else is not as it should be.
    pub fn run(mut self, count: usize) -> Result<()> {
        let mut done = 0;
        while done < count {
            let some = (count - done).min(ONE_VOLUME);
            self.volume(&format!("v{done}"), some)?;
            done += some;
        }
        let Figures { changed, told, reads, writes, readings, looks } = &self.figures;
        let looks = looks.load(Ordering::Relaxed);
        println!(
            "FIGURES: {count} histories: {changed} blocks of 4 KiB differ, {told} are told; {readings} readings cost the \
             metadata volume {reads} reads and {writes} writes; no device was suspended in {looks} looks meanwhile"
        );
        Ok(())
    }

    fn volume(&mut self, name: &str, histories: usize) -> Result<()> {
        self.lab.node().create(&new(name, SIZES.0))?;
        let device = self.lab.publish(&id(name), Mode::Block)?;
        let mut kept = vec![self.cut(name, 0)?];
        for history in 1..=histories {
            self.live(name, &device)?;
            let target = self.cut(name, history)?;
            // The last one, or one that is further back.
            let base = usize::try_from(self.random.below(kept.len() as u64))?;
            self.compare(&kept[base], &target)
                .with_context(|| format!("from {} to {}", kept[base].name, target.name))?;
            kept.push(target);
            if kept.len() > 2 {
                let oldest = kept.remove(0);
                self.lab.node().delete_snapshot(&snapshot_id(&oldest.name))?;
            }
        }
        for cut in kept {
            self.lab.node().delete_snapshot(&snapshot_id(&cut.name))?;
        }
        self.lab.unpublish(&id(name))?;
        Ok(self.lab.node().delete(&id(name))?)
    }

    /// Writes, discards and growth.
    fn live(&mut self, name: &str, device: &Path) -> Result<()> {
        if self.random.below(4) == 0 {
            let has = self.lab.node().volume(&id(name))?.size.get() >> 20;
            if has < SIZES.1 {
                self.lab.node().grow(&id(name), SizeRange::at_least(Bytes::mib(has + 4)))?;
            }
        }
        let blocks = self.lab.node().volume(&id(name))?.size.get() / BLOCK;
        for _ in 0..self.random.below(30) {
            let at = self.random.below(blocks);
            let length = (1 + self.random.below(40)).min(blocks - at);
            let (at, length) = (at * BLOCK, length * BLOCK);
            let file = File::options().read(true).write(true).open(device)?;
            match self.random.below(8) {
                0 => {
                    let range = ["-o", &at.to_string(), "-l", &length.to_string()].map(str::to_owned);
                    tool::run("blkdiscard", range.iter().map(String::as_str).chain(device.to_str()))?;
                    continue;
                }
                1 => file.write_all_at(&vec![0; usize::try_from(length)?], at)?,
                // The same once more: another chunk, if a snapshot has this one.
                2 => {
                    let mut bytes = vec![0; usize::try_from(length)?];
                    file.read_exact_at(&mut bytes, at)?;
                    file.write_all_at(&bytes, at)?;
                }
                _ => {
                    let bytes = content(&self.random.number().to_string(), usize::try_from(length)?);
                    file.write_all_at(&bytes, at)?;
                }
            }
            file.sync_all()?;
        }
        Ok(())
    }

    /// A snapshot of now, and its bytes.
    fn cut(&self, volume: &str, number: usize) -> Result<Known> {
        let name = format!("{volume}-{number}");
        self.lab.node().create_snapshot(&CreateSnapshot::new(snapshot_id(&name), id(volume)))?;
        let lv = format!("{GROUP}/s.{name}");
        tool::run("lvchange", ["-ay", "-K", &lv])?;
        let node = PathBuf::from(format!("/dev/{lv}"));
        eventually("udev makes the node", Duration::from_secs(30), || node.exists());
        let bytes = fs::read(&node)?;
        tool::run("lvchange", ["-an", &lv])?;
        Ok(Known { name, bytes })
    }

    fn compare(&mut self, base: &Known, target: &Known) -> Result<()> {
        let (one, two) = (snapshot_id(&base.name), snapshot_id(&target.name));
        let before = self.io()?;
        let (delta, held) = self.watched(|node| {
            let delta = collect(node.delta(&one, &two, Bytes::ZERO)?)?;
            Ok((delta, collect(node.allocated(&two, Bytes::ZERO)?)?))
        })?;
        let after = self.io()?;
        self.figures.reads += after.0 - before.0;
        self.figures.writes += after.1 - before.1;
        self.figures.readings += 2;
        self.restores(base, target, &delta)?;
        let mut copy = vec![0; target.bytes.len()];
        take(&mut copy, &target.bytes, &held)?;
        ensure!(copy == target.bytes, "what is not held is not zero: {held:?}");
        ensure!(delta == self.by_the_tool(base, target)?, "{delta:?} is not what thin_delta says");
        // On from anywhere.
        let from = Bytes::new(self.random.below(target.bytes.len() as u64 + 1));
        let rest = delta.iter().filter(|range| range.end > from);
        let rest: Vec<_> = rest.map(|range| range.start.max(from)..range.end).collect();
        ensure!(collect(self.lab.node().delta(&one, &two, from)?)? == rest, "from {from:?} on");
        Ok(())
    }

    /// The base with what changed is the target.
    fn restores(&mut self, base: &Known, target: &Known, delta: &[Range<Bytes>]) -> Result<()> {
        let mut restored = base.bytes.clone();
        restored.resize(target.bytes.len(), 0);
        let before = restored.clone();
        take(&mut restored, &target.bytes, delta)?;
        ensure!(restored == target.bytes, "a changed block was missed: {delta:?}");
        let blocks = before.chunks(4096).zip(target.bytes.chunks(4096));
        self.figures.changed += blocks.filter(|(one, two)| one != two).count() as u64;
        let length = |range: &Range<Bytes>| range.end.saturating_sub(range.start).get();
        self.figures.told += delta.iter().map(length).sum::<u64>() / BLOCK;
        Ok(())
    }

    /// Reads, and looks all the time whether any device of the group is suspended.
    fn watched<T>(&self, read: impl FnOnce(&volumes::Node) -> Result<T>) -> Result<T> {
        let (done, vg) = (AtomicBool::new(false), self.group.uuid());
        thread::scope(|scope| {
            let watch = scope.spawn(|| -> Result<()> {
                let dm = Dm::open()?;
                while !done.load(Ordering::Relaxed) {
                    let suspended = dm.suspended(&vg)?;
                    ensure!(suspended.is_empty(), "suspended: {suspended:?}");
                    self.figures.looks.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            let read = read(self.lab.node());
            done.store(true, Ordering::Relaxed);
            watch.join().map_err(|_| anyhow::anyhow!("the watch panicked"))??;
            read
        })
    }

    /// Completed reads and writes of the metadata volume (Documentation/block/stat.rst).
    fn io(&self) -> Result<(u64, u64)> {
        let node = fs::canonicalize(format!("/dev/mapper/{}-pool_tmeta", GROUP.replace('-', "--")))?;
        let name = node.file_name().context("a node has a name")?.to_string_lossy().into_owned();
        let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        Ok((numbers[0], numbers[4]))
    }

    /// What `thin_delta` says of the same snapshots.
    fn by_the_tool(&self, base: &Known, target: &Known) -> Result<Vec<Range<Bytes>>> {
        let vg = self.group.look()?;
        let number = |known: &Known| -> Result<String> {
            let lv = vg.lv(&format!("s.{}", known.name)).context("the snapshot is there")?;
            Ok(lv.as_thin().context("it is thin")?.device_id.to_string())
        };
        let pool = vg.lv("pool").context("the pool is there")?.uuid;
        let held = self.dm.hold_metadata(&DmUuid::of_lvm(&vg.uuid, &pool, Some("tpool")))?;
        let node = format!("/dev/mapper/{}-pool_tmeta", GROUP.replace('-', "--"));
        let (one, two) = (number(base)?, number(target)?);
        let text = tool::run("thin_delta", ["-m", "--snap1", &one, "--snap2", &two, &node])?;
        held.release()?;
        let size = target.bytes.len() as u64;
        let mut ranges: Vec<Range<Bytes>> = Vec::new();
        for line in text.lines().filter(|line| !line.contains("<same")) {
            let attribute = |name: &str| line.split_once(name)?.1.split('"').next()?.parse::<u64>().ok();
            let (Some(begin), Some(length)) = (attribute("begin=\""), attribute("length=\"")) else {
                continue;
            };
            let range = Bytes::new(begin * CHUNK)..Bytes::new(((begin + length) * CHUNK).min(size));
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        Ok(ranges)
    }
}

/// Copies ranges.
fn take(to: &mut [u8], from: &[u8], ranges: &[Range<Bytes>]) -> Result<()> {
    for range in ranges {
        let range = usize::try_from(range.start.get())?..usize::try_from(range.end.get())?;
        let (to, from) = (to.get_mut(range.clone()), from.get(range));
        to.context("beyond the size")?.copy_from_slice(from.context("beyond the size")?);
    }
    Ok(())
}
