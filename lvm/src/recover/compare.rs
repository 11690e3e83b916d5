//! Committed metadata against the kernel's tables.

use std::collections::BTreeMap;
use std::fmt;

use devices::DeviceNumber;

use super::expected::{Expected, ExpectedDevice, Found, Key, Line, Place};
use super::live::LiveDevice;
use super::made::{Made, Spot};
use crate::dm::{Activity, TargetLine};
use crate::metadata::Vg;
use crate::{LvName, Uuid};

/// One way in which the kernel's side of a group is not what the committed metadata say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A device is suspended: whoever reads it, hangs.
    Suspended {
        /// The device's name.
        device: String,
    },
    /// A table is loaded that nothing committed asks for; the next resume would make it live.
    InactiveTable {
        /// The device's name.
        device: String,
    },
    /// A device has no table in use: its making was interrupted.
    NoTable {
        /// The device's name.
        device: String,
    },
    /// A device belongs to a volume that the metadata do not have.
    Orphan {
        /// The device's name.
        device: String,
        /// How often it is open.
        open_count: u32,
    },
    /// A device that only serves another one is there, and the other one is not.
    Unused {
        /// The device's name.
        device: String,
    },
    /// A device belongs to a volume that has no such device by its metadata.
    Unexpected {
        /// The device's name.
        device: String,
    },
    /// A device has another name than its volume.
    Name {
        /// The device's name.
        device: String,
        /// The name that it should have.
        committed: String,
    },
    /// A device's table leads to other data than the metadata say.
    Table {
        /// The volume.
        volume: LvName,
        /// The device's name.
        device: String,
        /// What the metadata say of the first line that differs, in sectors; `nothing` where the table is too long.
        committed: String,
        /// What the kernel has there; `nothing` where the table is too short.
        live: String,
    },
    /// The kernel's transaction id of a thin pool is not the group's.
    Transaction {
        /// The pool.
        pool: LvName,
        /// The group's.
        committed: u64,
        /// The kernel's.
        live: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended { device } => write!(f, "device {device} is suspended"),
            Self::InactiveTable { device } => {
                write!(f, "device {device} has a table loaded that is not committed")
            }
            Self::NoTable { device } => write!(f, "device {device} has no table"),
            Self::Orphan { device, open_count: 0 } => {
                write!(f, "device {device} belongs to no volume of the group")
            }
            Self::Orphan { device, open_count } => {
                write!(f, "device {device} belongs to no volume of the group and is open {open_count} times")
            }
            Self::Unused { device } => write!(f, "device {device} serves a volume that is not active"),
            Self::Unexpected { device } => write!(f, "device {device} is none that its volume has"),
            Self::Name { device, committed } => {
                write!(f, "device {device} should be called {committed}")
            }
            Self::Table { volume, device, committed, live } => {
                write!(f, "device {device} of volume {volume} has {live} where the metadata say {committed}")
            }
            Self::Transaction { pool, committed, live } => write!(
                f,
                "thin pool {pool} has transaction id {live} in the kernel and {committed} in the group's metadata"
            ),
        }
    }
}

impl Difference {
    /// Whether it is a pool that is one transaction behind, which loading its tables anew mends.
    pub(crate) fn is_behind(&self) -> bool {
        match self {
            Self::Transaction { committed, live, .. } => live.checked_add(1) == Some(*committed),
            _ => false,
        }
    }

    /// Whether commands on the group may do harm before this is in order. A thin pool that is out of step with the
    /// group is refused by itself, and the rest of the group goes on.
    #[must_use]
    pub const fn closes_group(&self) -> bool {
        !matches!(self, Self::Transaction { .. })
    }
}

/// Compares the kernel's devices of a group with its committed metadata.
///
/// Only what leads to data counts: devices, offsets, lengths, thin ids; tuning may differ. A volume that is not active
/// has no devices, which is no difference.
#[must_use]
pub fn compare(vg: &Vg, live: &[LiveDevice]) -> Vec<Difference> {
    compare_volumes(vg, live).into_iter().map(|(_, difference)| difference).collect()
}

/// As [`compare`], with the volume that each device serves.
pub(super) fn compare_volumes(vg: &Vg, live: &[LiveDevice]) -> Vec<(Uuid, Difference)> {
    let expected = Expected::of(vg);
    let numbers: BTreeMap<Key, DeviceNumber> = live
        .iter()
        .filter_map(|device| match expected.identify(&device.serves) {
            Found::Device(key) => Some((key, device.info.number)),
            _ => None,
        })
        .collect();
    let of = |device| differences(vg, &expected, &numbers, device);
    live.iter().flat_map(|device| of(device).into_iter().map(|found| (device.serves.lv, found))).collect()
}

fn differences(
    vg: &Vg,
    expected: &Expected<'_>,
    numbers: &BTreeMap<Key, DeviceNumber>,
    live: &LiveDevice,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let device = live.name();
    if live.info.activity == Activity::Suspended {
        found.push(Difference::Suspended { device: device.clone() });
    }
    if live.info.has_inactive_table {
        found.push(Difference::InactiveTable { device: device.clone() });
    }
    if serves_nobody(vg, live) {
        found.push(Difference::Unused { device: device.clone() });
    }
    let expected = match expected.identify(&live.serves) {
        Found::StandIn => return found,
        Found::NoVolume => {
            found.push(Difference::Orphan { device, open_count: live.info.open_count });
            return found;
        }
        Found::NoDevice => {
            found.push(Difference::Unexpected { device });
            return found;
        }
        Found::Device(key) => expected.device(key),
    };
    if !live.info.has_live_table {
        found.push(Difference::NoTable { device });
        return found;
    }
    let Some(expected) = expected else { return found };
    if device != expected.name && expected.other_name.as_ref() != Some(&device) {
        found.push(Difference::Name { device: device.clone(), committed: expected.name.clone() });
    }
    found.extend(table_difference(vg, expected, numbers, live, device));
    if let (Some(pool), Some(id)) = (vg.lv_by_uuid(live.serves.lv), live.transaction_id)
        && let Some(committed) = pool.as_thin_pool().map(|pool| pool.transaction_id)
        && committed != id
    {
        found.push(Difference::Transaction { pool: pool.name.clone(), committed, live: id });
    }
    found
}

/// Whether a device that users never open is open by nobody.
fn serves_nobody(vg: &Vg, live: &LiveDevice) -> bool {
    let Some(lv) = vg.lv_by_uuid(live.serves.lv) else { return false };
    // A pool without volumes is active by itself, under its own name.
    let beneath = vg.dm_name(lv, None).is_ok_and(|name| name != live.name());
    live.info.open_count == 0 && (beneath || !vg.is_visible(lv))
}

/// The first line in which a table is not the expected one.
fn table_difference(
    vg: &Vg,
    expected: &ExpectedDevice,
    numbers: &BTreeMap<Key, DeviceNumber>,
    live: &LiveDevice,
    device: String,
) -> Option<Difference> {
    let lines = expected.lines.as_ref()?;
    let segments = &live.table.segments;
    let rows = (0..lines.len().max(segments.len())).map(|index| (lines.get(index), segments.get(index)));
    let (want, have) = rows.into_iter().find(|pair| match pair {
        (Some(want), Some(have)) => !line_fits(want, have, numbers),
        _ => true,
    })?;
    let nothing = || "nothing".to_owned();
    Some(Difference::Table {
        volume: vg.lv_by_uuid(expected.key.lv)?.name.clone(),
        device,
        committed: want.map_or_else(nothing, Line::to_string),
        live: have.map_or_else(nothing, |have| {
            format!("{} at {}: {}", have.len.get(), have.start.get(), Made::from(&have.target))
        }),
    })
}

fn line_fits(want: &Line, have: &TargetLine, numbers: &BTreeMap<Key, DeviceNumber>) -> bool {
    let live = Made::from(&have.target);
    let fits = |made: &Made<Place>| {
        // A device that is not there is no device of the table.
        let mut absent = false;
        let made = made.map(|place| match place {
            Place::Pv { device, start, .. } => device.map(|device| Spot { device, start: *start }),
            Place::Device { replaceable: true, .. } => None,
            Place::Device { key, start, .. } => {
                let device = numbers.get(key).copied();
                absent |= device.is_none();
                device.map(|device| Spot { device, start: *start })
            }
        });
        !absent && made.fits(&live)
    };
    want.start == have.start && want.len == have.len && want.any_of.iter().any(fits)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: ", self.len.get(), self.start.get())?;
        let choices: Vec<String> = self.any_of.iter().map(Made::to_string).collect();
        f.write_str(&choices.join(" or "))
    }
}
