//! A handle of the library on the disks of one test, with directories of its own.

use anyhow::Result;
use lvm::worker::conf::Activation;
use lvm::worker::host::HostSettings;
use lvm::{DevicePath, Lvm, LvmBuilder};

use crate::workers::worker_binary;
use crate::{Disk, Workers};

/// The library on one test's disks, and on nothing else of this machine.
#[derive(Debug)]
pub struct Handle {
    /// The handle.
    pub lvm: Lvm,
    // The directories live as long as the handle.
    workers: Workers,
}

impl Handle {
    /// A handle that changes metadata only, for machines without device-mapper.
    ///
    /// # Errors
    ///
    /// If there is no worker's binary, or no room for the directories.
    pub fn metadata_only(disks: &[&Disk]) -> Result<Self> {
        Self::with(disks, Activation::MetadataOnly, |builder| builder)
    }

    /// A handle that activates volumes, under udev.
    ///
    /// # Errors
    ///
    /// As [`Handle::metadata_only`].
    pub fn active(disks: &[&Disk]) -> Result<Self> {
        Self::with(disks, Activation::Udev, |builder| builder)
    }

    /// A handle with settings of the test's own.
    ///
    /// # Errors
    ///
    /// As [`Handle::metadata_only`].
    pub fn with(
        disks: &[&Disk],
        activation: Activation,
        settings: impl FnOnce(LvmBuilder) -> LvmBuilder,
    ) -> Result<Self> {
        Self::on(device_paths(disks)?, activation, settings)
    }

    /// A handle on devices of any kind.
    ///
    /// # Errors
    ///
    /// As [`Handle::metadata_only`].
    pub fn on(
        devices: impl IntoIterator<Item = DevicePath>,
        activation: Activation,
        settings: impl FnOnce(LvmBuilder) -> LvmBuilder,
    ) -> Result<Self> {
        let workers = Workers::new()?;
        let builder = Lvm::builder()
            .devices(devices)
            .activation(activation)
            .run_dir(workers.path("run"))
            .backup_dir(workers.path("backup"))
            .host(HostSettings { locking_dir: workers.path("lock"), ..HostSettings::default() })
            .worker(worker_binary()?);
        Ok(Self { lvm: settings(builder).build()?, workers })
    }

    /// The directories of this handle, for a second handle or pool on the same locks.
    #[must_use]
    pub const fn workers(&self) -> &Workers {
        &self.workers
    }
}

/// The paths of disks, as the library takes them.
///
/// # Errors
///
/// If a disk is unplugged.
pub fn device_paths(disks: &[&Disk]) -> Result<Vec<DevicePath>> {
    disks.iter().map(|disk| Ok(DevicePath::new(disk.path())?)).collect()
}
