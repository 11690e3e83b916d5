//! The metadata of a thin pool, read from its metadata volume.
//!
//! Which chunks of a thin volume are mapped, and which differ between two of them, without asking LVM or the
//! pool: for incremental backup and for erasing exactly what a volume holds. Only reading; the pool goes on
//! meanwhile when its metadata are held ([`Root::Held`]).
//!
//! The format is version 2 of the kernel's drivers/md/dm-thin-metadata.c and drivers/md/persistent-data: 4 KiB
//! blocks, a superblock in block 0, B-trees with checksums. Every byte may be wrong: then the answer is an error,
//! reached in bounded memory and without loops.
//!
//! ```no_run
//! use lvm::thin_meta::{Device, Root, ThinMetadata};
//!
//! let metadata = ThinMetadata::read(Device::open("/dev/mapper/data-pool_tmeta")?, Root::Current)?;
//! for thin in metadata.devices() {
//!     let thin = thin?;
//!     for range in metadata.mapped(thin.id)? {
//!         println!("{:?}: {:?}", thin.id, range?);
//!     }
//! }
//! # Ok::<(), lvm::Error>(())
//! ```

mod block;
mod btree;
mod delta;
mod fault;
mod live;
mod mapping;
mod part;
mod superblock;
#[cfg(test)]
mod tests;

use std::fmt;

use devices::Bytes;

use crate::dm::Fill;
use crate::{Error, Kind};
use btree::Walk;
use superblock::Superblock;

pub use block::{BLOCK, Block, Device, Image, Source};
pub use delta::{Change, Changes, Difference};
pub use live::LivePool;
pub(crate) use live::release_left;
pub use mapping::{Mapped, MappedRange, Thins};
pub use part::Part;

/// The id of a thin volume in its pool: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThinId(u32);

impl ThinId {
    /// The id `number`, unless it has more than 24 bits.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number < 1 << 24 { Some(Self(number)) } else { None }
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ThinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ThinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThinId({})", self.0)
    }
}

/// A number of chunks of a pool, or a place counted in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunks(u64);

impl Chunks {
    /// `count` chunks.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// As bytes, in a pool with chunks of the size `chunk`; `None` above 2^64 - 1.
    #[must_use]
    pub const fn to_bytes(self, chunk: Bytes) -> Option<Bytes> {
        chunk.checked_mul(self.0)
    }
}

/// Which state of the metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The last one committed: for a pool that is not active, since a running one changes it under the reader.
    Current,
    /// The one that a running pool holds, see [`Dm::hold_metadata`](crate::dm::Dm::hold_metadata).
    Held,
}

/// What the metadata say of one thin volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thin {
    /// Its id.
    pub id: ThinId,
    /// How many of its chunks have a place in the pool, shared ones included.
    pub mapped: Chunks,
    /// The pool's transaction id when it was made.
    pub transaction_id: u64,
    /// The pool's snapshot clock when it was made.
    pub created: u32,
    /// The pool's snapshot clock when a snapshot of it was last taken.
    pub snapshotted: u32,
}

/// The metadata of one thin pool in one state.
#[derive(Debug)]
pub struct ThinMetadata<S> {
    source: S,
    /// Of the state that is read.
    superblock: Superblock,
    /// Of the metadata volume as it is used now; a held state does not say.
    data: Fill,
    metadata: Fill,
}

impl<S: Source> ThinMetadata<S> {
    /// Reads the superblock of `root`.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if no state is held, [`Kind::Inconsistent`] if this is no superblock or a damaged one,
    /// [`Kind::Unsupported`] for another version of the format, [`Kind::Io`] if the source cannot be read.
    pub fn read(source: S, root: Root) -> Result<Self, Error> {
        let tried = "read the superblock of thin metadata";
        let main = Superblock::read(&source, 0).map_err(|fault| fault.error(tried))?;
        main.supported(tried)?;
        let superblock = match root {
            Root::Current => main.clone(),
            Root::Held if main.held_root == 0 => {
                return Err(Error::new(Kind::NotFound, "read the held state of thin metadata")
                    .with_answer("the pool holds none"));
            }
            Root::Held => Superblock::read(&source, main.held_root).map_err(|fault| fault.error(tried))?,
        };
        superblock.supported(tried)?;
        Ok(Self { source, superblock, data: main.data, metadata: main.metadata })
    }

    /// The size of a chunk.
    #[must_use]
    pub fn chunk_size(&self) -> Bytes {
        self.superblock.chunk
    }

    /// The pool's transaction id in this state; the one in LVM's metadata must be the same.
    #[must_use]
    pub fn transaction_id(&self) -> u64 {
        self.superblock.transaction_id
    }

    /// The pool's snapshot clock in this state.
    #[must_use]
    pub fn time(&self) -> u32 {
        self.superblock.time
    }

    /// Whether the pool found the metadata damaged and wants a check before it writes again.
    #[must_use]
    pub fn needs_check(&self) -> bool {
        self.superblock.needs_check
    }

    /// Chunks of the data volume at the last commit.
    #[must_use]
    pub fn data(&self) -> Fill {
        self.data
    }

    /// Blocks of the metadata volume, 4 KiB each, at the last commit.
    #[must_use]
    pub fn metadata(&self) -> Fill {
        self.metadata
    }

    /// The thin volumes in the order of their ids, read as the iterator goes.
    pub fn devices(&self) -> Thins<'_, S> {
        Thins::new(Walk::new(&self.source, self.superblock.details_root, superblock::DETAILS_SIZE))
    }

    /// The mapped ranges of thin volume `id` in the order of their places in it, read as the iterator goes.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if the pool has no such volume, [`Kind::Inconsistent`] if the metadata are damaged.
    pub fn mapped(&self, id: ThinId) -> Result<Mapped<'_, S>, Error> {
        Ok(Mapped::new(self.mappings_of(id)?, self.data.total()))
    }

    /// What differs between the thin volumes `left` and `right`, in the order of the places in them.
    ///
    /// Parts of the metadata that the two share are not read, so the cost is that of the differences.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if the pool has no such volume, [`Kind::Inconsistent`] if the metadata are damaged.
    pub fn changes(&self, left: ThinId, right: ThinId) -> Result<Changes<'_, S>, Error> {
        let tried = format!("compare thin volumes {left} and {right}");
        let walks = (self.mappings_of(left)?, self.mappings_of(right)?);
        Changes::new(walks.0, walks.1).map_err(|fault| fault.error(&tried))
    }

    fn mappings_of(&self, id: ThinId) -> Result<Walk<'_, S>, Error> {
        let tried = format!("find the mappings of thin volume {id}");
        let root = btree::lookup(&self.source, self.superblock.mappings_root, id.get().into())
            .map_err(|fault| fault.error(&tried))?
            .ok_or_else(|| Error::new(Kind::NotFound, &*tried).with_answer("the pool has no such volume"))?;
        Ok(Walk::new(&self.source, root, btree::NUMBER))
    }
}
