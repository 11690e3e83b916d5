//! Which blocks a snapshot holds, and which differ between two: for backups that read only those.
//!
//! ```no_run
//! # fn backup(node: &volumes::Node) -> Result<(), volumes::Error> {
//! use devices::Bytes;
//!
//! let (monday, tuesday) = ("db-monday".parse()?, "db-tuesday".parse()?);
//! for range in node.delta(&monday, &tuesday, Bytes::ZERO)? {
//!     let range = range?;
//!     println!("{} bytes from {} on", range.end.saturating_sub(range.start), range.start);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What is told is never less than what differs. It may be more: a pool shares whole chunks, and one that was written again with
//! the same content is another chunk.

mod holds;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use devices::Bytes;

pub(crate) use holds::Holds;

use crate::asked::ready_to_use;
use crate::backend::Backend;
use crate::pools::Pools;
use crate::{Error, Kind, Node, Snapshot, SnapshotId};

/// Ranges of bytes of a snapshot, in their order; none overlaps the next one, and none touches it unless it is so long that
/// it took many parts to read.
///
/// They are read as this goes, a part at a time, and only for the reading of a part is the pool asked to keep its metadata:
/// whoever stops to take ranges holds nothing. The snapshot can be removed meanwhile; then this ends with an error. After an
/// error it ends.
#[derive(Debug)]
pub struct Blocks {
    source: Box<dyn BlockSource>,
    holds: Holds,
    size: Bytes,
    /// Ranges begin here at the earliest.
    from: Bytes,
    /// Where the next part begins.
    next: Option<Bytes>,
    ranges: VecDeque<Range<Bytes>>,
    /// What the next part may go on with.
    last: Option<Range<Bytes>>,
}

/// So many parts are read for one range, about: whoever goes through the ranges can stop.
const MOST_PARTS: u32 = 16;

/// What tells the blocks of a snapshot, part by part.
pub(crate) trait BlockSource: fmt::Debug + Send {
    /// The ranges from a place on, as far as one part goes. They may go beyond the place and beyond the snapshot's size.
    fn part(&self, holds: &Holds, from: Bytes) -> Result<BlockPart, Error>;
}

/// Some ranges, and where to go on.
#[derive(Debug, Default)]
pub(crate) struct BlockPart {
    pub(crate) ranges: Vec<Range<Bytes>>,
    pub(crate) next: Option<Bytes>,
}

impl Blocks {
    fn new(source: Box<dyn BlockSource>, holds: &Holds, size: Bytes, from: Bytes) -> Self {
        let next = (from < size).then_some(from);
        Self { source, holds: holds.clone(), size, from, next, ranges: VecDeque::new(), last: None }
    }

    /// The size of the snapshot; no range goes beyond it.
    #[must_use]
    pub fn size(&self) -> Bytes {
        self.size
    }

    fn advance(&mut self) -> Result<Option<Range<Bytes>>, Error> {
        for parts in 0.. {
            while let Some(range) = self.ranges.pop_front() {
                let (start, end) = (range.start.max(self.from), range.end.min(self.size));
                if start >= end {
                    continue;
                }
                match &mut self.last {
                    Some(last) if last.end >= start => last.end = last.end.max(end),
                    last => {
                        if let Some(whole) = last.replace(start..end) {
                            return Ok(Some(whole));
                        }
                    }
                }
            }
            let Some(from) = self.next.filter(|next| *next < self.size) else { break };
            if parts >= MOST_PARTS && self.last.is_some() {
                break;
            }
            let part = self.source.part(&self.holds, from)?;
            self.ranges.extend(part.ranges);
            self.next = part.next;
        }
        Ok(self.last.take())
    }
}

impl Iterator for Blocks {
    type Item = Result<Range<Bytes>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        if advanced.is_err() {
            (self.next, self.last) = (None, None);
            self.ranges.clear();
        }
        advanced.transpose()
    }
}

impl Node {
    /// What a snapshot holds from a place on: whatever is not told reads as zeroes.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::OutOfRange`] for a place beyond its size; [`Kind::FailedPrecondition`] for a class that
    /// cannot tell; [`Kind::Unavailable`].
    pub fn allocated(&self, snapshot: &SnapshotId, from: Bytes) -> Result<Blocks, Error> {
        let tried = format!("tell what snapshot {snapshot} holds");
        let pools = self.pools();
        let (backend, target) = ready(&pools, snapshot, &tried)?;
        within(from, &target, &tried)?;
        let source = backend.blocks(None, &target, &tried)?;
        Ok(Blocks::new(source, self.holds(), target.size, from))
    }

    /// Where a snapshot differs, from a place on, from another one of the same volume: whatever is not told is the same in
    /// both, and what only the base has reads as zeroes in the target.
    ///
    /// # Errors
    ///
    /// As [`Node::allocated`]; [`Kind::InvalidArgument`] for snapshots of two volumes.
    pub fn delta(&self, base: &SnapshotId, target: &SnapshotId, from: Bytes) -> Result<Blocks, Error> {
        let tried = format!("tell what changed between snapshots {base} and {target}");
        let pools = self.pools();
        let (_, base) = ready(&pools, base, &tried)?;
        let (backend, target) = ready(&pools, target, &tried)?;
        if base.source != target.source {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("they are of two volumes, {} and {}", base.source, target.source)));
        }
        within(from, &target, &tried)?;
        let source = backend.blocks(Some(&base), &target, &tried)?;
        Ok(Blocks::new(source, self.holds(), target.size, from))
    }
}

fn ready<'a>(pools: &'a Pools, id: &SnapshotId, tried: &str) -> Result<(&'a dyn Backend, Snapshot), Error> {
    let found = pools.find_snapshot(id, tried)?;
    ready_to_use(&found.1, tried)?;
    Ok(found)
}

fn within(from: Bytes, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
    if from > snapshot.size {
        return Err(Error::new(Kind::OutOfRange, tried).with_answer(format!(
            "snapshot {} has {:#}, and {from:#} are beyond",
            snapshot.id, snapshot.size
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Chunks of ten bytes that are there, told so many at once.
    #[derive(Debug)]
    struct Chunks {
        there: Vec<u64>,
        at_once: usize,
    }

    impl BlockSource for Chunks {
        fn part(&self, _: &Holds, from: Bytes) -> Result<BlockPart, Error> {
            let mut left = self.there.iter().filter(|chunk| (**chunk + 1) * 10 > from.get());
            let ranges = left.by_ref().take(self.at_once);
            let ranges = ranges.map(|chunk| Bytes::new(chunk * 10)..Bytes::new((chunk + 1) * 10)).collect();
            Ok(BlockPart { ranges, next: left.next().map(|chunk| Bytes::new(chunk * 10)) })
        }
    }

    proptest! {
        #[test]
        fn ranges_are_what_is_there_between_the_place_and_the_size(
            there in prop::collection::btree_set(0..40_u64, 0..40),
            at_once in 1..6_usize,
            size in 0..400_u64,
            from in 0..400_u64,
        ) {
            let from = from.min(size);
            let source = Chunks { there: there.iter().copied().collect(), at_once };
            let blocks = Blocks::new(Box::new(source), &Holds::default(), Bytes::new(size), Bytes::new(from));
            let ranges: Vec<_> = blocks.map(Result::unwrap).collect();
            let apart = ranges.windows(2).all(|two| two[0].end < two[1].start);
            prop_assert!(apart || at_once < 3, "{:?}", ranges);
            let told: Vec<u64> = ranges.iter().flat_map(|range| range.start.get()..range.end.get()).collect();
            let expected: Vec<u64> = (from..size).filter(|byte| there.contains(&(byte / 10))).collect();
            prop_assert_eq!(told, expected);
        }
    }

    #[derive(Debug)]
    struct Gone;

    impl BlockSource for Gone {
        fn part(&self, _: &Holds, from: Bytes) -> Result<BlockPart, Error> {
            match from.get() {
                0 => Ok(BlockPart { ranges: vec![from..Bytes::new(5)], next: Some(Bytes::new(5)) }),
                _ => Err(Error::new(Kind::NotFound, "test")),
            }
        }
    }

    #[test]
    fn after_an_error_nothing_follows() {
        let mut blocks = Blocks::new(Box::new(Gone), &Holds::default(), Bytes::new(10), Bytes::ZERO);
        assert_eq!(blocks.next().unwrap().unwrap_err().kind(), Kind::NotFound);
        assert!(blocks.next().is_none());
    }
}
