//! What the kernel says of a thin pool before something new is asked of it.

use std::thread;
use std::time::{Duration, Instant};

use super::Group;
use super::seen::{Need, Seen};
use crate::command::LvChange;
use crate::dm::{Dm, PoolMode, ThinPoolStatus};
use crate::metadata::Lv;
use crate::{Error, Kind, Space};

/// How long the kernel and the group may count a pool's changes differently.
const AGREEMENT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

impl Group {
    /// Makes sure that a pool can take something new.
    ///
    /// An inactive one is activated, since only then does the kernel tell its transaction id; with a wrong one, LVM
    /// would commit a change first and fail then.
    ///
    /// While another volume of the pool is made, the kernel's id and the group's differ for a moment; where its maker died
    /// they do so until the group is recovered.
    pub(crate) fn pool_ready(&self, seen: &Seen, pool: &Lv, tried: &str) -> Result<(), Error> {
        self.needs_kernel(tried)?;
        let limits = self.lvm.settings().refuse_at;
        let end = Instant::now() + AGREEMENT;
        let mut pool = pool.clone();
        loop {
            let status = self.pool_status(seen, &pool, tried)?;
            let differs = matches!(&status, Some(ThinPoolStatus::Working(used))
                if used.transaction_id != committed_id(&pool));
            if !differs || Instant::now() > end {
                return pool_can_take_more(&pool, status.as_ref(), limits, tried);
            }
            if self.lvm.workers().is_some_and(|workers| !workers.quarantined().is_empty()) {
                // Any command has its group recovered first.
                self.run(seen, tried, &(LvChange::Activate, seen.target(&pool.name)))?;
            } else {
                thread::sleep(PAUSE);
            }
            let now = Seen::of(&self.lvm, self.uuid, Need::Complete, tried)?;
            pool = now.own_pool(self, &pool.name, tried)?.clone();
        }
    }

    fn pool_status(&self, seen: &Seen, pool: &Lv, tried: &str) -> Result<Option<ThinPoolStatus>, Error> {
        let (dm, vg) = (Dm::open()?, seen.vg().uuid);
        match dm.pool_status(&vg, &pool.uuid)? {
            Some(status) => Ok(Some(status)),
            None => {
                self.run(seen, tried, &(LvChange::Activate, seen.target(&pool.name)))?;
                dm.pool_status(&vg, &pool.uuid)
            }
        }
    }

    /// Makes sure that a pool can grow. The kernel grows nothing of a pool that has failed or waits for a check, and LVM, which
    /// does not ask, would commit sizes that are not there.
    pub(super) fn pool_can_grow(&self, seen: &Seen, pool: &Lv, tried: &str) -> Result<(), Error> {
        self.needs_kernel(tried)?;
        match Dm::open()?.pool_status(&seen.vg().uuid, &pool.uuid)? {
            Some(ThinPoolStatus::Working(used)) if used.needs_check => Err(broken(
                format!("the metadata of thin pool {} could not be written, and need a check", pool.name),
                tried,
            )),
            Some(ThinPoolStatus::Failed) => Err(broken(format!("thin pool {} has failed", pool.name), tried)),
            _ => Ok(()),
        }
    }
}

fn broken(answer: String, tried: &str) -> Error {
    Error::new(Kind::Inconsistent, tried)
        .with_answer(answer)
        .with_advice("deactivate the pool, and repair it")
}

/// The count of a pool's changes in the metadata of its group.
fn committed_id(pool: &Lv) -> u64 {
    pool.as_thin_pool().map_or(0, |pool| pool.transaction_id)
}

/// Fill of a pool's metadata, in percent, from which the kernel may have stopped for lack of room.
const EXHAUSTED: u8 = 74;

/// Whether a pool in that state can take a new volume.
fn pool_can_take_more(
    pool: &Lv,
    status: Option<&ThinPoolStatus>,
    limits: crate::FillLimit,
    tried: &str,
) -> Result<(), Error> {
    let name = &pool.name;
    let broken = |answer: String| Err(broken(answer, tried));
    let full = |space, what: &str, fill: crate::dm::Fill| {
        Err(Error::new(Kind::NoSpace(space), tried)
            .with_answer(format!("the {what} of thin pool {name} are {:.1} percent full", fill.percent()))
            .with_advice("extend the pool, or remove something from it"))
    };
    let used = match status {
        Some(ThinPoolStatus::Working(used)) => used,
        Some(_) => return broken(format!("thin pool {name} has failed")),
        None => return broken(format!("thin pool {name} is not active")),
    };
    let committed = committed_id(pool);
    if used.transaction_id != committed {
        return broken(format!(
            "thin pool {name} needs repair: its transaction id is {} in the kernel and {committed} in the group's \
             metadata",
            used.transaction_id
        ));
    }
    // The kernel keeps a tenth of the metadata, 4 MiB at most, in reserve, and takes no change once it has to touch that. Nothing
    // is damaged then: with more room it goes on.
    let exhausted = used.mode == PoolMode::ReadOnly && !used.needs_check && used.metadata.reaches(EXHAUSTED);
    if exhausted {
        return full(Space::Metadata, "metadata", used.metadata);
    }
    if used.needs_check || used.mode == PoolMode::ReadOnly {
        return broken(format!("thin pool {name} is read-only and its metadata need a check"));
    }
    if used.mode == PoolMode::OutOfDataSpace || used.data.reaches(limits.data) {
        return full(Space::Data, "data", used.data);
    }
    if used.metadata.reaches(limits.metadata) {
        return full(Space::Metadata, "metadata", used.metadata);
    }
    Ok(())
}
