//! What makes volumes: one file a kind, behind one trait. Nothing outside asks which kind a volume is.

pub(crate) mod directory;
pub(crate) mod duplicate;
pub(crate) mod lv;
mod lv_backend;
mod lv_health;
mod lv_raid;
pub(crate) mod partition;
pub(crate) mod tags;
mod thick;
mod thick_copy;
mod thin;
mod thin_blocks;

use std::fmt;
use std::fs::File;
use std::path::PathBuf;

use devices::filesystem::FsType;
use devices::mount::{Mount, RootState};
use devices::{Bytes, DeviceNumber};
use lvm::ops::SizeRange;

pub(crate) use thick::Thick;
pub(crate) use thin::Thin;

use crate::changed::BlockSource;
use crate::class::DeviceClass;
use crate::health::HealthIssue;
use crate::keeper::Growing;
use crate::lock::Lock;
use crate::mounts::VolumeUsage;
use crate::{
    Capacity, Content, Error, Kind, Lifecycle, Limits, Snapshot, SnapshotId, Source, Volume, VolumeId,
};

/// A blank volume to be made, or one with the content of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewVolume<'a> {
    pub(crate) id: &'a VolumeId,
    pub(crate) size: SizeRange,
    pub(crate) fs_type: Option<FsType>,
    pub(crate) source: Option<&'a Source>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) limits: Limits,
}

/// What is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The node of a block device.
    Device(PathBuf),
    /// A directory in a filesystem that is there.
    Directory(DirectoryPlace),
}

/// A directory, as mounts of it are seen in the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryPlace {
    pub(crate) path: PathBuf,
    /// The number of its filesystem.
    pub(crate) device: DeviceNumber,
    /// Its path in that filesystem.
    pub(crate) inside: PathBuf,
}

impl DirectoryPlace {
    /// Of a directory in it.
    pub(crate) fn of(&self, name: &str) -> Self {
        Self { path: self.path.join(name), device: self.device, inside: self.inside.join(name) }
    }

    /// Whether a mount shows exactly this directory.
    pub(crate) fn is_shown_by(&self, mount: &Mount) -> bool {
        mount.device == self.device && mount.root == self.inside && mount.root_state == RootState::Present
    }

    /// Whether a mount shows something of this directory, or lies in it.
    pub(crate) fn is_used_by(&self, mount: &Mount) -> bool {
        (mount.device == self.device && mount.root.starts_with(&self.inside))
            || mount.mount_point.starts_with(&self.path)
    }
}

/// A volume that can be used, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) medium: Medium,
    /// Keeps the device from being taken away and made again under another number: as long as a partition is open,
    /// udev cannot have the kernel read its disk's table anew, which it tries after every change of the table. Of a
    /// directory it is the one that was looked at.
    pub(crate) held: Option<File>,
}

impl From<Medium> for Ready {
    fn from(medium: Medium) -> Self {
        Self { medium, held: None }
    }
}

/// What a content is copied from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin<'a> {
    Volume(&'a Volume),
    Snapshot(&'a Snapshot),
}

/// The pool of one class on this node.
///
/// The caller holds the lock of every volume and snapshot that a call names. What a call was killed in the middle of is
/// finished or undone by the same call, or by [`Backend::repair`].
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// Its class.
    fn class(&self) -> &DeviceClass;

    /// Every volume that is complete.
    fn volumes(&self) -> Result<Vec<Volume>, Error>;

    /// One volume.
    fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        Ok(self.volumes()?.into_iter().find(|volume| volume.id == *id))
    }

    /// Makes a blank volume that is not there yet.
    fn create(&self, new: &NewVolume<'_>, tried: &str) -> Result<Volume, Error>;

    /// Makes a volume with the content of another one, in the same pool. The origin is held, and let go as soon as it can be
    /// used by others.
    fn copy(
        &self,
        new: &NewVolume<'_>,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<Volume, Error> {
        let _ = (new, origin, held);
        Err(self.cannot(tried, "copy volumes"))
    }

    /// Removes a volume that nobody uses, and its content as the class says.
    fn delete(&self, volume: &Volume, tried: &str) -> Result<(), Error>;

    /// Removes what was begun under this id and never completed.
    fn delete_unfinished(&self, id: &VolumeId, tried: &str) -> Result<(), Error>;

    /// Makes a volume larger.
    fn grow(&self, volume: &Volume, size: SizeRange, tried: &str) -> Result<Volume, Error>;

    /// Makes a volume usable on this node.
    fn ready(&self, volume: &Volume, tried: &str) -> Result<Ready, Error>;

    /// Where the volume is when it is [ready](Backend::ready).
    fn medium(&self, volume: &Volume) -> Result<Medium, Error>;

    /// Records what is on a volume. On the disk when this returns.
    fn set_content(&self, volume: &Volume, content: Content, tried: &str) -> Result<(), Error>;

    /// The number of the device that is the volume's own, now; `None` where it has none, or is not active.
    fn number(&self, volume: &Volume) -> Result<Option<DeviceNumber>, Error> {
        let _ = volume;
        Ok(None)
    }

    /// Records what a volume may read and write. On the disk when this returns.
    fn set_limits(&self, volume: &Volume, limits: Limits, tried: &str) -> Result<(), Error> {
        let _ = (volume, limits);
        Err(self.cannot(tried, "limit reading and writing"))
    }

    /// How full a volume is that has no filesystem of its own.
    fn usage(&self, volume: &Volume) -> Result<Option<VolumeUsage>, Error> {
        let _ = volume;
        Ok(None)
    }

    /// What is wrong with a volume; nothing of it is read, since that may hang.
    fn health(&self, volume: &Volume) -> Result<Vec<HealthIssue>, Error>;

    /// What is wrong with the pool.
    fn pool_health(&self) -> Result<Vec<HealthIssue>, Error>;

    /// How many more volumes there can be whatever their size; `None` where nothing limits them.
    fn more_volumes(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Room for more.
    fn capacity(&self) -> Result<Capacity, Error>;

    /// Every snapshot, ready or not.
    fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        Ok(Vec::new())
    }

    /// Cuts a snapshot that is not there yet.
    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<Snapshot, Error> {
        let _ = (id, source);
        Err(self.cannot(tried, "cut snapshots"))
    }

    /// Removes a snapshot that was begun and never completed; none is no error.
    fn delete_unfinished_snapshot(&self, id: &SnapshotId) -> Result<(), Error> {
        let _ = id;
        Ok(())
    }

    /// Removes a snapshot.
    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        let _ = snapshot;
        Err(self.cannot(tried, "cut snapshots"))
    }

    /// What a snapshot holds, or where it differs from the base.
    fn blocks(
        &self,
        base: Option<&Snapshot>,
        target: &Snapshot,
        tried: &str,
    ) -> Result<Box<dyn BlockSource>, Error> {
        let _ = (base, target);
        Err(self.cannot(tried, "tell which blocks a snapshot holds"))
    }

    /// The thin pool that is to grow before it is full, where there is one.
    fn growing(&self) -> Option<Growing> {
        None
    }

    /// Takes into the kernel what opening the pool left out, as long as it may go on, and tells how many volumes came up.
    /// One that is [wanted](Backend::ready) before comes up for that.
    fn activate_rest(&self, go_on: &dyn Fn() -> bool) -> Result<usize, Error> {
        let _ = go_on;
        Ok(0)
    }

    /// The refusal of what this kind of pool cannot do.
    fn cannot(&self, tried: &str, what: &str) -> Error {
        Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("the pool of class {} cannot {what}", self.class().name))
    }
}

/// The smallest multiple of `unit` within the range.
///
/// # Errors
///
/// [`Kind::OutOfRange`] when there is none.
pub(crate) fn rounded(size: SizeRange, unit: Bytes, tried: &str) -> Result<Bytes, Error> {
    let refuse = |answer: String| Err(Error::new(Kind::OutOfRange, tried).with_answer(answer));
    let least = size.required().get().max(1);
    match Bytes::new(least).round_up(unit).filter(|size| i64::try_from(size.get()).is_ok()) {
        None => refuse(format!("{:#} is more than any volume can have", size.required())),
        Some(rounded) if size.limit().is_some_and(|limit| rounded > limit) => refuse(format!(
            "the smallest size that is not below {:#} is {rounded:#}, and the limit is {:#}",
            size.required(),
            size.limit().unwrap_or_default()
        )),
        Some(rounded) => Ok(rounded),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rounding_is_smallest_and_never_above_the_limit(required: u64, limit: u64, unit in 1_u64..1 << 40) {
            let range = SizeRange::at_least(Bytes::new(required)).up_to(Bytes::new(limit));
            match rounded(range, Bytes::new(unit), "t") {
                Ok(size) => {
                    let size = size.get();
                    prop_assert!(size >= required && size <= limit && size % unit == 0 && size > 0);
                    prop_assert!(size - required.max(1) < unit);
                }
                Err(error) => prop_assert_eq!(error.kind(), Kind::OutOfRange),
            }
        }
    }
}
