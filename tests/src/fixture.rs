//! Groups made through the library on disks of one test, and what is asked of them again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use devices::Bytes;
use lvm::dm::Dm;
use lvm::ops::{Group, NewGroup};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, VgName};

use crate::{Disk, Faulty, Handle, device_paths, workers};

/// A group `v` with its disks and its handle. What is active in it is deactivated when the test ends.
#[derive(Debug)]
pub struct Fixture {
    /// The group.
    pub group: Group,
    /// The handle that it was made with.
    pub handle: Handle,
    /// Its disks.
    pub disks: Vec<Disk>,
}

impl Fixture {
    /// A group on so many fresh disks.
    ///
    /// # Errors
    ///
    /// If a disk or the group cannot be made.
    pub fn new(disks: usize, size: Bytes) -> Result<Self> {
        Self::on(&vec![size; disks], |new| new)
    }

    /// A group on fresh disks of these sizes, made with what `settings` adds.
    ///
    /// # Errors
    ///
    /// If a disk or the group cannot be made.
    pub fn on(sizes: &[Bytes], settings: impl FnOnce(NewGroup) -> NewGroup) -> Result<Self> {
        let disks: Vec<Disk> = sizes.iter().map(|size| Disk::new(*size)).collect::<Result<_>>()?;
        let refs: Vec<&Disk> = disks.iter().collect();
        let handle = Handle::active(&refs)?;
        let new = settings(NewGroup::new(VgName::new("v")?, device_paths(&refs)?));
        let group = handle.lvm.create_group(&new)?.into_inner();
        Ok(Self { group, handle, disks })
    }

    /// The path of one of its disks.
    ///
    /// # Errors
    ///
    /// If the disk is unplugged.
    pub fn device(&self, index: usize) -> Result<DevicePath> {
        Ok(DevicePath::new(self.disks[index].path())?)
    }

    /// Runs words as one command of the same workers, for what no operation does.
    ///
    /// # Errors
    ///
    /// If LVM refused it.
    pub fn raw(&self, words: &[&str]) -> Result<Vec<String>> {
        workers::must(self.handle.lvm.workers().context("no pool")?, words)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Err(error) = self.group.deactivate() {
            eprintln!("deactivate: {error:#}");
        }
    }
}

/// A group `v` on disks that can fail.
#[derive(Debug)]
pub struct FaultyFixture {
    /// The group.
    pub group: Group,
    /// The handle that it was made with.
    // The handle's directories and the disks go after the group has been deactivated.
    pub handle: Handle,
    /// Its disks.
    pub disks: Vec<Faulty>,
}

impl FaultyFixture {
    /// A group on so many fresh disks.
    ///
    /// # Errors
    ///
    /// If a disk or the group cannot be made.
    pub fn new(disks: usize, size: Bytes) -> Result<Self> {
        let disks: Vec<Faulty> = (0..disks).map(|_| Faulty::over(Disk::new(size)?)).collect::<Result<_>>()?;
        let paths: Vec<DevicePath> =
            disks.iter().map(|disk| Ok(DevicePath::new(disk.path())?)).collect::<Result<_>>()?;
        let handle = Handle::on(paths.clone(), Activation::Udev, |builder| builder)?;
        let group = handle.lvm.create_group(&NewGroup::new(VgName::new("v")?, paths))?.into_inner();
        Ok(Self { group, handle, disks })
    }

    /// The path of one of its disks.
    ///
    /// # Errors
    ///
    /// If the disk is unplugged.
    pub fn device(&self, index: usize) -> Result<DevicePath> {
        Ok(DevicePath::new(self.disks[index].path())?)
    }
}

impl Drop for FaultyFixture {
    fn drop(&mut self) {
        for disk in &self.disks {
            if let Err(error) = disk.recover() {
                eprintln!("recover: {error:#}");
            }
        }
        if let Err(error) = self.group.deactivate() {
            eprintln!("deactivate: {error:#}");
        }
        let _ = &self.handle;
    }
}

/// Whether the kernel has a device for a volume.
///
/// # Errors
///
/// If there is no such volume or no device-mapper.
pub fn is_active(group: &Group, name: &str) -> Result<bool> {
    let seen = group.look()?;
    let lv = seen.lv(name).context("no such volume")?;
    Ok(Dm::open()?.lv_info(&seen.uuid, &lv.uuid)?.is_some())
}

/// Waits until the kernel has synchronised a RAID volume.
///
/// # Errors
///
/// If it has not within two minutes.
pub fn synchronised(group: &Group, name: &str) -> Result<()> {
    let seen = group.look()?;
    let uuid = seen.lv(name).context("no such volume")?.uuid;
    for _ in 0..600 {
        let health = Dm::open()?.raid_health(&seen.uuid, &uuid)?.context("not active")?;
        if health.is_healthy() && health.synced == health.sync_end {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    bail!("{name} was not in step after two minutes")
}

/// Writes up to so many MiB and returns how many went through.
#[must_use]
pub fn fill(device: &Path, mib: u64) -> u64 {
    let Ok(file) = File::options().write(true).open(device) else { return 0 };
    let block = vec![0xa5; 1 << 20];
    (0..mib)
        .take_while(|at| file.write_all_at(&block, at << 20).and_then(|()| file.sync_data()).is_ok())
        .count() as u64
}
