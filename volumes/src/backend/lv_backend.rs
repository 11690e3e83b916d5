//! What thick and thin volumes do alike, once for both: a kind of logical volume says only in what it differs.

use std::fmt;

use devices::{Bytes, DeviceNumber};
use lvm::metadata::Vg;
use lvm::ops::SizeRange;
use lvm::{LvName, Tag};

use super::lv::{LvPool, lv_name};
use super::lv_health::{self, NEARLY_FULL};
use super::{Backend, Medium, NewVolume, Origin, Ready, rounded, tags};
use crate::changed::BlockSource;
use crate::class::DeviceClass;
use crate::health::HealthIssue;
use crate::keeper::Growing;
use crate::lock::Lock;
use crate::{Capacity, Content, Error, Kind, Limits, Snapshot, SnapshotId, Volume, VolumeId};

/// A pool whose volumes are logical volumes: what thick and thin ones differ in.
pub(crate) trait LvBackend: fmt::Debug + Send + Sync {
    fn pool(&self) -> &LvPool;

    /// What sizes are multiples of.
    fn unit(&self, extent: Bytes) -> Bytes {
        extent
    }

    /// Whether the pool takes a volume that grows from one size, or from nothing, to another one.
    fn has_room(&self, from: Bytes, to: Bytes, tried: &str) -> Result<(), Error>;

    /// Makes a blank logical volume of exactly this size.
    fn create(&self, name: LvName, size: Bytes, tags: Vec<Tag>) -> Result<(), Error>;

    /// Makes a volume of this size with the content of another one, which is held as long as it is needed.
    fn copy(
        &self,
        new: &NewVolume<'_>,
        size: Bytes,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<Volume, Error>;

    /// Refuses what (`grow`, `be removed`) something keeps a volume from now.
    fn is_free(&self, name: &LvName, what: &str, tried: &str) -> Result<(), Error> {
        let _ = (name, what, tried);
        Ok(())
    }

    /// The thin pool that is to grow before it is full, where there is one.
    fn growing(&self) -> Option<Growing> {
        None
    }

    /// What is wrong with what all volumes share beyond the group.
    fn shared_issues(&self) -> Result<Vec<HealthIssue>, Error> {
        Ok(Vec::new())
    }

    fn capacity(&self) -> Result<Capacity, Error>;

    fn snapshots(&self) -> Result<Vec<Snapshot>, Error>;

    /// Cuts a snapshot of a volume that is worth it.
    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<(), Error>;

    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error>;

    /// What a snapshot holds, or where it differs from the base; `None` where that cannot be told.
    fn blocks(
        &self,
        base: Option<&Snapshot>,
        target: &Snapshot,
        tried: &str,
    ) -> Result<Option<Box<dyn BlockSource>>, Error> {
        let _ = (base, target, tried);
        Ok(None)
    }
}

impl<T: LvBackend> Backend for T {
    fn class(&self) -> &DeviceClass {
        &self.pool().class
    }

    fn volumes(&self) -> Result<Vec<Volume>, Error> {
        self.pool().volumes()
    }

    fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        self.pool().volume(id)
    }

    fn create(&self, new: &NewVolume<'_>, tried: &str) -> Result<Volume, Error> {
        let pool = self.pool();
        let size = rounded(new.size, self.unit(pool.extent()?), tried)?;
        self.has_room(Bytes::ZERO, size, tried)?;
        let name = lv_name('v', new.id.as_str(), tried)?;
        LvBackend::create(self, name, size, tags::of_new(new, &pool.class.name)?)?;
        pool.made(new.id, tried)
    }

    fn copy(
        &self,
        new: &NewVolume<'_>,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<Volume, Error> {
        let size = rounded(new.size, self.unit(self.pool().extent()?), tried)?;
        LvBackend::copy(self, new, size, origin, held, tried)
    }

    fn delete(&self, volume: &Volume, tried: &str) -> Result<(), Error> {
        let name = self.pool().name_of(&volume.id, tried)?;
        self.is_free(&name, "be removed", tried)?;
        self.pool().delete(&name)
    }

    fn delete_unfinished(&self, id: &VolumeId, _: &str) -> Result<(), Error> {
        self.pool().delete_unfinished_volume(id)
    }

    fn delete_unfinished_snapshot(&self, id: &SnapshotId) -> Result<(), Error> {
        self.pool().delete_unfinished_snapshot(id)
    }

    fn grow(&self, volume: &Volume, size: SizeRange, tried: &str) -> Result<Volume, Error> {
        let pool = self.pool();
        let size = rounded(size, self.unit(pool.extent()?), tried)?;
        if size > volume.size {
            self.has_room(volume.size, size, tried)?;
            let name = pool.name_of(&volume.id, tried)?;
            self.is_free(&name, "grow", tried)?;
            let _ = pool.group.extend_volume(&name, SizeRange::at_least(size), &[])?;
        }
        pool.made(&volume.id, tried)
    }

    fn ready(&self, volume: &Volume, tried: &str) -> Result<Ready, Error> {
        let name = self.pool().name_of(&volume.id, tried)?;
        let _ = self.pool().group.activate_volume(&name)?;
        Ok(Medium::Device(self.pool().device(&name)?).into())
    }

    fn medium(&self, volume: &Volume) -> Result<Medium, Error> {
        let tried = format!("find the device of volume {}", volume.id);
        let name = self.pool().name_of(&volume.id, &tried)?;
        Ok(Medium::Device(self.pool().device(&name)?))
    }

    fn set_content(&self, volume: &Volume, content: Content, tried: &str) -> Result<(), Error> {
        self.pool().mark_content(&self.pool().name_of(&volume.id, tried)?, content, &[])
    }

    fn number(&self, volume: &Volume) -> Result<Option<DeviceNumber>, Error> {
        self.pool().number_of(&volume.id)
    }

    fn set_limits(&self, volume: &Volume, limits: Limits, tried: &str) -> Result<(), Error> {
        self.pool().mark_limits(&self.pool().name_of(&volume.id, tried)?, limits)
    }

    fn health(&self, volume: &Volume) -> Result<Vec<HealthIssue>, Error> {
        let mut issues = lv_health::of_volume(self.pool(), volume)?;
        // That it may fill up soon harms none of them now.
        issues.extend(self.shared_issues()?.into_iter().filter(|issue| issue.reason != NEARLY_FULL));
        Ok(issues)
    }

    fn pool_health(&self) -> Result<Vec<HealthIssue>, Error> {
        let mut issues = lv_health::of_group(self.pool())?;
        issues.extend(self.shared_issues()?);
        Ok(issues)
    }

    fn more_volumes(&self) -> Result<Option<u64>, Error> {
        Ok(self.pool().look()?.vg().metadata_room().map(|room| room.more_volumes()))
    }

    fn growing(&self) -> Option<Growing> {
        LvBackend::growing(self)
    }

    fn activate_rest(&self, go_on: &dyn Fn() -> bool) -> Result<usize, Error> {
        self.pool().activate_rest(go_on)
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        LvBackend::capacity(self)
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        LvBackend::snapshots(self)
    }

    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<Snapshot, Error> {
        whole(source.content, tried)?;
        LvBackend::snapshot(self, id, source, tried)?;
        LvBackend::snapshots(self)?.into_iter().find(|snapshot| snapshot.id == *id).ok_or_else(|| {
            Error::new(Kind::Internal, tried).with_answer("it is not there although it was cut")
        })
    }

    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        LvBackend::delete_snapshot(self, snapshot, tried)
    }

    fn blocks(
        &self,
        base: Option<&Snapshot>,
        target: &Snapshot,
        tried: &str,
    ) -> Result<Box<dyn BlockSource>, Error> {
        LvBackend::blocks(self, base, target, tried)?
            .ok_or_else(|| self.cannot(tried, "tell which blocks a snapshot holds"))
    }
}

/// A half-made filesystem is not worth copying.
pub(super) fn whole(content: Content, tried: &str) -> Result<(), Error> {
    if content == Content::Formatting {
        return Err(Error::new(Kind::FailedPrecondition, tried)
            .with_answer("making its filesystem was begun and not ended")
            .with_advice("stage the volume first"));
    }
    Ok(())
}

/// Whether the metadata of a group have room for another volume's text.
pub(super) fn takes_text(vg: &Vg) -> bool {
    vg.metadata_room().is_none_or(|room| room.more_volumes() > 0)
}
