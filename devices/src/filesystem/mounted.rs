//! What can be done with a mounted filesystem: measure, trim, freeze.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;

use crate::mount::Target;
use crate::syscall::{self, TrimRange};
use crate::{Bytes, Error, Kind};

/// How full a filesystem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// What it can hold, its own bookkeeping left out where the filesystem does so.
    pub total: Bytes,
    /// What is in use.
    pub used: Bytes,
    /// What users other than root can still write.
    pub available: Bytes,
    /// Its inodes; `None` where it makes them as needed and counts none (btrfs).
    pub inodes: Option<Inodes>,
}

/// How many files a filesystem holds, directories and all else included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inodes {
    /// How many it can hold; XFS makes this up from its free space.
    pub total: u64,
    /// How many there are.
    pub used: u64,
    /// How many more can be made.
    pub free: u64,
}

impl Usage {
    pub(super) fn of(root: &OwnedFd, tried: &impl Fn() -> String) -> Result<Self, Error> {
        let stat = rustix::fs::fstatvfs(root).map_err(|errno| Error::system(tried(), errno))?;
        let bytes = |blocks: u64| Bytes::new(blocks.saturating_mul(stat.f_frsize));
        let inodes = Inodes {
            total: stat.f_files,
            used: stat.f_files.saturating_sub(stat.f_ffree),
            free: stat.f_ffree,
        };
        Ok(Self {
            total: bytes(stat.f_blocks),
            used: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
            available: bytes(stat.f_bavail),
            inodes: (stat.f_files > 0).then_some(inodes),
        })
    }
}

/// Measures the filesystem that is mounted at a target.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there: what lies below would be measured else. [`Kind::Io`] when the
/// filesystem is dead.
pub fn usage(target: &Target) -> Result<Usage, Error> {
    let tried = || format!("measure the filesystem at {}", target.given().display());
    let (root, _) = target.open_mounted(&tried)?;
    Usage::of(&root, &tried)
}

/// Gives the blocks that no file uses back to the device below, in extents of at least `minimum` bytes. Gives how many
/// bytes were discarded; ext4 and XFS leave out what they discarded before.
///
/// # Errors
///
/// [`Kind::Unsupported`] when the device cannot discard.
pub fn trim(target: &Target, minimum: Bytes) -> Result<Bytes, Error> {
    let tried = || format!("trim the filesystem at {}", target.given().display());
    let (root, _) = target.open_mounted(&tried)?;
    let mut range = TrimRange { start: 0, length: u64::MAX, minimum: minimum.get() };
    syscall::trim(root.as_fd(), &mut range).map_err(|errno| Error::system(tried(), errno))?;
    Ok(Bytes::new(range.length))
}

/// A frozen filesystem: everything written before is on the device, and every further write waits. It goes on when this
/// is dropped, and by itself at the limit given, for whoever writes hangs meanwhile.
///
/// ```no_run
/// use std::time::Duration;
/// use devices::filesystem::Frozen;
/// use devices::mount::Target;
///
/// let frozen = Frozen::freeze(&Target::new("/srv/data".as_ref())?, Duration::from_secs(10))?;
/// // Take a snapshot that no tool would freeze the filesystem for.
/// frozen.thaw()?;
/// # Ok::<(), devices::Error>(())
/// ```
///
/// A filesystem stays frozen when its freezer is killed: [`thaw`] ends that. LVM and device-mapper freeze what is
/// mounted on a device by themselves when they suspend it, and fail on one that is frozen already.
#[derive(Debug)]
pub struct Frozen {
    end: Option<Sender<()>>,
    keeper: Option<JoinHandle<Ending>>,
    name: String,
}

/// How a freeze ended.
#[derive(Debug)]
enum Ending {
    Asked(Result<(), Errno>),
    AtLimit,
}

impl Frozen {
    /// Freezes the filesystem that is mounted at a target, for so long at most.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] when it is frozen already; [`Kind::NotFound`] when nothing is mounted there.
    pub fn freeze(target: &Target, limit: Duration) -> Result<Self, Error> {
        let name = target.given().display().to_string();
        let tried = || format!("freeze the filesystem at {name}");
        let (root, _) = target.open_mounted(&tried)?;
        let (end, ended) = mpsc::channel::<()>();
        // The thread is there before the filesystem is frozen: it cannot fail to start when it is needed.
        let (go, started) = mpsc::channel::<()>();
        let other = root.try_clone().map_err(|cause| Error::system(tried(), cause))?;
        let keeper = thread::Builder::new().name("thaw".to_owned()).spawn(move || {
            if started.recv().is_err() {
                return Ending::Asked(Ok(()));
            }
            match ended.recv_timeout(limit) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => Ending::Asked(syscall::thaw(other.as_fd())),
                Err(RecvTimeoutError::Timeout) => {
                    // EINVAL: somebody else has thawed it.
                    let _ = syscall::thaw(other.as_fd());
                    Ending::AtLimit
                }
            }
        });
        let keeper = keeper.map_err(|cause| Error::system(tried(), cause))?;
        syscall::freeze(root.as_fd()).map_err(|errno| match errno {
            Errno::BUSY => Error::new(Kind::Busy, tried())
                .with_answer("it is frozen already")
                .with_advice("wait for whoever froze it, or thaw it"),
            errno => Error::system(tried(), errno),
        })?;
        // The thread waits for this alone, so it is there to hear it.
        let _ = go.send(());
        Ok(Self { end: Some(end), keeper: Some(keeper), name })
    }

    /// Lets writes go on.
    ///
    /// # Errors
    ///
    /// [`Kind::TimedOut`] when the limit passed before: what was done meanwhile was not done on a frozen filesystem.
    pub fn thaw(mut self) -> Result<(), Error> {
        let tried = format!("thaw the filesystem at {}", self.name);
        match self.finish() {
            Some(Ending::Asked(Ok(()))) => Ok(()),
            Some(Ending::Asked(Err(errno))) => Err(Error::system(tried, errno)),
            Some(Ending::AtLimit) => {
                Err(Error::new(Kind::TimedOut, format!("keep the filesystem at {} frozen", self.name))
                    .with_answer("the limit passed, and it went on by itself"))
            }
            None => Err(Error::new(Kind::Other, tried).with_answer("the thread that keeps it has gone")),
        }
    }

    fn finish(&mut self) -> Option<Ending> {
        drop(self.end.take());
        self.keeper.take()?.join().ok()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Whoever drops it does not ask how it ended.
        let _ = self.finish();
    }
}

/// Lets the writes of a filesystem go on that somebody froze and left so.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there; [`Kind::InvalidArgument`] when it is not frozen.
pub fn thaw(target: &Target) -> Result<(), Error> {
    let tried = || format!("thaw the filesystem at {}", target.given().display());
    let (root, _) = target.open_mounted(&tried)?;
    syscall::thaw(root.as_fd()).map_err(|errno| match errno {
        Errno::INVAL => Error::system(tried(), errno).with_answer("it is not frozen"),
        errno => Error::system(tried(), errno),
    })
}
