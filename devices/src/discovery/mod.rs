//! Which block devices this host has, and what each of them is.
//!
//! Sysfs tells the truth of the moment; udevd's notes add the links and names that it knows, where it runs. Nothing is
//! opened, so nothing can hang.
//!
//! ```no_run
//! use devices::discovery::Discovery;
//!
//! for disk in &Discovery::host().inventory()? {
//!     println!("{} {} {:?}", disk.path.display(), disk.size, disk.key());
//! }
//! # Ok::<(), devices::Error>(())
//! ```

mod disk;
mod identity;
mod inventory;
#[cfg(test)]
pub(crate) mod made_up;
mod mapped;
mod sysfs;
#[cfg(test)]
mod tests;
mod transport;
mod udev;
mod users;

use std::path::PathBuf;

pub use disk::{Array, BackingFile, Disk, DiskType, Partition, Zoned};
pub use identity::{Identity, IdentityKey};
pub use inventory::Inventory;
pub use mapped::Purpose;
pub use transport::Transport;
pub use udev::Udev;

use crate::Error;

/// Where the kernel and udevd show what they know; [`Discovery::host`] for this very system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    sys: PathBuf,
    dev: PathBuf,
    udev_data: PathBuf,
    proc: PathBuf,
}

impl Default for Discovery {
    fn default() -> Self {
        Self::host()
    }
}

impl Discovery {
    /// This system, at the usual places.
    #[must_use]
    pub fn host() -> Self {
        Self::below("/")
    }

    /// The system whose `sys`, `dev`, `proc` and `run` are in this directory: a host's, seen from a container, or one
    /// that is made up.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            sys: root.join("sys"),
            dev: root.join("dev"),
            udev_data: root.join("run/udev/data"),
            proc: root.join("proc"),
        }
    }

    /// The same, with the directory of device nodes at another place.
    #[must_use]
    pub fn with_dev(mut self, dev: impl Into<PathBuf>) -> Self {
        self.dev = dev.into();
        self
    }

    /// All block devices, and what uses them.
    ///
    /// A device that goes away meanwhile is left out.
    ///
    /// # Errors
    ///
    /// When sysfs or the table of mounts cannot be read.
    pub fn inventory(&self) -> Result<Inventory, Error> {
        Inventory::read(self)
    }

    /// The kernel's names of all block devices, sorted.
    ///
    /// # Errors
    ///
    /// When sysfs cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let class_dir = self.class_dir();
        let failed =
            |cause| Error::system(format!("list the block devices in {}", class_dir.display()), cause);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&class_dir).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// One device by the kernel's name; `None` when there is no such device now.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<Disk> {
        Disk::read(&self.class_dir(), name, &self.dev, &self.udev_data)
    }

    fn class_dir(&self) -> PathBuf {
        self.sys.join("class/block")
    }
}
