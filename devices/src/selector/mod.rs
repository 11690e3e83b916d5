//! Which devices somebody wants: by path, or by what they are.
//!
//! ```
//! use devices::Bytes;
//! use devices::discovery::Transport;
//! use devices::selector::{Match, Selector};
//!
//! let selector = Selector::new()
//!     .path("/dev/disk/by-id/nvme-eui.0025385b71b0a2c3")
//!     .matching(Match::new().transport(Transport::Sas).rotational(true).min_size(Bytes::gib(100)));
//! selector.check()?;
//! # Ok::<(), devices::Error>(())
//! ```
//!
//! # From Carina
//!
//! Carina's `diskSelector` has expressions that match any part of `/dev/NAME`; a name pattern here matches the whole NAME
//! and nothing else. So the expression can be taken over as it is, without `^`, `/dev/` and `$`, and takes less:
//!
//! | Carina's `re` | took | name pattern | takes |
//! |---|---|---|---|
//! | `sd[b-z]` | sdb, and sdb1, sdba, … | `sd[b-z]` | sdb to sdz |
//! | `sd[b-z]+` | sdb, sdbc, and their partitions | `sd[b-z]+` | sdb, sdbc |
//! | `loop2+` | loop2, loop22, and loop20, loop21, … | `loop2+` | loop2, loop22 |
//! | `loop2` | loop2, loop20, … | `loop2[0-9]*` | loop2, loop20, … |
//! | `nvme.+` | all NVMe, partitions too | `nvme[0-9]+n[0-9]+` | NVMe disks |
//! | an empty list | every disk of the host | | refused |
//!
//! A match without a name pattern takes whole disks without partitions only. Loop, md, device-mapper,
//! network and offered devices (zvols, ublk) are taken only when they are named: by their path, or by a pattern that begins with their kind (`loop2+`, `md[0-9]+`, `nbd.*`). `.*` takes none of them.

mod classes;
mod pattern;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use classes::{Class, ClassDisks, Contested, Selected, divide};
pub use pattern::Pattern;

use crate::discovery::{Disk, DiskType, Inventory, Transport};
use crate::eligibility::Chosen;
use crate::{Bytes, Error, Kind};

/// Which devices somebody wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    paths: Vec<PathBuf>,
    optional_paths: Vec<PathBuf>,
    matches: Vec<Match>,
}

/// What a device must be like; every property that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    name: Option<Pattern>,
    model: Option<Pattern>,
    serial: Option<Pattern>,
    wwn: Option<Pattern>,
    transport: Option<Transport>,
    rotational: Option<bool>,
    min_size: Option<Bytes>,
    max_size: Option<Bytes>,
}

impl Selector {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also the device at this path, which must exist.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Also the device at this path, where it exists.
    #[must_use]
    pub fn optional_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.optional_paths.push(path.into());
        self
    }

    /// Also every device that is like this.
    #[must_use]
    pub fn matching(mut self, wanted: Match) -> Self {
        self.matches.push(wanted);
        self
    }

    /// The paths that must exist.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The paths that are used where they exist.
    #[must_use]
    pub fn optional_paths(&self) -> &[PathBuf] {
        &self.optional_paths
    }

    /// Whether the selector can be meant.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] when it selects nothing, when one match has no property and would take every disk of the
    /// host, when a path is not absolute, or when a smallest size is above the largest.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |answer: String| {
            Err(Error::new(Kind::InvalidArgument, "use the device selector").with_answer(answer))
        };
        if self.paths.is_empty() && self.optional_paths.is_empty() && self.matches.is_empty() {
            return refuse("it has neither a path nor a match".to_owned());
        }
        if let Some(path) = self.paths.iter().chain(&self.optional_paths).find(|path| !path.is_absolute()) {
            return refuse(format!("{} is not an absolute path", path.display()));
        }
        for wanted in &self.matches {
            if *wanted == Match::default() {
                return refuse("a match without any property would take every disk".to_owned());
            }
            if let (Some(min), Some(max)) = (wanted.min_size, wanted.max_size)
                && min > max
            {
                return refuse(format!("the smallest size {min} is above the largest {max}"));
            }
        }
        Ok(())
    }

    /// How a device is selected, if it is; a path wins over a match. Paths are compared by where they lead.
    #[must_use]
    pub fn selects(&self, inventory: &Inventory, disk: &Disk) -> Option<Chosen> {
        let leads_here = |path: &PathBuf| leads_to(inventory, path, disk);
        if self.paths.iter().chain(&self.optional_paths).any(leads_here) {
            return Some(Chosen::ByName);
        }
        let mut chosen = None;
        for wanted in self.matches.iter().filter(|wanted| wanted.matches(disk)) {
            if wanted.names(inventory.whole(disk)) {
                return Some(Chosen::ByName);
            }
            // A partition has its disk's properties. Who wants a part of a disk says which.
            let is_divided = matches!(disk.kind, DiskType::Partition(_)) || !disk.partitions.is_empty();
            if !is_divided || wanted.name.is_some() {
                chosen = Some(Chosen::ByProperty);
            }
        }
        chosen
    }
}

fn leads_to(inventory: &Inventory, path: &Path, disk: &Disk) -> bool {
    inventory.at(path).is_ok_and(|found| found.number == disk.number)
}

impl Match {
    /// Without any property, which [`Selector::check`] refuses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The kernel's name of the device.
    #[must_use]
    pub fn name(mut self, pattern: Pattern) -> Self {
        self.name = Some(pattern);
        self
    }

    /// Its model.
    #[must_use]
    pub fn model(mut self, pattern: Pattern) -> Self {
        self.model = Some(pattern);
        self
    }

    /// Its serial number.
    #[must_use]
    pub fn serial(mut self, pattern: Pattern) -> Self {
        self.serial = Some(pattern);
        self
    }

    /// Its world-wide name.
    #[must_use]
    pub fn wwn(mut self, pattern: Pattern) -> Self {
        self.wwn = Some(pattern);
        self
    }

    /// How it is reached.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Whether its medium turns.
    #[must_use]
    pub fn rotational(mut self, rotational: bool) -> Self {
        self.rotational = Some(rotational);
        self
    }

    /// The least size.
    #[must_use]
    pub fn min_size(mut self, size: Bytes) -> Self {
        self.min_size = Some(size);
        self
    }

    /// The largest size.
    #[must_use]
    pub fn max_size(mut self, size: Bytes) -> Self {
        self.max_size = Some(size);
        self
    }

    /// Whether a device has every property that is given. What a device does not say of itself matches nothing.
    #[must_use]
    pub fn matches(&self, disk: &Disk) -> bool {
        let fits = |pattern: &Option<Pattern>, text: Option<&str>| match (pattern, text) {
            (None, _) => true,
            (Some(pattern), Some(text)) => pattern.matches(text),
            (Some(_), None) => false,
        };
        let identity = &disk.identity;
        fits(&self.name, Some(&disk.name))
            && fits(&self.model, identity.model.as_deref())
            && fits(&self.serial, identity.serial.as_deref())
            && fits(&self.wwn, identity.wwn.as_deref())
            && self.transport.is_none_or(|wanted| disk.transport == Some(wanted))
            && self.rotational.is_none_or(|wanted| disk.rotational == wanted)
            && self.min_size.is_none_or(|least| disk.size >= least)
            && self.max_size.is_none_or(|most| disk.size <= most)
    }

    /// Whether the name pattern is for devices of the kind of this whole disk.
    fn names(&self, whole: &Disk) -> bool {
        let kind = match &whole.kind {
            DiskType::Loop(_) => "loop",
            DiskType::Md(_) => "md",
            DiskType::Mapped(_) => "dm-",
            DiskType::Bcache => "bcache",
            DiskType::Network("aoe") => "etherd",
            DiskType::Network(driver) => driver,
            DiskType::Offered("zvol") => "zd",
            DiskType::Offered(by) => by,
            _ => return false,
        };
        self.name.as_ref().is_some_and(|name| name.begins_with(kind))
    }
}
