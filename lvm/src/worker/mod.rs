//! The worker processes that hold liblvm2cmd.
//!
//! liblvm2cmd keeps its state in the process, is not safe for threads and can crash, so it lives in
//! `gabion-lvm-worker`, a small program that a [`Pool`] starts when there is something to do.

mod calls;
pub mod conf;
mod cookie;

pub mod find;
pub mod frame;
pub mod host;
mod keeper;
pub mod line;
pub mod pool;
mod process;
mod state;
pub mod table;

pub use conf::Conf;
pub use pool::{Pool, PoolBuilder, Quarantined, Recover};
