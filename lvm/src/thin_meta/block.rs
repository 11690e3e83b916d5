//! Blocks of metadata, their checksums, and where they come from.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use devices::DeviceNumber;
use rustix::fs::OFlags;

use super::fault::Fault;
use crate::{Error, Kind};

/// Bytes in a block of metadata.
pub const BLOCK: usize = 4096;

/// One block of metadata, aligned so that it can be read past the page cache.
#[derive(Clone)]
#[repr(align(4096))]
pub struct Block(pub [u8; BLOCK]);

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({:02x?}…)", self.0.first_chunk::<16>().unwrap_or(&[0; 16]))
    }
}

/// Where metadata are read from.
pub trait Source {
    /// How many blocks there are.
    fn blocks(&self) -> u64;

    /// Reads block `number`, which is below [`Self::blocks`], into `block`.
    ///
    /// # Errors
    ///
    /// If the block cannot be read as a whole.
    fn read(&self, number: u64, block: &mut Block) -> io::Result<()>;
}

/// Metadata in memory, for tests and for tools that hold an image.
#[derive(Clone, Debug, Default)]
pub struct Image(pub Vec<u8>);

impl Source for Image {
    fn blocks(&self) -> u64 {
        (self.0.len() / BLOCK) as u64
    }

    fn read(&self, number: u64, block: &mut Block) -> io::Result<()> {
        let number = usize::try_from(number).map_err(io::Error::other)?;
        let bytes = self.0.as_chunks::<BLOCK>().0.get(number).ok_or(io::ErrorKind::UnexpectedEof)?;
        block.0 = *bytes;
        Ok(())
    }
}

/// Metadata on a device, or in a file that holds a copy.
#[derive(Debug)]
pub struct Device {
    file: File,
    blocks: u64,
}

impl Device {
    /// Opens a device past the page cache, which may hold what it was before the pool changed it.
    ///
    /// A device-mapper device that is suspended must not be opened: the reading would wait for its resume. Use
    /// [`LivePool`](super::LivePool) for a running pool, which looks first.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such file, [`Kind::Io`] if it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_number(path.as_ref(), None)
    }

    /// As [`Self::open`]; refused where the path does not lead to the device of this number.
    pub(super) fn open_number(path: &Path, number: Option<DeviceNumber>) -> Result<Self, Error> {
        Self::try_open(path, number).map_err(|error| {
            let kind = if error.kind() == io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Io };
            let tried = format!("open thin metadata {}", path.display());
            Error::new(kind, tried).with_answer(error.to_string()).with_source(error)
        })
    }

    /// Locks it against others who do the same, as long as this is open; false while one of them has it locked.
    pub(super) fn lock(&self, tried: &str) -> Result<bool, Error> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(cause)) => Err(Error::new(Kind::Io, format!("{tried}: lock their node"))
                .with_answer(cause.to_string())
                .with_source(cause)),
        }
    }

    fn try_open(path: &Path, number: Option<DeviceNumber>) -> io::Result<Self> {
        let before = path.metadata()?;
        let is_device = before.file_type().is_block_device();
        if !is_device && !before.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a block device nor a file",
            ));
        }
        let flags = if is_device { OFlags::DIRECT } else { OFlags::empty() };
        let mut file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        let opened = file.metadata()?;
        let own = is_device.then(|| DeviceNumber::from_rdev(opened.rdev()));
        if opened.file_type() != before.file_type() || number.is_some_and(|number| own != Some(number)) {
            return Err(io::Error::other("the path became another device while it was opened"));
        }
        let blocks = file.seek(SeekFrom::End(0))? / BLOCK as u64;
        Ok(Self { file, blocks })
    }
}

impl Source for Device {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, number: u64, block: &mut Block) -> io::Result<()> {
        let offset = number.checked_mul(BLOCK as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.file.read_exact_at(&mut block.0, offset)
    }
}

/// Reads a block of the kind whose checksums are mixed with `salt`, and checks that it is itself.
pub(super) fn checked(source: &impl Source, number: u64, salt: u32) -> Result<Box<Block>, Fault> {
    let damaged = |what| Fault::Damaged { block: number, what };
    if number >= source.blocks() {
        return Err(damaged("it lies outside the metadata volume"));
    }
    let mut block = Box::new(Block([0; BLOCK]));
    source.read(number, &mut block).map_err(|source| Fault::Read { block: number, source })?;
    if u32_at(&block, 0) != checksum(&block, salt) {
        return Err(damaged("its checksum does not fit"));
    }
    if u64_at(&block, 8) != number {
        return Err(damaged("it says that it is another block"));
    }
    Ok(block)
}

/// `dm_bm_checksum`: CRC-32C without the final inversion, over all but the checksum itself, mixed with a salt.
pub(super) fn checksum(block: &Block, salt: u32) -> u32 {
    let bytes = block.0.get(4..).unwrap_or_default();
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)];
    bytes.iter().fold(u32::MAX, step) ^ salt
}

/// CRC-32C (Castagnoli), reflected.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[allow(clippy::cast_possible_truncation)] // below 256
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// The little-endian number at `at`; zero outside the block.
pub(super) fn u32_at(block: &Block, at: usize) -> u32 {
    block.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The little-endian number at `at`; zero outside the block.
pub(super) fn u64_at(block: &Block, at: usize) -> u64 {
    block.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_device_that_is_meant_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Device::open(file.path()).unwrap().blocks(), 0);
        let number = Some(DeviceNumber { major: 254, minor: 3 });
        let error = Device::open_number(file.path(), number).unwrap_err();
        assert!(error.to_string().contains("another device"), "{error}");
        for path in ["/dev/null", "/"] {
            assert!(Device::open(path).unwrap_err().to_string().contains("neither"), "{path}");
        }
    }
}
