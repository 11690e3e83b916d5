//! Writes that pass a write-back cache by.
//!
//! The kernel sends a write past the cache when it is part of a long sequential one or when the cache is slow for a
//! moment. It then takes away what the cache has of that place, and the journal may make that last before the new block has
//! left the volatile cache of the disk behind (drivers/md/bcache/request.c: `cached_dev_write` sends the one,
//! `bch_data_invalidate` the other, and neither waits). After a power cut in that moment the place holds neither the
//! new block nor the older one, which was acknowledged and existed on the cache alone.

use std::time::Duration;

use devices::Bytes;

use crate::host::Registered;
use crate::{Backing, CacheMode, CacheSet, Change, Error, Kind, Knob, SetKnob};

/// What the kernel begins with at each registration (super.c, request.h).
const SEQUENTIAL: Bytes = Bytes::mib(4);
const READS: Duration = Duration::from_millis(2);
const WRITES: Duration = Duration::from_millis(20);

impl Backing {
    /// Lets no write pass the cache by, in write-back mode: the sequential cutoff of the device and the congestion thresholds
    /// of its cache set become zero. In another mode nothing happens.
    ///
    /// The kernel forgets all of them at each registration, so [`Bcache::register`], [`Bcache::adopt`], [`Backing::attach`]
    /// and [`Knob::Mode`] see to it. Only what is at the kernel's own value is changed: what
    /// [`Backing::turn`] or [`CacheSet::turn`] set to something else stays, with the risk that [`Knob::SequentialCutoff`]
    /// tells. Two ways past the cache are left, which nothing can close: the kernel takes no more writes in when 70 percent
    /// of the cache are in use, and discards never.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the device is not registered any more, [`Kind::Unsupported`], [`Kind::Io`].
    ///
    /// [`Bcache::register`]: crate::Bcache::register
    /// [`Bcache::adopt`]: crate::Bcache::adopt
    pub fn keep_in_cache(&self) -> Result<Change, Error> {
        if self.status()?.mode != CacheMode::WriteBack {
            return Ok(Change::Already(()));
        }
        self.close_bypasses(self.set()?.as_ref())
    }

    /// The same whatever the mode is now, and with the set that the device is about to have.
    pub(crate) fn close_bypasses(&self, set: Option<&CacheSet>) -> Result<Change, Error> {
        let mut changed = false;
        if self.knobs()?.sequential_cutoff.is(SEQUENTIAL) {
            self.turn(&Knob::SequentialCutoff(Bytes::ZERO))?;
            changed = true;
        }
        if let Some(set) = set {
            changed |= set.close_bypasses()?;
        }
        Ok(if changed { Change::Made(()) } else { Change::Already(()) })
    }
}

impl CacheSet {
    /// Whether anything was changed. Slow reads count, too: the kernel adds both up, and decides by the sum.
    fn close_bypasses(&self) -> Result<bool, Error> {
        let status = self.status()?;
        let mut changed = false;
        for (now, at_first, knob) in [
            (status.congested_read, READS, SetKnob::CongestedRead(Duration::ZERO)),
            (status.congested_write, WRITES, SetKnob::CongestedWrite(Duration::ZERO)),
        ] {
            if now == at_first {
                self.turn(knob)?;
                changed = true;
            }
        }
        Ok(changed)
    }
}

impl Registered {
    /// Every write-back device that this registration may have started keeps its writes in its cache.
    pub(crate) fn keep_in_cache(&self) -> Result<(), Error> {
        let started = match self {
            Self::Backing(backing) => Ok(vec![backing.clone()]),
            Self::Cache(set) => set.backings(),
        };
        let kept = started.and_then(|all| all.iter().try_for_each(|one| one.keep_in_cache().map(drop)));
        match kept {
            // Somebody stopped it in this very moment; whoever registers it again sees to it again.
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            other => other,
        }
    }
}
