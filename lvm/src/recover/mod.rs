//! Bringing a group back in order whose worker died in the middle of a command.
//!
//! A command of LVM is not atomic: killed at the wrong moment it leaves devices suspended, tables loaded that were
//! never committed, and volumes that were never wiped. Running the next command over that can wedge a thin pool for
//! good, so a group whose worker died is closed until its recovery has ended:
//!
//! 1. under the group's lock, inactive tables are dropped, metadata of suspended pools get their committed size back,
//!    only then are suspended devices resumed, and devices that nobody needs removed; a thin pool forgets the device of an interrupted create;
//! 2. what differs from the committed metadata is loaded anew;
//! 3. every live table is [compared](compare()) with the committed metadata;
//! 4. what was never completed is removed, never adopted;
//! 5. what is committed is flushed to the disks;
//! 6. udev cookies of dead workers are removed.

mod compare;
mod cookie;
mod expected;
mod graph;
mod grown;
mod handle;
mod host;
mod live;
mod lock;
mod made;
mod order;
mod report;
#[cfg(test)]
mod tests;

pub use compare::{Difference, compare};
pub use cookie::maker_group;
pub use host::Recoverer;
pub use live::{LiveDevice, live_devices};
pub use report::{GroupResult, Recovered, Step};
