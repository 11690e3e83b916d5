//! The thin shell that adapts [`volumes`] to CSI gRPC services and to Kubernetes objects.
//!
//! ```text
//!   kubelet, sidecars, csi-sanity
//!            │  one unix socket (Socket)
//!   Identity  Controller  GroupController  SnapshotMetadata  Node        Driver
//!                 │                          │             │
//!              Control ── one trait ─────────┘             │
//!                 │                                        │
//!               Local ─────────────────────────────────────┘
//!                 │
//!            volumes::Node
//! ```
//!
//! Each call looks at every field of its request first, and is refused by the code that the specification names before
//! anything was done. Then it is translated; nothing here knows what a volume is made of. A call runs in a thread of its
//! own to its end, also when its caller goes away. Secrets are never read, and never shown.
//!
//! [`Driver`] has an example. Not in here: storage, and what volumes are made of ([`volumes`]).

#![forbid(unsafe_code)]

mod calls;
mod check;
mod control;
mod controller;
mod deadline;
mod driver;
mod ending;
mod group;
mod health;
mod identity;
mod metadata;
pub mod names;
mod node;
mod page;
mod place;
pub mod proto;
mod socket;
mod status;
#[cfg(test)]
mod tests;

pub use control::{Control, Local};
pub use driver::{Alpha, Driver};
pub use place::Place;
pub use socket::{Endpoint, Socket};
pub use status::code;
