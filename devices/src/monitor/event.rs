//! What happens to devices.

use crate::Bytes;
use crate::discovery::{Disk, Identity};

/// What happened to a device. Each carries the device as it is now; a removed one as it was last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It came. Its links may follow in a change, when udevd is done with it.
    Added(Disk),
    /// It went.
    Removed(Disk),
    /// It has another size.
    Resized {
        /// The device as it is now.
        disk: Disk,
        /// The size that it had.
        from: Bytes,
    },
    /// Something else about it is different.
    Changed {
        /// The device as it is now.
        disk: Disk,
        /// What is different.
        what: Vec<Attribute>,
    },
}

/// Something about a device that can be different than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// Its links, and how far udevd is.
    Links,
    /// What it says of itself.
    Identity,
    /// What it is, or what its kind says: a mapping's name, a loop device's file, whether it is suspended.
    Type,
    /// Whether it can be written or used now.
    State,
    /// Its sectors and the like.
    Geometry,
    /// What udevd found on it.
    Content,
    /// What is built on it or what it is built on.
    Stack,
    /// Its partitions.
    Partitions,
}

impl Attribute {
    /// A lasting word: `links`, `stack`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Identity => "identity",
            Self::Type => "type",
            Self::State => "state",
            Self::Geometry => "geometry",
            Self::Content => "content",
            Self::Stack => "stack",
            Self::Partitions => "partitions",
        }
    }
}

impl Event {
    /// The device.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        match self {
            Self::Added(disk) | Self::Removed(disk) => disk,
            Self::Resized { disk, .. } | Self::Changed { disk, .. } => disk,
        }
    }

    /// A lasting word: `added`, `removed`, `resized`, `changed`.
    #[must_use]
    pub const fn as_word(&self) -> &'static str {
        match self {
            Self::Added(_) => "added",
            Self::Removed(_) => "removed",
            Self::Resized { .. } => "resized",
            Self::Changed { .. } => "changed",
        }
    }

    /// What happened between two looks at the device of one name.
    pub(super) fn between(before: Option<&Disk>, after: Option<&Disk>) -> Vec<Self> {
        match (before, after) {
            (None, None) => Vec::new(),
            (None, Some(after)) => vec![Self::Added(after.clone())],
            (Some(before), None) => vec![Self::Removed(before.clone())],
            (Some(before), Some(after)) if !is_still(before, after) => {
                vec![Self::Removed(before.clone()), Self::Added(after.clone())]
            }
            (Some(before), Some(after)) => {
                let mut events = Vec::new();
                if before.size != after.size {
                    events.push(Self::Resized { disk: after.clone(), from: before.size });
                }
                let what = differences(before, after);
                if !what.is_empty() {
                    events.push(Self::Changed { disk: after.clone(), what });
                }
                events
            }
        }
    }
}

/// Whether it is still the same device. A serial number that comes late is not another device; one that differs is.
fn is_still(before: &Disk, after: &Disk) -> bool {
    let same =
        |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
    before.number == after.number
        && (before.sequence == after.sequence || is_reattached(before, after))
        && same(&before.identity.wwn, &after.identity.wwn)
        && same(&before.identity.serial, &after.identity.serial)
}

/// Lets a device keep what it said of itself. One that goes loses that in sysfs before it is gone itself, and the event that
/// it went must still tell which one it was.
pub(super) fn remember(before: &Disk, after: &mut Disk) {
    if before.number != after.number || before.sequence.is_none() || before.sequence != after.sequence {
        return;
    }
    let facts = |identity: &Identity| {
        [&identity.wwn, &identity.serial, &identity.model, &identity.vendor].map(Option::is_some)
    };
    let (had, has) = (facts(&before.identity), facts(&after.identity));
    if had.iter().zip(has).any(|(had, has)| *had && !has) {
        after.identity = before.identity.clone();
    }
}

/// A loop device gets a new count with each file, and a drive with each medium, but the device stays.
fn is_reattached(before: &Disk, after: &Disk) -> bool {
    use crate::discovery::DiskType;
    matches!(before.kind, DiskType::Loop(_) | DiskType::Rom | DiskType::Floppy)
        || before.removable && after.removable
}

fn differences(before: &Disk, after: &Disk) -> Vec<Attribute> {
    let attributes = [
        (Attribute::Links, before.links != after.links || before.udev != after.udev),
        (Attribute::Identity, before.identity != after.identity),
        (Attribute::Type, before.kind != after.kind),
        (Attribute::State, before.read_only != after.read_only || before.fault != after.fault),
        (
            Attribute::Geometry,
            (before.logical_sector, before.physical_sector, before.rotational, before.zoned)
                != (after.logical_sector, after.physical_sector, after.rotational, after.zoned),
        ),
        (Attribute::Content, before.noted_content != after.noted_content),
        (
            Attribute::Stack,
            before.holders != after.holders
                || before.below != after.below
                || before.in_bcache != after.in_bcache,
        ),
        (Attribute::Partitions, before.partitions != after.partitions),
    ];
    attributes.into_iter().filter(|(_, differs)| *differs).map(|(attribute, _)| attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::made_up::MadeUp;

    #[test]
    fn a_disk_that_loses_its_names_on_its_way_out_is_told_with_them() {
        let mut made_up = MadeUp::new();
        made_up.device("sda", &[("diskseq", "7\n"), ("serial", "S1\n"), ("device/model", "M1\n")]);
        let known = made_up.discovery().disk("sda").unwrap();
        assert_eq!(known.identity.serial.as_deref(), Some("S1"));
        let mut going = known.clone();
        going.identity.serial = None;
        remember(&known, &mut going);
        assert_eq!(Event::between(Some(&known), Some(&going)), []);
        // A number that is used again is another disk's.
        let mut other = known.clone();
        (other.sequence, other.identity) = (Some(8), Identity::default());
        remember(&known, &mut other);
        assert_eq!(other.identity, Identity::default());
        // What comes late is no loss.
        let mut early = known.clone();
        early.identity.serial = None;
        let mut late = known.clone();
        remember(&early, &mut late);
        assert_eq!(late.identity, known.identity);
    }
}
