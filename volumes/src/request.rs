//! What callers ask for.

use std::path::PathBuf;

use devices::filesystem::FsType;
use devices::mount::Access;
use lvm::ops::SizeRange;

use crate::{ClassName, Lifecycle, Limits, SnapshotId, Source, VolumeId};

/// A volume to be made.
///
/// ```
/// use devices::Bytes;
/// use volumes::{CreateVolume, FsType, SizeRange};
///
/// let new = CreateVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(10)).up_to(Bytes::gib(20)))
///     .class("fast".parse()?)
///     .fs_type(FsType::Xfs);
/// # Ok::<(), volumes::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateVolume {
    /// The id it gets.
    pub id: VolumeId,
    /// The class; the default class where there is none.
    pub class: Option<ClassName>,
    /// How large it must be at least, and may be at most.
    pub size: SizeRange,
    /// What its content is copied from; it is blank where there is none.
    pub source: Option<Source>,
    /// The filesystem that is made on it when it is first staged; the class's where there is none.
    pub fs_type: Option<FsType>,
    /// How long it is to live.
    pub lifecycle: Lifecycle,
    /// What it may read and write in a second; its class says what is not said here.
    pub limits: Limits,
}

impl CreateVolume {
    /// A blank volume in the default class.
    #[must_use]
    pub const fn new(id: VolumeId, size: SizeRange) -> Self {
        Self {
            id,
            class: None,
            size,
            source: None,
            fs_type: None,
            lifecycle: Lifecycle::Persistent,
            limits: Limits::NONE,
        }
    }

    /// In this class.
    #[must_use]
    pub fn class(mut self, class: ClassName) -> Self {
        self.class = Some(class);
        self
    }

    /// With the content of that. The size must not be below that of the source.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }

    /// With this filesystem.
    #[must_use]
    pub fn fs_type(mut self, fs_type: FsType) -> Self {
        self.fs_type = Some(fs_type);
        self
    }

    /// With these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With this life.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }
}

/// A snapshot to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateSnapshot {
    /// The id it gets.
    pub id: SnapshotId,
    /// The volume it is cut from.
    pub source: VolumeId,
}

impl CreateSnapshot {
    /// A snapshot of that volume.
    #[must_use]
    pub const fn new(id: SnapshotId, source: VolumeId) -> Self {
        Self { id, source }
    }
}

/// How a volume is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As a directory with a filesystem.
    Filesystem,
    /// As a block device.
    Block,
}

/// A volume to be made ready on this node: once, however many users it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// The volume.
    pub id: VolumeId,
    /// Where its filesystem is mounted; nothing is put there for [`Mode::Block`].
    pub path: PathBuf,
    /// How it is handed out.
    pub mode: Mode,
    /// The filesystem expected; whatever was asked for when it was made where there is none.
    pub fs_type: Option<FsType>,
    /// Mount options, after the class's own.
    pub mount_options: Vec<String>,
    /// Whether it may be written.
    pub access: Access,
}

impl Stage {
    /// For reading and writing, with the class's options.
    pub fn new(id: VolumeId, path: impl Into<PathBuf>, mode: Mode) -> Self {
        Self {
            id,
            path: path.into(),
            mode,
            fs_type: None,
            mount_options: Vec::new(),
            access: Access::ReadWrite,
        }
    }

    /// With this filesystem.
    #[must_use]
    pub fn fs_type(mut self, fs_type: FsType) -> Self {
        self.fs_type = Some(fs_type);
        self
    }

    /// With these mount options.
    #[must_use]
    pub fn mount_options(mut self, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.mount_options = options.into_iter().map(Into::into).collect();
        self
    }

    /// With this access.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }
}

/// A staged volume to be shown to one user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Publish {
    /// The volume.
    pub id: VolumeId,
    /// Where it was staged.
    pub staging: PathBuf,
    /// Where it is shown: a directory, or for [`Mode::Block`] a file, which is made.
    pub target: PathBuf,
    /// How it is handed out.
    pub mode: Mode,
    /// Whether it may be written there. A block device that is shown for reading alone is kept from writes by whoever
    /// runs the user (the device cgroup of a container): the kernel has no read-only name of a device.
    pub access: Access,
    /// Whether others may see it on this host at the same time.
    pub sharing: Sharing,
}

/// Whether a volume may be seen at several places of a host at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// At any number of them.
    #[default]
    Shared,
    /// At this one alone.
    Alone,
}

impl Publish {
    /// For reading and writing.
    pub fn new(id: VolumeId, staging: impl Into<PathBuf>, target: impl Into<PathBuf>, mode: Mode) -> Self {
        Self {
            id,
            staging: staging.into(),
            target: target.into(),
            mode,
            access: Access::ReadWrite,
            sharing: Sharing::Shared,
        }
    }

    /// Shared with others, or not.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    /// With this access.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }
}
