//! Partitions: volumes on disks with a partition table of ours, shared or one disk each.
//!
//! The table's own entry is the whole record: its GUID follows from owner and id, its name is the id, and its attributes
//! say what is on it. A partition comes to be in one write with both ends zeroed before, so none is ever half-made.

use std::fs::File;
use std::path::{Path, PathBuf};

use devices::Bytes;
use devices::erase::{Cancel, Method, erase};
use devices::gpt::{self, ALIGNMENT, Disk, DiskFile, Ownership, Partition, State, Table};
use lvm::ops::SizeRange;

use super::{Backend, Medium, NewVolume, Ready, rounded};
use crate::class::{DeviceClass, OnDelete, Reserve};
use crate::health::{HealthIssue, Severity};
use crate::lock::{Held, Lock};
use crate::{Capacity, Content, Error, FsType, Kind, Lifecycle, Limits, Owner, Volume, VolumeId};

/// Disks with partitions.
#[derive(Debug)]
pub(crate) struct Partitions {
    pub(crate) class: DeviceClass,
    pub(crate) owner: Owner,
    /// The disks, in the order of their names, each with a table of this owner.
    pub(crate) disks: Vec<PathBuf>,
    pub(crate) sharing: Sharing,
}

/// How many volumes a disk takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// As many as fit.
    Shared,
    /// One.
    Exclusive,
}

/// The table of a disk if it is this owner's, whatever else the disk holds; nothing is changed.
pub(crate) fn own_table(disk: &Path, owner: &Owner) -> Result<Option<gpt::Condition>, Error> {
    let found = gpt::inspect(&DiskFile::open_to_read(disk)?)?;
    let ours = found.table().is_some_and(|table| owner.gpt().owns_disk(table.disk_guid()));
    Ok(ours.then(|| found.condition().clone()))
}

impl Partitions {
    fn table(&self, disk: &Path) -> Result<Table, Error> {
        let found = gpt::inspect(&DiskFile::open_to_read(disk)?)?;
        found.table().cloned().ok_or_else(|| {
            Error::new(Kind::Unavailable, format!("read the partition table of {}", disk.display()))
                .with_answer(found.condition().to_string())
                .with_advice(
                    "see what happened to the disk; the node mends a damaged table when it is opened",
                )
        })
    }

    fn open(&self, disk: &Path) -> Result<Disk, Error> {
        Ok(Disk::open(disk, self.owner.gpt())?)
    }

    /// The disk of a volume and its partition.
    fn find(&self, id: &VolumeId, tried: &str) -> Result<Option<(&Path, Partition)>, Error> {
        let wanted = id.to_gpt()?;
        for disk in &self.disks {
            let found = self.table(disk)?.find(self.owner.gpt(), &wanted);
            if let Some(partition) = found {
                if let State::Unknown(code) = partition.state() {
                    return Err(Error::new(Kind::Refused, tried)
                        .with_answer(format!("its state {code} was written by a later version")));
                }
                return Ok(Some((disk, partition)));
            }
        }
        Ok(None)
    }

    fn must_find(&self, id: &VolumeId, tried: &str) -> Result<(&Path, Partition), Error> {
        self.find(id, tried)?.ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("no disk of class {} has its partition any more", self.class.name))
        })
    }

    /// What a partition is as a volume, if it is complete.
    fn as_volume(&self, id: VolumeId, partition: &Partition) -> Option<Volume> {
        let content = match partition.state() {
            State::New => Content::New,
            State::Formatting => Content::Formatting,
            State::Ext4 => Content::Filesystem(FsType::Ext4),
            State::Xfs => Content::Filesystem(FsType::Xfs),
            State::Btrfs => Content::Filesystem(FsType::Btrfs),
            State::Block => Content::Block,
            _ => return None,
        };
        Some(Volume {
            id,
            class: self.class.name.clone(),
            size: partition.size,
            content,
            fs_type: None,
            source: None,
            lifecycle: Lifecycle::Persistent,
            limits: Limits::NONE,
        })
    }

    /// What a new volume can have of a disk.
    fn largest_on(&self, table: &Table) -> Bytes {
        match self.sharing {
            Sharing::Exclusive if !table.partitions().is_empty() => Bytes::ZERO,
            _ => table.largest(),
        }
    }

    /// Room on all disks: in all, free, and the largest single gap.
    fn room(&self) -> Result<(Bytes, Bytes, Bytes), Error> {
        let (mut total, mut free, mut largest) = (0_u64, 0_u64, Bytes::ZERO);
        for disk in &self.disks {
            let table = self.table(disk)?;
            let taken: u64 = table.partitions().iter().map(|partition| partition.size.get()).sum();
            total = total.saturating_add(table.free().get()).saturating_add(taken);
            let of_disk = self.largest_on(&table);
            free = free.saturating_add(match self.sharing {
                Sharing::Shared => table.free().get(),
                Sharing::Exclusive => of_disk.get(),
            });
            largest = largest.max(of_disk);
        }
        let available = Bytes::new(free).saturating_sub(self.class.spec.reserve.of(Bytes::new(total)));
        Ok((Bytes::new(total), available, largest.min(available).round_down(ALIGNMENT).unwrap_or_default()))
    }

    /// Whether so much more can be taken without the reserve.
    fn leaves_reserve(&self, more: Bytes, tried: &str) -> Result<(), Error> {
        if self.class.spec.reserve == Reserve::default() {
            return Ok(());
        }
        let (_, available, _) = self.room()?;
        if more <= available {
            return Ok(());
        }
        Err(Error::new(Kind::NoSpace, tried)
            .with_answer(format!("{more} are needed, and {available} are left on the disks of the class")))
    }

    /// The disks that hold a partition of this size, the one with the least room to spare first.
    fn disks_for(&self, size: Bytes) -> Result<Vec<&Path>, Error> {
        let mut fitting = Vec::new();
        for disk in &self.disks {
            let largest = self.largest_on(&self.table(disk)?);
            if largest >= size {
                fitting.push((largest, disk.as_path()));
            }
        }
        fitting.sort();
        Ok(fitting.into_iter().map(|(_, disk)| disk).collect())
    }

    /// Removes what was being made or removed when its maker died, and tells what. What another process is at work with
    /// stays.
    pub(crate) fn repair(&self, locks: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
        let mut done = Vec::new();
        for path in &self.disks {
            let table = self.table(path)?;
            let left = table
                .partitions()
                .into_iter()
                .filter(|partition| matches!(partition.state(), State::Creating | State::Removing));
            for partition in left {
                let number = partition.number;
                let what = format!("partition {number}, which was half-made or half-removed");
                // An id that is too long for a partition's name is known only to who asks for it.
                let id: Option<VolumeId> = match table.ownership(self.owner.gpt(), number) {
                    Some(Ownership::Ours(Some(id))) => Some(id.as_str().parse()?),
                    _ => None,
                };
                let lock = id.map(|id| Lock::take(locks, Held::Volume(&id), &format!("remove {what}")));
                if lock.as_ref().is_some_and(|lock| matches!(lock, Err(error) if error.kind() == Kind::Busy))
                {
                    continue;
                }
                let _lock = lock.transpose()?;
                match self.end_removal(path, &partition) {
                    Ok(()) => done.push((path.clone(), format!("removed {what}"))),
                    // Whoever has it open is erasing it.
                    Err(error) if error.kind() == Kind::InUse => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(done)
    }

    /// Ends what was begun: a partition that was used is erased, as its class demands, before it goes.
    fn end_removal(&self, path: &Path, partition: &Partition) -> Result<(), Error> {
        let number = partition.number;
        if partition.state() == State::Removing && self.class.spec.volume.on_delete != OnDelete::None {
            // Erasing may take hours: other volumes of the disk are not kept waiting. As long as it is open it stays the
            // partition of this number.
            let (node, _held) = {
                let disk = self.open(path)?;
                if disk.table().partition(number).as_ref() != Some(partition) {
                    return Ok(());
                }
                let node = disk.node(number)?;
                let held = File::open(&node);
                let held = held.map_err(|cause| Error::system(format!("open {}", node.display()), cause))?;
                (node, held)
            };
            self.erase(&node)?;
        }
        let mut disk = self.open(path)?;
        // Another process may have ended it meanwhile.
        if disk.table().partition(number).as_ref() == Some(partition) {
            let _ = disk.remove(number)?;
        }
        Ok(())
    }

    fn erase(&self, node: &Path) -> Result<(), Error> {
        let method = match self.class.spec.volume.on_delete {
            OnDelete::None => return Ok(()),
            OnDelete::Discard => Method::Discard,
            OnDelete::Zero => Method::ZeroOut,
        };
        match erase(node, method, &Cancel::new(), &mut |_| {}) {
            // A disk that cannot discard has nothing to give back.
            Err(error) if method == Method::Discard && error.kind() == devices::Kind::Unsupported => Ok(()),
            erased => {
                erased?;
                Ok(())
            }
        }
    }
}

impl Backend for Partitions {
    fn class(&self) -> &DeviceClass {
        &self.class
    }

    fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let mut volumes = Vec::new();
        for disk in &self.disks {
            let table = self.table(disk)?;
            for partition in table.partitions() {
                // An id that is too long for a partition's name is known only to who asks for it.
                if let Some(Ownership::Ours(Some(id))) = table.ownership(self.owner.gpt(), partition.number) {
                    volumes.extend(self.as_volume(id.as_str().parse()?, &partition));
                }
            }
        }
        Ok(volumes)
    }

    fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        let found = self.find(id, &format!("find volume {id}"))?;
        Ok(found.and_then(|(_, partition)| self.as_volume(id.clone(), &partition)))
    }

    fn create(&self, new: &NewVolume<'_>, tried: &str) -> Result<Volume, Error> {
        let size = rounded(new.size, ALIGNMENT, tried)?;
        self.leaves_reserve(size, tried)?;
        let wanted = new.id.to_gpt()?;
        for path in self.disks_for(size)? {
            let mut disk = self.open(path)?;
            // It may have been filled since it was looked at.
            if self.largest_on(disk.table()) < size {
                continue;
            }
            let partition = disk.add(&wanted, size, State::New)?;
            return self.as_volume(new.id.clone(), &partition).ok_or_else(|| {
                Error::new(Kind::Internal, tried).with_answer("the partition that was made has another state")
            });
        }
        let (_, _, largest) = self.room()?;
        Err(Error::new(Kind::NoSpace, tried)
            .with_answer(format!("{size} are needed, and the largest gap has {largest}"))
            .with_advice("ask for less, remove something, or add a disk to the class"))
    }

    fn delete(&self, volume: &Volume, tried: &str) -> Result<(), Error> {
        let (path, partition) = self.must_find(&volume.id, tried)?;
        // Nobody may use it from here on, whatever happens to this process.
        let marked = self.open(path)?.set_state(partition.number, State::Removing)?;
        let removed = self.end_removal(path, &marked);
        if removed.as_ref().is_err_and(|error| error.kind() == Kind::InUse) {
            // It is still whole where somebody uses it.
            self.open(path)?.set_state(partition.number, partition.state())?;
        }
        removed
    }

    fn delete_unfinished(&self, id: &VolumeId, tried: &str) -> Result<(), Error> {
        match self.find(id, tried)? {
            Some((path, partition)) if matches!(partition.state(), State::Creating | State::Removing) => {
                self.end_removal(path, &partition)
            }
            _ => Ok(()),
        }
    }

    fn grow(&self, volume: &Volume, size: SizeRange, tried: &str) -> Result<Volume, Error> {
        let size = rounded(size, ALIGNMENT, tried)?;
        let (path, partition) = self.must_find(&volume.id, tried)?;
        if size > partition.size {
            self.leaves_reserve(size.saturating_sub(partition.size), tried)?;
            self.open(path)?.grow(partition.number, size)?;
        }
        let (_, partition) = self.must_find(&volume.id, tried)?;
        self.as_volume(volume.id.clone(), &partition).ok_or_else(|| {
            Error::new(Kind::Internal, tried).with_answer("the partition has another state meanwhile")
        })
    }

    fn ready(&self, volume: &Volume, tried: &str) -> Result<Ready, Error> {
        let (path, partition) = self.must_find(&volume.id, tried)?;
        // While the disk is locked nobody reads its table anew, so the partition stays from the look to the opening.
        let disk = self.open(path)?;
        let node = disk.node(partition.number)?;
        let held = File::open(&node).map_err(|cause| Error::system(tried, cause))?;
        Ok(Ready { medium: Medium::Device(node), held: Some(held) })
    }

    fn medium(&self, volume: &Volume) -> Result<Medium, Error> {
        let (path, partition) =
            self.must_find(&volume.id, &format!("find the device of volume {}", volume.id))?;
        // The kernel's own way of naming: a number after a number gets a letter between.
        let disk = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = disk.display().to_string();
        let between = if text.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
        Ok(Medium::Device(PathBuf::from(format!("{text}{between}{}", partition.number))))
    }

    fn set_content(&self, volume: &Volume, content: Content, tried: &str) -> Result<(), Error> {
        let (path, partition) = self.must_find(&volume.id, tried)?;
        let state = match content {
            Content::New => State::New,
            Content::Formatting => State::Formatting,
            Content::Filesystem(FsType::Ext4) => State::Ext4,
            Content::Filesystem(FsType::Xfs) => State::Xfs,
            Content::Filesystem(FsType::Btrfs) => State::Btrfs,
            Content::Block => State::Block,
        };
        self.open(path)?.set_state(partition.number, state)?;
        Ok(())
    }

    /// Each table was read just now: a disk that is gone, or does not answer, is an error of its own.
    fn health(&self, volume: &Volume) -> Result<Vec<HealthIssue>, Error> {
        let Medium::Device(node) = self.medium(volume)? else { return Ok(Vec::new()) };
        if node.exists() {
            return Ok(Vec::new());
        }
        let message = format!("the partition is in its disk's table, and {} is not there", node.display());
        Ok(vec![HealthIssue::new(Severity::Inaccessible, "DeviceMissing", message)])
    }

    fn pool_health(&self) -> Result<Vec<HealthIssue>, Error> {
        let unread = |disk: &PathBuf| {
            let error = self.table(disk).err()?;
            Some(format!("{}: {error}", disk.display()))
        };
        let unread: Vec<String> = self.disks.iter().filter_map(unread).collect();
        if unread.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![HealthIssue::new(Severity::Degraded, "PartitionTableUnreadable", unread.join("; "))])
    }

    fn more_volumes(&self) -> Result<Option<u64>, Error> {
        let mut more = 0;
        for disk in &self.disks {
            let table = self.table(disk)?;
            more += match self.sharing {
                Sharing::Shared => table.free_entries(),
                Sharing::Exclusive => usize::from(table.partitions().is_empty()),
            };
        }
        Ok(u64::try_from(more).ok())
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let (total, available, largest) = self.room()?;
        Ok(Capacity { total, available, largest, minimum: ALIGNMENT })
    }
}
