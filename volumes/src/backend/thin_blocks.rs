//! Which blocks of a pool a thin snapshot has, read from the pool's own metadata.

use std::ops::Range;

use devices::Bytes;
use lvm::metadata::{Lv, Vg};
use lvm::thin_meta::{Chunks, Part, ThinId};
use lvm::{LvName, Uuid};

use super::lv::LvPool;
use super::tags;
use crate::changed::{BlockPart, BlockSource, Holds};
use crate::{Error, Kind, Snapshot, SnapshotId};

/// How many blocks of metadata are read while the pool holds them: half a mebibyte, and at most 32,000 ranges.
const BLOCKS: usize = 128;

/// The blocks of a snapshot, or where it differs from another one.
#[derive(Debug)]
pub(crate) struct ThinBlocks {
    pool: LvPool,
    name: LvName,
    base: Option<Thin>,
    target: Thin,
}

/// A snapshot's thin device, and that it is still the same one.
#[derive(Debug, PartialEq, Eq)]
struct Thin {
    snapshot: SnapshotId,
    lv: Uuid,
    id: ThinId,
}

impl ThinBlocks {
    pub(crate) fn new(
        pool: &LvPool,
        name: &LvName,
        base: Option<&Snapshot>,
        target: &Snapshot,
        tried: &str,
    ) -> Result<Self, Error> {
        let look = pool.look()?;
        let thin = |snapshot: &Snapshot| Thin::find(pool, look.vg(), &snapshot.id, tried);
        let (base, target) = (base.map(thin).transpose()?, thin(target)?);
        Ok(Self { pool: pool.clone(), name: name.clone(), base, target })
    }

    /// Whether both are still there. Asked of what was committed after the pool began to hold its metadata: what is there then,
    /// and was there before, was there in between, and no other device has its id.
    fn still_there(&self, vg: &Vg, tried: &str) -> Result<(), Error> {
        for thin in self.base.iter().chain([&self.target]) {
            if Thin::find(&self.pool, vg, &thin.snapshot, tried)? != *thin {
                return Err(gone(&thin.snapshot, tried));
            }
        }
        Ok(())
    }

    fn tried(&self) -> String {
        match &self.base {
            None => format!("tell what snapshot {} holds", self.target.snapshot),
            Some(base) => {
                format!("tell what changed between snapshots {} and {}", base.snapshot, self.target.snapshot)
            }
        }
    }
}

impl Thin {
    fn find(pool: &LvPool, vg: &Vg, snapshot: &SnapshotId, tried: &str) -> Result<Self, Error> {
        let is_it = |lv: &&Lv| tags::snapshot_of(lv).as_ref() == Some(snapshot) && !tags::is_unfinished(lv);
        let lv = pool.own(vg).find(is_it).ok_or_else(|| gone(snapshot, tried))?;
        let id = lv.as_thin().and_then(|thin| ThinId::new(thin.device_id));
        let id = id.ok_or_else(|| {
            Error::new(Kind::Internal, tried).with_answer(format!("{} is no thin volume", lv.name))
        })?;
        Ok(Self { snapshot: snapshot.clone(), lv: lv.uuid, id })
    }
}

impl BlockSource for ThinBlocks {
    fn part(&self, holds: &Holds, from: Bytes) -> Result<BlockPart, Error> {
        let tried = self.tried();
        let (vg, pool) = {
            let look = self.pool.look()?;
            let pool = look.vg().lv(self.name.as_str()).ok_or_else(|| {
                Error::new(Kind::Unavailable, &*tried).with_answer("its thin pool is not there")
            })?;
            (look.vg().uuid, pool.uuid)
        };
        let hold = holds.of(&vg, &pool, &tried)?;
        self.still_there(self.pool.look()?.vg(), &tried)?;
        let metadata = hold.live.metadata();
        let chunk = metadata.chunk_size();
        let from = Chunks::new(from.get() / chunk.get());
        let part = match &self.base {
            None => metadata.mapped_part(self.target.id, from, BLOCKS),
            Some(base) => metadata.changed_part(base.id, self.target.id, from, BLOCKS),
        };
        // One that LVM has and the pool has not is damage, and nothing that was never there.
        let part = part.map_err(|error| match error.kind() {
            lvm::Kind::NotFound => Error::new(Kind::Internal, &*tried)
                .with_answer("the pool does not have it")
                .with_source(error),
            _ => error.into(),
        })?;
        Ok(in_bytes(&part, chunk))
    }
}

/// Beyond 2^64 bytes there is no device.
fn in_bytes(part: &Part, chunk: Bytes) -> BlockPart {
    let bytes = |chunks: Chunks| chunks.to_bytes(chunk).unwrap_or(Bytes::new(u64::MAX));
    let range = |range: &Range<Chunks>| bytes(range.start)..bytes(range.end);
    BlockPart { ranges: part.ranges.iter().map(range).collect(), next: part.next.map(bytes) }
}

fn gone(snapshot: &SnapshotId, tried: &str) -> Error {
    Error::new(Kind::NotFound, tried).with_answer(format!("snapshot {snapshot} is not there any more"))
}
