//! The ioctls of whole disks: their size, their sectors, and the kernel's list of their partitions.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_longlong, c_void};
use std::fs::File;

use rustix::io::Errno;
use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode};

use crate::Bytes;

// linux/fs.h: _IO(0x12, 104), _IO(0x12, 105) and _IOR(0x12, 114, size_t)
const BLKSSZGET: Opcode = 0x1268;
const BLKPG: Opcode = 0x1269;
const BLKGETSIZE64: Opcode = ioctl::opcode::read::<usize>(0x12, 114);

/// _IO(0x12, 127)
#[cfg(feature = "erase")]
const BLKZEROOUT: Opcode = 0x127f;

/// `struct blkpg_partition` of linux/blkpg.h; start and length are bytes.
#[repr(C)]
struct BlkpgPartition {
    start: c_longlong,
    length: c_longlong,
    number: c_int,
    device_name: [u8; 64],
    volume_name: [u8; 64],
}

/// `struct blkpg_ioctl_arg` of linux/blkpg.h.
#[repr(C)]
struct BlkpgArgument {
    operation: c_int,
    flags: c_int,
    length: c_int,
    data: *mut BlkpgPartition,
}

/// What `BLKPG` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionChange {
    Add,
    Delete,
    Resize,
}

impl PartitionChange {
    // BLKPG_ADD_PARTITION, BLKPG_DEL_PARTITION, BLKPG_RESIZE_PARTITION
    fn code(self) -> c_int {
        match self {
            Self::Add => 1,
            Self::Delete => 2,
            Self::Resize => 3,
        }
    }
}

/// Both structures of one call; the first points to the second from [`Ioctl::as_ptr`] on.
struct Blkpg {
    argument: BlkpgArgument,
    partition: BlkpgPartition,
}

// SAFETY: BLKPG reads one `blkpg_ioctl_arg`, and through its pointer one `blkpg_partition`; it writes to neither.
// Both lie in `self`, which lives, unmoved, from `as_ptr` to the end of the call.
unsafe impl Ioctl for Blkpg {
    type Output = ();
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        BLKPG
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.data = &raw mut self.partition;
        (&raw mut self.argument).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Changes the kernel's list of the partitions of an open disk; nothing on the disk changes.
pub(crate) fn change_partition(
    disk: &File,
    change: PartitionChange,
    number: u32,
    start: Bytes,
    size: Bytes,
) -> Result<(), Errno> {
    let signed = |bytes: Bytes| c_longlong::try_from(bytes.get()).map_err(|_| Errno::OVERFLOW);
    let partition = BlkpgPartition {
        start: signed(start)?,
        length: signed(size)?,
        number: c_int::try_from(number).map_err(|_| Errno::OVERFLOW)?,
        device_name: [0; 64],
        volume_name: [0; 64],
    };
    let length = c_int::try_from(size_of::<BlkpgPartition>()).map_err(|_| Errno::OVERFLOW)?;
    let argument = BlkpgArgument { operation: change.code(), flags: 0, length, data: std::ptr::null_mut() };
    // SAFETY: see the implementation of `Ioctl`; on a file that is no block device the kernel answers ENOTTY.
    unsafe { ioctl::ioctl(disk, Blkpg { argument, partition }) }
}

/// The size of an open block device.
pub(crate) fn device_size(disk: &File) -> Result<Bytes, Errno> {
    // SAFETY: BLKGETSIZE64 writes one 64-bit integer, which its opcode calls a size_t.
    let request = unsafe { ioctl::Getter::<BLKGETSIZE64, u64>::new() };
    // SAFETY: as above.
    unsafe { ioctl::ioctl(disk, request) }.map(Bytes::new)
}

/// The logical sector of an open block device.
pub(crate) fn logical_sector(disk: &File) -> Result<Bytes, Errno> {
    // SAFETY: BLKSSZGET writes one int.
    let request = unsafe { ioctl::Getter::<BLKSSZGET, c_int>::new() };
    // SAFETY: as above.
    let size = unsafe { ioctl::ioctl(disk, request) }?;
    u64::try_from(size).map(Bytes::new).map_err(|_| Errno::RANGE)
}

/// Has zeroes written to a range of an open block device, by the disk itself where it can.
#[cfg(feature = "erase")]
pub(crate) fn zero_out(disk: &File, at: Bytes, size: Bytes) -> Result<(), Errno> {
    // SAFETY: BLKZEROOUT reads two 64-bit integers from its argument and writes nothing there.
    let request = unsafe { ioctl::Setter::<BLKZEROOUT, [u64; 2]>::new([at.get(), size.get()]) };
    // SAFETY: as above; on a file that is no block device the kernel answers ENOTTY.
    unsafe { ioctl::ioctl(disk, request) }
}
