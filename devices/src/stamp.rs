//! What tells a block device from every other one, later ones of the same number included.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::ioctl::{self, Getter, Opcode};

use crate::DeviceNumber;

/// linux/fs.h: `_IOR(0x12, 128, __u64)`, since Linux 5.15.
const BLKGETDISKSEQ: Opcode = ioctl::opcode::read::<u64>(0x12, 128);

/// A block device's number, and the kernel's count of disks when its disk or medium came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) number: DeviceNumber,
    /// `None` before Linux 5.15. A partition has its disk's.
    pub(crate) sequence: Option<u64>,
}

impl Stamp {
    /// The stamp of an open file; `None` when it is no block device.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        if !metadata.file_type().is_block_device() {
            return Ok(None);
        }
        Ok(Some(Self { number: DeviceNumber::from_rdev(metadata.rdev()), sequence: sequence(file)? }))
    }
}

/// A path under which this process, and the programs that it starts, open what an open file is, whatever the name that
/// it was opened by leads to since (proc(5)). As long as the file is open, the kernel gives its device's number to no
/// other device, and takes the file of a loop device from it at the last close only.
pub(crate) fn path_of(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd()))
}

fn sequence(disk: &File) -> Result<Option<u64>, Errno> {
    // SAFETY: BLKGETDISKSEQ writes one 64-bit integer and reads nothing.
    let request = unsafe { Getter::<BLKGETDISKSEQ, u64>::new() };
    // SAFETY: as above; the descriptor is open for the length of the call.
    match unsafe { ioctl::ioctl(disk, request) } {
        Ok(sequence) => Ok(Some(sequence)),
        Err(Errno::NOTTY | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_an_open_file_outlives_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (open, name) = file.keep().unwrap();
        std::fs::write(&name, "first").unwrap();
        std::fs::remove_file(&name).unwrap();
        std::fs::write(&name, "second").unwrap();
        assert_eq!(std::fs::read(path_of(&open)).unwrap(), b"first");
        assert_eq!(Stamp::of(&open).unwrap(), None);
        std::fs::remove_file(&name).unwrap();
    }
}
