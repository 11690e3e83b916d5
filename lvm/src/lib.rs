//! LVM2 as a safe, typed library.
//!
//! Reads never go through LVM: the metadata on the PVs ([`metadata`]) and the kernel's tables ([`dm`]) are read
//! natively. Commands run only to change something, in a small worker process that holds liblvm2cmd ([`worker`]).

#![deny(unsafe_code)]

pub mod autoextend;
mod builder;
pub mod classify;
mod command;
mod device_path;
pub mod dm;
mod durable;
mod error;
mod extent;
mod lvm;
pub mod metadata;
mod name;
#[cfg(feature = "tokio")]
pub mod nonblocking;
pub mod ops;
pub mod recover;
pub mod run;
mod scan;
pub mod thin_meta;
mod uuid;
pub mod worker;

pub use builder::LvmBuilder;
pub use device_path::DevicePath;
pub use error::{Effect, Error, Kind, Space};
pub use extent::{ExtentSize, Extents};
pub use lvm::{FillLimit, Lvm, MetadataSource, Settings};
pub use name::{LvName, NameError, Tag, VgName};
pub use scan::Candidates;
pub use uuid::{Uuid, UuidError};
