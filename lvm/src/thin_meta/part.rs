//! Reading in parts: so much at once, and on from there, also in a later held state.
//!
//! A pool can hold one state of its metadata, and pays for each block that changes meanwhile with another one. So whoever
//! reads a large volume does it in parts, and lets the pool go between them. What a snapshot maps does not change, so
//! the parts are one whole.

use std::ops::Range;

use super::block::Source;
use super::btree::{Front, Walk};
use super::delta::{Pair, Taken};
use super::fault::Fault;
use super::mapping::unpack;
use super::{Chunks, ThinId, ThinMetadata};
use crate::Error;

/// Some of the ranges of a thin volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The ranges, in their order; none touches the next one.
    pub ranges: Vec<Range<Chunks>>,
    /// Where the next part begins; `None` when this was the last one.
    pub next: Option<Chunks>,
}

impl Part {
    fn add(&mut self, key: u64) {
        let end = Chunks(key.saturating_add(1));
        match self.ranges.last_mut() {
            Some(last) if last.end.0 == key => last.end = end,
            _ => self.ranges.push(Chunks(key)..end),
        }
    }
}

impl<S: Source> ThinMetadata<S> {
    /// Which chunks from `from` on thin volume `id` has, until about `blocks` blocks of metadata were read, and at least one
    /// chunk further. A block has 252 entries at most, which bounds the memory.
    ///
    /// # Errors
    ///
    /// As [`ThinMetadata::mapped`].
    pub fn mapped_part(&self, id: ThinId, from: Chunks, blocks: usize) -> Result<Part, Error> {
        let walk = self.mappings_of(id)?;
        let chunks = self.data.total();
        mapped(walk, chunks, from, blocks)
            .map_err(|fault| fault.error(&format!("read the mappings of thin volume {id}")))
    }

    /// Which chunks from `from` on differ between the thin volumes `left` and `right`, in any way, until about `blocks` blocks
    /// of metadata were read, and at least one chunk further.
    ///
    /// # Errors
    ///
    /// As [`ThinMetadata::changes`].
    pub fn changed_part(
        &self,
        left: ThinId,
        right: ThinId,
        from: Chunks,
        blocks: usize,
    ) -> Result<Part, Error> {
        let walks = (self.mappings_of(left)?, self.mappings_of(right)?);
        changed(walks.0, walks.1, from, blocks)
            .map_err(|fault| fault.error(&format!("compare thin volumes {left} and {right}")))
    }
}

fn mapped<S: Source>(mut walk: Walk<'_, S>, chunks: u64, from: Chunks, blocks: usize) -> Result<Part, Fault> {
    let mut part = Part::default();
    while let Some(at) = walk.position() {
        if walk.pass_before(from.0) {
            continue;
        }
        if walk.read() >= blocks && at > from.0 {
            part.next = Some(Chunks(at));
            break;
        }
        match walk.front() {
            Front::Entry { key, value } => {
                if unpack(value).0 >= chunks {
                    return Err(Fault::Damaged { block: 0, what: "a mapping leads outside the data volume" });
                }
                part.add(key);
                walk.pass();
            }
            Front::Subtree(_) | Front::End => walk.descend()?,
        }
    }
    Ok(part)
}

fn changed<'s, S: Source>(
    left: Walk<'s, S>,
    right: Walk<'s, S>,
    from: Chunks,
    blocks: usize,
) -> Result<Part, Fault> {
    let mut part = Part::default();
    let mut pair = Pair::new(left, right)?;
    loop {
        if pair.left.pass_before(from.0) || pair.right.pass_before(from.0) {
            continue;
        }
        // What comes before the nearer of the two was compared.
        let at = [pair.left.position(), pair.right.position()].into_iter().flatten().min();
        if let Some(at) = at
            && pair.left.read() + pair.right.read() >= blocks
            && at > from.0
        {
            part.next = Some(Chunks(at));
            return Ok(part);
        }
        match pair.take()? {
            Taken::Nothing => {}
            Taken::Difference(key, _) => part.add(key),
            Taken::End => return Ok(part),
        }
    }
}
