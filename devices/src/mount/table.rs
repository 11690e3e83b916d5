//! The mount table of this process's namespace.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Mount, MountId};
use crate::{DeviceNumber, Error, Kind};

const MOUNTINFO: &str = "/proc/self/mountinfo";
/// How often the table is read again because it changed meanwhile. What is read last is taken in any case: on a
/// host that mounts without pause, each reading is as good as any.
const READINGS: u32 = 5;

/// A line that is not one of a mount table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the mount table: {reason}")]
pub struct MalformedTable {
    line: usize,
    reason: &'static str,
}

impl MalformedTable {
    /// The number of the line, the first being 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
}

/// Every mount of a namespace, in the kernel's order.
///
/// ```no_run
/// use devices::mount::MountTable;
///
/// let table = MountTable::read()?;
/// if let Some(mount) = table.at("/srv/data".as_ref()) {
///     println!("{:?} of {}", mount.fs_type, mount.device);
/// }
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountTable {
    mounts: Vec<Mount>,
}

impl MountTable {
    /// The table of this process's namespace, as it was at one moment: it is read again if it changed meanwhile.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when `/proc` cannot be read, [`Kind::Inconsistent`] for a line that is none of a mount table.
    /// Half a table is never given, since what is missing would look unmounted.
    pub fn read() -> Result<Self, Error> {
        let tried = "read the mount table in /proc/self/mountinfo";
        let mut text = Vec::new();
        for _ in 0..READINGS {
            text.clear();
            let mut file = File::open(MOUNTINFO).map_err(|cause| Error::system(tried, cause))?;
            file.read_to_end(&mut text).map_err(|cause| Error::system(tried, cause))?;
            if !changed_since_opened(&file) {
                break;
            }
        }
        Self::parse(&text).map_err(|cause| {
            Error::new(Kind::Inconsistent, tried)
                .with_answer(cause.to_string())
                .with_advice("report this line, for without the whole table nothing is mounted or unmounted")
        })
    }

    /// Reads a table of the form of `/proc/self/mountinfo`. Memory is a small multiple of the text's length.
    ///
    /// # Errors
    ///
    /// [`MalformedTable`] with the first line that is not of that form.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedTable> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if text.is_empty() {
            return Ok(Self::default());
        }
        let lines = text.split(|&byte| byte == b'\n').enumerate();
        let mounts = lines
            .map(|(index, line)| {
                Mount::parse(line).map_err(|reason| MalformedTable { line: index + 1, reason })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { mounts })
    }

    /// Every mount, in the kernel's order.
    pub fn iter(&self) -> std::slice::Iter<'_, Mount> {
        self.mounts.iter()
    }

    /// How many mounts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mounts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// The mount of that number.
    #[must_use]
    pub fn by_id(&self, id: MountId) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.id == id)
    }

    /// What is mounted exactly at a path, the topmost if several lie there. The path is compared as text: resolve
    /// it first where it may hold symbolic links.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<&Mount> {
        self.stack_at(path).pop()
    }

    /// Everything that is mounted exactly at a path, one on the other, the topmost last.
    #[must_use]
    pub fn stack_at(&self, path: &Path) -> Vec<&Mount> {
        let here: Vec<_> = self.mounts.iter().filter(|mount| mount.mount_point == path).collect();
        if here.len() < 2 {
            return here;
        }
        let by_id: HashMap<_, _> = here.iter().map(|mount| (mount.id, *mount)).collect();
        let depth = |mount: &Mount| {
            let mut depth = 0;
            let mut below = mount;
            // Bounded: a table that is not the kernel's may hold a circle.
            while depth < here.len() && below.parent != below.id {
                let Some(parent) = by_id.get(&below.parent) else { break };
                (below, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut stack: Vec<_> = here.iter().map(|mount| (depth(mount), *mount)).collect();
        stack.sort_by_key(|(depth, _)| *depth);
        stack.into_iter().map(|(_, mount)| mount).collect()
    }

    /// The mounts that show a filesystem on this block device, wherever they lie; btrfs too.
    pub fn of_device(&self, device: DeviceNumber) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(move |mount| mount.block_device() == Some(device))
    }

    /// The mounts whose source was written exactly so when they were made. A device has many names, and any of
    /// them may be there: prefer [`MountTable::of_device`].
    pub fn of_source(&self, source: &OsStr) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(move |mount| mount.source == source)
    }

    /// The mounts that lie below a path, itself not included.
    pub fn below(&self, path: &Path) -> impl Iterator<Item = &Mount> {
        self.mounts
            .iter()
            .filter(move |mount| mount.mount_point != path && mount.mount_point.starts_with(path))
    }
}

impl<'a> IntoIterator for &'a MountTable {
    type Item = &'a Mount;
    type IntoIter = std::slice::Iter<'a, Mount>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The kernel marks an open mount table as exceptional once mounts changed since it was opened.
fn changed_since_opened(file: &File) -> bool {
    let mut waited = [PollFd::new(file, PollFlags::PRI)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut waited, Some(&at_once)), Ok(1..)) && waited[0].revents().contains(PollFlags::PRI)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Escapes as `seq_path_root` and `mangle` do.
    fn escaped(plain: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for &byte in plain {
            if b" \t\n\\#".contains(&byte) {
                text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            } else {
                text.push(byte);
            }
        }
        text
    }

    fn line(id: u64, parent: u64, mount_point: &[u8]) -> Vec<u8> {
        let mut line = format!("{id} {parent} 8:1 / ").into_bytes();
        line.extend(escaped(mount_point));
        line.extend_from_slice(b" rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
        line
    }

    fn ids(mounts: &[&Mount]) -> Vec<MountId> {
        mounts.iter().map(|mount| mount.id).collect()
    }

    #[test]
    fn the_topmost_mount_is_found_in_whatever_order_the_kernel_lists_them() {
        let mut text = Vec::new();
        for (id, parent) in [(5, 4), (3, 1), (1, 1), (4, 3)] {
            text.extend(line(id, parent, if id == 1 { b"/" } else { b"/data" }));
        }
        let table = MountTable::parse(&text).unwrap();
        let stack = table.stack_at(Path::new("/data"));
        assert_eq!(ids(&stack), [3, 4, 5].map(MountId::new));
        assert_eq!(table.at(Path::new("/data")).unwrap().id, MountId::new(5));
        assert_eq!(table.at(Path::new("/data/")).unwrap().id, MountId::new(5));
        assert_eq!(table.at(Path::new("/dat")), None);
        assert_eq!(ids(&table.below(Path::new("/")).collect::<Vec<_>>()), [5, 3, 4].map(MountId::new));
    }

    #[test]
    fn mounts_in_a_circle_end_the_search_all_the_same() {
        let mut text = line(1, 2, b"/data");
        text.extend(line(2, 1, b"/data"));
        assert_eq!(MountTable::parse(&text).unwrap().stack_at(Path::new("/data")).len(), 2);
    }

    #[test]
    fn one_bad_line_is_named_and_spoils_the_table() {
        let mut text = line(1, 1, b"/");
        text.extend_from_slice(b"rubbish\n");
        text.extend(line(2, 1, b"/data"));
        let error = MountTable::parse(&text).unwrap_err();
        assert_eq!(error.to_string(), "line 2 of the mount table: the mount id is no number");
        assert_eq!(MountTable::parse(b"").unwrap().len(), 0);
        assert!(MountTable::parse(b"\n\n").is_err());
    }

    #[test]
    fn thirty_thousand_mounts_are_read_and_found() {
        let mut text = line(1, 1, b"/");
        for id in 2..30_002 {
            text.extend(line(id, 1, format!("/var/lib/kubelet/pods/{id}/mount").as_bytes()));
        }
        let table = MountTable::parse(&text).unwrap();
        assert_eq!(table.len(), 30_001);
        let last = table.at(Path::new("/var/lib/kubelet/pods/30001/mount")).unwrap();
        assert_eq!(last.id, MountId::new(30_001));
    }

    #[test]
    fn the_table_of_this_process_is_read() {
        // Not the root: below another one, as of a container that was made by chroot, it need not be a mount.
        let table = MountTable::read().unwrap();
        assert!(table.at(Path::new("/proc")).is_some());
    }

    proptest! {
        #[test]
        fn every_path_survives_the_kernels_escapes(name in proptest::collection::vec(1_u8.., 0..40)) {
            let mut path = b"/".to_vec();
            path.extend(name);
            let table = MountTable::parse(&line(7, 1, &path)).unwrap();
            let mount = table.iter().next().unwrap();
            prop_assert_eq!(mount.mount_point.as_os_str().as_encoded_bytes(), path.as_slice());
        }

        #[test]
        fn no_text_panics(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = MountTable::parse(&text);
        }

        #[test]
        fn nearly_good_text_never_panics(text in "([0-9]{1,21} ){2}[0-9:]{1,12} (/[\\\\0-9a-z/]{0,9} ){2}[a-z,]{0,9} ([a-z:0-9]{0,9} ){0,3}- [a-z]{0,5} [a-z]{0,5} [a-z ]{0,9}") {
            if let Ok(table) = MountTable::parse(text.as_bytes()) {
                prop_assert_eq!(table.len(), 1);
            }
        }
    }
}
