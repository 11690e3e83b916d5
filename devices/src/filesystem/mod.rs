//! Filesystems: found, made, checked, grown, given a new uuid, frozen, trimmed and measured; and their project quotas.
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

mod check;
mod claim;
mod clone;
mod grow;
mod kind;
mod make;
mod mounted;
mod options;
mod quota;
mod scratch;
mod tool;

pub use check::{Checked, Depth, check};
pub use claim::{Blank, Found, detect};
pub use clone::set_uuid;
pub use grow::{grow_mounted, grow_unmounted};
pub use kind::FsType;
pub use make::{Format, Record, State, ensure};
pub use mounted::{Frozen, Inodes, Usage, thaw, trim, usage};
pub use options::MakeOptions;
pub use quota::{
    Project, ProjectLimits, ProjectQuotas, ProjectUsage, QuotaState, project_of, project_of_open,
    set_project, set_project_of_open,
};
pub use uuid::Uuid;
