//! A bcache set in images, without the kernel: the journal, the B-tree, and with both what the cached device holds.
//!
//! The format is that of the kernel's drivers/md/bcache/bcache_ondisk.h; what must hold is what the kernel asks when it
//! starts a set (journal.c, btree.c): an unbroken run of journal entries, and a tree whose nodes are all valid. Only sets
//! of one cache and one backing device are read, and only such whose buckets were never used twice for data.

use std::collections::BTreeMap;

use ::bcache::{Superblock, checksum};
use anyhow::{Context, Result, bail, ensure};
use devices::{Bytes, Sectors};

use super::Images;

/// Of a journal entry and of a set of keys in a node, mixed with the set's own number.
const JOURNAL_MAGIC: u64 = 0x2452_35c1_a362_5032;
const NODE_MAGIC: u64 = 0x9013_5c78_b99e_07f5;
/// Bytes of a journal entry, and of a set of keys, before their keys.
const JOURNAL_HEADER: usize = 240;
const NODE_HEADER: usize = 32;
/// A node is never longer than this.
const NODE: u64 = 256 << 10;
/// No tree of a test is deeper.
const DEPTH: usize = 4;

/// One cache with one backing device.
#[derive(Debug)]
pub struct OfflineBcache<'a> {
    images: &'a Images,
    cache: usize,
    backing: usize,
    data_offset: Sectors,
    /// Where the backing device's sectors are on the cache.
    extents: Extents,
    /// Journal entries that a start replays.
    pub journal_entries: usize,
    /// Keys of data that only the cache has.
    pub dirty_keys: usize,
}

impl<'a> OfflineBcache<'a> {
    /// Reads the set whose cache and backing device are these slices; it must have run once.
    ///
    /// # Errors
    ///
    /// If the kernel could not start it.
    pub fn read(images: &'a Images, cache: usize, backing: usize) -> Result<Self> {
        let superblock = |slice: usize| {
            let bytes = images.read(slice, Superblock::OFFSET, Bytes::new(Superblock::LENGTH as u64))?;
            Superblock::decode(&bytes)?.with_context(|| format!("slice {slice} has no superblock"))
        };
        let (on_cache, on_backing) = (superblock(cache)?, superblock(backing)?);
        let (set, of) = (on_cache.set.context("a cache without a set")?, on_backing.set);
        ensure!(of == Some(set), "the backing device is of the set {of:?}, not {set}");
        let data_offset = on_backing.backing().context("no backing device")?.data_offset;
        let role = on_cache.cache().context("no cache")?;
        let mut reader = Reader {
            images,
            slice: cache,
            set: u64::from_le_bytes(*set.as_bytes().first_chunk().context("uuid")?),
            block: on_cache.block_size.get(),
            bucket: role.bucket_size.get() * Sectors::SIZE,
        };
        let (first, count) = (u64::from(role.first_bucket), u64::from(role.journal_buckets));
        let entries = reader.journal(first, count).context("the journal")?;
        let last = entries.last().context("the journal is empty")?;
        let mut extents = Extents::default();
        reader.walk(&last.root, last.level, &mut extents).context("the tree")?;
        for key in entries.iter().flat_map(|entry| &entry.keys) {
            extents.insert(key);
        }
        let dirty_keys = extents.dirty();
        Ok(Self { images, cache, backing, data_offset, extents, journal_entries: entries.len(), dirty_keys })
    }

    /// What the cached device has in its first bytes.
    ///
    /// # Errors
    ///
    /// If a key points beyond a device.
    pub fn read_data(&self, length: Bytes) -> Result<Vec<u8>> {
        let offset = self.data_offset.to_bytes().context("data offset")?;
        let mut bytes = self.images.read(self.backing, offset, length)?;
        for (start, extent) in &self.extents.0 {
            let Some(place) = extent.place else { continue };
            // Keys count from the beginning of the backing device, not of its data.
            let from = start.checked_sub(self.data_offset.get()).context("a key before the data")?;
            let from = usize::try_from(from * Sectors::SIZE)?;
            let Some(room) = bytes.get_mut(from..).filter(|room| !room.is_empty()) else { continue };
            let part = room.len().min(usize::try_from((extent.end - start) * Sectors::SIZE)?);
            let at = Bytes::new(place * Sectors::SIZE);
            room[..part].copy_from_slice(&self.images.read(self.cache, at, Bytes::new(part as u64))?);
        }
        Ok(bytes)
    }
}

/// A key: where it ends, how long it is, and where the data are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    high: u64,
    end: u64,
    pointer: Option<u64>,
}

impl Key {
    fn inode(&self) -> u64 {
        self.high & 0xf_ffff
    }

    fn length(&self) -> u64 {
        (self.high >> 20) & 0xffff
    }

    fn is_dirty(&self) -> bool {
        self.high >> 36 & 1 == 1
    }

    /// The sector on the cache that it points to.
    fn place(&self) -> Option<u64> {
        self.pointer.map(|pointer| (pointer >> 8) & ((1 << 43) - 1))
    }
}

/// Keys one after the other: two words, then as many pointers as the first word says.
fn keys(bytes: &[u8]) -> Result<Vec<Key>> {
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at * 8..)?.first_chunk()?));
    let mut rest = bytes;
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (high, end) = word(rest, 0).zip(word(rest, 1)).context("a key is cut short")?;
        let pointers = usize::try_from((high >> 60) & 7)?;
        let pointer = if pointers == 0 { None } else { Some(word(rest, 2).context("a key is cut short")?) };
        keys.push(Key { high, end, pointer });
        rest = rest.get((2 + pointers) * 8..).context("a key is cut short")?;
    }
    Ok(keys)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    end: u64,
    place: Option<u64>,
    dirty: bool,
}

/// Stretches that do not overlap, by their first sector.
#[derive(Debug, Default)]
struct Extents(BTreeMap<u64, Extent>);

impl Extents {
    /// A newer key takes the place of what older ones say.
    fn insert(&mut self, key: &Key) {
        let (start, end) = (key.end.saturating_sub(key.length()), key.end);
        if start == end || key.inode() != 0 {
            return;
        }
        let moved = |place: Option<u64>, by: u64| place.map(|place| place + by);
        let touched: Vec<u64> =
            self.0.range(..end).rev().take_while(|(_, old)| old.end > start).map(|(at, _)| *at).collect();
        for at in touched {
            let Some(old) = self.0.remove(&at) else { continue };
            if at < start {
                self.0.insert(at, Extent { end: start, ..old });
            }
            if old.end > end {
                self.0.insert(end, Extent { place: moved(old.place, end - at), ..old });
            }
        }
        self.0.insert(start, Extent { end, place: key.place(), dirty: key.is_dirty() });
    }

    fn dirty(&self) -> usize {
        self.0.values().filter(|extent| extent.dirty).count()
    }
}

/// A journal entry: keys, and where the tree was when it was written.
#[derive(Debug)]
struct JournalEntry {
    sequence: u64,
    oldest: u64,
    root: Key,
    level: usize,
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Reader<'a> {
    images: &'a Images,
    slice: usize,
    set: u64,
    block: u64,
    bucket: u64,
}

impl Reader<'_> {
    /// The entries that a start replays, in order.
    fn journal(&mut self, first: u64, buckets: u64) -> Result<Vec<JournalEntry>> {
        let mut found = BTreeMap::new();
        for bucket in first..first + buckets {
            let start = Bytes::new(bucket * self.bucket);
            let bytes = self.images.read(self.slice, start, Bytes::new(self.bucket))?;
            let mut rest = &bytes[..];
            while let Some((entry, length)) = self.journal_entry(rest)? {
                found.insert(entry.sequence, entry);
                let blocks = (length as u64).div_ceil(self.block) * self.block;
                rest = rest.get(usize::try_from(blocks)?..).unwrap_or_default();
            }
        }
        let Some((last, newest)) = found.last_key_value() else { return Ok(Vec::new()) };
        let (last, oldest) = (*last, newest.oldest);
        if let Some(missing) = (oldest..=last).find(|sequence| !found.contains_key(sequence)) {
            bail!("entry {missing} of {oldest} to {last} is missing");
        }
        Ok(found.into_values().filter(|entry| entry.sequence >= oldest).collect())
    }

    /// The entry at the beginning of these bytes and its length, if there is a valid one.
    fn journal_entry(&self, bytes: &[u8]) -> Result<Option<(JournalEntry, usize)>> {
        let word = |at: usize| {
            bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_le_bytes(*word))
        };
        let Some((sum, magic)) = word(0).zip(word(8)) else { return Ok(None) };
        let Some(count) = word(24).map(|word| word >> 32) else { return Ok(None) };
        let length = JOURNAL_HEADER.saturating_add(usize::try_from(count)?.saturating_mul(8));
        let Some(whole) = bytes.get(..length).filter(|_| magic == self.set ^ JOURNAL_MAGIC) else {
            return Ok(None);
        };
        // What was being written when the power failed has a wrong checksum, and counts as not there.
        if checksum(&whole[8..]) != sum {
            return Ok(None);
        }
        let (sequence, oldest) = word(16).zip(word(32)).context("header")?;
        let root = keys(whole.get(104..128).context("header")?)?;
        let root = root.into_iter().next().context("an entry without a root")?;
        let level = usize::try_from(word(168).context("header")? & 0xffff)?;
        let keys = keys(whole.get(JOURNAL_HEADER..).unwrap_or_default())?;
        Ok(Some((JournalEntry { sequence, oldest, root, level, keys }, length)))
    }

    /// Adds all keys of the leaves below a node.
    fn walk(&self, node: &Key, level: usize, extents: &mut Extents) -> Result<()> {
        ensure!(level < DEPTH, "a tree of {} levels", level + 1);
        let sets = self.node(node).with_context(|| format!("a node of level {level}: {node:x?}"))?;
        if level == 0 {
            sets.iter().for_each(|key| extents.insert(key));
            return Ok(());
        }
        // The newest key of each place counts; one without a pointer takes the older one away.
        let children: BTreeMap<(u64, u64), Key> =
            sets.into_iter().map(|key| ((key.inode(), key.end), key)).collect();
        children
            .values()
            .filter(|key| key.pointer.is_some())
            .try_for_each(|key| self.walk(key, level - 1, extents))
    }

    /// The keys of a node in the order in which they were written.
    fn node(&self, node: &Key) -> Result<Vec<Key>> {
        let (pointer, place) = node.pointer.zip(node.place()).context("it has no place")?;
        let length = self.bucket.min(NODE);
        let bytes = self.images.read(self.slice, Bytes::new(place * Sectors::SIZE), Bytes::new(length))?;
        let mut all = Vec::new();
        let mut sequence = None;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let word = |at: usize| {
                rest.get(at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_le_bytes(*word))
            };
            let Some(own) = word(16) else { break };
            // A set that was never written, or belongs to an earlier life of the bucket, ends the node.
            if *sequence.get_or_insert(own) != own || own == 0 {
                break;
            }
            let count = usize::try_from(word(24).context("header")? >> 32)?;
            let end = NODE_HEADER.saturating_add(count.saturating_mul(8));
            let set = rest.get(..end).context("a set of keys is longer than its node")?;
            ensure!(word(8) == Some(self.set ^ NODE_MAGIC), "a set of keys has another magic");
            ensure!(word(0) == Some(!crc64(pointer, &set[8..])), "the checksum of a set of keys is wrong");
            all.extend(keys(&set[NODE_HEADER..])?);
            at += usize::try_from((end as u64).div_ceil(self.block) * self.block)?;
        }
        ensure!(at > 0, "it was never written");
        Ok(all)
    }
}

/// CRC-64 of ECMA-182, most significant bit first, from a beginning of the caller's.
fn crc64(beginning: u64, bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x42f0_e1eb_a9ea_3693;
    bytes.iter().fold(beginning, |crc, byte| {
        (0..8).fold(crc ^ (u64::from(*byte) << 56), |crc, _| {
            if crc >> 63 == 1 { (crc << 1) ^ POLYNOMIAL } else { crc << 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(start: u64, length: u64, place: Option<u64>) -> Key {
        let high = (length << 20) | (1 << 36) | (u64::from(place.is_some()) << 60);
        Key { high, end: start + length, pointer: place.map(|place| place << 8) }
    }

    #[test]
    fn the_checksum_is_that_of_superblocks_when_it_begins_with_ones() {
        assert_eq!(!crc64(!0, b"123456789"), checksum(b"123456789"));
    }

    proptest! {
        #[test]
        fn a_newer_key_counts_wherever_it_overlaps_older_ones(
            raws in prop::collection::vec((0..60_u64, 1..20_u64, prop::option::of(100..900_u64)), 1..40),
        ) {
            let mut extents = Extents::default();
            let mut model = [None; 80];
            for (start, length, place) in raws {
                extents.insert(&key(start, length, place));
                for sector in 0..length {
                    model[usize::try_from(start + sector).unwrap()] = place.map(|place| place + sector);
                }
            }
            let mut found = [None; 80];
            let mut last = 0;
            for (start, extent) in &extents.0 {
                prop_assert!(*start >= last && extent.end > *start);
                last = extent.end;
                for sector in *start..extent.end {
                    found[usize::try_from(sector).unwrap()] = extent.place.map(|place| place + sector - start);
                }
            }
            prop_assert_eq!(found.to_vec(), model.to_vec());
        }

        #[test]
        fn any_bytes_are_keys_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = keys(&bytes);
        }
    }
}
