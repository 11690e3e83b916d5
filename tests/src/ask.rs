//! What suites ask the LVM library for, and how it refuses, in few words.

use std::fmt::Debug;

use devices::Bytes;
use lvm::ops::{NewVolume, SizeRange};
use lvm::{Error, Kind, LvName};

/// A volume's name.
///
/// # Panics
///
/// If LVM takes no such name.
#[must_use]
pub fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// This size, or what the group's extents make of it.
#[must_use]
pub fn at_least(size: Bytes) -> SizeRange {
    SizeRange::at_least(size)
}

/// A linear volume.
///
/// # Panics
///
/// If LVM takes no such name.
#[must_use]
pub fn volume(name: &str, size: Bytes) -> NewVolume {
    NewVolume::new(lv(name), at_least(size))
}

/// The kind of a refusal, whose text is printed.
///
/// # Panics
///
/// If it was no refusal.
pub fn kind<T: Debug>(result: Result<T, Error>) -> Kind {
    match result {
        Ok(value) => panic!("it should have been refused, and gave {value:?}"),
        Err(error) => {
            println!("{error}");
            error.kind()
        }
    }
}
