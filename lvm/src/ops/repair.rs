//! Mending what lost a disk or was damaged.

use super::seen::{Need, Seen};
use super::{Change, Group};
use crate::command::Repair;
use crate::dm::Dm;
use crate::metadata::Lv;
use crate::{DevicePath, Error, Extents, Kind, LvName};

impl Group {
    /// Replaces the failed legs of a RAID volume, or of the data and metadata of a pool on RAID legs, by new ones on
    /// other PVs. The new legs fill in the background; a volume with all its legs stays as it is.
    ///
    /// A leg whose disk only was away for a moment needs [`Group::restore_missing`] and [`Group::refresh_volume`]
    /// instead.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a volume that is not RAID; [`Kind::NoSpace`] without PVs for the new legs;
    /// [`Kind::NotFound`], [`Kind::Unsupported`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn repair_volume(&self, name: &LvName, on: &[DevicePath]) -> Result<Change, Error> {
        let tried = format!("repair volume {}", self.calls(name));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        let lv = seen.finished_lv(&self.lvm, name, &tried)?;
        let raids = seen.raids_of(lv);
        if raids.is_empty() {
            return Err(Error::new(Kind::InvalidArgument, tried).with_answer("it is not on RAID legs"));
        }
        let devices = seen.resolve(on, &tried)?;
        let mut repaired = false;
        for raid in raids {
            if seen.has_failed_legs(raid)? {
                self.run(&seen, &tried, &Repair { target: seen.target(&raid.name), devices: &devices })?;
                repaired = true;
            }
        }
        if repaired { Ok(Change::Made(())) } else { self.lvm.already(&seen, &tried, ()) }
    }

    /// Makes the spare for repairing pools' metadata again, on the PVs named or on any, where the group has none or lost
    /// it with a PV. LVM makes one only when it grows a pool's metadata, so those of the pool with the largest ones
    /// grow by one extent. A group without pools needs none.
    ///
    /// # Errors
    ///
    /// [`Kind::NoSpace`]; [`Kind::Unsupported`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says;
    /// [`Kind::MissingPv`] where another volume than the spare lies on a missing PV.
    pub fn remake_spare(&self, on: &[DevicePath]) -> Result<Change, Error> {
        let tried = format!("make the pool spare of group {} again", self.label());
        self.needs_kernel(&tried)?;
        let mut seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        if let Some(spare) = seen.vg().pool_metadata_spare() {
            if !seen.vg().is_partial(spare) {
                return self.lvm.already(&seen, &tried, ());
            }
            self.remove_one(&seen, &spare.name, &tried)?;
            seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        }
        let metadata = |pool: &Lv| {
            let part = pool.as_thin_pool().and_then(|pool| seen.vg().lv(pool.metadata.as_str()));
            part.map_or(0, |part| part.extents().get())
        };
        let Some(pool) = seen.vg().thin_pools().max_by_key(|pool| metadata(pool)) else {
            return self.lvm.already(&seen, &tried, ());
        };
        // With a PV missing LVM extends nothing; this one held nothing but the spare, or the call fails.
        let _ = self.forget_missing()?;
        let wanted = Extents::new(metadata(pool).saturating_add(1));
        let devices = seen.resolve(on, &tried)?;
        let part = pool.as_thin_pool().map_or(&pool.name, |pool| &pool.metadata);
        self.extend_metadata_by_steps(&pool.name, part, wanted, &devices, &tried)?;
        Ok(Change::Made(()))
    }

    /// Rewrites a thin pool's metadata into the group's spare, leaving out what is damaged. The pool and everything
    /// in it must be inactive. The old metadata stay in the group as the volume `<pool>_meta<n>`, for a person to
    /// look at and remove.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while the pool is active; [`Kind::InvalidArgument`] for a volume that is no pool;
    /// [`Kind::NotFound`], [`Kind::Unsupported`], [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM
    /// itself says.
    pub fn repair_pool(&self, name: &LvName) -> Result<(), Error> {
        let tried = format!("repair thin pool {}", self.calls(name));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let pool = seen.own_pool(self, name, &tried)?;
        if Dm::open()?.pool_status(&seen.vg().uuid, &pool.uuid)?.is_some() {
            return Err(Error::new(Kind::InUse, tried)
                .with_answer("the pool is active")
                .with_advice("deactivate its volumes and the pool first"));
        }
        self.run(&seen, &tried, &Repair { target: seen.target(name), devices: &[] })
    }
}

impl Seen {
    /// The RAID volumes that a volume is or is built on.
    fn raids_of<'a>(&'a self, lv: &'a Lv) -> Vec<&'a Lv> {
        if lv.as_raid().is_some() {
            return vec![lv];
        }
        // The pool of a thin volume is shared; it is repaired by its own name.
        let parts = if lv.as_thin().is_some() { Vec::new() } else { lv.parts() };
        parts
            .into_iter()
            .filter_map(|part| self.vg().lv(part.as_str()))
            .flat_map(|part| self.raids_of(part))
            .collect()
    }

    /// Whether legs are on missing PVs, or the kernel has given them up.
    fn has_failed_legs(&self, raid: &Lv) -> Result<bool, Error> {
        if self.vg().is_partial(raid) {
            return Ok(true);
        }
        let health = Dm::open()?.raid_health(&self.vg().uuid, &raid.uuid)?;
        Ok(health.is_some_and(|health| !health.failed_legs().is_empty()))
    }
}
