//! Where something is mounted: a name in a directory that is held open.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Mount, MountId, MountTable};
use crate::{Change, Error, Kind};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// How long another mount in the same directory may take.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A place for a mount: a name in a directory.
///
/// The directory is held open, so a directory above that is renamed or replaced by a symbolic link after the check
/// does not lead elsewhere, and no part of the path that others may write to is ever followed through a link.
///
/// ```no_run
/// use devices::mount::Target;
///
/// // What the administrator set up (the base) may hold links, what comes below may not.
/// let target = Target::below("/var/lib/kubelet".as_ref(), "/var/lib/kubelet/pods/7/mount".as_ref())?;
/// target.make_directory()?;
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Debug)]
pub struct Target {
    parent: OwnedFd,
    name: OsString,
    given: PathBuf,
}

/// What is at a target now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Nothing,
    /// A directory on which nothing is mounted.
    Directory,
    /// A regular file on which nothing is mounted.
    File,
    /// Something else on which nothing can be mounted: a symbolic link, a socket.
    Other,
    /// A mount.
    Mounted(Box<Mount>),
}

impl Target {
    /// A place whose path holds no symbolic link at all. The directory that holds it must exist.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a path that is not absolute, holds `.` or `..` or a symbolic link;
    /// [`Kind::NotFound`] when the directory is not there.
    pub fn new(path: &Path) -> Result<Self, Error> {
        Self::below(Path::new("/"), path)
    }

    /// A place below a base directory. The base itself may be, or lead through, symbolic links.
    ///
    /// # Errors
    ///
    /// As for [`Target::new`]; also when the path does not lie below the base.
    pub fn below(base: &Path, path: &Path) -> Result<Self, Error> {
        Self::resolve(base, path, Parents::MustExist)
    }

    /// As [`Target::below`], making the directories between where they are missing, with mode 0750.
    ///
    /// # Errors
    ///
    /// As for [`Target::below`], and when a directory cannot be made.
    pub fn below_with_parents(base: &Path, path: &Path) -> Result<Self, Error> {
        Self::resolve(base, path, Parents::Make)
    }

    fn resolve(base: &Path, path: &Path, parents: Parents) -> Result<Self, Error> {
        let tried = || format!("use {} as a mount point", path.display());
        let invalid = |why: &str| Error::new(Kind::InvalidArgument, tried()).with_answer(why);
        if !path.is_absolute() || path.as_os_str().as_bytes().contains(&0) {
            return Err(invalid("it is no absolute path"));
        }
        let normal =
            path.as_os_str().as_bytes().split(|&byte| byte == b'/').all(|part| part != b"." && part != b"..");
        if !normal {
            return Err(invalid("it holds . or .."));
        }
        let below =
            path.strip_prefix(base).map_err(|_| invalid(&format!("it is not below {}", base.display())))?;
        let (Some(name), Some(directory)) = (below.file_name(), below.parent()) else {
            return Err(invalid("it names no directory or file below the base"));
        };
        let failed = |errno: Errno| match errno {
            Errno::LOOP | Errno::XDEV => invalid("a part of it is a symbolic link"),
            errno => Error::system(tried(), errno),
        };
        let root = rustix::fs::openat(CWD, base, DIRECTORY, Mode::empty()).map_err(failed)?;
        let parent = match parents {
            Parents::MustExist => open_below(root.as_fd(), directory),
            Parents::Make => make_below(root, directory),
        };
        Ok(Self { parent: parent.map_err(failed)?, name: name.to_owned(), given: path.to_owned() })
    }

    /// The path as it was given.
    #[must_use]
    pub fn given(&self) -> &Path {
        &self.given
    }

    pub(super) fn failed(&self, what: &str, cause: impl Into<std::io::Error>) -> Error {
        Error::system(format!("{what} {}", self.given.display()), cause)
    }

    /// A path through the held directory, for system calls that take no descriptor.
    pub(super) fn through_parent(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.parent.as_raw_fd().to_string()).join(&self.name)
    }

    /// Keeps other users of this library, in whatever process, from mounting in the same directory meanwhile.
    pub(super) fn lock(&self) -> Result<OwnedFd, Error> {
        let fail = |errno: Errno| self.failed("lock the directory of", errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.parent, ".", flags, Mode::empty()).map_err(fail)?;
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(directory),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::new(
                        Kind::Busy,
                        format!("lock the directory of {}", self.given.display()),
                    )
                    .with_answer(format!("somebody else kept it locked for {LOCK_WAIT:?}"))
                    .with_advice("try again"));
                }
                Err(errno) => return Err(fail(errno)),
            }
        }
    }

    /// The mount in which the directory lies.
    pub(super) fn mount_below(&self) -> std::io::Result<MountId> {
        mount_id(self.parent.as_fd())
    }

    /// Opens what is there without following a link, using it, or reading anything from its filesystem.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty())
    }

    /// The mount that is there, and its root open for reading.
    #[cfg(feature = "filesystem")]
    pub(crate) fn open_mounted(&self, tried: &impl Fn() -> String) -> Result<(OwnedFd, Mount), Error> {
        let Present::Mounted(mount) = self.present()? else {
            return Err(Error::new(Kind::NotFound, tried()).with_answer("nothing is mounted there"));
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let root = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty());
        root.map(|root| (root, *mount)).map_err(|errno| Error::system(tried(), errno))
    }

    /// What is there now. This reads nothing from the filesystem that may be mounted there, so it also answers when
    /// that one is dead.
    ///
    /// # Errors
    ///
    /// When the directory cannot be searched or the mount table cannot be read.
    pub fn present(&self) -> Result<Present, Error> {
        let fail = |cause: std::io::Error| self.failed("look at", cause);
        // A mount may come or go between the look and the table: then the look is repeated.
        for _ in 0..5 {
            let there = match self.open() {
                Ok(there) => there,
                Err(Errno::NOENT) => return Ok(Present::Nothing),
                Err(errno) => return Err(fail(errno.into())),
            };
            let id = mount_id(there.as_fd()).map_err(fail)?;
            if id == self.mount_below().map_err(fail)? {
                let kind = rustix::fs::fstat(&there).map_err(|errno| fail(errno.into()))?.st_mode;
                return Ok(match FileType::from_raw_mode(kind) {
                    FileType::Directory => Present::Directory,
                    FileType::RegularFile => Present::File,
                    _ => Present::Other,
                });
            }
            drop(there);
            if let Some(mount) = MountTable::read()?.by_id(id) {
                return Ok(Present::Mounted(Box::new(mount.clone())));
            }
        }
        Err(Error::new(Kind::Busy, format!("look at {}", self.given.display()))
            .with_answer("what is mounted there changes all the time, or is not in the mount table")
            .with_advice("try again"))
    }

    /// Makes a directory there, with mode 0750; one that is there already will do, also with a mount on it.
    ///
    /// # Errors
    ///
    /// [`Kind::AlreadyExists`] when something else is there.
    pub fn make_directory(&self) -> Result<Change, Error> {
        match rustix::fs::mkdirat(&self.parent, &self.name, Mode::from_raw_mode(0o750)) {
            Ok(()) => Ok(Change::Made(())),
            Err(Errno::EXIST) => match self.present()? {
                Present::Directory | Present::Mounted(_) => Ok(Change::Already(())),
                _ => Err(self.failed("make directory", Errno::EXIST).with_answer("something else is there")),
            },
            Err(errno) => Err(self.failed("make directory", errno)),
        }
    }

    /// Makes an empty file there on which a device's node can be mounted; one that is there already will do.
    ///
    /// # Errors
    ///
    /// [`Kind::AlreadyExists`] when something else is there, or a file that is not empty.
    pub fn make_file(&self) -> Result<Change, Error> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.parent, &self.name, flags, Mode::from_raw_mode(0o640)) {
            Ok(_) => Ok(Change::Made(())),
            Err(Errno::EXIST) => {
                let other = |what: &str| self.failed("make file", Errno::EXIST).with_answer(what);
                match self.present()? {
                    Present::Mounted(_) => Ok(Change::Already(())),
                    Present::File => {
                        let there = self.open().and_then(rustix::fs::fstat);
                        match there.map_err(|errno| self.failed("look at", errno))?.st_size {
                            0 => Ok(Change::Already(())),
                            _ => Err(other("a file with content is there")),
                        }
                    }
                    Present::Directory => {
                        Err(other("a directory is there, and a device's node needs a file"))
                    }
                    _ => Err(other("something else is there")),
                }
            }
            Err(errno) => Err(self.failed("make file", errno)),
        }
    }

    /// A file that a device is mounted on is made empty; one with content is somebody else's.
    fn is_empty_file(&self) -> Result<(), Error> {
        let there = self.open().map_err(|errno| self.failed("remove", errno))?;
        let size = rustix::fs::fstat(&there).map_err(|errno| self.failed("remove", errno))?.st_size;
        if size == 0 {
            return Ok(());
        }
        Err(Error::new(Kind::Foreign, format!("remove {}", self.given.display()))
            .with_answer(format!("the file holds {size} bytes"))
            .with_advice("see what is inside: it was never part of the volume"))
    }

    /// Removes the empty directory or the empty file that is there, once nothing is mounted on it. Nothing inside is
    /// ever removed: what is not empty is an error.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] when something is mounted there; [`Kind::Foreign`] for a directory or a file with content.
    pub fn remove(&self) -> Result<Change, Error> {
        let flags = match self.present()? {
            Present::Nothing => return Ok(Change::Already(())),
            Present::Directory => AtFlags::REMOVEDIR,
            Present::File => {
                self.is_empty_file()?;
                AtFlags::empty()
            }
            Present::Mounted(_) => {
                return Err(self.failed("remove", Errno::BUSY).with_answer("something is mounted there"));
            }
            Present::Other => {
                return Err(Error::new(Kind::Foreign, format!("remove {}", self.given.display()))
                    .with_answer("it is neither a directory nor a file"));
            }
        };
        match rustix::fs::unlinkat(&self.parent, &self.name, flags) {
            Ok(()) => Ok(Change::Made(())),
            Err(Errno::NOENT) => Ok(Change::Already(())),
            Err(Errno::NOTEMPTY) => {
                Err(Error::new(Kind::Foreign, format!("remove {}", self.given.display()))
                    .with_answer("the directory is not empty")
                    .with_advice("see what is inside: it was never part of the volume"))
            }
            Err(errno) => Err(self.failed("remove", errno)),
        }
    }
}

#[derive(Clone, Copy)]
enum Parents {
    MustExist,
    Make,
}

fn open_below(root: BorrowedFd<'_>, directory: &Path) -> Result<OwnedFd, Errno> {
    if directory.as_os_str().is_empty() {
        return rustix::fs::openat(root, ".", DIRECTORY, Mode::empty());
    }
    let resolve = NO_LINKS | ResolveFlags::BENEATH;
    // The kernel asks for another try when a rename anywhere on the host raced with it (openat2(2), EAGAIN).
    for _ in 0..128 {
        match rustix::fs::openat2(root, directory, DIRECTORY, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

fn make_below(root: OwnedFd, directory: &Path) -> Result<OwnedFd, Errno> {
    let mut at = root;
    for part in directory.components() {
        let Component::Normal(name) = part else { return Err(Errno::INVAL) };
        match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o750)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        at = open_below(at.as_fd(), Path::new(name))?;
    }
    Ok(at)
}

/// The mount to which an open file belongs, from what the kernel itself knows: no filesystem is asked.
pub(super) fn mount_id(file: BorrowedFd<'_>) -> std::io::Result<MountId> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let field = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let number = field.and_then(|field| field.trim().parse().ok());
    number
        .map(MountId::new)
        .ok_or_else(|| std::io::Error::other("the kernel tells no mount id of an open file"))
}

impl AsRef<OsStr> for Target {
    fn as_ref(&self) -> &OsStr {
        self.given.as_os_str()
    }
}
