//! The guest runner: it runs commands inside the rig's virtual machine and reports to the host over a virtio-serial port.
//!
//! ```text
//!   host: cargo xtask vm/test/demo          guest: gabion-guest
//!   Machine ── Request (JSON) ────────────▶ one thread a command, its own control group
//!           ◀─ Output (bytes), Event (JSON) ─
//! ```
//!
//! [`protocol`] is shared by both sides; everything else is the guest's.
//!
//! ```
//! use guest::protocol::{Frame, Request};
//!
//! let mut wire = Vec::new();
//! Frame::Request(Request::Ping { id: 7 }).write(&mut wire).unwrap();
//! assert_eq!(Frame::read(&mut wire.as_slice()).unwrap(), Some(Frame::Request(Request::Ping { id: 7 })));
//! ```

pub mod cgroup;
pub mod disks;
pub mod kmsg;
pub mod leftovers;
pub mod protocol;
pub mod runner;
