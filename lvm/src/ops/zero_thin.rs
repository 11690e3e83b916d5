//! Zeroing what a thin volume has in its pool, and not the rest of its size, which may be a thousand times more.

use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;

use super::seen::Seen;
use super::{Group, wipe};
use crate::dm::Dm;
use crate::metadata::Thin;
use crate::thin_meta::{LivePool, Source, ThinId, ThinMetadata};
use crate::{Error, Kind, Uuid};

/// How many ranges are kept at once: 32 MiB of them.
const BATCH: usize = 1 << 20;
/// How long somebody else may hold the metadata of the pool.
const PATIENCE: Duration = Duration::from_secs(30);

impl Group {
    /// Zeroes the chunks that a thin volume has for itself. It is active and open nowhere, so they stay the same meanwhile.
    pub(super) fn zero_thin(
        &self,
        seen: &Seen,
        thin: &Thin,
        device: &Path,
        tried: &str,
    ) -> Result<(), Error> {
        let id = ThinId::new(thin.device_id).ok_or_else(|| {
            Error::new(Kind::Inconsistent, tried)
                .with_answer("the id of its thin device has more than 24 bits")
        })?;
        let pool = seen.vg().lv(thin.pool.as_str()).ok_or_else(|| {
            Error::new(Kind::Inconsistent, tried).with_answer(format!("its pool {} is not there", thin.pool))
        })?;
        let dm = Dm::open()?;
        let mut from = Bytes::ZERO;
        loop {
            // Held no longer than for the reading: a pool holds one state for one reader.
            let live = hold(&dm, &seen.vg().uuid, &pool.uuid)?;
            let ranges = own_ranges(live.metadata(), id, from, BATCH)?;
            live.release()?;
            let Some(last) = ranges.last() else { return Ok(()) };
            from = last.end;
            wipe::zero_ranges(device, ranges, tried)?;
        }
    }
}

/// Holds the metadata of a pool, once nobody else does.
fn hold<'a>(dm: &'a Dm, vg: &Uuid, pool: &Uuid) -> Result<LivePool<'a>, Error> {
    let start = Instant::now();
    loop {
        match LivePool::hold(dm, vg, pool) {
            Err(error) if error.kind() == Kind::Busy && start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(50));
            }
            held => return held,
        }
    }
}

/// The first ranges of a volume, from a place on, whose chunks nobody else can have: writing to others would only give it
/// new ones.
fn own_ranges<S: Source>(
    metadata: &ThinMetadata<S>,
    id: ThinId,
    from: Bytes,
    most: usize,
) -> Result<Vec<Range<Bytes>>, Error> {
    let chunk = metadata.chunk_size();
    let thin =
        metadata.devices().find(|thin| thin.as_ref().map_or(true, |thin| thin.id == id)).transpose()?;
    // A volume that was never written is in the metadata as well; one that is not there has nothing.
    let Some(thin) = thin else { return Ok(Vec::new()) };
    let mut ranges = Vec::new();
    for range in metadata.mapped(id)? {
        let range = range?;
        let bytes = |chunks: u64| chunk.checked_mul(chunks);
        // Beyond 2^64 bytes there is no device.
        let (Some(begin), Some(len)) = (bytes(range.begin.get()), bytes(range.len.get())) else { continue };
        let Some(end) = begin.checked_add(len) else { continue };
        if range.time >= thin.snapshotted && begin >= from {
            ranges.push(begin..end);
            if ranges.len() == most {
                break;
            }
        }
    }
    Ok(ranges)
}
