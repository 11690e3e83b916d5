//! What the exit code says.

use std::process::ExitCode;

use lvm::{Effect, Error, Kind};

/// How a run of the command ended; scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// An error of none of the kinds below.
    Other = 1,
    /// The command line cannot be right.
    Usage = 2,
    /// The group, pool, volume or device does not exist.
    NotFound = 3,
    /// It exists already.
    Exists = 4,
    /// Not enough space, metadata or disks.
    NoSpace = 5,
    /// In use, or another operation is under way.
    Busy = 6,
    /// Refused: it is not ours, or this system cannot do it.
    Refused = 7,
    /// Something is broken or missing.
    Degraded = 8,
    /// It could not be found out or done now; what it left behind may not be known.
    Unavailable = 9,
}

impl Exit {
    /// The code of an error from the library.
    pub(crate) fn of(error: &Error) -> Self {
        if error.effect() == Effect::Unknown {
            return Self::Unavailable;
        }
        match error.kind() {
            Kind::NotFound => Self::NotFound,
            Kind::AlreadyExists => Self::Exists,
            Kind::NoSpace(_) => Self::NoSpace,
            Kind::InUse | Kind::Busy => Self::Busy,
            Kind::InvalidArgument => Self::Usage,
            Kind::Foreign | Kind::Unsupported => Self::Refused,
            Kind::MissingPv | Kind::Inconsistent => Self::Degraded,
            Kind::Io | Kind::Crashed | Kind::TimedOut => Self::Unavailable,
            // `Other`, and what a later version of the library adds.
            _ => Self::Other,
        }
    }
}

impl Exit {
    /// The code of an error about a block device.
    pub(crate) fn of_device(error: &devices::Error) -> Self {
        if error.effect() == devices::Effect::Unknown {
            return Self::Unavailable;
        }
        match error.kind() {
            devices::Kind::NotFound => Self::NotFound,
            devices::Kind::AlreadyExists => Self::Exists,
            devices::Kind::NoSpace => Self::NoSpace,
            devices::Kind::InUse | devices::Kind::Busy => Self::Busy,
            devices::Kind::InvalidArgument => Self::Usage,
            devices::Kind::Foreign | devices::Kind::Unsupported => Self::Refused,
            devices::Kind::Inconsistent => Self::Degraded,
            devices::Kind::Io | devices::Kind::TimedOut => Self::Unavailable,
            // `Cancelled`, `Other`, and what a later version of the library adds.
            _ => Self::Other,
        }
    }
}

impl Exit {
    /// The code of an error about a volume of a class.
    pub(crate) fn of_volume(error: &volumes::Error) -> Self {
        if error.effect() == Effect::Unknown {
            return Self::Unavailable;
        }
        match error.kind() {
            volumes::Kind::NotFound => Self::NotFound,
            volumes::Kind::Exists => Self::Exists,
            volumes::Kind::NoSpace => Self::NoSpace,
            volumes::Kind::InUse | volumes::Kind::Busy => Self::Busy,
            volumes::Kind::InvalidArgument | volumes::Kind::OutOfRange => Self::Usage,
            volumes::Kind::Refused | volumes::Kind::FailedPrecondition => Self::Refused,
            volumes::Kind::Unavailable => Self::Unavailable,
            // `Internal`, and what a later version of the library adds.
            _ => Self::Other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code() {
        let codes: Vec<(&str, u8)> = Kind::ALL
            .into_iter()
            .map(|kind| (kind.as_word(), Exit::of(&Error::new(kind, "test")) as u8))
            .collect();
        let expected = [
            ("not-found", 3),
            ("already-exists", 4),
            ("no-space-data", 5),
            ("no-space-metadata", 5),
            ("no-space-legs", 5),
            ("in-use", 6),
            ("busy", 6),
            ("invalid-argument", 2),
            ("missing-pv", 8),
            ("foreign", 7),
            ("unsupported", 7),
            ("inconsistent", 8),
            ("io", 9),
            ("crashed", 9),
            ("timed-out", 9),
            ("other", 1),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn every_kind_of_error_about_a_device_has_its_code() {
        let codes: Vec<(&str, u8)> = devices::Kind::ALL
            .into_iter()
            .map(|kind| (kind.as_word(), Exit::of_device(&devices::Error::new(kind, "test")) as u8))
            .collect();
        let expected = [
            ("not-found", 3),
            ("already-exists", 4),
            ("no-space", 5),
            ("in-use", 6),
            ("busy", 6),
            ("invalid-argument", 2),
            ("foreign", 7),
            ("unsupported", 7),
            ("inconsistent", 8),
            ("io", 9),
            ("timed-out", 9),
            ("cancelled", 1),
            ("other", 1),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn every_kind_of_error_about_a_volume_has_its_code() {
        let codes: Vec<(&str, u8)> = volumes::Kind::ALL
            .into_iter()
            .map(|kind| (kind.as_word(), Exit::of_volume(&volumes::Error::new(kind, "test")) as u8))
            .collect();
        let expected = [
            ("not-found", 3),
            ("exists", 4),
            ("busy", 6),
            ("no-space", 5),
            ("invalid-argument", 2),
            ("out-of-range", 2),
            ("in-use", 6),
            ("refused", 7),
            ("failed-precondition", 7),
            ("unavailable", 9),
            ("internal", 1),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn an_unknown_effect_is_unavailable_whatever_failed() {
        for kind in Kind::ALL {
            let error = Error::new(kind, "test").with_effect(Effect::Unknown);
            assert_eq!(Exit::of(&error), Exit::Unavailable, "{kind:?}");
        }
    }
}
