//! What a node is opened with.

use std::path::PathBuf;

use devices::Bytes;
use lvm::VgName;
use lvm::worker::conf::Activation;
use lvm::worker::host::HostSettings;

use crate::Owner;
use crate::class::{DeviceClass, NodeLabels};

/// Which devices of the host a node may look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceScope {
    /// All of them.
    #[default]
    Host,
    /// These and nothing else: for tests, and for nodes that share a machine.
    Only(Vec<PathBuf>),
}

/// What a node is opened with.
///
/// ```
/// use volumes::{DeviceScope, Settings};
///
/// let settings = Settings::new("my-host".parse()?, Vec::new()).scope(DeviceScope::Only(vec!["/dev/sdb".into()]));
/// # Ok::<(), volumes::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whose volumes these are.
    pub owner: Owner,
    /// The classes of this node.
    pub classes: Vec<DeviceClass>,
    /// What this node is called and what is said of it, by which classes select their nodes.
    pub labels: NodeLabels,
    /// Which devices are looked at.
    pub scope: DeviceScope,
    /// Volume groups without our tag that may be taken over.
    pub adopt: Vec<VgName>,
    /// Where configurations of workers lie, best on a tmpfs.
    pub run_dir: PathBuf,
    /// Where the locks of volumes lie; all programs that change these volumes share it.
    pub lock_dir: PathBuf,
    /// Where records of wipes, backups of metadata and the like lie.
    pub state_dir: PathBuf,
    /// The directory below which volumes are mounted. It may be, or lead through, symbolic links; what comes below may not.
    pub mount_base: PathBuf,
    /// Disks below this size are not used.
    pub minimum_disk: Bytes,
    /// The worker's binary; it is looked for where there is none.
    pub worker: Option<PathBuf>,
    /// How LVM makes devices.
    pub activation: Activation,
    /// The cgroup that all users of volumes are below, in which limits are held; that of all pods, where it is not named.
    pub pods_cgroup: Option<PathBuf>,
    /// What LVM shares with other programs of the host; read from its own configuration where there is none.
    pub lvm_host: Option<HostSettings>,
}

impl Settings {
    /// The usual directories, and all devices of the host.
    #[must_use]
    pub fn new(owner: Owner, classes: Vec<DeviceClass>) -> Self {
        Self {
            owner,
            classes,
            labels: NodeLabels::default(),
            scope: DeviceScope::Host,
            adopt: Vec::new(),
            run_dir: "/run/gabion".into(),
            lock_dir: "/run/lock/gabion".into(),
            state_dir: "/var/lib/gabion".into(),
            mount_base: "/".into(),
            minimum_disk: Bytes::gib(1),
            worker: None,
            activation: Activation::Udev,
            pods_cgroup: None,
            lvm_host: None,
        }
    }

    /// Whether there is a class of that name.
    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.classes.iter().any(|class| class.name.as_str() == name)
    }

    /// On this node.
    #[must_use]
    pub fn labels(mut self, labels: NodeLabels) -> Self {
        self.labels = labels;
        self
    }

    /// With these devices.
    #[must_use]
    pub fn scope(mut self, scope: DeviceScope) -> Self {
        self.scope = scope;
        self
    }

    /// With run, lock and state directories below this one, for a node that shares nothing with others.
    #[must_use]
    pub fn below(mut self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        self.run_dir = directory.join("run");
        self.lock_dir = directory.join("lock");
        self.state_dir = directory.join("state");
        self
    }

    /// With this worker.
    #[must_use]
    pub fn worker(mut self, worker: impl Into<PathBuf>) -> Self {
        self.worker = Some(worker.into());
        self
    }

    /// With mounts below this directory.
    #[must_use]
    pub fn mount_base(mut self, base: impl Into<PathBuf>) -> Self {
        self.mount_base = base.into();
        self
    }
}
