//! All groups found on a set of devices, and what is wrong with them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use devices::Bytes;

use super::{OrphanPv, Pv, Vg};
use crate::{Error, Uuid, VgName};

/// What the metadata on a set of devices say.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct View {
    /// The groups, by name and then by uuid. A group that has not changed is shared with the view before.
    pub vgs: Vec<Arc<Vg>>,
    /// PVs that belong to no group.
    pub orphans: Vec<OrphanPv>,
    /// What is not as it should be. A view with problems is still the best that can be told.
    pub problems: Vec<Problem>,
}

impl View {
    /// The group of this name; `None` also when several have it, which [`View::vgs_named`] tells apart.
    #[must_use]
    pub fn vg(&self, name: &str) -> Option<&Vg> {
        let mut named = self.vgs_named(name);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    /// Every group of this name.
    pub fn vgs_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Vg> {
        self.vgs.iter().map(|vg| &**vg).filter(move |vg| vg.name.as_str() == name)
    }

    /// The group of this identity.
    #[must_use]
    pub fn vg_by_uuid(&self, uuid: Uuid) -> Option<&Vg> {
        self.vgs.iter().map(|vg| &**vg).find(|vg| vg.uuid == uuid)
    }

    /// The PV of this identity and its group.
    #[must_use]
    pub fn pv(&self, uuid: Uuid) -> Option<(&Vg, &Pv)> {
        self.vgs.iter().find_map(|vg| Some((&**vg, vg.pv(uuid)?)))
    }

    /// Copies that differ from the newest ones, by device and number.
    pub(super) fn differing_copies(&self) -> Vec<(PathBuf, u64)> {
        let differing = self.problems.iter().filter_map(|problem| match problem {
            Problem::OutdatedCopy { device, seqno, .. } | Problem::DifferingCopies { device, seqno, .. } => {
                Some((device.clone(), *seqno))
            }
            _ => None,
        });
        differing.collect()
    }
}

/// Something that is not as it should be with the metadata on the devices read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A device could not be read.
    Unreadable {
        /// The device.
        device: PathBuf,
        /// Why.
        error: Arc<Error>,
    },
    /// A device-mapper device is suspended: a read would hang, so it was not opened.
    Suspended {
        /// The device.
        device: PathBuf,
    },
    /// A device has a label whose checksum or fields are wrong; it counts as having none.
    BadLabel {
        /// The device.
        device: PathBuf,
        /// What is wrong.
        reason: Defect,
    },
    /// The header of a metadata area is wrong; the area was not used.
    BadHeader {
        /// The device.
        device: PathBuf,
        /// Where the area begins.
        start: Bytes,
        /// What is wrong.
        reason: Defect,
    },
    /// The text in a metadata area is wrong, and stayed so when it was read again under the group's lock; the
    /// area was not used.
    BadText {
        /// The device.
        device: PathBuf,
        /// Where the area begins.
        start: Bytes,
        /// What is wrong.
        reason: Defect,
    },
    /// LVM was told not to use a metadata area.
    IgnoredArea {
        /// The device.
        device: PathBuf,
        /// Where the area begins.
        start: Bytes,
    },
    /// A copy of the metadata is older than the newest one.
    OutdatedCopy {
        /// The device with the old copy.
        device: PathBuf,
        /// The group.
        vg: Uuid,
        /// The old copy's number.
        seqno: u64,
        /// The newest copy's number.
        newest: u64,
    },
    /// Two copies of the same number differ; the one that was read first was used.
    DifferingCopies {
        /// The device with the copy that was not used.
        device: PathBuf,
        /// The group.
        vg: Uuid,
        /// The number of both copies.
        seqno: u64,
    },
    /// Two devices carry the same PV; LVM refuses to change the group.
    DuplicatePv {
        /// The PV.
        pv: Uuid,
        /// The device that was used.
        used: PathBuf,
        /// The other device.
        other: PathBuf,
    },
    /// Two groups have the same name; commands by name are refused.
    SameName {
        /// The name.
        name: VgName,
        /// The groups.
        vgs: Vec<Uuid>,
    },
    /// A PV of a group is on no device that was read.
    MissingPv {
        /// The group.
        vg: Uuid,
        /// The PV.
        pv: Uuid,
        /// Where LVM last saw it.
        hint: Option<Box<str>>,
    },
    /// A PV is there, but the group was changed while it was away and counts it as missing until it is restored.
    FlaggedMissing {
        /// The group.
        vg: Uuid,
        /// The PV.
        pv: Uuid,
        /// Where it was found.
        device: PathBuf,
    },
    /// A PV's device is larger than the group knows: it was grown, and the PV was not.
    DeviceGrew {
        /// The PV.
        pv: Uuid,
        /// The device.
        device: PathBuf,
        /// What the PV was made for.
        recorded: Bytes,
        /// What the device has now.
        actual: Bytes,
    },
    /// A PV's device is smaller than its extents need.
    DeviceShrank {
        /// The PV.
        pv: Uuid,
        /// The device.
        device: PathBuf,
        /// What the PV was made for.
        recorded: Bytes,
        /// What the device has now.
        actual: Bytes,
    },
    /// Two groups claim the same PV.
    ClaimedTwice {
        /// The PV.
        pv: Uuid,
        /// The groups.
        vgs: Vec<Uuid>,
    },
    /// The label says that a group uses this PV, but no metadata found name it.
    GroupNotFound {
        /// The PV.
        pv: Uuid,
        /// The device.
        device: PathBuf,
    },
}

/// What is wrong with a piece of metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The checksum does not match.
    #[error("its checksum is {found:08x}, and its bytes give {computed:08x}")]
    Checksum {
        /// What is written there.
        found: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A field has a value that cannot be.
    #[error("its {field} cannot be {value}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// It ends too early.
    #[error("it ends within its {0}")]
    Short(&'static str),
    /// A text does not follow the grammar of LVM's metadata.
    #[error("line {line}: {what}")]
    Syntax {
        /// The line, from 1.
        line: u32,
        /// What is wrong there.
        what: &'static str,
    },
    /// A text follows the grammar but says nothing sensible.
    #[error("in {place}: {what}")]
    Meaning {
        /// The section.
        place: String,
        /// What is wrong there.
        what: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { device, error } => write!(f, "{}: {error}", device.display()),
            Self::Suspended { device } => {
                write!(f, "{} is suspended; it was not read, since a read would hang", device.display())
            }
            Self::BadLabel { device, reason } => {
                write!(f, "the PV label on {} is not valid: {reason}", device.display())
            }
            Self::BadHeader { device, start, reason } => {
                write!(
                    f,
                    "the metadata area of {} at {start} has no valid header: {reason}",
                    device.display()
                )
            }
            Self::BadText { device, start, reason } => {
                write!(f, "the metadata of {} at {start} are not valid: {reason}", device.display())
            }
            Self::IgnoredArea { device, start } => {
                write!(f, "the metadata area of {} at {start} is set to be ignored", device.display())
            }
            Self::OutdatedCopy { device, vg, seqno, newest } => {
                let device = device.display();
                write!(f, "{device} holds metadata {seqno} of group {vg}, whose newest are {newest}")
            }
            Self::DifferingCopies { device, vg, seqno } => {
                let device = device.display();
                write!(f, "{device} holds other metadata {seqno} of group {vg} than the other PVs do")
            }
            Self::DuplicatePv { pv, used, other } => {
                let (used, other) = (used.display(), other.display());
                write!(f, "PV {pv} is on {used} and on {other}; LVM refuses changes until one is gone")
            }
            Self::SameName { name, vgs } => {
                write!(f, "{} groups are called {name}; rename one by its uuid", vgs.len())
            }
            Self::MissingPv { vg, pv, hint } => {
                write!(f, "group {vg} misses PV {pv}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, ", last seen on {hint}"))
            }
            Self::FlaggedMissing { vg, pv, device } => {
                let device = device.display();
                write!(
                    f,
                    "PV {pv} is back on {device}, but group {vg} counts it as missing until it is restored"
                )
            }
            Self::DeviceGrew { pv, device, recorded, actual } => {
                let device = device.display();
                write!(f, "{device} has grown from {recorded} to {actual}; resize PV {pv} to use the rest")
            }
            Self::DeviceShrank { pv, device, recorded, actual } => {
                let device = device.display();
                write!(f, "{device} has {actual}, but PV {pv} was made for {recorded}")
            }
            Self::ClaimedTwice { pv, vgs } => write!(f, "{} groups claim PV {pv}", vgs.len()),
            Self::GroupNotFound { pv, device } => {
                let device = device.display();
                write!(
                    f,
                    "PV {pv} on {device} is in use by a group whose metadata are on none of the devices read"
                )
            }
        }
    }
}
