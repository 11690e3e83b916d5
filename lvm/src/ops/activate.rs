//! Taking volumes into the kernel and out of it.

use std::collections::HashSet;

use super::seen::{Need, Seen};
use super::{Change, Group};
use crate::command::LvChange;
use crate::dm::{Dm, ThinPoolStatus};
use crate::metadata::Lv;
use crate::worker::conf::Activation;
use crate::{Effect, Error, Kind, LvName, Uuid};

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

    /// Activates every volume of the group that is ours and complete, and not active yet; a lost disk does not keep the
    /// volumes on other disks down.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Foreign`]; [`Kind::MissingPv`] and what else LVM says of the first volume that did
    /// not come up, after all others have been tried.
    pub fn activate(&self) -> Result<(), Error> {
        let tried = format!("activate group {}", self.label());
        let seen = self.seen_for_activation(&tried)?;
        let activated = self.activate_where(&seen, |_| true, &tried);
        activated.and(self.catch_up(&seen, seen.vg().thin_pools(), &tried))
    }

    /// Activates the thin pools of the group that are ours, without their volumes.
    ///
    /// # Errors
    ///
    /// As [`Group::activate`].
    pub fn activate_pools(&self) -> Result<(), Error> {
        let tried = format!("activate the thin pools of group {}", self.label());
        let seen = self.seen_for_activation(&tried)?;
        let activated = self.activate_where(&seen, |lv| lv.as_thin_pool().is_some(), &tried);
        activated.and(self.catch_up(&seen, seen.vg().thin_pools(), &tried))
    }

    /// Activates those of these volumes that are ours, complete, and not active yet; one that is not there any more is
    /// passed over.
    ///
    /// # Errors
    ///
    /// As [`Group::activate`].
    pub fn activate_volumes(&self, names: &[LvName]) -> Result<(), Error> {
        let tried = format!("activate {} volumes of group {}", names.len(), self.label());
        let seen = self.seen_for_activation(&tried)?;
        let names: HashSet<&LvName> = names.iter().collect();
        self.activate_where(&seen, |lv| names.contains(&lv.name), &tried)
    }

    /// The volumes and pools of the group that are ours, complete, and not active. No command runs.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Foreign`], [`Kind::Unsupported`] without device-mapper.
    pub fn inactive(&self) -> Result<Vec<LvName>, Error> {
        let seen = self.seen_for_activation(&format!("see what of group {} is active", self.label()))?;
        Ok(self.inactive_of(&seen)?.into_iter().map(|lv| lv.name.clone()).collect())
    }

    /// One list of the kernel tells all of them apart: to ask for each volume takes long in a large group.
    fn inactive_of<'a>(&'a self, seen: &'a Seen) -> Result<Vec<&'a Lv>, Error> {
        let vg = seen.vg();
        let listed = Dm::open()?.vg_devices(&vg.uuid)?.into_iter();
        let own = listed.filter(|listed| listed.serves.layer.is_none()).map(|listed| listed.serves.lv);
        let active: HashSet<Uuid> = own.collect();
        let complete = self.ours(seen).filter(|lv| !seen.is_unfinished(lv));
        // What a pool's volumes lie on has a device of its own, which may be there without the pool's.
        complete
            .filter_map(|lv| match lv.as_thin_pool() {
                Some(_) => is_active(seen, lv).map(|active| (!active).then_some(lv)).transpose(),
                None => (!active.contains(&lv.uuid)).then_some(Ok(lv)),
            })
            .collect()
    }

    fn activate_where(&self, seen: &Seen, wanted: impl Fn(&Lv) -> bool, tried: &str) -> Result<(), Error> {
        let inactive = self.inactive_of(seen)?;
        self.change_each(seen, &LvChange::Activate, inactive.into_iter().filter(|lv| wanted(lv)), tried)
    }

    /// Takes every volume of the group that is ours out of the kernel.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while one is open, after all others have been tried; [`Kind::NotFound`], [`Kind::Foreign`].
    pub fn deactivate(&self) -> Result<(), Error> {
        let tried = format!("deactivate group {}", self.label());
        let seen = self.seen_for_activation(&tried)?;
        self.change_each(&seen, &LvChange::Deactivate, self.ours(&seen), &tried)
    }

    fn seen_for_activation(&self, tried: &str) -> Result<Seen, Error> {
        self.needs_kernel(tried)?;
        Seen::of(&self.lvm, self.uuid, Need::Ours, tried)
    }

    /// Changes the volumes by name: `vgchange` on a kept handle, after any `lvchange`, takes a pool's parts for
    /// volumes of their own (the library never resets `process_component_lvs`).
    fn change_each<'a>(
        &self,
        seen: &'a Seen,
        change: &LvChange<'_>,
        lvs: impl Iterator<Item = &'a Lv>,
        tried: &str,
    ) -> Result<(), Error> {
        let targets: Vec<_> = lvs.map(|lv| seen.target(&lv.name)).collect();
        let mut result = Ok(());
        for some in targets.chunks(VOLUMES_AT_ONCE) {
            let changed = self.run(seen, tried, &(change.clone(), some));
            result = result.and(changed);
        }
        result
    }

    /// What users see of the group and is ours.
    fn ours<'a>(&'a self, seen: &'a Seen) -> impl Iterator<Item = &'a Lv> {
        let owner = self.lvm.settings().owner.as_ref();
        seen.vg().visible_lvs().filter(move |lv| owner.is_none_or(|owner| seen.is_marked(lv, owner.as_str())))
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
