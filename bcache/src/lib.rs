//! bcache as a safe library: a fast device caches slow ones.
//!
//! ```text
//!   /dev/bcache0   /dev/bcache1        what is used: numbers change with every boot
//!        |              |
//!     Backing        Backing           found by uuid ([`Bcache`], sysfs)
//!        |    \      /  |
//!        |    CacheSet  |              one set, many backing devices
//!        |       |      |
//!     /dev/sdb  nvme  /dev/sdc         superblocks ([`Superblock`]), written once ([`NewBacking`], [`NewCache`])
//! ```
//!
//! Four rules hold everywhere:
//!
//! * A device is formatted **once**. Only a [`Blank`] can be formatted, and what has a bcache superblock is never blank.
//! * What is dirty exists only on the cache. Nothing here gives it up, and a backing device whose cache set is missing while
//!   it is dirty is never forced to run.
//! * In write-back mode no write passes the cache by ([`Backing::keep_in_cache`] says why): the kernel's thresholds are set so
//!   at each registration, unless a caller wants it otherwise.
//! * Everything is found by uuid; `bcacheN` numbers and device names are looked up anew each time.
//!
//! Superblocks are read and written here, everything else goes through sysfs: no program of bcache-tools is needed.

#![forbid(unsafe_code)]

mod adopt;
mod approximate;
mod attribute;
mod backing;
mod blank;
mod bypass;
mod checksum;
mod detach;
mod device;
mod error;
mod format;
mod grow;
mod host;
mod knob;
mod label;
mod loss;
mod mode;
mod replace;
mod retire;
mod set;
mod statistics;
mod stop;
pub mod superblock;
mod twin;
mod uuid;
mod wait;

pub use adopt::{Adopted, Outcome};
pub use approximate::{Approximate, ParseApproximateError};
pub use backing::{Backing, Status};
pub use blank::Blank;
pub use checksum::checksum;
pub use detach::{DetachPhase, DetachProgress};
pub use devices::Change;
pub use error::{Error, Kind};
pub use format::{DEFAULT_BUCKET, DEFAULT_DATA_OFFSET, NewBacking, NewCache};
pub use grow::Room;
pub use host::{Bcache, Registered};
pub use knob::{Knob, Knobs, Percent, SetKnob, SetStatus, Writeback};
pub use label::{Label, ParseLabelError};
pub use loss::Loss;
pub use mode::{CacheMode, OnError, ReadaheadPolicy, Replacement, State, StopPolicy, WriteCache};
pub use set::{CacheDevice, CacheSet};
pub use statistics::{Statistics, Window};
pub use superblock::{Role, Superblock, SuperblockError};
pub use uuid::{ParseUuidError, Uuid};
