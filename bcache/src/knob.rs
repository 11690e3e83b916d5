//! What can be turned on a backing device and on a cache set.

use std::time::Duration;

use devices::{Bytes, Sectors};

use crate::{
    Approximate, Backing, CacheMode, CacheSet, Error, Kind, Label, OnError, ReadaheadPolicy, StopPolicy,
};

/// A share of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// A share from 0 to 100; `None` above.
    #[must_use]
    pub const fn new(share: u8) -> Option<Self> {
        if share <= 100 { Some(Self(share)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl std::str::FromStr for Percent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let share = text.parse().ok().and_then(Self::new);
        share.ok_or_else(|| {
            Error::new(Kind::InvalidArgument, format!("take {text:?} for a percentage"))
                .with_answer("it is no whole number from 0 to 100")
        })
    }
}

/// Whether dirty blocks are written to the backing device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writeback {
    /// They are.
    Running,
    /// They wait.
    Paused,
}

/// A change of one thing on a backing device.
///
/// The mode and the label are kept in the superblock; everything else is the kernel's default again after the next
/// registration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Knob {
    /// What its cache does with writes. From [`CacheMode::WriteBack`] to another mode what is dirty stays dirty for a while;
    /// to it, [`Backing::keep_in_cache`] comes first.
    Mode(CacheMode),
    /// Its label.
    Label(Label),
    /// Longer sequential reads and writes than this go past the cache; zero for never. Counted in bytes; the kernel begins
    /// with 4 MiB, we with zero in write-back mode. There a write that goes past the cache can undo an older, acknowledged
    /// one when the power fails in that moment: [`Backing::keep_in_cache`].
    SequentialCutoff(Bytes),
    /// How much of the cache may be dirty: the rate of writing out is governed so. Zero writes out at full speed. 40 at most.
    WritebackPercent(Percent),
    /// How fast is written out, per second, until the governor changes it within 5 seconds (it does not at zero percent).
    WritebackRate(Sectors),
    /// The slowest rate that the governor takes, per second.
    WritebackRateMinimum(Sectors),
    /// How long dirty blocks gather before they are written out; whole seconds.
    WritebackDelay(Duration),
    /// Whether they are written out at all.
    Writeback(Writeback),
    /// Whether what was only read ahead is cached.
    Readahead(ReadaheadPolicy),
    /// What happens to the device when its cache set fails.
    StopPolicy(StopPolicy),
    /// After how many errors the device is stopped.
    IoErrorLimit(u32),
}

/// What is set on a backing device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Knobs {
    /// What its cache does with writes.
    pub mode: CacheMode,
    /// Longer sequential reads and writes than this go past the cache.
    pub sequential_cutoff: Approximate,
    /// How much of the cache may be dirty.
    pub writeback_percent: Percent,
    /// How fast is written out now, in bytes per second; nothing while it is paused.
    pub writeback_rate: Approximate,
    /// The slowest rate, per second.
    pub writeback_rate_minimum: Sectors,
    /// How long dirty blocks gather.
    pub writeback_delay: Duration,
    /// Whether they are written out at all.
    pub writeback: Writeback,
    /// Whether what was only read ahead is cached; `None` where the kernel has no such knob.
    pub readahead: Option<ReadaheadPolicy>,
    /// What happens to the device when its cache set fails.
    pub stop_policy: StopPolicy,
    /// After how many errors the device is stopped.
    pub io_error_limit: u32,
}

/// The most that the kernel takes for [`Knob::WritebackPercent`]; more it would cut silently.
const MOST_DIRTY: u8 = 40;

impl Backing {
    /// Turns one knob.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] outside of what the kernel takes, [`Kind::Unsupported`] where it has no such knob,
    /// [`Kind::NotFound`] when the device is not registered any more, [`Kind::Io`].
    pub fn turn(&self, knob: &Knob) -> Result<(), Error> {
        let (name, value) = knob.attribute();
        if let Knob::WritebackPercent(percent) = knob
            && percent.get() > MOST_DIRTY
        {
            let tried = format!("let {} percent of the cache be dirty", percent.get());
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("the kernel takes {MOST_DIRTY} at most")));
        }
        let attributes = self.attributes()?;
        if attributes.optional(name)?.is_none() {
            return Err(Error::new(
                Kind::Unsupported,
                format!("set {name} of the backing device {}", self.uuid()),
            )
            .with_answer("this kernel has no such attribute"));
        }
        if matches!(knob, Knob::Mode(CacheMode::WriteBack)) {
            let _ = self.close_bypasses(self.set()?.as_ref())?;
        }
        attributes.write(name, &value)
    }

    /// What is set now.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the device is not registered any more, [`Kind::Unsupported`], [`Kind::Io`].
    pub fn knobs(&self) -> Result<Knobs, Error> {
        let attributes = self.attributes()?;
        let readahead = match attributes.optional("readahead_cache_policy")? {
            Some(_) => Some(attributes.chosen("readahead_cache_policy", ReadaheadPolicy::of_word)?),
            None => None,
        };
        Ok(Knobs {
            mode: attributes.chosen("cache_mode", CacheMode::of_word)?,
            sequential_cutoff: attributes.size("sequential_cutoff")?,
            writeback_percent: attributes.value("writeback_percent")?,
            writeback_rate: attributes.text("writeback_rate")?.trim_end_matches("/sec").parse().map_err(
                |error: crate::ParseApproximateError| {
                    Error::new(Kind::Unsupported, "understand the rate of writing out").with_source(error)
                },
            )?,
            writeback_rate_minimum: Sectors::new(attributes.value("writeback_rate_minimum")?),
            writeback_delay: Duration::from_secs(attributes.value("writeback_delay")?),
            writeback: match attributes.value::<u32>("writeback_running")? {
                0 => Writeback::Paused,
                _ => Writeback::Running,
            },
            readahead,
            stop_policy: attributes.chosen("stop_when_cache_set_failed", StopPolicy::of_word)?,
            io_error_limit: attributes.value("io_error_limit")?,
        })
    }
}

impl Knob {
    /// The attribute and what is written to it.
    fn attribute(&self) -> (&'static str, String) {
        match self {
            Self::Mode(mode) => ("cache_mode", mode.as_word().into()),
            Self::Label(label) => ("label", label.as_str().into()),
            Self::SequentialCutoff(size) => ("sequential_cutoff", size.get().to_string()),
            Self::WritebackPercent(percent) => ("writeback_percent", percent.get().to_string()),
            Self::WritebackRate(rate) => ("writeback_rate", rate.get().to_string()),
            Self::WritebackRateMinimum(rate) => ("writeback_rate_minimum", rate.get().to_string()),
            Self::WritebackDelay(delay) => ("writeback_delay", delay.as_secs().to_string()),
            Self::Writeback(Writeback::Running) => ("writeback_running", "1".into()),
            Self::Writeback(Writeback::Paused) => ("writeback_running", "0".into()),
            Self::Readahead(policy) => ("readahead_cache_policy", policy.as_word().into()),
            Self::StopPolicy(policy) => ("stop_when_cache_set_failed", policy.as_word().into()),
            Self::IoErrorLimit(limit) => ("io_error_limit", limit.to_string()),
        }
    }
}

/// A change of one thing on a cache set. All are the kernel's default again after the next registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetKnob {
    /// Reads and writes go past a cache whose reads are slower than this; zero for never. Counted in microseconds; the
    /// kernel begins with 2 ms, we with zero where a device is in write-back mode ([`Backing::keep_in_cache`]).
    CongestedRead(Duration),
    /// Reads and writes go past a cache whose writes are slower than this; zero for never. Counted in microseconds; the
    /// kernel begins with 20 ms, we with zero where a device is in write-back mode ([`Backing::keep_in_cache`]).
    CongestedWrite(Duration),
    /// What the set does after too many errors.
    OnError(OnError),
    /// How many errors of the cache devices are too many.
    IoErrorLimit(u32),
    /// How long the journal may gather what is written to it; whole milliseconds.
    JournalDelay(Duration),
}

/// What is set on a cache set, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetStatus {
    /// Reads and writes go past a cache whose reads are slower than this.
    pub congested_read: Duration,
    /// Reads and writes go past a cache whose writes are slower than this.
    pub congested_write: Duration,
    /// What the set does after too many errors.
    pub on_error: OnError,
    /// How many errors of the cache devices are too many.
    pub io_error_limit: u32,
    /// How long the journal may gather what is written to it.
    pub journal_delay: Duration,
    /// How much of the cache has nothing dirty in it and can be used for something else.
    pub available: Percent,
    /// The size of a bucket.
    pub bucket_size: Approximate,
    /// The size of a block.
    pub block_size: Approximate,
    /// How much memory the set's index takes.
    pub index_memory: Approximate,
}

impl CacheSet {
    /// Turns one knob.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the set is not registered any more, [`Kind::Io`].
    pub fn turn(&self, knob: SetKnob) -> Result<(), Error> {
        let (name, value) = match knob {
            SetKnob::CongestedRead(time) => ("congested_read_threshold_us", time.as_micros().to_string()),
            SetKnob::CongestedWrite(time) => ("congested_write_threshold_us", time.as_micros().to_string()),
            SetKnob::OnError(what) => ("errors", what.as_word().to_owned()),
            SetKnob::IoErrorLimit(limit) => ("io_error_limit", limit.to_string()),
            SetKnob::JournalDelay(time) => ("journal_delay_ms", time.as_millis().to_string()),
        };
        self.attributes().write(name, &value)
    }

    /// What is set now, and how it is.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the set is not registered any more, [`Kind::Unsupported`], [`Kind::Io`].
    pub fn status(&self) -> Result<SetStatus, Error> {
        let attributes = self.attributes();
        let micros = |name| attributes.value(name).map(Duration::from_micros);
        Ok(SetStatus {
            congested_read: micros("congested_read_threshold_us")?,
            congested_write: micros("congested_write_threshold_us")?,
            on_error: attributes.chosen("errors", OnError::of_word)?,
            io_error_limit: attributes.value("io_error_limit")?,
            journal_delay: Duration::from_millis(attributes.value("journal_delay_ms")?),
            available: attributes.value("cache_available_percent")?,
            bucket_size: attributes.size("bucket_size")?,
            block_size: attributes.size("block_size")?,
            index_memory: attributes.size("btree_cache_size")?,
        })
    }
}
