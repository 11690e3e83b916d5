//! Thick volumes: logical volumes whose space is theirs from the beginning.

use std::path::PathBuf;

use devices::Bytes;
use lvm::metadata::Vg;
use lvm::ops::{Layout, NewVolume as NewLv, SizeRange};
use lvm::{LvName, Tag};

use super::duplicate::Copies;
use super::lv::LvPool;
use super::lv_backend::{LvBackend, takes_text};
use super::{NewVolume, Origin};
use crate::lock::Lock;
use crate::{Capacity, Error, Kind, Snapshot, SnapshotId, Volume};

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
    /// What is free of the group, the reserve left out.
    fn free(&self, vg: &Vg) -> Bytes {
        let free = vg.extent_size.span(vg.free_extents()).unwrap_or_default();
        free.saturating_sub(self.pool.reserved(vg))
    }
}

impl LvBackend for Thick {
    fn pool(&self) -> &LvPool {
        &self.pool
    }

    fn unit(&self, extent: Bytes) -> Bytes {
        extent.checked_mul(u64::from(self.layout.data_stripes())).unwrap_or(extent)
    }

    /// Whether so much more can be taken without the reserve.
    fn has_room(&self, from: Bytes, to: Bytes, tried: &str) -> Result<(), Error> {
        let look = self.pool.look()?;
        let vg = look.vg();
        let cost = |size| {
            let extents = vg.extent_size.holding(size);
            vg.extent_size.span(vg.cost(self.layout, extents)).unwrap_or(Bytes::new(u64::MAX))
        };
        let needed = cost(to).saturating_sub(cost(from));
        let available = self.free(vg);
        if needed <= available {
            return Ok(());
        }
        Err(Error::new(Kind::NoSpace, tried)
            .with_answer(format!("{needed} are needed, and {available} are left in volume group {}", vg.name))
            .with_advice("ask for less, remove something, or add a disk to the class"))
    }

    fn create(&self, name: LvName, size: Bytes, tags: Vec<Tag>) -> Result<(), Error> {
        let exactly = SizeRange::at_least(size).up_to(size);
        let lv = tags.into_iter().fold(NewLv::new(name, exactly).layout(self.layout), NewLv::tag);
        let _ = self.pool.group.create_volume(&lv)?;
        Ok(())
    }

    fn copy(
        &self,
        new: &NewVolume<'_>,
        size: Bytes,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<Volume, Error> {
        self.copy_volume(new, size, origin, held, tried)
    }

    fn is_free(&self, name: &LvName, what: &str, tried: &str) -> Result<(), Error> {
        if self.is_being_copied(name)? {
            return Err(Error::new(Kind::Busy, tried)
                .with_answer(format!("it is being copied, and cannot {what} meanwhile"))
                .with_advice("try again when its copy is ready"));
        }
        Ok(())
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let look = self.pool.look()?;
        let vg = look.vg();
        let span = |extents| vg.extent_size.span(extents).unwrap_or_default();
        let unit = self.unit(vg.extent_size.bytes());
        // What volumes of this layout hold of so much of the group.
        let holds = |raw: Bytes| span(vg.within(self.layout, vg.extent_size.within(raw)));
        let available = if vg.takes_volumes() { holds(self.free(vg)) } else { Bytes::ZERO };
        let largest = if takes_text(vg) { span(vg.largest(self.layout)).min(available) } else { Bytes::ZERO };
        Ok(Capacity { total: holds(span(vg.total_extents())), available, largest, minimum: unit })
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.snapshots_with_state()
    }

    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<(), Error> {
        self.begin_snapshot(id, source, tried)
    }

    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        self.remove_snapshot(snapshot, tried)
    }
}
