//! What uses block devices: mounts in every mount namespace, and swap.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Disk;
use crate::mount::MountTable;

use crate::{DeviceNumber, Error, Kind};

/// Mounts and swap devices at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    mounts: HashMap<DeviceNumber, Vec<PathBuf>>,
    /// Of this process's own namespace: mount points and the devices below them.
    own: Vec<(PathBuf, DeviceNumber)>,
    swaps: Vec<Swap>,
}

/// A line of `/proc/swaps` that names a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Swap {
    name: Vec<u8>,
    number: Option<DeviceNumber>,
}

impl Users {
    /// Reads the tables below a directory like `/proc`.
    ///
    /// The own table must be readable and whole; those of other namespaces are read as far as the kernel lets us, for
    /// their processes come and go.
    pub(super) fn read(proc: &Path) -> Result<Self, Error> {
        let own_path = proc.join("self/mountinfo");
        let tried = format!("read the mount table in {}", own_path.display());
        let text = fs::read(&own_path).map_err(|cause| Error::system(&tried, cause))?;
        let own = MountTable::parse(&text)
            .map_err(|cause| Error::new(Kind::Inconsistent, &tried).with_answer(cause.to_string()))?;
        let mut users = Self { swaps: swaps(proc), ..Self::default() };
        users.add(&own);
        users.own =
            own.iter().filter_map(|mount| Some((mount.mount_point.clone(), mount.block_device()?))).collect();
        for table in foreign_tables(proc) {
            users.add(&table);
        }
        for places in users.mounts.values_mut() {
            places.sort_unstable();
            places.dedup();
        }
        Ok(users)
    }

    fn add(&mut self, table: &MountTable) {
        for mount in table.iter() {
            if let Some(number) = mount.block_device() {
                self.mounts.entry(number).or_default().push(mount.mount_point.clone());
            }
        }
    }

    pub(super) fn mounted_at(&self, number: DeviceNumber) -> &[PathBuf] {
        self.mounts.get(&number).map_or(&[], Vec::as_slice)
    }

    pub(super) fn swaps(&self, disk: &Disk) -> bool {
        self.swaps.iter().any(|swap| match swap.number {
            Some(number) => number == disk.number,
            // The path is of the host, and this process may not see it.
            None => swap.name == disk.name.as_bytes(),
        })
    }

    /// The device whose filesystem a file lies on, by the mount table alone: a file on a dead server is not touched.
    pub(super) fn device_of_file(&self, file: &Path) -> Option<DeviceNumber> {
        let below = self.own.iter().filter(|(point, _)| file.starts_with(point));
        below.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, number)| *number)
    }
}

/// The mount tables of all other mount namespaces that have a process.
fn foreign_tables(proc: &Path) -> Vec<MountTable> {
    let namespace = |process: &str| fs::read_link(proc.join(process).join("ns/mnt")).ok();
    let mut seen: BTreeSet<PathBuf> = namespace("self").into_iter().collect();
    let processes = fs::read_dir(proc)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut tables = Vec::new();
    for process in processes {
        let Some(of) = namespace(&process) else { continue };
        if seen.contains(&of) {
            continue;
        }
        // A process that has just ended gives an empty table; another of its namespace may tell.
        let text = fs::read(proc.join(&process).join("mountinfo")).unwrap_or_default();
        if let Ok(table) = MountTable::parse(&text)
            && !table.is_empty()
        {
            seen.insert(of);
            tables.push(table);
        }
    }
    tables
}

/// The devices in `/proc/swaps`; a kernel without swap has no such file.
fn swaps(proc: &Path) -> Vec<Swap> {
    let text = fs::read(proc.join("swaps")).unwrap_or_default();
    text.split(|&byte| byte == b'\n').skip(1).filter_map(Swap::parse).collect()
}

impl Swap {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let path = Path::new(OsStr::from_bytes(words.next()?));
        if words.next()? != b"partition" {
            return None;
        }
        let metadata = path.metadata().ok().filter(|metadata| metadata.file_type().is_block_device());
        let name = path.file_name()?.as_bytes().to_vec();
        Some(Self { name, number: metadata.map(|metadata| DeviceNumber::from_rdev(metadata.rdev())) })
    }
}
