//! The life that is recorded: volumes of one class on recorded disks, beside disks that are not ours.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{NewGroup, NewVolume, SizeRange};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, LvName, VgName};
use rig::life::{id, new, snapshot_id};
use rig::node::content;
use rig::power_cut::{Blocks, Random, Recorder, Recording};
use rig::projects::format;
use rig::{Handle, eventually};
use volumes::{CreateSnapshot, Node, SnapshotState};

use super::site::{Backend, OURS, SLICE, Site};

/// A disk that somebody else writes to, and the disk of somebody else's volume group.
pub(crate) const FOREIGN: [usize; 2] = [2, 3];
/// The area of the volume's blocks, and how many there are.
pub(crate) const DB: u64 = 0;
pub(crate) const BLOCKS: usize = 32;
/// The first size of the volume, and what it grows by, in MiB.
pub(crate) const FIRST: u64 = 16;
pub(crate) const MORE: u64 = 4;

/// How long a life is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) rounds: usize,
    /// Syncs between two acts.
    pub(crate) syncs: usize,
}

/// Makes somebody else's disk, and somebody else's volume group.
pub(crate) fn foreign(disk: &Path, group: &Path) -> Result<()> {
    let disk = File::options().write(true).open(disk)?;
    disk.write_all_at(&content("foreign", 1 << 20), 0)?;
    disk.sync_all()?;
    let path = DevicePath::new(group)?;
    let handle = Handle::on([path.clone()], Activation::Udev, |builder| builder)?;
    let group = handle.lvm.create_group(&NewGroup::new(VgName::new("other")?, [path]))?.into_inner();
    let lv = NewVolume::new(LvName::new("theirs")?, SizeRange::at_least(Bytes::mib(4)));
    let _ = group.create_volume(&lv)?;
    Ok(group.deactivate()?)
}

/// Records a life from the making of the pools on.
pub(crate) fn record(backend: Backend, life: Life, seed: u64) -> Result<Recording> {
    let recorder = Recorder::new(&[SLICE, SLICE, Bytes::mib(16), Bytes::mib(64)])?;
    foreign(recorder.slice(FOREIGN[0]), recorder.slice(FOREIGN[1]))?;
    if let Backend::Directory(fs) = backend {
        format(recorder.slice(OURS[0]), fs)?;
    }
    recorder.flush()?;
    let dir = tempfile::tempdir()?;
    let slices: Vec<PathBuf> = (0..4).map(|slice| recorder.slice(slice).to_owned()).collect();
    let site = Site::open(backend, &slices)?;
    let lived = lived(&recorder, &site, dir.path(), backend, life, seed);
    let closed = site.close();
    lived?;
    closed?;
    recorder.finish()
}

fn lived(
    recorder: &Recorder,
    site: &Site,
    dir: &Path,
    backend: Backend,
    life: Life,
    seed: u64,
) -> Result<()> {
    recorder.mark("begin:pools")?;
    let (node, repairs) = Node::open(site.settings(dir)?)?;
    ensure!(repairs.problems.is_empty(), "{repairs}");
    recorder.mark("done:pools")?;
    let lived = Recorded { recorder, site, node: &node, dir }.live(backend, life, seed);
    Site::hidden(&node, "db", dir)?;
    lived
}

struct Recorded<'a> {
    recorder: &'a Recorder,
    site: &'a Site,
    node: &'a Node,
    dir: &'a Path,
}

impl Recorded<'_> {
    fn step<T>(&self, name: &str, act: impl FnOnce() -> Result<T, volumes::Error>) -> Result<T> {
        self.recorder.mark(&format!("begin:{name}"))?;
        let made = act().with_context(|| name.to_owned())?;
        self.recorder.mark(&format!("done:{name}"))?;
        Ok(made)
    }

    fn live(&self, backend: Backend, life: Life, seed: u64) -> Result<()> {
        let (node, mut random) = (self.node, Random::new(seed));
        self.step("db", || node.create(&new("db", FIRST)))?;
        let mut blocks = Blocks::on(&self.site.shown(node, "db", self.dir)?, DB, BLOCKS)?;
        let mut write = || -> Result<()> {
            for _ in 0..life.syncs {
                let count = 1 + usize::try_from(random.below(4))?;
                self.recorder.mark(&blocks.write_some(&mut random, count)?)?;
            }
            Ok(())
        };
        write()?;
        for round in 0..life.rounds {
            let cut = format!("s{round}");
            if backend.copies() {
                self.step(&cut, || node.create_snapshot(&CreateSnapshot::new(snapshot_id(&cut), id("db"))))?;
                eventually("the snapshot is ready", Duration::from_secs(300), || {
                    node.snapshot(&snapshot_id(&cut)).is_ok_and(|cut| cut.state == SnapshotState::Ready)
                });
                self.recorder.mark(&format!("ready:{cut}"))?;
                write()?;
            }
            let size = FIRST + MORE * (round as u64 + 1);
            let to = SizeRange::at_least(Bytes::mib(size));
            // A partition grows only where nothing follows it.
            self.step(&format!("size{size}"), || node.grow(&id("db"), to))?;
            write()?;
            if backend.copies() {
                self.step(&format!("remove-{cut}"), || node.delete_snapshot(&snapshot_id(&cut)))?;
            }
            let other = format!("x{round}");
            self.step(&other, || node.create(&new(&other, FIRST)))?;
            write()?;
            self.step(&format!("remove-{other}"), || node.delete(&id(&other)))?;
            write()?;
        }
        Ok(())
    }
}
