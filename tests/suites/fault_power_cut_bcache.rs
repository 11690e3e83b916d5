//! Cuts of the power while a device is written to through bcache in writeback mode.
//!
//! The cache and the backing device are slices of one recorded device. At each flush and each write with FUA the journal
//! and the tree are read as the kernel would, and every acknowledged block is looked up through them; at some points the
//! kernel itself starts the set from copies. Without its cache the device stays away: nothing is forced.
//!
//! The disk behind is taken for one with a volatile cache, the cache device for one that keeps what was written to it; what
//! is lost where the cache device has a volatile cache, too, is the kernel's fault, and is counted.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bcache::{Backing, Bcache, Blank, CacheMode, Knob, NewBacking, NewCache, Outcome, Percent, State};
use devices::{Bytes, Sectors};
use rig::power_cut::{
    Acknowledged, Action, BLOCK, Blocks, Entry, Images, OfflineBcache, Random, Recorder, Recording, Replay,
    Stops, read_blocks,
};
use rig::{Disk, skip_unless_dm, skip_unless_installed, tool};

const CACHE: usize = 0;
const ON_CACHE: Bytes = Bytes::mib(192);
const BACKING: usize = 1;
const AREA: u64 = 0;
const BLOCKS: usize = 256;
/// How long the kernel may take to start a set; emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// From this mark on the device is there.
const READY: &str = "ready";

fn cannot_run() -> bool {
    skip_unless_dm() || skip_unless_installed(&["dmsetup", "modprobe"])
}

/// How much is written, and how much of it is looked at.
#[derive(Clone, Copy)]
struct Extent {
    syncs: usize,
    started: usize,
    losses: u64,
    controls: usize,
}

/// Formats and starts a set on the slices, writes, and stops it.
fn record(extent: Extent, seed: u64) -> Result<Recording> {
    let recorder = Recorder::new(&[ON_CACHE, Bytes::mib(64)])?;
    let cache = NewCache::new().bucket_size(Bytes::kib(64)).format(Blank::claim(recorder.slice(CACHE))?)?;
    let new = NewBacking::new().in_set_of(&cache).mode(CacheMode::WriteBack);
    new.format(Blank::claim(recorder.slice(BACKING))?)?;
    let (backing, device) = started(&[recorder.slice(CACHE).into(), recorder.slice(BACKING).into()])?;
    let written = write(&recorder, &backing, &device, extent, seed);
    stop(&backing)?;
    written?;
    recorder.finish()
}

fn write(recorder: &Recorder, backing: &Backing, device: &Path, extent: Extent, seed: u64) -> Result<()> {
    // What is dirty is written back all the time, from the first second on.
    backing.turn(&Knob::WritebackPercent(Percent::new(0).context("0 percent")?))?;
    backing.turn(&Knob::WritebackDelay(Duration::from_secs(1)))?;
    ensure!(backing.status()?.mode == CacheMode::WriteBack);
    recorder.flush()?;
    recorder.mark(READY)?;
    let mut blocks = Blocks::on(device, AREA, BLOCKS)?;
    let mut random = Random::new(seed);
    for _ in 0..extent.syncs {
        let count = 1 + usize::try_from(random.below(4))?;
        recorder.mark(&blocks.write_some(&mut random, count)?)?;
    }
    Ok(())
}

/// Registers the members of a set, whoever is quicker, and waits for the cached device.
fn started(paths: &[PathBuf]) -> Result<(Backing, PathBuf)> {
    for adopted in Bcache::new().adopt(paths, PATIENCE) {
        match adopted.outcome {
            Outcome::Running { backing, device } => return Ok((backing, device)),
            Outcome::Cache(_) => {}
            other => bail!("{}: {other:?}", adopted.path.display()),
        }
    }
    bail!("no backing device")
}

/// Stops both; what is dirty stays on the cache.
fn stop(backing: &Backing) -> Result<()> {
    // udev, late with an event of the registration, would register them once more.
    tool::run("udevadm", ["settle"])?;
    let set = backing.set()?;
    let _ = backing.stop()?;
    if let Some(set) = set {
        let _ = set.stop()?;
    }
    Ok(())
}

fn is_ready(marks: &[String]) -> bool {
    marks.iter().any(|mark| mark == READY)
}

/// What an audit found beside what was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Audited {
    /// Something is on the cache alone.
    dirty: bool,
    /// A key points to what is something else by now, and counts for nothing.
    stale: bool,
}

/// What the images hold, read as the kernel would read it.
fn audit(images: &Images, marks: &[String]) -> Result<Audited> {
    if !is_ready(marks) {
        return Ok(Audited::default());
    }
    let set = OfflineBcache::read(images, CACHE, BACKING)?;
    let found = set.read_data(Bytes::new((BLOCKS * BLOCK) as u64))?;
    let acknowledged = Acknowledged::of(marks)?;
    for (block, found) in found.chunks(BLOCK).enumerate() {
        if let Err(lost) = acknowledged.check_block(AREA, block, found) {
            let length = BLOCK as u64;
            return Err(lost.context(set.explain(Bytes::new(block as u64 * length), Bytes::new(length))?));
        }
    }
    Ok(Audited { dirty: set.dirty_keys > 0, stale: set.stale_keys > 0 })
}

/// The same, and if that fails, what the kernel says to it.
fn audit_beside_the_kernel(images: &Images, marks: &[String]) -> Result<Audited> {
    let by_the_kernel = || Acknowledged::of(marks)?.check(AREA, &read_by_the_kernel(images)?);
    audit(images, marks).map_err(|lost| match by_the_kernel() {
        Ok(()) => lost.context("the kernel finds everything"),
        Err(too) => lost.context(format!("the kernel: {too:#}")),
    })
}

/// Has the kernel start copies, and reads everything.
fn read_by_the_kernel(images: &Images) -> Result<Vec<u8>> {
    let disks: Vec<Disk> = images.disks()?;
    let paths: Vec<PathBuf> = disks.iter().map(|disk| disk.path().to_owned()).collect();
    let (backing, device) = started(&paths)?;
    let found = read_blocks(&device, BLOCKS);
    stop(&backing)?;
    found
}

/// What the kernel reads is what was acknowledged, and what we read without it.
fn start(images: &Images, marks: &[String]) -> Result<()> {
    let found = read_by_the_kernel(images)?;
    Acknowledged::of(marks)?.check(AREA, &found)?;
    let ours = OfflineBcache::read(images, CACHE, BACKING)?.read_data(Bytes::new(found.len() as u64))?;
    let differ = found.chunks(BLOCK).zip(ours.chunks(BLOCK)).position(|(kernel, ours)| kernel != ours);
    ensure!(differ.is_none(), "the kernel reads another block {differ:?} than we do");
    Ok(())
}

/// Without its cache the device does not come up, and says that it is dirty; it is neither forced nor written to.
fn refused_without_cache(images: &Images) -> Result<()> {
    let disk = images.disk(BACKING)?;
    let before = fs::read(disk.image())?;
    let adopted = Bcache::new().adopt(&[disk.path()], Duration::from_secs(3));
    let outcome = adopted.into_iter().next().context("no outcome")?.outcome;
    let Outcome::Waiting { backing, state, .. } = outcome else { bail!("{outcome:?}") };
    let device = backing.device()?;
    stop(&backing)?;
    ensure!(device.is_none(), "it came up as {device:?} without its cache");
    ensure!(state == State::Dirty, "it says that it is {state:?}");
    let offset = usize::try_from(16 * Sectors::SIZE)?;
    ensure!(fs::read(disk.image())?[offset..] == before[offset..], "its data were written to");
    Ok(())
}

/// Whether an entry wrote to the cache device.
fn is_on_cache(entry: &Entry) -> bool {
    entry.start < ON_CACHE
}

#[derive(Debug, Default)]
struct Seen {
    points: usize,
    dirty: usize,
    stale: usize,
    losses: usize,
    started: usize,
    refused: usize,
    /// Entries after which an acknowledged block was not there, because a cache device with a volatile cache of its own did
    /// not have yet what the tree points to.
    volatile: Vec<usize>,
}

/// Audits a point. Where something is missing, all must be there once the cache device has kept what was written to it.
///
/// The kernel writes a leaf of the tree with FUA and without a flush before it (btree.c, `do_btree_node_write`). The leaf may
/// point to a block that is still in the device's volatile cache, and takes the place of the key of the older, acknowledged
/// one, which the journal has given up by then. Until the next journal entry a power cut loses that block. The recorder can
/// seem to show the same at a journal entry: with two flushes on their way, what the first one took along is logged with it,
/// although the second one, which ends first, had to flush it as well.
fn audit_point(replay: &mut Replay, marks: &[String], told: &str) -> Result<Option<Audited>> {
    match audit(replay.images(), marks) {
        Ok(audited) => Ok(Some(audited)),
        Err(lost) => {
            let again = replay.with_unflushed(is_on_cache, |images| audit_beside_the_kernel(images, marks));
            again.context("although the cache device keeps all").with_context(|| told.to_owned())?;
            println!("FIGURES: only in a volatile cache: {told}: {}", lost.root_cause());
            Ok(None)
        }
    }
}

fn look(recording: &Recording, extent: Extent, seed: u64) -> Result<Seen> {
    let mut replay = Replay::new(recording, Stops::Durable)?;
    let all = replay.points();
    let every = all.div_ceil(extent.started.max(1)).max(1);
    let mut seen = Seen::default();
    while let Some(point) = replay.next_point()? {
        let marks = replay.marks().to_vec();
        if !is_ready(&marks) {
            continue;
        }
        let told = replay.tell(point);
        seen.points += 1;
        let Some(Audited { dirty, stale }) = audit_point(&mut replay, &marks, &told)? else {
            seen.volatile.push(point.entry);
            continue;
        };
        seen.dirty += usize::from(dirty);
        seen.stale += usize::from(stale);
        if seen.points % every == every / 2 {
            start(replay.images(), &marks).with_context(|| format!("started at {told}"))?;
            seen.started += 1;
            if dirty && seen.refused < 5 {
                refused_without_cache(replay.images()).with_context(|| format!("without cache at {told}"))?;
                seen.refused += 1;
            }
        }
        let lost = |entry: &Entry| !is_on_cache(entry);
        seen.losses += replay.with_choices(point, extent.losses, seed, lost, audit)?.len();
    }
    ensure!(seen.dirty > 0, "nothing was ever dirty: {seen:?}");
    Ok(seen)
}

/// Leaves out one flush in the midst of the writing after the other, until the audit misses it. Tells how many it took. What is lost with all flushes proves nothing, so flushes near
/// such a point are passed over.
fn control(recording: &Recording, seen: &Seen, extent: Extent) -> Result<usize> {
    const NEAR: usize = 64;
    let entries = recording.log()?.entries;
    let ready =
        entries.iter().position(|entry| entry.action == Action::Mark(READY.into())).context("never ready")?;
    let is_apart = |flush: &usize| seen.volatile.iter().all(|lost| lost.abs_diff(*flush) > NEAR);
    let flushes: Vec<usize> = (ready..entries.len())
        .filter(|index| entries[*index].durability.is_flush() && is_apart(index))
        .collect();
    let chosen = flushes.iter().skip(flushes.len() / 2).take(extent.controls).copied();
    recording.left_out(chosen, Stops::Durable, |replay, flush| {
        while let Some(point) = replay.next_point()? {
            // The next flush makes up for the one that was left out.
            let is_near = point.entry.abs_diff(flush) < NEAR / 2;
            if is_near && audit(replay.images(), replay.marks()).is_err() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn cuts(extent: Extent) -> Result<()> {
    if cannot_run() {
        return Ok(());
    }
    let seed = Random::seed();
    let begun = Instant::now();
    let recording = record(extent, seed)?;
    let recorded = begun.elapsed().as_secs_f64();
    let seen = look(&recording, extent, seed)?;
    let left_out = control(&recording, &seen, extent)?;
    let Seen { points, dirty, stale, losses, started, refused, volatile } = seen;
    println!(
        "FIGURES: {points} points audited ({dirty} dirty, {stale} with keys out of date), {losses} with lost writes, {started} started, {refused} \
         refused without their cache, nothing lost; in a volatile cache of the cache device something at {} points; left \
         out {left_out} flushes until one was missed; {recorded:.0} s to record, {:.0} s in all",
        volatile.len(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// By hand: in so short a life it can be that no flush which the control leaves out is missed.
mod minutes_5 {
    use super::*;

    #[test]
    fn a_cached_device_survives_a_cut_at_each_flush() -> Result<()> {
        cuts(Extent { syncs: 20, started: 1, losses: 1, controls: 12 })
    }
}

/// Eight lives, 5,000 points and a hundred starts in all.
mod minutes_20 {
    use super::*;

    const EIGHTH: Extent = Extent { syncs: 230, started: 13, losses: 1, controls: 12 };

    rig::lives! {
        cuts(EIGHTH);
        a_cached_device_survives_a_cut_at_each_flush_of_life_1
        a_cached_device_survives_a_cut_at_each_flush_of_life_2
        a_cached_device_survives_a_cut_at_each_flush_of_life_3
        a_cached_device_survives_a_cut_at_each_flush_of_life_4
        a_cached_device_survives_a_cut_at_each_flush_of_life_5
        a_cached_device_survives_a_cut_at_each_flush_of_life_6
        a_cached_device_survives_a_cut_at_each_flush_of_life_7
        a_cached_device_survives_a_cut_at_each_flush_of_life_8
    }
}
