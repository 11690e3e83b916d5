//! What a disk is known by, over reboots and changes of its name.

use std::fmt;

use super::disk::{Disk, DiskType};
use super::sysfs::Node;
use super::transport::Transport;
use super::udev::Record;

/// What a device says of itself. A partition has its disk's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// The world-wide name, as udev writes it: `0x5000c500a1b2c3d4`, `eui.0025385b71b0a2c3`.
    pub wwn: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The maker.
    pub vendor: Option<String>,
}

impl Identity {
    /// Sysfs speaks first, so that a disk has the same identity whether udevd runs or not.
    pub(super) fn read(node: &Node, record: Option<&Record>) -> Self {
        let udev = |key: &str| record.and_then(|record| record.get(key)).map(str::to_owned);
        let sysfs_wwn = ["wwid", "device/wwid"].into_iter().find_map(|name| node.text(name)).and_then(wwn);
        let serial = ["serial", "device/serial"].into_iter().find_map(|name| node.text(name));
        let model = ["device/model", "device/name"].into_iter().find_map(|name| node.text(name));
        let vendor = node.text("device/vendor").filter(|vendor| !vendor.starts_with("0x"));
        Self {
            wwn: sysfs_wwn.or_else(|| udev("ID_WWN_WITH_EXTENSION")).or_else(|| udev("ID_WWN")),
            serial: serial
                .or_else(|| unit_serial(node))
                .or_else(|| udev("ID_SCSI_SERIAL"))
                .or_else(|| udev("ID_SERIAL_SHORT")),
            // SCSI has 16 characters for the model; of an ATA disk udev knows all 40.
            model: match &vendor {
                Some(vendor) if vendor != "ATA" => model,
                _ => record.and_then(|record| record.decoded("ID_MODEL_ENC")).or(model),
            },
            vendor,
        }
    }
}

/// The kernel's `wwid` where it is a world-wide name; text that a maker chose is none.
fn wwn(wwid: String) -> Option<String> {
    if let Some(naa) = wwid.strip_prefix("naa.") {
        return Some(format!("0x{}", naa.to_ascii_lowercase()));
    }
    ["eui.", "uuid.", "nvme."].iter().any(|prefix| wwid.starts_with(prefix)).then_some(wwid)
}

/// The serial number of SCSI's page 80: four bytes of heading, then text (SPC-4, 7.8.15).
fn unit_serial(node: &Node) -> Option<String> {
    let page = node.bytes("device/vpd_pg80")?;
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = page.get(4..)?.get(..length).or(page.get(4..))?;
    let text: String = String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A name for a device that stays the same over reboots: for records such as "this disk was wiped".
///
/// It begins with what it is made of: `wwn:`, `serial:`, `partuuid:`, `dm:`, `md:`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityKey(String);

impl IdentityKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(all(test, feature = "erase"))]
    pub(crate) fn of_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The key of a device; `None` when it says nothing of itself that lasts.
    pub(super) fn of(disk: &Disk) -> Option<Self> {
        let key = match &disk.kind {
            DiskType::Partition(partition) => format!("partuuid:{}", partition.uuid.as_ref()?),
            DiskType::Mapped(mapped) if !mapped.uuid.is_empty() => format!("dm:{}", mapped.uuid),
            DiskType::Md(array) => format!("md:{}", array.uuid.as_ref()?),
            DiskType::Disk => match &disk.identity {
                Identity { wwn: Some(wwn), .. } => format!("wwn:{wwn}"),
                Identity { serial: Some(serial), model, .. } => {
                    let bus = disk.transport.map(Transport::as_word);
                    format!("serial:{}:{serial}", model.as_deref().or(bus).unwrap_or_default())
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Self(key))
    }
}

impl fmt::Display for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unique_in_the_world_is_a_world_wide_name() {
        let of = |text: &str| wwn(text.to_owned());
        assert_eq!(of("naa.5000C500A1B2C3D4").as_deref(), Some("0x5000c500a1b2c3d4"));
        assert_eq!(of("eui.0025385b71b0a2c3").as_deref(), Some("eui.0025385b71b0a2c3"));
        assert_eq!(of("t10.ATA     QEMU HARDDISK   QM00001"), None);
    }
}
