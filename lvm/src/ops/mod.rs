//! What can be done to PVs, groups and volumes.
//!
//! Every operation looks at the metadata first, so that most refusals cost no command and have a typed reason, and
//! says in its result whether it [changed](Change) anything, so that repeating it is not an error.
//!
//! Commands of LVM are not atomic. What is made here carries the tag [`CREATING`] from its first commit until it is
//! complete (wiped, or checked to be empty); what still carries it after a crash is
//! [removed](Group::remove_unfinished), never used.

mod activate;
mod cache;
mod closed;
mod create;
mod extend;
mod group;
mod guard;
mod layout;
mod legs;
mod moving;
mod pool;
mod pool_size;
mod pool_state;
mod pv;
mod remove;
mod repair;
mod seen;
mod size;
mod snapshot;
mod thin;
mod volume;
mod wipe;
mod zero_thin;

pub(crate) use guard::Guard;
pub(crate) use seen::{Seen, is_marked, is_unfinished};

use crate::{Error, Kind, Tag};

pub use activate::Scrub;
pub use cache::{AfterDetach, CacheMode};
pub use devices::Change;
pub use extend::{Added, Extension};
pub use group::{Group, NewGroup};
pub use layout::{Integrity, Layout};
pub use moving::{MoveEnd, MoveProgress};
pub use pool::{NewPool, PoolSize};
pub use pv::{Allocation, NewPv, OldContent};
pub use remove::OnRemove;
pub use size::SizeRange;
pub use snapshot::NewSnapshot;
pub use thin::{ActivationSkip, NewThin, NewThinSnapshot, STALE};
pub use volume::{Content, NewVolume, Volume};

/// The tag of what is not complete yet. It counts on volumes that users see: LVM copies it to the hidden metadata volumes
/// of RAID legs, and leaves it there.
pub const CREATING: &str = "gabion.dev/creating";
/// The tag of a volume that was made to become a part of another one. While users see such a volume it is not complete;
/// as the part that it became it keeps the tag, since LVM does not change tags of a pool's metadata.
pub const PART: &str = "gabion.dev/part";
/// Refuses tags by which the library itself knows in which state a volume is: with them a caller could have a complete
/// volume removed as an unfinished one.
fn own_tags<'a>(tags: impl IntoIterator<Item = &'a Tag>, tried: &str) -> Result<(), Error> {
    let reserved = |tag: &&Tag| {
        let tag = tag.as_str();
        [CREATING, PART, STALE].contains(&tag) || tag.starts_with(extend::ZERO_FROM)
    };
    match tags.into_iter().find(reserved) {
        Some(tag) => Err(Error::new(Kind::InvalidArgument, tried)
            .with_answer(format!("the tag {tag} says in which state a volume is, and is not the caller's"))),
        None => Ok(()),
    }
}

/// The tag of a volume that is complete, and blank: it may be formatted.
pub const FS_NEW: &str = "gabion.dev/fs=new";
/// How every tag begins that says what filesystem is on a volume.
pub const FS_PREFIX: &str = "gabion.dev/fs=";
