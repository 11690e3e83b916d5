//! The one unix socket of a driver.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::umask;
use volumes::{Error, Kind};

/// Longest path of a socket that the kernel takes (`sun_path`), its final NUL left out.
const LONGEST: usize = 107;

/// Where a driver is served: `unix:///run/gabion/csi.sock`.
///
/// ```
/// use csi::Endpoint;
///
/// let endpoint: Endpoint = "unix:///run/gabion/csi.sock".parse()?;
/// assert_eq!(endpoint.path().to_str(), Some("/run/gabion/csi.sock"));
/// assert!("tcp://127.0.0.1:10000".parse::<Endpoint>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(PathBuf);

impl Endpoint {
    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
        if !path.starts_with('/') || path.ends_with('/') || path.contains(char::is_control) {
            return Err(format!("{text:?} is no endpoint; write unix:///run/gabion/csi.sock"));
        }
        if path.len() > LONGEST {
            return Err(format!("the path of a socket has at most {LONGEST} bytes"));
        }
        Ok(Self(path.into()))
    }
}

/// A socket that callers can connect to; its file goes with it.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode, so that nobody else's file is ever removed.
    file: (u64, u64),
}

impl Socket {
    /// Makes the socket, for root alone. One that nobody answers on was left behind, and is replaced.
    ///
    /// Call it before other threads are started: the process's umask changes for a moment.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] when somebody answers there; [`Kind::Refused`] when something else than a socket is there;
    /// [`Kind::Internal`] with what the system answered.
    pub fn bind(endpoint: &Endpoint) -> Result<Self, Error> {
        let path = endpoint.path();
        let tried = || format!("serve on {}", path.display());
        let failed = |cause: std::io::Error| Error::system(tried(), cause);
        let directory = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory).map_err(failed)?;
        // Whoever starts at the same moment waits here, and then finds an answer on our socket. No file is needed for
        // that, and none may lie beside the socket.
        let held = File::open(directory).map_err(failed)?;
        flock(&held, FlockOperation::LockExclusive).map_err(|cause| failed(cause.into()))?;
        remove_stale(path, &tried)?;
        let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let file = identity(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), listener, file })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn listener(&self) -> std::io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|there| there == self.file) {
            // A file that stays is stale, and replaced by the next one to serve here.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()))
}

fn remove_stale(path: &Path, tried: &dyn Fn() -> String) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(Error::system(tried(), cause)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(Error::new(Kind::Refused, tried())
                .with_answer("something else than a socket is there")
                .with_advice("remove it, or choose another path"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(Error::new(Kind::Busy, tried())
            .with_answer("another process answers there")
            .with_advice("stop it first")),
        Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|cause| Error::system(tried(), cause))
        }
        Err(cause) => Err(Error::system(tried(), cause)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn endpoints_are_absolute_paths_of_sockets() {
        for good in ["unix:///run/x.sock", "unix:/run/x.sock", "/run/x.sock"] {
            assert_eq!(good.parse::<Endpoint>().unwrap().path(), Path::new("/run/x.sock"));
        }
        let long = format!("unix:///{}", "x".repeat(107));
        for bad in ["", "unix://", "unix://x.sock", "run/x.sock", "unix:///run/", "tcp://1", "/a\nb", &long] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_everything_else_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/csi.sock");
        let endpoint: Endpoint = path.to_str().unwrap().parse().unwrap();
        let first = Socket::bind(&endpoint).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Socket::bind(&endpoint).unwrap_err().kind(), Kind::Busy);
        assert!(UnixStream::connect(&path).is_ok());
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "the standard library leaves it behind");
        let second = Socket::bind(&endpoint).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "somebody's").unwrap();
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        assert_eq!(Socket::bind(&endpoint).unwrap_err().kind(), Kind::Refused);
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
    }

    #[test]
    fn of_many_that_start_at_once_one_serves() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("csi.sock");
        drop(UnixListener::bind(&path).unwrap());
        let endpoint: Endpoint = path.to_str().unwrap().parse().unwrap();
        let all: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| Socket::bind(&endpoint))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1);
        assert!(UnixStream::connect(&path).is_ok());
    }
}
