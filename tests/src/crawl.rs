//! The kernel's copying of mirrors at a crawl.

use std::fs;

use anyhow::{Context, Result};

use crate::tool;

/// How much of the time the kernel may copy, in percent.
const THROTTLE: &str = "/sys/module/dm_mirror/parameters/raid1_resync_throttle";

/// The kernel copies at a crawl until this is dropped: else a small move has ended before a test can look at it.
#[derive(Debug)]
pub struct Crawl;

impl Crawl {
    /// Slows the kernel down.
    ///
    /// # Errors
    ///
    /// If it has no device-mapper mirrors.
    pub fn begin() -> Result<Self> {
        tool::run("modprobe", ["dm-mirror"])?;
        fs::write(THROTTLE, "1").context("slow down dm-mirror")?;
        Ok(Self)
    }
}

impl Drop for Crawl {
    fn drop(&mut self) {
        if let Err(error) = fs::write(THROTTLE, "100") {
            eprintln!("{THROTTLE}: {error}");
        }
    }
}
