//! Mapped ranges, and the volumes that have them.

use super::block::Source;
use super::btree::Walk;
use super::fault::Fault;
use super::{Chunks, Thin, ThinId};
use crate::Error;

/// A run of chunks of a thin volume that lie side by side in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange {
    /// Where it begins in the volume.
    pub begin: Chunks,
    /// Where it begins in the pool's data volume.
    pub data: Chunks,
    /// How long it is.
    pub len: Chunks,
    /// The pool's snapshot clock when these chunks were written first; below the volume's own
    /// [`Thin::snapshotted`] they may be shared.
    pub time: u32,
}

/// A mapping is a data chunk in the upper 40 bits of a number and a time in the lower 24.
pub(super) fn unpack(value: &[u8]) -> (u64, u32) {
    let number = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let time = u32::try_from(number & 0xff_ffff).unwrap_or(0);
    (number >> 24, time)
}

/// The mapped ranges of one thin volume; see [`ThinMetadata::mapped`](super::ThinMetadata::mapped).
///
/// After an error it ends.
#[derive(Debug)]
pub struct Mapped<'s, S> {
    walk: Option<Walk<'s, S>>,
    /// Chunks of the data volume.
    chunks: u64,
    pending: Option<MappedRange>,
}

impl<'s, S: Source> Mapped<'s, S> {
    pub(super) fn new(walk: Walk<'s, S>, chunks: u64) -> Self {
        Self { walk: Some(walk), chunks, pending: None }
    }

    /// Reads on until a range is complete.
    fn advance(&mut self) -> Result<Option<MappedRange>, Fault> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        while let Some((key, value)) = walk.next_entry()? {
            let (data, time) = unpack(&value);
            if data >= self.chunks {
                return Err(Fault::Damaged { block: 0, what: "a mapping leads outside the data volume" });
            }
            let one = MappedRange { begin: Chunks(key), data: Chunks(data), len: Chunks(1), time };
            match &mut self.pending {
                Some(range) if continues(range, &one) => range.len.0 += 1,
                pending => {
                    if let Some(complete) = pending.replace(one) {
                        return Ok(Some(complete));
                    }
                }
            }
        }
        self.walk = None;
        Ok(self.pending.take())
    }
}

fn continues(range: &MappedRange, next: &MappedRange) -> bool {
    let end = |place: Chunks| place.0.checked_add(range.len.0);
    end(range.begin) == Some(next.begin.0) && end(range.data) == Some(next.data.0) && range.time == next.time
}

impl<S: Source> Iterator for Mapped<'_, S> {
    type Item = Result<MappedRange, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        if advanced.is_err() {
            (self.walk, self.pending) = (None, None);
        }
        advanced.map_err(|fault| fault.error("read the mappings of a thin volume")).transpose()
    }
}

/// The thin volumes of a pool; see [`ThinMetadata::devices`](super::ThinMetadata::devices).
///
/// After an error it ends.
#[derive(Debug)]
pub struct Thins<'s, S> {
    walk: Option<Walk<'s, S>>,
}

impl<'s, S: Source> Thins<'s, S> {
    pub(super) fn new(walk: Walk<'s, S>) -> Self {
        Self { walk: Some(walk) }
    }

    fn advance(&mut self) -> Result<Option<Thin>, Fault> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let Some((key, value)) = walk.next_entry()? else { return Ok(None) };
        let outside = Fault::Damaged { block: 0, what: "a thin volume's id has more than 24 bits" };
        let id = u32::try_from(key).ok().and_then(ThinId::new).ok_or(outside)?;
        Ok(Some(details(id, &value)))
    }
}

/// `struct disk_device_details`.
fn details(id: ThinId, value: &[u8]) -> Thin {
    let long = |at: usize| {
        value.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let short = |at: usize| {
        value.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    Thin { id, mapped: Chunks(long(0)), transaction_id: long(8), created: short(16), snapshotted: short(20) }
}

impl<S: Source> Iterator for Thins<'_, S> {
    type Item = Result<Thin, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        if !matches!(advanced, Ok(Some(_))) {
            self.walk = None;
        }
        advanced.map_err(|fault| fault.error("read the thin volumes of a pool")).transpose()
    }
}
