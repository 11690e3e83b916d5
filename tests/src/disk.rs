//! Disks for one test each: a sparse file behind a loop device, gone when the test ends, however it ends.
//!
//! ```no_run
//! use devices::Bytes;
//! use rig::{Disk, skip_unless_loop};
//!
//! if skip_unless_loop() {
//!     return Ok(());
//! }
//! let mut disk = Disk::new(Bytes::gib(1))?;
//! disk.grow(Bytes::gib(2))?;
//! println!("{}", disk.path().display());
//! # Ok::<(), anyhow::Error>(())
//! ```

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use devices::Bytes;
use devices::loopdev::{Attach, LoopDevice};
use tempfile::TempDir;

/// Says why on one line and returns true where loop devices cannot be made (no root, no driver).
#[must_use]
pub fn skip_unless_loop() -> bool {
    skip_unless_opens("/dev/loop-control")
}

/// Says why on one line and returns true where there is no device-mapper or loop devices cannot be made.
#[must_use]
pub fn skip_unless_dm() -> bool {
    skip_unless_opens("/dev/mapper/control") || skip_unless_loop()
}

fn skip_unless_opens(path: &str) -> bool {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => false,
        Err(error) => {
            println!("SKIPPED: {path}: {error}");
            true
        }
    }
}

/// The whole disks that the runner gave this machine for tests to overwrite, from `GABION_DISKS`, a list of
/// paths with colons or white space between them. Empty on a host.
#[must_use]
pub fn virtual_disks() -> Vec<PathBuf> {
    let list = std::env::var("GABION_DISKS").unwrap_or_default();
    list.split([':', ' ', '\t', '\n']).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// Whether the kernel looks for partitions on a disk, and lets some be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partitions {
    None,
    Scanned,
}

/// A disk of one test: a sparse file in a directory of its own, behind a loop device.
///
/// Dropping it detaches and removes it, also when the test panics; with `KEEP=1` in the environment both stay,
/// and where they are is printed.
#[derive(Debug)]
pub struct Disk {
    device: Option<LoopDevice>,
    path: PathBuf,
    image: PathBuf,
    sector: Bytes,
    partitions: Partitions,
    dir: Option<TempDir>,
}

impl Disk {
    /// A disk full of zeroes with sectors of 512 bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be made or attached.
    pub fn new(size: Bytes) -> Result<Self> {
        Self::with_sector(size, Bytes::new(512))
    }

    /// A disk full of zeroes with the logical sector size given: 512 to 4096 bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be made or attached.
    pub fn with_sector(size: Bytes, sector: Bytes) -> Result<Self> {
        Self::made(sector, Partitions::None, |image| blank(image, size))
    }

    /// A disk with sectors of 512 bytes whose file is filled before it is plugged in.
    ///
    /// # Errors
    ///
    /// If the file cannot be made or attached, or what `fill` answers.
    pub fn filled(size: Bytes, fill: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        Self::made(Bytes::new(512), Partitions::None, |image| {
            blank(image, size)?;
            fill(image)
        })
    }

    /// The same for a disk that may have partitions.
    ///
    /// # Errors
    ///
    /// If the file cannot be made or attached.
    pub fn partitioned(size: Bytes, sector: Bytes) -> Result<Self> {
        Self::made(sector, Partitions::Scanned, |image| blank(image, size))
    }

    fn made(sector: Bytes, partitions: Partitions, fill: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-disk-").tempdir().context("make a directory")?;
        let image = dir.path().join("disk.img");
        fill(&image)?;
        let mut disk = Self { device: None, path: PathBuf::new(), image, sector, partitions, dir: Some(dir) };
        disk.reattach()?;
        Ok(disk)
    }

    /// The device's node. It changes with [`Self::reattach`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file behind the device.
    #[must_use]
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The present size.
    ///
    /// # Errors
    ///
    /// If the file has gone.
    pub fn size(&self) -> Result<Bytes> {
        let metadata = self.image.metadata().with_context(|| format!("stat {}", self.image.display()))?;
        Ok(Bytes::new(metadata.len()))
    }

    /// Makes the disk larger while it is in use, as a virtual disk can grow.
    ///
    /// # Errors
    ///
    /// If the file or the device cannot be resized.
    pub fn grow(&mut self, to: Bytes) -> Result<()> {
        let file = OpenOptions::new().write(true).open(&self.image).context("open the disk's file")?;
        file.set_len(to.get()).with_context(|| format!("make {} {to} long", self.image.display()))?;
        match &self.device {
            Some(device) => Ok(device.set_capacity()?),
            None => Ok(()),
        }
    }

    /// Unplugs the disk; its content stays. Nothing happens if it is unplugged.
    ///
    /// # Errors
    ///
    /// If somebody keeps the device open.
    pub fn detach(&mut self) -> Result<()> {
        match self.device.take() {
            Some(device) => Ok(device.detach()?),
            None => Ok(()),
        }
    }

    /// Plugs the disk in again, mostly as another device. Nothing happens if it is plugged in.
    ///
    /// # Errors
    ///
    /// If the file cannot be attached.
    pub fn reattach(&mut self) -> Result<()> {
        if self.device.is_none() {
            let mut attach = Attach::new().sector_size(self.sector);
            if self.partitions == Partitions::Scanned {
                attach = attach.scan_partitions();
            }
            let device = attach.file(&self.image)?;
            device.path().clone_into(&mut self.path);
            self.device = Some(device);
        }
        Ok(())
    }

    /// A second disk with the same content, as `dd` makes one: labels and uuids included.
    ///
    /// What is still in the page cache of this disk's device is written back first.
    ///
    /// # Errors
    ///
    /// If the copy cannot be made or attached.
    pub fn copy(&self) -> Result<Self> {
        if self.device.is_some() {
            File::open(&self.path).and_then(|device| device.sync_all()).context("flush the disk")?;
        }
        Self::made(self.sector, self.partitions, |image| {
            let status = std::process::Command::new("cp")
                .arg("--sparse=always")
                .args([&self.image, image])
                .status()
                .context("run cp")?;
            anyhow::ensure!(status.success(), "cp {} ended with {status}", self.image.display());
            Ok(())
        })
    }
}

fn blank(image: &Path, size: Bytes) -> Result<()> {
    let file = File::create_new(image).with_context(|| format!("create {}", image.display()))?;
    file.set_len(size.get()).with_context(|| format!("make {} {size} long", image.display()))
}

impl Drop for Disk {
    fn drop(&mut self) {
        let device = self.device.take();
        if std::env::var_os("KEEP").is_some_and(|keep| keep == "1") {
            let kept = self.dir.take().map(TempDir::keep);
            let path = device.map(LoopDevice::leave);
            println!("KEPT: {path:?} with its file in {kept:?}");
            return;
        }
        if let Some(Err(error)) = device.map(LoopDevice::detach) {
            println!("left behind: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::*;

    fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
    }

    fn read_at(path: &Path, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut file = File::open(path).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_disk_keeps_its_content_over_unplugging_and_growing() {
        if skip_unless_loop() {
            return;
        }
        let mut disk = Disk::with_sector(Bytes::mib(4), Bytes::new(4096)).unwrap();
        write_at(disk.path(), 4096, b"content");
        disk.detach().unwrap();
        disk.reattach().unwrap();
        disk.grow(Bytes::mib(8)).unwrap();
        assert_eq!(read_at(disk.path(), 4096, 7), b"content");
        assert_eq!(read_at(disk.path(), (8 << 20) - 4096, 1), [0]);
        assert_eq!(disk.size().unwrap(), Bytes::mib(8));
    }

    #[test]
    fn a_copy_is_a_disk_of_its_own() {
        if skip_unless_loop() {
            return;
        }
        let disk = Disk::new(Bytes::mib(4)).unwrap();
        write_at(disk.path(), 512, b"first");
        let copy = disk.copy().unwrap();
        write_at(copy.path(), 512, b"other");
        assert_ne!(disk.path(), copy.path());
        assert_eq!(read_at(disk.path(), 512, 5), b"first");
        assert_eq!(read_at(copy.path(), 512, 5), b"other");
    }

    #[test]
    fn nothing_stays_after_a_panic() {
        if skip_unless_loop() {
            return;
        }
        let disk = Disk::new(Bytes::mib(1)).unwrap();
        let (image, path) = (disk.image().to_owned(), disk.path().to_owned());
        let panicked = std::thread::spawn(move || {
            let _disk = disk;
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(!image.exists());
        let name = path.file_name().unwrap().to_str().unwrap();
        let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        assert_ne!(backing.unwrap_or_default().trim(), image.to_str().unwrap());
    }
}
