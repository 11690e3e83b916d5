//! How device-mapper and LVM name a device.

use std::fmt;
use std::str::FromStr;

use devices::DeviceNumber;

use super::ioctl::{NAME_MAX, UUID_MAX};
use crate::Uuid;

/// The name of a device-mapper device, byte for byte as the kernel has it.
///
/// libdevmapper writes bytes that udev cannot have in a file name as `\xNN`; [`Self::unmangled`] undoes that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmName(Vec<u8>);

/// The text cannot name a device-mapper device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no device-mapper name or uuid (1 to 127 bytes, no slash, no zero byte)")]
pub struct DmNameError(String);

impl DmName {
    pub(crate) fn from_kernel(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes as the kernel has them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name with libdevmapper's `\xNN` replaced by the bytes they stand for.
    #[must_use]
    pub fn unmangled(&self) -> Vec<u8> {
        let mut plain = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_slice();
        while let Some((first, tail)) = rest.split_first() {
            let escaped = rest.strip_prefix(br"\x").and_then(|hex| {
                let digits = std::str::from_utf8(hex.get(..2)?).ok()?;
                u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
            });
            (plain, rest) = match escaped {
                Some(byte) => (pushed(plain, byte), rest.get(4..).unwrap_or_default()),
                None => (pushed(plain, *first), tail),
            };
        }
        plain
    }
}

fn pushed(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

impl FromStr for DmName {
    type Err = DmNameError;

    fn from_str(text: &str) -> Result<Self, DmNameError> {
        let allowed = !text.is_empty() && text.len() <= NAME_MAX && !text.contains(['/', '\0']);
        if allowed { Ok(Self(text.into())) } else { Err(DmNameError(text.to_owned())) }
    }
}

impl fmt::Display for DmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for DmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DmName({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// The uuid of a device-mapper device: free text, which its maker gives once and which never changes.
///
/// LVM's begin with `LVM-` and name the group, the volume and, for a device that only serves another one, the
/// layer; so a device finds its volume whatever either is called at present.
///
/// ```
/// use lvm::dm::DmUuid;
///
/// let text = "LVM-Kt3bSo1tY0bq3V5a2DZzzz0000abcd99Aa3bSo1tY0bq3V5a2DZzzz0000abcd99-tpool";
/// let uuid: DmUuid = text.parse()?;
/// let volume = uuid.lvm().ok_or("not LVM's")?;
/// assert_eq!(volume.layer.as_deref(), Some("tpool"));
/// assert_eq!(DmUuid::from(volume).to_string(), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmUuid(Vec<u8>);

/// What an LVM uuid says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LvmDevice {
    /// The group.
    pub vg: Uuid,
    /// The volume, which may be a hidden one such as a RAID leg.
    pub lv: Uuid,
    /// What the device does for the volume: `tpool`, `real`, `cow`, …; absent for the volume itself.
    pub layer: Option<String>,
}

impl DmUuid {
    pub(crate) fn from_kernel(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The uuid that LVM gives to the device of volume `lv` in group `vg`, or to one of its layers.
    #[must_use]
    pub fn of_lvm(vg: &Uuid, lv: &Uuid, layer: Option<&str>) -> Self {
        LvmDevice { vg: *vg, lv: *lv, layer: layer.map(str::to_owned) }.into()
    }

    /// The bytes as the kernel has them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the uuid says if LVM made the device.
    #[must_use]
    pub fn lvm(&self) -> Option<LvmDevice> {
        let text = std::str::from_utf8(&self.0).ok()?;
        let ids = text.strip_prefix("LVM-")?;
        let vg = ids.get(..32)?.parse().ok()?;
        let lv = ids.get(32..64)?.parse().ok()?;
        let layer = match ids.get(64..)? {
            "" => None,
            rest => Some(rest.strip_prefix('-').filter(|layer| !layer.is_empty())?.to_owned()),
        };
        Some(LvmDevice { vg, lv, layer })
    }
}

impl From<LvmDevice> for DmUuid {
    fn from(device: LvmDevice) -> Self {
        let mut text = format!("LVM-{}{}", device.vg.compact(), device.lv.compact());
        if let Some(layer) = &device.layer {
            text = format!("{text}-{layer}");
        }
        Self(text.into_bytes())
    }
}

impl FromStr for DmUuid {
    type Err = DmNameError;

    fn from_str(text: &str) -> Result<Self, DmNameError> {
        let allowed = !text.is_empty() && text.len() <= UUID_MAX && !text.contains('\0');
        if allowed { Ok(Self(text.into())) } else { Err(DmNameError(text.to_owned())) }
    }
}

impl fmt::Display for DmUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for DmUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DmUuid({self})")
    }
}

/// Which device a request is about.
#[derive(Clone, Copy, Debug)]
pub enum Id<'a> {
    /// By name; a rename makes it another device.
    Name(&'a DmName),
    /// By uuid, the surest way.
    Uuid(&'a DmUuid),
    /// By number; valid until the device is removed, then the number is used again.
    Number(DeviceNumber),
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl<'a> From<&'a DmName> for Id<'a> {
    fn from(name: &'a DmName) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a DmUuid> for Id<'a> {
    fn from(uuid: &'a DmUuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<DeviceNumber> for Id<'_> {
    fn from(number: DeviceNumber) -> Self {
        Self::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mangled_names_decode() {
        let name: DmName = r"a\x20b\x5cc\x2".parse().unwrap();
        assert_eq!(name.unmangled(), br"a b\c\x2");
        assert_eq!(r"plain\x+1".parse::<DmName>().unwrap().unmangled(), br"plain\x+1");
    }

    #[test]
    fn what_is_no_lvm_uuid_gives_nothing() {
        let ids = "a".repeat(64);
        for bad in ["LVM-", "CRYPT-LUKS2-x", &format!("LVM-{}", "a".repeat(63)), &format!("LVM-{ids}-")] {
            assert_eq!(bad.parse::<DmUuid>().unwrap().lvm(), None, "{bad}");
        }
        assert_eq!(format!("LVM-{ids}x").parse::<DmUuid>().unwrap().lvm(), None);
        assert!(format!("LVM-{ids}").parse::<DmUuid>().unwrap().lvm().is_some());
    }

    proptest! {
        #[test]
        fn names_and_uuids_never_panic(bytes: Vec<u8>) {
            let _ = DmName::from_kernel(bytes.clone()).unmangled();
            let _ = DmUuid::from_kernel(bytes).lvm();
        }

        #[test]
        fn lvm_uuids_round_trip(vg in "[0-9A-Za-z]{32}", lv in "[0-9A-Za-z]{32}", layer in "[a-z]{0,6}") {
            let layer = (!layer.is_empty()).then_some(layer.as_str());
            let uuid = DmUuid::of_lvm(&vg.parse().unwrap(), &lv.parse().unwrap(), layer);
            let said = uuid.lvm().unwrap();
            prop_assert_eq!(said.vg.compact(), vg);
            prop_assert_eq!(said.lv.compact(), lv);
            prop_assert_eq!(said.layer.as_deref(), layer);
        }
    }
}
