//! A partition table: any bytes as a disk, and the same with checksums put right, so that what is behind them is reached.
//! What is found sound is changed, and must be sound afterwards.
//!
//! Nearly all of a small disk with a table are zeroes, which only cost time. So most inputs are the places where
//! something stands, and the disk is made of them.
#![no_main]

use std::io;

use devices::Bytes;
use devices::gpt::{Condition, Gpt, Medium, Owner, State, inspect};
use libfuzzer_sys::fuzz_target;

#[derive(Clone, Debug)]
struct Image {
    sector: usize,
    bytes: Vec<u8>,
}

impl Image {
    fn range(&self, at: Bytes, length: usize) -> io::Result<std::ops::Range<usize>> {
        let start = usize::try_from(at.get()).map_err(io::Error::other)?;
        let end = start.checked_add(length).ok_or(io::ErrorKind::InvalidInput)?;
        assert!(start % self.sector == 0 && length % self.sector == 0, "half a sector");
        assert!(end <= self.bytes.len(), "{end} is behind the end");
        Ok(start..end)
    }
}

impl Medium for Image {
    fn name(&self) -> &str {
        "image"
    }

    fn sector(&self) -> Bytes {
        Bytes::new(self.sector as u64)
    }

    fn size(&self) -> Bytes {
        Bytes::new(self.bytes.len() as u64)
    }

    fn read_at(&self, at: Bytes, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.bytes[self.range(at, into.len())?]);
        Ok(())
    }

    fn write_at(&mut self, at: Bytes, from: &[u8]) -> io::Result<()> {
        let range = self.range(at, from.len())?;
        self.bytes[range].copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an input gives of each copy: so many bytes of the array, and of the header.
const ARRAY: usize = 1024;
const HEADER: usize = 128;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let sector = if first & 1 == 0 { 512 } else { 4096 };
    let bytes = if first & 2 == 0 { bytes.to_vec() } else { disk(sector, bytes) };
    let mut image = Image { sector, bytes };
    look(&image);
    let length = image.bytes.len();
    seal(&mut image, 1);
    seal(&mut image, length / sector - usize::from(length >= sector));
    look(&image);
});

/// A disk of which the bytes are the first sector, the first header, the beginning of its array, and the same of the
/// copy at the end. The first byte is how much larger it is than the smallest.
fn disk(sector: usize, bytes: &[u8]) -> Vec<u8> {
    let Some((more, mut bytes)) = bytes.split_first() else { return Vec::new() };
    let array = 128 * 128 / sector;
    let sectors = 2 * (array + 1) + 2 + usize::from(more & 31);
    let mut disk = vec![0; sectors * sector];
    for (lba, length) in [(0, 512), (1, HEADER), (2, ARRAY), (sectors - 1, HEADER), (sectors - 1 - array, ARRAY)] {
        let given = bytes.split_off(..length.min(bytes.len())).unwrap_or_default();
        disk[lba * sector..][..given.len()].copy_from_slice(given);
    }
    disk
}

/// Puts the checksums of the header in a sector right, as far as it makes sense.
fn seal(image: &mut Image, lba: usize) {
    let sector = image.sector;
    let Some(header) = image.bytes.get(lba * sector..(lba + 1) * sector).map(<[u8]>::to_vec) else { return };
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let array = usize::try_from(long(72)).ok().and_then(|lba| lba.checked_mul(sector));
    let length = usize::try_from(u64::from(word(80)) * u64::from(word(84))).ok();
    let sum =
        array.zip(length).and_then(|(array, length)| image.bytes.get(array..array.checked_add(length)?));
    let array_sum = sum.map(crc32fast::hash);
    let header = &mut image.bytes[lba * sector..(lba + 1) * sector];
    header[..8].copy_from_slice(b"EFI PART");
    header[8..12].copy_from_slice(&0x0001_0000_u32.to_le_bytes());
    header[12..16].copy_from_slice(&92_u32.to_le_bytes());
    if let Some(sum) = array_sum {
        header[88..92].copy_from_slice(&sum.to_le_bytes());
    }
    header[16..20].fill(0);
    let sum = crc32fast::hash(&header[..92]);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
}

fn look(image: &Image) {
    let Ok(found) = inspect(image) else { return };
    if let Some(table) = found.table() {
        let _ = (table.largest(), table.free(), table.unknown_space());
        for partition in table.partitions() {
            let _ = (partition.state(), table.largest_growth(partition.number), partition.name.len());
        }
    }
    // The seeds were made for this owner.
    let owner: Owner = "fuzz".parse().unwrap();
    let Ok((mut gpt, _)) = Gpt::repair(image.clone(), &owner) else {
        assert!(!matches!(found.condition(), Condition::Sound) || !found.is_ours(&owner));
        return;
    };
    for partition in gpt.table().partitions().into_iter().take(3) {
        let _ = gpt.set_state(partition.number, State::Ext4);
        let _ = gpt.grow(partition.number, Bytes::new(partition.size.get().saturating_add(1)));
        let _ = gpt.remove(partition.number);
    }
    let _ = gpt.add(&"added".parse().unwrap(), Bytes::new(1), State::New);
    let _ = gpt.use_grown_disk();
    let table = gpt.table().clone();
    let again = Gpt::open(gpt.into_medium(), &owner).unwrap();
    assert_eq!(*again.table(), table);
}
