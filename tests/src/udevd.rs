//! A machine without udevd, as a minimal container sees it, for as long as a test needs it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tool;

const NOTES: &str = "/run/udev";
const HIDDEN: &str = "/run/udev.hidden";
/// Where distributions have it.
const PROGRAMS: [&str; 3] = ["/usr/lib/systemd/systemd-udevd", "/lib/systemd/systemd-udevd", "/sbin/udevd"];

/// While it lives no udevd runs and nothing of what it noted is there; dropping it brings both back.
#[derive(Debug)]
pub struct WithoutUdevd(());

impl WithoutUdevd {
    /// Ends udevd and hides its notes. Only for the machine.
    ///
    /// # Errors
    ///
    /// If udevd does not end.
    pub fn begin() -> Result<Self> {
        tool::run("udevadm", ["settle"])?;
        tool::run("udevadm", ["control", "--exit"])?;
        fs::rename(NOTES, HIDDEN).context("hide udevd's notes")?;
        Ok(Self(()))
    }
}

impl Drop for WithoutUdevd {
    fn drop(&mut self) {
        if let Err(error) = bring_back() {
            eprintln!("udevd does not come back: {error:#}");
        }
    }
}

fn bring_back() -> Result<()> {
    if Path::new(NOTES).exists() {
        fs::remove_dir_all(NOTES).context("remove what is in the place of udevd's notes")?;
    }
    fs::rename(HIDDEN, NOTES).context("bring udevd's notes back")?;
    let program = PROGRAMS.into_iter().find(|program| Path::new(program).exists());
    // Out of the control group of the test, all of whose processes end with it.
    let start = "echo 0 >/sys/fs/cgroup/cgroup.procs && exec \"$0\" --daemon";
    tool::run("sh", ["-c", start, program.context("no udevd is installed")?])?;
    // What came meanwhile gets its links.
    tool::run("udevadm", ["trigger", "--action=add", "--subsystem-match=block"])?;
    tool::run("udevadm", ["settle"]).map(drop)
}
