//! Cuts of the power while a group is worked on, at each flush and each write with FUA, and between them.
//!
//! At every point the metadata are read natively and every acknowledged block is looked up through them, thin volumes
//! through the pool's own metadata; at some points the disks are started for real, recovered and used.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{CREATING, Group, NewGroup, NewPool, NewThin, NewThinSnapshot, NewVolume, OnRemove, PART};
use lvm::ops::{PoolSize, SizeRange};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, LvName, Tag, VgName};
use rig::power_cut::{
    Acknowledged, BLOCK, Blocks, Entry, Images, OfflineGroup, Point, Random, Recorder, Recording, Replay,
    Stops, read_blocks,
};
use rig::{Disk, Handle, skip_unless_dm, skip_unless_installed, sweep, tool};

const SLICE: Bytes = Bytes::mib(200);
/// What LVM has at the beginning of a PV, at least: the library's metadata areas.
const METADATA: Bytes = Bytes::mib(16);
const DB: u64 = 0;
const THIN: u64 = 1;
const BLOCKS: usize = 64;

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

fn cannot_run() -> bool {
    skip_unless_dm() || skip_unless_installed(&["dmsetup", "thin_check"])
}

/// How long a life of the group is, and how much of it is looked at.
#[derive(Clone, Copy)]
struct Extent {
    /// Syncs between two changes of the group.
    syncs: usize,
    /// Lives one after the other in one recording.
    rounds: usize,
    /// Points at which the disks are started for real.
    started: usize,
    /// Choices of lost writes before each flush that has any.
    losses: u64,
}

/// Runs an operation between two marks. A write is logged once it was flushed, so that the second mark stands before what
/// was told as done and not flushed, and the audit misses it.
fn step<T>(recorder: &Recorder, name: &str, act: impl FnOnce() -> Result<T, lvm::Error>) -> Result<T> {
    recorder.mark(&format!("begin:{name}"))?;
    let made = act().with_context(|| name.to_owned())?;
    recorder.mark(&format!("done:{name}"))?;
    Ok(made)
}

/// Records a group from its creation on, while its volumes are written to, and after each sync what is acknowledged.
fn record(extent: Extent, seed: u64) -> Result<Recording> {
    let recorder = Recorder::new(&[SLICE, SLICE])?;
    let paths = [recorder.slice(0), recorder.slice(1)].map(DevicePath::new);
    let paths = paths.into_iter().collect::<Result<Vec<_>, _>>()?;
    let handle = Handle::on(paths.clone(), Activation::Udev, |builder| builder)?;
    let new = NewGroup::new(VgName::new("v")?, paths);
    let group = step(&recorder, "group", || handle.lvm.create_group(&new))?.into_inner();
    let lived = live(&recorder, &group, extent, seed);
    group.deactivate()?;
    lived?;
    drop(handle);
    recorder.finish()
}

fn live(recorder: &Recorder, group: &Group, extent: Extent, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut write = |blocks: &mut Blocks| -> Result<()> {
        for _ in 0..extent.syncs {
            let count = 1 + usize::try_from(random.below(4))?;
            recorder.mark(&blocks.write_some(&mut random, count)?)?;
        }
        Ok(())
    };
    let _ = step(recorder, "db", || group.create_volume(&NewVolume::new(lv("db"), mib(16))))?;
    let mut db = Blocks::on(&group.volume(&lv("db"))?.device, DB, BLOCKS)?;
    write(&mut db)?;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(mib(32))).tag(Tag::new("rig")?);
    let _ = step(recorder, "pool", || group.create_pool(&pool))?;
    let thin = NewThin::new(lv("pool"), lv("t"), mib(32));
    let _ = step(recorder, "t", || group.create_thin(&thin))?;
    let mut thin = Blocks::on(&group.volume(&lv("t"))?.device, THIN, BLOCKS)?;
    write(&mut thin)?;
    for round in 0..extent.rounds {
        let name = format!("s{round}");
        let snapshot = NewThinSnapshot::new(lv("t"), lv(&name));
        let _ = step(recorder, &name, || group.snapshot_thin(&snapshot))?;
        write(&mut thin)?;
        let size = 16 + 4 * (round as u64 + 1);
        let _ = step(recorder, &format!("size{size}"), || group.extend_volume(&lv("db"), mib(size), &[]))?;
        write(&mut db)?;
        let _ =
            step(recorder, &format!("remove-{name}"), || group.remove_volume(&lv(&name), OnRemove::Keep))?;
        write(&mut thin)?;
    }
    Ok(())
}

/// What the marks before a point say.
struct Known<'a> {
    marks: &'a [String],
}

impl Known<'_> {
    fn begun(&self, step: &str) -> bool {
        self.marks.iter().any(|mark| mark.strip_prefix("begin:") == Some(step))
    }

    fn done(&self, step: &str) -> bool {
        self.marks.iter().any(|mark| mark.strip_prefix("done:") == Some(step))
    }

    /// The volumes that are there for certain.
    fn volumes(&self) -> Vec<&str> {
        let made = self.marks.iter().filter_map(|mark| mark.strip_prefix("done:"));
        made.filter(|name| ["db", "pool", "t"].contains(name) || self.is_snapshot(name))
            .filter(|name| !self.begun(&format!("remove-{name}")))
            .collect()
    }

    /// The volumes of which nothing is certain: they are being made or removed.
    fn is_changing(&self, name: &str) -> bool {
        let remove = format!("remove-{name}");
        (self.begun(name) && !self.done(name)) || (self.begun(&remove) && !self.done(&remove))
    }

    fn is_snapshot(&self, name: &str) -> bool {
        name.strip_prefix('s').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Least and greatest size of `db`, in MiB.
    fn sizes(&self) -> (u64, u64) {
        let size = |prefix: &str| {
            let mut sizes =
                self.marks.iter().filter_map(|mark| mark.strip_prefix(prefix)?.parse::<u64>().ok());
            sizes.next_back().unwrap_or(16)
        };
        (size("done:size"), size("begin:size"))
    }

    fn acknowledged(&self) -> Result<Acknowledged> {
        Acknowledged::of(self.marks)
    }

    /// What was acknowledged when a snapshot was begun.
    fn at_snapshot(&self, name: &str) -> Result<Acknowledged> {
        let begin = format!("begin:{name}");
        let at = self.marks.iter().position(|mark| *mark == begin).context("no such snapshot")?;
        Acknowledged::of(&self.marks[..at])
    }
}

/// Fails unless the group is there as acknowledged, with all that was written to it.
fn audit(images: &Images, marks: &[String]) -> Result<()> {
    let known = Known { marks };
    if !known.done("group") {
        return Ok(());
    }
    let group = OfflineGroup::read(images)?.context("the group is gone")?;
    let vg = group.vg();
    let certain = known.volumes();
    for lv in vg.visible_lvs() {
        let expected = certain.contains(&lv.name.as_str()) || known.is_changing(lv.name.as_str());
        // LVM makes a pool's metadata as a volume of its own first, under a name of its own and without our tags.
        let part = lv.name.as_str().starts_with("lvol") && known.is_changing("pool");
        let unfinished = part || lv.has_tag(CREATING) || lv.has_tag(PART);
        ensure!(expected || unfinished, "{} {:?}", lv.name, lv.tags);
    }
    let acknowledged = known.acknowledged()?;
    let length = Bytes::new((BLOCKS * BLOCK) as u64);
    for name in certain {
        let lv = vg.lv(name).with_context(|| format!("{name} is gone"))?;
        ensure!(!lv.has_tag(CREATING), "{name} is said to be unfinished");
        let told = || name.to_owned();
        match name {
            "db" => {
                let (least, greatest) = known.sizes();
                let size = group.size(name)?;
                ensure!(size >= Bytes::mib(least) && size <= Bytes::mib(greatest), "db has {size}");
                acknowledged.check(DB, &group.read_linear(name, Bytes::ZERO, length)?).with_context(told)?;
            }
            "pool" => {
                let _ = group.pool_metadata(name).with_context(told)?;
            }
            "t" => acknowledged.check(THIN, &group.read_thin(name, length)?).with_context(told)?,
            _ => known
                .at_snapshot(name)?
                .check_exactly(THIN, &group.read_thin(name, length)?)
                .with_context(told)?,
        }
    }
    Ok(())
}

/// Asks the thin tools, too.
fn thin_check(images: &Images, marks: &[String]) -> Result<()> {
    if !(Known { marks }).done("pool") {
        return Ok(());
    }
    let group = OfflineGroup::read(images)?.context("the group is gone")?;
    let metadata = group.pool_metadata_image("pool")?;
    // A device, since the tool reads past the page cache, which not every filesystem can.
    let disk = Disk::filled(Bytes::new(metadata.len() as u64), |path| Ok(fs::write(path, &metadata)?))?;
    tool::run("thin_check", [disk.path()]).map(drop)
}

/// Starts copies of the disks as a machine does after the cut, recovers, reads everything and makes a volume.
fn start(images: &Images, marks: &[String]) -> Result<()> {
    let known = Known { marks };
    let disks: Vec<Disk> = images.disks()?;
    let handle = Handle::active(&disks.iter().collect::<Vec<_>>())?;
    let group = match handle.lvm.group(&VgName::new("v")?) {
        Ok(group) => group,
        Err(_) if !known.done("group") => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let used = use_again(&group, &known);
    group.deactivate()?;
    used
}

fn use_again(group: &Group, known: &Known<'_>) -> Result<()> {
    let recovered = group.lvm().recover(group.uuid(), group.label())?;
    ensure!(recovered.is_open(), "{recovered}");
    let _ = group.remove_unfinished()?;
    group.activate()?;
    let acknowledged = known.acknowledged()?;
    for name in known.volumes() {
        if name == "pool" {
            continue;
        }
        let volume = group.volume(&lv(name))?;
        let _ = group.activate_volume(&lv(name))?;
        let found = read_blocks(&volume.device, BLOCKS)?;
        match name {
            "db" => acknowledged.check(DB, &found)?,
            "t" => acknowledged.check(THIN, &found)?,
            _ => known.at_snapshot(name)?.check_exactly(THIN, &found)?,
        }
    }
    sweep::in_order(group)?;
    ensure!(group.create_volume(&NewVolume::new(lv("after"), mib(4)))?.is_made());
    Ok(())
}

/// Whether an entry wrote somewhere else than into a PV's label and metadata areas. LVM trusts that those writes reach the
/// disk in their order: with a text lost and its header there, a group could not be read.
fn is_beyond_metadata(entry: &Entry) -> bool {
    entry.start.get() % SLICE.get() >= METADATA.get()
}

/// What a run has looked at.
#[derive(Debug, Default)]
struct Seen {
    points: usize,
    losses: usize,
    started: usize,
}

/// Audits every point, chooses losses before each flush, and starts the disks at some points.
fn look(recording: &Recording, extent: Extent, seed: u64) -> Result<Seen> {
    let mut replay = Replay::new(recording, Stops::EachWrite)?;
    let all = replay.points();
    let every = all.div_ceil(extent.started.max(1)).max(1);
    let mut seen = Seen::default();
    while let Some(point) = replay.next_point()? {
        let told = |what: &str| format!("{what} {}", replay.tell(point));
        audit(replay.images(), replay.marks()).with_context(|| told("audit at"))?;
        seen.points += 1;
        if point.number % every == every / 2 {
            thin_check(replay.images(), replay.marks()).with_context(|| told("thin_check at"))?;
            start(replay.images(), replay.marks()).with_context(|| told("started at"))?;
            seen.started += 1;
        }
        seen.losses += lose(&mut replay, point, extent, seed)?;
    }
    ensure!(seen.points > 100, "{seen:?}");
    Ok(seen)
}

fn lose(replay: &mut Replay, point: Point, extent: Extent, seed: u64) -> Result<usize> {
    Ok(replay.with_choices(point, extent.losses, seed, is_beyond_metadata, audit)?.len())
}

/// Leaves out one flush before an acknowledgement after the other, until the audit fails. Tells how many it took.
fn control(recording: &Recording, extent: Extent, seed: u64) -> Result<usize> {
    recording.left_out_before_acknowledgement(|replay, point| {
        audit(replay.images(), replay.marks())?;
        lose(replay, point, extent, seed).map(drop)
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
    let looked = begun.elapsed().as_secs_f64() - recorded;
    let Seen { points, losses, started } = seen;
    let left_out = control(&recording, extent, seed)?;
    println!(
        "FIGURES: {points} points audited, {losses} with lost writes, {started} started; left out {left_out} flushes \
         until one was missed; {recorded:.0} s to record, {looked:.0} s to look, {:.0} s in all",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A short life.
mod smoke {
    use super::*;

    #[test]
    fn a_group_survives_a_cut_at_each_point_of_its_life() -> Result<()> {
        cuts(Extent { syncs: 4, rounds: 1, started: 1, losses: 1 })
    }
}

/// Ten lives, thousands of points and a hundred starts in all.
mod minutes_20 {
    use super::*;

    const TENTH: Extent = Extent { syncs: 20, rounds: 2, started: 10, losses: 2 };

    rig::lives! {
        cuts(TENTH);
        a_group_survives_a_cut_at_each_point_of_life_01
        a_group_survives_a_cut_at_each_point_of_life_02
        a_group_survives_a_cut_at_each_point_of_life_03
        a_group_survives_a_cut_at_each_point_of_life_04
        a_group_survives_a_cut_at_each_point_of_life_05
        a_group_survives_a_cut_at_each_point_of_life_06
        a_group_survives_a_cut_at_each_point_of_life_07
        a_group_survives_a_cut_at_each_point_of_life_08
        a_group_survives_a_cut_at_each_point_of_life_09
        a_group_survives_a_cut_at_each_point_of_life_10
    }
}
