//! Kills of the machine while volumes are made, written to, snapshot, grown and removed: what was acknowledged is on a disk of
//! its own, and is there after the next start.
//!
//! A kill loses nothing that the guest has sent to its disks, so this shows recovery with all that a real start does; that
//! flushes are sent, and in the right order, the recordings show.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::SizeRange;
use rig::life::{id, new, snapshot_id};
use rig::power_cut::{Blocks, Random, read_blocks};
use rig::projects::format;
use rig::{Ledger, eventually, skip_unless_dm, virtual_disks};
use volumes::{CreateSnapshot, CreateVolume, Node, SnapshotState, Source};

use super::offline::Known;
use super::record::{BLOCKS, DB, FIRST, FOREIGN, MORE, foreign};
use super::site::{Backend, OURS, Site};
use super::start::is_limited;

/// How much of the disks that are not ours is compared; everything on them is at their beginning.
const THEIRS: usize = 32 << 20;
/// Names of one life; those of the next begin behind them.
const NAMES: u64 = 1000;

/// What the test was given: two disks of ours, two that are not, and one for the ledger.
struct Disks {
    all: Vec<PathBuf>,
    ledger: PathBuf,
}

impl Disks {
    fn find() -> Result<Self> {
        let mut all = virtual_disks();
        ensure!(all.len() > 4, "five disks are needed");
        all.truncate(5);
        let ledger = all.pop().context("no disk")?;
        Ok(Self { all, ledger })
    }

    /// A number that follows from all that is on the disks that are not ours.
    fn digest(&self) -> Result<u64> {
        let mut digest = 0_u64;
        for disk in FOREIGN.map(|index| &self.all[index]) {
            let mut bytes = vec![0; THEIRS];
            File::open(disk)?.read_exact_at(&mut bytes, 0)?;
            digest = bytes.iter().fold(digest, |digest, byte| {
                (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
            });
        }
        Ok(digest)
    }
}

/// One start of the machine.
struct Phase<'a> {
    site: &'a Site,
    node: &'a Node,
    dir: &'a Path,
    backend: Backend,
    ledger: Ledger,
}

/// Kills the machine so many times.
pub(crate) fn kills(backend: Backend, times: u64) -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let number: u64 = std::env::var("GABION_PHASE").context("no phase")?.parse()?;
    let disks = Disks::find()?;
    let (mut ledger, mut marks) = Ledger::open(&disks.ledger)?;
    if number == 0 {
        foreign(&disks.all[FOREIGN[0]], &disks.all[FOREIGN[1]])?;
        if let Backend::Directory(fs) = backend {
            format(&disks.all[OURS[0]], fs)?;
        }
        marks.push(format!("foreign:{}", disks.digest()?));
        ledger.add(&marks[0])?;
    }
    let dir = tempfile::tempdir()?;
    let site = Site::open(backend, &disks.all)?;
    let (node, repairs) = Node::open(site.settings(dir.path())?)?;
    ensure!(repairs.problems.is_empty() && repairs.orphans.is_empty(), "after kill {number}: {repairs}");
    let mut phase = Phase { site: &site, node: &node, dir: dir.path(), backend, ledger };
    let known = Known { marks: &marks };
    phase.audit(&known).with_context(|| format!("after kill {number}"))?;
    println!("\nafter kill {number}: {} acknowledgements, all there; {repairs}", marks.len());
    if number < times {
        return phase.live(&marks, number);
    }
    phase.clear()?;
    // A node keeps the directory of a class open, and with it the filesystem busy.
    drop(node);
    site.close()?;
    let foreign = format!("foreign:{}", disks.digest()?);
    ensure!(marks[0] == foreign, "the disks that are not ours had {}, and have {foreign}", marks[0]);
    let blocks = known.acknowledged()?.blocks(DB);
    println!("FIGURES: {times} kills, {} acknowledgements, {blocks} blocks, none lost", marks.len());
    Ok(())
}

impl Phase<'_> {
    /// Everything that is certain is there, and nothing that cannot be.
    fn audit(&self, known: &Known<'_>) -> Result<()> {
        let there = self.node.volumes()?;
        for volume in &there {
            let name = volume.id.as_str();
            ensure!(known.volumes().contains(&name) || known.is_changing(name), "{name} should not be there");
        }
        for name in known.volumes() {
            let found = there.iter().find(|volume| volume.id.as_str() == name);
            let size = found.with_context(|| format!("{name} is gone: {there:?}"))?.size;
            is_limited(self.site, name, size)?;
            if name == "db" {
                known.is_size(size)?;
            }
        }
        let snapshots = self.node.snapshots()?;
        let snapshots: BTreeSet<&str> = snapshots.iter().map(|cut| cut.id.as_str()).collect();
        for name in &snapshots {
            ensure!(
                known.snapshots().contains(name) || known.is_changing(name),
                "{name} should not be there"
            );
        }
        for name in known.snapshots() {
            ensure!(snapshots.contains(name), "snapshot {name} is gone: {snapshots:?}");
        }
        if known.volumes().contains(&"db") {
            let bytes = read_blocks(&self.site.shown(self.node, "db", self.dir)?, BLOCKS)?;
            known.acknowledged()?.check(DB, &bytes)?;
        }
        for name in known.snapshots().into_iter().filter(|name| known.is_ready(name)) {
            self.restored(known, name).with_context(|| format!("restore {name}"))?;
        }
        Ok(())
    }

    /// A volume of a snapshot's content has exactly what was acknowledged before it was cut.
    fn restored(&self, known: &Known<'_>, name: &str) -> Result<()> {
        let cut = self.node.snapshot(&snapshot_id(name))?;
        let copy =
            CreateVolume::new(id("copy"), SizeRange::at_least(cut.size)).source(Source::Snapshot(cut.id));
        self.node.create(&copy)?;
        let bytes = read_blocks(&self.site.shown(self.node, "copy", self.dir)?, BLOCKS);
        Site::hidden(self.node, "copy", self.dir)?;
        known.at_snapshot(name)?.check_exactly(DB, &bytes?)?;
        Ok(self.node.delete(&id("copy"))?)
    }

    fn step<T>(&mut self, name: &str, act: impl FnOnce(&Node) -> Result<T, volumes::Error>) -> Result<()> {
        self.ledger.add(&format!("begin:{name}"))?;
        act(self.node).with_context(|| name.to_owned())?;
        self.ledger.add(&format!("done:{name}"))
    }

    /// Removes what is not certain, and lives on until the machine is killed, within some seconds.
    fn live(&mut self, marks: &[String], phase: u64) -> Result<()> {
        let mut random = Random::new(Random::seed() ^ phase);
        let known = Known { marks };
        for volume in self.node.volumes()? {
            if volume.id.as_str() != "db" && !known.volumes().contains(&volume.id.as_str()) {
                self.node.delete(&volume.id)?;
            }
        }
        for cut in self.node.snapshots()? {
            self.step(&format!("remove-{}", cut.id), |node| node.delete_snapshot(&cut.id))?;
        }
        if !known.done("db") {
            self.step("db", |node| node.create(&new("db", FIRST)))?;
        }
        let mut blocks = Blocks::found_on(&self.site.shown(self.node, "db", self.dir)?, DB, BLOCKS)?;
        let pause = Duration::from_millis(500 + random.below(9500));
        thread::spawn(move || {
            thread::sleep(pause);
            println!("\nRIG: cut power");
        });
        for name in phase * NAMES.. {
            self.round(name, &mut blocks, &mut random)?;
        }
        Ok(())
    }

    fn sync(&mut self, blocks: &mut Blocks, random: &mut Random) -> Result<()> {
        for _ in 0..5 {
            let count = 1 + usize::try_from(random.below(4))?;
            self.ledger.add(&blocks.write_some(random, count)?)?;
        }
        Ok(())
    }

    fn round(&mut self, number: u64, blocks: &mut Blocks, random: &mut Random) -> Result<()> {
        let (cut, other) = (format!("s{number}"), format!("x{number}"));
        self.sync(blocks, random)?;
        if self.backend.copies() {
            self.step(&cut, |node| node.create_snapshot(&CreateSnapshot::new(snapshot_id(&cut), id("db"))))?;
            eventually("the snapshot is ready", Duration::from_secs(300), || {
                let cut = self.node.snapshot(&snapshot_id(&cut));
                cut.is_ok_and(|cut| cut.state == SnapshotState::Ready)
            });
            self.ledger.add(&format!("ready:{cut}"))?;
            self.sync(blocks, random)?;
        }
        let size = self.node.volume(&id("db"))?.size.get() / Bytes::mib(1).get() + MORE;
        self.step(&format!("size{size}"), |node| {
            node.grow(&id("db"), SizeRange::at_least(Bytes::mib(size)))
        })?;
        self.sync(blocks, random)?;
        self.step(&other, |node| node.create(&new(&other, FIRST)))?;
        self.sync(blocks, random)?;
        if self.backend.copies() {
            self.step(&format!("remove-{cut}"), |node| node.delete_snapshot(&snapshot_id(&cut)))?;
        }
        self.step(&format!("remove-{other}"), |node| node.delete(&id(&other)))
    }

    /// Removes everything.
    fn clear(&self) -> Result<()> {
        Site::hidden(self.node, "db", self.dir)?;
        for cut in self.node.snapshots()? {
            self.node.delete_snapshot(&cut.id)?;
        }
        for volume in self.node.volumes()? {
            self.node.delete(&volume.id)?;
        }
        ensure!(self.node.volumes()?.is_empty() && self.node.snapshots()?.is_empty(), "something stayed");
        Ok(())
    }
}
