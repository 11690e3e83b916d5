//! Stopping what somebody registers again.
//!
//! udev registers whatever it sees with a bcache superblock, and it may see a device late: the event of its formatting
//! arrives when the device was stopped already. So what comes back at once is stopped again, a few times.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use devices::Effect;

use crate::device::is_free;
use crate::{Error, Kind, wait};

/// How often something is stopped in one call.
const TRIES: u32 = 5;

/// What became of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It has gone, and nobody holds the devices below it.
    Free,
    /// It is there again.
    Again,
}

/// Tries until it has gone for good.
pub(crate) fn for_good(tried: &str, mut once: impl FnMut() -> Result<Stopped, Error>) -> Result<(), Error> {
    for _ in 0..TRIES {
        if once()? == Stopped::Free {
            return Ok(());
        }
    }
    Err(Error::new(Kind::Busy, tried)
        .with_answer(format!("somebody registered it again after each of {TRIES} stops"))
        .with_advice("find what registers it (udev's rules for bcache, for example), and try again"))
}

/// What has gone in this very moment needs no stop.
pub(crate) fn unless_gone(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

/// Waits until the kernel's directory has gone, or is another one, and then until the devices below it are free.
pub(crate) fn wait_until_gone(
    dir: &Path,
    before: Option<u64>,
    below: &[PathBuf],
    limit: Duration,
    tried: &str,
) -> Result<Stopped, Error> {
    let gone = || match inode(dir) {
        None => Ok(Some(Stopped::Free)),
        now if now != before => Ok(Some(Stopped::Again)),
        _ => Ok(None),
    };
    match wait::until(limit, gone)? {
        Some(Stopped::Free) => {}
        Some(Stopped::Again) => return Ok(Stopped::Again),
        None => {
            return Err(Error::new(Kind::TimedOut, tried)
                .with_effect(Effect::Unknown)
                .with_answer(format!("it is still there after {} s", limit.as_secs()))
                .with_advice("end what has the device open; the kernel then stops it by itself"));
        }
    }
    // The kernel shows it as gone a little before it lets go of what is below.
    let free = || {
        if inode(dir).is_some() {
            return Ok(Some(Stopped::Again));
        }
        Ok(below.iter().all(|path| is_free(path)).then_some(Stopped::Free))
    };
    match wait::until(limit, free)? {
        Some(stopped) => Ok(stopped),
        None => Err(Error::new(Kind::TimedOut, tried)
            .with_effect(Effect::Done)
            .with_answer("somebody else holds the device below by now")),
    }
}

/// The kernel gives a directory that it makes anew another number.
pub(crate) fn inode(dir: &Path) -> Option<u64> {
    std::fs::metadata(dir).ok().map(|metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_stopped_again_but_not_for_ever() {
        let mut left = 3;
        let mut once = || {
            left -= 1;
            Ok(if left == 0 { Stopped::Free } else { Stopped::Again })
        };
        for_good("stop it", &mut once).unwrap();
        let mut stops = 0;
        let error = for_good("stop it", || {
            stops += 1;
            Ok(Stopped::Again)
        });
        let error = error.unwrap_err();
        assert_eq!((error.kind(), stops), (Kind::Busy, TRIES), "{error}");
    }

    #[test]
    fn a_directory_that_was_made_anew_is_seen_as_such() {
        let sys = tempfile::tempdir().unwrap();
        let dir = sys.path().join("bcache");
        let wait = |before| wait_until_gone(&dir, before, &[], Duration::from_millis(5), "stop it");
        assert_eq!(wait(None).unwrap(), Stopped::Free);
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(wait(Some(0)).unwrap(), Stopped::Again);
        let error = wait(inode(&dir)).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::TimedOut, Effect::Unknown), "{error}");
    }
}
