//! The metadata of a running pool, held while they are read.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use devices::DeviceNumber;

use super::{Device, Root, ThinMetadata};
use crate::dm::{Activity, Dm, DmUuid, HeldMetadata};
use crate::{Error, Kind, Uuid};

/// A running pool whose metadata are held as they were at one moment, until this is dropped.
///
/// The pool goes on meanwhile. It can hold one such state, so keep it short; what a process that died left held,
/// [`Dm::release_metadata`] releases. That a process lives tells the lock (`flock`) that it has on the node of the metadata.
#[derive(Debug)]
pub struct LivePool<'a> {
    // Let go before the lock on the node of the metadata, which the latter have open.
    held: HeldMetadata<'a>,
    metadata: ThinMetadata<Device>,
}

impl<'a> LivePool<'a> {
    /// Holds and opens the metadata of the active thin pool `lv` in group `vg`.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if the pool is not active; [`Kind::Busy`] if its metadata are held already, or a device
    /// of it is suspended so that reading would hang; [`Kind::Inconsistent`] if the metadata are damaged.
    pub fn hold(dm: &'a Dm, vg: &Uuid, lv: &Uuid) -> Result<Self, Error> {
        let pool = DmUuid::of_lvm(vg, lv, Some("tpool"));
        let tried = format!("read the metadata of thin pool {pool}");
        running(dm, dm.info(&pool)?.number, &tried)?;
        let device = open_metadata(dm, vg, lv, &tried)?
            .ok_or_else(|| Error::new(Kind::Busy, &*tried).with_answer("another program reads them"))?;
        let held = dm.hold_metadata(&pool)?;
        let metadata = ThinMetadata::read(device, Root::Held)?;
        Ok(Self { held, metadata })
    }

    /// The metadata as they were.
    #[must_use]
    pub fn metadata(&self) -> &ThinMetadata<Device> {
        &self.metadata
    }

    /// Lets the pool forget the held state.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or the pool has gone.
    pub fn release(self) -> Result<(), Error> {
        self.held.release()
    }
}

/// Has a pool forget the state that a process held which is no more; true if there was one. What a process that lives
/// reads stays held.
pub(crate) fn release_left(dm: &Dm, vg: &Uuid, lv: &Uuid) -> Result<bool, Error> {
    let pool = DmUuid::of_lvm(vg, lv, Some("tpool"));
    let tried = format!("release the held metadata of thin pool {pool}");
    // Locked until the end of this.
    match open_metadata(dm, vg, lv, &tried)? {
        Some(_locked) => dm.release_metadata(&pool),
        None => Ok(false),
    }
}

/// The metadata volume of a pool, opened and locked; `None` while another one has it locked.
fn open_metadata(dm: &Dm, vg: &Uuid, lv: &Uuid, tried: &str) -> Result<Option<Device>, Error> {
    let table = dm
        .pool_table(vg, lv)?
        .ok_or_else(|| Error::new(Kind::NotFound, tried).with_answer("the pool has no thin-pool table"))?;
    let node = running(dm, table.metadata, tried)?;
    let device = Device::open_number(&node, Some(table.metadata))?;
    Ok(device.lock(tried)?.then_some(device))
}

/// The node of a device-mapper device that is not suspended.
fn running(dm: &Dm, number: DeviceNumber, tried: &str) -> Result<PathBuf, Error> {
    let info = dm.info(number)?;
    if info.activity != Activity::Running {
        return Err(Error::new(Kind::Busy, tried)
            .with_answer(format!("{} is suspended, so that reading it would hang", info.name))
            .with_advice("try again; if it stays suspended, resume it"));
    }
    let node = PathBuf::from(format!("/dev/mapper/{}", info.name));
    let found = node.metadata().ok().map(|metadata| DeviceNumber::from_rdev(metadata.rdev()));
    if found == Some(number) {
        return Ok(node);
    }
    Err(Error::new(Kind::NotFound, tried)
        .with_answer(format!("{} is not device {number}", node.display()))
        .with_advice("see that udev runs and has made the nodes"))
}
