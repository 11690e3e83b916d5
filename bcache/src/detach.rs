//! Detaching a backing device from its cache set.

use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::Duration;

use devices::Effect;

use crate::attribute::Attributes;
use crate::{Approximate, Backing, CacheMode, Change, Error, Kind, State};

/// How often a detach looks how far the kernel is.
const STEP: Duration = Duration::from_millis(100);

/// How far a detach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DetachProgress {
    /// How much exists only on the cache.
    pub dirty: Approximate,
    /// Which part it is in.
    pub phase: DetachPhase,
}

/// The parts of a detach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachPhase {
    /// What is dirty is written to the backing device. A cancelled detach ends here and leaves the device attached.
    Draining,
    /// The kernel has been told; it cannot be called back any more.
    Detaching,
}

/// The attributes that make the kernel write out what is dirty, and what they were before.
struct Drain {
    attributes: Attributes,
    before: Vec<(&'static str, String)>,
}

impl Backing {
    /// Detaches the device from its cache set, after everything dirty has been written to it. The device may be in use
    /// meanwhile, and goes on without the cache.
    ///
    /// `watch` is called about ten times a second. [`ControlFlow::Break`] gives it up: while what is dirty is written out, the
    /// device stays attached and gets its mode back; later the kernel detaches all the same. A process that is killed
    /// meanwhile leaves the device attached and writing through; detaching it again ends it.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    ///
    /// let bcache = bcache::Bcache::new();
    /// let backing = bcache.backing("11111111-2222-3333-4444-555555555555".parse()?)?;
    /// let _ = backing.detach(|progress| {
    ///     println!("{} to be written", progress.dirty);
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Kind::Cancelled`], [`Kind::Dirty`] when it is dirty and its cache set is not there, [`Kind::Io`].
    pub fn detach(&self, mut watch: impl FnMut(DetachProgress) -> ControlFlow<()>) -> Result<Change, Error> {
        let tried = format!("detach the backing device {}", self.uuid());
        if self.set()?.is_none() {
            self.refuse_loss(None, &tried)?;
            return Ok(Change::Already(()));
        }
        let drain = Drain::begin(self.attributes()?)?;
        let result = self.drain(&mut watch, &tried).and_then(|()| self.let_go(&mut watch, &tried));
        // Also after an error: whoever had it write back wants that again, with this set or the next one.
        let restored = drain.end();
        result?;
        restored?;
        Ok(Change::Made(()))
    }

    /// Waits until nothing is dirty any more.
    fn drain(
        &self,
        watch: &mut impl FnMut(DetachProgress) -> ControlFlow<()>,
        tried: &str,
    ) -> Result<(), Error> {
        loop {
            let dirty = self.attributes()?.size("dirty_data")?;
            let progress = DetachProgress { dirty, phase: DetachPhase::Draining };
            if watch(progress).is_break() {
                return Err(Error::new(Kind::Cancelled, tried)
                    .with_answer(format!("{dirty} is still to be written; it stays attached")));
            }
            if dirty.is_zero() {
                return Ok(());
            }
            self.refuse_without_set(tried)?;
            sleep(STEP);
        }
    }

    /// Tells the kernel, which writes the state into the superblock and lets go of the set.
    fn let_go(
        &self,
        watch: &mut impl FnMut(DetachProgress) -> ControlFlow<()>,
        tried: &str,
    ) -> Result<(), Error> {
        let attributes = self.attributes()?;
        attributes.write("detach", "1")?;
        loop {
            if self.set()?.is_none() && attributes.chosen("state", State::of_word)? == State::NoCache {
                return Ok(());
            }
            let dirty = attributes.size("dirty_data")?;
            if watch(DetachProgress { dirty, phase: DetachPhase::Detaching }).is_break() {
                return Err(Error::new(Kind::Cancelled, tried)
                    .with_effect(Effect::Unknown)
                    .with_answer("the kernel has been told, and goes on with it"));
            }
            sleep(STEP);
        }
    }

    /// A set that failed has gone, and its dirty blocks with it.
    fn refuse_without_set(&self, tried: &str) -> Result<(), Error> {
        match self.set()? {
            Some(_) => Ok(()),
            None => self.refuse_loss(None, tried),
        }
    }
}

impl Drain {
    /// Nothing becomes dirty any more, and what is dirty is written out at full speed.
    fn begin(attributes: Attributes) -> Result<Self, Error> {
        let mut drain = Self { attributes, before: Vec::new() };
        let mode = drain.attributes.chosen("cache_mode", CacheMode::of_word)?;
        let changes = [
            // A percentage of zero lifts the limit on the rate.
            ("writeback_percent", "0"),
            ("writeback_delay", "0"),
            ("writeback_running", "1"),
        ];
        for (name, value) in changes {
            let before = drain.attributes.text(name)?;
            if before != value {
                drain.before.push((name, before));
                drain.change(name, value)?;
            }
        }
        if mode == CacheMode::WriteBack {
            drain.before.push(("cache_mode", mode.as_word().to_owned()));
            drain.change("cache_mode", CacheMode::WriteThrough.as_word())?;
        }
        Ok(drain)
    }

    fn change(&self, name: &str, value: &str) -> Result<(), Error> {
        self.attributes.write(name, value).inspect_err(|_| drop(self.restore()))
    }

    fn end(self) -> Result<(), Error> {
        self.restore()
    }

    /// All of it, even if one cannot be restored; the first error counts. A device that has gone needs nothing.
    fn restore(&self) -> Result<(), Error> {
        let all = self.before.iter().map(|(name, value)| self.attributes.write(name, value));
        let failed = all.filter_map(Result::err).find(|error| error.kind() != Kind::NotFound);
        failed.map_or(Ok(()), Err)
    }
}
