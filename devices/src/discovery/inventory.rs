//! All block devices at one moment, how they are built on one another, and what uses them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::users::Users;
use super::{Discovery, Disk, DiskType, Purpose};
use crate::{DeviceNumber, Error, Kind};

/// How many devices deep a stack may be; the kernel itself gives up long before.
const DEEPEST: usize = 64;

/// All block devices at one moment, and what uses them.
#[derive(Clone, Debug)]
pub struct Inventory {
    disks: Vec<Disk>,
    by_name: HashMap<String, usize>,
    by_number: HashMap<DeviceNumber, usize>,
    users: Users,
}

impl Inventory {
    pub(super) fn read(discovery: &Discovery) -> Result<Self, Error> {
        let disks = discovery.names()?.iter().filter_map(|name| discovery.disk(name)).collect();
        let users = Users::read(&discovery.proc)?;
        Ok(Self::new(disks, users))
    }

    fn new(mut disks: Vec<Disk>, users: Users) -> Self {
        disks.sort_by_cached_key(|disk| natural(&disk.name));
        let by_number: HashMap<_, _> = disks.iter().enumerate().map(|(at, disk)| (disk.number, at)).collect();
        let by_name = disks.iter().enumerate().map(|(at, disk)| (disk.name.clone(), at)).collect();
        let files: Vec<Option<String>> = disks
            .iter()
            .map(|disk| match &disk.kind {
                DiskType::Loop(Some(file)) if !file.deleted => {
                    let number = users.device_of_file(&file.path)?;
                    by_number.get(&number).and_then(|at| disks.get(*at)).map(|disk| disk.name.clone())
                }
                _ => None,
            })
            .collect();
        for (disk, file) in disks.iter_mut().zip(files) {
            disk.below.extend(file);
        }
        Self { disks, by_name, by_number, users }
    }

    /// Every device, by name; numbers in names count as numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, Disk> {
        self.disks.iter()
    }

    /// The device of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Disk> {
        self.disks.get(*self.by_name.get(name)?)
    }

    /// The device of this number.
    #[must_use]
    pub fn by_number(&self, number: DeviceNumber) -> Option<&Disk> {
        self.disks.get(*self.by_number.get(&number)?)
    }

    /// The device that a path leads to, be it a node, a symbolic link or a name of device-mapper's. Nothing is opened.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when there is nothing at that path, [`Kind::InvalidArgument`] when it is no block device,
    /// [`Kind::Inconsistent`] for a link of udev's (`/dev/disk/by-partuuid/…`) that is a name of another device as
    /// well: of a copy, mostly. Where it leads is chance then.
    pub fn at(&self, path: &Path) -> Result<&Disk, Error> {
        let tried = || format!("find the disk {}", path.display());
        let metadata = fs::metadata(path).map_err(|cause| Error::system(tried(), cause))?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::new(Kind::InvalidArgument, tried()).with_answer("this is not a block device"));
        }
        let number = DeviceNumber::from_rdev(metadata.rdev());
        let disk = self.by_number(number).ok_or_else(|| {
            Error::new(Kind::NotFound, tried())
                .with_answer(format!("the kernel has no block device {number}"))
                .with_advice("the node is left from a device that has gone")
        })?;
        let link = path.to_owned();
        let shared = |other: &&Disk| other.links.contains(&link) && !self.are_one(disk, other);
        match self.disks.iter().find(shared) {
            None => Ok(disk),
            Some(other) => Err(Error::new(Kind::Inconsistent, tried())
                .with_answer(format!("this is a name of {} and of {}", disk.name, other.name))
                .with_advice("use another name, or give a copied disk identifiers of its own (sgdisk -G)")),
        }
    }

    /// Whether two devices are the same storage, or the same partition of it, seen over different paths.
    fn are_one(&self, one: &Disk, other: &Disk) -> bool {
        let disk_of = |disk: &Disk| match &disk.kind {
            DiskType::Partition(partition) => self.by_name(&partition.disk),
            _ => None,
        };
        let start_of = |disk: &Disk| match &disk.kind {
            DiskType::Partition(partition) => Some(partition.start),
            _ => None,
        };
        self.overlap(one, other)
            || match (disk_of(one), disk_of(other)) {
                (Some(first), Some(second)) => {
                    start_of(one) == start_of(other) && self.overlap(first, second)
                }
                _ => false,
            }
    }

    /// Where the device's filesystem is mounted, in any mount namespace that a process of this system lives in.
    #[must_use]
    pub fn mounted_at(&self, disk: &Disk) -> &[PathBuf] {
        self.users.mounted_at(disk.number)
    }

    /// Whether the kernel swaps to the device.
    #[must_use]
    pub fn is_swap(&self, disk: &Disk) -> bool {
        self.users.swaps(disk)
    }

    /// Everything that the device is made of, down to the bottom: legs, cache members, a partition's disk, the disk
    /// under a loop device's file. Without the device itself.
    #[must_use]
    pub fn all_below(&self, disk: &Disk) -> Vec<&Disk> {
        self.closure(disk, |disk| disk.below.clone())
    }

    /// Everything that is built on the device, up to the top, partitions among them. Without the device itself.
    #[must_use]
    pub fn all_above(&self, disk: &Disk) -> Vec<&Disk> {
        self.closure(disk, |disk| disk.holders.iter().chain(&disk.partitions).cloned().collect())
    }

    /// The disk that a partition is a part of; every other device itself.
    #[must_use]
    pub fn whole<'a>(&'a self, disk: &'a Disk) -> &'a Disk {
        match &disk.kind {
            DiskType::Partition(partition) => self.by_name(&partition.disk).unwrap_or(disk),
            _ => disk,
        }
    }

    /// A suspended device of device-mapper among those that the device is made of: to read it may hang, although an open
    /// does not.
    #[must_use]
    pub fn suspended_below(&self, disk: &Disk) -> Option<&Disk> {
        self.all_below(disk).into_iter().find(|below| below.is_suspended())
    }

    fn closure(&self, disk: &Disk, next: impl Fn(&Disk) -> Vec<String>) -> Vec<&Disk> {
        let mut seen = BTreeSet::from([disk.name.clone()]);
        let mut found: Vec<&Disk> = Vec::new();
        let mut names = next(disk);
        for _ in 0..DEEPEST {
            names.retain(|name| seen.insert(name.clone()));
            let layer: Vec<&Disk> = names.iter().filter_map(|name| self.by_name(name)).collect();
            names = layer.iter().flat_map(|disk| next(disk)).collect();
            found.extend(layer);
            if names.is_empty() {
                break;
            }
        }
        found
    }

    /// Other whole disks that bear the same world-wide name, or the same serial number of the same model: the same disk,
    /// seen over another path. What multipath has joined is found by [`Disk::holders`].
    #[must_use]
    pub fn other_paths(&self, disk: &Disk) -> Vec<&Disk> {
        if disk.kind != DiskType::Disk {
            return Vec::new();
        }
        let Some(key) = disk.key() else { return Vec::new() };
        let same = |other: &&Disk| other.name != disk.name && other.key().as_ref() == Some(&key);
        self.disks.iter().filter(same).collect()
    }

    /// Other devices that bear the same key: copies, partition uuids and all, or other paths to the same disk. Which of
    /// them is meant by the key cannot be told.
    #[must_use]
    pub fn namesakes(&self, disk: &Disk) -> Vec<&Disk> {
        let Some(key) = disk.key() else { return Vec::new() };
        let same = |other: &&Disk| other.number != disk.number && other.key().as_ref() == Some(&key);
        self.disks.iter().filter(same).collect()
    }

    /// Fails when a device is not the only one with its key.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`], with the names of the others.
    pub fn refuse_namesakes(&self, disk: &Disk, tried: &str) -> Result<(), Error> {
        let others = self.namesakes(disk);
        let (Some(key), false) = (disk.key(), others.is_empty()) else { return Ok(()) };
        let names: Vec<_> = others.iter().map(|other| other.name.as_str()).collect();
        Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("{key} is {}, and {} as well", disk.name, names.join(", ")))
            .with_advice("give a copied disk identifiers of its own (sgdisk -G), or use a multipath device"))
    }

    /// Whether two devices share storage: one is the other, is made of it, or is another path to it.
    #[must_use]
    pub fn overlap(&self, one: &Disk, other: &Disk) -> bool {
        let reaches = |top: &Disk, bottom: &Disk| {
            let mut stack = self.all_below(top);
            stack.push(top);
            stack.iter().any(|disk| {
                disk.number == bottom.number
                    || self.other_paths(disk).iter().any(|path| path.number == bottom.number)
            })
        };
        reaches(one, other) || reaches(other, one)
    }

    /// The multipath device that has joined this path with others.
    #[must_use]
    pub fn multipath_of(&self, disk: &Disk) -> Option<&Disk> {
        disk.holders.iter().filter_map(|name| self.by_name(name)).find(|holder| {
            matches!(&holder.kind, DiskType::Mapped(mapped) if Purpose::of(mapped) == Purpose::Multipath)
        })
    }
}

impl<'a> IntoIterator for &'a Inventory {
    type Item = &'a Disk;
    type IntoIter = std::slice::Iter<'a, Disk>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Text and numbers in turn, so that `sda2` comes before `sda10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut in_number = false;
    for c in name.chars() {
        if !c.is_ascii_digit() && in_number {
            parts.push((String::new(), 0));
        }
        in_number = c.is_ascii_digit();
        if let Some((text, number)) = parts.last_mut() {
            match c.to_digit(10) {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(u64::from(digit)),
                None => text.push(c),
            }
        }
    }
    parts
}
