//! One line of the kernel's mount table.
//!
//! The format is that of `Documentation/filesystems/proc.rst`, section 3.5, and of `fs/proc_namespace.c`:
//! `36 35 98:0 /root /mount/point rw,noatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=continue`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::DeviceNumber;

/// What the kernel appends to the root of a bind mount whose directory or file was removed since. No path holds
/// two slashes in a row, so it cannot be a part of a name.
const DELETED: &[u8] = b"//deleted";

/// The kernel's number of a mount; it is used again once the mount has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountId(u64);

impl MountId {
    /// The mount that the kernel numbered so.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for MountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether what a mount shows still has a name in its filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootState {
    /// It has.
    Present,
    /// It was removed since it was mounted; what is open there goes on to work.
    Deleted,
}

/// Whether writes through a mount are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reading and writing.
    ReadWrite,
    /// Reading alone.
    ReadOnly,
}

/// How mounts and unmounts below a mount spread to copies of it (`Documentation/filesystems/sharedsubtree.rst`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Propagation {
    /// The group of mounts to which it sends and from which it receives.
    pub shared: Option<MountId>,
    /// The group from which it only receives.
    pub master: Option<MountId>,
    /// Bind mounts of it are refused.
    pub unbindable: bool,
}

/// One mount of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// Its number.
    pub id: MountId,
    /// The mount on which it lies; itself for the root of a namespace.
    pub parent: MountId,
    /// The number of its filesystem: that of the block device, or one without device (major 0) for filesystems
    /// in memory and for btrfs. See [`Mount::block_device`].
    pub device: DeviceNumber,
    /// Which directory or file of its filesystem it shows.
    pub root: PathBuf,
    /// Whether that still exists.
    pub root_state: RootState,
    /// Where it lies, as seen from this process's root.
    pub mount_point: PathBuf,
    /// Its own options, with commas between them (`rw,noatime`).
    pub options: OsString,
    /// How mounts below it spread.
    pub propagation: Propagation,
    /// The type of its filesystem, with a subtype after a full stop where there is one (`fuse.sshfs`).
    pub fs_type: OsString,
    /// What was mounted, as whoever mounted it wrote it; may be empty, and may be a name that no longer exists.
    pub source: OsString,
    /// The filesystem's options, with commas between them.
    pub super_options: OsString,
}

impl Mount {
    /// Whether it refuses writes, be it by the mount or by its filesystem.
    #[must_use]
    pub fn access(&self) -> Access {
        if self.has_option("ro") || has_word(&self.super_options, "ro") {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        }
    }

    /// Whether the mount itself (not its filesystem) has an option (`noexec`).
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        has_word(&self.options, name)
    }

    /// Whether its filesystem has an option (`discard`, `data=ordered`).
    #[must_use]
    pub fn has_super_option(&self, option: &str) -> bool {
        has_word(&self.super_options, option)
    }

    /// The block device that holds its filesystem.
    ///
    /// btrfs numbers its filesystems without a device, so there the source is looked up, which is any one of the
    /// filesystem's devices. `None` for filesystems without a block device, and where the source has gone.
    #[must_use]
    pub fn block_device(&self) -> Option<DeviceNumber> {
        if self.device.major != 0 {
            return Some(self.device);
        }
        // Of others the source is free text, and looking it up may hang.
        if self.fs_type != "btrfs" {
            return None;
        }
        let metadata = Path::new(&self.source).metadata().ok()?;
        metadata.file_type().is_block_device().then(|| DeviceNumber::from_rdev(metadata.rdev()))
    }

    /// Reads one line, without its line break.
    pub(super) fn parse(line: &[u8]) -> Result<Self, &'static str> {
        let mut fields = line.split(|&byte| byte == b' ');
        let mut next = |reason| fields.next().ok_or(reason);
        let id = number(next("no mount id")?).ok_or("the mount id is no number")?;
        let parent = number(next("no parent")?).ok_or("the parent is no number")?;
        let device = device(next("no device number")?).ok_or("the device number is not major:minor")?;
        let root = unescape(next("no root")?).ok_or("the root has a broken escape")?;
        let mount_point = unescape(next("no mount point")?).ok_or("the mount point has a broken escape")?;
        if !mount_point.starts_with(b"/") {
            return Err("the mount point is no absolute path");
        }
        let options = next("no options")?;
        let mut propagation = Propagation::default();
        loop {
            match next("no separator")? {
                b"-" => break,
                field => optional(field, &mut propagation)?,
            }
        }
        let fs_type = unescape(next("no filesystem type")?).ok_or("the type has a broken escape")?;
        let source = unescape(next("no source")?).ok_or("the source has a broken escape")?;
        // Whatever follows belongs to the options: some filesystems print spaces in theirs.
        let mut super_options = next("no filesystem options")?.to_vec();
        for rest in fields {
            super_options.push(b' ');
            super_options.extend_from_slice(rest);
        }
        let (root, root_state) = match root.strip_suffix(DELETED) {
            Some(root) => (root.to_vec(), RootState::Deleted),
            None => (root, RootState::Present),
        };
        Ok(Self {
            id: MountId(id),
            parent: MountId(parent),
            device,
            root: PathBuf::from(OsString::from_vec(root)),
            root_state,
            mount_point: PathBuf::from(OsString::from_vec(mount_point)),
            options: OsStr::from_bytes(options).to_owned(),
            propagation,
            fs_type: OsString::from_vec(fs_type),
            source: OsString::from_vec(source),
            super_options: OsString::from_vec(super_options),
        })
    }
}

fn has_word(options: &OsStr, word: &str) -> bool {
    options.as_bytes().split(|&byte| byte == b',').any(|option| option == word.as_bytes())
}

fn number(field: &[u8]) -> Option<u64> {
    // `parse` alone would take a sign.
    let digits = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(field).ok().filter(|_| digits)?.parse().ok()
}

fn device(field: &[u8]) -> Option<DeviceNumber> {
    let colon = field.iter().position(|&byte| byte == b':')?;
    let (major, minor) = field.split_at_checked(colon)?;
    let major = u32::try_from(number(major)?).ok()?;
    let minor = u32::try_from(number(minor.get(1..)?)?).ok()?;
    Some(DeviceNumber { major, minor })
}

/// Fields that a newer kernel may add are passed over, as the format asks.
fn optional(field: &[u8], propagation: &mut Propagation) -> Result<(), &'static str> {
    let group = |text| number(text).map(MountId).ok_or("a peer group is no number");
    if let Some(text) = field.strip_prefix(b"shared:") {
        propagation.shared = Some(group(text)?);
    } else if let Some(text) = field.strip_prefix(b"master:") {
        propagation.master = Some(group(text)?);
    } else if field == b"unbindable" {
        propagation.unbindable = true;
    } else if field.is_empty() {
        return Err("an empty field before the separator");
    }
    Ok(())
}

/// Resolves the escapes that the kernel writes: a backslash and three octal digits, for white space, the backslash
/// and the number sign.
fn unescape(field: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'\\' {
            let (digits, after) = rest.split_first_chunk::<3>()?;
            rest = after;
            plain.push(octal(*digits)?);
        } else {
            plain.push(byte);
        }
    }
    Some(plain)
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |value, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 8)?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Mount {
        Mount::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_of_the_documentation_is_read_field_by_field() {
        let mount = parsed(
            "36 35 98:0 /mnt1 /mnt2 rw,noatime shared:7 master:1 propagate_from:3 - ext3 /dev/root rw,errors=continue",
        );
        assert_eq!((mount.id, mount.parent), (MountId(36), MountId(35)));
        assert_eq!(mount.device, DeviceNumber { major: 98, minor: 0 });
        assert_eq!(
            (mount.root.as_path(), mount.mount_point.as_path()),
            (Path::new("/mnt1"), Path::new("/mnt2"))
        );
        assert!(mount.has_option("noatime") && !mount.has_option("atime"));
        assert!(mount.has_super_option("errors=continue") && !mount.has_super_option("errors"));
        assert_eq!(mount.propagation.shared, Some(MountId(7)));
        assert_eq!(mount.propagation.master, Some(MountId(1)));
        assert_eq!(
            (mount.fs_type.as_os_str(), mount.source.as_os_str()),
            ("ext3".as_ref(), "/dev/root".as_ref())
        );
        assert_eq!(mount.access(), Access::ReadWrite);
        assert_eq!(mount.block_device(), Some(mount.device));
    }

    #[test]
    fn white_space_and_backslashes_in_paths_are_resolved() {
        let mount = parsed(r"1 0 0:5 /a\040b /t\011ab\012new\134line\043 rw - tmpfs my\040disk rw");
        assert_eq!(mount.root, Path::new("/a b"));
        assert_eq!(mount.mount_point, Path::new("/t\tab\nnew\\line#"));
        assert_eq!(mount.source, "my disk");
    }

    #[test]
    fn a_deleted_root_is_told_from_a_directory_of_that_name() {
        let mount = parsed(r"63 43 254:0 /pods/src//deleted /pods/sub\040path rw - ext4 /dev/vda rw");
        assert_eq!((mount.root.as_path(), mount.root_state), (Path::new("/pods/src"), RootState::Deleted));
        let mount = parsed(r"63 43 254:0 /pods/deleted /pods/x\040(deleted) rw - ext4 /dev/vda rw");
        assert_eq!(
            (mount.root.as_path(), mount.root_state),
            (Path::new("/pods/deleted"), RootState::Present)
        );
        assert_eq!(mount.mount_point, Path::new("/pods/x (deleted)"));
    }

    #[test]
    fn an_empty_source_spaces_in_options_and_unknown_fields_are_taken() {
        let mount = parsed("65 64 0:39 / /t ro future:9 unbindable - fuse.x  rw,user=a b,c");
        assert_eq!(
            (mount.source.as_os_str(), mount.super_options.as_os_str()),
            ("".as_ref(), "rw,user=a b,c".as_ref())
        );
        assert!(mount.propagation.unbindable);
        assert_eq!((mount.access(), mount.block_device()), (Access::ReadOnly, None));
    }

    #[test]
    fn what_is_no_line_of_the_table_is_refused_with_a_reason() {
        let good = "36 35 98:0 / /mnt rw - ext4 /dev/sda rw";
        let fields: Vec<&str> = good.split(' ').collect();
        assert!(Mount::parse(good.as_bytes()).is_ok());
        for end in 0..fields.len() {
            let cut = fields[..end].join(" ");
            assert!(Mount::parse(cut.as_bytes()).is_err(), "{cut:?}");
        }
        for (from, to) in [
            ("36 35", "x 35"),
            ("36 35", "36 -1"),
            ("36 35", "36 +1"),
            ("98:0", "98"),
            ("98:0", "98:0:0"),
            ("98:0", "4294967296:0"),
            (" /mnt", r" /m\04"),
            (" /mnt", r" /m\999"),
            (" /mnt", r" /m\400"),
            (" /mnt", " mnt"),
            (" -", "  -"),
            (" -", " shared:x -"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(Mount::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
