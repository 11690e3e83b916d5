//! What was reported as done outlives a loss of power.
//!
//! LVM sends no flush for its metadata. So each command that writes some is followed, in the same worker and before it
//! counts as done, by a flush of the devices that hold them; a group of which one cannot be flushed is closed. What is
//! found done already may have been written by somebody who died before the flush, and is flushed before it is told.

use std::path::PathBuf;
use std::sync::PoisonError;

use crate::command::Command;
use crate::metadata::{Pv, Vg};
use crate::ops::{Change, Seen};
use crate::run::{Flush, ReturnCode, Scope};
use crate::{Error, Lvm, classify};

impl Lvm {
    /// The devices that a command of this scope writes metadata to.
    pub(crate) fn written_by(&self, scope: &Scope, command: &impl Command) -> Result<Vec<PathBuf>, Error> {
        if !command.commits() {
            return Ok(Vec::new());
        }
        let uuid = match scope {
            Scope::Vg { uuid, .. } | Scope::Whole { uuid, .. } => Some(*uuid),
            Scope::Free | Scope::Alone => None,
        };
        let view = uuid.map(|_| self.view()).transpose()?;
        let vg = view.as_deref().zip(uuid).and_then(|(view, uuid)| view.vg_by_uuid(uuid));
        let mut devices = match (vg, scope) {
            (None, _) => Vec::new(),
            // The labels of all its PVs change with the group as a whole.
            (Some(vg), Scope::Whole { .. }) => vg.pvs.iter().filter_map(present).collect(),
            (Some(vg), _) => with_metadata(vg),
        };
        for device in command.devices() {
            if !devices.iter().any(|other| other == device.as_path()) {
                devices.push(device.as_path().to_owned());
            }
        }
        Ok(devices)
    }

    /// The answer of an operation that finds all as it was wished.
    ///
    /// # Errors
    ///
    /// Those of flushing the group, unless it is known that its metadata were flushed.
    pub(crate) fn already<T>(&self, seen: &Seen, tried: &str, value: T) -> Result<Change<T>, Error> {
        let (uuid, seqno) = (seen.vg().uuid, seen.vg().seqno);
        let known = || self.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        if known().get(&uuid) != Some(&seqno) {
            self.flush(seen.scope(), tried, with_metadata(seen.vg()))?;
            known().insert(uuid, seqno);
        }
        Ok(Change::Already(value))
    }

    /// Flushes devices in the queue of a scope.
    pub(crate) fn flush(&self, scope: Scope, tried: &str, devices: Vec<PathBuf>) -> Result<(), Error> {
        let flush = Flush { scope, tried: tried.to_owned(), devices, deadline: self.deadline };
        let reply = self.runner().flush(&flush)?;
        if reply.code == ReturnCode::Succeeded { Ok(()) } else { Err(classify::failure(tried, &reply)) }
    }
}

fn present(pv: &Pv) -> Option<PathBuf> {
    pv.device.as_ref().filter(|_| !pv.is_missing()).map(|device| device.path.clone())
}

/// The devices on which a group's metadata are.
pub(crate) fn with_metadata(vg: &Vg) -> Vec<PathBuf> {
    let used =
        |pv: &&Pv| pv.device.as_ref().is_some_and(|device| device.areas.iter().any(|area| !area.ignored));
    vg.pvs.iter().filter(used).filter_map(present).collect()
}
