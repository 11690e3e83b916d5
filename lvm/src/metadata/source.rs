//! Where bytes come from: a block device, a file, or an image in memory.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::{Deref, Range};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use devices::{Bytes, DeviceNumber};

/// Reads are cut at and rounded to this, unless the device has larger blocks.
const BLOCK: usize = 4096;

/// Something that can be read at any place.
pub trait Source: fmt::Debug {
    /// How many bytes it has.
    fn size(&self) -> Bytes;

    /// Reads the `length` bytes at `start` into `buffer`, or less where the source ends, and returns them.
    ///
    /// # Errors
    ///
    /// What the system answers.
    fn read<'b>(&self, start: Bytes, length: usize, buffer: &'b mut Buffer) -> io::Result<&'b [u8]>;
}

/// An image in memory.
#[derive(Debug)]
pub struct Image<'a>(pub &'a [u8]);

impl Source for Image<'_> {
    fn size(&self) -> Bytes {
        Bytes::new(self.0.len() as u64)
    }

    fn read<'b>(&self, start: Bytes, length: usize, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let start = usize::try_from(start.get()).unwrap_or(usize::MAX).min(self.0.len());
        let end = start.saturating_add(length).min(self.0.len());
        let bytes = self.0.get(start..end).unwrap_or_default();
        let (at, room) = buffer.room(bytes.len(), 1);
        room.copy_from_slice(bytes);
        buffer.last = at..at + bytes.len();
        Ok(buffer.last())
    }
}

/// Memory that is aligned for direct reads and used again for the next one.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// Where the last read lies in it.
    last: Range<usize>,
    reads: u64,
    read_bytes: u64,
}

/// What a read brought, with the memory that it lies in.
#[derive(Debug)]
pub(super) struct Taken {
    memory: Vec<u8>,
    range: Range<usize>,
}

impl Deref for Taken {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Taken {
    fn from(memory: Vec<u8>) -> Self {
        let range = 0..memory.len();
        Self { memory, range }
    }
}

impl Buffer {
    /// `length` bytes that begin at a multiple of `align`, and where that is. What was in them is lost.
    fn room(&mut self, length: usize, align: usize) -> (usize, &mut [u8]) {
        if self.bytes.len() < length + align {
            // New memory comes as zeroes from the kernel, old memory would be copied.
            self.bytes = vec![0; length + align];
        }
        let skip = self.bytes.as_ptr().align_offset(align);
        (skip, self.bytes.get_mut(skip..skip + length).unwrap_or_default())
    }

    /// Takes the last read out of it, without a copy.
    pub(super) fn take(&mut self) -> Taken {
        Taken { memory: std::mem::take(&mut self.bytes), range: std::mem::take(&mut self.last) }
    }

    fn last(&self) -> &[u8] {
        self.bytes.get(self.last.clone()).unwrap_or_default()
    }

    /// Gives large memory back, so that one huge text does not cost for ever.
    pub(super) fn shrink(&mut self) {
        const KEEP: usize = 2 << 20;
        if self.bytes.len() > KEEP {
            self.bytes = Vec::new();
        }
    }

    /// How many reads it has served and how many bytes they brought.
    pub(super) fn cost(&self) -> (u64, u64) {
        (self.reads, self.read_bytes)
    }
}

/// An open block device, read past the page cache, or a file.
#[derive(Debug)]
pub struct Device {
    file: File,
    size: Bytes,
    facts: Facts,
}

/// What does not change as long as a number means the same device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// `None` for a file.
    number: Option<DeviceNumber>,
    /// The unit of reads; a power of two.
    block: usize,
    /// Only such a device can be suspended.
    is_mapped: bool,
}

impl Device {
    /// Opens a block device for direct reads of whole logical blocks, or a regular file.
    ///
    /// `None` for a device-mapper device that is suspended: the open could hang, and a read surely would.
    ///
    /// # Errors
    ///
    /// What the system answers; [`io::ErrorKind::InvalidInput`] for anything else than a block device or a file.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::open_again(path, None)
    }

    /// The same, where facts of an earlier time are at hand.
    pub(super) fn open_again(path: &Path, known: Option<Facts>) -> io::Result<Option<Self>> {
        let meta = std::fs::metadata(path)?;
        let block_device = meta.file_type().is_block_device();
        if !block_device && !meta.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a block device nor a file",
            ));
        }
        let number = block_device.then(|| DeviceNumber::from_rdev(meta.rdev()));
        let known = known.filter(|known| known.number == number);
        let state = match (number, known) {
            (Some(number), None | Some(Facts { is_mapped: true, .. })) => mapped_state(number),
            _ => None,
        };
        if state == Some(Mapped::Suspended) {
            return Ok(None);
        }
        let direct = if block_device { rustix::fs::OFlags::DIRECT } else { rustix::fs::OFlags::empty() };
        // The flag is a small positive number on every architecture.
        let direct = i32::try_from(direct.bits()).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
        let opened = file.metadata()?;
        if (opened.rdev(), opened.file_type()) != (meta.rdev(), meta.file_type()) {
            return Err(io::Error::other("the path became another device while it was opened"));
        }
        let size = Bytes::new(file.seek(SeekFrom::End(0))?);
        let facts = match known {
            Some(known) => known,
            None => Facts { number, block: block_size(&file, block_device)?, is_mapped: state.is_some() },
        };
        Ok(Some(Self { file, size, facts }))
    }

    /// Writes what the page cache holds for it, and has the disk empty its own cache.
    ///
    /// # Errors
    ///
    /// What the system answers; an error of an earlier write counts, too.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts
    }

    /// System calls that opening, measuring and closing it take, besides reads.
    pub(super) fn system_calls(known: Option<Facts>) -> u64 {
        match known {
            None => 7,
            Some(Facts { is_mapped: true, .. }) => 8,
            Some(_) => 5,
        }
    }

    /// The kernel's number of the block device.
    #[must_use]
    pub fn number(&self) -> Option<DeviceNumber> {
        self.facts.number
    }
}

/// How large the blocks are in which a device or file is read.
fn block_size(file: &File, block_device: bool) -> io::Result<usize> {
    let block = if block_device { rustix::fs::ioctl_blksszget(file.as_fd())? } else { 1 };
    Ok(usize::try_from(block).unwrap_or(BLOCK).max(BLOCK))
}

/// The state of a device-mapper device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapped {
    Running,
    Suspended,
}

/// The kernel's word about a device-mapper device; other devices have no such file.
fn mapped_state(number: DeviceNumber) -> Option<Mapped> {
    let state = std::fs::read_to_string(format!("/sys/dev/block/{number}/dm/suspended")).ok()?;
    Some(if state.trim() == "1" { Mapped::Suspended } else { Mapped::Running })
}

impl Source for Device {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read<'b>(&self, start: Bytes, length: usize, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let length = length.min(usize::try_from(self.size.saturating_sub(start).get()).unwrap_or(usize::MAX));
        if length == 0 {
            // What lies behind the end may be further than any read can reach.
            buffer.last = 0..0;
            return Ok(&[]);
        }
        let skip = usize::try_from(start.get() % self.facts.block as u64).unwrap_or(0);
        let first = start.get() - skip as u64;
        let whole = (skip + length).div_ceil(self.facts.block) * self.facts.block;
        let (mut reads, mut done) = (0, 0);
        let (at, room) = buffer.room(whole, self.facts.block);
        while done < skip + length {
            let piece = room.get_mut(done..).unwrap_or_default();
            reads += 1;
            match self.file.read_at(piece, first + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.reads += reads;
        buffer.read_bytes += done as u64;
        let end = done.min(skip + length);
        buffer.last = at + skip.min(end)..at + end;
        Ok(buffer.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_and_images_give_the_same_bytes_at_any_place() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let device = Device::open(file.path()).unwrap().unwrap();
        assert_eq!(device.size(), Bytes::new(20_000));
        let mut buffer = Buffer::default();
        for (start, length) in [
            (0, 10),
            (1, 4096),
            (4095, 2),
            (4096, 8192),
            (19_990, 100),
            (20_000, 1),
            (30_000, 5),
            (usize::MAX, 512),
        ] {
            let from = |end: usize| &bytes[start.min(20_000)..end.min(20_000)];
            let start_bytes = Bytes::new(start as u64);
            assert_eq!(
                device.read(start_bytes, length, &mut buffer).unwrap(),
                from(start.saturating_add(length))
            );
            assert_eq!(
                Image(&bytes).read(start_bytes, length, &mut buffer).unwrap(),
                from(start.saturating_add(length))
            );
        }
    }

    #[test]
    fn what_is_no_device_is_refused() {
        assert_eq!(Device::open(Path::new("/dev/null")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Device::open(Path::new("/nonexistent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
