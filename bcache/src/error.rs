//! What can go wrong with bcache.

use std::io;

use devices::{DeviceNumber, Failure};

/// What failed, in the terms a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The device, cache set or superblock does not exist.
    NotFound,
    /// The device has a bcache superblock: it was formatted before, and is never formatted again.
    AlreadyExists,
    /// The device is mounted, held, or open for someone else alone.
    InUse,
    /// The device is suspended, or bcache is still busy with it.
    Busy,
    /// The request itself cannot be right.
    InvalidArgument,
    /// The device is too small.
    NoSpace,
    /// The device holds something, or something else than expected, so it was not touched.
    Foreign,
    /// Blocks that exist only on a cache would be lost.
    Dirty,
    /// The cache set of the device is not there.
    CacheMissing,
    /// This kernel cannot do it.
    Unsupported,
    /// What is on the device contradicts itself or its checksum.
    Inconsistent,
    /// A device or a file did not answer, or refused.
    Io,
    /// The time given was not enough.
    TimedOut,
    /// The caller stopped it.
    Cancelled,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::NotFound,
        Self::AlreadyExists,
        Self::InUse,
        Self::Busy,
        Self::InvalidArgument,
        Self::NoSpace,
        Self::Foreign,
        Self::Dirty,
        Self::CacheMissing,
        Self::Unsupported,
        Self::Inconsistent,
        Self::Io,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// A lasting word for programs: `not-found`, `cache-missing`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::InUse => "in-use",
            Self::Busy => "busy",
            Self::InvalidArgument => "invalid-argument",
            Self::NoSpace => "no-space",
            Self::Foreign => "foreign",
            Self::Dirty => "dirty",
            Self::CacheMissing => "cache-missing",
            Self::Unsupported => "unsupported",
            Self::Inconsistent => "inconsistent",
            Self::Io => "io",
            Self::TimedOut => "timed-out",
            Self::Cancelled => "cancelled",
        }
    }

    /// The kind of a system call's answer.
    fn of(error: &io::Error) -> Self {
        // linux/errno.h: what the standard library has no stable kind for.
        const ENXIO: i32 = 6;
        const ENODEV: i32 = 19;
        if matches!(error.raw_os_error(), Some(ENXIO | ENODEV)) {
            return Self::NotFound;
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::ResourceBusy => Self::InUse,
            io::ErrorKind::InvalidInput => Self::InvalidArgument,
            io::ErrorKind::Unsupported => Self::Unsupported,
            _ => Self::Io,
        }
    }
}

/// A failed operation on bcache: what was tried, on what, what the system answered, and what to do next.
pub type Error = Failure<Kind>;

/// What a system call answered to what was tried.
pub(crate) fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let tried = tried.into();
    move |cause| Error::new(Kind::of(&cause), tried).with_answer(cause.to_string()).with_source(cause)
}

/// A device that nobody could open without sleeping until somebody else resumes it.
pub(crate) fn suspended(tried: impl Into<String>, number: DeviceNumber) -> Error {
    Error::new(Kind::Busy, tried)
        .with_answer(format!("the device-mapper device {number} is suspended"))
        .with_advice("resume it first")
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
    fn a_refused_call_tells_what_was_tried_and_what_the_kernel_said() {
        let error = system("claim /dev/sdb")(io::Error::from_raw_os_error(16));
        assert_eq!(error.kind(), Kind::InUse);
        assert!(error.to_string().starts_with("could not claim /dev/sdb: "), "{error}");
        assert_eq!(system("x")(io::Error::from_raw_os_error(19)).kind(), Kind::NotFound);
    }
}
