//! The kernel's own list of a disk's partitions, changed one by one: a disk in use is never read again as a whole.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::table::{Partition, PartitionNumber};
use crate::{Bytes, DeviceNumber, Error, Kind, Sectors, disk_ioctl as ioctl};

/// How long a partition may be open before it counts as in use: udev looks into each new one.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// A partition as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) number: PartitionNumber,
    pub(super) start: Bytes,
    pub(super) size: Bytes,
    pub(super) node: PathBuf,
    /// Of the partition's own device.
    #[cfg(feature = "erase")]
    device: DeviceNumber,
}

impl Known {
    fn read(dir: &Path) -> Option<Self> {
        let value =
            |name: &str| -> Option<u64> { std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok() };
        let name = dir.file_name()?.to_str()?;
        Some(Self {
            number: PartitionNumber::new(u32::try_from(value("partition")?).ok()?)?,
            start: Sectors::new(value("start")?).to_bytes()?,
            size: Sectors::new(value("size")?).to_bytes()?,
            node: Path::new("/dev").join(name.replace('!', "/")),
            #[cfg(feature = "erase")]
            device: std::fs::read_to_string(dir.join("dev")).ok()?.trim().parse().ok()?,
        })
    }

    pub(super) fn overlaps(&self, other: &Partition) -> bool {
        let end = |start: Bytes, size: Bytes| start.get().saturating_add(size.get());
        self.start.get() < end(other.start, other.size) && other.start.get() < end(self.start, self.size)
    }
}

fn directory(disk: DeviceNumber) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{disk}"))
}

/// Whether the device is itself a partition of another.
pub(super) fn is_partition(disk: DeviceNumber) -> bool {
    directory(disk).join("partition").exists()
}

/// The partitions that the kernel has now.
pub(super) fn partitions(disk: DeviceNumber) -> io::Result<Vec<Known>> {
    let mut known = Vec::new();
    for entry in std::fs::read_dir(directory(disk))? {
        known.extend(Known::read(&entry?.path()));
    }
    known.sort_unstable_by_key(|partition| partition.number);
    Ok(known)
}

/// Has the kernel make a device for a partition.
pub(super) fn add(disk: &File, name: &str, partition: &Partition) -> Result<(), Error> {
    let tried = || format!("tell the kernel of partition {} on {name}", partition.number);
    call(disk, ioctl::PartitionChange::Add, partition).map_err(|errno| match errno {
        // A driver without partitions: a loop device attached without them, device-mapper.
        Errno::INVAL => Error::system(tried(), errno)
            .with_answer("the disk's driver may have no partitions, or another one is in the way")
            .with_advice("attach a loop device with partitions; use kpartx above device-mapper"),
        _ => Error::system(tried(), errno),
    })
}

/// Has the kernel change the length of a partition, which may be in use.
pub(super) fn resize(disk: &File, name: &str, partition: &Partition) -> Result<(), Error> {
    let number = partition.number;
    call(disk, ioctl::PartitionChange::Resize, partition).map_err(|errno| {
        Error::system(format!("tell the kernel the size of partition {number} on {name}"), errno)
    })
}

/// Has the kernel forget a partition. One that is open stays, and the error says so.
pub(super) fn forget(disk: &File, name: &str, number: PartitionNumber) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let answer = ioctl::change_partition(
            disk,
            ioctl::PartitionChange::Delete,
            number.get(),
            Bytes::ZERO,
            Bytes::ZERO,
        );
        let tried = || format!("have the kernel forget partition {number} of {name}");
        match answer {
            Ok(()) | Err(Errno::NXIO) => return Ok(()),
            Err(Errno::BUSY) if start.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(Errno::BUSY) => {
                return Err(Error::new(Kind::InUse, tried())
                    .with_answer("it is mounted, held or open")
                    .with_advice("end what uses it"));
            }
            Err(errno) => return Err(Error::system(tried(), errno)),
        }
    }
}

/// Waits until the kernel has the partition as the table has it. udev may have the whole disk read again when a
/// program that wrote to it closes it: then each partition is gone for a moment.
pub(super) fn wait_for(disk: DeviceNumber, name: &str, partition: &Partition) -> Result<PathBuf, Error> {
    let tried = || format!("find the device of partition {} of {name}", partition.number);
    let start = Instant::now();
    loop {
        let known = partitions(disk).map_err(|error| Error::system(tried(), error))?;
        let found = known.into_iter().find(|known| {
            (known.number, known.start, known.size) == (partition.number, partition.start, partition.size)
        });
        match found {
            Some(known) if known.node.exists() => return Ok(known.node),
            _ if start.elapsed() > PATIENCE => {
                return Err(Error::new(Kind::NotFound, tried())
                    .with_answer("the kernel does not have it as the table has it"));
            }
            _ => thread::sleep(PAUSE),
        }
    }
}

/// The partitions of a disk, each open for writing; none for an image. While the disk is claimed nobody else has them.
#[cfg(feature = "erase")]
pub(crate) fn open_partitions(disk: &super::DiskFile) -> Result<Vec<super::DiskFile>, Error> {
    let open = |known: Known| {
        let partition = super::DiskFile::open_to_write(&known.node)?;
        if partition.number() != Some(known.device) {
            return Err(Error::new(Kind::Inconsistent, format!("open {}", known.node.display()))
                .with_answer(format!("it is not partition {} of {}", known.number, disk.path().display()))
                .with_advice("something put another file in its place"));
        }
        Ok(partition)
    };
    known(disk)?.into_iter().map(open).collect()
}

/// Has the kernel forget every partition of a disk.
#[cfg(feature = "erase")]
pub(crate) fn forget_all(disk: &super::DiskFile) -> Result<(), Error> {
    for known in known(disk)? {
        forget(disk.file(), &disk.path().display().to_string(), known.number)?;
    }
    Ok(())
}

#[cfg(feature = "erase")]
fn known(disk: &super::DiskFile) -> Result<Vec<Known>, Error> {
    let Some(number) = disk.number() else { return Ok(Vec::new()) };
    partitions(number)
        .map_err(|error| Error::system(format!("list the partitions of {}", disk.path().display()), error))
}

fn call(disk: &File, change: ioctl::PartitionChange, partition: &Partition) -> Result<(), Errno> {
    ioctl::change_partition(disk, change, partition.number.get(), partition.start, partition.size)
}
