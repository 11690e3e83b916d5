//! Thick volumes: logical volumes whose space is theirs from the beginning.

use std::path::PathBuf;

use devices::Bytes;
use lvm::ops::{Layout, NewVolume as NewLv, SizeRange};

use super::duplicate::Copies;
use super::lv::{LvPool, lv_name};
use super::{Backend, Medium, NewVolume, Origin, Ready, rounded, tags};
use crate::class::DeviceClass;
use crate::{Capacity, Content, Error, Kind, Snapshot, SnapshotId, Volume, VolumeId};

/// A volume group with thick volumes.
#[derive(Clone, Debug)]
pub(crate) struct Thick {
    pub(crate) pool: LvPool,
    pub(crate) layout: Layout,
    /// The copies that run in this process.
    pub(crate) copies: Copies,
    /// Where the locks of volumes lie.
    pub(crate) locks: PathBuf,
}

impl Thick {
    /// What sizes are multiples of.
    pub(super) fn unit(&self, extent: Bytes) -> Bytes {
        extent.checked_mul(u64::from(self.layout.data_stripes())).unwrap_or(extent)
    }

    /// Whether so much more can be taken without the reserve.
    pub(super) fn leaves_reserve(&self, more: Bytes, tried: &str) -> Result<(), Error> {
        let look = self.pool.look()?;
        let vg = look.vg();
        let free = vg.extent_size.span(vg.free_extents()).unwrap_or_default();
        let available = free.saturating_sub(self.pool.reserved(vg));
        if more <= available {
            return Ok(());
        }
        Err(Error::new(Kind::NoSpace, tried)
            .with_answer(format!("{more} are needed, and {available} are left in volume group {}", vg.name))
            .with_advice("ask for less, remove something, or add a disk to the class"))
    }
}

impl Backend for Thick {
    fn class(&self) -> &DeviceClass {
        &self.pool.class
    }

    fn volumes(&self) -> Result<Vec<Volume>, Error> {
        self.pool.volumes()
    }

    fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        self.pool.volume(id)
    }

    fn create(&self, new: &NewVolume<'_>, tried: &str) -> Result<Volume, Error> {
        let extent = self.pool.look()?.vg().extent_size.bytes();
        let size = rounded(new.size, self.unit(extent), tried)?;
        self.leaves_reserve(size, tried)?;
        let name = lv_name('v', new.id.as_str(), tried)?;
        let exactly = SizeRange::at_least(size).up_to(size);
        let tags = tags::of_new(new, &self.class().name)?;
        let lv = tags.into_iter().fold(NewLv::new(name, exactly).layout(self.layout), NewLv::tag);
        let _ = self.pool.group.create_volume(&lv)?;
        self.pool.made(new.id, tried)
    }

    fn delete(&self, volume: &Volume, tried: &str) -> Result<(), Error> {
        let name = self.pool.name_of(&volume.id, tried)?;
        self.pool.delete(&name)
    }

    fn delete_unfinished(&self, id: &VolumeId, _: &str) -> Result<(), Error> {
        self.pool.delete_unfinished(&format!("{}{id}", tags::VOLUME))
    }

    fn grow(&self, volume: &Volume, size: SizeRange, tried: &str) -> Result<Volume, Error> {
        let extent = self.pool.look()?.vg().extent_size.bytes();
        let size = rounded(size, self.unit(extent), tried)?;
        if size > volume.size {
            self.leaves_reserve(size.saturating_sub(volume.size), tried)?;
            let name = self.pool.name_of(&volume.id, tried)?;
            if self.is_being_copied(&name)? {
                return Err(Error::new(Kind::Busy, tried)
                    .with_answer("it is being copied, and cannot grow meanwhile")
                    .with_advice("try again when its snapshot is ready"));
            }
            let _ = self.pool.group.extend_volume(&name, SizeRange::at_least(size), &[])?;
        }
        self.pool.made(&volume.id, tried)
    }

    fn ready(&self, volume: &Volume, tried: &str) -> Result<Ready, Error> {
        self.pool.ready(volume, tried).map(Ready::from)
    }

    fn medium(&self, volume: &Volume) -> Result<Medium, Error> {
        self.pool.medium(volume)
    }

    fn set_content(&self, volume: &Volume, content: Content, tried: &str) -> Result<(), Error> {
        self.pool.set_content(volume, content, tried)
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let look = self.pool.look()?;
        let vg = look.vg();
        let span = |extents| vg.extent_size.span(extents).unwrap_or_default();
        let unit = self.unit(vg.extent_size.bytes());
        let whole = |size: Bytes| size.round_down(unit).unwrap_or_default();
        let available = if vg.takes_volumes() {
            span(vg.free_extents()).saturating_sub(self.pool.reserved(vg))
        } else {
            Bytes::ZERO
        };
        let room_for_text = vg.metadata_room().is_none_or(|room| room.more_volumes() > 0);
        let largest =
            if room_for_text { whole(span(vg.largest(self.layout)).min(available)) } else { Bytes::ZERO };
        Ok(Capacity { total: span(vg.total_extents()), available: whole(available), largest, minimum: unit })
    }

    fn copy(&self, new: &NewVolume<'_>, origin: Origin<'_>, tried: &str) -> Result<Volume, Error> {
        self.copy_volume(new, origin, tried)
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.snapshots_with_state()
    }

    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<Snapshot, Error> {
        self.begin_snapshot(id, source, tried)?;
        self.snapshots()?.into_iter().find(|snapshot| snapshot.id == *id).ok_or_else(|| {
            Error::new(Kind::Internal, tried).with_answer("it is not there although it was cut")
        })
    }

    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        self.remove_snapshot(snapshot, tried)
    }
}
