//! Going on without a cache, or with another one.

use std::ops::ControlFlow;
use std::time::Duration;

use devices::Effect;

use crate::{Backing, CacheSet, Change, DetachProgress, Error, Kind, wait};

/// How long the kernel may take to make a device appear.
const SOON: Duration = Duration::from_secs(30);

impl Backing {
    /// Puts the device under another cache set, for example because its own has failed or is to be retired.
    ///
    /// * Attached to a set that works: detaches from it first within `limit`, which writes out what is dirty.
    /// * Its set is gone, and the device is clean: attaches to the new one. What the old set had of it counts no more.
    /// * Its set is gone, and the device is dirty: refused, with what would be lost.
    ///
    /// # Errors
    ///
    /// [`Kind::Dirty`] with what would be lost, [`Kind::CacheMissing`] when the new set is not registered, and those of
    /// [`Backing::detach`] and [`Backing::attach`].
    pub fn replace_cache(
        &self,
        new: &CacheSet,
        limit: Duration,
        watch: impl FnMut(DetachProgress) -> ControlFlow<()>,
    ) -> Result<Change, Error> {
        match self.set()? {
            Some(set) if set.uuid() == new.uuid() => return Ok(Change::Already(())),
            Some(_) => {
                self.bcache.set(new.uuid())?;
                let _ = self.detach(limit, watch)?;
            }
            None => {}
        }
        self.attach(new)
    }

    /// Makes the cached device appear although its cache set is missing. It must be clean.
    ///
    /// The kernel then notes in the superblock that whatever that set still has of the device is out of date, so the set can
    /// come back later without harm.
    ///
    /// # Errors
    ///
    /// [`Kind::Dirty`] with what would be lost: a dirty device is never forced, [`Kind::Io`].
    pub fn run_without_cache(&self) -> Result<Change, Error> {
        let tried = format!("run the backing device {} without its cache set", self.uuid());
        if self.device()?.is_some() {
            return Ok(Change::Already(()));
        }
        self.refuse_loss(None, &tried)?;
        self.attributes()?.write("running", "1")?;
        match wait::until(SOON, || Ok(self.device()?.map(drop)))? {
            Some(()) => Ok(Change::Made(())),
            None => Err(Error::new(Kind::TimedOut, tried).with_effect(Effect::Unknown)),
        }
    }
}
