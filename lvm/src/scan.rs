//! Which devices of this host may be PVs.

use std::path::PathBuf;

use devices::BlockDevice;

use crate::{Error, Kind};

/// Kernel names of drivers whose devices never hold a PV: RAM disks, floppy and optical drives.
const NEVER: [&str; 3] = ["ram", "fd", "sr"];

/// The devices of this host on which PVs may be, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidates {
    /// Devices to read.
    pub devices: Vec<PathBuf>,
    /// Devices that may be PVs, but are suspended: to open them could hang.
    pub suspended: Vec<PathBuf>,
}

impl Candidates {
    /// Looks at the devices of this host. None is opened.
    ///
    /// Left out are volumes of LVM itself (a guest's group inside a volume is the guest's), devices that are a part
    /// of a multipath or software RAID device (the whole is looked at instead), and drives without a medium.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when sysfs cannot be read.
    ///
    /// ```no_run
    /// let here = lvm::Candidates::of_this_host()?;
    /// println!("{} devices to read", here.devices.len());
    /// # Ok::<(), lvm::Error>(())
    /// ```
    pub fn of_this_host() -> Result<Self, Error> {
        let all = BlockDevice::all().map_err(|cause| {
            Error::new(Kind::Io, "look for block devices")
                .with_answer(cause.to_string())
                .with_advice("mount sysfs on /sys")
                .with_source(cause)
        })?;
        Ok(Self::among(&all))
    }

    /// The same choice from a list of devices.
    #[must_use]
    pub fn among(all: &[BlockDevice]) -> Self {
        let mut chosen = Self::default();
        for device in all.iter().filter(|device| may_be_pv(device, all)) {
            let suspended = device.mapped.as_ref().is_some_and(|mapped| mapped.suspended);
            let list = if suspended { &mut chosen.suspended } else { &mut chosen.devices };
            list.push(device.path.clone());
        }
        chosen
    }
}

fn may_be_pv(device: &BlockDevice, all: &[BlockDevice]) -> bool {
    let never = NEVER.iter().any(|driver| {
        device.name.strip_prefix(driver).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let lvm = device.mapped.as_ref().is_some_and(|mapped| mapped.uuid.starts_with("LVM-"));
    let in_a_whole = device.holders.iter().any(|holder| is_whole(holder, all));
    device.size != devices::Bytes::ZERO && !never && !lvm && !in_a_whole
}

/// Whether a device of this kernel name shows the same data as each of its parts.
fn is_whole(name: &str, all: &[BlockDevice]) -> bool {
    let multipath =
        |device: &BlockDevice| device.mapped.as_ref().is_some_and(|mapped| mapped.uuid.starts_with("mpath-"));
    let md = name.strip_prefix("md").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    md || all.iter().any(|device| device.name == name && multipath(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, size in sectors, uuid and suspension of a mapped device, holders.
    type Device<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>, &'a [&'a str]);

    /// What is chosen from a directory in the form of `/sys/class/block`: to read, and suspended.
    fn candidates(devices: &[Device<'_>]) -> (Vec<String>, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        for (minor, (name, size, mapped, holders)) in devices.iter().enumerate() {
            let dir = root.path().join(name);
            std::fs::create_dir_all(dir.join("holders")).unwrap();
            std::fs::write(dir.join("dev"), format!("8:{minor}\n")).unwrap();
            std::fs::write(dir.join("size"), size).unwrap();
            for holder in *holders {
                std::fs::write(dir.join("holders").join(holder), "").unwrap();
            }
            if let Some((uuid, suspended)) = mapped {
                std::fs::create_dir(dir.join("dm")).unwrap();
                for (key, value) in [("name", "x"), ("uuid", uuid), ("suspended", suspended)] {
                    std::fs::write(dir.join("dm").join(key), value).unwrap();
                }
            }
        }
        let chosen = Candidates::among(&BlockDevice::all_in(root.path()).unwrap());
        let names = |paths: Vec<PathBuf>| paths.iter().map(|path| path.display().to_string()).collect();
        (names(chosen.devices), names(chosen.suspended))
    }

    #[test]
    fn disks_partitions_and_maps_of_others_are_read_and_nothing_of_lvm() {
        let (read, suspended) = candidates(&[
            ("vda", "8", None, &[]),
            ("vda1", "8", None, &["dm-0"]),
            ("loop0", "8", None, &[]),
            ("loop1", "0", None, &[]),
            ("ram0", "8", None, &[]),
            ("sr0", "8", None, &[]),
            ("dm-0", "8", Some(("LVM-abc", "0")), &[]),
            ("dm-1", "8", Some(("CRYPT-LUKS2-abc", "0")), &[]),
            ("dm-2", "8", Some(("CRYPT-LUKS2-def", "1")), &[]),
            ("dm-3", "8", Some(("LVM-def", "1")), &[]),
        ]);
        assert_eq!(read, ["/dev/dm-1", "/dev/loop0", "/dev/vda", "/dev/vda1"]);
        assert_eq!(suspended, ["/dev/dm-2"]);
    }

    #[test]
    fn a_part_of_a_multipath_or_raid_device_is_not_read_but_the_whole_is() {
        let (read, _) = candidates(&[
            ("sda", "8", None, &["dm-0"]),
            ("sdb", "8", None, &["dm-0"]),
            ("sdc", "8", None, &["md127"]),
            ("md127", "8", None, &[]),
            ("dm-0", "8", Some(("mpath-360", "0")), &[]),
        ]);
        assert_eq!(read, ["/dev/dm-0", "/dev/md127"]);
    }
}
