//! Physical volumes.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use devices::{Bytes, Sectors};

use super::seen::{Need, Seen};
use super::{Change, Group};
use crate::command::{PvChange, PvCreate, PvRemove, PvResize};
use crate::metadata::{Problem, Pv, PvFlag, Vg, View};
use crate::run::Scope;
use crate::{DevicePath, Error, Kind, Lvm, Tag, Uuid};

/// Metadata area of a PV. It cannot grow later; 16 MiB hold some 20,000 linear volumes.
const METADATA_SIZE: Bytes = Bytes::mib(16);
/// Metadata area of a PV on a small disk.
const METADATA_SIZE_SMALL: Bytes = Bytes::mib(4);
/// Disks below this are small.
const SMALL_BELOW: Bytes = Bytes::gib(16);

/// What is done about signatures found on a device that is to become a PV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OldContent {
    /// The device is refused.
    #[default]
    Refuse,
    /// They are wiped, and whatever they belonged to is lost. A PV that is in a group is refused even so.
    Wipe,
}

/// Whether extents of a PV may be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// They may.
    Allowed,
    /// They may not, as on a disk that is being emptied.
    Forbidden,
}

/// A PV to be made.
#[derive(Clone, Debug)]
pub struct NewPv {
    device: DevicePath,
    metadata_size: Option<Bytes>,
    old_content: OldContent,
    uuid: Option<Uuid>,
}

impl NewPv {
    /// A PV on that device, with a metadata area of 16 MiB (4 MiB below 16 GiB).
    #[must_use]
    pub const fn new(device: DevicePath) -> Self {
        Self { device, metadata_size: None, old_content: OldContent::Refuse, uuid: None }
    }

    /// With a metadata area of this size, at least 1 MiB.
    #[must_use]
    pub const fn metadata_size(mut self, size: Bytes) -> Self {
        self.metadata_size = Some(size);
        self
    }

    /// With this identity, so that who writes it down before knows the PV again. It must be new.
    #[must_use]
    pub const fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// With this done about signatures on it.
    #[must_use]
    pub const fn old_content(mut self, old_content: OldContent) -> Self {
        self.old_content = old_content;
        self
    }
}

impl Lvm {
    /// Makes a PV, or finds it made; one that is in a group already is refused.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] for a PV of a group, and where a signature is found that must not be wiped;
    /// [`Kind::NotFound`], [`Kind::Io`] for a device that is not there or does not answer;
    /// [`Kind::InvalidArgument`] for a metadata size that cannot be; and what LVM itself says.
    pub fn create_pv(&self, new: &NewPv) -> Result<Change, Error> {
        let tried = format!("make {} a PV", new.device);
        let device = new.device.resolved()?;
        let view = self.view()?;
        if let Some((vg, _)) = pv_of_a_group(&view, &device) {
            return Err(
                Error::new(Kind::InUse, tried).with_answer(format!("it is a PV of group {}", vg.name))
            );
        }
        if let Some(orphan) = view.orphans.iter().find(|orphan| is_on(&orphan.device.path, &device)) {
            if orphan.in_use_elsewhere {
                return Err(Error::new(Kind::InUse, tried)
                    .with_answer("its label says that a group uses it whose other devices are not here"));
            }
            self.flush(Scope::Free, &tried, vec![device.into()])?;
            return Ok(Change::Already(()));
        }
        let size = device_size(&device, &tried)?;
        let metadata_size = match new.metadata_size {
            Some(size) => super::size::check(size, &tried)?,
            None if size < SMALL_BELOW => super::size::check(METADATA_SIZE_SMALL, &tried)?,
            None => super::size::check(METADATA_SIZE, &tried)?,
        };
        if metadata_size < Sectors::new(2048) || metadata_size.to_bytes().is_none_or(|bytes| bytes >= size) {
            return Err(Error::new(Kind::InvalidArgument, tried).with_answer(format!(
                "a metadata area of {metadata_size} was asked for on a device of {size}; it is 1 MiB at least"
            )));
        }
        let command =
            PvCreate { device: &device, metadata_size, old_content: new.old_content, uuid: new.uuid };
        self.run(Scope::Free, &tried, &command)?;
        Ok(Change::Made(()))
    }

    /// Removes the label of a PV that is in no group; a device without a label is no PV already.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while it is in a group, [`Kind::NotFound`], and what LVM itself says.
    pub fn remove_pv(&self, device: &DevicePath) -> Result<Change, Error> {
        let tried = format!("remove PV {device}");
        let device = device.resolved()?;
        let view = self.view()?;
        if let Some((vg, _)) = pv_of_a_group(&view, &device) {
            return Err(Error::new(Kind::InUse, tried)
                .with_answer(format!("it is in group {}", vg.name))
                .with_advice("take it out of the group first"));
        }
        if !view.orphans.iter().any(|orphan| is_on(&orphan.device.path, &device)) {
            return Ok(Change::Already(()));
        }
        self.run(Scope::Free, &tried, &PvRemove { device: &device })?;
        Ok(Change::Made(()))
    }
}

impl Group {
    /// Takes the present sizes of all devices over into the group; repeated, it changes nothing.
    ///
    /// Returns the PVs that were resized.
    ///
    /// # Errors
    ///
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn resize_pvs(&self) -> Result<Change<Vec<Uuid>>, Error> {
        let tried = format!("resize PVs of group {}", self.label());
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let grown = |problem: &Problem| match problem {
            Problem::DeviceGrew { pv, device, .. } if seen.vg().pv(*pv).is_some() => {
                Some((*pv, device.clone()))
            }
            _ => None,
        };
        let grown: Vec<_> = seen.view().problems.iter().filter_map(grown).collect();
        if grown.is_empty() {
            return self.lvm.already(&seen, &tried, Vec::new());
        }
        let mut resized = Vec::new();
        for (pv, device) in grown {
            let device = DevicePath::new(&device)?.resolved()?;
            self.run(&seen, &tried, &PvResize { device: &device })?;
            resized.push(pv);
        }
        Ok(Change::Made(resized))
    }

    /// Says whether extents of a PV may be given out, and changes its tags.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn change_pv(
        &self,
        device: &DevicePath,
        allocation: Option<Allocation>,
        add: &[Tag],
        remove: &[Tag],
    ) -> Result<Change, Error> {
        let tried = format!("change PV {device}");
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let device = device.resolved()?;
        let pv = seen.pv_on(&device, &tried)?;
        let now = if pv.has(&PvFlag::Allocatable) { Allocation::Allowed } else { Allocation::Forbidden };
        let allocation = allocation.filter(|wanted| *wanted != now);
        let (add, remove) = super::group::changed_tags(&pv.tags, add, remove);
        if allocation.is_none() && add.is_empty() && remove.is_empty() {
            return self.lvm.already(&seen, &tried, ());
        }
        let change = PvChange { allocation, add: &add, remove: &remove };
        self.run(&seen, &tried, &(change, &device))?;
        Ok(Change::Made(()))
    }
}

impl Seen {
    /// The group's PV on a device.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`].
    pub(crate) fn pv_on(&self, device: &DevicePath, tried: &str) -> Result<&Pv, Error> {
        let on = |pv: &&Pv| pv.device.as_ref().is_some_and(|found| is_on(&found.path, device));
        self.vg().pvs.iter().find(on).ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("{device} is no PV of group {}", self.vg().name))
        })
    }
}

fn pv_of_a_group<'a>(view: &'a View, device: &DevicePath) -> Option<(&'a Vg, &'a Pv)> {
    view.vgs
        .iter()
        .flat_map(|vg| vg.pvs.iter().map(move |pv| (&**vg, pv)))
        .find(|(_, pv)| pv.device.as_ref().is_some_and(|found| is_on(&found.path, device)))
}

/// Whether the reader's path and a resolved one are the same device.
fn is_on(path: &Path, device: &DevicePath) -> bool {
    path == device.as_path() || path.canonicalize().is_ok_and(|path| path == device.as_path())
}

fn device_size(device: &DevicePath, tried: &str) -> Result<Bytes, Error> {
    let size = || File::open(device.as_path())?.seek(SeekFrom::End(0));
    size().map(Bytes::new).map_err(|cause| {
        Error::new(Kind::Io, tried).with_answer(format!("{device}: {cause}")).with_source(cause)
    })
}
