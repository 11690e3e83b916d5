//! bcache as a safe library.
//!
//! The crate holds its place in the workspace: superblocks, registration and the sysfs interface come here.

#![forbid(unsafe_code)]
