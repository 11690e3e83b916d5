//! The real medium: a block device, or the image of one in a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::medium::Medium;
use crate::alone::open_alone;
use crate::block::is_suspended;
use crate::stamp::{Stamp, path_of};
use crate::{Bytes, DeviceNumber, Error, Kind, disk_ioctl as ioctl};

/// Sectors of an image that nobody told otherwise.
const USUAL_SECTOR: u64 = 512;
/// What every disk's direct input and output is content with.
const MEMORY_ALIGNMENT: usize = 4096;

/// A disk that is read and written past the page cache: what shares a page with the table may be in use by others,
/// and must not be written with it.
#[derive(Debug)]
pub struct DiskFile {
    file: File,
    path: PathBuf,
    name: String,
    sector: Bytes,
    size: Bytes,
    number: Option<DeviceNumber>,
}

/// How a disk is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// To write, and only if nobody holds the disk or one of its partitions.
    #[cfg(feature = "erase")]
    Claim,
}

impl DiskFile {
    /// Opens a disk, or an image of one, to look at it.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or is a suspended device of device-mapper, whose reads would hang.
    pub fn open_to_read(path: &Path) -> Result<Self, Error> {
        Self::open(path, Access::Read)
    }

    /// Opens a disk, or an image of one, to change its table.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn open_to_write(path: &Path) -> Result<Self, Error> {
        Self::open(path, Access::Write)
    }

    /// Opens a disk to overwrite it. As long as this lives, nobody else can mount or hold it or a part of it.
    ///
    /// # Errors
    ///
    /// The same; [`Kind::InUse`] if somebody mounts or holds it or a part of it now; [`Kind::InvalidArgument`] for
    /// anything but a block device, which nobody can have alone.
    #[cfg(feature = "erase")]
    pub fn claim(path: &Path) -> Result<Self, Error> {
        let metadata =
            path.metadata().map_err(|error| Error::system(format!("claim {}", path.display()), error))?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::new(Kind::InvalidArgument, format!("claim {}", path.display()))
                .with_answer("it is no block device")
                .with_advice("name a disk; an image in a file can be attached to a loop device"));
        }
        Self::open(path, Access::Claim)
    }

    /// A second descriptor of the same disk, which nobody else has or gets for himself while it is open.
    pub(super) fn alone(&self) -> Result<File, Error> {
        self.again(OFlags::EXCL)
    }

    /// A second descriptor of the same disk, through the page cache: libblkid reads and writes what is no whole sector.
    #[cfg(feature = "erase")]
    pub(crate) fn buffered(&self) -> Result<File, Error> {
        self.again(OFlags::empty())
    }

    /// What it was opened by may lead to another disk by now.
    fn again(&self, flags: OFlags) -> Result<File, Error> {
        let tried = || format!("open {} again", self.name);
        let failed = |error: io::Error| Error::system(tried(), error);
        let bits = i32::try_from(flags.bits()).unwrap_or_default();
        let path = path_of(&self.file);
        let open = || OpenOptions::new().read(true).write(true).custom_flags(bits).open(&path);
        let file = if flags.contains(OFlags::EXCL) { open_alone(open) } else { open() }.map_err(failed)?;
        let stamps = (Stamp::of(&file).map_err(failed)?, Stamp::of(&self.file).map_err(failed)?);
        if stamps.0 != stamps.1 {
            return Err(Error::new(Kind::Busy, tried()).with_answer("its medium was changed meanwhile"));
        }
        Ok(file)
    }

    /// Takes the image in a file for a disk with such sectors; a block device knows its own.
    #[must_use]
    pub fn with_sector(mut self, sector: Bytes) -> Self {
        if self.number.is_none() {
            self.sector = sector;
        }
        self
    }

    pub(super) fn open(path: &Path, access: Access) -> Result<Self, Error> {
        let tried = || format!("open {}", path.display());
        let metadata = path.metadata().map_err(|error| Error::system(tried(), error))?;
        let number = metadata.file_type().is_block_device().then(|| DeviceNumber::from_rdev(metadata.rdev()));
        if number.is_some_and(is_suspended) {
            return Err(Error::new(Kind::Busy, tried())
                .with_answer("it is suspended, and reading it would hang")
                .with_advice("resume it"));
        }
        let file = open(path, access, number.is_some()).map_err(|error| Error::system(tried(), error))?;
        let opened = file.metadata().map_err(|error| Error::system(tried(), error))?;
        if opened.rdev() != metadata.rdev() {
            return Err(Error::new(Kind::Busy, tried()).with_answer("it was replaced while being opened"));
        }
        let (sector, size) = match number {
            Some(_) => (ioctl::logical_sector(&file), ioctl::device_size(&file)),
            None => (Ok(Bytes::new(USUAL_SECTOR)), Ok(Bytes::new(opened.len()))),
        };
        let size =
            size.map_err(|errno| Error::system(format!("ask for the size of {}", path.display()), errno))?;
        let sector = sector
            .map_err(|errno| Error::system(format!("ask for the sector of {}", path.display()), errno))?;
        let name = path.display().to_string();
        Ok(Self { file, path: path.to_owned(), name, sector, size, number })
    }

    /// The device's number; `None` for an image.
    #[must_use]
    pub fn number(&self) -> Option<DeviceNumber> {
        self.number
    }

    /// The kernel's count of disks when its medium came.
    #[cfg(feature = "erase")]
    pub(crate) fn sequence(&self) -> Result<Option<u64>, Error> {
        let stamp = Stamp::of(&self.file);
        let stamp = stamp.map_err(|error| Error::system(format!("look at {}", self.name), error))?;
        Ok(stamp.and_then(|stamp| stamp.sequence))
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

fn open(path: &Path, access: Access, device: bool) -> io::Result<File> {
    let mut flags = OFlags::empty();
    if device {
        flags |= OFlags::DIRECT;
    }
    #[cfg(feature = "erase")]
    if access == Access::Claim && device {
        flags |= OFlags::EXCL;
    }
    let bits = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let open = || OpenOptions::new().read(true).write(access != Access::Read).custom_flags(bits).open(path);
    if flags.contains(OFlags::EXCL) { open_alone(open) } else { open() }
}

/// A buffer that begins where direct input and output wants it to.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let memory = vec![0_u8; length + MEMORY_ALIGNMENT];
        let start = memory.as_ptr().align_offset(MEMORY_ALIGNMENT).min(MEMORY_ALIGNMENT);
        Self { memory, start, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

impl Medium for DiskFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn sector(&self) -> Bytes {
        self.sector
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn read_at(&self, at: Bytes, into: &mut [u8]) -> io::Result<()> {
        let mut buffer = Aligned::new(into.len());
        self.file.read_exact_at(buffer.bytes(), at.get())?;
        into.copy_from_slice(buffer.bytes());
        Ok(())
    }

    fn write_at(&mut self, at: Bytes, from: &[u8]) -> io::Result<()> {
        let mut buffer = Aligned::new(from.len());
        buffer.bytes().copy_from_slice(from);
        self.file.write_all_at(buffer.bytes(), at.get())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}
