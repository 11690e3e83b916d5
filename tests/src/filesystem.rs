//! Filesystems with content that can be recognised again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::tool;

/// A mounted filesystem; dropping it unmounts it.
#[derive(Debug)]
pub struct Mounted {
    dir: TempDir,
    mounted: bool,
}

/// Makes a filesystem on a device.
///
/// # Errors
///
/// If `mkfs` fails.
pub fn format(fs_type: &str, device: &Path) -> Result<()> {
    let quiet_and_forced: &[&str] = match fs_type {
        "xfs" | "btrfs" => &["-q", "-f"],
        _ => &["-q", "-F"],
    };
    let device = device.display().to_string();
    tool::run(&format!("mkfs.{fs_type}"), quiet_and_forced.iter().copied().chain([device.as_str()])).map(drop)
}

/// What `blkid` finds on a device, each signature's type; empty when there is none.
///
/// # Errors
///
/// If it cannot be asked, or finds several contradicting ones.
pub fn signatures(device: &Path) -> Result<Vec<String>> {
    let device = device.display().to_string();
    let found = tool::run("wipefs", ["--noheadings", "--output", "TYPE", "--no-act", "--", &device])?;
    Ok(found.split_whitespace().map(str::to_owned).collect())
}

impl Mounted {
    /// Mounts a device by its filesystem's name.
    ///
    /// # Errors
    ///
    /// If `mount` fails.
    pub fn new(fs_type: &str, device: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-mnt-").tempdir()?;
        let options = if fs_type == "xfs" { "nouuid" } else { "defaults" };
        let (device, target) = (device.display().to_string(), dir.path().display().to_string());
        tool::run("mount", ["-t", fs_type, "-o", options, "--", &device, &target])?;
        Ok(Self { dir, mounted: true })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file whose content follows from its name and size, and syncs the filesystem.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, name: &str, mib: usize) -> Result<()> {
        fs::write(self.file(name), content(name, mib))?;
        tool::run("sync", ["-f", &self.dir.path().display().to_string()]).map(drop)
    }

    /// Fails unless the file has exactly the content that [`Mounted::write`] gave it, as read from the disk.
    ///
    /// # Errors
    ///
    /// If it differs or cannot be read.
    pub fn check(&self, name: &str, mib: usize) -> Result<()> {
        fs::write("/proc/sys/vm/drop_caches", "3")?;
        ensure!(fs::read(self.file(name))? == content(name, mib), "the content of {name} is another one");
        Ok(())
    }

    /// Whether there is such a file.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Unmounts it.
    ///
    /// # Errors
    ///
    /// If `umount` fails.
    pub fn unmount(mut self) -> Result<()> {
        self.mounted = false;
        tool::run("umount", ["--", &self.dir.path().display().to_string()]).map(drop)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.mounted
            && let Err(error) = tool::run("umount", ["-l", "--", &self.dir.path().display().to_string()])
        {
            eprintln!("{error:#}");
        }
    }
}

/// Bytes that no other name gives and that no compression or sharing of blocks shortens.
fn content(name: &str, mib: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3) | 1
    });
    let mut bytes = Vec::with_capacity(mib << 20);
    while bytes.len() < mib << 20 {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}
