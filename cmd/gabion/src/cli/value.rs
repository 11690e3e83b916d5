//! Values of the command line, checked while it is read.

use std::fmt;
use std::str::FromStr;

use devices::{Bytes, Sectors};
use lvm::{DevicePath, LvName, VgName};
use volumes::VolumeId;

/// A volume, thin pool or snapshot: `GROUP/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumePath {
    pub(crate) group: VgName,
    pub(crate) name: LvName,
}

impl FromStr for VolumePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((group, name)) = text.split_once('/') else {
            return Err(format!("{text:?} is not of the form GROUP/NAME"));
        };
        let group = VgName::new(group).map_err(|error| error.to_string())?;
        let name = LvName::new(name).map_err(|error| error.to_string())?;
        Ok(Self { group, name })
    }
}

impl fmt::Display for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

/// A volume: `GROUP/NAME` of LVM, or the id of one in a device class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeRef {
    InGroup(VolumePath),
    InClass(VolumeId),
}

impl FromStr for VolumeRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return text.parse().map(Self::InGroup);
        }
        text.parse().map(Self::InClass).map_err(|error: volumes::Error| error.to_string())
    }
}

/// A size that a volume can be asked to have.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: devices::SizeError| error.to_string())?;
    if size == Bytes::ZERO {
        return Err("a size of zero cannot be had".to_owned());
    }
    if i64::try_from(size.get()).is_err() {
        return Err(format!("{size:#} is more than 2^63 - 1 bytes"));
    }
    Sectors::try_from(size).map_err(|error| format!("{error}; give a multiple of 512"))?;
    Ok(size)
}

/// A disk or partition by its path in `/dev`.
pub(crate) fn device(text: &str) -> Result<DevicePath, String> {
    DevicePath::new(text).map_err(|error| error.to_string())
}

/// A part of a whole in percent.
pub(crate) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent @ 1..=100) => Ok(percent),
        _ => Err(format!("{text:?} is not a percentage from 1 to 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_of_volumes_have_a_group_and_a_name() {
        let path: VolumePath = "data-1/db.2".parse().unwrap();
        assert_eq!((path.group.as_str(), path.name.as_str()), ("data-1", "db.2"));
        assert_eq!(path.to_string(), "data-1/db.2");
        for bad in [
            "",
            "db",
            "/",
            "data/",
            "/db",
            "data/db/x",
            "data/-x",
            "data/snapshot-1",
            "data/a_tdata",
            "data/a b",
        ] {
            assert!(bad.parse::<VolumePath>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_volume_is_of_a_group_or_of_a_class() {
        assert!(matches!("data/db".parse(), Ok(VolumeRef::InGroup(_))));
        assert!(matches!("db".parse(), Ok(VolumeRef::InClass(_))));
        for bad in ["", "Db", "d b", "-db", "/db", "db/", "a\nb"] {
            assert!(bad.parse::<VolumeRef>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_that_no_volume_can_have_are_refused() {
        assert_eq!(size("1GiB"), Ok(Bytes::gib(1)));
        for bad in ["0", "-1", "-1G", "1", "513", "9223372036854775808", "16EiB", "", "1e3", "ten"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn percentages_are_of_a_hundred() {
        assert_eq!((percent("80"), percent("80%")), (Ok(80), Ok(80)));
        for bad in ["0", "101", "-1", "%", "", "8O"] {
            assert!(percent(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_can_stand_in_a_command_line(text in "\\PC{0,40}") {
            if let Ok(path) = text.parse::<VolumePath>() {
                prop_assert!(path.to_string().bytes().all(|b| b.is_ascii_alphanumeric() || b"+_.-/".contains(&b)));
                prop_assert!(!path.name.as_str().starts_with('-') && !path.group.as_str().starts_with('-'));
            }
            if let Ok(size) = size(&text) {
                prop_assert!(size.get() % 512 == 0 && size.get() > 0);
            }
        }
    }
}
