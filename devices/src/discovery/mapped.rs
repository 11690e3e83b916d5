//! What a device of device-mapper is for, as its name and uuid tell.

use crate::Mapped;

/// What a device of device-mapper is for. Its maker writes that at the beginning of its uuid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// A volume of LVM, or a hidden part of one.
    Lvm {
        /// The group's name.
        group: String,
        /// The volume's name.
        volume: String,
    },
    /// An opened LUKS or plain encryption.
    Crypt,
    /// All paths to one disk.
    Multipath,
    /// A partition made by kpartx.
    Partition,
    /// Something else.
    Other,
}

impl Purpose {
    /// What a device is for.
    #[must_use]
    pub fn of(mapped: &Mapped) -> Self {
        let uuid = mapped.uuid.as_str();
        match uuid {
            _ if uuid.starts_with("LVM-") => match split_lvm_name(&mapped.name) {
                Some((group, volume)) => Self::Lvm { group, volume },
                None => Self::Other,
            },
            _ if uuid.starts_with("CRYPT-") => Self::Crypt,
            _ if uuid.starts_with("mpath-") => Self::Multipath,
            _ if uuid.starts_with("part") && uuid.contains("-mpath-") => Self::Partition,
            _ => Self::Other,
        }
    }

    /// lsblk's word for it.
    #[must_use]
    pub fn as_word(&self) -> &'static str {
        match self {
            Self::Lvm { .. } => "lvm",
            Self::Crypt => "crypt",
            Self::Multipath => "mpath",
            Self::Partition => "part",
            Self::Other => "dm",
        }
    }
}

/// LVM writes `group-volume`, and each dash inside of the two twice (`build_dm_name`).
fn split_lvm_name(name: &str) -> Option<(String, String)> {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes.get(at) == Some(&b'-') {
            if bytes.get(at + 1) != Some(&b'-') {
                let (group, volume) = (name.get(..at)?, name.get(at + 1..)?);
                return Some((group.replace("--", "-"), volume.replace("--", "-")));
            }
            at += 1;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purpose(name: &str, uuid: &str) -> Purpose {
        Purpose::of(&Mapped { name: name.to_owned(), uuid: uuid.to_owned(), suspended: false })
    }

    #[test]
    fn the_uuid_tells_the_maker_and_the_name_of_a_volume_its_group() {
        let lvm = |group: &str, volume: &str| Purpose::Lvm { group: group.into(), volume: volume.into() };
        assert_eq!(purpose("data-db", "LVM-x"), lvm("data", "db"));
        assert_eq!(purpose("my--data-a--b-real", "LVM-x"), lvm("my-data", "a-b-real"));
        assert_eq!(purpose("luks-1", "CRYPT-LUKS2-x"), Purpose::Crypt);
        assert_eq!(purpose("mpatha", "mpath-3600"), Purpose::Multipath);
        assert_eq!(purpose("mpatha1", "part1-mpath-3600"), Purpose::Partition);
        assert_eq!(purpose("data-db", ""), Purpose::Other);
        assert_eq!(purpose("nodash", "LVM-x"), Purpose::Other);
    }
}
