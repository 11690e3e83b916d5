//! Detaching a backing device from its cache set.

use std::ops::ControlFlow;
use std::thread::sleep;
use std::time::{Duration, Instant};

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

/// Who may give a detach up, and when it has taken too long.
struct Patience<W> {
    watch: W,
    end: Option<Instant>,
    limit: Duration,
}

impl<W: FnMut(DetachProgress) -> ControlFlow<()>> Patience<W> {
    /// Why it ends here; `None` to go on.
    fn ends(&mut self, progress: DetachProgress) -> Option<Kind> {
        if (self.watch)(progress).is_break() {
            return Some(Kind::Cancelled);
        }
        self.end.filter(|end| Instant::now() >= *end).map(|_| Kind::TimedOut)
    }

    fn error(&self, kind: Kind, tried: &str) -> Error {
        match kind {
            Kind::TimedOut => Error::new(kind, format!("{tried} within {} s", self.limit.as_secs())),
            _ => Error::new(kind, tried),
        }
    }
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
    /// `watch` is called about ten times a second. [`ControlFlow::Break`] gives it up, and so does the end of `limit`
    /// ([`Duration::MAX`] for none): while what is dirty is written out, the device stays attached and gets its mode back; later
    /// the kernel detaches all the same. A process that is killed meanwhile leaves the device attached and writing through;
    /// detaching it again ends it.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use std::time::{Duration, Instant};
    ///
    /// let bcache = bcache::Bcache::new();
    /// let backing = bcache.backing("11111111-2222-3333-4444-555555555555".parse()?)?;
    /// let _ = backing.detach(Duration::from_secs(3600), |progress| {
    ///     println!("{} to be written", progress.dirty);
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Kind::Cancelled`], [`Kind::TimedOut`] (both with [`Effect::None`] as long as it stays attached),
    /// [`Kind::Dirty`] when it is dirty and its cache set is not there, [`Kind::Io`].
    pub fn detach(
        &self,
        limit: Duration,
        watch: impl FnMut(DetachProgress) -> ControlFlow<()>,
    ) -> Result<Change, Error> {
        let tried = format!("detach the backing device {}", self.uuid());
        if self.set()?.is_none() {
            self.refuse_loss(None, &tried)?;
            return Ok(Change::Already(()));
        }
        let drain = Drain::begin(self.attributes()?)?;
        let mut patience = Patience { watch, end: Instant::now().checked_add(limit), limit };
        let result = self.drain(&mut patience, &tried).and_then(|()| self.let_go(&mut patience, &tried));
        // Also after an error: whoever had it write back wants that again, with this set or the next one.
        let restored = drain.end();
        result?;
        restored?;
        Ok(Change::Made(()))
    }

    /// Waits until nothing is dirty any more.
    fn drain<W>(&self, patience: &mut Patience<W>, tried: &str) -> Result<(), Error>
    where
        W: FnMut(DetachProgress) -> ControlFlow<()>,
    {
        loop {
            let dirty = self.attributes()?.size("dirty_data")?;
            let given_up = patience.ends(DetachProgress { dirty, phase: DetachPhase::Draining });
            // Being done counts more than being late.
            if dirty.is_zero() && given_up != Some(Kind::Cancelled) {
                return Ok(());
            }
            if let Some(kind) = given_up {
                return Err(patience
                    .error(kind, tried)
                    .with_answer(format!("{dirty} is still to be written; it stays attached")));
            }
            self.refuse_without_set(tried)?;
            sleep(STEP);
        }
    }

    /// Tells the kernel, which writes the state into the superblock and lets go of the set.
    fn let_go<W>(&self, patience: &mut Patience<W>, tried: &str) -> Result<(), Error>
    where
        W: FnMut(DetachProgress) -> ControlFlow<()>,
    {
        let attributes = self.attributes()?;
        attributes.write("detach", "1")?;
        loop {
            if self.set()?.is_none() && attributes.chosen("state", State::of_word)? == State::NoCache {
                return Ok(());
            }
            let dirty = attributes.size("dirty_data")?;
            if let Some(kind) = patience.ends(DetachProgress { dirty, phase: DetachPhase::Detaching }) {
                return Err(patience
                    .error(kind, tried)
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
        // The mode first: it waits for the superblock, and until then nothing is written out that was not before.
        if drain.attributes.chosen("cache_mode", CacheMode::of_word)? == CacheMode::WriteBack {
            drain.before.push(("cache_mode", CacheMode::WriteBack.as_word().to_owned()));
            drain.change("cache_mode", CacheMode::WriteThrough.as_word())?;
        }
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
        Ok(drain)
    }

    fn change(&self, name: &str, value: &str) -> Result<(), Error> {
        self.attributes.write(name, value).inspect_err(|_| drop(self.restore()))
    }

    fn end(self) -> Result<(), Error> {
        self.restore()
    }

    /// All of it, the last change first, even if one cannot be restored; the first error counts. A device that has gone needs
    /// nothing.
    fn restore(&self) -> Result<(), Error> {
        let all = self.before.iter().rev().map(|(name, value)| self.attributes.write(name, value));
        let failed = all.filter_map(Result::err).find(|error| error.kind() != Kind::NotFound);
        failed.map_or(Ok(()), Err)
    }
}
