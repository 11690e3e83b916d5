//! What a table is read from and written to.

use std::fmt;
use std::io;

use crate::Bytes;

/// A disk as the table's code sees it: whole logical sectors, and a flush that orders what was written before it.
///
/// [`DiskFile`](super::DiskFile) is the real one. Tests put a recorder in its place, so that they can cut the power
/// after every single write.
pub trait Medium: fmt::Debug {
    /// What errors call it: its path.
    fn name(&self) -> &str;

    /// The logical sector: 512 to 4,096 bytes, a power of two.
    fn sector(&self) -> Bytes;

    /// All of it. What is not a whole sector at the end is not used.
    fn size(&self) -> Bytes;

    /// Reads whole sectors.
    ///
    /// # Errors
    ///
    /// Of the disk; a short read is one.
    fn read_at(&self, at: Bytes, into: &mut [u8]) -> io::Result<()>;

    /// Writes whole sectors; they may reach the disk in any order until [`Self::flush`].
    ///
    /// # Errors
    ///
    /// Of the disk.
    fn write_at(&mut self, at: Bytes, from: &[u8]) -> io::Result<()>;

    /// Returns when everything written before is on the disk for good.
    ///
    /// # Errors
    ///
    /// Of the disk.
    fn flush(&mut self) -> io::Result<()>;
}

/// Sectors of one medium, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Bytes in a sector.
    pub(super) sector: u64,
    /// Whole sectors on the medium.
    pub(super) sectors: u64,
}

impl Geometry {
    /// `None` for sectors that no table can be on, and for media too small for both copies.
    pub(super) fn of(medium: &dyn Medium) -> Option<Self> {
        let sector = medium.sector().get();
        if !(512..=4096).contains(&sector) || !sector.is_power_of_two() {
            return None;
        }
        let sectors = medium.size().get() / sector;
        let geometry = Self { sector, sectors };
        (sectors > 2 * (geometry.array_sectors() + 1) + 1).then_some(geometry)
    }

    /// Sectors of an array of the usual 128 entries of 128 bytes.
    pub(super) fn array_sectors(self) -> u64 {
        (super::entry::COUNT * super::entry::SIZE).div_ceil(self.sector)
    }

    pub(super) fn last(self) -> u64 {
        self.sectors - 1
    }

    /// A count of sectors; saturates, since what was read may claim anything.
    pub(super) fn bytes(self, sectors: u64) -> Bytes {
        Bytes::new(sectors.saturating_mul(self.sector))
    }
}

/// Reads `length` bytes, rounded up to whole sectors and cut again, from sector `lba` on.
pub(super) fn read(medium: &dyn Medium, geometry: Geometry, lba: u64, length: usize) -> io::Result<Vec<u8>> {
    let sector = usize::try_from(geometry.sector).map_err(io::Error::other)?;
    let mut bytes = vec![0; length.next_multiple_of(sector)];
    medium.read_at(geometry.bytes(lba), &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}
