//! Removing volumes, with or without their content.

use super::seen::{Need, Seen};
use super::{Change, Group, wipe};
use crate::command::LvRemove;
use crate::dm::{Dm, ThinStatus};
use crate::metadata::Lv;
use crate::{Error, Kind, LvName};

/// What becomes of the bytes of a volume that is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnRemove {
    /// They stay on the disk until something else is written there.
    #[default]
    Keep,
    /// The disk is told that they are not needed any more. What it does with that is the disk's own matter.
    Discard,
    /// Zeroes are written over them. Takes as long as writing the whole volume; of a thin volume what it has written itself
    /// since its last snapshot. Chunks that a snapshot may share cannot be written in place: they stay with the snapshot, or
    /// go back to the pool, which zeroes them before anybody sees them.
    Zero,
}

impl Group {
    /// Removes a volume, active or not; one that does not exist is removed already.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while it is open or mounted, has classic snapshots, or is a pool with volumes in it;
    /// [`Kind::InvalidArgument`] for an internal volume; [`Kind::Foreign`], [`Kind::Busy`], [`Kind::MissingPv`], and
    /// what LVM itself says.
    pub fn remove_volume(&self, name: &LvName, content: OnRemove) -> Result<Change, Error> {
        let tried = format!("remove volume {}", self.calls(name));
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        if seen.vg().lv(name.as_str()).is_none() {
            return self.lvm.already(&seen, &tried, ());
        }
        let lv = seen.own_lv(&self.lvm, name, &tried)?;
        seen.is_unused(lv, &tried)?;
        self.erase(&seen, lv, content, &tried)?;
        self.remove_one(&seen, name, &tried)?;
        Ok(Change::Made(()))
    }

    /// Removes one volume that has been checked to be ours.
    pub(crate) fn remove_one(&self, seen: &Seen, name: &LvName, tried: &str) -> Result<(), Error> {
        self.run(seen, tried, &LvRemove { target: seen.target(name) })
    }

    fn erase(&self, seen: &Seen, lv: &Lv, content: OnRemove, tried: &str) -> Result<(), Error> {
        // A pool without volumes holds nothing that could be read, and thin chunks are zeroed before reuse.
        if content == OnRemove::Keep || lv.as_thin_pool().is_some() {
            return Ok(());
        }
        let _ = self.activate_one(seen, lv, tried)?;
        if maps_nothing(seen, lv)? {
            return Ok(());
        }
        let device = super::Volume::of(seen.vg(), lv).device;
        match content {
            OnRemove::Keep => Ok(()),
            OnRemove::Discard => wipe::discard(&device, tried),
            OnRemove::Zero => match lv.as_thin() {
                Some(thin) => self.zero_thin(seen, thin, &device, tried),
                None => wipe::zero(&device, tried),
            },
        }
    }
}

/// Whether an active volume is thin and has no sector in its pool: then it has no bytes that anything could become of.
/// Opening it to discard its whole virtual size would also have udevd probe it at the moment at which it is removed.
fn maps_nothing(seen: &Seen, lv: &Lv) -> Result<bool, Error> {
    if lv.as_thin().is_none() {
        return Ok(false);
    }
    let status = Dm::open()?.thin_status(&seen.vg().uuid, &lv.uuid)?;
    Ok(matches!(status, Some(ThinStatus::Mapped { mapped, .. }) if mapped.get() == 0))
}

impl Seen {
    /// Nothing else is built on the volume. LVM would remove all that with it, since it is told yes.
    fn is_unused(&self, lv: &Lv, tried: &str) -> Result<(), Error> {
        let vg = self.vg();
        let snapshots = vg.snapshots_of(&lv.name).map(|tie| &tie.cow_store);
        // A thin snapshot outlives its origin.
        let built_on = vg
            .users_of(&lv.name)
            .filter(|user| user.as_snapshot().is_none())
            .filter(|user| user.as_thin().is_none_or(|thin| thin.pool == lv.name))
            .map(|user| &user.name);
        let users: Vec<&str> = snapshots.chain(built_on).map(LvName::as_str).collect();
        if users.is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::InUse, tried)
            .with_answer(format!("{} volumes are built on it: {}", users.len(), users.join(", ")))
            .with_advice("remove those first"))
    }
}
