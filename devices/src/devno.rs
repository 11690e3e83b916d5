//! Device numbers.

use std::fmt;
use std::str::FromStr;

/// The number by which the kernel knows a block device: `major:minor`.
///
/// It is valid for one boot, and only as long as the device exists; see a device's identity for what lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver's number, at most 12 bits.
    pub major: u32,
    /// The driver's own number of the device, at most 20 bits.
    pub minor: u32,
}

impl DeviceNumber {
    /// Splits the 64-bit form that `stat` gives in `st_rdev` (the encoding of glibc's `gnu_dev_major`).
    #[must_use]
    pub const fn from_rdev(rdev: u64) -> Self {
        let major = ((rdev >> 32) & 0xffff_f000) | ((rdev >> 8) & 0xfff);
        let minor = ((rdev >> 12) & 0xffff_ff00) | (rdev & 0xff);
        // Both halves are masked to 32 bits above.
        #[allow(clippy::cast_possible_truncation)]
        Self { major: major as u32, minor: minor as u32 }
    }

    /// The 64-bit form of `st_rdev` and of device-mapper's `dev` field.
    #[must_use]
    pub const fn to_rdev(self) -> u64 {
        let (major, minor) = (self.major as u64, self.minor as u64);
        ((major & 0xffff_f000) << 32)
            | ((major & 0xfff) << 8)
            | ((minor & 0xffff_ff00) << 12)
            | (minor & 0xff)
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The text is not `major:minor` in decimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a device number of the form major:minor")]
pub struct ParseDeviceNumberError(String);

impl FromStr for DeviceNumber {
    type Err = ParseDeviceNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (major, minor) = text.split_once(':')?;
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        };
        parse().ok_or_else(|| ParseDeviceNumberError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rdev_round_trips() {
        for (major, minor) in [(7, 0), (253, 300), (259, 0xf_ffff), (4095, 255), (0xffff_ffff, 0xffff_ffff)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(DeviceNumber::from_rdev(number.to_rdev()), number);
        }
        assert_eq!(DeviceNumber { major: 8, minor: 1 }.to_rdev(), 0x801);
    }

    #[test]
    fn text_round_trips_and_rubbish_is_refused() {
        assert_eq!("253:7".parse(), Ok(DeviceNumber { major: 253, minor: 7 }));
        assert_eq!(DeviceNumber { major: 253, minor: 7 }.to_string(), "253:7");
        for bad in ["", ":", "1", "1:", ":1", "a:b", "1:2:3", "-1:2"] {
            assert!(bad.parse::<DeviceNumber>().is_err(), "{bad:?}");
        }
    }
}
