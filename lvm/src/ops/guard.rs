//! One operation at a time on one volume, also across processes.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Error, Kind, LvName, Uuid};

/// Holds a volume's name against a second operation, in this process or another one with the same run directory.
#[derive(Debug)]
pub(crate) struct Guard {
    path: PathBuf,
    // The lock lives as long as this descriptor.
    _file: File,
}

impl Guard {
    /// Takes the guard of `name` without waiting.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] while another operation holds it; [`Kind::Io`] if the lock file cannot be made.
    pub(crate) fn take(run_dir: &Path, group: Uuid, name: &LvName, tried: &str) -> Result<Self, Error> {
        let io = |cause: std::io::Error, path: &Path| {
            Error::new(Kind::Io, tried)
                .with_answer(format!("lock file {}: {cause}", path.display()))
                .with_advice("make the run directory writable, or give another one")
                .with_source(cause)
        };
        let directory = run_dir.join("making");
        std::fs::create_dir_all(&directory).map_err(|cause| io(cause, &directory))?;
        let path = directory.join(format!("{}-{name}", group.compact()));
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(|cause| io(cause, &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(Kind::Busy, tried)
                        .with_answer("another operation on the same volume is under way")
                        .with_advice("try again when it has ended"));
                }
                Err(TryLockError::Error(cause)) => return Err(io(cause, &path)),
            }
            // Its last holder may have unlinked the file between our open and our lock.
            let same = |there: std::fs::Metadata, ours: std::fs::Metadata| {
                there.ino() == ours.ino() && there.dev() == ours.dev()
            };
            let current = std::fs::metadata(&path).and_then(|there| Ok(same(there, file.metadata()?)));
            if current.unwrap_or(false) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Unlinked while locked, so that a waiter sees that its file is gone and opens a new one. If it fails, an
        // empty file stays, which harms nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_operation_on_the_same_volume_is_busy_and_another_volume_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let group = Uuid::from_bytes([b'a'; 32]).unwrap();
        let (a, b) = (LvName::new("a").unwrap(), LvName::new("b").unwrap());
        let take = |name| Guard::take(directory.path(), group, name, "create volume v/a");
        let held = take(&a).unwrap();
        assert_eq!(take(&a).unwrap_err().kind(), Kind::Busy);
        take(&b).unwrap();
        drop(held);
        take(&a).unwrap();
        assert_eq!(std::fs::read_dir(directory.path().join("making")).unwrap().count(), 0);
    }
}
