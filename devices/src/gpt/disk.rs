//! A partitioned disk: the table and the kernel's view of it, changed together.

use std::path::{Path, PathBuf};

use super::file::{Access, DiskFile};
use super::inspect::Damage;
use super::lock::Turn;
use super::medium::Medium;
use super::ours::{Owner, State, VolumeId};
use super::table::{Partition, PartitionNumber, Table};
use super::{Gpt, kernel};
use crate::{Bytes, DeviceNumber, Error, Kind};

/// A disk with a sound table of ours, and nothing else.
///
/// While it lives, the disk is locked against udev and every program that keeps to its lock
/// (<https://systemd.io/BLOCK_DEVICE_LOCKING>), so none reads the table half-changed. Threads of this process have it in
/// the order in which they asked; the same thread must not open it twice.
#[derive(Debug)]
pub struct Disk {
    // Closing the file unlocks the disk, before the next one of this process has its turn.
    gpt: Gpt<DiskFile>,
    number: DeviceNumber,
    _turn: Turn,
}

impl Disk {
    /// Opens a disk to change its partitions, and tells the kernel whatever it does not know of them.
    ///
    /// # Errors
    ///
    /// As [`Gpt::open`]; [`Kind::Busy`] if another program keeps the disk locked; [`Kind::InUse`] if the kernel has a
    /// partition in use that the table does not have.
    pub fn open(path: &Path, owner: &Owner) -> Result<Self, Error> {
        let Locked { file, number, turn } = locked(path, Access::Write)?;
        Self::ready(Gpt::open(file, owner)?, number, turn)
    }

    /// Makes an empty table on a blank disk that nobody uses.
    ///
    /// # Errors
    ///
    /// As [`Gpt::create`]; [`Kind::InUse`] if the disk or a part of it is in use.
    pub fn create(path: &Path, owner: &Owner) -> Result<Self, Error> {
        let Locked { file, number, turn } = locked(path, Access::Write)?;
        // A descriptor of its own, of the same disk whatever the path leads to by now: as long as it is open nobody can
        // mount or hold anything of the disk, which is wanted now and not later.
        let claim = file.alone()?;
        let gpt = Gpt::create(file, owner)?;
        drop(claim);
        Self::ready(gpt, number, turn)
    }

    /// Mends a damaged table, as [`Gpt::repair`] does, and says what it mended.
    ///
    /// # Errors
    ///
    /// As [`Gpt::repair`] and [`Self::open`].
    pub fn repair(path: &Path, owner: &Owner) -> Result<(Self, Vec<Damage>), Error> {
        let Locked { file, number, turn } = locked(path, Access::Write)?;
        let (gpt, damages) = Gpt::repair(file, owner)?;
        Ok((Self::ready(gpt, number, turn)?, damages))
    }

    fn ready(gpt: Gpt<DiskFile>, number: DeviceNumber, turn: Turn) -> Result<Self, Error> {
        let mut disk = Self { gpt, number, _turn: turn };
        disk.tell_kernel()?;
        Ok(disk)
    }

    /// The table as it is now.
    #[must_use]
    pub fn table(&self) -> &Table {
        self.gpt.table()
    }

    /// Adds a partition for a volume, as [`Gpt::add`] does, and has the kernel make its device.
    ///
    /// # Errors
    ///
    /// As [`Gpt::add`], and of the kernel.
    pub fn add(&mut self, volume: &VolumeId, size: Bytes, state: State) -> Result<Partition, Error> {
        let planned = self.gpt.plan(volume, size, state)?;
        if let Some(stale) = self.known()?.into_iter().find(|known| known.overlaps(&planned)) {
            return Err(Error::new(Kind::InUse, format!("add a partition for {volume} to {}", self.name()))
                .with_answer(format!("the kernel has partition {} there", stale.number))
                .with_advice("open the disk again"));
        }
        let partition = self.gpt.add(volume, size, state)?;
        self.told(&partition, kernel::add)
    }

    /// Makes a partition larger where it is, also while it is mounted. The filesystem in it is not touched.
    ///
    /// # Errors
    ///
    /// As [`Gpt::grow`], and of the kernel.
    pub fn grow(&mut self, number: PartitionNumber, to: Bytes) -> Result<Partition, Error> {
        let partition = self.gpt.grow(number, to)?;
        self.told(&partition, kernel::resize)
    }

    /// Removes a partition that nobody uses, and then the signatures in it.
    ///
    /// # Errors
    ///
    /// As [`Gpt::remove`]; [`Kind::InUse`] if the partition is in use, and then nothing was changed.
    pub fn remove(&mut self, number: PartitionNumber) -> Result<Partition, Error> {
        if let Some(partition) = self.gpt.table().partition(number) {
            // First, since only the kernel can tell that nobody uses it, and nobody can come to use it afterwards.
            kernel::forget(self.gpt.medium().file(), self.name(), number)?;
            let gone = self.gpt.remove(number);
            if gone.is_err() && self.gpt.table().partition(number).is_some() {
                // What the table still has, the kernel shall have too; the first error is what counts.
                let _ = self.told(&partition, kernel::add);
            }
            return gone;
        }
        self.gpt.remove(number)
    }

    /// Notes how far a partition is.
    ///
    /// # Errors
    ///
    /// As [`Gpt::set_state`].
    pub fn set_state(&mut self, number: PartitionNumber, state: State) -> Result<Partition, Error> {
        self.gpt.set_state(number, state)
    }

    /// Makes the new space of a disk that has become larger usable.
    ///
    /// # Errors
    ///
    /// As [`Gpt::use_grown_disk`].
    pub fn use_grown_disk(&mut self) -> Result<(), Error> {
        self.gpt.use_grown_disk()
    }

    /// The device of a partition, once the kernel has it as the table has it.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such partition, or the kernel has another in its place.
    pub fn node(&self, number: PartitionNumber) -> Result<PathBuf, Error> {
        let partition = self.table().partition(number).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("find partition {number} of {}", self.name()))
                .with_answer("there is no such partition")
        })?;
        kernel::wait_for(self.number, self.name(), &partition)
    }

    fn name(&self) -> &str {
        self.gpt.medium().name()
    }

    fn known(&self) -> Result<Vec<kernel::Known>, Error> {
        kernel::partitions(self.number)
            .map_err(|error| Error::system(format!("list the partitions of {}", self.name()), error))
    }

    fn told(
        &self,
        partition: &Partition,
        tell: fn(&std::fs::File, &str, &Partition) -> Result<(), Error>,
    ) -> Result<Partition, Error> {
        let same = |known: &kernel::Known| {
            (known.number, known.start, known.size) == (partition.number, partition.start, partition.size)
        };
        // EBUSY does not say whether the kernel has just this partition; sysfs does.
        if !self.known()?.iter().any(same) {
            tell(self.gpt.medium().file(), self.name(), partition)
                .map_err(|error| error.with_effect(crate::Effect::Done))?;
        }
        Ok(partition.clone())
    }

    /// Brings the kernel's view to what the table says: what a killed program left undone.
    fn tell_kernel(&mut self) -> Result<(), Error> {
        let partitions = self.table().partitions();
        for known in self.known()? {
            let same_place =
                |partition: &Partition| (partition.number, partition.start) == (known.number, known.start);
            if !partitions.iter().any(same_place) {
                kernel::forget(self.gpt.medium().file(), self.name(), known.number)?;
            }
        }
        for partition in &partitions {
            let known = self.known()?.into_iter().find(|known| known.number == partition.number);
            match known {
                None => self.told(partition, kernel::add)?,
                Some(_) => self.told(partition, kernel::resize)?,
            };
        }
        Ok(())
    }
}

/// A disk that nobody else may change.
struct Locked {
    file: DiskFile,
    number: DeviceNumber,
    turn: Turn,
}

fn locked(path: &Path, access: Access) -> Result<Locked, Error> {
    let tried = || format!("use the partitions of {}", path.display());
    let file = DiskFile::open(path, access)?;
    let Some(number) = file.number() else {
        return Err(Error::new(Kind::InvalidArgument, tried()).with_answer("it is no block device"));
    };
    if kernel::is_partition(number) {
        return Err(Error::new(Kind::InvalidArgument, tried())
            .with_answer("it is a partition itself")
            .with_advice("name the whole disk"));
    }
    let turn = Turn::take(&file, number, &tried())?;
    Ok(Locked { file, number, turn })
}
