//! A disk that can die under its users, or become slow, and come back: a device-mapper device over one of the test's
//! disks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;

use crate::{Disk, tool};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A disk whose reads and writes can be made to fail, or its writes to take long.
#[derive(Debug)]
pub struct Faulty {
    name: String,
    path: PathBuf,
    sectors: u64,
    // Gone after the device above it.
    disk: Disk,
}

impl Faulty {
    /// A working disk over `disk`.
    ///
    /// # Errors
    ///
    /// If the device cannot be made.
    pub fn over(disk: Disk) -> Result<Self> {
        let name = format!("rig{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let sectors = disk.size()?.get() / devices::Sectors::SIZE;
        let table = format!("0 {sectors} linear {} 0", disk.path().display());
        tool::run("dmsetup", ["create", &name, "--table", &table])?;
        Ok(Self { path: PathBuf::from("/dev/mapper").join(&name), name, sectors, disk })
    }

    /// The disk below.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The device's node.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets every read and write fail from now on.
    ///
    /// # Errors
    ///
    /// If the table cannot be changed.
    pub fn fail(&self) -> Result<()> {
        self.table(&format!("0 {} error", self.sectors))
    }

    /// Lets every write fail from now on; reads give what is there.
    ///
    /// # Errors
    ///
    /// If the table cannot be changed, or this kernel has no dm-flakey.
    pub fn fail_writes(&self) -> Result<()> {
        tool::run("modprobe", ["-q", "dm-flakey"])?;
        self.table(&format!("0 {} flakey {} 0 0 1 1 error_writes", self.sectors, self.disk.path().display()))
    }

    /// Lets every write take so many milliseconds from now on; reads are as quick as before.
    ///
    /// # Errors
    ///
    /// If the table cannot be changed, or this kernel has no dm-delay.
    pub fn slow_writes(&self, milliseconds: u32) -> Result<()> {
        tool::run("modprobe", ["-q", "dm-delay"])?;
        let disk = self.disk.path().display();
        self.table(&format!("0 {} delay {disk} 0 0 {disk} 0 {milliseconds}", self.sectors))
    }

    /// Lets reads and writes work again, at once; the content is what it was.
    ///
    /// # Errors
    ///
    /// If the table cannot be changed.
    pub fn recover(&self) -> Result<()> {
        self.table(&format!("0 {} linear {} 0", self.sectors, self.disk.path().display()))
    }

    fn table(&self, table: &str) -> Result<()> {
        tool::run("dmsetup", ["load", &self.name, "--table", table])?;
        // Without flushing: what is in flight is to fail, or ends late, and does not keep the device waiting.
        tool::run("dmsetup", ["suspend", "--noflush", "--nolockfs", &self.name])?;
        tool::run("dmsetup", ["resume", &self.name]).map(drop)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        // A volume that a failed test left active holds the device; the kernel removes it at the last close.
        if let Err(error) = tool::run("dmsetup", ["remove", "--deferred", "--retry", &self.name]) {
            eprintln!("{}: {error:#}", self.name);
        }
    }
}
