//! Telling a disk which blocks are not needed any more.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use rustix::ioctl::{self, Opcode, Setter};

use crate::{Bytes, Sectors};

/// linux/fs.h: takes the first byte and the length of a range.
const BLKDISCARD: Opcode = 0x1277;

/// Discards a range of a block device, in sectors. What a later read of it gives is up to the disk.
///
/// ```no_run
/// use std::fs::File;
/// use devices::{Sectors, discard};
///
/// let disk = File::options().write(true).open("/dev/sdb")?;
/// discard(&disk, Sectors::ZERO, Sectors::new(2048))?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Of the kernel; [`io::ErrorKind::Unsupported`] for a disk that cannot discard.
pub fn discard(device: &File, start: Sectors, length: Sectors) -> io::Result<()> {
    let bytes = |sectors: Sectors| sectors.to_bytes().map(Bytes::get);
    let (Some(start), Some(length)) = (bytes(start), bytes(length)) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    // SAFETY: BLKDISCARD reads two 64-bit integers from its argument and writes nothing there.
    let request = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([start, length]) };
    // SAFETY: the descriptor is open for the length of the call; on a file that is no block device the kernel
    // answers ENOTTY.
    unsafe { ioctl::ioctl(device, request) }.map_err(io::Error::from)
}
