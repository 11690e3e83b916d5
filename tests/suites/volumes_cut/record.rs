//! The life that is recorded: volumes of one class on recorded disks, beside disks that are not ours.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::loopdev::{Attach, LoopDevice};
use lvm::ops::{NewGroup, NewVolume, SizeRange};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, LvName, VgName};
use rig::life::{id, new, snapshot_id};
use rig::node::{content, settings_on};
use rig::power_cut::{Blocks, Random, Recorder, Recording};
use rig::{Handle, eventually};
use volumes::class::DeviceClass;
use volumes::{CreateSnapshot, Mode, Node, Publish, SnapshotState, Stage};

/// Each disk.
pub(crate) const SLICE: Bytes = Bytes::mib(256);
/// What LVM has at the beginning of a PV, at least: the metadata areas of a class's group.
pub(crate) const METADATA: Bytes = Bytes::mib(16);
/// Our disks among the slices.
pub(crate) const OURS: [usize; 2] = [0, 1];
/// A disk that somebody else writes to, and the disk of somebody else's volume group.
pub(crate) const FOREIGN: [usize; 2] = [2, 3];
/// The area of the volume's blocks, and how many there are.
pub(crate) const DB: u64 = 0;
pub(crate) const BLOCKS: usize = 64;
/// The first size of the volume, and what it grows by, in MiB.
pub(crate) const FIRST: u64 = 16;
pub(crate) const MORE: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Partition,
    Thick,
    Thin,
}

impl Backend {
    pub(crate) const fn copies(self) -> bool {
        !matches!(self, Self::Partition)
    }

    /// Whether it lies in a volume group.
    pub(crate) const fn is_group(self) -> bool {
        matches!(self, Self::Thick | Self::Thin)
    }

    /// The class on disks of these paths.
    pub(crate) fn class(self, disks: &[PathBuf]) -> Result<Vec<DeviceClass>> {
        let pool = match self {
            Self::Partition => "{partition: {}}",
            Self::Thick => "{lvm: {}}",
            Self::Thin => "{thin: {sizePercent: 80}}",
        };
        let paths: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
        Ok(DeviceClass::parse_all(&format!(
            "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, spec: {{default: true, \
             devices: {{paths: [{}]}}, pool: {pool}}}}}",
            paths.join(", ")
        ))?)
    }
}

/// How long a life is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) rounds: usize,
    /// Syncs between two acts.
    pub(crate) syncs: usize,
}

/// Disks over files or slices, with partitions.
pub(crate) fn attach(paths: &[PathBuf]) -> Result<(Vec<LoopDevice>, Vec<PathBuf>)> {
    let loops: Vec<LoopDevice> = paths
        .iter()
        .map(|path| Ok(Attach::new().direct_io().scan_partitions().file(path)?))
        .collect::<Result<_>>()?;
    let nodes = loops.iter().map(|device| device.path().to_owned()).collect();
    Ok((loops, nodes))
}

/// Takes the volume groups on these disks out of the kernel.
pub(crate) fn deactivate(disks: &[PathBuf]) -> Result<()> {
    let devices: Vec<DevicePath> = disks.iter().map(DevicePath::new).collect::<Result<_, _>>()?;
    let handle = Handle::on(devices, Activation::Udev, |builder| builder)?;
    for group in handle.lvm.groups()? {
        group.deactivate()?;
    }
    Ok(())
}

/// Somebody else's disk, and somebody else's volume group.
fn foreign(recorder: &Recorder) -> Result<()> {
    let disk = File::options().write(true).open(recorder.slice(FOREIGN[0]))?;
    disk.write_all_at(&content("foreign", 1 << 20), 0)?;
    disk.sync_all()?;
    let path = DevicePath::new(recorder.slice(FOREIGN[1]))?;
    let handle = Handle::on([path.clone()], Activation::Udev, |builder| builder)?;
    let group = handle.lvm.create_group(&NewGroup::new(VgName::new("other")?, [path]))?.into_inner();
    let lv = NewVolume::new(LvName::new("theirs")?, SizeRange::at_least(Bytes::mib(4)));
    let _ = group.create_volume(&lv)?;
    group.deactivate()?;
    recorder.flush()
}

/// Records a life from the making of the pools on.
pub(crate) fn record(backend: Backend, life: Life, seed: u64) -> Result<Recording> {
    let recorder = Recorder::new(&[SLICE, SLICE, Bytes::mib(16), Bytes::mib(64)])?;
    foreign(&recorder)?;
    let dir = tempfile::tempdir()?;
    let slices: Vec<PathBuf> = (0..4).map(|slice| recorder.slice(slice).to_owned()).collect();
    let (loops, disks) = attach(&slices)?;
    let lived = lived(&recorder, dir.path(), backend, &disks, life, seed);
    deactivate(&disks)?;
    lived?;
    for device in loops {
        device.detach()?;
    }
    recorder.finish()
}

fn lived(
    recorder: &Recorder,
    dir: &Path,
    backend: Backend,
    disks: &[PathBuf],
    life: Life,
    seed: u64,
) -> Result<()> {
    recorder.mark("begin:pools")?;
    let ours: Vec<PathBuf> = OURS.iter().map(|slice| disks[*slice].clone()).collect();
    // The node sees the disks that are not ours, too.
    let (node, repairs) = Node::open(settings_on(dir, disks.to_vec(), backend.class(&ours)?)?)?;
    ensure!(repairs.problems.is_empty(), "{repairs}");
    recorder.mark("done:pools")?;
    let recorded = Recorded { recorder, node: &node, dir };
    let lived = recorded.live(backend, life, seed);
    node.unpublish(&id("db"), &dir.join("target"))?;
    node.unstage(&id("db"), &dir.join("staging"))?;
    lived
}

struct Recorded<'a> {
    recorder: &'a Recorder,
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

    /// Shows the volume as a block device.
    fn device(&self) -> Result<PathBuf> {
        let (staging, target) = (self.dir.join("staging"), self.dir.join("target"));
        self.node.stage(&Stage::new(id("db"), &staging, Mode::Block))?;
        self.node.publish(&Publish::new(id("db"), &staging, &target, Mode::Block))?;
        Ok(target)
    }

    fn live(&self, backend: Backend, life: Life, seed: u64) -> Result<()> {
        let (node, mut random) = (self.node, Random::new(seed));
        self.step("db", || node.create(&new("db", FIRST)))?;
        let mut blocks = Blocks::on(&self.device()?, DB, BLOCKS)?;
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
                eventually("the snapshot is ready", Duration::from_secs(120), || {
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
