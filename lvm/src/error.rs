//! What can go wrong, and what it left behind.

use std::fmt;
use std::time::Duration;

use devices::Failure;

use crate::run::LogRecord;

pub use devices::Effect;

/// Which space ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Space {
    /// Extents of the group, or data blocks of a thin pool.
    Data,
    /// The group's metadata area, or a thin pool's metadata volume.
    Metadata,
    /// Distinct PVs for the legs of a RAID volume or for stripes.
    Legs,
}

/// What failed, in the terms a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The PV, group or volume does not exist.
    NotFound,
    /// A PV, group or volume of that name exists.
    AlreadyExists,
    /// Not enough space of the kind told.
    NoSpace(Space),
    /// The volume is open or has holders.
    InUse,
    /// Another command holds the group's lock, or an earlier one still runs.
    Busy,
    /// The request itself cannot be right.
    InvalidArgument,
    /// The group lacks a PV.
    MissingPv,
    /// The thing is not ours, so it was not touched.
    Foreign,
    /// This kernel or this LVM cannot do it.
    Unsupported,
    /// Metadata contradicts itself, its checksum, or the kernel's tables.
    Inconsistent,
    /// A device or a file did not answer.
    Io,
    /// The worker died.
    Crashed,
    /// The deadline passed; the command goes on.
    TimedOut,
    /// LVM said no for a reason of its own.
    Other,
}

impl Kind {
    /// Every kind, each space of its own.
    pub const ALL: [Self; 16] = [
        Self::NotFound,
        Self::AlreadyExists,
        Self::NoSpace(Space::Data),
        Self::NoSpace(Space::Metadata),
        Self::NoSpace(Space::Legs),
        Self::InUse,
        Self::Busy,
        Self::InvalidArgument,
        Self::MissingPv,
        Self::Foreign,
        Self::Unsupported,
        Self::Inconsistent,
        Self::Io,
        Self::Crashed,
        Self::TimedOut,
        Self::Other,
    ];

    /// A lasting word for programs: `not-found`, `no-space-legs`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::NoSpace(Space::Data) => "no-space-data",
            Self::NoSpace(Space::Metadata) => "no-space-metadata",
            Self::NoSpace(Space::Legs) => "no-space-legs",
            Self::InUse => "in-use",
            Self::Busy => "busy",
            Self::InvalidArgument => "invalid-argument",
            Self::MissingPv => "missing-pv",
            Self::Foreign => "foreign",
            Self::Unsupported => "unsupported",
            Self::Inconsistent => "inconsistent",
            Self::Io => "io",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed-out",
            Self::Other => "other",
        }
    }
}

/// A failed operation on LVM: what was tried, on what, what the system answered, and what to do next.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    failure: Failure<Kind>,
    records: Vec<LogRecord>,
    elapsed: Option<Duration>,
}

impl Error {
    /// An error without effect; `tried` names the act and its object, in the infinitive.
    pub fn new(kind: Kind, tried: impl Into<String>) -> Self {
        let failure = Failure::new(kind, tried);
        Self { inner: Box::new(Inner { failure, records: Vec::new(), elapsed: None }) }
    }

    fn with(mut self, change: impl FnOnce(Failure<Kind>) -> Failure<Kind>) -> Self {
        self.inner.failure = change(self.inner.failure);
        self
    }

    /// Adds what the operation left behind.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        self.with(|failure| failure.with_effect(effect))
    }

    /// Adds what the system answered.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<String>) -> Self {
        self.with(|failure| failure.with_answer(answer))
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        self.with(|failure| failure.with_advice(advice))
    }

    /// Adds LVM's own lines about this command.
    #[must_use]
    pub fn with_records(mut self, records: Vec<LogRecord>) -> Self {
        self.inner.records = records;
        self
    }

    /// Adds how long the command took.
    #[must_use]
    pub fn with_elapsed(mut self, elapsed: Duration) -> Self {
        self.inner.elapsed = Some(elapsed);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.with(|failure| failure.with_source(source))
    }

    /// The failure itself, without LVM's own lines.
    #[must_use]
    pub fn failure(&self) -> &Failure<Kind> {
        &self.inner.failure
    }

    /// What failed.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.inner.failure.kind()
    }

    /// What it left behind; a group where that is unknown is quarantined until recovery has looked.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.inner.failure.effect()
    }

    /// What was tried, on what.
    #[must_use]
    pub fn tried(&self) -> &str {
        self.inner.failure.tried()
    }

    /// What the system answered.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.inner.failure.answer()
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.inner.failure.advice()
    }

    /// LVM's own lines about the failed command, oldest first.
    #[must_use]
    pub fn records(&self) -> &[LogRecord] {
        &self.inner.records
    }

    /// How long the command ran, where one did.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        self.inner.elapsed
    }
}

/// One line: what was tried, the answer, the advice. `{:#}` adds every line that LVM wrote.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner.failure)?;
        if f.alternate() {
            for record in &self.inner.records {
                write!(f, "\n  {record}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}: {self:#}", self.kind(), self.effect())?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.inner.failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_tells_the_whole_story_in_one_line() {
        let error = Error::new(Kind::NoSpace(Space::Data), "create volume data/db")
            .with_answer("group data has 3 of the 5 extents needed")
            .with_advice("add a disk to the group");
        assert_eq!(
            error.to_string(),
            "could not create volume data/db: group data has 3 of the 5 extents needed; add a disk to the group"
        );
        assert_eq!(error.effect(), Effect::None);
    }

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> = Kind::ALL.into_iter().map(Kind::as_word).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }

    #[test]
    fn the_cause_is_in_the_chain_and_not_in_the_text() {
        let cause = std::io::Error::other("the disk said no");
        let error = Error::new(Kind::Io, "read /dev/sda").with_source(cause);
        assert_eq!(error.to_string(), "could not read /dev/sda");
        assert!(format!("{error:?}").contains("the disk said no"));
    }
}
