//! One operation at a time on one volume, in all processes that share the lock directory.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{Error, Kind, SnapshotId, VolumeId};

/// Holds a volume or a snapshot against a second operation, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    // The lock lives as long as this descriptor.
    _file: File,
}

/// What is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'a> {
    Volume(&'a VolumeId),
    Snapshot(&'a SnapshotId),
    /// The copying of a snapshot.
    Copy(&'a SnapshotId),
    /// The choice of room and numbers for directories.
    Directories,
    /// The making of pools.
    Pools,
}

impl Lock {
    /// Takes it without waiting.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] while another operation holds it; [`Kind::Internal`] if the lock file cannot be made.
    pub(crate) fn take(directory: &Path, held: Held<'_>, tried: &str) -> Result<Self, Error> {
        // A label holds no full stop, so no volume is called like a snapshot's lock.
        let (name, what) = match held {
            Held::Volume(id) => (id.to_string(), format!("volume {id}")),
            Held::Snapshot(id) => (format!("snapshot.{id}"), format!("snapshot {id}")),
            Held::Copy(id) => (format!("copy.{id}"), format!("the copy of snapshot {id}")),
            Held::Directories => (".directories".to_owned(), "the room for directories".to_owned()),
            Held::Pools => (".pools".to_owned(), "the pools of this node".to_owned()),
        };
        let path = directory.join(name);
        let failed = |cause: std::io::Error| {
            Error::system(tried, cause)
                .with_advice(format!("make {} writable, or give another lock directory", directory.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        loop {
            let file =
                File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(Kind::Busy, tried)
                        .with_answer(format!("another operation on {what} is under way"))
                        .with_advice("try again when it has ended"));
                }
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
            // Its last holder may have unlinked the file between our open and our lock.
            let ours = file.metadata().map_err(failed)?;
            let same = std::fs::metadata(&path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
            if same {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: whoever opened the file before finds out that it has no name any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_operation_is_busy_until_the_first_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other): (VolumeId, VolumeId) = ("db".parse().unwrap(), "pools".parse().unwrap());
        let take = |held| Lock::take(dir.path(), held, "grow volume db");
        let first = take(Held::Volume(&id)).unwrap();
        let error = take(Held::Volume(&id)).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
        let snapshot = "db".parse().unwrap();
        let _others =
            [Held::Volume(&other), Held::Snapshot(&snapshot), Held::Pools].map(|held| take(held).unwrap());
        drop(first);
        let _again = take(Held::Volume(&id)).unwrap();
    }

    #[test]
    fn many_threads_never_hold_it_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let id: VolumeId = "db".parse().unwrap();
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        if let Ok(_lock) = Lock::take(dir.path(), Held::Volume(&id), "t") {
                            assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                            inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }
}
