//! A bcache set in images, without the kernel: the journal, the B-tree, and with both what the cached device holds.
//!
//! The format is that of the kernel's drivers/md/bcache/bcache_ondisk.h; what must hold is what the kernel asks when it
//! starts a set (super.c, journal.c, btree.c): an unbroken run of journal entries, a tree whose nodes are all valid, and
//! the generations of the buckets. Only sets of one cache and one backing device are read.

mod keys;
mod reader;

use ::bcache::Superblock;
use anyhow::{Context, Result, ensure};
use devices::{Bytes, Sectors};

use self::keys::{Extents, Found, Generations};
use self::reader::{Reader, Tree};
use super::Images;

/// One cache with one backing device.
#[derive(Debug)]
pub struct OfflineBcache<'a> {
    images: &'a Images,
    cache: usize,
    backing: usize,
    data_offset: Sectors,
    /// Where the backing device's sectors are on the cache.
    extents: Extents,
    generations: Generations,
    found: Found,
    /// Journal entries that a start replays.
    pub journal_entries: usize,
    /// Keys of data that only the cache has.
    pub dirty_keys: usize,
    /// Keys into buckets that were used again since, which count for nothing.
    pub stale_keys: usize,
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
        let (set, of) = (on_cache.set, on_backing.set);
        ensure!(set.is_some() && of == set, "the backing device is of the set {of:?}, not {set:?}");
        let data_offset = on_backing.backing().context("no backing device")?.data_offset;
        let reader = Reader::new(images, cache, &on_cache)?;
        let entries = reader.journal().context("the journal")?;
        let last = entries.last().context("the journal is empty")?;
        let mut generations = reader.generations(last).context("the generations")?;
        let mut tree = Tree::default();
        reader.walk(&last.root, last.level, &mut tree).context("the tree")?;
        let Tree { mut extents, nodes, mut found } = tree;
        let journaled = || entries.iter().flat_map(|entry| &entry.keys);
        // As the kernel does: what the tree and the journal hold together tells the generations, then comes the replay.
        let in_leaves = extents.0.values().filter_map(|extent| extent.place);
        let others = nodes.iter().chain(journaled()).filter_map(|key| key.place());
        in_leaves.chain(others).for_each(|place| generations.see(place));
        journaled().for_each(|key| extents.insert(key));
        entries.iter().for_each(|entry| found.add(&format!("journal {}", entry.sequence), &entry.keys));
        let stale_keys = extents.drop_stale(&generations);
        let (journal_entries, dirty_keys) = (entries.len(), extents.dirty());
        Ok(Self {
            images,
            cache,
            backing,
            data_offset,
            extents,
            generations,
            found,
            journal_entries,
            dirty_keys,
            stale_keys,
        })
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
            let at = Bytes::new(place.sector * Sectors::SIZE);
            room[..part].copy_from_slice(&self.images.read(self.cache, at, Bytes::new(part as u64))?);
        }
        Ok(bytes)
    }

    /// Every key that says or said where a stretch of the cached device is, in the order in which they count, and whatever
    /// else points into the same buckets: to explain what was read.
    ///
    /// # Errors
    ///
    /// If there is no such stretch.
    pub fn explain(&self, start: Bytes, length: Bytes) -> Result<String> {
        let start = Sectors::try_from(start)?.get() + self.data_offset.get();
        let end = start + Sectors::try_from(length)?.get();
        Ok(self.found.about(start, end, &self.generations))
    }
}
