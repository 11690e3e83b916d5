//! The block devices that the kernel has now, as sysfs shows them. Nothing is opened, so nothing can hang.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Bytes, DeviceNumber, Sectors};

/// Where the kernel shows its block devices, partitions among them.
const CLASS_DIR: &str = "/sys/class/block";

/// A block device: a disk, a partition, or something made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockDevice {
    /// The kernel's name (`sda1`, `dm-3`); not stable over boots.
    pub name: String,
    /// Its node in `/dev`.
    pub path: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// Its size; zero for a drive without a medium or a loop device without a file.
    pub size: Bytes,
    /// What device-mapper says about it, when it is one of its devices.
    pub mapped: Option<Mapped>,
    /// The kernel's names of the devices that are built on it.
    pub holders: Vec<String>,
}

/// What sysfs says about a device of device-mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapped {
    /// Its name.
    pub name: String,
    /// Its identity, which begins with the maker's prefix (`LVM-`, `mpath-`, `CRYPT-`); empty when it has none.
    pub uuid: String,
    /// Whether it is suspended: an open or a read may then hang until it is resumed.
    pub suspended: bool,
}

/// The list of block devices could not be read.
#[derive(Debug)]
pub struct ListError {
    path: PathBuf,
    cause: io::Error,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not list the block devices in {}", self.path.display())
    }
}

impl std::error::Error for ListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl BlockDevice {
    /// All block devices of this host, by name.
    ///
    /// A device that vanishes while the list is made is left out.
    ///
    /// # Errors
    ///
    /// [`ListError`] when sysfs cannot be read.
    ///
    /// ```no_run
    /// for device in devices::BlockDevice::all()? {
    ///     println!("{} {} {}", device.number, device.path.display(), device.size);
    /// }
    /// # Ok::<(), devices::ListError>(())
    /// ```
    pub fn all() -> Result<Vec<Self>, ListError> {
        Self::all_in(Path::new(CLASS_DIR))
    }

    /// The same from another directory of the form of `/sys/class/block`.
    ///
    /// # Errors
    ///
    /// [`ListError`] when the directory cannot be read.
    pub fn all_in(class_dir: &Path) -> Result<Vec<Self>, ListError> {
        let fail = |cause| ListError { path: class_dir.to_owned(), cause };
        let mut all = Vec::new();
        for entry in std::fs::read_dir(class_dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if let Ok(name) = entry.file_name().into_string() {
                all.extend(Self::read(&entry.path(), name));
            }
        }
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// `None` for a device that has just gone.
    fn read(dir: &Path, name: String) -> Option<Self> {
        let number = attribute(dir, "dev")?.parse().ok()?;
        let size = Sectors::new(attribute(dir, "size")?.parse().ok()?).to_bytes()?;
        let mapped = attribute(dir, "dm/name").map(|name| Mapped {
            name,
            uuid: attribute(dir, "dm/uuid").unwrap_or_default(),
            // Taken for suspended when it cannot be told, since that is the side on which nothing hangs.
            suspended: attribute(dir, "dm/suspended").as_deref() != Some("0"),
        });
        let mut holders: Vec<String> = std::fs::read_dir(dir.join("holders"))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        holders.sort_unstable();
        // The kernel writes a slash in a device's name as an exclamation mark (`cciss!c0d0`).
        let path = Path::new("/dev").join(name.replace('!', "/"));
        Some(Self { name, path, number, size, mapped, holders })
    }
}

/// Whether device-mapper has suspended a device, or one that it is made of: an open or a read may then hang until that is
/// resumed.
#[cfg(any(feature = "mount", feature = "gpt"))]
pub(crate) fn is_suspended(number: DeviceNumber) -> bool {
    is_suspended_or_above(&Path::new("/sys/dev/block").join(number.to_string()), DEEPEST)
}

/// Deeper stacks than any that makes sense; the kernel gives up long before.
#[cfg(any(feature = "mount", feature = "gpt"))]
const DEEPEST: usize = 16;

#[cfg(any(feature = "mount", feature = "gpt"))]
fn is_suspended_or_above(dir: &Path, deepest: usize) -> bool {
    // What cannot be understood counts as suspended, since that is the side on which nothing hangs.
    if std::fs::read(dir.join("dm/suspended")).is_ok_and(|state| state.first() != Some(&b'0')) {
        return true;
    }
    let Some(left) = deepest.checked_sub(1) else { return false };
    if dir.join("partition").exists() {
        return is_suspended_or_above(&dir.join(".."), left);
    }
    let slaves = std::fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten();
    slaves.into_iter().any(|slave| is_suspended_or_above(&slave.path(), left))
}

/// The number of the block device behind a path. A suspended one is refused, since whoever opens it would hang; `what`
/// is what an error calls it.
#[cfg(feature = "mount")]
pub(crate) fn answering(
    device: &Path,
    what: &str,
    tried: &impl Fn() -> String,
) -> Result<DeviceNumber, crate::Error> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let metadata = device.metadata().map_err(|cause| crate::Error::system(tried(), cause))?;
    if !metadata.file_type().is_block_device() {
        return Err(crate::Error::new(crate::Kind::InvalidArgument, tried())
            .with_answer(format!("{what} is no block device")));
    }
    let number = DeviceNumber::from_rdev(metadata.rdev());
    if is_suspended(number) {
        return Err(crate::Error::new(crate::Kind::Busy, tried())
            .with_answer("the device is suspended")
            .with_advice("resume it first"));
    }
    Ok(number)
}

fn attribute(dir: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(name)).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(root: &Path, name: &str, attributes: &[(&str, &str)]) {
        for (attribute, value) in attributes {
            let path = root.join(name).join(attribute);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        }
    }

    #[test]
    fn sysfs_tells_names_sizes_and_what_device_mapper_has() {
        let root = tempfile::tempdir().unwrap();
        device(root.path(), "sdb", &[("dev", "8:16\n"), ("size", "2048\n"), ("holders/dm-1", "")]);
        device(root.path(), "cciss!c0d0", &[("dev", "104:0\n"), ("size", "0\n")]);
        device(
            root.path(),
            "dm-1",
            &[
                ("dev", "254:1\n"),
                ("size", "8\n"),
                ("dm/name", "data-db\n"),
                ("dm/uuid", "LVM-x\n"),
                ("dm/suspended", "1\n"),
            ],
        );
        device(root.path(), "gone", &[("size", "8\n")]);
        let all = BlockDevice::all_in(root.path()).unwrap();
        let names: Vec<_> = all.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["cciss!c0d0", "dm-1", "sdb"]);
        assert_eq!(all[0].path, Path::new("/dev/cciss/c0d0"));
        let mapped = Mapped { name: "data-db".to_owned(), uuid: "LVM-x".to_owned(), suspended: true };
        assert_eq!(all[1].mapped, Some(mapped));
        assert_eq!(all[2].number, DeviceNumber { major: 8, minor: 16 });
        assert_eq!((all[2].size, all[2].holders.as_slice()), (Bytes::mib(1), &["dm-1".to_owned()][..]));
        assert_eq!(all[2].mapped, None);
    }

    #[cfg(any(feature = "mount", feature = "gpt"))]
    #[test]
    fn what_is_made_of_a_suspended_device_counts_as_suspended_at_every_level() {
        use std::os::unix::fs::symlink;

        let root = tempfile::tempdir().unwrap();
        let suspended = |name: &str| is_suspended_or_above(&root.path().join(name), DEEPEST);
        device(root.path(), "dm-0", &[("dm/suspended", "1\n")]);
        for (name, below) in [("dm-1", "dm-0"), ("dm-2", "dm-1"), ("md0", "dm-2")] {
            device(root.path(), name, &[("dm/suspended", "0\n"), ("slaves/.keep/x", "")]);
            symlink(root.path().join(below), root.path().join(name).join("slaves").join(below)).unwrap();
        }
        device(root.path(), "md0/md0p1", &[("partition", "1\n")]);
        for name in ["dm-0", "dm-1", "dm-2", "md0", "md0/md0p1"] {
            assert!(suspended(name), "{name}");
        }
        device(root.path(), "dm-0", &[("dm/suspended", "0\n")]);
        for name in ["dm-0", "dm-1", "dm-2", "md0", "md0/md0p1"] {
            assert!(!suspended(name), "{name}");
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_its_cause() {
        let error = BlockDevice::all_in(Path::new("/no/such/directory")).unwrap_err();
        assert_eq!(error.to_string(), "could not list the block devices in /no/such/directory");
        assert!(std::error::Error::source(&error).is_some());
    }
}
