//! Why a device may not be used.

use std::fmt;
use std::path::PathBuf;

use crate::Bytes;

/// Whether naming a device by its path lifts a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bar {
    /// The device is not used, whatever anybody says.
    Always,
    /// The device is used only where it is named itself (its path, or a name pattern for its kind).
    UnlessNamed,
}

/// Why a device may not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It has no size: a drive without a medium, a loop device without a file, an array that does not run.
    NoMedium,
    /// It is smaller than the policy's minimum.
    TooSmall {
        /// Its size.
        size: Bytes,
        /// The least that is used.
        minimum: Bytes,
    },
    /// It refuses writes.
    ReadOnly,
    /// Its medium can be taken out.
    Removable,
    /// The driver says that it does not work now.
    Fault {
        /// The driver's word: `offline`, `blocked`.
        state: String,
    },
    /// Device-mapper has suspended it; it is not opened, for that might hang.
    Suspended,
    /// It is made of a device that device-mapper has suspended; it is not read, for that might hang.
    SuspendedBelow {
        /// That device's name.
        device: String,
    },
    /// It can be written only zone by zone.
    Zoned,
    /// It is a CD, a diskette, memory, raw flash, or nothing at all.
    NoDisk {
        /// `rom`, `floppy`, `zram`, `ram`, `flash`, `null`.
        kind: &'static str,
    },
    /// It is a disk of another machine.
    Network {
        /// `nbd`, `rbd`, `drbd`, `aoe`, `rnbd`.
        driver: &'static str,
    },
    /// It is a disk that a program or another storage system of this host offers.
    Offered {
        /// `zvol`, `ublk`.
        by: &'static str,
    },
    /// It is a file as a disk.
    Loop {
        /// The file.
        file: PathBuf,
    },
    /// It is a file that has been removed: everything on it is gone at the next detach.
    LoopDeleted {
        /// Where the file was.
        file: PathBuf,
    },
    /// It is a file or device that kubelet gave to a pod.
    LoopOfKubelet {
        /// The file.
        file: PathBuf,
    },
    /// It is a volume of LVM.
    Volume {
        /// The group's name.
        group: String,
        /// The volume's name.
        volume: String,
    },
    /// It is made of other disks by device-mapper: opened encryption, or all paths to one disk.
    Mapped {
        /// `crypt`, `mpath`, `part`, `dm`.
        purpose: &'static str,
    },
    /// It is an md array.
    Array,
    /// It is a disk behind a cache of bcache.
    Cached,
    /// It holds a mounted filesystem.
    Mounted {
        /// Where.
        at: Vec<PathBuf>,
    },
    /// The kernel swaps to it.
    Swap,
    /// It is a PV of LVM.
    LvmPv {
        /// The group's name, where an active volume shows it.
        group: Option<String>,
    },
    /// It is a member of a RAID array.
    RaidMember {
        /// What wrote the label: `linux_raid_member`, `ddf_raid_member`.
        kind: String,
        /// The array that runs on it, if one does.
        array: Option<String>,
    },
    /// It is one path to a disk that has several.
    MultipathLeg {
        /// The device that joins the paths, if there is one.
        device: Option<String>,
    },
    /// The same disk is there under another name, over another path, and no multipath device joins the two.
    OtherPath {
        /// The other names.
        of: Vec<String>,
    },
    /// It is a backing or a cache device of bcache.
    Bcache {
        /// The bcache device that runs on it, if one does.
        device: Option<String>,
    },
    /// Other devices are built on it.
    Held {
        /// Their names.
        by: Vec<String>,
    },
    /// It has a partition table.
    PartitionTable {
        /// `gpt`, `dos`; `None` when only the kernel's list of partitions shows it.
        kind: Option<String>,
        /// The kernel's names of the partitions.
        partitions: Vec<String>,
    },
    /// It holds something.
    Signature {
        /// What, as libblkid calls it: `ext4`, `crypto_LUKS`.
        kind: String,
        /// Its label.
        label: Option<String>,
    },
    /// It holds signatures that contradict each other.
    Ambiguous {
        /// What was found.
        found: Vec<String>,
    },
    /// It could not be looked at.
    Unreadable {
        /// What was tried, and what the system answered.
        answer: String,
    },
    /// It did not answer in time.
    NoAnswer,
    /// It is a partition that firmware or a boot loader needs.
    BootPartition {
        /// What shows it: its type, or its name in the table.
        what: String,
    },
    /// It is a partition that holds partitions.
    ExtendedPartition,
    /// It is a partition of a disk that is used as a whole.
    DiskInUse {
        /// The disk's name.
        disk: String,
        /// How the disk is used.
        by: String,
    },
    /// It is a partition, and what its disk says about it is not known or contradicts the kernel.
    DiskUnknown {
        /// The disk's name.
        disk: String,
        /// What is wrong.
        why: String,
    },
    /// Somebody has claimed it for himself.
    Claimed,
}

impl Reason {
    /// A lasting word for programs.
    #[must_use]
    pub fn as_word(&self) -> &'static str {
        match self {
            Self::NoMedium => "no-medium",
            Self::TooSmall { .. } => "too-small",
            Self::ReadOnly => "read-only",
            Self::Removable => "removable",
            Self::Fault { .. } => "fault",
            Self::Suspended => "suspended",
            Self::SuspendedBelow { .. } => "suspended-below",
            Self::Zoned => "zoned",
            Self::NoDisk { .. } => "no-disk",
            Self::Network { .. } => "network",
            Self::Offered { .. } => "offered",
            Self::Loop { .. } => "loop",
            Self::LoopDeleted { .. } => "loop-deleted",
            Self::LoopOfKubelet { .. } => "loop-of-kubelet",
            Self::Volume { .. } => "volume",
            Self::Mapped { .. } => "mapped",
            Self::Array => "array",
            Self::Cached => "cached",
            Self::Mounted { .. } => "mounted",
            Self::Swap => "swap",
            Self::LvmPv { .. } => "lvm-pv",
            Self::RaidMember { .. } => "raid-member",
            Self::MultipathLeg { .. } => "multipath-leg",
            Self::OtherPath { .. } => "other-path",
            Self::Bcache { .. } => "bcache",
            Self::Held { .. } => "held",
            Self::PartitionTable { .. } => "partition-table",
            Self::Signature { .. } => "signature",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Unreadable { .. } => "unreadable",
            Self::NoAnswer => "no-answer",
            Self::BootPartition { .. } => "boot-partition",
            Self::ExtendedPartition => "extended-partition",
            Self::DiskInUse { .. } => "disk-in-use",
            Self::DiskUnknown { .. } => "disk-unknown",
            Self::Claimed => "claimed",
        }
    }

    /// Whether naming the device lifts the reason.
    #[must_use]
    pub fn bar(&self) -> Bar {
        match self {
            Self::Removable
            | Self::Network { .. }
            | Self::Offered { .. }
            | Self::Loop { .. }
            | Self::Mapped { .. }
            | Self::Array
            | Self::Cached => Bar::UnlessNamed,
            _ => Bar::Always,
        }
    }
}

/// A clause for a person: `mounted at /srv`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMedium => f.write_str("no medium, file or running array in it"),
            Self::TooSmall { size, minimum } => write!(f, "{size} is less than the minimum of {minimum}"),
            Self::ReadOnly => f.write_str("read-only"),
            Self::Removable => f.write_str("its medium is removable"),
            Self::Fault { state } => write!(f, "the driver calls it {state}"),
            Self::Suspended => f.write_str("suspended by device-mapper"),
            Self::SuspendedBelow { device } => {
                write!(f, "made of {device}, which device-mapper has suspended")
            }
            Self::Zoned => f.write_str("can be written only zone by zone"),
            Self::NoDisk { kind } => write!(f, "not a disk but {kind}"),
            Self::Network { driver } => write!(f, "a disk of another machine ({driver})"),
            Self::Offered { by } => write!(f, "a disk that is offered by other software of this host ({by})"),
            Self::Loop { file } => write!(f, "the file {}", file.display()),
            Self::LoopDeleted { file } => write!(
                f,
                "the removed file {}: what is on it is lost when the loop device is detached",
                file.display()
            ),
            Self::LoopOfKubelet { file } => write!(f, "kubelet's loop device for {}", file.display()),
            Self::Volume { group, volume } => write!(f, "the LVM volume {group}/{volume}"),
            Self::Mapped { purpose } => write!(f, "made of other disks by device-mapper ({purpose})"),
            Self::Array => f.write_str("an md array"),
            Self::Cached => f.write_str("a bcache device"),
            Self::Mounted { at } => write!(f, "mounted at {}", list(at.iter().map(|at| at.display()))),
            Self::Swap => f.write_str("in use as swap"),
            Self::LvmPv { group: Some(group) } => write!(f, "LVM PV of group {group}"),
            Self::LvmPv { group: None } => f.write_str("LVM PV"),
            Self::RaidMember { kind, array: Some(array) } => write!(f, "RAID member of {array} ({kind})"),
            Self::RaidMember { kind, array: None } => write!(f, "RAID member ({kind})"),
            Self::MultipathLeg { device: Some(device) } => {
                write!(f, "one path of the multipath device {device}")
            }
            Self::MultipathLeg { device: None } => f.write_str("one path of a multipath disk"),
            Self::OtherPath { of } => write!(f, "the same disk as {}, over another path", list(of)),
            Self::Bcache { device: Some(device) } => write!(f, "member of the bcache device {device}"),
            Self::Bcache { device: None } => f.write_str("bcache device"),
            Self::Held { by } => write!(f, "in use by {}", list(by)),
            Self::PartitionTable { kind, partitions } => {
                write!(f, "has a partition table")?;
                if let Some(kind) = kind {
                    write!(f, " ({kind})")?;
                }
                if !partitions.is_empty() {
                    write!(f, " with {}", list(partitions))?;
                }
                Ok(())
            }
            Self::Signature { kind, label: Some(label) } => write!(f, "has signature {kind} ({label})"),
            Self::Signature { kind, label: None } => write!(f, "has signature {kind}"),
            Self::Ambiguous { found } => write!(f, "has contradicting signatures: {}", list(found)),
            Self::Unreadable { answer } => write!(f, "cannot be looked at: {answer}"),
            Self::NoAnswer => f.write_str("did not answer in time"),
            Self::BootPartition { what } => write!(f, "boot or reserved partition ({what})"),
            Self::ExtendedPartition => f.write_str("extended partition"),
            Self::DiskInUse { disk, by } => write!(f, "its disk {disk} is used as a whole: {by}"),
            Self::DiskUnknown { disk, why } => write!(f, "its disk {disk}: {why}"),
            Self::Claimed => f.write_str("claimed by another program or mount"),
        }
    }
}

/// How many items a text names; a disk can be mounted at thousands of places.
const NAMED: usize = 4;

fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter();
    let mut text = items.by_ref().take(NAMED).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    match items.count() {
        0 => {}
        more => text.push_str(&format!(" and {more} more")),
    }
    text
}
