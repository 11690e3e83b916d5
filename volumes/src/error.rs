//! What can go wrong with a volume, in the terms a caller can act on.

use std::fmt;
use std::io;

use devices::{Effect, Failure};

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The volume, snapshot or class does not exist.
    NotFound,
    /// A volume or snapshot of that id exists and is another one than asked for, or something else is mounted there.
    Exists,
    /// Another operation on the same volume or snapshot is under way. It was not queued.
    Busy,
    /// The pool has not enough room.
    NoSpace,
    /// The request itself cannot be right; the text names the field.
    InvalidArgument,
    /// The size asked for cannot be had between the caller's limits, or is below that of the source.
    OutOfRange,
    /// The volume is mounted, open, or the source of a copy that is not done.
    InUse,
    /// What is there is not ours, so it was not touched.
    Refused,
    /// The volume is not in a state in which this can be done, or its class cannot do it at all.
    FailedPrecondition,
    /// It may well work later: the pool misses a disk, a command is still running, or recovery goes on.
    Unavailable,
    /// A disk, the kernel or a tool failed.
    Internal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::NotFound,
        Self::Exists,
        Self::Busy,
        Self::NoSpace,
        Self::InvalidArgument,
        Self::OutOfRange,
        Self::InUse,
        Self::Refused,
        Self::FailedPrecondition,
        Self::Unavailable,
        Self::Internal,
    ];

    /// A lasting word for programs: `not-found`, `no-space`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::Busy => "busy",
            Self::NoSpace => "no-space",
            Self::InvalidArgument => "invalid-argument",
            Self::OutOfRange => "out-of-range",
            Self::InUse => "in-use",
            Self::Refused => "refused",
            Self::FailedPrecondition => "failed-precondition",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }
}

/// A failed operation on a volume: what was tried, on what, what the system answered, and what to do next.
///
/// ```
/// use volumes::{Error, Kind};
///
/// let error = Error::new(Kind::NotFound, "delete volume db").with_answer("no pool has it");
/// assert_eq!(error.kind(), Kind::NotFound);
/// assert_eq!(error.to_string(), "could not delete volume db: no pool has it");
/// ```
pub struct Error(Failure<Kind>);

impl Error {
    /// An error without effect; `tried` names the act and its object, in the infinitive.
    pub fn new(kind: Kind, tried: impl Into<String>) -> Self {
        Self(Failure::new(kind, tried))
    }

    /// A field of a request or of a class cannot be right. `field` is its path: `spec.pool.thin.chunkSize`.
    pub fn invalid(field: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::new(Kind::InvalidArgument, format!("take {field}")).with_answer(why.to_string())
    }

    /// What a system call answered to what was tried.
    pub fn system(tried: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let cause = cause.into();
        Self::new(Kind::Internal, tried).with_answer(cause.to_string()).with_source(cause)
    }

    /// Adds what the operation left behind.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Self(self.0.with_effect(effect))
    }

    /// Adds what the system answered.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<String>) -> Self {
        Self(self.0.with_answer(answer))
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        Self(self.0.with_advice(advice))
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(self.0.with_source(source))
    }

    /// What failed.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// What it left behind.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.0.effect()
    }

    /// What was tried, on what.
    #[must_use]
    pub fn tried(&self) -> &str {
        self.0.tried()
    }

    /// What the system answered.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.0.answer()
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.0.advice()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0)
    }
}

impl From<lvm::Error> for Error {
    fn from(error: lvm::Error) -> Self {
        let kind = match error.kind() {
            // What cannot be told yet is worth another try, whatever it looks like now.
            _ if error.effect() == Effect::Unknown => Kind::Unavailable,
            lvm::Kind::NotFound => Kind::NotFound,
            lvm::Kind::AlreadyExists => Kind::Exists,
            lvm::Kind::NoSpace(_) => Kind::NoSpace,
            lvm::Kind::InUse => Kind::InUse,
            lvm::Kind::InvalidArgument => Kind::InvalidArgument,
            lvm::Kind::Foreign => Kind::Refused,
            lvm::Kind::Unsupported => Kind::FailedPrecondition,
            lvm::Kind::Busy | lvm::Kind::MissingPv | lvm::Kind::Crashed | lvm::Kind::TimedOut => {
                Kind::Unavailable
            }
            _ => Kind::Internal,
        };
        Self(error.failure().told_as(kind).with_source(error))
    }
}

impl From<devices::Error> for Error {
    fn from(error: devices::Error) -> Self {
        let kind = match error.kind() {
            devices::Kind::AlreadyExists => Kind::Exists,
            devices::Kind::NoSpace => Kind::NoSpace,
            devices::Kind::InUse => Kind::InUse,
            devices::Kind::InvalidArgument => Kind::InvalidArgument,
            devices::Kind::Foreign => Kind::Refused,
            devices::Kind::Unsupported => Kind::FailedPrecondition,
            devices::Kind::Busy | devices::Kind::TimedOut | devices::Kind::Cancelled => Kind::Unavailable,
            _ => Kind::Internal,
        };
        let told = error.told_as(kind);
        // A system call's own word is the cause, which is not in the text.
        let cause = std::error::Error::source(&error).filter(|_| error.answer().is_none());
        let told = match cause.map(ToString::to_string) {
            Some(word) => told.with_answer(word),
            None => told,
        };
        Self(told.with_source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> = Kind::ALL.into_iter().map(Kind::as_word).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }

    #[test]
    fn what_the_libraries_below_say_is_kept() {
        let lower = lvm::Error::new(lvm::Kind::NoSpace(lvm::Space::Data), "create volume v/a")
            .with_answer("3 of 5 extents are free")
            .with_advice("add a disk");
        let text = lower.to_string();
        let error = Error::from(lower);
        assert_eq!((error.kind(), error.to_string()), (Kind::NoSpace, text));
        let unknown = lvm::Error::new(lvm::Kind::InUse, "remove v/a").with_effect(Effect::Unknown);
        assert_eq!(Error::from(unknown).kind(), Kind::Unavailable);
        let lower = devices::Error::system("mount /dev/a", io::Error::from_raw_os_error(5));
        assert!(Error::from(lower).to_string().contains("os error 5"));
    }
}
