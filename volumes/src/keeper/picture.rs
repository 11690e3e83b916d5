//! The disks that the classes of a node select, as far as a change of them matters.

use std::path::PathBuf;

use devices::discovery::{Discovery, Disk, Inventory, Udev};
use devices::selector::ClassDisks;
use devices::{Bytes, DeviceNumber};

use crate::class::DeviceClass;
use crate::pools::Selectors;
use crate::{ClassName, Error};

/// What was selected at one moment; two of them are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture(Vec<OfClass>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct OfClass {
    class: ClassName,
    disks: Vec<Seen>,
    contested: Vec<Seen>,
    missing: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    number: DeviceNumber,
    sequence: Option<u64>,
    size: Bytes,
    read_only: bool,
    fault: bool,
    /// What udevd found on it: a disk that was wiped may join.
    content: Option<String>,
    is_ready: bool,
}

impl Picture {
    pub(super) fn take(classes: &[DeviceClass]) -> Result<Self, Error> {
        Ok(Self::of(classes, &Discovery::host().inventory()?))
    }

    fn of(classes: &[DeviceClass], inventory: &Inventory) -> Self {
        let selectors = Selectors::of(classes.iter());
        let divided = selectors.divide(inventory);
        Self(classes.iter().zip(divided).map(|(class, disks)| OfClass::new(class, disks)).collect())
    }
}

impl OfClass {
    fn new(class: &DeviceClass, disks: ClassDisks<'_>) -> Self {
        Self {
            class: class.name.clone(),
            disks: disks.disks.iter().map(|selected| Seen::new(selected.disk)).collect(),
            contested: disks.contested.iter().map(|contested| Seen::new(contested.disk)).collect(),
            missing: disks.missing,
        }
    }
}

impl Seen {
    fn new(disk: &Disk) -> Self {
        Self {
            number: disk.number,
            sequence: disk.sequence,
            size: disk.size,
            read_only: disk.read_only,
            fault: disk.fault.is_some(),
            content: disk.noted_content.clone(),
            is_ready: disk.udev != Udev::Pending,
        }
    }
}
