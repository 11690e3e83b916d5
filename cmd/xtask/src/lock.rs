//! One machine of each kind a host, and one more where the tests of one run are shared out: more emulated machines at
//! once would starve each other into time-outs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::kernel::MachineKind;
use crate::paths;

/// The right to run a machine, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    run: PathBuf,
}

impl Lock {
    /// Takes the lock, and says so when it has to wait.
    pub fn take(machine: MachineKind) -> Result<Self> {
        let (lock, run) = match machine {
            MachineKind::Qemu => ("lock", "run"),
            MachineKind::Uml => ("lock-uml", "run-uml"),
        };
        let (path, file) = open(lock)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            eprintln!("rig: another machine runs on this host ({}); waiting for it to end", holder.trim());
            flock(&file, FlockOperation::LockExclusive)
                .with_context(|| format!("locking {}", path.display()))?;
        }
        Self::held(&path, file, run)
    }

    /// Takes the lock of a second emulated machine, unless somebody has it.
    pub fn take_second() -> Result<Option<Self>> {
        let (path, file) = open("lock-second")?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        Self::held(&path, file, "run-second").map(Some)
    }

    fn held(path: &Path, file: File, run: &str) -> Result<Self> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: String =
            arguments.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect();
        let holder = format!("process {}: {arguments}\n", std::process::id());
        fs::write(path, holder).with_context(|| format!("writing {}", path.display()))?;
        // Whatever lies here is of a process that was killed: nobody else can be running.
        let run = paths::cache()?.join(run);
        if run.exists() {
            fs::remove_dir_all(&run).with_context(|| format!("removing the stale {}", run.display()))?;
        }
        fs::create_dir(&run).with_context(|| format!("making {}", run.display()))?;
        Ok(Lock { _file: file, run })
    }

    /// The directory for the machine's disks, sockets and shares; it is removed with the lock.
    pub fn run_dir(&self) -> &PathBuf {
        &self.run
    }
}

fn open(lock: &str) -> Result<(PathBuf, File)> {
    let path = paths::cache()?.join(lock);
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
    let file = file.with_context(|| format!("opening the lock {}", path.display()))?;
    Ok((path, file))
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.run) {
            eprintln!("rig: removing {}: {error}", self.run.display());
        }
    }
}
