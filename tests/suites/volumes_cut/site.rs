//! The disks of a life, or copies of them, as a node finds them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::filesystem::FsType;
use devices::loopdev::{Attach, LoopDevice};
use lvm::DevicePath;
use lvm::worker::conf::Activation;
use rig::life::id;
use rig::node::settings_on;
use rig::power_cut::BLOCK;
use rig::projects::Place;
use rig::{Handle, tool};
use volumes::class::DeviceClass;
use volumes::{Mode, Node, Publish, Settings, Stage};

use super::record::BLOCKS;

/// Each disk; XFS makes none that is smaller.
pub(crate) const SLICE: Bytes = Bytes::mib(320);
/// What LVM has at the beginning of a PV, at least: the metadata areas of a class's group.
pub(crate) const METADATA: Bytes = Bytes::mib(16);
/// Our disks among the slices. Directories lie in a filesystem on the first one.
pub(crate) const OURS: [usize; 2] = [0, 1];
/// The file with a directory volume's blocks.
const FILE: &str = "blocks";

/// What volumes are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Partition,
    Thick,
    Thin,
    Directory(FsType),
}

impl Backend {
    /// Whether its volumes have snapshots. It lies in a volume group then.
    pub(crate) const fn copies(self) -> bool {
        matches!(self, Self::Thick | Self::Thin)
    }

    /// The class on disks of these paths, or in a filesystem that is mounted here.
    fn class(self, disks: &[PathBuf], root: &Path) -> Result<Vec<DeviceClass>> {
        let on_disks = |pool: &str| {
            let paths: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
            format!("devices: {{paths: [{}]}}, pool: {pool}", paths.join(", "))
        };
        let spec = match self {
            Self::Partition => on_disks("{partition: {}}"),
            Self::Thick => on_disks("{lvm: {}}"),
            Self::Thin => on_disks("{thin: {sizePercent: 80}}"),
            Self::Directory(_) => format!("pool: {{directory: {{path: {}}}}}", root.display()),
        };
        Ok(DeviceClass::parse_all(&format!(
            "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, spec: {{default: true, {spec}}}}}"
        ))?)
    }
}

/// Disks that may have partitions, over files or slices, and the filesystem of directories mounted.
pub(crate) struct Site {
    backend: Backend,
    // Goes before the disk that it is on.
    place: Option<Place>,
    loops: Vec<LoopDevice>,
    disks: Vec<PathBuf>,
}

impl Site {
    pub(crate) fn open(backend: Backend, paths: &[PathBuf]) -> Result<Self> {
        let loops: Vec<LoopDevice> = paths
            .iter()
            .map(|path| Ok(Attach::new().direct_io().scan_partitions().file(path)?))
            .collect::<Result<_>>()?;
        let disks: Vec<PathBuf> = loops.iter().map(|device| device.path().to_owned()).collect();
        let mut site = Self { backend, place: None, loops, disks };
        if let Backend::Directory(fs) = backend {
            let place = Place::on(&site.disks[OURS[0]], fs, &["prjquota"])?;
            fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
            site.place = Some(place);
        }
        Ok(site)
    }

    /// A node that sees all of the disks, also those that are not ours.
    pub(crate) fn settings(&self, dir: &Path) -> Result<Settings> {
        let ours: Vec<PathBuf> = OURS.iter().map(|slice| self.disks[*slice].clone()).collect();
        settings_on(dir, self.disks.clone(), self.backend.class(&ours, &self.root())?)
    }

    /// Where the directories are.
    pub(crate) fn root(&self) -> PathBuf {
        self.place.as_ref().map(Place::root).unwrap_or_default()
    }

    /// Takes everything out of the kernel again.
    pub(crate) fn close(mut self) -> Result<()> {
        if let Some(place) = self.place.take() {
            place.unmount()?;
            checked(self.backend, &self.disks[OURS[0]])?;
        }
        let devices: Vec<DevicePath> = self.disks.iter().map(DevicePath::new).collect::<Result<_, _>>()?;
        let handle = Handle::on(devices, Activation::Udev, |builder| builder)?;
        for group in handle.lvm.groups()? {
            group.deactivate()?;
        }
        drop(handle);
        for device in self.loops {
            device.detach()?;
        }
        Ok(())
    }

    /// Shows a volume, and tells where its blocks are.
    pub(crate) fn shown(&self, node: &Node, volume: &str, dir: &Path) -> Result<PathBuf> {
        let (staging, target) = places(volume, dir);
        let mode = match self.backend {
            Backend::Directory(_) => Mode::Filesystem,
            _ => Mode::Block,
        };
        node.stage(&Stage::new(id(volume), &staging, mode))?;
        node.publish(&Publish::new(id(volume), &staging, &target, mode))?;
        if mode == Mode::Block {
            return Ok(target);
        }
        let path = target.join(FILE);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        file.set_len((BLOCKS * BLOCK) as u64)?;
        file.sync_all()?;
        File::open(&target)?.sync_all()?;
        Ok(path)
    }

    /// Takes it away again.
    pub(crate) fn hidden(node: &Node, volume: &str, dir: &Path) -> Result<()> {
        let (staging, target) = places(volume, dir);
        node.unpublish(&id(volume), &target)?;
        Ok(node.unstage(&id(volume), &staging)?)
    }
}

fn places(volume: &str, dir: &Path) -> (PathBuf, PathBuf) {
    (dir.join(format!("staging-{volume}")), dir.join(format!("target-{volume}")))
}

/// Where a directory volume's blocks are below the top of its filesystem.
pub(crate) fn blocks_below(root: &Path, volume: &str) -> PathBuf {
    root.join(volume).join(FILE)
}

/// Asks the filesystem's own tool.
fn checked(backend: Backend, disk: &Path) -> Result<()> {
    let (program, options): (_, &[&str]) = match backend {
        Backend::Directory(FsType::Ext4) => ("e2fsck", &["-f", "-n"]),
        Backend::Directory(FsType::Xfs) => ("xfs_repair", &["-n"]),
        _ => return Ok(()),
    };
    ensure!(disk.exists(), "{} is gone", disk.display());
    let disk = disk.display().to_string();
    let arguments = options.iter().copied().chain([disk.as_str()]);
    tool::run(program, arguments).map(drop).context("the filesystem is damaged")
}
