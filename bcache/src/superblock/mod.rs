//! Superblocks: the 4 KiB at byte 4,096 of every backing and cache device.
//!
//! ```text
//!      0  checksum of what follows      104  flags: mode and state, or discard and replacement
//!      8  its own sector: 8             112  sequence number
//!     16  version                       120  features (versions 5 and 6)
//!     24  magic                         184  data offset, or number of buckets
//!     40  uuid                          192  block size, bucket size, place in the set
//!     56  uuid of the cache set         200  last mount, first bucket, number of journal buckets
//!     72  label                         208  journal buckets
//! ```
//!
//! The layout is that of `struct cache_sb_disk` in the kernel's `drivers/md/bcache/bcache_ondisk.h`; what is refused here
//! is what `read_super` there refuses.
//!
//! ```no_run
//! use std::path::Path;
//!
//! if let Some(superblock) = bcache::Superblock::read(Path::new("/dev/sdb"))? {
//!     println!("{} in the cache set {:?}", superblock.uuid, superblock.set);
//! }
//! # Ok::<(), bcache::Error>(())
//! ```

mod decode;
mod encode;

use std::path::Path;

use devices::{Bytes, Sectors};

use crate::device::Device;
use crate::{CacheMode, Error, Kind, Label, Replacement, State, Uuid};

pub use decode::SuperblockError;

/// What a superblock tells of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Superblock {
    /// The version of the layout, 0 to 6.
    pub version: u64,
    /// The device's identity.
    pub uuid: Uuid,
    /// The cache set that it belongs to; a backing device may have none.
    pub set: Option<Uuid>,
    /// Its label.
    pub label: Option<Label>,
    /// How often a cache device's superblock was written; the highest of a set counts.
    pub sequence: u64,
    /// The smallest unit of reads and writes: 512 to 4,096 bytes.
    pub block_size: Bytes,
    /// What the device is for.
    pub role: Role,
}

/// What a device is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It holds the data.
    Backing(BackingRole),
    /// It holds copies, and what is dirty.
    Cache(CacheRole),
}

/// What is told only of a backing device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackingRole {
    /// Where the data begins.
    pub data_offset: Sectors,
    /// What its cache does with writes.
    pub mode: CacheMode,
    /// How it stands to its cache set.
    ///
    /// The kernel does not wait for the write that says "dirty" before it says that the first dirty block is written. So
    /// after a power cut in that moment [`State::Clean`] can be wrong; with the cache device there, nothing is lost by it.
    pub state: State,
}

/// What is told only of a cache device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheRole {
    /// How many buckets it has, the superblock's own among them.
    pub buckets: u64,
    /// How large each of them is: what is given up at once.
    pub bucket_size: Sectors,
    /// How many devices the set has, and which of them this is. The kernel knows only sets of one device since 5.10.
    pub devices_in_set: u16,
    /// Its place in the set, from zero.
    pub place_in_set: u16,
    /// The first bucket after the superblock.
    pub first_bucket: u16,
    /// How many buckets from there are the journal; zero until the set has run once.
    pub journal_buckets: u16,
    /// Whether the set has run: its content counts.
    pub in_use: bool,
    /// Whether buckets are discarded before they are used again (not in kernels since 6.19).
    pub discard: bool,
    /// Which blocks are given up first.
    pub replacement: Replacement,
}

impl Superblock {
    /// Where the superblock lies on the device.
    pub const OFFSET: Bytes = Bytes::kib(4);
    /// How many bytes of the device are the superblock's.
    pub const LENGTH: usize = 4096;

    /// Reads the superblock of a block device straight from the device, past the page cache; `None` where there is none.
    ///
    /// A suspended device-mapper device is never opened.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] when it has bcache's magic but is damaged, [`Kind::Unsupported`] when it is of a version or
    /// has features not known here, [`Kind::Busy`] when the device is suspended, [`Kind::NotFound`], [`Kind::Io`].
    pub fn read(device: &Path) -> Result<Option<Self>, Error> {
        let tried = format!("read the bcache superblock of {}", device.display());
        let device = Device::open_to_read(device, &tried)?;
        Self::read_from(&device, &tried)
    }

    /// The same from an open device.
    pub(crate) fn read_from(device: &Device, tried: &str) -> Result<Option<Self>, Error> {
        let end = Self::OFFSET.get() + Self::LENGTH as u64;
        if device.size().get() < end {
            return Ok(None);
        }
        let bytes = device.read(Self::OFFSET.get(), Self::LENGTH, tried)?;
        Self::decode(&bytes).map_err(|cause| {
            let kind = match cause {
                SuperblockError::Version(_) | SuperblockError::Features(_) => Kind::Unsupported,
                _ => Kind::Inconsistent,
            };
            Error::new(kind, tried).with_answer(cause.to_string()).with_source(cause)
        })
    }

    /// What is told of a backing device, when it is one.
    #[must_use]
    pub const fn backing(&self) -> Option<&BackingRole> {
        match &self.role {
            Role::Backing(role) => Some(role),
            Role::Cache(_) => None,
        }
    }

    /// What is told of a cache device, when it is one.
    #[must_use]
    pub const fn cache(&self) -> Option<&CacheRole> {
        match &self.role {
            Role::Cache(role) => Some(role),
            Role::Backing(_) => None,
        }
    }
}
