//! The reasons that show without opening the device.

use super::Policy;
use super::reason::Reason;
use crate::Mapped;
use crate::discovery::{BackingFile, Disk, DiskType, Inventory, Partition, Purpose, Zoned};

/// Types of partitions that firmware or boot loaders need: EFI system, BIOS boot, Microsoft reserved, Windows recovery,
/// PReP boot, extended boot loader, Apple boot (UEFI 2.10, table 5.7, and the makers' own lists).
const BOOT_TYPES: [&str; 10] = [
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",
    "21686148-6449-6e6f-744e-656564454649",
    "e3c9e316-0b5c-4db8-817d-f92df00215ae",
    "de94bba4-06d1-4d40-a16a-bfd50179d6ac",
    "9e1a2d38-c612-4316-aa26-8b49521e5a8b",
    "bc13c2ff-59e6-4262-a352-b275fd6f7172",
    "426f6f74-0000-11aa-aa11-00306543ecac",
    "0xef",
    "0x41",
    "0x27",
];

/// Types of a partition that holds others, in an MBR table.
const EXTENDED_TYPES: [&str; 3] = ["0x5", "0xf", "0x85"];

/// Everything that speaks against a device, as sysfs, udev and the mount tables show it.
pub(super) fn seen(inventory: &Inventory, disk: &Disk, policy: &Policy) -> Vec<Reason> {
    // A part of a pod's file, of a CD or of another machine's disk is no better than the whole.
    let mut reasons: Vec<Reason> = of_its_kind(inventory.whole(disk)).into_iter().collect();
    reasons.extend(of_its_state(inventory, disk, policy));
    reasons.extend(of_its_use(inventory, disk));
    if let DiskType::Partition(partition) = &disk.kind {
        reasons.extend(of_a_partition(inventory, partition));
    }
    reasons
}

fn of_its_kind(disk: &Disk) -> Option<Reason> {
    Some(match &disk.kind {
        DiskType::Rom => Reason::NoDisk { kind: "rom" },
        DiskType::Floppy => Reason::NoDisk { kind: "floppy" },
        DiskType::Zram => Reason::NoDisk { kind: "zram" },
        DiskType::Ram => Reason::NoDisk { kind: "ram" },
        DiskType::Null => Reason::NoDisk { kind: "null" },
        DiskType::Flash => Reason::NoDisk { kind: "flash" },
        DiskType::Network(driver) => Reason::Network { driver },
        DiskType::Offered(by) => Reason::Offered { by },
        DiskType::Loop(file) => of_a_loop(file.as_ref()?),
        DiskType::Mapped(mapped) => of_a_mapping(mapped),
        DiskType::Md(_) => Reason::Array,
        DiskType::Bcache => Reason::Cached,
        DiskType::Disk | DiskType::Partition(_) => return None,
    })
}

fn of_a_loop(file: &BackingFile) -> Reason {
    let path = file.path.clone();
    let text = path.to_string_lossy();
    if text.contains("plugins/kubernetes.io") || path.components().any(|part| part.as_os_str() == "kubelet") {
        return Reason::LoopOfKubelet { file: path };
    }
    if file.deleted { Reason::LoopDeleted { file: path } } else { Reason::Loop { file: path } }
}

fn of_a_mapping(mapped: &Mapped) -> Reason {
    match Purpose::of(mapped) {
        Purpose::Lvm { group, volume } => Reason::Volume { group, volume },
        purpose => Reason::Mapped { purpose: purpose.as_word() },
    }
}

fn of_its_state(inventory: &Inventory, disk: &Disk, policy: &Policy) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if disk.is_suspended() {
        reasons.push(Reason::Suspended);
    } else if let Some(below) = inventory.suspended_below(disk) {
        reasons.push(Reason::SuspendedBelow { device: below.name.clone() });
    }
    if let Some(state) = &disk.fault {
        reasons.push(Reason::Fault { state: state.clone() });
    }
    if disk.size.get() == 0 {
        reasons.push(Reason::NoMedium);
    } else if disk.size < policy.minimum_size {
        reasons.push(Reason::TooSmall { size: disk.size, minimum: policy.minimum_size });
    }
    if disk.read_only {
        reasons.push(Reason::ReadOnly);
    }
    // What these hold can be taken out by their very nature.
    if disk.removable && !matches!(disk.kind, DiskType::Rom | DiskType::Floppy) {
        reasons.push(Reason::Removable);
    }
    if disk.zoned == Zoned::HostManaged {
        reasons.push(Reason::Zoned);
    }
    reasons
}

fn of_its_use(inventory: &Inventory, disk: &Disk) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let at = inventory.mounted_at(disk);
    if !at.is_empty() {
        reasons.push(Reason::Mounted { at: at.to_vec() });
    }
    if inventory.is_swap(disk) {
        reasons.push(Reason::Swap);
    }
    reasons.extend(of_its_holders(inventory, disk));
    if !disk.partitions.is_empty() {
        reasons.push(Reason::PartitionTable { kind: None, partitions: disk.partitions.clone() });
    }
    // Before multipathd has joined the paths, udev's note is all that shows them.
    let is_leg = reasons.iter().any(|reason| matches!(reason, Reason::MultipathLeg { .. }));
    if disk.noted_content.as_deref() == Some("mpath_member") && !is_leg {
        reasons.push(Reason::MultipathLeg { device: None });
    } else if !is_leg {
        let others = inventory.other_paths(disk);
        if !others.is_empty() {
            let of = others.into_iter().map(|other| other.name.clone()).collect();
            reasons.push(Reason::OtherPath { of });
        }
    }
    reasons
}

fn of_its_holders(inventory: &Inventory, disk: &Disk) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut others = Vec::new();
    let mut in_bcache = disk.in_bcache;
    for name in &disk.holders {
        let reason = match inventory.by_name(name).map(|holder| &holder.kind) {
            Some(DiskType::Mapped(mapped)) => match Purpose::of(mapped) {
                Purpose::Lvm { group, .. } => Reason::LvmPv { group: Some(group) },
                Purpose::Multipath => Reason::MultipathLeg { device: Some(mapped.name.clone()) },
                _ => {
                    others.push(mapped.name.clone());
                    continue;
                }
            },
            Some(DiskType::Md(_)) => {
                Reason::RaidMember { kind: "linux_raid_member".to_owned(), array: Some(name.clone()) }
            }
            Some(DiskType::Bcache) => {
                in_bcache = false;
                Reason::Bcache { device: Some(name.clone()) }
            }
            _ => {
                others.push(name.clone());
                continue;
            }
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if in_bcache {
        reasons.push(Reason::Bcache { device: None });
    }
    if !others.is_empty() {
        reasons.push(Reason::Held { by: others });
    }
    reasons
}

/// What a partition's type and name in the table say against it.
pub(super) fn of_an_entry(type_code: &str, label: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let type_code = type_code.to_ascii_lowercase();
    let lower = label.to_lowercase();
    if BOOT_TYPES.contains(&type_code.as_str()) {
        reasons.push(Reason::BootPartition { what: format!("type {type_code}") });
    } else if ["bios", "boot", "reserved"].iter().any(|word| lower.contains(word)) {
        reasons.push(Reason::BootPartition { what: format!("name {label:?}") });
    }
    if EXTENDED_TYPES.contains(&type_code.as_str()) {
        reasons.push(Reason::ExtendedPartition);
    }
    reasons
}

fn of_a_partition(inventory: &Inventory, partition: &Partition) -> Vec<Reason> {
    let (type_code, label) = (partition.type_code.as_deref(), partition.label.as_deref());
    let mut reasons = of_an_entry(type_code.unwrap_or_default(), label.unwrap_or_default());
    if let Some(disk) = inventory.by_name(&partition.disk) {
        let mut uses = of_its_use(inventory, disk);
        uses.retain(|reason| !matches!(reason, Reason::PartitionTable { .. }));
        if let Some(reason) = uses.first() {
            reasons.push(Reason::DiskInUse { disk: disk.name.clone(), by: reason.to_string() });
        }
    }
    reasons
}
