//! The reader against metadata that the tests write themselves: shared subtrees, odd shapes, damage.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::io;

use proptest::prelude::*;

use super::block::{BLOCK, checksum};
use super::btree::{HEADER, INTERNAL, LEAF, SALT};
use super::*;

/// Writes metadata; nodes with the same content become the same block, as after taking a snapshot.
#[derive(Default)]
struct Writer {
    blocks: Vec<Block>,
    known: HashMap<Vec<u8>, u64>,
}

impl Writer {
    fn put(&mut self, mut block: Block, salt: u32) -> u64 {
        if let Some(known) = self.known.get(&block.0[..]) {
            return *known;
        }
        let number = self.blocks.len() as u64;
        self.known.insert(block.0.to_vec(), number);
        block.0[8..16].copy_from_slice(&number.to_le_bytes());
        seal(&mut block, salt);
        self.blocks.push(block);
        number
    }

    fn node(&mut self, flags: u32, entries: &[(u64, Vec<u8>)], value_size: usize) -> u64 {
        let room = (BLOCK - HEADER) / (8 + value_size);
        let mut block = Block([0; BLOCK]);
        let mut put = |at: usize, bytes: &[u8]| block.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(4, &flags.to_le_bytes());
        for (at, field) in [(16, entries.len()), (20, room), (24, value_size)] {
            put(at, &u32::try_from(field).unwrap().to_le_bytes());
        }
        for (index, (key, value)) in entries.iter().enumerate() {
            put(HEADER + 8 * index, &key.to_le_bytes());
            put(HEADER + 8 * room + value_size * index, value);
        }
        self.put(block, SALT)
    }

    /// A tree whose leaves hold the keys of one multiple of `span`, and whose inner nodes are cut the same way.
    fn tree(&mut self, entries: &BTreeMap<u64, Vec<u8>>, value_size: usize, span: u64) -> u64 {
        let mut level: Vec<(u64, Vec<u8>)> = entries.iter().map(|(k, v)| (*k, v.clone())).collect();
        let mut span = span;
        let (mut flags, mut size) = (LEAF, value_size);
        loop {
            let nodes: Vec<(u64, Vec<u8>)> = level
                .chunk_by(|a, b| a.0 / span == b.0 / span)
                .map(|part| (part[0].0, self.node(flags, part, size).to_le_bytes().to_vec()))
                .collect();
            match nodes.as_slice() {
                [] => return self.node(LEAF, &[], value_size),
                [(_, root)] => return u64::from_le_bytes(root.as_slice().try_into().unwrap()),
                _ => (level, span, flags, size) = (nodes, span * 4, INTERNAL, 8),
            }
        }
    }

    /// The whole image: `thins` gives the mappings (chunk of the volume to chunk of the pool and time) of each id.
    fn image(thins: &BTreeMap<u32, Mappings>, span: u64) -> Vec<Block> {
        let mut writer = Self { blocks: vec![Block([0; BLOCK])], ..Self::default() };
        let mut roots = BTreeMap::new();
        let mut all_details = BTreeMap::new();
        for (id, mappings) in thins {
            let values = mappings
                .iter()
                .map(|(key, (data, time))| (*key, ((data << 24) | u64::from(*time)).to_le_bytes().to_vec()))
                .collect();
            roots.insert(u64::from(*id), writer.tree(&values, 8, span).to_le_bytes().to_vec());
            let mut details = (mappings.len() as u64).to_le_bytes().to_vec();
            details.extend(u64::from(*id + 1).to_le_bytes());
            details.extend(id.to_le_bytes());
            details.extend(7_u32.to_le_bytes());
            all_details.insert(u64::from(*id), details);
        }
        let (mappings, details) = (writer.tree(&roots, 8, 4), writer.tree(&all_details, 24, 4));
        let mut block = Block([0; BLOCK]);
        let mut put = |at: usize, bytes: &[u8]| block.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(32, &27_022_010_u64.to_le_bytes());
        put(40, &2_u32.to_le_bytes());
        put(48, &5_u64.to_le_bytes());
        put(64, &CHUNKS.to_le_bytes());
        put(320, &mappings.to_le_bytes());
        put(328, &details.to_le_bytes());
        put(336, &128_u32.to_le_bytes());
        seal(&mut block, superblock::SALT);
        writer.blocks[0] = block;
        writer.blocks
    }
}

type Mappings = BTreeMap<u64, (u64, u32)>;

/// Chunks of the pool's data volume.
const CHUNKS: u64 = 1 << 20;

fn seal(block: &mut Block, salt: u32) {
    let sum = checksum(block, salt);
    block.0[..4].copy_from_slice(&sum.to_le_bytes());
}

/// Counts what is read.
#[derive(Debug)]
struct Counted {
    blocks: Vec<Block>,
    reads: Cell<usize>,
}

impl Counted {
    fn new(blocks: Vec<Block>) -> Self {
        Self { blocks, reads: Cell::new(0) }
    }
}

impl Source for Counted {
    fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn read(&self, number: u64, block: &mut Block) -> io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        *block = self.blocks[usize::try_from(number).unwrap()].clone();
        Ok(())
    }
}

fn thin(id: u32) -> ThinId {
    ThinId::new(id).unwrap()
}

fn expected_changes(left: &Mappings, right: &Mappings) -> BTreeMap<u64, Difference> {
    let mut changes = BTreeMap::new();
    for key in left.keys().chain(right.keys()) {
        let difference = match (left.get(key), right.get(key)) {
            (Some(_), None) => Difference::LeftOnly,
            (None, Some(_)) => Difference::RightOnly,
            (Some(l), Some(r)) if l.0 != r.0 => Difference::Differs,
            _ => continue,
        };
        changes.insert(*key, difference);
    }
    changes
}

/// Every entry of the volume, from its ranges.
fn spread<S: Source>(metadata: &ThinMetadata<S>, id: u32) -> Result<Mappings, Error> {
    let mut mappings = Mappings::new();
    for range in metadata.mapped(thin(id))? {
        let range = range?;
        for offset in 0..range.len.get() {
            mappings.insert(range.begin.get() + offset, (range.data.get() + offset, range.time));
        }
    }
    Ok(mappings)
}

/// Every chunk of a reading in parts.
fn in_parts(from: u64, part: impl Fn(Chunks) -> Part) -> Vec<u64> {
    let mut all = Vec::new();
    let mut next = Some(Chunks(from));
    while let Some(from) = next {
        let part = part(from);
        assert!(part.ranges.windows(2).all(|two| two[0].end < two[1].start));
        all.extend(part.ranges.into_iter().flat_map(|range| range.start.get()..range.end.get()));
        assert!(part.next.is_none_or(|next| next > from), "it goes on");
        next = part.next;
    }
    all
}

fn mappings() -> impl Strategy<Value = Mappings> {
    prop::collection::btree_map(0..400_u64, (0..CHUNKS, 0..3_u32), 0..120)
}

proptest! {
    // Checksums are slow without optimisation.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_is_written_is_read_back(one in mappings(), two in mappings(), span in 2..32_u64) {
        let thins = BTreeMap::from([(1, one), (0xff_ffff, two)]);
        let metadata = ThinMetadata::read(Counted::new(Writer::image(&thins, span)), Root::Current).unwrap();
        for (id, mappings) in &thins {
            prop_assert_eq!(&spread(&metadata, *id).unwrap(), mappings);
        }
        let devices: Vec<_> = metadata.devices().map(Result::unwrap).collect();
        prop_assert_eq!(devices.len(), 2);
        prop_assert_eq!(devices[0].id, thin(1));
        prop_assert_eq!(devices[0].mapped, Chunks::new(thins[&1].len() as u64));
        prop_assert_eq!((devices[1].transaction_id, devices[1].snapshotted), (0x100_0000, 7));
    }

    #[test]
    fn changes_are_those_of_a_plain_comparison(
        base in mappings(),
        edits in prop::collection::btree_map(0..400_u64, prop::option::of((0..CHUNKS, 0..3_u32)), 0..12),
        more in 0..3000_u64,
        span in 2..32_u64,
    ) {
        let mut edited = base.clone();
        for (key, edit) in edits {
            match edit {
                Some(value) => { edited.insert(key, value); }
                None => { edited.remove(&key); }
            }
        }
        // A far key makes the second tree higher than the first.
        if more > 2000 {
            edited.insert(more * 1000, (1, 1));
        }
        let thins = BTreeMap::from([(1, base.clone()), (2, edited.clone())]);
        let metadata = ThinMetadata::read(Counted::new(Writer::image(&thins, span)), Root::Current).unwrap();
        let mut changes = BTreeMap::new();
        let mut end = 0;
        for change in metadata.changes(thin(1), thin(2)).unwrap() {
            let change = change.unwrap();
            prop_assert!(change.begin.get() >= end);
            end = change.begin.get() + change.len.get();
            changes.extend((change.begin.get()..end).map(|key| (key, change.difference)));
        }
        prop_assert_eq!(changes, expected_changes(&base, &edited));
    }

    #[test]
    fn parts_together_are_the_whole_wherever_they_begin(
        base in mappings(),
        edits in prop::collection::btree_map(0..400_u64, prop::option::of((0..CHUNKS, 0..3_u32)), 0..60),
        from in 0..420_u64,
        blocks in 0..6_usize,
        span in 2..32_u64,
    ) {
        let mut edited = base.clone();
        for (key, edit) in edits {
            match edit {
                Some(value) => { edited.insert(key, value); }
                None => { edited.remove(&key); }
            }
        }
        let thins = BTreeMap::from([(1, base.clone()), (2, edited.clone())]);
        let metadata = ThinMetadata::read(Counted::new(Writer::image(&thins, span)), Root::Current).unwrap();
        let mapped = in_parts(from, |from| metadata.mapped_part(thin(2), from, blocks).unwrap());
        prop_assert_eq!(mapped, edited.range(from..).map(|(key, _)| *key).collect::<Vec<_>>());
        let changed = in_parts(from, |from| metadata.changed_part(thin(1), thin(2), from, blocks).unwrap());
        let expected = expected_changes(&base, &edited);
        prop_assert_eq!(changed, expected.range(from..).map(|(key, _)| *key).collect::<Vec<_>>());
    }

    #[test]
    fn damage_behind_a_fitting_checksum_ends_in_bounded_reading(
        one in mappings(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 16..400_usize, any::<u8>()), 1..4),
    ) {
        let thins = BTreeMap::from([(1, one.clone()), (2, one)]);
        let mut blocks = Writer::image(&thins, 8);
        for (block, at, byte) in damage {
            let index = block.index(blocks.len());
            blocks[index].0[at] = byte;
            seal(&mut blocks[index], if index == 0 { superblock::SALT } else { SALT });
        }
        let count = blocks.len();
        let Ok(metadata) = ThinMetadata::read(Counted::new(blocks), Root::Current) else { return Ok(()) };
        let _ = metadata.devices().collect::<Vec<_>>();
        let _ = spread(&metadata, 1);
        let _ = metadata.changes(thin(1), thin(2)).map(|changes| changes.collect::<Vec<_>>());
        let _ = metadata.mapped_part(thin(1), Chunks(1), usize::MAX);
        let _ = metadata.changed_part(thin(1), thin(2), Chunks(1), usize::MAX);
        // Each walk reads a block at most once a level; eight walks and their preludes.
        prop_assert!(metadata.source.reads.get() <= 8 * 16 * (count + 16));
    }

    #[test]
    fn rubbish_is_no_superblock(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        prop_assert!(ThinMetadata::read(Image(bytes), Root::Current).is_err());
    }
}

#[test]
fn what_is_shared_is_not_read() {
    let base: Mappings = (0..20_000).map(|key| (key, (key, 0))).collect();
    let mut edited = base.clone();
    edited.insert(10_001, (500_000, 1));
    let thins = BTreeMap::from([(1, base), (2, edited)]);
    let metadata = ThinMetadata::read(Counted::new(Writer::image(&thins, 128)), Root::Current).unwrap();
    let before = metadata.source.reads.get();
    let changes: Vec<_> = metadata.changes(thin(1), thin(2)).unwrap().map(Result::unwrap).collect();
    let change = Change { begin: Chunks(10_001), len: Chunks(1), difference: Difference::Differs };
    assert_eq!(changes, [change]);
    let reads = metadata.source.reads.get() - before;
    assert!(metadata.source.blocks() > 200 && reads < 40, "{reads} of {} blocks", metadata.source.blocks());
}

#[test]
fn a_part_reads_no_more_than_it_may_and_what_lies_before_it_not_at_all() {
    let all: Mappings = (0..20_000).map(|key| (key, (key, 0))).collect();
    let thins = BTreeMap::from([(1, all)]);
    let metadata = ThinMetadata::read(Counted::new(Writer::image(&thins, 128)), Root::Current).unwrap();
    let before = metadata.source.reads.get();
    let part = metadata.mapped_part(thin(1), Chunks(10_001), 8).unwrap();
    let next = part.next.unwrap();
    assert_eq!(part.ranges, [Chunks(10_001)..next]);
    let reads = metadata.source.reads.get() - before;
    assert!(reads < 16 && next.get() - 10_001 <= 8 * 252, "{reads}, {next:?}");
}

#[test]
fn a_tree_that_bites_its_tail_is_damaged() {
    let mut blocks = Writer::image(&BTreeMap::from([(1, Mappings::from([(0, (0, 0))]))]), 8);
    let number = blocks.len() as u64;
    let mut writer = Writer { blocks, ..Writer::default() };
    let loops = writer.node(INTERNAL, &[(0, number.to_le_bytes().to_vec())], 8);
    assert_eq!(loops, number);
    blocks = writer.blocks;
    blocks[0].0[320..328].copy_from_slice(&number.to_le_bytes());
    seal(&mut blocks[0], superblock::SALT);
    let metadata = ThinMetadata::read(Counted::new(blocks), Root::Current).unwrap();
    let error = metadata.mapped(thin(1)).unwrap_err();
    assert_eq!(error.kind(), Kind::Inconsistent);
    assert!(error.to_string().contains("deeper than any tree"), "{error}");
}

#[test]
fn errors_tell_what_is_missing() {
    let thins = BTreeMap::from([(1, Mappings::new())]);
    let mut blocks = Writer::image(&thins, 8);
    let metadata = ThinMetadata::read(Counted::new(blocks.clone()), Root::Current).unwrap();
    assert_eq!(metadata.mapped(thin(2)).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(spread(&metadata, 1).unwrap(), Mappings::new());
    assert_eq!(metadata.chunk_size(), Bytes::kib(64));
    let error = ThinMetadata::read(Counted::new(blocks.clone()), Root::Held).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    blocks[0].0[40] = 3;
    seal(&mut blocks[0], superblock::SALT);
    let error = ThinMetadata::read(Counted::new(blocks), Root::Current).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
}
