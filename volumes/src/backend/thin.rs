//! Thin volumes: logical volumes that take space of their pool as they are written, and whose snapshots are instant.

use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use lvm::autoextend::Policy;
use lvm::dm::{Dm, PoolMode, ThinPoolStatus};
use lvm::metadata::{Lv, Vg};
use lvm::ops::{NewThin, NewThinSnapshot, OnRemove, SizeRange};
use lvm::{LvName, Tag};

use super::lv::{LvPool, lv_name, size_of};
use super::lv_backend::{LvBackend, takes_text};
use super::lv_health::NEARLY_FULL;
use super::thin_blocks::ThinBlocks;
use super::{NewVolume, Origin, tags};
use crate::changed::BlockSource;
use crate::class::{AutoExtend, Ratio, RefuseAt};
use crate::health::{HealthIssue, Severity};
use crate::keeper::Growing;
use crate::lock::Lock;
use crate::{Capacity, Error, Kind, Snapshot, SnapshotId, Volume};

/// A thin pool with volumes and snapshots.
#[derive(Debug)]
pub(crate) struct Thin {
    pub(crate) pool: LvPool,
    /// The pool's own logical volume.
    pub(crate) name: LvName,
    pub(crate) ratio: Ratio,
    pub(crate) refuse_at: RefuseAt,
    pub(crate) auto_extend: AutoExtend,
    /// How long the pool may be out of the kernel: LVM takes it away for a moment, and puts it back below its first
    /// volume.
    pub(crate) away: Duration,
}

impl Thin {
    fn pool_of<'a>(&self, vg: &'a Vg, tried: &str) -> Result<&'a Lv, Error> {
        vg.lv(self.name.as_str()).filter(|lv| lv.as_thin_pool().is_some()).ok_or_else(|| {
            Error::new(Kind::Unavailable, tried)
                .with_answer(format!("volume group {} has no thin pool {}", vg.name, self.name))
        })
    }

    /// What may be promised in all, and what is promised: snapshots count with their whole size.
    fn budget(&self, vg: &Vg, pool: &Lv) -> (Bytes, Bytes) {
        let size = size_of(vg, pool).get();
        let whole = u128::from(size) * u128::from(self.ratio.0) / 100;
        let promised =
            vg.thins_of(&self.name).fold(0_u64, |sum, lv| sum.saturating_add(size_of(vg, lv).get()));
        (Bytes::new(u64::try_from(whole).unwrap_or(u64::MAX)), Bytes::new(promised))
    }

    /// What the kernel says of the pool.
    fn status(&self, vg: &Vg, pool: &Lv, tried: &str) -> Result<ThinPoolStatus, Error> {
        let start = Instant::now();
        loop {
            if let Some(status) = Dm::open()?.pool_status(&vg.uuid, &pool.uuid)? {
                return Ok(status);
            }
            if start.elapsed() > self.away {
                return Err(Error::new(Kind::Unavailable, tried)
                    .with_answer(format!("thin pool {} is not active", self.name))
                    .with_advice("see what deactivated it; the node activates it when it is opened"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Why nothing new may be made in the pool now, if so.
    fn is_full(&self, vg: &Vg, pool: &Lv, tried: &str) -> Result<Option<String>, Error> {
        Ok(match self.status(vg, pool, tried)? {
            ThinPoolStatus::Working(used) if used.data.reaches(self.refuse_at.data) => {
                Some(format!("its data are {:.1} percent full", used.data.percent()))
            }
            ThinPoolStatus::Working(used) if used.metadata.reaches(self.refuse_at.metadata) => {
                Some(format!("its metadata are {:.1} percent full", used.metadata.percent()))
            }
            ThinPoolStatus::Working(used) if used.mode != PoolMode::ReadWrite => {
                Some("it takes no writes".to_owned())
            }
            ThinPoolStatus::Working(_) => None,
            _ => Some("it has failed".to_owned()),
        })
    }

    /// What is wrong with it, by the kernel's words.
    fn issues_of(&self, status: &ThinPoolStatus) -> Vec<HealthIssue> {
        let issue = |severity, reason, what: &str| {
            HealthIssue::new(severity, reason, format!("thin pool {}: {what}", self.name))
        };
        let ThinPoolStatus::Working(used) = status else {
            let what = "it has failed; nothing can be read or written until it is repaired";
            return vec![issue(Severity::Inaccessible, "ThinPoolFailed", what)];
        };
        let mut issues = Vec::new();
        match used.mode {
            PoolMode::ReadWrite => {}
            PoolMode::ReadOnly => {
                issues.push(issue(Severity::Degraded, "ThinPoolReadOnly", "nothing can be written"));
            }
            PoolMode::OutOfDataSpace => {
                let what = "it is full: only what was written before can be written again";
                issues.push(issue(Severity::Degraded, "ThinPoolOutOfDataSpace", what));
            }
        }
        if used.needs_check {
            let what = "it found its metadata damaged, and is to be checked";
            issues.push(issue(Severity::Degraded, "ThinPoolNeedsCheck", what));
        }
        let is_full =
            used.data.reaches(self.refuse_at.data) || used.metadata.reaches(self.refuse_at.metadata);
        if is_full && used.mode == PoolMode::ReadWrite {
            let (data, metadata) = (used.data.percent(), used.metadata.percent());
            let what = format!(
                "its data are {data:.1} and its metadata {metadata:.1} percent full, and it takes no new volumes"
            );
            issues.push(issue(Severity::Degraded, NEARLY_FULL, &what));
        }
        issues
    }

    /// The name of what is copied.
    fn origin_name(&self, origin: Origin<'_>, tried: &str) -> Result<LvName, Error> {
        match origin {
            Origin::Volume(volume) => self.pool.name_of(&volume.id, tried),
            Origin::Snapshot(snapshot) => self.pool.snapshot_name(&snapshot.id, tried),
        }
    }
}

impl LvBackend for Thin {
    fn pool(&self) -> &LvPool {
        &self.pool
    }

    /// Whether so much more may be promised.
    fn has_room(&self, from: Bytes, to: Bytes, tried: &str) -> Result<(), Error> {
        let more = to.saturating_sub(from);
        let look = self.pool.look()?;
        let vg = look.vg();
        let pool = self.pool_of(vg, tried)?;
        let refuse = |answer: String| {
            Err(Error::new(Kind::NoSpace, tried)
                .with_answer(answer)
                .with_advice("remove something, or add a disk to the class"))
        };
        if let Some(why) = self.is_full(vg, pool, tried)? {
            return refuse(format!("thin pool {} takes nothing new: {why}", self.name));
        }
        let (whole, promised) = self.budget(vg, pool);
        let left = whole.saturating_sub(promised);
        if more > left {
            return refuse(format!("{more} are needed, and thin pool {} may promise {left} more", self.name));
        }
        Ok(())
    }

    fn create(&self, name: LvName, size: Bytes, tags: Vec<Tag>) -> Result<(), Error> {
        let thin = NewThin::new(self.name.clone(), name, SizeRange::at_least(size).up_to(size));
        let _ = self.pool.group.create_thin(&tags.into_iter().fold(thin, NewThin::tag))?;
        Ok(())
    }

    fn copy(
        &self,
        new: &NewVolume<'_>,
        size: Bytes,
        origin: Origin<'_>,
        _held: Lock,
        tried: &str,
    ) -> Result<Volume, Error> {
        self.has_room(Bytes::ZERO, size, tried)?;
        let from = self.origin_name(origin, tried)?;
        let name = lv_name('v', new.id.as_str(), tried)?;
        let mut tags: Vec<Tag> = tags::of_new(new, &self.pool.class.name)?;
        tags.push(tags::tag(tags::FILLING)?);
        let clone = NewThinSnapshot::clone_of(from, name.clone(), SizeRange::at_least(size));
        let _ = self.pool.group.snapshot_thin(&tags.into_iter().fold(clone, NewThinSnapshot::tag))?;
        let finished = self.pool.finish_copy(&name, new.id, tried);
        if finished.is_err() {
            // It stays marked as incomplete where this fails, so that nobody uses it and the next try removes it.
            let _ = self.pool.group.remove_volume(&name, OnRemove::Keep);
        }
        finished
    }

    fn shared_issues(&self) -> Result<Vec<HealthIssue>, Error> {
        let tried = format!("tell the health of thin pool {}", self.name);
        let look = self.pool.look()?;
        match self.status(look.vg(), self.pool_of(look.vg(), &tried)?, &tried) {
            Ok(status) => Ok(self.issues_of(&status)),
            Err(error) if error.kind() == Kind::Unavailable => {
                let message = error.to_string();
                Ok(vec![HealthIssue::new(Severity::Inaccessible, "ThinPoolInactive", message)])
            }
            Err(error) => Err(error),
        }
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let tried = format!("tell the capacity of thin pool {}", self.name);
        let look = self.pool.look()?;
        let vg = look.vg();
        let pool = self.pool_of(vg, &tried)?;
        let (whole, promised) = self.budget(vg, pool);
        let minimum = vg.extent_size.bytes();
        let left = whole.saturating_sub(promised).round_down(minimum).unwrap_or_default();
        let takes_more = vg.takes_volumes() && takes_text(vg) && self.is_full(vg, pool, &tried)?.is_none();
        let available = if takes_more { left } else { Bytes::ZERO };
        Ok(Capacity { total: whole, available, largest: available, minimum })
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.pool.snapshots()
    }

    fn snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<(), Error> {
        self.has_room(Bytes::ZERO, source.size, tried)?;
        let from = self.pool.name_of(&source.id, tried)?;
        let name = lv_name('s', id.as_str(), tried)?;
        let tags = tags::of_snapshot(id, &source.id, &self.pool.class.name)?;
        let new = NewThinSnapshot::new(from, name);
        let _ = self.pool.group.snapshot_thin(&tags.into_iter().fold(new, NewThinSnapshot::tag))?;
        Ok(())
    }

    fn blocks(
        &self,
        base: Option<&Snapshot>,
        target: &Snapshot,
        tried: &str,
    ) -> Result<Option<Box<dyn BlockSource>>, Error> {
        Ok(Some(Box::new(ThinBlocks::new(&self.pool, &self.name, base, target, tried)?)))
    }

    fn growing(&self) -> Option<Growing> {
        let AutoExtend { threshold, by } = self.auto_extend;
        // Where the group cannot be read now there is nothing to be kept free of it either: the watch fails, and says so.
        let reserve = self.pool.look().map(|look| self.pool.reserved(look.vg())).unwrap_or_default();
        let policy = Policy { data_at: threshold, by, reserve, ..Policy::default() };
        let never = threshold >= 100;
        (!never).then(|| Growing { group: self.pool.group.clone(), pool: self.name.clone(), policy })
    }

    fn delete_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        let name = self.pool.snapshot_name(&snapshot.id, tried)?;
        // Its blocks go back to the pool, which zeroes them before anybody else sees them.
        let _ = self.pool.group.remove_volume(&name, OnRemove::Keep)?;
        Ok(())
    }
}
