//! What is on the disks of a node, told without changing any of it.

use std::sync::Arc;

use crate::pools::{self, Pools};
use crate::{Capacity, ClassName, Error, Repairs, Settings, Snapshot, Volume};

/// The classes, volumes and snapshots of this host as they are, for who only wants to know.
///
/// Where [`Node::open`](crate::Node::open) builds pools, repairs and activates, a survey writes to no disk, runs no command of LVM's,
/// changes no table of device-mapper's and takes no lock. What would have to be done first is told instead.
///
/// ```no_run
/// use volumes::class::DeviceClass;
/// use volumes::{Settings, Survey};
///
/// let classes = DeviceClass::parse_all(&std::fs::read_to_string("/etc/gabion/classes.yaml")?)?;
/// let (survey, told) = Survey::take(Settings::new("my-host".parse()?, classes))?;
/// println!("{} volumes; {told}", survey.volumes()?.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Survey {
    pools: Pools,
}

impl Survey {
    /// Looks at the disks of the classes. What it tells beside the survey repairs nothing: it names the classes that
    /// cannot be used now, also for want of a pool that was not made yet, and what belongs to no class.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) for classes that cannot be together;
    /// [`Kind::Internal`](crate::Kind::Internal) when the devices of the host cannot be listed.
    pub fn take(settings: Settings) -> Result<(Self, Repairs), Error> {
        crate::class::check_together(&settings.classes)?;
        let (pools, told) = pools::survey(&Arc::new(settings))?;
        Ok((Self { pools }, told))
    }

    /// Every volume that is complete, by id.
    ///
    /// # Errors
    ///
    /// When a pool cannot be read.
    pub fn volumes(&self) -> Result<Vec<Volume>, Error> {
        self.pools.volumes()
    }

    /// Every snapshot, by id.
    ///
    /// # Errors
    ///
    /// As [`Survey::volumes`].
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.pools.snapshots()
    }

    /// Room in a class, the default one where none is named. A class of which this node has no disk has none.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound) for a class that is not there;
    /// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) when there is no default;
    /// [`Kind::Unavailable`](crate::Kind::Unavailable) while the class cannot be used.
    pub fn capacity(&self, class: Option<&ClassName>) -> Result<Capacity, Error> {
        self.pools.capacity(class)
    }
}
