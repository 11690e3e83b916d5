//! What is found on this host: all groups, and what the kernel runs.

use std::sync::Arc;

use lvm::metadata::{Problem, Vg, View};
use lvm::{Candidates, Error, Kind};

use crate::live::Live;

/// The tag of what Gabion made or was given; nothing else is changed.
pub(crate) const OWNER: &str = "gabion";

/// Committed metadata and live devices, read one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) view: Arc<View>,
    pub(crate) live: Live,
}

impl Host {
    /// Reads all devices that may be PVs, and asks the kernel. No command runs, and no suspended device is opened.
    pub(crate) fn read() -> Result<Self, Error> {
        let here = Candidates::of_this_host()?;
        let mut view = lvm::metadata::read(here.devices, lvm::metadata::Options::default());
        let suspended = here.suspended.into_iter().map(|device| Problem::Suspended { device });
        Arc::make_mut(&mut view).problems.extend(suspended);
        Ok(Self { view, live: Live::read()? })
    }

    /// The group of this name.
    pub(crate) fn vg(&self, name: &str, tried: &str) -> Result<&Vg, Error> {
        let mut named = self.view.vgs_named(name);
        match (named.next(), named.next()) {
            (Some(vg), None) => Ok(vg),
            (Some(_), Some(_)) => Err(Error::new(Kind::Inconsistent, tried)
                .with_answer(format!("several groups are called {name}"))
                .with_advice("`gabion doctor` tells them apart; rename one by its uuid")),
            (None, _) => Err(Error::new(Kind::NotFound, tried)
                .with_answer(format!("there is no group {name} here"))
                .with_advice("`gabion pools` lists what there is")),
        }
    }
}
