//! Recovery by the handle on LVM.

use std::time::Duration;

use super::{Difference, GroupResult, Recovered, compare, live_devices};
use crate::dm::Dm;
use crate::run::Scope;
use crate::worker::table::TableChange;
use crate::{Error, Kind, Lvm, Uuid, VgName};

/// How long an earlier command of the group may still run before its recovery.
const PATIENCE: Duration = Duration::from_secs(300);

impl Lvm {
    /// Compares the kernel's devices of a group with its committed metadata; nothing is changed.
    ///
    /// While a command runs on the group, differences are to be expected.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::Unsupported`] without device-mapper.
    pub fn differences(&self, vg: Uuid) -> Result<Vec<Difference>, Error> {
        let view = self.view()?;
        let Some(vg) = view.vg_by_uuid(vg) else {
            return Err(Error::new(Kind::NotFound, "compare a group with the kernel")
                .with_answer(format!("no group with the uuid {vg} is on the devices in use")));
        };
        Ok(compare(vg, &live_devices(&Dm::open()?, &vg.uuid)?))
    }

    /// Brings a group in order after a command on it was killed, also by another program or before a restart. Where
    /// all is in order, nothing is done.
    ///
    /// A group whose worker died is closed and recovered by its next command anyway; this is that, and tells what was
    /// done.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if something is left that a person must see to; the group stays closed then, if it was.
    /// [`Kind::Busy`] while a command runs on the group; [`Kind::Unsupported`] if device-mapper is not there.
    pub fn recover(&self, vg: Uuid, name: &VgName) -> Result<Recovered, Error> {
        let tried = format!("recover group {name}");
        let recoverer = self.recoverer(&tried)?;
        let scope = Scope::Vg { name: name.clone(), uuid: vg };
        let is_this = |closed: &Scope| *closed == scope || *closed == Scope::Alone;
        let closed =
            self.workers().is_some_and(|pool| pool.quarantined().iter().any(|group| is_this(&group.scope)));
        // Passing through the queue recovers a closed group first.
        let pass = TableChange { scope, tried, steps: Vec::new(), deadline: PATIENCE };
        self.runner().change_tables(&pass)?;
        let first = if closed { recoverer.last_report(vg) } else { None };
        let second = recoverer.recover_group(vg, name, self.runner())?;
        Ok(first.map_or(second.clone(), |first| first.followed_by(second)))
    }

    /// As [`Lvm::recover`] for every group that is ours, for the start of a program; held metadata snapshots of thin
    /// pools are released, too.
    ///
    /// # Errors
    ///
    /// Of reading the metadata; each group has its own result.
    pub fn recover_all(&self) -> Result<Vec<GroupResult>, Error> {
        self.recoverer("recover every group")?.recover_all(self.runner())
    }
}
