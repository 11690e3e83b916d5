//! Journal, tree and generations as they lie on the cache.

use std::collections::BTreeMap;

use ::bcache::{Superblock, checksum};
use anyhow::{Context, Result, bail, ensure};
use devices::{Bytes, Sectors};

use super::Images;
use super::keys::{Extents, Found, Generations, Key, keys};

/// Of a journal entry, of a set of keys in a node, and of the generations, mixed with the set's own number.
const JOURNAL_MAGIC: u64 = 0x2452_35c1_a362_5032;
const NODE_MAGIC: u64 = 0x9013_5c78_b99e_07f5;
const GENERATIONS_MAGIC: u64 = 0x6750_e15f_8733_7f91;
/// Bytes of each of them before what it holds.
const JOURNAL_HEADER: usize = 240;
const NODE_HEADER: usize = 32;
const GENERATIONS_HEADER: usize = 40;
/// A node is never longer than this.
const NODE: u64 = 256 << 10;
/// No tree of a test is deeper.
const DEPTH: usize = 4;

/// A journal entry: keys, and where tree and generations were when it was written.
#[derive(Debug)]
pub(super) struct JournalEntry {
    pub(super) sequence: u64,
    oldest: u64,
    pub(super) root: Key,
    pub(super) level: usize,
    generations: u64,
    pub(super) keys: Vec<Key>,
}

/// What the leaves of the tree hold, and the keys that lead to them.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) extents: Extents,
    pub(super) nodes: Vec<Key>,
    pub(super) found: Found,
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    images: &'a Images,
    slice: usize,
    set: u64,
    block: u64,
    bucket: u64,
    buckets: u64,
    journal: std::ops::Range<u64>,
}

impl<'a> Reader<'a> {
    /// Of the cache with this superblock.
    pub(super) fn new(images: &'a Images, slice: usize, superblock: &Superblock) -> Result<Self> {
        let role = superblock.cache().context("no cache")?;
        let set = superblock.set.context("a cache without a set")?;
        let first = u64::from(role.first_bucket);
        Ok(Self {
            images,
            slice,
            set: u64::from_le_bytes(*set.as_bytes().first_chunk().context("uuid")?),
            block: superblock.block_size.get(),
            bucket: role.bucket_size.get() * Sectors::SIZE,
            buckets: role.buckets,
            journal: first..first + u64::from(role.journal_buckets),
        })
    }

    fn whole_bucket(&self, number: u64) -> Result<Vec<u8>> {
        self.images.read(self.slice, Bytes::new(number * self.bucket), Bytes::new(self.bucket))
    }

    /// The entries that a start replays, in order.
    pub(super) fn journal(&self) -> Result<Vec<JournalEntry>> {
        let mut found = BTreeMap::new();
        for bucket in self.journal.clone() {
            let bytes = self.whole_bucket(bucket)?;
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
        let Some((sum, magic)) = word(bytes, 0).zip(word(bytes, 8)) else { return Ok(None) };
        let Some(count) = word(bytes, 24).map(|word| word >> 32) else { return Ok(None) };
        let length = JOURNAL_HEADER.saturating_add(usize::try_from(count)?.saturating_mul(8));
        let Some(whole) = bytes.get(..length).filter(|_| magic == self.set ^ JOURNAL_MAGIC) else {
            return Ok(None);
        };
        // What was being written when the power failed has a wrong checksum, and counts as not there.
        if checksum(&whole[8..]) != sum {
            return Ok(None);
        }
        let (sequence, oldest) = word(bytes, 16).zip(word(bytes, 32)).context("header")?;
        let root = keys(whole.get(104..128).context("header")?)?;
        let root = root.into_iter().next().context("an entry without a root")?;
        let level = usize::try_from(word(bytes, 168).context("header")? & 0xffff)?;
        let generations = word(bytes, 176).context("header")?;
        let keys = keys(whole.get(JOURNAL_HEADER..).unwrap_or_default())?;
        Ok(Some((JournalEntry { sequence, oldest, root, level, generations, keys }, length)))
    }

    /// The generation of each bucket as it was written down (super.c, `prio_read`): a chain of buckets, each with as many
    /// numbers as fit into it. A bucket is used again only when its new generation was written.
    pub(super) fn generations(&self, last: &JournalEntry) -> Result<Generations> {
        let count = usize::try_from(self.buckets)?;
        let mut of = Vec::with_capacity(count);
        let mut next = last.generations;
        while of.len() < count {
            let bytes = self.whole_bucket(next)?;
            ensure!(word(&bytes, 8) == Some(self.set ^ GENERATIONS_MAGIC), "bucket {next} has another magic");
            ensure!(word(&bytes, 0) == Some(checksum(&bytes[8..])), "the checksum of bucket {next} is wrong");
            next = word(&bytes, 32).context("header")?;
            // A priority of two bytes, and the generation.
            let each = bytes[GENERATIONS_HEADER..].chunks_exact(3).map(|entry| entry[2]);
            of.extend(each.take(count - of.len()));
        }
        Ok(Generations::new(self.bucket / Sectors::SIZE, of))
    }

    /// Adds all keys of the leaves below a node.
    pub(super) fn walk(&self, node: &Key, level: usize, tree: &mut Tree) -> Result<()> {
        ensure!(level < DEPTH, "a tree of {} levels", level + 1);
        let sets = self.node(node).with_context(|| format!("a node of level {level}: {node:x?}"))?;
        tree.found.add(&format!("level {level}"), &sets);
        tree.nodes.push(node.clone());
        if level == 0 {
            sets.iter().for_each(|key| tree.extents.insert(key));
            return Ok(());
        }
        // The newest key of each place counts; one without a pointer takes the older one away.
        let children: BTreeMap<(u64, u64), Key> =
            sets.into_iter().map(|key| ((key.inode(), key.end), key)).collect();
        children
            .values()
            .filter(|key| key.pointer.is_some())
            .try_for_each(|key| self.walk(key, level - 1, tree))
    }

    /// The keys of a node in the order in which they were written.
    fn node(&self, node: &Key) -> Result<Vec<Key>> {
        let (pointer, place) = node.pointer.zip(node.place()).context("it has no place")?;
        let (start, length) = (Bytes::new(place.sector * Sectors::SIZE), Bytes::new(self.bucket.min(NODE)));
        let bytes = self.images.read(self.slice, start, length)?;
        let mut all = Vec::new();
        let mut sequence = None;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let Some(own) = word(rest, 16) else { break };
            // A set that was never written, or belongs to an earlier life of the bucket, ends the node.
            if *sequence.get_or_insert(own) != own || own == 0 {
                break;
            }
            let count = usize::try_from(word(rest, 24).context("header")? >> 32)?;
            let end = NODE_HEADER.saturating_add(count.saturating_mul(8));
            let set = rest.get(..end).context("a set of keys is longer than its node")?;
            ensure!(word(rest, 8) == Some(self.set ^ NODE_MAGIC), "a set of keys has another magic");
            let is_right = word(rest, 0) == Some(!crc64(pointer, &set[8..]));
            ensure!(is_right, "the checksum of a set of keys is wrong");
            all.extend(keys(&set[NODE_HEADER..])?);
            at += usize::try_from((end as u64).div_ceil(self.block) * self.block)?;
        }
        ensure!(at > 0, "it was never written");
        Ok(all)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
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
    use super::*;

    #[test]
    fn the_checksum_is_that_of_superblocks_when_it_begins_with_ones() {
        assert_eq!(!crc64(!0, b"123456789"), checksum(b"123456789"));
    }
}
