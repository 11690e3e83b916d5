//! What differs between two thin volumes of one pool.

use std::cmp::Ordering;

use super::Chunks;
use super::block::Source;
use super::btree::{Child, Front, Walk};
use super::fault::Fault;
use super::mapping::unpack;
use crate::Error;

/// How a range differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only the left volume has it; on the right it reads as zeroes.
    LeftOnly,
    /// Only the right volume has it.
    RightOnly,
    /// Both have it, in different chunks of the pool, so the content may differ.
    Differs,
}

/// A range that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it begins in the volumes.
    pub begin: Chunks,
    /// How long it is.
    pub len: Chunks,
    /// How it differs.
    pub difference: Difference,
}

/// The differences of two thin volumes; see [`ThinMetadata::changes`](super::ThinMetadata::changes).
///
/// After an error it ends.
#[derive(Debug)]
pub struct Changes<'s, S> {
    walks: Option<Pair<'s, S>>,
    pending: Option<Change>,
}

/// Two walks in step, and the heights of their trees.
#[derive(Debug)]
pub(super) struct Pair<'s, S> {
    pub(super) left: Walk<'s, S>,
    pub(super) right: Walk<'s, S>,
    heights: (usize, usize),
}

impl<'s, S: Source> Changes<'s, S> {
    pub(super) fn new(left: Walk<'s, S>, right: Walk<'s, S>) -> Result<Self, Fault> {
        Ok(Self { walks: Some(Pair::new(left, right)?), pending: None })
    }

    fn advance(&mut self) -> Result<Option<Change>, Fault> {
        let Some(pair) = &mut self.walks else { return Ok(None) };
        while let Some((key, difference)) = pair.next_difference()? {
            let one = Change { begin: Chunks(key), len: Chunks(1), difference };
            match &mut self.pending {
                Some(run) if run.difference == difference && key - run.begin.0 == run.len.0 => run.len.0 += 1,
                pending => {
                    if let Some(complete) = pending.replace(one) {
                        return Ok(Some(complete));
                    }
                }
            }
        }
        self.walks = None;
        Ok(self.pending.take())
    }
}

impl<S: Source> Iterator for Changes<'_, S> {
    type Item = Result<Change, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        if advanced.is_err() {
            (self.walks, self.pending) = (None, None);
        }
        advanced.map_err(|fault| fault.error("compare two thin volumes")).transpose()
    }
}

/// What to do with the two fronts.
enum Step {
    DescendLeft,
    DescendRight,
    DescendBoth,
    PassBoth,
    Left(u64),
    Right(u64),
    Both(u64, Ordering),
    End,
}

/// What came of one step.
pub(super) enum Taken {
    /// The two are alike so far.
    Nothing,
    /// A chunk that differs.
    Difference(u64, Difference),
    End,
}

impl<'s, S: Source> Pair<'s, S> {
    pub(super) fn new(left: Walk<'s, S>, right: Walk<'s, S>) -> Result<Self, Fault> {
        let heights = (left.height()?, right.height()?);
        Ok(Self { left, right, heights })
    }

    /// The next chunk that differs.
    fn next_difference(&mut self) -> Result<Option<(u64, Difference)>, Fault> {
        loop {
            match self.take()? {
                Taken::Nothing => {}
                Taken::Difference(key, difference) => return Ok(Some((key, difference))),
                Taken::End => return Ok(None),
            }
        }
    }

    /// Goes one step.
    pub(super) fn take(&mut self) -> Result<Taken, Fault> {
        match self.step() {
            Step::DescendLeft => self.left.descend()?,
            Step::DescendRight => self.right.descend()?,
            Step::DescendBoth => {
                self.left.descend()?;
                self.right.descend()?;
            }
            Step::PassBoth | Step::Both(_, Ordering::Equal) => {
                self.left.pass();
                self.right.pass();
            }
            Step::Both(key, _) => {
                self.left.pass();
                self.right.pass();
                return Ok(Taken::Difference(key, Difference::Differs));
            }
            Step::Left(key) => {
                self.left.pass();
                return Ok(Taken::Difference(key, Difference::LeftOnly));
            }
            Step::Right(key) => {
                self.right.pass();
                return Ok(Taken::Difference(key, Difference::RightOnly));
            }
            Step::End => return Ok(Taken::End),
        }
        Ok(Taken::Nothing)
    }

    fn step(&self) -> Step {
        match (self.left.front(), self.right.front()) {
            (Front::End, Front::End) => Step::End,
            (Front::Entry { key, .. }, Front::End) => Step::Left(key),
            (Front::End, Front::Entry { key, .. }) => Step::Right(key),
            (Front::Subtree(_), Front::End) => Step::DescendLeft,
            (Front::End, Front::Subtree(_)) => Step::DescendRight,
            (Front::Entry { key, value }, Front::Entry { key: other, value: theirs }) => {
                match key.cmp(&other) {
                    Ordering::Less => Step::Left(key),
                    Ordering::Greater => Step::Right(other),
                    // The time does not matter: it is the same chunk, whenever it was written.
                    Ordering::Equal => Step::Both(key, unpack(value).0.cmp(&unpack(theirs).0)),
                }
            }
            // Keys of a subtree are not below its lower bound, so an entry before that has no partner.
            (Front::Entry { key, .. }, Front::Subtree(right)) if key < right.low => Step::Left(key),
            (Front::Subtree(left), Front::Entry { key, .. }) if key < left.low => Step::Right(key),
            (Front::Entry { .. }, Front::Subtree(_)) => Step::DescendRight,
            (Front::Subtree(_), Front::Entry { .. }) => Step::DescendLeft,
            (Front::Subtree(left), Front::Subtree(right)) => self.step_subtrees(&left, &right),
        }
    }

    /// The same block holds the same entries; otherwise the walks go down so that nodes of equal height meet,
    /// since only those can be shared.
    fn step_subtrees(&self, left: &Child, right: &Child) -> Step {
        if left.block == right.block {
            return Step::PassBoth;
        }
        if left.high.is_some_and(|high| high <= right.low) {
            return Step::DescendLeft;
        }
        if right.high.is_some_and(|high| high <= left.low) {
            return Step::DescendRight;
        }
        let height = |child: &Child, of: usize| of.saturating_sub(child.depth);
        match height(left, self.heights.0).cmp(&height(right, self.heights.1)) {
            Ordering::Greater => Step::DescendLeft,
            Ordering::Less => Step::DescendRight,
            Ordering::Equal => Step::DescendBoth,
        }
    }
}
