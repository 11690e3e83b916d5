//! One control group a command: whatever it starts, daemons too, ends with it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group (version 2) that holds one command and all its descendants.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes the group `name` below the root.
    ///
    /// # Errors
    /// When control groups of version 2 are not mounted at /sys/fs/cgroup.
    pub fn create(name: &str) -> io::Result<Self> {
        let path = PathBuf::from(ROOT).join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Cgroup { path }),
        }
    }

    /// The file to which a process writes its id in order to join.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Whether nothing runs in it any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|text| text.contains("populated 0"))
    }

    /// Kills every member and waits up to `patience` until they are gone; false when some cannot be killed.
    ///
    /// # Errors
    /// When the kernel refuses the kill.
    pub fn kill(&self, patience: Duration) -> io::Result<bool> {
        fs::write(self.path.join("cgroup.kill"), "1")?;
        let start = Instant::now();
        while !self.is_empty() {
            if start.elapsed() > patience {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(true)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group with a member that cannot die stays; the host starts the machine anew then.
        let _ = fs::remove_dir(&self.path);
    }
}
