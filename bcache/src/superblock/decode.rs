//! From bytes to a superblock. The bytes are untrusted.

use devices::{Bytes, Sectors};

use super::{BackingRole, CacheRole, Role, Superblock};
use crate::{CacheMode, Label, Replacement, State, Uuid, checksum};

pub(super) const MAGIC: [u8; 16] =
    [0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];
/// The sector of the superblock, which it names itself.
pub(super) const SECTOR: u64 = 8;
/// Where the data of a backing device begins at the earliest, in sectors.
pub(super) const FIRST_DATA: u64 = 16;
/// The most journal buckets.
const MAX_JOURNAL: u16 = 256;
/// The most devices of one set.
const MAX_DEVICES: u16 = 8;
/// Sectors of the smallest page that the kernel has.
const PAGE: u64 = 8;

pub(super) mod version {
    pub(in super::super) const CACHE: u64 = 0;
    pub(in super::super) const BACKING: u64 = 1;
    pub(in super::super) const CACHE_WITH_UUID: u64 = 3;
    pub(in super::super) const BACKING_WITH_OFFSET: u64 = 4;
    pub(in super::super) const CACHE_WITH_FEATURES: u64 = 5;
    pub(in super::super) const BACKING_WITH_FEATURES: u64 = 6;
}

/// Incompatible features: bucket sizes of more than 16 bits, in an older and in the present form.
const LARGE_BUCKET_HIGH_BITS: u64 = 1;
const LARGE_BUCKET_POWER: u64 = 2;

/// Bytes that have bcache's magic are no superblock that could be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// Fewer bytes than a superblock has.
    #[error("{0} bytes are too few for a superblock")]
    Short(usize),
    /// It names another sector as its own.
    #[error("the superblock says that it lies in sector {0}, not in {SECTOR}")]
    Sector(u64),
    /// More journal buckets than there can be.
    #[error("the superblock has {0} journal buckets, and {MAX_JOURNAL} is the most")]
    Journal(u16),
    /// The bytes are not those that the checksum was made of.
    #[error("the superblock's checksum is {stored:016x}, but its content gives {computed:016x}")]
    Checksum {
        /// What is written.
        stored: u64,
        /// What the content gives.
        computed: u64,
    },
    /// A version that this library does not know.
    #[error("the superblock has the unknown version {0}")]
    Version(u64),
    /// Incompatible features that this library does not know.
    #[error("the superblock has unknown features {0:#x}")]
    Features(u64),
    /// The device has no identity.
    #[error("the superblock has no uuid")]
    NoUuid,
    /// A cache device without a set.
    #[error("the superblock of a cache device names no cache set")]
    NoSet,
    /// The block size is no power of two from 512 to 4,096 bytes.
    #[error("the block size is {0} sectors")]
    BlockSize(u16),
    /// The bucket size is no power of two from 4 KiB.
    #[error("the bucket size is {0} sectors")]
    BucketSize(u64),
    /// The data would begin within the superblock.
    #[error("the data begins at sector {0}, within the superblock")]
    DataOffset(u64),
    /// The mode or the state has a number without a meaning.
    #[error("the flags {0:#x} have no meaning")]
    Flags(u64),
    /// The numbers of buckets contradict each other.
    #[error("{buckets} buckets, the first at {first}, with {journal} journal buckets contradict each other")]
    Buckets {
        /// How many there are.
        buckets: u64,
        /// The first one.
        first: u16,
        /// How many of them are the journal.
        journal: u16,
    },
    /// The place in the set contradicts the size of the set.
    #[error("device {place} of {count} is not in a set")]
    Place {
        /// Which device this is.
        place: u16,
        /// How many there are.
        count: u16,
    },
}

impl Superblock {
    /// Reads the superblock from the 4,096 bytes that lie at [`Superblock::OFFSET`]; `None` without bcache's magic.
    ///
    /// # Errors
    ///
    /// [`SuperblockError`] when the magic is there, but the rest cannot be used. Such a device is damaged or of another
    /// time, and is not free.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, SuperblockError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LENGTH }>() else {
            return Err(SuperblockError::Short(bytes.len()));
        };
        let fields = Fields(bytes);
        if fields.array::<16>(24) != MAGIC {
            return Ok(None);
        }
        fields.check()?;
        let version = fields.u64(16);
        let role = match version {
            version::BACKING | version::BACKING_WITH_OFFSET | version::BACKING_WITH_FEATURES => {
                Role::Backing(backing(&fields, version)?)
            }
            version::CACHE | version::CACHE_WITH_UUID | version::CACHE_WITH_FEATURES => {
                Role::Cache(cache(&fields, version)?)
            }
            _ => return Err(SuperblockError::Version(version)),
        };
        let set = Uuid::unless_zero(fields.array(56));
        if matches!(role, Role::Cache(_)) && set.is_none() {
            return Err(SuperblockError::NoSet);
        }
        let blocks = fields.u16(192);
        if !blocks.is_power_of_two() || u64::from(blocks) > PAGE {
            return Err(SuperblockError::BlockSize(blocks));
        }
        Ok(Some(Self {
            version,
            uuid: Uuid::unless_zero(fields.array(40)).ok_or(SuperblockError::NoUuid)?,
            set,
            label: fields.label(),
            sequence: fields.u64(112),
            block_size: Bytes::new(u64::from(blocks) * Sectors::SIZE),
            role,
        }))
    }
}

fn backing(fields: &Fields<'_>, version: u64) -> Result<BackingRole, SuperblockError> {
    let flags = fields.u64(104);
    let data_offset = match version {
        version::BACKING => FIRST_DATA,
        _ => fields.u64(184),
    };
    if data_offset < FIRST_DATA {
        return Err(SuperblockError::DataOffset(data_offset));
    }
    let mode = CacheMode::ALL.iter().copied().find(|mode| mode.bits() == flags & 0xf);
    let state = match flags >> 61 & 3 {
        0 => State::NoCache,
        1 => State::Clean,
        2 => State::Dirty,
        _ => State::Inconsistent,
    };
    Ok(BackingRole {
        data_offset: Sectors::new(data_offset),
        mode: mode.ok_or(SuperblockError::Flags(flags))?,
        state,
    })
}

fn cache(fields: &Fields<'_>, version: u64) -> Result<CacheRole, SuperblockError> {
    let flags = fields.u64(104);
    let bucket_size = bucket_size(fields, version)?;
    let (devices_in_set, place_in_set) = (fields.u16(196), fields.u16(198));
    if place_in_set >= devices_in_set || devices_in_set > MAX_DEVICES {
        return Err(SuperblockError::Place { place: place_in_set, count: devices_in_set });
    }
    let (buckets, first_bucket, journal_buckets) = (fields.u64(184), fields.u16(204), fields.u16(206));
    let after_journal = u64::from(first_bucket) + u64::from(journal_buckets);
    let sequential = (0..journal_buckets)
        .all(|nth| fields.u64(208 + usize::from(nth) * 8) == u64::from(first_bucket) + u64::from(nth));
    let fits = (1 << 7..=1 << 62).contains(&buckets) && after_journal <= buckets && sequential;
    if !fits || u64::from(first_bucket) * bucket_size < FIRST_DATA {
        return Err(SuperblockError::Buckets { buckets, first: first_bucket, journal: journal_buckets });
    }
    let replacement = Replacement::ALL.iter().copied().find(|one| one.bits() == flags >> 2 & 7);
    Ok(CacheRole {
        buckets,
        bucket_size: Sectors::new(bucket_size),
        devices_in_set,
        place_in_set,
        first_bucket,
        journal_buckets,
        in_use: flags & 1 == 1,
        discard: flags & 2 == 2,
        replacement: replacement.ok_or(SuperblockError::Flags(flags))?,
    })
}

/// In sectors.
fn bucket_size(fields: &Fields<'_>, version: u64) -> Result<u64, SuperblockError> {
    let low = u64::from(fields.u16(194));
    let features = if version == version::CACHE_WITH_FEATURES { fields.u64(128) } else { 0 };
    if features & !(LARGE_BUCKET_HIGH_BITS | LARGE_BUCKET_POWER) != 0 {
        return Err(SuperblockError::Features(features));
    }
    let size = if features & LARGE_BUCKET_POWER != 0 {
        u32::try_from(low).ok().and_then(|power| 1_u64.checked_shl(power)).unwrap_or(0)
    } else if features & LARGE_BUCKET_HIGH_BITS != 0 {
        low | u64::from(fields.u16(208 + usize::from(MAX_JOURNAL) * 8)) << 16
    } else {
        low
    };
    // Nothing of the kernel's goes above 32 bits of sectors.
    if !size.is_power_of_two() || !(PAGE..1 << 32).contains(&size) {
        return Err(SuperblockError::BucketSize(size));
    }
    Ok(size)
}

/// The bytes of a superblock by their offsets, which are all constants within it.
struct Fields<'a>(&'a [u8; Superblock::LENGTH]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..].first_chunk().copied().unwrap_or([0; N])
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// The sector, and the checksum over all but itself up to the last journal bucket.
    fn check(&self) -> Result<(), SuperblockError> {
        let (sector, journal) = (self.u64(8), self.u16(206));
        if sector != SECTOR {
            return Err(SuperblockError::Sector(sector));
        }
        if journal > MAX_JOURNAL {
            return Err(SuperblockError::Journal(journal));
        }
        let (stored, computed) = (self.u64(0), checksum(&self.0[8..208 + usize::from(journal) * 8]));
        if stored == computed { Ok(()) } else { Err(SuperblockError::Checksum { stored, computed }) }
    }

    /// What can be shown of the label, up to the first zero.
    fn label(&self) -> Option<Label> {
        let bytes: [u8; 32] = self.array(72);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What bcache-tools 1.0.8 wrote for `make-bcache -B -o 2048 --writeback`, as offsets and words.
    fn backing_device() -> Vec<u8> {
        let mut bytes = vec![0; Superblock::LENGTH];
        for (at, word) in [
            (0, 0x21fa_2e90_fdde_228b_u64),
            (8, 8),
            (16, 4),
            (24, 0xca45_1a4e_f673_85c6),
            (32, 0x816d_ba48_7ff5_6582),
            (40, 0x6f42_0f00_1f46_9483),
            (48, 0x45f3_a8ad_19a9_14b5),
            (56, 0x4847_4f9e_e0b7_0064),
            (64, 0xc2a7_d8f1_5b00_28ae),
            (104, 1),
            (184, 2048),
            (192, 0x0400_0001),
        ] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_backing_device_of_the_tools_is_understood() {
        let superblock = Superblock::decode(&backing_device()).unwrap().unwrap();
        assert_eq!(superblock.uuid.to_string(), "8394461f-000f-426f-b514-a919ada8f345");
        assert_eq!(superblock.set.unwrap().to_string(), "6400b7e0-9e4f-4748-ae28-005bf1d8a7c2");
        assert_eq!((superblock.version, superblock.label, superblock.block_size), (4, None, Bytes::new(512)));
        let role = BackingRole {
            data_offset: Sectors::new(2048),
            mode: CacheMode::WriteBack,
            state: State::NoCache,
        };
        assert_eq!(superblock.role, Role::Backing(role));
    }

    /// The same with a changed byte, and the checksum put right.
    fn changed(at: usize, with: &[u8]) -> Result<Option<Superblock>, SuperblockError> {
        let mut bytes = backing_device();
        bytes[at..at + with.len()].copy_from_slice(with);
        let sum = checksum(&bytes[8..208]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        Superblock::decode(&bytes)
    }

    #[test]
    fn each_contradiction_has_its_reason() {
        use SuperblockError as E;
        assert_eq!(Superblock::decode(&[0; 4096]), Ok(None));
        assert_eq!(Superblock::decode(&[0; 4095]), Err(E::Short(4095)));
        let mut damaged = backing_device();
        damaged[80] = b'x';
        assert!(matches!(Superblock::decode(&damaged), Err(E::Checksum { .. })));
        assert_eq!(changed(8, &[9]), Err(E::Sector(9)));
        assert_eq!(changed(16, &[2]), Err(E::Version(2)));
        assert_eq!(changed(40, &[0; 16]), Err(E::NoUuid));
        assert_eq!(changed(104, &[7]), Err(E::Flags(7)));
        assert_eq!(changed(184, &[15, 0]), Err(E::DataOffset(15)));
        assert_eq!(changed(192, &[3]), Err(E::BlockSize(3)));
        assert_eq!(changed(206, &[1, 1]), Err(E::Journal(257)));
        // The same bytes as a cache device: the data offset is then the number of buckets.
        assert_eq!(changed(16, &[0]), Err(E::Place { place: 0, count: 0 }));
    }

    #[test]
    fn the_state_is_in_the_highest_flags() {
        for (bits, state) in
            [(0x20, State::Clean), (0x40, State::Dirty), (0x60, State::Inconsistent), (0, State::NoCache)]
        {
            let superblock = changed(111, &[bits]).unwrap().unwrap();
            assert_eq!(superblock.backing().unwrap().state, state);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 4096), version in 0..8_u8, journal in 0..300_u16) {
            bytes[8..24].copy_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0, version, 0, 0, 0, 0, 0, 0, 0]);
            bytes[24..40].copy_from_slice(&MAGIC);
            bytes[206..208].copy_from_slice(&journal.to_le_bytes());
            let end = 208 + usize::from(journal.min(256)) * 8;
            let sum = checksum(&bytes[8..end]);
            bytes[..8].copy_from_slice(&sum.to_le_bytes());
            if let Ok(superblock) = Superblock::decode(&bytes) {
                prop_assert!(superblock.is_some());
            }
        }
    }
}
