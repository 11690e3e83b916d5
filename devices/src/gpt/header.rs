//! The header of one copy of the table (UEFI specification 2.10, section 5.3.2).

use uuid::Uuid;

use super::entry;

const SIGNATURE: &[u8; 8] = b"EFI PART";
const REVISION: u32 = 0x0001_0000;
/// The bytes of a header that the specification names.
const LENGTH: usize = 92;
/// Where the header's own checksum lies; it counts as zero in the sum.
const CHECKSUM: std::ops::Range<usize> = 16..20;
/// An array larger than this is taken for damage: it bounds what is read for any bytes.
const ARRAY_LIMIT: u64 = 1 << 20;

/// Why a copy of the table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// There is no header in its place.
    Absent,
    /// The header's checksum does not match.
    HeaderChecksum,
    /// A revision or an entry size that we do not know.
    Revision,
    /// The header says that it lies elsewhere, or places the array or the partitions where they cannot be.
    Misplaced,
    /// The checksum of the array of partitions does not match.
    ArrayChecksum,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Absent => "it is not there",
            Self::HeaderChecksum => "its header does not match its checksum",
            Self::Revision => "it is of a revision that is not known",
            Self::Misplaced => "it places itself or the partitions where they cannot be",
            Self::ArrayChecksum => "the list of partitions does not match its checksum",
        })
    }
}

/// A header whose checksum matches and whose places are possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) own: u64,
    /// Where the other copy's header lies.
    pub(super) other: u64,
    pub(super) first_usable: u64,
    /// Inclusive.
    pub(super) last_usable: u64,
    pub(super) disk_guid: Uuid,
    pub(super) array: u64,
    pub(super) count: u32,
    pub(super) entry_size: u32,
    pub(super) array_checksum: u32,
}

impl Header {
    /// Reads a header from its sector, which is sector `own`.
    pub(super) fn parse(sector: &[u8], own: u64) -> Result<Self, Fault> {
        let word =
            |at: usize| -> Option<u32> { Some(u32::from_le_bytes(sector.get(at..at + 4)?.try_into().ok()?)) };
        let long =
            |at: usize| -> Option<u64> { Some(u64::from_le_bytes(sector.get(at..at + 8)?.try_into().ok()?)) };
        if !has_signature(sector) {
            return Err(Fault::Absent);
        }
        let length = word(12).and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let covered = sector.get(..length).filter(|bytes| bytes.len() >= LENGTH);
        let covered = covered.ok_or(Fault::HeaderChecksum)?;
        if word(CHECKSUM.start) != Some(checksum(covered)) {
            return Err(Fault::HeaderChecksum);
        }
        let read = || {
            Some(Self {
                own: long(24)?,
                other: long(32)?,
                first_usable: long(40)?,
                last_usable: long(48)?,
                disk_guid: Uuid::from_bytes_le(sector.get(56..72)?.try_into().ok()?),
                array: long(72)?,
                count: word(80)?,
                entry_size: word(84)?,
                array_checksum: word(88)?,
            })
        };
        let header = read().ok_or(Fault::HeaderChecksum)?;
        let size = u64::from(header.entry_size);
        if word(8) != Some(REVISION) || size < entry::SIZE || !size.is_power_of_two() {
            return Err(Fault::Revision);
        }
        if header.own != own || header.array_bytes() > ARRAY_LIMIT {
            return Err(Fault::Misplaced);
        }
        Ok(header)
    }

    pub(super) fn encode(&self, sector: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(sector).unwrap_or(LENGTH).max(LENGTH)];
        bytes[..8].copy_from_slice(SIGNATURE);
        bytes[8..12].copy_from_slice(&REVISION.to_le_bytes());
        bytes[12..16].copy_from_slice(&92_u32.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.own.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.other.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_usable.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.last_usable.to_le_bytes());
        bytes[56..72].copy_from_slice(&self.disk_guid.to_bytes_le());
        bytes[72..80].copy_from_slice(&self.array.to_le_bytes());
        bytes[80..84].copy_from_slice(&self.count.to_le_bytes());
        bytes[84..88].copy_from_slice(&self.entry_size.to_le_bytes());
        bytes[88..92].copy_from_slice(&self.array_checksum.to_le_bytes());
        let sum = checksum(&bytes[..LENGTH]);
        bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn array_bytes(&self) -> u64 {
        u64::from(self.count) * u64::from(self.entry_size)
    }
}

/// Whether the sector begins as a header does, right or damaged.
fn has_signature(sector: &[u8]) -> bool {
    sector.starts_with(SIGNATURE)
}

fn checksum(header: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header[..CHECKSUM.start]);
    sum.update(&[0; 4]);
    sum.update(&header[CHECKSUM.end..]);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            own: 1,
            other: 2047,
            first_usable: 34,
            last_usable: 2014,
            disk_guid: Uuid::from_u128(7),
            array: 2,
            count: 128,
            entry_size: 128,
            array_checksum: 0xfeed,
        }
    }

    #[test]
    fn a_header_survives_being_written_and_read() {
        for sector in [512, 4096] {
            let bytes = header().encode(sector);
            assert_eq!(bytes.len() as u64, sector);
            assert_eq!(Header::parse(&bytes, 1), Ok(header()));
            assert_eq!(Header::parse(&bytes, 2), Err(Fault::Misplaced));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = header().encode(512);
        for bit in 0..LENGTH * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&bytes, 1).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Header::parse(&bytes, 1);
            if bytes.len() >= LENGTH {
                bytes[..8].copy_from_slice(SIGNATURE);
                bytes[12..16].copy_from_slice(&92_u32.to_le_bytes());
                let sum = checksum(&bytes[..LENGTH]);
                bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
                if let Ok(header) = Header::parse(&bytes, 1) {
                    prop_assert!(header.array_bytes() <= ARRAY_LIMIT);
                }
            }
        }
    }
}
