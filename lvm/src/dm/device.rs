//! A device as such, apart from its table.

use devices::DeviceNumber;

use super::ioctl::{Header, flag};
use super::name::{DmName, DmUuid};

/// A version of the interface or of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Changes when nothing fits any more.
    pub major: u32,
    /// Grows with each addition.
    pub minor: u32,
    /// Grows with each correction.
    pub patch: u32,
}

/// A target that the kernel has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetVersion {
    /// `thin-pool`, `raid`, ….
    pub name: String,
    /// Its version.
    pub version: Version,
}

/// One device in the list of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number, which is used again after the device has gone.
    pub number: DeviceNumber,
    /// Its name.
    pub name: DmName,
    /// Its uuid, if its maker gave one.
    pub uuid: Option<DmUuid>,
    /// How many events it has had; it wraps.
    pub event_nr: u32,
}

/// Which of a device's two tables is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The one in use.
    Live,
    /// The one that the next resume puts in use.
    Inactive,
}

impl Slot {
    pub(super) const fn flag(self) -> u32 {
        match self {
            Self::Live => 0,
            Self::Inactive => flag::QUERY_INACTIVE,
        }
    }

    pub(super) const fn present_flag(self) -> u32 {
        match self {
            Self::Live => flag::ACTIVE_PRESENT,
            Self::Inactive => flag::INACTIVE_PRESENT,
        }
    }
}

/// Whether a device carries out what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It does.
    Running,
    /// All requests wait until it is resumed: whoever opens and reads it, hangs.
    Suspended,
    /// As above, by the kernel itself for a short while.
    SuspendedByKernel,
}

/// What the kernel knows of a device besides its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its number.
    pub number: DeviceNumber,
    /// Its name.
    pub name: DmName,
    /// Its uuid, if its maker gave one.
    pub uuid: Option<DmUuid>,
    /// How many events it has had; it wraps.
    pub event_nr: u32,
    /// How often it is open, by processes, mounts and devices above it.
    pub open_count: u32,
    /// Lines in its live table.
    pub targets: u32,
    /// Whether it carries out what it is asked.
    pub activity: Activity,
    /// A table is in use.
    pub has_live_table: bool,
    /// Another table waits for a resume.
    pub has_inactive_table: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// It will be removed at its last close.
    pub removed_on_close: bool,
}

impl Info {
    pub(super) fn from_header(header: Header) -> Self {
        let has = |bit: u32| header.flags & bit != 0;
        let activity = if has(flag::SUSPENDED) {
            Activity::Suspended
        } else if has(flag::INTERNAL_SUSPEND) {
            Activity::SuspendedByKernel
        } else {
            Activity::Running
        };
        Self {
            number: DeviceNumber::from_rdev(header.dev),
            event_nr: header.event_nr,
            open_count: header.open_count.try_into().unwrap_or(0),
            targets: header.target_count,
            activity,
            has_live_table: has(flag::ACTIVE_PRESENT),
            has_inactive_table: has(flag::INACTIVE_PRESENT),
            read_only: has(flag::READ_ONLY),
            removed_on_close: has(flag::DEFERRED_REMOVE),
            name: DmName::from_kernel(header.name),
            uuid: (!header.uuid.is_empty()).then(|| DmUuid::from_kernel(header.uuid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_facts() {
        let header = Header {
            flags: flag::SUSPENDED | flag::INACTIVE_PRESENT | flag::READ_ONLY,
            open_count: 2,
            dev: 0xfd05,
            name: b"a".to_vec(),
            ..Header::default()
        };
        let info = Info::from_header(header);
        assert_eq!(info.activity, Activity::Suspended);
        assert_eq!((info.has_live_table, info.has_inactive_table, info.read_only), (false, true, true));
        assert_eq!((info.open_count, info.uuid), (2, None));
        assert_eq!(info.number, DeviceNumber { major: 253, minor: 5 });
    }
}
