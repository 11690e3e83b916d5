//! Mounts, by system calls alone: no program is run, and nothing is written to `/run/mount` or `/etc/mtab`.
//!
//! * [`MountTable`] is the kernel's table, read right: escapes, deleted roots, stacked mounts, many thousand lines.
//! * [`Target`] is a place for a mount that cannot be moved away under us by a rename or a symbolic link.
//! * [`mount()`], [`bind`], [`bind_device`], [`unmount`] change the table. Each may be repeated: what is so already
//!   is no error, and what is something else is refused and never covered.
//!
//! ```no_run
//! use devices::mount::{self, Access, MountOptions, Target};
//!
//! let staged = Target::new("/srv/staging/db".as_ref())?;
//! staged.make_directory()?;
//! mount::mount("/dev/data/db".as_ref(), "ext4", &MountOptions::new(), &staged)?;
//! let shown = Target::new("/srv/reports/db".as_ref())?;
//! shown.make_directory()?;
//! mount::bind("/srv/staging/db".as_ref(), Access::ReadOnly, &shown)?;
//! # Ok::<(), devices::Error>(())
//! ```

mod attach;
mod change;
mod detach;
mod entry;
mod options;
mod table;
mod target;

#[cfg(feature = "filesystem")]
pub(crate) use attach::detached;
pub use attach::{bind, bind_device, bind_open, bind_with, mount};
pub use change::{Spread, remount, set_access, set_propagation};
pub use detach::{Unmounted, WhenBusy, unmount, unmount_device};
pub use entry::{Access, Mount, MountId, Propagation, RootState};
pub use options::MountOptions;
pub use table::{MalformedTable, MountTable};
pub use target::{Present, Target};
