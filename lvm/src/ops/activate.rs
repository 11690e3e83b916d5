//! Taking volumes into the kernel and out of it.

use super::seen::{Need, Seen};
use super::{Change, Group};
use crate::command::LvChange;
use crate::dm::{Dm, ThinPoolStatus};
use crate::metadata::Lv;
use crate::worker::conf::Activation;
use crate::{Effect, Error, Kind, LvName};

/// How many volumes one command names: the library takes 64 words.
const VOLUMES_AT_ONCE: usize = 50;

/// What RAID legs are checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scrub {
    /// Differences are counted.
    Check,
    /// Differences are counted and made good from parity or the first copy.
    Repair,
}

impl Group {
    /// Activates a volume, also a thin snapshot that carries the skip flag, and a RAID volume with legs missing, but
    /// never one with holes.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Busy`] for one that is not complete, [`Kind::Foreign`],
    /// [`Kind::Unsupported`] without device-mapper, and what LVM itself says.
    pub fn activate_volume(&self, name: &LvName) -> Result<Change, Error> {
        let tried = format!("activate volume {}", self.calls(name));
        let seen = Seen::of(&self.lvm, self.uuid, Need::Any, &tried)?;
        let lv = seen.finished_lv(&self.lvm, name, &tried)?;
        let change = self.activate_one(&seen, lv, &tried)?;
        if change.is_made() {
            let pool = lv.as_thin().map_or(Some(lv), |thin| seen.vg().lv(thin.pool.as_str()));
            self.catch_up(&seen, pool.into_iter(), &tried)?;
        }
        Ok(change)
    }

    /// Has pools that are one transaction behind their metadata catch up. A power cut after LVM's commit and before the
    /// pool's own leaves them so, which shows only once they are active, and LVM itself lets it be until the next
    /// change of the pool.
    fn catch_up<'a>(
        &self,
        seen: &Seen,
        pools: impl Iterator<Item = &'a Lv>,
        tried: &str,
    ) -> Result<(), Error> {
        let dm = Dm::open()?;
        // A look at the pools alone: comparing the group would read every table that it has.
        let mut behind = false;
        for pool in pools {
            behind |= is_behind(&dm, seen, pool)?;
        }
        if !behind {
            return Ok(());
        }
        let recovered = self.lvm.recover(self.uuid, self.label())?;
        match recovered.remaining.iter().find(|difference| difference.is_behind()) {
            None => Ok(()),
            Some(left) => Err(Error::new(Kind::Inconsistent, tried)
                .with_effect(Effect::Done)
                .with_answer(format!("{left}; {recovered}"))
                .with_advice("`gabion doctor` tells what to do about the pool")),
        }
    }

    pub(crate) fn activate_one(&self, seen: &Seen, lv: &Lv, tried: &str) -> Result<Change, Error> {
        self.needs_kernel(tried)?;
        if is_active(seen, lv)? {
            return Ok(Change::Already(()));
        }
        self.run(seen, tried, &(LvChange::Activate, seen.target(&lv.name)))?;
        Ok(Change::Made(()))
    }

    /// Takes a volume out of the kernel.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::InUse`] while it is open; [`Kind::Foreign`], and what LVM itself says.
    pub fn deactivate_volume(&self, name: &LvName) -> Result<Change, Error> {
        let tried = format!("deactivate volume {}", self.calls(name));
        self.needs_kernel(&tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Any, &tried)?;
        let lv = seen.own_lv(&self.lvm, name, &tried)?;
        if !is_active(&seen, lv)? {
            return Ok(Change::Already(()));
        }
        self.run(&seen, &tried, &(LvChange::Deactivate, seen.target(&lv.name)))?;
        Ok(Change::Made(()))
    }

    /// Activates every volume of the group that is ours and complete; a lost disk does not keep the volumes on other
    /// disks down.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Foreign`]; [`Kind::MissingPv`] and what else LVM says of the first volume that did
    /// not come up, after all others have been tried.
    pub fn activate(&self) -> Result<(), Error> {
        let tried = format!("activate group {}", self.label());
        let seen = self.seen_for_activation(&tried)?;
        let wanted = |lv: &&Lv| !seen.is_unfinished(lv);
        let activated = self.change_each(&seen, &LvChange::Activate, wanted, &tried);
        activated.and(self.catch_up(&seen, seen.vg().thin_pools(), &tried))
    }

    /// Takes every volume of the group that is ours out of the kernel.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while one is open, after all others have been tried; [`Kind::NotFound`], [`Kind::Foreign`].
    pub fn deactivate(&self) -> Result<(), Error> {
        let tried = format!("deactivate group {}", self.label());
        let seen = self.seen_for_activation(&tried)?;
        self.change_each(&seen, &LvChange::Deactivate, |_| true, &tried)
    }

    fn seen_for_activation(&self, tried: &str) -> Result<Seen, Error> {
        self.needs_kernel(tried)?;
        Seen::of(&self.lvm, self.uuid, Need::Ours, tried)
    }

    /// Changes the volumes by name: `vgchange` on a kept handle, after any `lvchange`, takes a pool's parts for
    /// volumes of their own (the library never resets `process_component_lvs`).
    fn change_each(
        &self,
        seen: &Seen,
        change: &LvChange<'_>,
        wanted: impl Fn(&&Lv) -> bool,
        tried: &str,
    ) -> Result<(), Error> {
        let owner = self.lvm.settings().owner.as_ref();
        let ours = |lv: &&Lv| owner.is_none_or(|owner| seen.is_marked(lv, owner.as_str()));
        let targets: Vec<_> =
            seen.vg().visible_lvs().filter(ours).filter(wanted).map(|lv| seen.target(&lv.name)).collect();
        let mut result = Ok(());
        for some in targets.chunks(VOLUMES_AT_ONCE) {
            let changed = self.run(seen, tried, &(change.clone(), some));
            result = result.and(changed);
        }
        result
    }

    /// Loads a volume's tables anew from its metadata, as after a disk that was away for a moment came back.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Foreign`], [`Kind::Unsupported`] without device-mapper, and what LVM itself says.
    pub fn refresh_volume(&self, name: &LvName) -> Result<(), Error> {
        let tried = format!("refresh volume {}", self.calls(name));
        self.needs_kernel(&tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Any, &tried)?;
        seen.own_lv(&self.lvm, name, &tried)?;
        self.run(&seen, &tried, &(LvChange::Refresh, seen.target(name)))
    }

    pub(crate) fn needs_kernel(&self, tried: &str) -> Result<(), Error> {
        match self.lvm.settings().activation {
            Activation::MetadataOnly => Err(Error::new(Kind::Unsupported, tried)
                .with_answer("this handle was told to change metadata only")),
            _ => Ok(()),
        }
    }
}

/// Whether the kernel's pool is one transaction behind its metadata.
fn is_behind(dm: &Dm, seen: &Seen, pool: &Lv) -> Result<bool, Error> {
    let Some(committed) = pool.as_thin_pool().map(|pool| pool.transaction_id) else { return Ok(false) };
    let live = match dm.pool_status(&seen.vg().uuid, &pool.uuid)? {
        Some(ThinPoolStatus::Working(live)) => live.transaction_id,
        _ => return Ok(false),
    };
    Ok(live.checked_add(1) == Some(committed))
}

/// Whether the kernel has a device for the volume.
pub(crate) fn is_active(seen: &Seen, lv: &Lv) -> Result<bool, Error> {
    let (dm, vg) = (Dm::open()?, &seen.vg().uuid);
    // What a pool's volumes lie on has a device of its own, which may be there without the pool's.
    match lv.as_thin_pool() {
        Some(_) => Ok(dm.pool_status(vg, &lv.uuid)?.is_some()),
        None => Ok(dm.lv_info(vg, &lv.uuid)?.is_some()),
    }
}
