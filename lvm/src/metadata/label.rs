//! The label that makes a device a PV.
//!
//! It stands in one of the first four 512-byte sectors (LVM writes the second), whatever the device's block size:
//!
//! ```text
//!   0  "LABELONE"                      8 bytes
//!   8  number of this sector           u64
//!  16  checksum of bytes 20 to 512     u32
//!  20  offset of the PV header (32)    u32
//!  24  "LVM2 001"                      8 bytes
//!  32  PV header: uuid (32 bytes), device size in bytes (u64),
//!      data areas (offset, size: u64 each) up to a zero offset, metadata areas likewise,
//!      then the extension: version (u32), flags (u32), boot loader areas likewise
//! ```
//!
//! Source: `lib/label/label.h` and `lib/format_text/layout.h` of LVM2.

use devices::Bytes;

use super::Defect;
use super::bytes::{array, u32_at, u64_at};
use super::crc::checksum;
use crate::Uuid;

/// How far into the device a label may stand.
pub(super) const LABEL_AREA: usize = 4 * SECTOR;
const SECTOR: usize = 512;
/// Set in the extension's flags of a PV that belongs to a group.
const IN_USE: u32 = 1;
/// Most metadata areas that LVM gives a PV (`FMT_TEXT_MAX_MDAS_PER_PV`). Each can hold a text of 128 MiB, so more would
/// let one disk fill the memory.
const METADATA_AREAS_MAX: usize = 2;
/// Most areas of each kind; a sector has no room for more.
const AREAS_MAX: usize = SECTOR / 16;

/// A stretch of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins.
    pub start: Bytes,
    /// Its length; zero in a data area stands for the rest of the device.
    pub size: Bytes,
}

/// A PV label.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The PV's identity.
    pub uuid: Uuid,
    /// The size of the device when the label was written.
    pub device_size: Bytes,
    /// Where the extents lie.
    pub data_areas: Vec<Stretch>,
    /// Where the group's metadata lie.
    pub metadata_areas: Vec<Stretch>,
    /// Where space is kept for a boot loader.
    pub bootloader_areas: Vec<Stretch>,
    /// The version of the header's extension; zero for PVs that were made without one.
    pub extension: u32,
    /// A group uses this PV; `None` where the extension is too old to tell.
    pub in_use: Option<bool>,
}

impl Label {
    /// Finds the label in the first 2,048 bytes of a device; `None` when there is none.
    ///
    /// A sector that begins like a label but is damaged counts only when no other sector holds a good one.
    ///
    /// # Errors
    ///
    /// [`Defect`] of the damaged label.
    pub fn find(head: &[u8]) -> Result<Option<Self>, Defect> {
        let mut damaged = None;
        for (number, sector) in (0..).zip(head.chunks_exact(SECTOR).take(4)) {
            if !sector.starts_with(b"LABELONE") {
                continue;
            }
            match Self::parse(sector, number) {
                Ok(label) => return Ok(Some(label)),
                Err(defect) => damaged = damaged.or(Some(defect)),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    fn parse(sector: &[u8], number: u64) -> Result<Self, Defect> {
        const WHAT: &str = "label";
        let written = u64_at(sector, 8, WHAT)?;
        if written != number {
            return Err(Defect::Field { field: "sector number", value: written });
        }
        let found = u32_at(sector, 16, WHAT)?;
        let computed = checksum(sector.get(20..SECTOR).ok_or(Defect::Short(WHAT))?);
        if found != computed {
            return Err(Defect::Checksum { found, computed });
        }
        let kind: [u8; 8] = array(sector, 24, WHAT)?;
        if kind != *b"LVM2 001" {
            return Err(Defect::Field { field: "type", value: u64::from_le_bytes(kind) });
        }
        let offset = u32_at(sector, 20, WHAT)?;
        let header = usize::try_from(offset).ok().and_then(|offset| sector.get(offset..));
        Self::parse_header(
            header.ok_or(Defect::Field { field: "offset of the PV header", value: offset.into() })?,
        )
    }

    fn parse_header(header: &[u8]) -> Result<Self, Defect> {
        const WHAT: &str = "PV header";
        let uuid: [u8; 32] = array(header, 0, WHAT)?;
        let uuid = Uuid::from_bytes(uuid)
            .map_err(|error| Defect::Meaning { place: WHAT.to_owned(), what: error.to_string() })?;
        let device_size = Bytes::new(u64_at(header, 32, WHAT)?);
        let (data_areas, at) = stretches(header, 40)?;
        let (metadata_areas, at) = stretches(header, at)?;
        if metadata_areas.len() > METADATA_AREAS_MAX {
            let value = metadata_areas.len() as u64;
            return Err(Defect::Field { field: "number of metadata areas", value });
        }
        // A PV without an extension has zeroes there, or nothing.
        let extension = u32_at(header, at, WHAT).unwrap_or(0);
        let (flags, bootloader_areas) = if extension == 0 {
            (0, Vec::new())
        } else {
            (u32_at(header, at + 4, WHAT)?, stretches(header, at + 8)?.0)
        };
        let in_use = (extension >= 2).then_some(flags & IN_USE != 0);
        Ok(Self { uuid, device_size, data_areas, metadata_areas, bootloader_areas, extension, in_use })
    }
}

/// A list of stretches up to a zero offset, and where the bytes after it begin.
fn stretches(header: &[u8], mut at: usize) -> Result<(Vec<Stretch>, usize), Defect> {
    const WHAT: &str = "list of areas";
    let mut list = Vec::new();
    while list.len() <= AREAS_MAX {
        let (start, size) = (u64_at(header, at, WHAT)?, u64_at(header, at + 8, WHAT)?);
        at += 16;
        if start == 0 {
            return Ok((list, at));
        }
        list.push(Stretch { start: Bytes::new(start), size: Bytes::new(size) });
    }
    Err(Defect::Short(WHAT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A label made from the layout above, by other code than the parser's.
    fn sector(number: u64, data: &[(u64, u64)], mda: &[(u64, u64)], extension: Option<u32>) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend([b'a'; 32]);
        body.extend(1_000_000_u64.to_le_bytes());
        for list in [data, mda] {
            for (start, size) in list.iter().chain([&(0, 0)]) {
                body.extend(start.to_le_bytes().into_iter().chain(size.to_le_bytes()));
            }
        }
        if let Some(flags) = extension {
            body.extend(2_u32.to_le_bytes().into_iter().chain(flags.to_le_bytes()));
            body.extend([0; 16]);
        }
        let mut tail: Vec<u8> = 32_u32.to_le_bytes().into_iter().chain(*b"LVM2 001").chain(body).collect();
        tail.resize(SECTOR - 20, 0);
        let head = b"LABELONE".iter().copied().chain(number.to_le_bytes());
        head.chain(checksum(&tail).to_le_bytes()).chain(tail.clone()).collect()
    }

    #[test]
    fn a_label_is_found_in_any_of_four_sectors() {
        for number in 0..4_u8 {
            let mut head = vec![0; LABEL_AREA];
            let at = usize::from(number) * SECTOR;
            let label = sector(number.into(), &[(1 << 20, 0)], &[(4096, 1_044_480), (9 << 20, 512)], Some(1));
            head[at..at + SECTOR].copy_from_slice(&label);
            let label = Label::find(&head).unwrap().unwrap();
            assert_eq!(label.uuid, Uuid::from_bytes([b'a'; 32]).unwrap());
            assert_eq!(label.device_size, Bytes::new(1_000_000));
            assert_eq!(label.metadata_areas.len(), 2);
            assert_eq!(
                label.metadata_areas[0],
                Stretch { start: Bytes::new(4096), size: Bytes::new(1_044_480) }
            );
            assert_eq!((label.extension, label.in_use), (2, Some(true)));
        }
        assert_eq!(Label::find(&[0; LABEL_AREA]), Ok(None));
        assert_eq!(Label::find(b"LABELONE"), Ok(None));
    }

    #[test]
    fn a_good_label_wins_over_a_damaged_one() {
        let mut head = vec![0; LABEL_AREA];
        let mut bad = sector(0, &[], &[], None);
        bad[100] ^= 1;
        head[..SECTOR].copy_from_slice(&bad);
        assert!(matches!(Label::find(&head), Err(Defect::Checksum { .. })));
        head[SECTOR..2 * SECTOR].copy_from_slice(&sector(1, &[], &[], None));
        let label = Label::find(&head).unwrap().unwrap();
        assert_eq!((label.extension, label.in_use), (0, None));
    }

    #[test]
    fn more_metadata_areas_than_lvm_makes_are_refused() {
        let mut head = vec![0; LABEL_AREA];
        head[..SECTOR].copy_from_slice(&sector(0, &[(1 << 20, 0)], &[(4096, 1 << 20); 3], None));
        assert_eq!(Label::find(&head), Err(Defect::Field { field: "number of metadata areas", value: 3 }));
    }

    #[test]
    fn a_label_in_the_wrong_sector_is_a_copy_and_refused() {
        let mut head = vec![0; LABEL_AREA];
        head[..SECTOR].copy_from_slice(&sector(1, &[], &[], None));
        assert_eq!(Label::find(&head), Err(Defect::Field { field: "sector number", value: 1 }));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_noticed(byte in 0..SECTOR, bit in 0..8_u8) {
            let mut head = sector(0, &[(1 << 20, 0)], &[(4096, 1 << 20)], Some(1));
            head[byte] ^= 1 << bit;
            prop_assert!(!matches!(Label::find(&head), Ok(Some(_))));
        }
    }
}
