//! Block devices of this host.
//!
//! At present this crate holds the unit types that every Gabion library shares (sizes that say what they
//! count, and the numbers that name a device to the kernel), the list of block devices, and loop devices.
//! Eligibility, partitions, wiping, filesystems and mounts build on them.
//!
//! ```
//! use devices::{Bytes, Sectors};
//!
//! let size: Bytes = "1.5GiB".parse()?;
//! assert_eq!(size.get(), 1_610_612_736);
//! assert_eq!(Sectors::try_from(size)?.get(), 3_145_728);
//! # Ok::<(), devices::SizeError>(())
//! ```

#![deny(unsafe_code)]

mod block;
mod change;
mod devno;
#[cfg(feature = "discard")]
mod discard;
#[cfg(feature = "gpt")]
mod disk_ioctl;
mod error;
mod failure;
#[cfg(feature = "gpt")]
pub mod gpt;
#[cfg(feature = "loop")]
mod ioctl;
#[cfg(feature = "loop")]
pub mod loopdev;
#[cfg(feature = "mount")]
pub mod mount;
mod size;
#[cfg(feature = "mount")]
mod syscall;

pub use block::{BlockDevice, ListError, Mapped};
pub use change::Change;
pub use devno::{DeviceNumber, ParseDeviceNumberError};
#[cfg(feature = "discard")]
pub use discard::discard;
pub use error::{Error, Kind};
pub use failure::{Effect, Failure};
pub use size::{Bytes, Sectors, SizeError};
