//! Volumes in device classes: by the agent where one runs, else by this process, with the same locks.

mod apply;
mod list;
mod seen;
mod served;
mod storage;
mod volume;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use volumes::Owner;
use volumes::class::DeviceClass;

use crate::cli::Place;

pub(crate) use apply::run as run_class;
pub(crate) use list::{show_classes, show_snapshots, show_volumes};
pub(crate) use volume::{clone, create, delete, grow, mount, snapshot, unmount};

impl Place {
    /// Whose volumes these are.
    pub(crate) fn owner(&self) -> Result<Owner> {
        self.owner.clone().map_or_else(owner_of_this_host, Ok)
    }
}

/// The classes as a file has them.
pub(crate) fn in_file(path: &Path) -> Result<Vec<DeviceClass>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the device classes from {}", path.display()))?;
    Ok(DeviceClass::parse_all(&text)?)
}

/// The machine's id, which owns volumes where nobody else is named.
pub(crate) fn owner_of_this_host() -> Result<Owner> {
    line("/etc/machine-id")?.parse().context("taking the machine's id as the owner")
}

/// What the node is called where nobody says otherwise.
pub(crate) fn name_of_this_host() -> Result<String> {
    line("/proc/sys/kernel/hostname")
}

/// The one line of a file.
fn line(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    Ok(text.trim_end().to_owned())
}
