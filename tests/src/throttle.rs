//! A disk that gives its test only so many bytes a second, by the kernel's own limit of a control group.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use devices::Bytes;
use rustix::fs::{major, minor, stat};

const ROOT: &str = "/sys/fs/cgroup";

/// The limit on what this test and everything that it starts reads from and writes to one disk. Gone when it is dropped.
#[derive(Debug)]
pub struct Throttle {
    file: PathBuf,
    device: String,
}

impl Throttle {
    /// No limit yet. `None`, with a line that says why, where the kernel sets none.
    ///
    /// # Errors
    ///
    /// If the disk or the control group is not found.
    pub fn of(disk: &Path) -> Result<Option<Self>> {
        let number = stat(disk).with_context(|| format!("look at {}", disk.display()))?.st_rdev;
        let device = format!("{}:{}", major(number), minor(number));
        let own = fs::read_to_string("/proc/self/cgroup").context("find this test's control group")?;
        let own = own.trim_end().rsplit("::/").next().unwrap_or_default().to_owned();
        let enabled = fs::write(format!("{ROOT}/cgroup.subtree_control"), "+io");
        let file = Path::new(ROOT).join(own).join("io.max");
        if enabled.is_err() || !file.exists() {
            println!("SKIPPED: this kernel limits no reads and writes of a control group");
            return Ok(None);
        }
        Ok(Some(Self { file, device }))
    }

    /// Lets only so many bytes a second through from now on, in each direction.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the limit.
    pub fn limit(&self, a_second: Bytes) -> Result<()> {
        let limit = format!("{} rbps={1} wbps={1}", self.device, a_second.get());
        fs::write(&self.file, limit).with_context(|| format!("limit device {}", self.device))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The group, and the limit with it, ends with the test in any case.
        let _ = fs::write(&self.file, format!("{} rbps=max wbps=max", self.device));
    }
}
