//! Raw declarations of liblvm2cmd and of the used part of libdevmapper, and nothing else.
//!
//! `bindings.rs` is made from our own headers in `vendor-headers/` by `cargo xtask bindings` and committed, so that
//! a build needs neither libclang nor LVM's headers, only the two libraries to link with.
//!
//! liblvm2cmd is not safe for threads, keeps its state in the process (one log function, umask, locale, signal
//! handlers, memory locks) and crashes on some commands: it belongs into a process of its own. `gabion-lvm-worker`,
//! a binary of the package `gabion-lvm`, is that process; nothing else should link this crate.
//!
//! Calls take and return C values; which pointers may be null and who frees what is said in LVM's documentation
//! and, in short, beside each function.

#[allow(missing_docs, non_camel_case_types, unreachable_pub)]
mod bindings;

pub use bindings::*;
