//! Cuts of the power at each single write of partitioning, and with writes lost between two flushes.
//!
//! One copy of the table is always right, and says what was before or what comes after the change that was cut. The next
//! start refuses a damaged table with the reason, and repairs it when asked to. Another tool's disk beside it is not
//! touched, nor is any partition but the one that is made or removed.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use devices::gpt::{Condition, DiskFile, Gpt, Inspection, Owner, Partition, State, VolumeId, inspect};
use devices::{Bytes, Kind};
use rig::power_cut::{Action, Entry, Images, Random, Recorder, Recording, Replay, Stops};
use rig::{skip_unless_dm, skip_unless_installed, tool};

/// Ours, and the one that another tool has partitioned.
const OURS: usize = 0;
const FOREIGN: usize = 1;
const DISK: Bytes = Bytes::mib(48);
/// Tables and whatever else stands at the ends of a disk before the first and after the last partition.
const MARGIN: Bytes = Bytes::mib(1);

fn cannot_run() -> bool {
    skip_unless_dm() || skip_unless_installed(&["dmsetup", "sgdisk"])
}

fn owner() -> Owner {
    "rig".parse().unwrap()
}

/// A recording of changes to a table, and the partitions after each of them; none before the first.
struct Recorded {
    recording: Recording,
    tables: Vec<Vec<Partition>>,
    /// What each change gives a partition that was nobody's, or takes from one that goes: nothing else but the table may be
    /// written to.
    makes: Vec<Option<(Bytes, Bytes)>>,
    repairs: AtomicUsize,
}

fn record(changes: usize, seed: u64) -> Result<Recorded> {
    let recorder = Recorder::new(&[DISK, DISK])?;
    let foreign = recorder.slice(FOREIGN).display().to_string();
    tool::run("sgdisk", ["-n", "1:2048:+8M", "-c", "1:another", &foreign])?;
    recorder.flush()?;
    let mut tables = Vec::new();
    let mut makes = Vec::new();
    let mut random = Random::new(seed);
    recorder.mark("begin:0")?;
    let mut gpt = Gpt::create(DiskFile::open_to_write(recorder.slice(OURS))?, &owner())?;
    for change in 0..=changes {
        if change > 0 {
            let before = gpt.table().partitions();
            recorder.mark(&format!("begin:{change}"))?;
            change_once(&mut gpt, &mut random, change)?;
            let after = gpt.table().partitions();
            // A partition that goes leaves no signature behind.
            let gone = before.iter().find(|old| after.iter().all(|new| new.guid != old.guid));
            let changed = after.iter().find_map(|new| gained(&before, new));
            makes.push(changed.or(gone.map(|gone| (gone.start, gone.size))));
        } else {
            makes.push(None);
        }
        tables.push(gpt.table().partitions());
        recorder.mark(&format!("done:{change}"))?;
    }
    drop(gpt);
    Ok(Recorded { recording: recorder.finish()?, tables, makes, repairs: AtomicUsize::new(0) })
}

/// Where the space lies that a partition has and had not before, and how much it is; `None` without any.
fn gained(before: &[Partition], now: &Partition) -> Option<(Bytes, Bytes)> {
    let had = before.iter().find(|old| old.guid == now.guid).map_or(0, |old| old.size.get());
    let more = now.size.get().checked_sub(had).filter(|more| *more > 0)?;
    Some((Bytes::new(now.start.get() + had), Bytes::new(more)))
}

/// Adds, grows, marks or removes a partition, whatever chance says and there is room for.
fn change_once(gpt: &mut Gpt<DiskFile>, random: &mut Random, change: usize) -> Result<()> {
    let there = gpt.table().partitions();
    let chosen = usize::try_from(random.below(there.len() as u64))?;
    let size = Bytes::mib(1 + random.below(6));
    match (random.below(4), there.get(chosen)) {
        (0, Some(partition)) if there.len() > 2 => drop(gpt.remove(partition.number)?),
        (1, Some(partition)) => {
            let to = Bytes::mib(1).checked_add(partition.size).context("size")?;
            match gpt.grow(partition.number, to) {
                Err(error) if error.kind() == Kind::NoSpace => drop(gpt.remove(partition.number)?),
                grown => drop(grown?),
            }
        }
        (2, Some(partition)) => drop(gpt.set_state(partition.number, State::Xfs)?),
        _ => {
            let volume: VolumeId = format!("volume{change}").parse()?;
            match gpt.add(&volume, size, State::New) {
                Err(error) if error.kind() == Kind::NoSpace => {
                    let partition = there.first().context("no room on an empty disk")?;
                    drop(gpt.remove(partition.number)?);
                }
                added => drop(added?),
            }
        }
    }
    Ok(())
}

/// The change that was begun last before a point, and whether it was done.
fn progress(marks: &[String]) -> Option<(usize, bool)> {
    let last = marks.last()?;
    let (state, number) = last.split_once(':')?;
    Some((number.parse().ok()?, state == "done"))
}

impl Recorded {
    /// Fails unless the disk holds the table from before or after the change that was cut, and can be used again.
    fn audit(&self, images: &Images, marks: &[String]) -> Result<Seen> {
        let Some((change, done)) = progress(marks) else { return Ok(Seen::default()) };
        let found = inspect(&DiskFile::open_to_read(images.path(OURS))?)?;
        let damaged = match found.condition() {
            Condition::Sound => false,
            Condition::Damaged(_) if !done => true,
            Condition::Blank if change == 0 && !done => return Ok(Seen::default()),
            other => bail!("{other}"),
        };
        self.is_known(&found.table().context("no table")?.partitions(), change, done)?;
        if damaged {
            self.repair(images, &found, change)?;
        }
        Ok(Seen { damaged: usize::from(damaged), ..Seen::default() })
    }

    fn is_known(&self, partitions: &[Partition], change: usize, done: bool) -> Result<()> {
        let after = self.tables.get(change).is_some_and(|after| after == partitions);
        let before = match change.checked_sub(1) {
            None => partitions.is_empty(),
            Some(before) => self.tables[before] == partitions,
        };
        ensure!(after || (before && !done), "change {change}, done: {done}; partitions {partitions:?}");
        Ok(())
    }

    /// A damaged table is refused with the reason, and repaired when asked to.
    fn repair(&self, images: &Images, found: &Inspection, change: usize) -> Result<()> {
        let path = images.scratch("repaired");
        copy_ends(images, &path)?;
        let refused = Gpt::open(DiskFile::open_to_write(&path)?, &owner()).err().context("it was opened")?;
        let reason = found.condition().to_string();
        ensure!(refused.kind() == Kind::Inconsistent && refused.to_string().contains(&reason), "{refused}");
        let (repaired, mended) = Gpt::repair(DiskFile::open_to_write(&path)?, &owner())?;
        ensure!(!mended.is_empty(), "{reason}, and nothing was mended");
        self.is_known(&repaired.table().partitions(), change, false)?;
        let again = inspect(&repaired.into_medium())?;
        ensure!(*again.condition() == Condition::Sound, "after the repair {}", again.condition());
        // The tool takes longer than all the rest.
        if self.repairs.fetch_add(1, Ordering::Relaxed).is_multiple_of(16) { verify(&path) } else { Ok(()) }
    }

    /// Nothing is ever written but tables and the partition that is being made or removed.
    fn writes_only_what_it_may(&self, entries: &[Entry]) -> Result<usize> {
        let mut change = None;
        let mut writes = 0;
        for entry in entries {
            if let Action::Mark(text) = &entry.action {
                change = progress(std::slice::from_ref(text)).map(|(change, _)| change).or(change);
            }
            let Some(change) = change.filter(|_| entry.length > Bytes::ZERO) else { continue };
            let (begin, end) = (entry.start.get(), entry.start.get() + entry.length.get());
            let table = end <= MARGIN.get() || (begin >= DISK.get() - MARGIN.get() && end <= DISK.get());
            let made = self.makes[change]
                .is_some_and(|(start, size)| begin >= start.get() && end <= start.get() + size.get());
            ensure!(table || made, "change {change} writes {} bytes at {begin}", entry.length.get());
            writes += 1;
        }
        Ok(writes)
    }
}

/// What a run has looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    points: usize,
    losses: usize,
    damaged: usize,
}

/// A copy with both ends of the disk, where the tables are.
fn copy_ends(images: &Images, path: &Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path)?;
    file.set_len(DISK.get())?;
    for start in [Bytes::ZERO, DISK.saturating_sub(MARGIN)] {
        file.write_all_at(&images.read(OURS, start, MARGIN)?, start.get())?;
    }
    Ok(())
}

/// What sgdisk says of a table.
fn verify(path: &Path) -> Result<()> {
    let said = tool::run("sgdisk", ["--verify", &path.display().to_string()])?;
    ensure!(said.contains("No problems found"), "{said}");
    Ok(())
}

/// Audits each write, and choices of lost ones before each flush.
fn look(recorded: &Recorded, replay: &mut Replay, losses: u64, seed: u64) -> Result<Seen> {
    let mut seen = Seen::default();
    while let Some(point) = replay.next_point()? {
        let audited = recorded.audit(replay.images(), replay.marks());
        seen.damaged += audited.with_context(|| replay.tell(point))?.damaged;
        seen.points += 1;
        let audit = |images: &Images, marks: &[String]| recorded.audit(images, marks);
        let chosen = replay.with_choices(point, losses, seed, |_| true, audit)?;
        seen.losses += chosen.len();
        seen.damaged += chosen.iter().map(|seen| seen.damaged).sum::<usize>();
    }
    Ok(seen)
}

/// Leaves out one flush within a change after the other, until the audit fails. Tells how many it took.
fn control(recorded: &Recorded, losses: u64, seed: u64) -> Result<usize> {
    let entries = recorded.recording.log()?.entries;
    let ours = |entry: &Entry| matches!(&entry.action, Action::Mark(text) if text.starts_with("begin:1"));
    let begin = entries.iter().position(ours).context("no change")?;
    let flushes = (begin..entries.len()).filter(|index| entries[*index].durability.is_flush());
    let is_missed = |replay: &mut Replay, _| Ok(look(recorded, replay, losses, seed).is_err());
    recorded.recording.left_out(flushes, Stops::EachWrite, is_missed)
}

fn cuts(changes: usize, losses: u64) -> Result<()> {
    if cannot_run() {
        return Ok(());
    }
    let seed = Random::seed();
    let begun = Instant::now();
    let recorded = record(changes, seed)?;
    let writes = recorded.writes_only_what_it_may(&recorded.recording.log()?.entries)?;
    let mut replay = Replay::new(&recorded.recording, Stops::EachWrite)?;
    let seen = look(&recorded, &mut replay, losses, seed)?;
    ensure!(seen.damaged > 0, "no cut damaged a copy: {seen:?}");
    verify(replay.images().path(OURS))?;
    verify(replay.images().path(FOREIGN))?;
    let left_out = control(&recorded, losses, seed)?;
    let Seen { points, losses, damaged } = seen;
    println!(
        "FIGURES: {changes} changes, {writes} writes; {points} points and {losses} choices of lost writes audited, \
         {damaged} repaired; left out {left_out} flushes until one was missed; {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What continuous integration runs of this suite.
mod smoke {
    use super::*;

    #[test]
    fn a_partition_table_survives_a_cut_at_each_write() -> Result<()> {
        cuts(6, 3)
    }
}

mod minutes_30 {
    use super::*;

    #[test]
    fn a_partition_table_survives_cuts_at_each_write_of_many_changes() -> Result<()> {
        cuts(200, 8)
    }
}
