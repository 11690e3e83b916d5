//! Volumes in device classes: by the agent where one runs, else by this process, with the same locks.

mod apply;
mod list;
mod served;
mod storage;
mod volume;

use std::fs;

use anyhow::{Context, Result};
use volumes::Owner;
use volumes::class::DeviceClass;

use crate::cli::Place;

pub(crate) use apply::run as run_class;
pub(crate) use list::{show_classes, show_snapshots, show_volumes};
pub(crate) use volume::{clone, create, delete, grow, mount, snapshot, unmount};

impl Place {
    /// The classes as the file has them.
    pub(crate) fn classes(&self) -> Result<Vec<DeviceClass>> {
        let text = fs::read_to_string(&self.config)
            .with_context(|| format!("reading the device classes from {}", self.config.display()))?;
        Ok(DeviceClass::parse_all(&text)?)
    }

    /// Whose volumes these are.
    pub(crate) fn owner(&self) -> Result<Owner> {
        self.owner.clone().map_or_else(owner_of_this_host, Ok)
    }
}

/// The machine's id, which owns volumes where nobody else is named.
pub(crate) fn owner_of_this_host() -> Result<Owner> {
    let path = "/etc/machine-id";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    text.trim_end().parse().context("taking the machine's id as the owner")
}
