//! A device as programs get it.

use std::path::Path;

use devices::discovery::{Disk, DiskType, Inventory, Udev, Zoned};
use devices::eligibility::{Bar, Eligibility, Reason};
use serde::Serialize;

/// A block device.
#[derive(Debug, Serialize)]
pub(crate) struct Device {
    /// The kernel's name.
    pub(crate) name: String,
    pub(crate) path: String,
    /// `major:minor`.
    pub(crate) number: String,
    /// Like lsblk's: `disk`, `part`, `lvm`, …
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) size_bytes: u64,
    pub(crate) logical_sector_bytes: u64,
    pub(crate) physical_sector_bytes: u64,
    pub(crate) rotational: bool,
    pub(crate) zoned: &'static str,
    pub(crate) read_only: bool,
    pub(crate) removable: bool,
    pub(crate) transport: Option<&'static str>,
    /// What the device is known by over reboots: `wwn:…`, `serial:MODEL:SERIAL`, `partuuid:…`, `dm:…`, `md:…`.
    pub(crate) key: Option<String>,
    pub(crate) wwn: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) vendor: Option<String>,
    pub(crate) links: Vec<String>,
    /// `absent`, `pending`, `done`.
    pub(crate) udev: &'static str,
    pub(crate) partition: Option<Part>,
    /// The file behind a loop device.
    pub(crate) file: Option<String>,
    /// The name that device-mapper has for it.
    pub(crate) mapped_name: Option<String>,
    pub(crate) mounted_at: Vec<String>,
    /// The kernel's names of what it is made of, and of what is built on it.
    pub(crate) below: Vec<String>,
    pub(crate) bottom: Vec<String>,
    pub(crate) holders: Vec<String>,
    pub(crate) partitions: Vec<String>,
    /// `yes`, `by-name`, `no`.
    pub(crate) usable: &'static str,
    pub(crate) reasons: Vec<Against>,
}

/// What is known of a partition.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    number: u32,
    disk: String,
    start_bytes: Option<u64>,
    uuid: Option<String>,
    label: Option<String>,
    #[serde(rename = "type")]
    type_code: Option<String>,
}

/// Why a device may not be used.
#[derive(Debug, Serialize)]
pub(crate) struct Against {
    /// A lasting word: `too-small`, `mounted`, …
    pub(crate) reason: &'static str,
    pub(crate) text: String,
    /// Whether naming the device itself lifts it.
    pub(crate) lifted_by_name: bool,
}

impl From<&Reason> for Against {
    fn from(reason: &Reason) -> Self {
        Self {
            reason: reason.as_word(),
            text: reason.to_string(),
            lifted_by_name: reason.bar() == Bar::UnlessNamed,
        }
    }
}

impl Device {
    pub(crate) fn new(inventory: &Inventory, disk: &Disk, eligibility: &Eligibility) -> Self {
        let shown = |path: &Path| path.display().to_string();
        let bottom = inventory.all_below(disk).into_iter().filter(|disk| disk.below.is_empty());
        Self {
            name: disk.name.clone(),
            path: shown(&disk.path),
            number: disk.number.to_string(),
            kind: disk.type_word().to_owned(),
            size_bytes: disk.size.get(),
            logical_sector_bytes: disk.logical_sector.get(),
            physical_sector_bytes: disk.physical_sector.get(),
            rotational: disk.rotational,
            zoned: match disk.zoned {
                Zoned::HostAware => "host-aware",
                Zoned::HostManaged => "host-managed",
                _ => "no",
            },
            read_only: disk.read_only,
            removable: disk.removable,
            transport: disk.transport.map(devices::discovery::Transport::as_word),
            key: disk.key().map(|key| key.to_string()),
            wwn: disk.identity.wwn.clone(),
            serial: disk.identity.serial.clone(),
            model: disk.identity.model.clone(),
            vendor: disk.identity.vendor.clone(),
            links: disk.links.iter().map(|link| shown(link)).collect(),
            udev: match disk.udev {
                Udev::Done => "done",
                Udev::Pending => "pending",
                _ => "absent",
            },
            partition: match &disk.kind {
                DiskType::Partition(partition) => Some(Part {
                    number: partition.number,
                    disk: partition.disk.clone(),
                    start_bytes: partition.start.to_bytes().map(devices::Bytes::get),
                    uuid: partition.uuid.clone(),
                    label: partition.label.clone(),
                    type_code: partition.type_code.clone(),
                }),
                _ => None,
            },
            file: match &disk.kind {
                DiskType::Loop(Some(file)) => Some(shown(&file.path)),
                _ => None,
            },
            mapped_name: match &disk.kind {
                DiskType::Mapped(mapped) => Some(mapped.name.clone()),
                _ => None,
            },
            mounted_at: inventory.mounted_at(disk).iter().map(|at| shown(at)).collect(),
            below: disk.below.clone(),
            bottom: bottom.map(|disk| disk.name.clone()).collect(),
            holders: disk.holders.clone(),
            partitions: disk.partitions.clone(),
            usable: eligibility.verdict().as_word(),
            reasons: eligibility.reasons().iter().map(Against::from).collect(),
        }
    }
}
