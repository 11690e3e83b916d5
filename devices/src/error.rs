//! What can go wrong with a block device.

use std::io;

use crate::Failure;

/// What failed, in the terms a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The device, partition, file or program does not exist.
    NotFound,
    /// A partition, filesystem or mount of that name or at that place exists.
    AlreadyExists,
    /// The device, or each gap on it, is too small.
    NoSpace,
    /// The device is mounted, held, or open for someone else alone.
    InUse,
    /// Another operation on the device is under way.
    Busy,
    /// The request itself cannot be right.
    InvalidArgument,
    /// The device holds something that is not ours, or is not one that may be used, so it was not touched.
    Foreign,
    /// This kernel, this device or this program cannot do it.
    Unsupported,
    /// What is on the device contradicts itself or its checksum.
    Inconsistent,
    /// A device or a file did not answer, or refused.
    Io,
    /// The time given was not enough.
    TimedOut,
    /// The caller stopped it.
    Cancelled,
    /// Something else, which the answer tells.
    Other,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::NotFound,
        Self::AlreadyExists,
        Self::NoSpace,
        Self::InUse,
        Self::Busy,
        Self::InvalidArgument,
        Self::Foreign,
        Self::Unsupported,
        Self::Inconsistent,
        Self::Io,
        Self::TimedOut,
        Self::Cancelled,
        Self::Other,
    ];

    /// A lasting word for programs: `not-found`, `in-use`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::NoSpace => "no-space",
            Self::InUse => "in-use",
            Self::Busy => "busy",
            Self::InvalidArgument => "invalid-argument",
            Self::Foreign => "foreign",
            Self::Unsupported => "unsupported",
            Self::Inconsistent => "inconsistent",
            Self::Io => "io",
            Self::TimedOut => "timed-out",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }

    /// The kind of a system call's answer.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        // linux/errno.h: what the standard library has no kind for, or one that is not stable.
        const ENXIO: i32 = 6;
        const ENODEV: i32 = 19;
        const ENOTTY: i32 = 25;
        match error.raw_os_error() {
            Some(ENXIO | ENODEV) => return Self::NotFound,
            Some(ENOTTY) => return Self::Unsupported,
            _ => {}
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::AlreadyExists,
            io::ErrorKind::StorageFull => Self::NoSpace,
            io::ErrorKind::ResourceBusy => Self::InUse,
            io::ErrorKind::InvalidInput => Self::InvalidArgument,
            io::ErrorKind::Unsupported => Self::Unsupported,
            io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Io,
        }
    }
}

/// A failed operation on a block device: what was tried, on what, what the system answered, and what to do next.
///
/// ```
/// use devices::{Error, Kind};
///
/// let refused = std::io::Error::from_raw_os_error(16);
/// let error = Error::system("claim /dev/sdb", refused);
/// assert_eq!(error.kind(), Kind::InUse);
/// ```
pub type Error = Failure<Kind>;

impl Error {
    /// What a system call answered to what was tried; its kind is that of the answer.
    pub fn system(tried: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let cause = cause.into();
        Self::new(Kind::of(&cause), tried).with_source(cause)
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
    fn answers_of_the_kernel_have_their_kinds() {
        // linux/errno.h
        let answers = [
            (2, Kind::NotFound),
            (5, Kind::Io),
            (6, Kind::NotFound),
            (16, Kind::InUse),
            (17, Kind::AlreadyExists),
            (19, Kind::NotFound),
            (22, Kind::InvalidArgument),
            (25, Kind::Unsupported),
            (28, Kind::NoSpace),
            (95, Kind::Unsupported),
            (110, Kind::TimedOut),
        ];
        for (errno, kind) in answers {
            assert_eq!(Kind::of(&io::Error::from_raw_os_error(errno)), kind, "errno {errno}");
        }
    }

    #[test]
    fn a_refused_call_keeps_its_cause_out_of_the_text() {
        let error = Error::system("open /dev/sdb", io::Error::from_raw_os_error(5));
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Io, "could not open /dev/sdb"));
        assert!(std::error::Error::source(&error).is_some());
    }
}
