//! Segments: what a stretch of a logical volume is made of.

use std::fmt;

use devices::Sectors;

use super::text::Section;
use crate::{Extents, LvName, Uuid};

/// A stretch of a logical volume with one layout.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Segment {
    /// First extent of the stretch, counted from the start of the volume.
    pub start: Extents,
    /// Length in extents of the volume, not of its parts.
    pub len: Extents,
    /// Extents set aside for a RAID reshape.
    pub reshape_len: Extents,
    /// Tags of the segment itself; LVM has long stopped making any.
    pub tags: Vec<Box<str>>,
    /// Flags that LVM appends to the type's name (`type = "raid5_ls+…"`).
    pub type_flags: Vec<Box<str>>,
    /// What it is made of.
    pub kind: SegmentKind,
}

/// What a segment is made of.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SegmentKind {
    /// Linear (one area) or striped.
    Striped(Striped),
    /// The old dm-mirror, which also carries a move of extents.
    Mirror(Mirror),
    /// RAID 0, 1, 4, 5, 6 and 10.
    Raid(Box<Raid>),
    /// A pool of thin volumes.
    ThinPool(ThinPool),
    /// A thin volume or a thin snapshot.
    Thin(Thin),
    /// The classic copy-on-write snapshot: a hidden volume that ties an origin to its store.
    Snapshot(Snapshot),
    /// A cached volume (dm-cache).
    Cache(Box<Cache>),
    /// A pool of cache blocks.
    CachePool(CachePool),
    /// A volume behind a write cache (dm-writecache).
    Writecache(Writecache),
    /// A RAID leg with checksums of its blocks (dm-integrity).
    Integrity(Integrity),
    /// Every access fails: stands for a lost part.
    Error,
    /// Reads give zeroes, writes vanish.
    Zero,
    /// A layout that this version of the library does not know.
    Unknown {
        /// The type's name.
        name: Box<str>,
        /// The section as it was written.
        raw: Section,
    },
}

/// Where the data of a stripe or a mirror leg lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    /// Extents of a PV.
    Pv {
        /// The PV.
        pv: Uuid,
        /// First extent on it.
        start: Extents,
    },
    /// Extents of another volume of the group.
    Lv {
        /// The volume.
        lv: LvName,
        /// First extent of it.
        start: Extents,
    },
}

/// Linear and striped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Striped {
    /// Size of a stripe's chunk; `None` when there is one area.
    pub stripe_size: Option<Sectors>,
    /// One area is linear.
    pub areas: Vec<Area>,
}

/// The old dm-mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mirror {
    /// The volume that remembers which regions are in step.
    pub log: Option<LvName>,
    /// Size of a region.
    pub region_size: Option<Sectors>,
    /// How many extents a move has done.
    pub extents_moved: Option<Extents>,
    /// The legs.
    pub areas: Vec<Area>,
}

/// A RAID level with its placement of parity or copies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RaidLevel {
    /// Stripes without redundancy; with `raid0_meta` each leg also has a metadata volume.
    Raid0,
    /// Copies.
    Raid1,
    /// One leg of parity.
    Raid4,
    /// Rotating parity; the text after `raid5`, `ls` for left-symmetric, LVM's default.
    Raid5(Box<str>),
    /// Two rotating parities; the text after `raid6`, `zr` for zero-restart, LVM's default.
    Raid6(Box<str>),
    /// Stripes of copies; the text after `raid10`, empty or `near`, `far`, `offset`.
    Raid10(Box<str>),
}

impl RaidLevel {
    /// Legs that may fail at most without loss of data.
    ///
    /// For RAID 1 and 10 this depends on the number of legs or copies, given by the caller.
    #[must_use]
    pub const fn parity_legs(&self) -> u32 {
        match self {
            Self::Raid0 | Self::Raid1 | Self::Raid10(_) => 0,
            Self::Raid4 | Self::Raid5(_) => 1,
            Self::Raid6(_) => 2,
        }
    }
}

/// Writes LVM's own name of the level: `raid1`, `raid5_ls`.
impl fmt::Display for RaidLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, variant) = match self {
            Self::Raid0 => ("raid0", ""),
            Self::Raid1 => ("raid1", ""),
            Self::Raid4 => ("raid4", ""),
            Self::Raid5(variant) => ("raid5", &**variant),
            Self::Raid6(variant) => ("raid6", &**variant),
            Self::Raid10(variant) => ("raid10", &**variant),
        };
        f.write_str(name)?;
        if variant.is_empty() { Ok(()) } else { write!(f, "_{variant}") }
    }
}

/// One leg of a RAID volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidLeg {
    /// The volume with the data (`…_rimage_N`).
    pub data: LvName,
    /// The volume with the leg's superblock and bitmap (`…_rmeta_N`); RAID 0 has none.
    pub meta: Option<LvName>,
}

/// A RAID segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Raid {
    /// The level.
    pub level: RaidLevel,
    /// The legs in order.
    pub legs: Vec<RaidLeg>,
    /// Size of a stripe's chunk; RAID 1 has none.
    pub stripe_size: Option<Sectors>,
    /// How much one bit of the bitmap covers; RAID 0 has none.
    pub region_size: Option<Sectors>,
    /// Copies of each block; written for RAID 10 only.
    pub data_copies: Option<u32>,
    /// Where the data begin on each leg while a reshape is under way.
    pub data_offset: Option<Sectors>,
    /// Writes that a write-mostly leg may lag behind.
    pub write_behind: Option<u32>,
    /// Lowest speed of a resynchronisation, KiB a second and leg.
    pub min_recovery_rate: Option<u32>,
    /// Highest speed of a resynchronisation, KiB a second and leg.
    pub max_recovery_rate: Option<u32>,
}

/// What a thin pool does with discards of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Discards {
    /// They do nothing.
    Ignore,
    /// The pool frees the chunks and keeps it to itself.
    NoPassdown,
    /// The pool frees the chunks and passes the discard to its data volume.
    Passdown,
}

/// A message that the pool gets at the next activation or resume: a half-made create or delete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinMessage {
    /// Create the device of this thin volume.
    Create(LvName),
    /// Delete this device id.
    Delete(u32),
}

/// A pool of thin volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinPool {
    /// The volume with the pool's metadata (`…_tmeta`).
    pub metadata: LvName,
    /// The volume with the pool's data (`…_tdata`).
    pub data: LvName,
    /// How many changes the pool has seen; the kernel's number must agree, save for pending messages.
    pub transaction_id: u64,
    /// Size of one chunk.
    pub chunk_size: Sectors,
    /// What discards do; `None` when the text does not say, which is [`Discards::Ignore`].
    pub discards: Option<Discards>,
    /// New chunks are zeroed before use.
    pub zero_new_blocks: bool,
    /// Whether the metadata volume is cropped to 15.81 GiB; `None` when the text does not say.
    pub crop_metadata: Option<bool>,
    /// What is still to be told to the kernel.
    pub messages: Vec<ThinMessage>,
}

/// A thin volume or a thin snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thin {
    /// The pool.
    pub pool: LvName,
    /// The volume's number in the pool.
    pub device_id: u32,
    /// The pool's transaction id when the volume was made.
    pub transaction_id: u64,
    /// The thin volume that it was cut from, while that one exists.
    pub origin: Option<LvName>,
    /// The read-only volume outside the pool that shows through where nothing was written.
    pub external_origin: Option<LvName>,
    /// The volume that it is being merged into.
    pub merge: Option<LvName>,
}

/// The tie between an origin and the store of its classic snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The volume that was snapshot.
    pub origin: LvName,
    /// The volume that holds what has changed since; users know the snapshot by this name.
    pub cow_store: LvName,
    /// Size of one copied chunk.
    pub chunk_size: Sectors,
    /// The snapshot is being merged back into its origin.
    pub merging: bool,
}

/// How a cache treats writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheMode {
    /// Both cache and origin are written before the write ends.
    Writethrough,
    /// The cache alone is written before the write ends.
    Writeback,
    /// The cache is left alone.
    Passthrough,
    /// A mode that this version of the library does not know.
    Other(Box<str>),
}

/// What a cache pool sets, and what a cached volume sets itself when its cache is a plain volume.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CacheSettings {
    /// Size of one cached chunk.
    pub chunk_size: Option<Sectors>,
    /// How writes are treated.
    pub mode: Option<CacheMode>,
    /// The policy's name (`smq`).
    pub policy: Option<Box<str>>,
    /// The policy's own settings.
    pub policy_settings: Option<Section>,
    /// 1 or 2.
    pub metadata_format: Option<u32>,
}

/// A cached volume.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cache {
    /// The cache pool, or the volume used as the cache.
    pub cache: LvName,
    /// The volume that is cached (`…_corig`).
    pub origin: LvName,
    /// The cache is being emptied.
    pub cleaner: bool,
    /// Set where the cache is a volume; with a pool they stand in the pool.
    pub settings: CacheSettings,
    /// Set where the cache is a volume.
    pub cache_vol: Option<CacheVolLayout>,
}

/// How a volume that is used as a cache is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheVolLayout {
    /// Where the metadata begin.
    pub metadata_start: Sectors,
    /// How long they are.
    pub metadata_len: Sectors,
    /// Where the cached blocks begin.
    pub data_start: Sectors,
    /// How long they are.
    pub data_len: Sectors,
    /// Identity of the metadata's device.
    pub metadata_id: Option<Uuid>,
    /// Identity of the data's device.
    pub data_id: Option<Uuid>,
}

/// A pool of cache blocks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachePool {
    /// The volume with the cached blocks (`…_cdata`).
    pub data: LvName,
    /// The volume with the cache's metadata (`…_cmeta`).
    pub metadata: LvName,
    /// Mode, policy and chunk size.
    pub settings: CacheSettings,
}

/// A volume behind a write cache.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Writecache {
    /// The volume that is cached (`…_wcorig`).
    pub origin: LvName,
    /// The volume that holds the writes.
    pub cache: LvName,
    /// Size of a block.
    pub block_size: Option<devices::Bytes>,
    /// The other keys of the segment (`high_watermark`, `writeback_jobs`, …) as written.
    pub settings: Section,
}

/// A RAID leg with checksums.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Integrity {
    /// The volume with the data (`…_iorig`).
    pub origin: LvName,
    /// The volume with the checksums (`…_imeta`); without one they lie between the data.
    pub metadata: Option<LvName>,
    /// How much of the origin is data.
    pub data_sectors: Option<Sectors>,
    /// `J` for a journal, `B` for a bitmap, …
    pub mode: Option<Box<str>>,
    /// The other keys of the segment (`internal_hash`, `block_size`, …) as written.
    pub settings: Section,
}

impl Segment {
    /// The end of the stretch: the first extent that it does not hold.
    #[must_use]
    pub fn end(&self) -> Extents {
        Extents::new(self.start.get().saturating_add(self.len.get()))
    }

    /// Extents that each area takes: the segment's length over its stripes.
    ///
    /// `None` for kinds without areas of their own.
    #[must_use]
    pub fn area_len(&self) -> Option<Extents> {
        match &self.kind {
            SegmentKind::Striped(striped) => {
                self.len.get().checked_div(striped.areas.len() as u64).map(Extents::new)
            }
            SegmentKind::Mirror(_) => Some(self.len),
            _ => None,
        }
    }

    /// The areas of a linear, striped or mirrored segment; empty for the others.
    #[must_use]
    pub fn areas(&self) -> &[Area] {
        match &self.kind {
            SegmentKind::Striped(striped) => &striped.areas,
            SegmentKind::Mirror(mirror) => &mirror.areas,
            _ => &[],
        }
    }

    /// The volumes that this segment is built on, in the order in which the text names them.
    ///
    /// A thin volume's pool and origins are among them, and so are a snapshot's origin and store.
    #[must_use]
    pub fn parts(&self) -> Vec<&LvName> {
        match &self.kind {
            SegmentKind::Striped(Striped { areas, .. }) => area_lvs(areas).collect(),
            SegmentKind::Mirror(mirror) => mirror.log.iter().chain(area_lvs(&mirror.areas)).collect(),
            SegmentKind::Raid(raid) => {
                raid.legs.iter().flat_map(|leg| leg.meta.iter().chain([&leg.data])).collect()
            }
            SegmentKind::ThinPool(pool) => vec![&pool.metadata, &pool.data],
            SegmentKind::Thin(thin) => {
                [&thin.pool].into_iter().chain(&thin.origin).chain(&thin.external_origin).collect()
            }
            SegmentKind::Snapshot(snapshot) => vec![&snapshot.origin, &snapshot.cow_store],
            SegmentKind::Cache(cache) => vec![&cache.cache, &cache.origin],
            SegmentKind::CachePool(pool) => vec![&pool.data, &pool.metadata],
            SegmentKind::Writecache(writecache) => vec![&writecache.origin, &writecache.cache],
            SegmentKind::Integrity(integrity) => {
                [&integrity.origin].into_iter().chain(&integrity.metadata).collect()
            }
            SegmentKind::Error | SegmentKind::Zero | SegmentKind::Unknown { .. } => Vec::new(),
        }
    }
}

fn area_lvs(areas: &[Area]) -> impl Iterator<Item = &LvName> {
    areas.iter().filter_map(|area| match area {
        Area::Lv { lv, .. } => Some(lv),
        Area::Pv { .. } => None,
    })
}
