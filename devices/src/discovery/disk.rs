//! One block device as the kernel shows it now.

use std::path::{Path, PathBuf};

use super::identity::{Identity, IdentityKey};
use super::mapped::Purpose;
use super::sysfs::Node;
use super::transport::Transport;
use super::udev::{Record, Udev};
use crate::{Bytes, DeviceNumber, Mapped, Sectors};

/// A block device as the kernel shows it now: a disk, a partition, or something made of others.
///
/// It is a snapshot: nothing in it changes when the device does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disk {
    /// The kernel's name (`sda1`, `dm-3`); not stable over boots.
    pub name: String,
    /// Its node in `/dev`.
    pub path: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's count of devices when this one came (Linux 5.15): tells a device from a later one of the same number.
    pub sequence: Option<u64>,
    /// What it is.
    pub kind: DiskType,
    /// Its size; zero for a drive without a medium or a loop device without a file.
    pub size: Bytes,
    /// The smallest unit that can be written.
    pub logical_sector: Bytes,
    /// The smallest unit that the disk writes without reading first.
    pub physical_sector: Bytes,
    /// Whether its medium turns, as far as the kernel knows.
    pub rotational: bool,
    /// Whether it must be written in zones.
    pub zoned: Zoned,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Whether its medium can be taken out.
    pub removable: bool,
    /// What the driver says when the device does not work now: `offline`, `blocked`, `dead`.
    pub fault: Option<String>,
    /// How it is reached; a partition has its disk's.
    pub transport: Option<Transport>,
    /// What it is known by.
    pub identity: Identity,
    /// udev's links to it (`/dev/disk/by-id/…`), sorted.
    pub links: Vec<PathBuf>,
    /// How far udevd is with it.
    pub udev: Udev,
    /// What udevd last found on it (`ext4`, `LVM2_member`); may be out of date, and decides nothing.
    pub noted_content: Option<String>,
    /// Whether bcache has registered it, as a backing or a cache device.
    pub in_bcache: bool,
    /// The kernel's names of the devices that it is made of: the disk of a partition, the legs of an array.
    pub below: Vec<String>,
    /// The kernel's names of the devices that are built on it, partitions not among them.
    pub holders: Vec<String>,
    /// The kernel's names of its partitions.
    pub partitions: Vec<String>,
}

/// What a block device is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskType {
    /// A whole disk.
    Disk,
    /// A part of a disk.
    Partition(Partition),
    /// Made by device-mapper.
    Mapped(Mapped),
    /// An array of the md driver.
    Md(Array),
    /// A file as a disk; `None` when no file is attached.
    Loop(Option<BackingFile>),
    /// A bcache device (`/dev/bcache0`).
    Bcache,
    /// Compressed memory.
    Zram,
    /// Memory.
    Ram,
    /// A CD, DVD or such.
    Rom,
    /// A diskette.
    Floppy,
    /// A disk of another machine: `nbd`, `rbd`, `drbd`, `aoe`, `rnbd`.
    Network(&'static str),
    /// A disk that a program or another storage system of this host offers: `zvol`, `ublk`.
    Offered(&'static str),
    /// Raw flash without a controller, behind a thin layer (`mtdblock`, `ubiblock`).
    Flash,
    /// The kernel's device for measurements, which keeps nothing (`nullb`).
    Null,
}

/// What is known of a partition, without reading its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number in the table, from 1.
    pub number: u32,
    /// Where it begins on its disk.
    pub start: Sectors,
    /// The kernel's name of its disk.
    pub disk: String,
    /// Its own uuid, from udev.
    pub uuid: Option<String>,
    /// Its name in the table, from udev.
    pub label: Option<String>,
    /// Its type in the table: a GUID, or a number like `0x83`, from udev.
    pub type_code: Option<String>,
}

/// What is known of an md array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Array {
    /// Its level: `raid1`.
    pub level: Option<String>,
    /// Its state: `clean`, `inactive`.
    pub state: Option<String>,
    /// Its uuid.
    pub uuid: Option<String>,
}

/// The file behind a loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackingFile {
    /// Where it was when it was attached.
    pub path: PathBuf,
    /// Whether it has been removed since: its data are gone at the next detach.
    pub deleted: bool,
}

/// How a disk must be written (the kernel's `queue/zoned`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Zoned {
    /// Anywhere, in any order.
    No,
    /// In any order, but best zone by zone.
    HostAware,
    /// Each zone from its beginning only.
    HostManaged,
}

impl Disk {
    /// The word for what it is, like lsblk's: `disk`, `part`, `lvm`, `crypt`, `mpath`, `raid1`, `loop`, `rom`.
    #[must_use]
    pub fn type_word(&self) -> &str {
        match &self.kind {
            DiskType::Disk => "disk",
            DiskType::Partition(_) => "part",
            DiskType::Mapped(mapped) => Purpose::of(mapped).as_word(),
            DiskType::Md(array) => array.level.as_deref().unwrap_or("md"),
            DiskType::Loop(_) => "loop",
            DiskType::Bcache => "bcache",
            DiskType::Zram => "zram",
            DiskType::Ram => "ram",
            DiskType::Rom => "rom",
            DiskType::Floppy => "floppy",
            DiskType::Network(driver) => driver,
            DiskType::Offered(by) => by,
            DiskType::Flash => "flash",
            DiskType::Null => "null",
        }
    }

    /// A name for the device that stays the same over reboots, where it has one.
    #[must_use]
    pub fn key(&self) -> Option<IdentityKey> {
        IdentityKey::of(self)
    }

    /// Whether device-mapper has suspended it: to open or read it may then hang until somebody resumes it.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        matches!(&self.kind, DiskType::Mapped(mapped) if mapped.suspended)
    }

    /// Whether the other is the same device as this one, and not another that has its name and number since.
    #[must_use]
    pub fn is_same_device(&self, other: &Self) -> bool {
        self.name == other.name
            && self.number == other.number
            && (self.sequence == other.sequence || self.sequence.is_none() || other.sequence.is_none())
            && self.identity.wwn == other.identity.wwn
            && self.identity.serial == other.identity.serial
    }

    /// `None` for a device that has no node (a path inside an NVMe multipath device), or that has just gone.
    pub(super) fn read(class_dir: &Path, name: &str, dev: &Path, udev_data: &Path) -> Option<Self> {
        let node = Node::find(class_dir, name)?;
        if node.is_set("hidden") {
            return None;
        }
        let number: DeviceNumber = node.number("dev")?;
        let record = Record::read(udev_data, number);
        let partition = node.has("partition");
        // A partition has the queue, the bus and the identity of its disk.
        let whole = if partition { node.parent()? } else { node.clone() };
        let kind = DiskType::read(&node, name, record.as_ref());
        let below = if partition { vec![whole.name()?] } else { node.names("slaves") };
        let size_of = |attribute: &str| Bytes::new(whole.number(attribute).unwrap_or(512));
        Some(Self {
            name: name.to_owned(),
            // The kernel writes a slash in a device's name as an exclamation mark (`cciss!c0d0`).
            path: dev.join(name.replace('!', "/")),
            number,
            sequence: whole.number("diskseq"),
            size: Sectors::new(node.number("size")?).to_bytes()?,
            logical_sector: size_of("queue/logical_block_size"),
            physical_sector: size_of("queue/physical_block_size"),
            rotational: whole.is_set("queue/rotational"),
            zoned: match whole.text("queue/zoned").as_deref() {
                Some("host-managed") => Zoned::HostManaged,
                Some("host-aware") => Zoned::HostAware,
                _ => Zoned::No,
            },
            // Refuses writes when it cannot be told, since that is the side on which nothing is written.
            read_only: node.text("ro").as_deref() != Some("0"),
            removable: whole.is_set("removable"),
            fault: fault(&whole),
            transport: Transport::of(&whole),
            identity: Identity::read(&whole, record.as_ref()),
            links: record.as_ref().map(|record| record.links_in(dev)).unwrap_or_default(),
            udev: udev_state(record.as_ref(), udev_data),
            noted_content: record
                .as_ref()
                .and_then(|record| record.get("ID_FS_TYPE").or_else(|| record.get("ID_PART_TABLE_TYPE")))
                .map(str::to_owned),
            in_bcache: node.has("bcache") && !matches!(kind, DiskType::Bcache),
            kind,
            below,
            holders: node.names("holders"),
            partitions: node.partitions(),
        })
    }
}

/// The driver's word for a device that does not work now.
fn fault(node: &Node) -> Option<String> {
    node.text("device/state").filter(|state| !["running", "live", "created"].contains(&state.as_str()))
}

fn udev_state(record: Option<&Record>, udev_data: &Path) -> Udev {
    match record {
        Some(record) if record.is_initialised() => Udev::Done,
        _ if udev_data.is_dir() => Udev::Pending,
        _ => Udev::Absent,
    }
}

impl DiskType {
    fn read(node: &Node, name: &str, record: Option<&Record>) -> Self {
        if node.has("partition") {
            return Self::Partition(Partition::read(node, record));
        }
        if let Some(dm_name) = node.text("dm/name") {
            return Self::Mapped(Mapped {
                name: dm_name,
                uuid: node.text("dm/uuid").unwrap_or_default(),
                // Taken for suspended when it cannot be told, since that is the side on which nothing hangs.
                suspended: node.text("dm/suspended").as_deref() != Some("0"),
            });
        }
        if node.has("md") {
            let uuid = record.and_then(|record| record.get("MD_UUID")).map(str::to_owned);
            return Self::Md(Array {
                level: node.text("md/level"),
                state: node.text("md/array_state"),
                uuid: uuid.or_else(|| node.text("md/uuid")),
            });
        }
        // Type 5 is CD-ROM (SPC-4, table 58).
        if node.text("device/type").as_deref() == Some("5") {
            return Self::Rom;
        }
        let is = |driver: &str| {
            name.strip_prefix(driver).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        match name {
            // The kernel tells of such a device before, and again after, its directory of attributes is there. It is
            // nothing to be opened then.
            _ if is("dm-") => {
                Self::Mapped(Mapped { name: String::new(), uuid: String::new(), suspended: true })
            }
            _ if is("md") => Self::Md(Array { level: None, state: None, uuid: None }),
            _ if is("loop") => Self::Loop(BackingFile::read(node)),
            _ if is("bcache") => Self::Bcache,
            _ if is("zram") => Self::Zram,
            _ if is("ram") => Self::Ram,
            _ if is("sr") => Self::Rom,
            _ if is("fd") => Self::Floppy,
            _ if is("nbd") => Self::Network("nbd"),
            _ if is("rbd") => Self::Network("rbd"),
            _ if is("drbd") => Self::Network("drbd"),
            _ if is("rnbd") => Self::Network("rnbd"),
            // Driver, shelf and slot of ATA over Ethernet.
            _ if name.starts_with("etherd!") => Self::Network("aoe"),
            _ if is("zd") => Self::Offered("zvol"),
            _ if is("ublkb") => Self::Offered("ublk"),
            _ if is("mtdblock") || is("ubiblock") => Self::Flash,
            _ if is("nullb") => Self::Null,
            _ if is("pktcdvd") => Self::Rom,
            _ => Self::Disk,
        }
    }
}

impl Partition {
    fn read(node: &Node, record: Option<&Record>) -> Self {
        let entry = |key: &str| record.and_then(|record| record.get(key)).map(str::to_owned);
        Self {
            number: node.number("partition").unwrap_or_default(),
            start: Sectors::new(node.number("start").unwrap_or_default()),
            disk: node.parent().and_then(|disk| disk.name()).unwrap_or_default(),
            uuid: entry("ID_PART_ENTRY_UUID"),
            label: record.and_then(|record| record.decoded("ID_PART_ENTRY_NAME")),
            type_code: entry("ID_PART_ENTRY_TYPE"),
        }
    }
}

impl BackingFile {
    /// The kernel adds ` (deleted)` to the path of a file that has been removed (`d_path`).
    fn read(node: &Node) -> Option<Self> {
        let shown = node.text("loop/backing_file")?;
        let (path, deleted) = match shown.strip_suffix(" (deleted)") {
            Some(path) if !Path::new(&shown).exists() => (path, true),
            _ => (shown.as_str(), false),
        };
        Some(Self { path: PathBuf::from(path), deleted })
    }
}
