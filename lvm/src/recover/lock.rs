//! LVM's own lock of a group, which keeps every command of LVM on this host off it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Kind, VgName};

/// How often a lock that is held is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// An exclusive lock on `V_<group>` in LVM's locking directory.
#[derive(Debug)]
pub(super) struct GroupLock {
    path: PathBuf,
    // The lock lives as long as this descriptor.
    _file: File,
}

impl GroupLock {
    /// Takes the lock, waiting at most `patience` for a command that holds it.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] if it stays held, [`Kind::Io`] if the file cannot be made.
    pub(super) fn take(
        directory: &Path,
        vg: &VgName,
        patience: Duration,
        tried: &str,
    ) -> Result<Self, Error> {
        let path = directory.join(format!("V_{vg}"));
        let io = |cause: io::Error| {
            Error::new(Kind::Io, tried)
                .with_answer(format!("lock file {}: {cause}", path.display()))
                .with_source(cause)
        };
        fs::create_dir_all(directory).map_err(io)?;
        let end = Instant::now() + patience;
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
            match file.try_lock() {
                // LVM removes the file when it lets go: a lock on a file that has lost its name keeps nobody out.
                Ok(()) if is_named(&file, &path) => return Ok(Self { path, _file: file }),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(Kind::Busy, tried)
                        .with_answer(format!(
                            "another program has held the lock {} for {} s",
                            path.display(),
                            patience.as_secs()
                        ))
                        .with_advice(
                            "look which command of LVM runs on this host, and try again when it has ended",
                        ));
                }
                Err(TryLockError::Error(cause)) => return Err(io(cause)),
            }
        }
    }
}

fn is_named(file: &File, path: &Path) -> bool {
    let same =
        |there: fs::Metadata, ours: fs::Metadata| there.ino() == ours.ino() && there.dev() == ours.dev();
    fs::metadata(path).and_then(|there| Ok(same(there, file.metadata()?))).unwrap_or(false)
}

impl Drop for GroupLock {
    fn drop(&mut self) {
        // While it is locked, as LVM does; if that fails, an empty file stays, which harms nobody.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_and_its_file_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let vg = VgName::new("data").unwrap();
        let take =
            || GroupLock::take(directory.path(), &vg, Duration::from_millis(120), "recover group data");
        let held = take().unwrap();
        assert!(directory.path().join("V_data").exists());
        assert_eq!(take().unwrap_err().kind(), Kind::Busy);
        drop(held);
        assert!(!directory.path().join("V_data").exists());
        take().unwrap();
    }

    #[test]
    fn who_waits_gets_it_when_the_holder_ends() {
        let directory = tempfile::tempdir().unwrap();
        let vg = VgName::new("data").unwrap();
        let held = GroupLock::take(directory.path(), &vg, Duration::ZERO, "x").unwrap();
        let path = directory.path().to_owned();
        let waiter = thread::spawn(move || {
            GroupLock::take(&path, &VgName::new("data").unwrap(), Duration::from_secs(10), "x").map(drop)
        });
        thread::sleep(Duration::from_millis(100));
        drop(held);
        waiter.join().unwrap().unwrap();
    }
}
