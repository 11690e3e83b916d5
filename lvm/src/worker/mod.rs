//! The worker processes that hold liblvm2cmd.
//!
//! liblvm2cmd keeps its state in the process, is not safe for threads and can crash, so it lives in
//! `gabion-lvm-worker`, a small program that a [`Pool`] starts when there is something to do.
//!
//! ```text
//!  callers' threads            one thread a worker             one process a worker
//!
//!  run() ──┐                 ┌─ keeper ── socket ── gabion-lvm-worker ── liblvm2cmd
//!  run() ──┼── state ────────┤                                        └─ libdevmapper
//!  run() ──┘  queues,        └─ keeper ── socket ── gabion-lvm-worker
//!             quarantines
//! ```
//!
//! A caller puts its job into the state and waits there, until its deadline. A keeper takes jobs from the state, hands
//! each to its worker and stays with it to its end, whoever still waits. A worker that dies closes its group, and the
//! next caller has it recovered ([`Recover`]).

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
pub use pool::{Pool, PoolBuilder, Quarantined, Recover, StillClosed};
