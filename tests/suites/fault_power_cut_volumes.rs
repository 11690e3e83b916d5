//! Cuts of the power while volumes are made, written to, snapshot, grown and removed, at each flush and each write with FUA,
//! and between them.
//!
//! At every point the disks are read natively: each acknowledged volume and snapshot is there, complete, of the right size
//! and with all that was acknowledged; at some points a node is opened on copies of the disks and used. A foreign disk and
//! the disk of a foreign volume group beside them are never written to.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "volumes_cut/directories.rs"]
mod directories;
#[path = "volumes_cut/kills.rs"]
mod kills;
#[path = "volumes_cut/offline.rs"]
mod offline;
#[path = "volumes_cut/record.rs"]
mod record;
#[path = "volumes_cut/site.rs"]
mod site;
#[path = "volumes_cut/start.rs"]
mod start;

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use devices::filesystem::FsType;
use rig::power_cut::{Action, BLOCK, Entry, Images, Point, Random, Recording, Replay, Stops};
use rig::{skip_unless_dm, skip_unless_installed};

use kills::kills;
use offline::audit;
use record::{FOREIGN, Life, record};
use site::{Backend, METADATA, SLICE};
use start::start;

/// How much of a recording is looked at.
#[derive(Clone, Copy)]
struct Extent {
    backend: Backend,
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

impl Extent {
    fn look(self, recording: &Recording, seed: u64) -> Result<Seen> {
        let mut replay = Replay::new(recording, Stops::EachWrite)?;
        let all = replay.points();
        let every = all.div_ceil(self.started.max(1)).max(1);
        let mut seen = Seen::default();
        while let Some(point) = replay.next_point()? {
            let told = |what: &str| format!("{what} {}", replay.tell(point));
            audit(self.backend, replay.images(), replay.marks()).with_context(|| told("audit at"))?;
            seen.points += 1;
            if point.number % every == every / 2 {
                let started = start(self.backend, replay.images(), replay.marks());
                seen.started += usize::from(started.with_context(|| told("started at"))?);
            }
            seen.losses += self.lose(&mut replay, point, seed)?;
        }
        ensure!(seen.points > 50, "{seen:?}");
        Ok(seen)
    }

    fn lose(self, replay: &mut Replay, point: Point, seed: u64) -> Result<usize> {
        let audit = |images: &Images, marks: &[String]| audit(self.backend, images, marks);
        let may_be_lost = |entry: &Entry| self.may_be_lost(entry);
        Ok(replay.with_choices(point, self.losses, seed, may_be_lost, audit)?.len())
    }

    /// Whether a write may be lost, or be there in part. LVM trusts that those into the metadata areas of a PV reach the disk
    /// in their order, ext4 that its superblock is never written in part.
    fn may_be_lost(self, entry: &Entry) -> bool {
        let start = entry.start.get() % SLICE.get();
        match self.backend {
            Backend::Partition => true,
            Backend::Thick | Backend::Thin => start >= METADATA.get(),
            Backend::Directory(_) => start >= BLOCK as u64,
        }
    }

    /// Leaves out the flushes of one acknowledged sync after the other, until the audit fails. Tells how many it took.
    fn control(self, recording: &Recording, seed: u64) -> Result<usize> {
        recording.left_out_before_acknowledgement(|replay, point| {
            audit(self.backend, replay.images(), replay.marks())?;
            self.lose(replay, point, seed).map(drop)
        })
    }
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
    if skip_unless_dm() || skip_unless_installed(&["dmsetup", "cp", "e2fsck", "xfs_repair"]) {
        return Ok(());
    }
    let seed = Random::seed();
    let begun = Instant::now();
    let recording = record(extent.backend, extent.life, seed)?;
    let recorded = begun.elapsed().as_secs_f64();
    foreign_is_untouched(&recording)?;
    let Seen { points, losses, started } = extent.look(&recording, seed)?;
    let looked = begun.elapsed().as_secs_f64() - recorded;
    let left_out = extent.control(&recording, seed)?;
    println!(
        "FIGURES: {points} points audited, {losses} with lost writes, {started} started; left out the flushes of {left_out} \
         syncs until they were missed; {recorded:.0} s to record, {looked:.0} s to look, {:.0} s in all",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

const fn short(backend: Backend) -> Extent {
    Extent { backend, life: Life { rounds: 1, syncs: 3 }, started: 2, losses: 1 }
}

/// What continuous integration runs of this suite.
mod smoke {
    mod seconds_300 {
        use super::super::*;

        #[test]
        fn partitions_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
            cuts(short(Backend::Partition))
        }
    }
}

/// A short life of each of the others, by hand.
mod minutes_5 {
    use super::*;

    #[test]
    fn thick_volumes_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
        cuts(short(Backend::Thick))
    }

    #[test]
    fn thin_volumes_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
        cuts(short(Backend::Thin))
    }

    #[test]
    fn directories_on_ext4_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
        cuts(short(Backend::Directory(FsType::Ext4)))
    }

    #[test]
    fn directories_on_xfs_survive_a_cut_at_each_point_of_their_life() -> Result<()> {
        cuts(short(Backend::Directory(FsType::Xfs)))
    }
}

/// The machine is killed ten times.
mod minutes_20 {
    use super::*;

    #[test]
    fn volumes_in_partitions_are_there_after_each_of_ten_kills() -> Result<()> {
        kills(Backend::Partition, 10)
    }

    #[test]
    fn thick_volumes_are_there_after_each_of_ten_kills() -> Result<()> {
        kills(Backend::Thick, 10)
    }

    #[test]
    fn thin_volumes_are_there_after_each_of_ten_kills() -> Result<()> {
        kills(Backend::Thin, 10)
    }

    #[test]
    fn directories_on_ext4_are_there_after_each_of_ten_kills() -> Result<()> {
        kills(Backend::Directory(FsType::Ext4), 10)
    }

    #[test]
    fn directories_on_xfs_are_there_after_each_of_ten_kills() -> Result<()> {
        kills(Backend::Directory(FsType::Xfs), 10)
    }
}

/// Five lives of each kind, with at least 5,000 points and a hundred starts in all.
mod minutes_30 {
    use super::*;

    const fn fifth(backend: Backend) -> Extent {
        // A partition's acts take fewer writes than those of the others.
        let rounds = if matches!(backend, Backend::Partition) { 3 } else { 2 };
        Extent { backend, life: Life { rounds, syncs: 14 }, started: 32, losses: 1 }
    }

    mod partitions {
        use super::*;

        rig::lives! {
            cuts(fifth(Backend::Partition));
            survive_a_cut_at_each_point_of_life_1
            survive_a_cut_at_each_point_of_life_2
            survive_a_cut_at_each_point_of_life_3
            survive_a_cut_at_each_point_of_life_4
            survive_a_cut_at_each_point_of_life_5
        }
    }

    mod thick_volumes {
        use super::*;

        rig::lives! {
            cuts(fifth(Backend::Thick));
            survive_a_cut_at_each_point_of_life_1
            survive_a_cut_at_each_point_of_life_2
            survive_a_cut_at_each_point_of_life_3
            survive_a_cut_at_each_point_of_life_4
            survive_a_cut_at_each_point_of_life_5
        }
    }

    mod thin_volumes {
        use super::*;

        rig::lives! {
            cuts(fifth(Backend::Thin));
            survive_a_cut_at_each_point_of_life_1
            survive_a_cut_at_each_point_of_life_2
            survive_a_cut_at_each_point_of_life_3
            survive_a_cut_at_each_point_of_life_4
            survive_a_cut_at_each_point_of_life_5
        }
    }

    mod directories_on_ext4 {
        use super::*;

        rig::lives! {
            cuts(fifth(Backend::Directory(FsType::Ext4)));
            survive_a_cut_at_each_point_of_life_1
            survive_a_cut_at_each_point_of_life_2
            survive_a_cut_at_each_point_of_life_3
            survive_a_cut_at_each_point_of_life_4
            survive_a_cut_at_each_point_of_life_5
        }
    }

    mod directories_on_xfs {
        use super::*;

        rig::lives! {
            cuts(fifth(Backend::Directory(FsType::Xfs)));
            survive_a_cut_at_each_point_of_life_1
            survive_a_cut_at_each_point_of_life_2
            survive_a_cut_at_each_point_of_life_3
            survive_a_cut_at_each_point_of_life_4
            survive_a_cut_at_each_point_of_life_5
        }
    }
}
