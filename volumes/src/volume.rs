//! What there is: volumes, snapshots, and room for more.

use std::time::SystemTime;

use devices::Bytes;
use devices::filesystem::FsType;

use crate::{ClassName, Limits, SnapshotId, VolumeId};

/// A volume as the disk has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volume {
    /// Its id.
    pub id: VolumeId,
    /// The class it was made in.
    pub class: ClassName,
    /// Its size: what was asked for, rounded up to what its pool gives out.
    pub size: Bytes,
    /// What is on it.
    pub content: Content,
    /// The filesystem that was asked for when it was made.
    pub fs_type: Option<FsType>,
    /// What its content was copied from. The source may be gone.
    pub source: Option<Source>,
    /// Whether it is to go with the pod that uses it.
    pub lifecycle: Lifecycle,
    /// What it may read and write in a second, where it says so itself; its class says the rest.
    pub limits: Limits,
}

/// What is on a volume, as its own record on the disk says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Nothing: it may be formatted, or used as a block device.
    New,
    /// Making a filesystem was begun, and is ended by the next [stage](crate::Node::stage).
    Formatting,
    /// A filesystem, which is never made again.
    Filesystem(FsType),
    /// Whatever its user wrote to it as a block device.
    Block,
}

impl Content {
    /// The word for it, on the disks and for people: `new`, `formatting`, `block`, or the filesystem.
    #[must_use]
    pub fn as_word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Formatting => "formatting",
            Self::Filesystem(fs) => fs.as_str(),
            Self::Block => "block",
        }
    }
}

/// What a volume's content was copied from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A snapshot.
    Snapshot(SnapshotId),
    /// Another volume.
    Volume(VolumeId),
}

/// How long a volume is to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// Until it is deleted.
    #[default]
    Persistent,
    /// As long as the pod that it was made for; whoever unpublishes it deletes it.
    Ephemeral,
}

/// A snapshot as the disk has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// The volume that it was cut from, which may be gone.
    pub source: VolumeId,
    /// The class of that volume.
    pub class: ClassName,
    /// The least size of a volume that is restored from it.
    pub size: Bytes,
    /// When it was cut.
    pub created: SystemTime,
    /// Whether it can be used.
    pub state: SnapshotState,
}

/// Whether a snapshot can be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotState {
    /// Volumes can be restored from it.
    Ready,
    /// Its content is being copied: so much is done.
    Copying {
        /// What is copied.
        done: Bytes,
        /// All of it.
        total: Bytes,
    },
    /// It could not be completed, for this reason; it can only be deleted.
    Failed(String),
}

/// What volumes of a class can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Whether snapshots are cut of them, and volumes restored from those.
    pub snapshots: bool,
    /// Whether they are copied.
    pub copies: bool,
    /// Whether they are handed out as block devices.
    pub block: bool,
    /// Whether their reading and writing can be limited.
    pub limits: bool,
    /// Whether it is told which blocks a snapshot holds, and which changed between two.
    pub changed_blocks: bool,
}

impl Abilities {
    /// What one or the other can do.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            snapshots: self.snapshots || other.snapshots,
            copies: self.copies || other.copies,
            block: self.block || other.block,
            limits: self.limits || other.limits,
            changed_blocks: self.changed_blocks || other.changed_blocks,
        }
    }
}

/// Room in a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capacity {
    /// What the pool has in all.
    pub total: Bytes,
    /// What new volumes can still take together, the reserve left out.
    pub available: Bytes,
    /// The largest single volume that can be made now.
    pub largest: Bytes,
    /// The smallest volume that can be made, and what sizes are rounded up to.
    pub minimum: Bytes,
}
