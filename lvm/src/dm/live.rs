//! The live side of LVM's volumes: their devices, found by uuid.
//!
//! A volume that is not active has no device; that is an ordinary state, so these answers are options.

use super::{
    Activity, CacheStatus, Dm, DmUuid, Fill, Id, Info, Listed, LvmDevice, MirrorStatus, RaidStatus, Slot,
    SnapshotStatus, Status, StatusLine, Target, ThinPoolStatus, ThinPoolTable, ThinStatus,
};
use crate::{Error, Kind, Uuid};

/// A device that LVM made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LvmListed {
    /// The device.
    pub device: Listed,
    /// What it serves.
    pub serves: LvmDevice,
}

impl Dm {
    /// The devices of group `vg`, hidden ones and layers included.
    ///
    /// # Errors
    ///
    /// As [`Dm::list`].
    pub fn vg_devices(&self, vg: &Uuid) -> Result<Vec<LvmListed>, Error> {
        let lvm = |device: Listed| {
            let serves = device.uuid.as_ref()?.lvm()?;
            (serves.vg == *vg).then_some(LvmListed { device, serves })
        };
        Ok(self.list()?.into_iter().filter_map(lvm).collect())
    }

    /// The devices of volume `lv`: itself, and its layers if it has any.
    ///
    /// # Errors
    ///
    /// As [`Dm::list`].
    pub fn lv_devices(&self, vg: &Uuid, lv: &Uuid) -> Result<Vec<LvmListed>, Error> {
        let mut devices = self.vg_devices(vg)?;
        devices.retain(|device| device.serves.lv == *lv);
        Ok(devices)
    }

    /// What the kernel knows of the volume's own device; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the kernel refuses.
    pub fn lv_info(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<Info>, Error> {
        unless_gone(self.info(&DmUuid::of_lvm(vg, lv, None)))
    }

    /// How often the volume is open; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the kernel refuses.
    pub fn open_count(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<u32>, Error> {
        Ok(self.lv_info(vg, lv)?.map(|info| info.open_count))
    }

    /// The devices of group `vg` that are suspended. Nobody may read or write them: the access would hang.
    ///
    /// # Errors
    ///
    /// As [`Dm::list`].
    pub fn suspended(&self, vg: &Uuid) -> Result<Vec<Info>, Error> {
        let mut suspended = Vec::new();
        for device in self.vg_devices(vg)? {
            if let Some(info) = unless_gone(self.info(device.device.number))?
                && info.activity != Activity::Running
            {
                suspended.push(info);
            }
        }
        Ok(suspended)
    }

    /// Use and state of the thin pool `lv`; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn pool_status(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<ThinPoolStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::ThinPool(pool) => Some(pool),
            _ => None,
        })
    }

    /// Chunk, devices and low-water mark of the thin pool `lv`; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn pool_table(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<ThinPoolTable>, Error> {
        let uuid = DmUuid::of_lvm(vg, lv, Some("tpool"));
        let table = unless_gone(self.table(&uuid, Slot::Live))?;
        let lines = table.into_iter().flat_map(|table| table.segments);
        Ok(lines.into_iter().find_map(|line| match line.target {
            Target::ThinPool(pool) => Some(pool),
            _ => None,
        }))
    }

    /// What of the thin volume `lv` is mapped; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn thin_status(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<ThinStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::Thin(thin) => Some(thin),
            _ => None,
        })
    }

    /// The fill of the classic snapshot `lv`; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn snapshot_status(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<SnapshotStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        })
    }

    /// How far the merge of a classic snapshot into origin `lv` has come; `None` when none runs.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn merge_status(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<SnapshotStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::SnapshotMerge(merge) => Some(merge),
            _ => None,
        })
    }

    /// Health and sync of the RAID volume `lv`; `None` when it is not active.
    ///
    /// Degraded is what has [`RaidStatus::failed_legs`]; the sync ratio says nothing about that.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn raid_health(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<RaidStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::Raid(raid) => Some(raid),
            _ => None,
        })
    }

    /// Hits, misses and dirt of the cached volume `lv`; `None` when it is not active.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn cache_status(&self, vg: &Uuid, lv: &Uuid) -> Result<Option<CacheStatus>, Error> {
        self.first_status(vg, lv, |status| match status {
            Status::Cache(cache) => Some(cache),
            _ => None,
        })
    }

    /// The moves that run in group `vg`: each mirror that pvmove has set up, summed over its segments.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if the kernel's line is not understood.
    pub fn moves(&self, vg: &Uuid) -> Result<Vec<(LvmListed, Fill)>, Error> {
        let mut moves = Vec::new();
        for device in self.vg_devices(vg)? {
            let lines = unless_gone(self.status(device.device.number))?.unwrap_or_default();
            let mirrors: Vec<MirrorStatus> = lines.into_iter().filter_map(mirror).collect();
            if !mirrors.is_empty() {
                let sum = |of: fn(Fill) -> u64| mirrors.iter().map(|mirror| of(mirror.synced)).sum();
                let fill = Fill::new(sum(Fill::used), sum(Fill::total));
                moves.push((device, fill));
            }
        }
        Ok(moves)
    }

    /// The first line of the wanted kind on any device of the volume; a layer may carry the target.
    fn first_status<T>(
        &self,
        vg: &Uuid,
        lv: &Uuid,
        wanted: impl Fn(Status) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        for device in self.lv_devices(vg, lv)? {
            let id = Id::Number(device.device.number);
            let lines = unless_gone(self.status(id))?.unwrap_or_default();
            if let Some(found) = lines.into_iter().find_map(|line| wanted(line.status)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn mirror(line: StatusLine) -> Option<MirrorStatus> {
    match line.status {
        Status::Mirror(mirror) => Some(mirror),
        _ => None,
    }
}

/// A device that vanished between two questions is a device that is not there.
fn unless_gone<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
