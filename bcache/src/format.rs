//! Making new backing and cache devices. Each device is formatted once in its life.

use devices::{Bytes, Sectors};

use crate::superblock::{BackingRole, CacheRole, Role, Superblock};
use crate::{Blank, CacheMode, Error, Kind, Label, Replacement, State, Uuid};

/// Where the data of a backing device begins unless said otherwise: 8 KiB.
pub const DEFAULT_DATA_OFFSET: Sectors = Sectors::new(16);
/// The bucket size of a cache unless said otherwise.
pub const DEFAULT_BUCKET: Bytes = Bytes::kib(512);
/// The largest bucket size that every kernel reads: more does not fit into the superblock's 16 bits of sectors.
const LARGEST_BUCKET: u64 = 16 << 20;
/// With so few buckets the kernel's allocator has none to spare and refuses (`cache_alloc` divides by 1,024, rounding up to
/// a power of two first), although `make-bcache` makes such a cache.
const TOO_FEW_BUCKETS: u64 = 512;
/// The kernel's page, the largest block size and the smallest bucket size.
const PAGE: u64 = 4096;

/// How to make a backing device.
///
/// ```no_run
/// use bcache::{Blank, CacheMode, NewBacking, NewCache};
///
/// let cache = NewCache::new().format(Blank::claim("/dev/nvme0n1p3".as_ref())?)?;
/// let backing = NewBacking::new().mode(CacheMode::WriteBack).in_set_of(&cache);
/// backing.format(Blank::claim("/dev/sdb".as_ref())?)?;
/// # Ok::<(), bcache::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "this only says how; `format` does it"]
pub struct NewBacking {
    uuid: Option<Uuid>,
    set: Option<Uuid>,
    label: Option<Label>,
    data_offset: Sectors,
    block_size: Option<Bytes>,
    mode: CacheMode,
}

impl Default for NewBacking {
    fn default() -> Self {
        Self::new()
    }
}

impl NewBacking {
    /// With a new uuid, in no set, without a label, writing through, data from 8 KiB on, blocks of the device's own size.
    pub const fn new() -> Self {
        Self {
            uuid: None,
            set: None,
            label: None,
            data_offset: DEFAULT_DATA_OFFSET,
            block_size: None,
            mode: CacheMode::WriteThrough,
        }
    }

    /// This identity, so that a caller who was killed finds what he made.
    pub const fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// The kernel attaches the device to this cache set as soon as both are registered.
    pub const fn in_set(mut self, set: Uuid) -> Self {
        self.set = Some(set);
        self
    }

    /// The same by a cache device of the set, with blocks that fit.
    pub fn in_set_of(mut self, cache: &Superblock) -> Self {
        self.set = cache.set;
        self.block_size = self.block_size.max(Some(cache.block_size));
        self
    }

    /// A label, which udev shows as `/dev/bcache/by-label/…`.
    pub fn label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }

    /// Where the data begins, 8 KiB at least: for example 1 MiB, to keep an alignment.
    pub const fn data_offset(mut self, offset: Sectors) -> Self {
        self.data_offset = offset;
        self
    }

    /// The block size of the cached device: not smaller than that of its cache set, or the kernel refuses to attach it.
    pub const fn block_size(mut self, size: Bytes) -> Self {
        self.block_size = Some(size);
        self
    }

    /// What the cache does with writes.
    pub const fn mode(mut self, mode: CacheMode) -> Self {
        self.mode = mode;
        self
    }

    /// Formats a device; then the device is free for the kernel, and udev's rules may register it at once.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`], [`Kind::NoSpace`] when nothing is left behind the data offset, [`Kind::Io`].
    pub fn format(self, device: Blank) -> Result<Superblock, Error> {
        let tried = format!("make {} a bcache backing device", device.path().display());
        let block_size = block_size(self.block_size, &device, &tried)?;
        if self.data_offset < DEFAULT_DATA_OFFSET
            || !self.data_offset.get().is_multiple_of(PAGE / Sectors::SIZE)
        {
            let answer = format!("the data offset of {} sectors is not possible", self.data_offset.get());
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(answer)
                .with_advice("use a multiple of 8 sectors, 16 at least"));
        }
        let start = self
            .data_offset
            .to_bytes()
            .filter(|start| start.checked_add(block_size).is_some_and(|end| end <= device.size()));
        let Some(start) = start else {
            let answer = format!("it has {} only", device.size());
            return Err(Error::new(Kind::NoSpace, tried).with_answer(answer));
        };
        let role = BackingRole { data_offset: self.data_offset, mode: self.mode, state: State::NoCache };
        let superblock = Superblock {
            version: if self.data_offset == DEFAULT_DATA_OFFSET { 1 } else { 4 },
            uuid: or_random(self.uuid)?,
            // As the tools do: a set that nobody has, rather than none.
            set: Some(or_random(self.set)?),
            label: self.label,
            sequence: 0,
            block_size,
            role: Role::Backing(role),
        };
        device.format(&superblock, start, &tried)?;
        Ok(superblock)
    }
}

/// How to make a cache device, which is a cache set of its own.
///
/// The device's content is worth nothing afterwards; discarding all of it first makes an SSD faster and live longer.
#[derive(Clone, Debug)]
#[must_use = "this only says how; `format` does it"]
pub struct NewCache {
    uuid: Option<Uuid>,
    set: Option<Uuid>,
    label: Option<Label>,
    bucket_size: Bytes,
    block_size: Option<Bytes>,
    replacement: Replacement,
}

impl Default for NewCache {
    fn default() -> Self {
        Self::new()
    }
}

impl NewCache {
    /// With new uuids, buckets of 512 KiB, blocks of the device's own size, giving up what was not used for the longest time.
    pub const fn new() -> Self {
        Self {
            uuid: None,
            set: None,
            label: None,
            bucket_size: DEFAULT_BUCKET,
            block_size: None,
            replacement: Replacement::Lru,
        }
    }

    /// This identity of the device.
    pub const fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// This identity of the new cache set.
    pub const fn set(mut self, set: Uuid) -> Self {
        self.set = Some(set);
        self
    }

    /// A label.
    pub fn label(mut self, label: Label) -> Self {
        self.label = Some(label);
        self
    }

    /// The bucket size: a power of two from 4 KiB to 16 MiB, best the size of the SSD's erase block.
    pub const fn bucket_size(mut self, size: Bytes) -> Self {
        self.bucket_size = size;
        self
    }

    /// The block size: every backing device's must be at least as large.
    pub const fn block_size(mut self, size: Bytes) -> Self {
        self.block_size = Some(size);
        self
    }

    /// What is given up first.
    pub const fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// The smallest device that can be a cache with this bucket size.
    #[must_use]
    pub const fn smallest(&self) -> Bytes {
        Bytes::new((TOO_FEW_BUCKETS + 1).saturating_mul(self.bucket_size.get()))
    }

    /// Formats a device; then the device is free for the kernel, and udev's rules may register it at once.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`], [`Kind::NoSpace`] when it has so few buckets that the kernel would not take it,
    /// [`Kind::Io`].
    pub fn format(self, device: Blank) -> Result<Superblock, Error> {
        let tried = format!("make {} a bcache cache device", device.path().display());
        let block_size = block_size(self.block_size, &device, &tried)?;
        let bucket = self.bucket_size.get();
        if !bucket.is_power_of_two() || !(PAGE..=LARGEST_BUCKET).contains(&bucket) {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("buckets of {:#} are not possible", self.bucket_size))
                .with_advice("use a power of two from 4 KiB to 16 MiB"));
        }
        if device.size() < self.smallest() {
            return Err(Error::new(Kind::NoSpace, tried)
                .with_answer(format!(
                    "it has {} buckets, and the kernel takes no cache with {TOO_FEW_BUCKETS} or fewer",
                    device.size().get() / bucket
                ))
                .with_advice(format!("use a device of {} or smaller buckets", self.smallest())));
        }
        let bucket_size = Sectors::new(bucket / Sectors::SIZE);
        let role = CacheRole {
            buckets: device.size().get() / bucket,
            bucket_size,
            devices_in_set: 1,
            place_in_set: 0,
            first_bucket: first_bucket(bucket_size),
            journal_buckets: 0,
            in_use: false,
            discard: false,
            replacement: self.replacement,
        };
        let superblock = Superblock {
            version: 0,
            uuid: or_random(self.uuid)?,
            set: Some(or_random(self.set)?),
            label: self.label,
            sequence: 0,
            block_size,
            role: Role::Cache(role),
        };
        device.format(&superblock, Bytes::ZERO, &tried)?;
        Ok(superblock)
    }
}

/// The first bucket behind the superblock, which ends at sector 24 at the latest.
fn first_bucket(bucket_size: Sectors) -> u16 {
    u16::try_from(23 / bucket_size.get() + 1).unwrap_or(1)
}

fn or_random(uuid: Option<Uuid>) -> Result<Uuid, Error> {
    uuid.map_or_else(Uuid::random, Ok)
}

fn block_size(wanted: Option<Bytes>, device: &Blank, tried: &str) -> Result<Bytes, Error> {
    let least = device.logical_block();
    let size = wanted.unwrap_or(least).get();
    if size.is_power_of_two() && (least.get()..=PAGE).contains(&size) {
        return Ok(Bytes::new(size));
    }
    Err(Error::new(Kind::InvalidArgument, tried)
        .with_answer(format!("blocks of {size} bytes are not possible"))
        .with_advice(format!("use a power of two from {least} to 4 KiB")))
}
