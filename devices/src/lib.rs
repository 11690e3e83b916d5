//! Block devices of this host.
//!
//! Without features this crate holds the unit types that every Gabion library shares (sizes that say what they
//! count, and the numbers that name a device to the kernel) and the list of block devices. Each feature adds a part:
//!
//! * `discovery`: which devices there are, what they are, how they are stacked, what uses them, and what happens to them;
//! * `eligibility`: whether a device may be used, and why not; what is on it, by libblkid; selecting and claiming it;
//! * `mount`: the mount table, mounts and unmounts; `filesystem`: ext4, xfs and btrfs made, checked and grown;
//! * `loop`: loop devices; `discard`: giving blocks back.
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

#[cfg(any(feature = "eligibility", feature = "gpt"))]
mod alone;
mod block;
mod change;
#[cfg(feature = "eligibility")]
mod claim;
mod devno;
#[cfg(feature = "discard")]
mod discard;
#[cfg(feature = "discovery")]
pub mod discovery;
#[cfg(feature = "gpt")]
mod disk_ioctl;
#[cfg(feature = "eligibility")]
pub mod eligibility;
mod ends;
#[cfg(feature = "erase")]
pub mod erase;
mod error;
mod failure;
#[cfg(feature = "filesystem")]
pub mod filesystem;
#[cfg(feature = "gpt")]
pub mod gpt;
#[cfg(feature = "eligibility")]
mod held;
#[cfg(feature = "loop")]
mod ioctl;
#[cfg(feature = "eligibility")]
mod leftover;
#[cfg(feature = "loop")]
pub mod loopdev;
#[cfg(feature = "discovery")]
pub mod monitor;
#[cfg(feature = "mount")]
pub mod mount;
#[cfg(feature = "eligibility")]
pub mod probe;
#[cfg(feature = "filesystem")]
mod quota_call;
#[cfg(feature = "eligibility")]
pub mod selector;
mod size;
#[cfg(any(feature = "eligibility", feature = "gpt", feature = "loop"))]
mod stamp;
#[cfg(feature = "mount")]
mod syscall;

pub use block::{BlockDevice, ListError, Mapped};
pub use change::Change;
#[cfg(feature = "eligibility")]
pub use claim::Claim;
pub use devno::{DeviceNumber, ParseDeviceNumberError};
#[cfg(feature = "discard")]
pub use discard::discard;
pub use ends::{SIGNATURE_HEAD, SIGNATURE_TAIL, signature_ends};
pub use error::{Error, Kind};
pub use failure::{Effect, Failure};
pub use size::{Bytes, Sectors, SizeError};
