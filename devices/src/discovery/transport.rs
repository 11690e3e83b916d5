//! How a device is reached.

use std::fmt;
use std::path::{Component, Path};

use super::sysfs::Node;

/// How a disk is reached. Its word is what a selector compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// SATA or PATA.
    Ata,
    /// Serial-attached SCSI.
    Sas,
    /// Another kind of SCSI.
    Scsi,
    /// SCSI over IP.
    Iscsi,
    /// SCSI over Fibre Channel.
    FibreChannel,
    /// NVMe on a PCI bus.
    Nvme,
    /// NVMe over a network (TCP, RDMA, Fibre Channel).
    NvmeFabrics,
    /// A virtual machine's virtio disk.
    Virtio,
    /// A Xen guest's disk.
    Xen,
    /// USB.
    Usb,
    /// SD card or eMMC.
    Mmc,
    /// Persistent memory.
    Pmem,
}

impl Transport {
    /// Every way.
    pub const ALL: [Self; 12] = [
        Self::Ata,
        Self::Sas,
        Self::Scsi,
        Self::Iscsi,
        Self::FibreChannel,
        Self::Nvme,
        Self::NvmeFabrics,
        Self::Virtio,
        Self::Xen,
        Self::Usb,
        Self::Mmc,
        Self::Pmem,
    ];

    /// A lasting word: `nvme`, `sas`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Ata => "ata",
            Self::Sas => "sas",
            Self::Scsi => "scsi",
            Self::Iscsi => "iscsi",
            Self::FibreChannel => "fc",
            Self::Nvme => "nvme",
            Self::NvmeFabrics => "nvme-fabrics",
            Self::Virtio => "virtio",
            Self::Xen => "xen",
            Self::Usb => "usb",
            Self::Mmc => "mmc",
            Self::Pmem => "pmem",
        }
    }

    /// The way that has this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.as_word() == word)
    }

    /// What sysfs shows of the way from the bus to the disk. `None` for what is reached over no bus.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let name = node.name().unwrap_or_default();
        if name.starts_with("nvme") {
            return Some(Self::of_nvme(node));
        }
        let passes = |prefix: &str| passes(node.dir(), prefix);
        // The most telling first: a USB disk is a SCSI disk, too.
        let ways: [(&str, Self); 8] = [
            ("usb", Self::Usb),
            ("session", Self::Iscsi),
            ("rport-", Self::FibreChannel),
            ("end_device-", Self::Sas),
            ("ata", Self::Ata),
            ("mmc", Self::Mmc),
            ("vbd-", Self::Xen),
            ("host", Self::Scsi),
        ];
        if let Some((_, way)) = ways.into_iter().find(|(prefix, _)| passes(prefix)) {
            return Some(way);
        }
        if name.starts_with("pmem") {
            return Some(Self::Pmem);
        }
        passes("virtio").then_some(Self::Virtio)
    }

    fn of_nvme(node: &Node) -> Self {
        // With multipath inside the driver the disk hangs at a subsystem, below which its controllers are.
        let controllers = node.names("device").into_iter().filter(|name| name.starts_with("nvme"));
        let mut ways = std::iter::once(node.text("device/transport"))
            .chain(controllers.map(|name| node.text(&format!("device/{name}/transport"))))
            .flatten();
        match ways.next().as_deref() {
            None | Some("pcie" | "apple-nvme") => Self::Nvme,
            Some(_) => Self::NvmeFabrics,
        }
    }
}

/// Whether a part of the path is the prefix and a number, or begins with a prefix that ends in a dash.
fn passes(path: &Path, prefix: &str) -> bool {
    path.components().any(|part| {
        let Component::Normal(part) = part else { return false };
        let Some(rest) = part.to_str().and_then(|part| part.strip_prefix(prefix)) else { return false };
        prefix.ends_with('-') || rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_the_way() {
        let pci = "/sys/devices/pci0000:00/0000:00:1f.2";
        let cases = [
            ("ata1/host0/target0:0:0/0:0:0:0/block/sda", Some(Transport::Ata)),
            ("host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda/sda1", Some(Transport::Sas)),
            ("usb1/1-1/1-1:1.0/host2/target2:0:0/2:0:0:0/block/sdb", Some(Transport::Usb)),
            ("host3/session1/target3:0:0/3:0:0:0/block/sdc", Some(Transport::Iscsi)),
            ("host4/rport-4:0-2/target4:0:0/4:0:0:0/block/sdd", Some(Transport::FibreChannel)),
            ("virtio2/host0/target0:0:0/0:0:0:0/block/sda", Some(Transport::Scsi)),
            ("virtio2/block/vda", Some(Transport::Virtio)),
            ("mmc_host/mmc0/mmc0:0001/block/mmcblk0", Some(Transport::Mmc)),
        ];
        for (path, way) in cases {
            let dir = tempfile::tempdir().unwrap();
            let full = dir.path().join(pci.trim_start_matches('/')).join(path);
            std::fs::create_dir_all(&full).unwrap();
            let node = Node::find(full.parent().unwrap(), full.file_name().unwrap().to_str().unwrap());
            assert_eq!(Transport::of(&node.unwrap()), way, "{path}");
        }
    }

    #[test]
    fn every_way_has_a_word_of_its_own() {
        for way in Transport::ALL {
            assert_eq!(Transport::from_word(way.as_word()), Some(way));
        }
        assert_eq!(Transport::from_word("floppy"), None);
    }
}
