//! A node of volumes on disks of one test, with directories of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::{Bytes, DeviceNumber};
use lvm::ops::Group;
use lvm::worker::conf::Activation;
use lvm::worker::host::HostSettings;
use lvm::{DevicePath, VgName};
use tempfile::TempDir;
use volumes::class::DeviceClass;
use volumes::{DeviceScope, Mode, Node, Publish, Settings, Stage, VolumeId};

use crate::workers::worker_binary;
use crate::{Disk, Handle, tool};

/// A node on fresh disks. Dropping it takes its mounts and volumes out of the kernel.
#[derive(Debug)]
pub struct NodeLab {
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Disks that are not its own.
    lent: Vec<PathBuf>,
    classes: Vec<DeviceClass>,
    dir: TempDir,
    node: Option<Node>,
    /// Handles whose directories are needed as long as their groups are.
    others: Vec<Handle>,
}

impl NodeLab {
    /// A node on so many disks. In the text of the classes, `DISK0`, `DISK1`, … stand for their paths, and `DIR` for a
    /// directory of the test.
    ///
    /// # Errors
    ///
    /// If a disk cannot be made, the classes are not valid, or one of them cannot be used.
    pub fn new(disks: usize, size: Bytes, classes: &str) -> Result<Self> {
        Self::of_sizes(&vec![size; disks], classes)
    }

    /// The same on disks of these sizes.
    ///
    /// # Errors
    ///
    /// As [`NodeLab::new`].
    pub fn of_sizes(sizes: &[Bytes], classes: &str) -> Result<Self> {
        let disks: Vec<Disk> =
            sizes.iter().map(|size| Disk::partitioned(*size, Bytes::new(512))).collect::<Result<_>>()?;
        let dir = tempfile::Builder::new().prefix("gabion-node-").tempdir()?;
        let mut text = classes.replace("DIR", &dir.path().display().to_string());
        for (at, disk) in disks.iter().enumerate() {
            text = text.replace(&format!("DISK{at}"), &disk.path().display().to_string());
        }
        let classes = DeviceClass::parse_all(&text)?;
        let mut lab = Self { disks, lent: Vec::new(), classes, dir, node: None, others: Vec::new() };
        lab.open()?;
        Ok(lab)
    }

    /// The same on disks that stay when it goes.
    ///
    /// # Errors
    ///
    /// If the classes are not valid, or one of them cannot be used.
    pub fn on(disks: Vec<PathBuf>, classes: &str) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-node-").tempdir()?;
        let classes = DeviceClass::parse_all(classes)?;
        let mut lab = Self { disks: Vec::new(), lent: disks, classes, dir, node: None, others: Vec::new() };
        lab.open()?;
        Ok(lab)
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.disks.iter().map(|disk| disk.path().to_owned()).chain(self.lent.iter().cloned()).collect()
    }

    /// The node.
    ///
    /// # Panics
    ///
    /// While it is closed.
    #[must_use]
    pub fn node(&self) -> &Node {
        self.node.as_ref().unwrap_or_else(|| panic!("the node is closed"))
    }

    /// What the node is opened with.
    ///
    /// # Errors
    ///
    /// If there is no worker's binary.
    pub fn settings(&self) -> Result<Settings> {
        settings_on(self.dir.path(), self.paths(), self.classes.clone())
    }

    /// Opens the node again, as after its process ended: all its knowledge comes from the disks.
    ///
    /// # Errors
    ///
    /// If a class cannot be used.
    pub fn open(&mut self) -> Result<()> {
        self.node = None;
        let (node, repairs) = Node::open(self.settings()?)?;
        println!("{repairs}");
        ensure!(repairs.problems.is_empty(), "a class cannot be used: {repairs}");
        self.node = Some(node);
        Ok(())
    }

    /// Ends the node and takes its volumes out of the kernel, as a restart of the machine does, and opens it again.
    ///
    /// # Errors
    ///
    /// If something of it is in use.
    pub fn restart(&mut self) -> Result<()> {
        self.shut_down()?;
        self.open()
    }

    fn handle(&self) -> Result<Handle> {
        let devices: Vec<DevicePath> =
            self.paths().into_iter().map(|path| Ok(DevicePath::new(path)?)).collect::<Result<_>>()?;
        Handle::on(devices, Activation::Udev, |builder| builder)
    }

    /// A volume group on the disks of the node, to change it behind the node's back.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn group(&mut self, name: &str) -> Result<Group> {
        let handle = self.handle()?;
        let group = handle.lvm.group(&VgName::new(name)?)?;
        self.others.push(handle);
        Ok(group)
    }

    fn shut_down(&mut self) -> Result<()> {
        self.node = None;
        self.others.clear();
        let handle = self.handle()?;
        for group in handle.lvm.groups()? {
            group.deactivate()?;
        }
        Ok(())
    }

    /// A path in the test's directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn staging(&self, id: &VolumeId) -> PathBuf {
        self.path("staging").join(id.as_str())
    }

    /// Where a volume is published.
    #[must_use]
    pub fn target(&self, id: &VolumeId) -> PathBuf {
        self.path("pods").join(id.as_str())
    }

    /// Stages and publishes a volume, each twice, since both may be repeated.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn publish(&self, id: &VolumeId, mode: Mode) -> Result<PathBuf> {
        for _ in 0..2 {
            self.node().stage(&Stage::new(id.clone(), self.staging(id), mode))?;
        }
        let target = self.target(id);
        for _ in 0..2 {
            self.node().publish(&Publish::new(id.clone(), self.staging(id), &target, mode))?;
        }
        Ok(target)
    }

    /// Unpublishes and unstages a volume, each twice.
    ///
    /// # Errors
    ///
    /// If that fails, or leaves something behind.
    pub fn unpublish(&self, id: &VolumeId) -> Result<()> {
        for _ in 0..2 {
            self.node().unpublish(id, &self.target(id))?;
        }
        for _ in 0..2 {
            self.node().unstage(id, &self.staging(id))?;
        }
        ensure!(!self.target(id).exists(), "unpublishing {id} left its directory");
        // The place for staging is its maker's, and stays; a filesystem of ours would show its lost+found.
        let staging = self.staging(id);
        let left = if staging.is_dir() { fs::read_dir(&staging)?.count() } else { 0 };
        ensure!(left == 0, "unstaging {id} left something at {}", staging.display());
        Ok(())
    }
}

impl Drop for NodeLab {
    fn drop(&mut self) {
        if let Some(node) = &self.node {
            for volume in node.volumes().unwrap_or_default() {
                let _ = node.unpublish(&volume.id, &self.target(&volume.id));
                let _ = node.unstage(&volume.id, &self.staging(&volume.id));
            }
        }
        if let Err(error) = self.shut_down() {
            eprintln!("shut down: {error:#}");
        }
    }
}

/// What a node of a test is opened with: these devices, and directories below that one.
///
/// # Errors
///
/// If there is no worker's binary.
pub fn settings_on(dir: &Path, devices: Vec<PathBuf>, classes: Vec<DeviceClass>) -> Result<Settings> {
    let mut settings = Settings::new("the-lab".parse()?, classes)
        .scope(DeviceScope::Only(devices))
        .below(dir)
        .worker(worker_binary()?);
    settings.minimum_disk = Bytes::mib(64);
    let locking_dir = dir.join("lvm-lock");
    fs::create_dir_all(&locking_dir)?;
    settings.lvm_host = Some(HostSettings { locking_dir, ..HostSettings::default() });
    Ok(settings)
}

/// Content that follows from its name, and is never the same for two names.
#[must_use]
pub fn content(name: &str, bytes: usize) -> Vec<u8> {
    let seed = name.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |seed, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut state = seed | 1;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

/// Writes such a content to a file, and through to the disk.
///
/// # Errors
///
/// If that fails.
pub fn write(file: &Path, name: &str, bytes: usize) -> Result<()> {
    let mut options = fs::File::options();
    let there = options.create(true).truncate(false).write(true).open(file)?;
    std::os::unix::fs::FileExt::write_all_at(&there, &content(name, bytes), 0)?;
    there.sync_all()?;
    Ok(())
}

/// Fails unless a file or device begins with exactly that content, as read from the disk.
///
/// # Errors
///
/// If it differs or cannot be read.
pub fn check(file: &Path, name: &str, bytes: usize) -> Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3")?;
    let mut found = vec![0; bytes];
    let there = fs::File::open(file).with_context(|| format!("open {}", file.display()))?;
    std::os::unix::fs::FileExt::read_exact_at(&there, &mut found, 0)?;
    ensure!(found == content(name, bytes), "{} does not hold what {name:?} means", file.display());
    Ok(())
}

/// The uuid of the filesystem on a device, as `blkid` has it.
///
/// # Errors
///
/// If it has none.
pub fn filesystem_uuid(device: DeviceNumber) -> Result<String> {
    let path = format!("/dev/block/{device}");
    Ok(tool::run("blkid", ["--probe", "--match-tag", "UUID", "--output", "value", &path])?.trim().to_owned())
}
