//! Filesystems: found, made, checked, grown, given a new uuid, frozen, trimmed and measured.
//!
//! ```text
//!   owner's record   New ──────────► Formatting ──────────────────► Made(ext4)
//!                     │ claim O_EXCL      │ mkfs, then looked for         │ never made again
//!   device          blank             whatever a kill left            ext4, uuid as asked
//! ```
//!
//! A filesystem is made only through [`ensure`] or [`Blank::make`]: on a device that was claimed exclusively and
//! probed within the same claim. A device that cannot be read is an error, not a blank one.
//!
//! Not in here: what a volume is, and where its record is kept. Filesystems of other types are not handled, and
//! nothing is ever removed from a device (see the crate's wiping for that).

mod claim;
mod kind;
mod make;
mod options;
mod tool;

pub use claim::{Blank, Found, detect};
pub use kind::FsType;
pub use make::{Format, Record, State, ensure};
pub use options::MakeOptions;
pub use uuid::Uuid;
