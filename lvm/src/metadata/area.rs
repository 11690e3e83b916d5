//! The header of a metadata area and the place of the text in it.
//!
//! An area is one sector of header and behind it a ring, in which each commit writes the whole text of the group
//! after the one before it. The header says where the committed text lies:
//!
//! ```text
//!   0  checksum of bytes 4 to 512      u32
//!   4  " LVM2 x[5A%r0N*>"              16 bytes
//!  20  version (1)                     u32
//!  24  start of the area on the device u64
//!  32  size of the area                u64
//!  40  locations: offset (u64, from the start of the area), size (u64), checksum (u32), flags (u32);
//!      the first is the committed text, the second one that is about to be committed, zeroes end the list
//! ```
//!
//! Source: `lib/format_text/layout.h` of LVM2.

use devices::Bytes;

use super::Defect;
use super::bytes::{array, u32_at, u64_at};
use super::crc::checksum;
use super::label::Stretch;

/// Size of the header; the ring begins behind it.
pub(super) const HEADER: usize = 512;
const HEADER_U64: u64 = 512;
const MAGIC: [u8; 16] = *b" LVM2 x[5A%r0N*>";
/// The group does not use this area.
const IGNORED: u32 = 1;
/// Longest text that is read: 16 times what LVM itself takes by default (`io_memory_size`, 8 MiB).
pub(super) const TEXT_MAX: u64 = 128 << 20;

/// The longest text that an area of `size` bytes takes: half of the ring, less a sector.
pub(super) fn text_max(size: u64) -> u64 {
    (size.saturating_sub(HEADER_U64) / 2).saturating_sub(HEADER_U64)
}

/// The header of a metadata area.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaHeader {
    /// The area on the device.
    pub area: Stretch,
    /// LVM was told not to use it.
    pub ignored: bool,
    /// The committed text; `None` when no group was ever written here.
    pub text: Option<TextLocation>,
}

/// Where a text lies in its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TextLocation {
    /// Where it begins, counted from the start of the area.
    pub offset: Bytes,
    /// Its length, with the zero byte that ends it.
    pub size: Bytes,
    /// Its checksum.
    pub checksum: u32,
}

impl AreaHeader {
    /// Reads the header of `area` from its first 512 bytes.
    ///
    /// # Errors
    ///
    /// [`Defect`] for a wrong checksum or magic, for a header of another place, and for a text that cannot lie where
    /// the header says.
    pub fn parse(header: &[u8], area: Stretch) -> Result<Self, Defect> {
        const WHAT: &str = "header";
        let found = u32_at(header, 0, WHAT)?;
        let computed = checksum(header.get(4..HEADER).ok_or(Defect::Short(WHAT))?);
        if found != computed {
            return Err(Defect::Checksum { found, computed });
        }
        let magic: [u8; 16] = array(header, 4, WHAT)?;
        if magic != MAGIC {
            let [a, b, c, d, e, f, g, h, ..] = magic;
            let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            return Err(Defect::Field { field: "magic", value });
        }
        let version = u32_at(header, 20, WHAT)?;
        if version != 1 {
            return Err(Defect::Field { field: "version", value: version.into() });
        }
        let start = u64_at(header, 24, WHAT)?;
        if start != area.start.get() {
            return Err(Defect::Field { field: "start", value: start });
        }
        let size = u64_at(header, 32, WHAT)?;
        if size <= HEADER_U64 || start.checked_add(size).is_none() {
            return Err(Defect::Field { field: "size", value: size });
        }
        let area = Stretch { start: area.start, size: Bytes::new(size) };
        let ignored = u32_at(header, 60, WHAT)? & IGNORED != 0;
        Ok(Self { area, ignored, text: location(header, area)? })
    }

    /// The pieces in which `text` lies on the device, in order: one, or two where it runs over the end of the ring.
    #[must_use]
    pub fn pieces(&self, text: &TextLocation) -> [Stretch; 2] {
        let (start, area_size) = (self.area.start.get(), self.area.size.get());
        let first = text.size.get().min(area_size.saturating_sub(text.offset.get()));
        let stretch =
            |at: u64, size| Stretch { start: Bytes::new(start.saturating_add(at)), size: Bytes::new(size) };
        [stretch(text.offset.get(), first), stretch(HEADER_U64, text.size.get() - first)]
    }
}

fn location(header: &[u8], area: Stretch) -> Result<Option<TextLocation>, Defect> {
    const WHAT: &str = "location";
    let offset = u64_at(header, 40, WHAT)?;
    let size = u64_at(header, 48, WHAT)?;
    if offset == 0 || size == 0 {
        return Ok(None);
    }
    if offset < HEADER_U64 || offset >= area.size.get() {
        return Err(Defect::Field { field: "offset of the text", value: offset });
    }
    // A text that is as long as the ring would begin where it ends.
    if size > area.size.get() - HEADER_U64 || size > TEXT_MAX {
        return Err(Defect::Field { field: "size of the text", value: size });
    }
    let checksum = u32_at(header, 56, WHAT)?;
    Ok(Some(TextLocation { offset: Bytes::new(offset), size: Bytes::new(size), checksum }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AREA: Stretch = Stretch { start: Bytes::new(4096), size: Bytes::new(4096) };

    fn header(start: u64, size: u64, text: (u64, u64, u32, u32)) -> Vec<u8> {
        let mut tail: Vec<u8> = MAGIC.into_iter().chain(1_u32.to_le_bytes()).collect();
        for field in [start, size, text.0, text.1] {
            tail.extend(field.to_le_bytes());
        }
        tail.extend(text.2.to_le_bytes().into_iter().chain(text.3.to_le_bytes()));
        tail.resize(HEADER - 4, 0);
        checksum(&tail).to_le_bytes().into_iter().chain(tail.clone()).collect()
    }

    #[test]
    fn a_text_in_one_piece_and_one_that_wraps() {
        let parsed = AreaHeader::parse(&header(4096, 4096, (512, 100, 7, 0)), AREA).unwrap();
        let text = parsed.text.unwrap();
        let piece = |start, size| Stretch { start: Bytes::new(start), size: Bytes::new(size) };
        assert_eq!(text.checksum, 7);
        assert_eq!(parsed.pieces(&text), [piece(4608, 100), piece(4608, 0)]);

        let parsed = AreaHeader::parse(&header(4096, 4096, (4000, 100, 7, 0)), AREA).unwrap();
        assert_eq!(parsed.pieces(&parsed.text.unwrap()), [piece(8096, 96), piece(4608, 4)]);
    }

    #[test]
    fn an_empty_and_an_ignored_area() {
        let empty = AreaHeader::parse(&header(4096, 4096, (0, 0, 0, 0)), AREA).unwrap();
        assert_eq!((empty.text, empty.ignored), (None, false));
        assert!(AreaHeader::parse(&header(4096, 4096, (512, 100, 7, 1)), AREA).unwrap().ignored);
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let max = u64::MAX;
        for (start, size, text) in [
            (8192, 4096, (0, 0)),
            (4096, 512, (0, 0)),
            (4096, max, (0, 0)),
            (4096, 4096, (1, 1)),
            (4096, 4096, (511, 1)),
            (4096, 4096, (4096, 1)),
            (4096, 4096, (max, max)),
            (4096, 4096, (512, 3585)),
            (4096, 1 << 40, (512, TEXT_MAX + 1)),
        ] {
            let bytes = header(start, size, (text.0, text.1, 0, 0));
            assert!(
                matches!(AreaHeader::parse(&bytes, AREA), Err(Defect::Field { .. })),
                "{start} {size} {text:?}"
            );
        }
        let whole = AreaHeader::parse(&header(4096, 4096, (512, 3584, 0, 0)), AREA).unwrap();
        assert_eq!(whole.pieces(&whole.text.unwrap())[1].size, Bytes::ZERO);
        assert_eq!(AreaHeader::parse(&[0; 100], AREA), Err(Defect::Short("header")));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_noticed(byte in 0..HEADER, bit in 0..8_u8) {
            let mut bytes = header(4096, 4096, (512, 100, 7, 0));
            bytes[byte] ^= 1 << bit;
            let is_checksum_defect = matches!(AreaHeader::parse(&bytes, AREA), Err(Defect::Checksum { .. }));
            prop_assert!(is_checksum_defect);
        }
    }
}
