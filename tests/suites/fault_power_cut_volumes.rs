//! Cuts of the power while volumes in partitions are made, written to, grown and removed, at each flush and each write with
//! FUA, and between them.
//!
//! At every point the disks are read natively: each acknowledged volume is there, complete, of the right size and with all
//! that was acknowledged; at some points a node is opened on copies of the disks and used. A foreign disk and
//! the disk of a foreign volume group beside them are never written to.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "volumes_cut/offline.rs"]
mod offline;
#[path = "volumes_cut/record.rs"]
mod record;
#[path = "volumes_cut/start.rs"]
mod start;

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use rig::power_cut::{Action, Entry, Point, Random, Recording, Replay, Stops};
use rig::{skip_unless_dm, skip_unless_installed};

use offline::audit;
use record::{FOREIGN, Life, record};
use start::start;

/// How much of a recording is looked at.
#[derive(Clone, Copy)]
struct Extent {
    life: Life,
    /// Points at which a node is opened on the disks.
    started: usize,
    /// Choices of lost writes before each flush that has any.
    losses: u64,
}

/// What a run has looked at.
#[derive(Debug, Default)]
struct Seen {
    points: usize,
    losses: usize,
    started: usize,
}

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
            let started = start(replay.images(), replay.marks());
            seen.started += usize::from(started.with_context(|| told("started at"))?);
        }
        seen.losses += lose(&mut replay, point, extent, seed)?;
    }
    ensure!(seen.points > 50, "{seen:?}");
    Ok(seen)
}

fn lose(replay: &mut Replay, point: Point, extent: Extent, seed: u64) -> Result<usize> {
    Ok(replay.with_choices(point, extent.losses, seed, |_| true, audit)?.len())
}

/// Leaves out one flush before an acknowledgement after the other, until the audit fails. Tells how many it took.
fn control(recording: &Recording, extent: Extent, seed: u64) -> Result<usize> {
    recording.left_out_before_acknowledgement(|replay, point| {
        audit(replay.images(), replay.marks())?;
        lose(replay, point, extent, seed).map(drop)
    })
}

/// Nothing was written to what is not ours since the node was opened.
fn foreign_is_untouched(recording: &Recording) -> Result<()> {
    let entries = recording.log()?.entries;
    let is_begin = |entry: &Entry| matches!(&entry.action, Action::Mark(text) if text == "begin:pools");
    let begin = entries.iter().position(is_begin).context("the pools were never opened")?;
    for slice in FOREIGN.map(|index| recording.slices[index]) {
        let (from, to) = (slice.start.get(), slice.start.get() + slice.length.get());
        let touches = |entry: &&Entry| {
            let (start, end) = (entry.start.get(), entry.start.get() + entry.length.get());
            entry.length.get() > 0 && start < to && end > from
        };
        if let Some(entry) = entries[begin..].iter().find(touches) {
            bail!("{entry:?} wrote to a disk that is not ours");
        }
    }
    Ok(())
}

fn cuts(extent: Extent) -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["dmsetup", "cp"]) {
        return Ok(());
    }
    let seed = Random::seed();
    let begun = Instant::now();
    let recording = record(extent.life, seed)?;
    let recorded = begun.elapsed().as_secs_f64();
    foreign_is_untouched(&recording)?;
    let Seen { points, losses, started } = look(&recording, extent, seed)?;
    let left_out = control(&recording, extent, seed)?;
    println!(
        "FIGURES: {points} points audited, {losses} with lost writes, {started} started; left out {left_out} flushes \
         until one was missed; {recorded:.0} s to record, {:.0} s in all",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A short life, by hand.
mod minutes_5 {
    use super::*;

    const SHORT: Extent = Extent { life: Life { rounds: 1, syncs: 3 }, started: 2, losses: 1 };

    #[test]
    fn partitions_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
        cuts(SHORT)
    }
}

/// A long life.
mod minutes_30 {
    use super::*;

    const LONG: Extent = Extent { life: Life { rounds: 12, syncs: 12 }, started: 34, losses: 2 };

    #[test]
    fn partitions_survive_a_cut_at_each_point_of_a_long_life() -> Result<()> {
        cuts(LONG)
    }
}
