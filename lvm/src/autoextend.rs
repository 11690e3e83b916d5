//! Growing thin pools before they are full.
//!
//! The kernel gives a sign when a pool reaches its low-water mark, once: not again while the pool stays below it,
//! and none at all for a pool that was activated without a mark. So a [`Watcher`] looks at its pools when it begins,
//! at every sign, and now and then without one; near the mark it looks every second.
//!
//! ```no_run
//! use lvm::autoextend::{Policy, Watcher};
//!
//! # fn watch(group: lvm::ops::Group) -> Result<(), Box<dyn std::error::Error>> {
//! let mut watcher = Watcher::new([(group, "pool".parse()?)], Policy::default())?;
//! loop {
//!     for outcome in watcher.wait(None)? {
//!         println!("{outcome}");
//!     }
//! }
//! # }
//! ```

use std::fmt;
use std::time::{Duration, Instant};

use devices::Bytes;

use crate::dm::{Dm, Events, Fill, ThinPoolStatus, ThinPoolUse, Waker, Woken};
use crate::metadata::{Lv, Vg};
use crate::ops::{Change, Group, PoolSize, SizeRange};
use crate::{Error, Kind, LvName, Space};

/// How long a watcher waits for a sign before it looks without one.
const FAR: Duration = Duration::from_secs(10);
/// The same while a pool is within [`NEAR_PERCENT`] of its threshold.
const NEAR: Duration = Duration::from_secs(1);
/// Percent below a threshold from which a pool is looked at often.
const NEAR_PERCENT: u8 = 10;
/// How long a pool that could not be grown is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// When a pool grows, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Percent of the data in use at which they grow, 1 to 100.
    pub data_at: u8,
    /// Percent of the metadata in use at which they grow, 1 to 100; lower, since a pool whose metadata are full stops
    /// at once.
    pub metadata_at: u8,
    /// Percent of its present size by which either grows, at least an extent.
    pub by: u8,
    /// What the growth of the data leaves free in the group.
    pub reserve: Bytes,
}

impl Default for Policy {
    fn default() -> Self {
        Self { data_at: 80, metadata_at: 50, by: 20, reserve: Bytes::ZERO }
    }
}

impl Policy {
    /// Whether the numbers can be meant.
    fn check(self) -> Result<Self, Error> {
        let share = |percent: u8| (1..=100).contains(&percent);
        if share(self.data_at) && share(self.metadata_at) && self.by > 0 {
            return Ok(self);
        }
        Err(Error::new(Kind::InvalidArgument, "watch thin pools").with_answer(format!(
            "{self:?} cannot be: thresholds are 1 to 100 percent, and growth is above 0"
        )))
    }

    /// The size after one step.
    fn grown(self, size: Bytes) -> Bytes {
        let more = u128::from(size.get()) * u128::from(self.by) / 100;
        let more = u64::try_from(more).unwrap_or(u64::MAX).max(1);
        Bytes::new(size.get().saturating_add(more))
    }

    /// Whether a pool is so full that it should be looked at often.
    fn is_near(self, live: &ThinPoolUse) -> bool {
        let near = |fill: Fill, at: u8| fill.reaches(at.saturating_sub(NEAR_PERCENT));
        near(live.data, self.data_at) || near(live.metadata, self.metadata_at)
    }
}

/// Which part of a pool grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Its data.
    Data,
    /// Its metadata.
    Metadata,
}

/// What a watcher did, or could not do.
#[derive(Debug)]
pub struct Outcome {
    /// The pool, as `group/pool`.
    pub pool: String,
    /// Which part of it was too full.
    pub part: Part,
    /// How full that part was.
    pub fill: Fill,
    /// Its sizes before and after, or why it could not grow.
    pub result: Result<(Bytes, Bytes), Error>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Data => "data",
            Part::Metadata => "metadata",
        };
        write!(f, "thin pool {}: its {part} were {:.1} % full; ", self.pool, self.fill.percent())?;
        match &self.result {
            Ok((from, to)) => write!(f, "grown from {from} to {to}"),
            Err(error) => error.fmt(f),
        }
    }
}

/// Keeps thin pools from running full.
#[derive(Debug)]
pub struct Watcher {
    events: Events,
    dm: Dm,
    pools: Vec<Watched>,
    policy: Policy,
}

#[derive(Debug)]
struct Watched {
    group: Group,
    name: LvName,
    /// Not to be tried again before this moment.
    quiet_until: Option<Instant>,
}

impl Watcher {
    /// Begins to watch these pools.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a policy that cannot be; as [`Events::open`].
    pub fn new(pools: impl IntoIterator<Item = (Group, LvName)>, policy: Policy) -> Result<Self, Error> {
        let policy = policy.check()?;
        let watched = |(group, name)| Watched { group, name, quiet_until: None };
        let pools = pools.into_iter().map(watched).collect();
        Ok(Self { events: Events::open()?, dm: Dm::open()?, pools, policy })
    }

    /// A handle that ends a wait.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.events.waker()
    }

    /// Looks at every pool once and grows those that are too full.
    ///
    /// # Errors
    ///
    /// As [`Group::look`] and [`Dm::pool_status`]. A pool that could not be grown is an outcome, not an error.
    pub fn look(&mut self) -> Result<Vec<Outcome>, Error> {
        let mut outcomes = Vec::new();
        for index in 0..self.pools.len() {
            outcomes.extend(self.look_at(index)?);
        }
        Ok(outcomes)
    }

    /// Waits until something was grown or could not be, for at most `limit` if one is given; an empty list when the
    /// time is over or [the waker](Watcher::waker) was called.
    ///
    /// # Errors
    ///
    /// As [`Watcher::look`] and [`Events::wait`].
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<Vec<Outcome>, Error> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let outcomes = self.look()?;
            if !outcomes.is_empty() {
                return Ok(outcomes);
            }
            let pause = if self.is_any_near()? { NEAR } else { FAR };
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(Vec::new());
            }
            let pause = left.map_or(pause, |left| left.min(pause));
            if self.events.wait(Some(pause))? == Woken::ByWaker {
                return Ok(Vec::new());
            }
        }
    }

    fn is_any_near(&self) -> Result<bool, Error> {
        for pool in &self.pools {
            let vg = pool.group.look()?;
            if let Some(lv) = vg.lv(pool.name.as_str())
                && let Some(live) = self.use_of(&vg, lv)?
                && self.policy.is_near(&live)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `None` for a pool that is not active or has failed.
    fn use_of(&self, vg: &Vg, lv: &Lv) -> Result<Option<ThinPoolUse>, Error> {
        Ok(match self.dm.pool_status(&vg.uuid, &lv.uuid)? {
            Some(ThinPoolStatus::Working(live)) => Some(live),
            _ => None,
        })
    }

    fn look_at(&mut self, index: usize) -> Result<Vec<Outcome>, Error> {
        let pool = &self.pools[index];
        if pool.quiet_until.is_some_and(|until| Instant::now() < until) {
            return Ok(Vec::new());
        }
        let vg = pool.group.look()?;
        let Some(lv) = vg.lv(pool.name.as_str()) else { return Ok(Vec::new()) };
        let Some(live) = self.use_of(&vg, lv)? else { return Ok(Vec::new()) };
        let mut outcomes = Vec::new();
        let label = format!("{}/{}", vg.name, pool.name);
        // Metadata first: a pool without room for them stops at once, and growing the data needs some.
        if live.metadata.reaches(self.policy.metadata_at) {
            let result = pool.grow_metadata(&vg, lv, self.policy);
            outcomes.push(Outcome { pool: label.clone(), part: Part::Metadata, fill: live.metadata, result });
        }
        if live.data.reaches(self.policy.data_at) {
            let result = pool.grow_data(&vg, lv, self.policy);
            outcomes.push(Outcome { pool: label, part: Part::Data, fill: live.data, result });
        }
        let failed = outcomes.iter().any(|outcome| outcome.result.is_err());
        self.pools[index].quiet_until = failed.then(|| Instant::now() + AFTER_FAILURE);
        Ok(outcomes)
    }
}

impl Watched {
    fn grow_data(&self, vg: &Vg, lv: &Lv, policy: Policy) -> Result<(Bytes, Bytes), Error> {
        let from = vg.extent_size.span(lv.extents()).unwrap_or_default();
        let extend = |to: Bytes| {
            let size = PoolSize::Data(SizeRange::at_least(whole_sectors(to)));
            self.group.extend_pool(&self.name, size, &[]).map(Change::into_inner)
        };
        let free = vg.extent_size.span(vg.free_extents()).unwrap_or_default();
        let left = free.saturating_sub(policy.reserve).round_down(vg.extent_size.bytes()).unwrap_or_default();
        let Some(most) = from.checked_add(left).filter(|most| *most > from) else {
            let kept = if policy.reserve == Bytes::ZERO { "" } else { " beyond its reserve" };
            return Err(Error::new(
                Kind::NoSpace(Space::Data),
                format!("extend thin pool {}/{}", vg.name, self.name),
            )
            .with_answer(format!("its group has no room left{kept}"))
            .with_advice("add a disk to the group, or remove volumes"));
        };
        // Less than a whole step is better than nothing.
        let grown = extend(policy.grown(from).min(most))?;
        Ok((from, grown.size))
    }

    fn grow_metadata(&self, vg: &Vg, lv: &Lv, policy: Policy) -> Result<(Bytes, Bytes), Error> {
        let tried = || format!("extend the metadata of thin pool {}/{}", vg.name, self.name);
        let size = |vg: &Vg| {
            let part = lv.as_thin_pool().and_then(|pool| vg.lv(pool.metadata.as_str()))?;
            vg.extent_size.span(part.extents())
        };
        let from = size(vg).ok_or_else(|| {
            Error::new(Kind::Inconsistent, tried()).with_answer("its metadata volume is not in the group")
        })?;
        let _ = self.group.extend_pool_metadata(&self.name, whole_sectors(policy.grown(from)))?;
        Ok((from, size(&self.group.look()?).unwrap_or(from)))
    }
}

/// Sizes that are asked for are whole sectors.
fn whole_sectors(size: Bytes) -> Bytes {
    size.round_up(Bytes::new(512)).unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_part_of_the_present_size_and_never_nothing() {
        let policy = Policy::default();
        assert_eq!(policy.grown(Bytes::gib(10)), Bytes::gib(12));
        assert_eq!(policy.grown(Bytes::new(1)), Bytes::new(2));
        assert_eq!(policy.grown(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
        assert_eq!(whole_sectors(Bytes::new(513)), Bytes::new(1024));
    }

    #[test]
    fn policies_that_cannot_be_meant_are_refused() {
        assert!(Policy::default().check().is_ok());
        for bad in [
            Policy { data_at: 0, ..Policy::default() },
            Policy { data_at: 101, ..Policy::default() },
            Policy { metadata_at: 0, ..Policy::default() },
            Policy { by: 0, ..Policy::default() },
        ] {
            assert_eq!(bad.check().unwrap_err().kind(), Kind::InvalidArgument, "{bad:?}");
        }
    }

    #[test]
    fn pools_near_their_threshold_are_looked_at_often() {
        let line = |data: u64, metadata: u64| {
            let text = format!("0 {metadata}/100 {data}/100 - rw discard_passdown queue_if_no_space -");
            match crate::dm::Status::parse("thin-pool", &text).unwrap() {
                crate::dm::Status::ThinPool(ThinPoolStatus::Working(live)) => live,
                other => panic!("{other:?}"),
            }
        };
        for (data, metadata, near) in [(69, 39, false), (70, 0, true), (0, 40, true), (100, 100, true)] {
            assert_eq!(Policy::default().is_near(&line(data, metadata)), near, "{data} {metadata}");
        }
    }

    #[test]
    fn outcomes_read_as_sentences() {
        let (pool, fill) = ("data/pool".to_owned(), Fill::new(81, 100));
        let grown = Ok((Bytes::gib(1), Bytes::mib(1228)));
        let outcome = Outcome { pool: pool.clone(), part: Part::Data, fill, result: grown };
        assert_eq!(
            outcome.to_string(),
            "thin pool data/pool: its data were 81.0 % full; grown from 1 GiB to 1.19 GiB"
        );
        let failed = Err(Error::new(Kind::NoSpace(Space::Data), "extend thin pool data/pool"));
        let outcome = Outcome { pool, part: Part::Metadata, fill, result: failed };
        assert_eq!(
            outcome.to_string(),
            "thin pool data/pool: its metadata were 81.0 % full; could not extend thin pool data/pool"
        );
    }
}
