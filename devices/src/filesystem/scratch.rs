//! A mount for a moment, at no place.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::FsType;
use super::claim::PATIENCE;
use crate::held::Held;
use crate::mount::{MountOptions, detached};
use crate::{Error, Kind};

/// A filesystem that is mounted in no directory of any namespace, so that nobody comes upon it. The kernel unmounts it
/// when this is dropped, and when the process is killed: nothing of it can stay.
#[derive(Debug)]
pub(super) struct Scratch {
    // Dropped in this order.
    root: OwnedFd,
    _mount: OwnedFd,
}

impl Scratch {
    pub(super) fn mount(device: &Held, fs: FsType, tried: &impl Fn() -> String) -> Result<Self, Error> {
        // A clone may still bear the uuid of its original, which may be mounted.
        let options: &[&str] = if fs == FsType::Xfs { &["nouuid", "noexec"] } else { &["noexec"] };
        let options = MountOptions::parse(options)?;
        let deadline = Instant::now() + PATIENCE;
        let mount = loop {
            match detached(&device.lasting_path(), fs.as_str(), &options, tried) {
                // A look of somebody's, or a child of this process that is not another program yet.
                Err(error) if error.kind() == Kind::InUse && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(20));
                }
                other => break other?,
            }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&mount, ".", flags, Mode::empty())
            .map_err(|errno| Error::system(tried(), errno))?;
        Ok(Self { root, _mount: mount })
    }

    /// Its root directory.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }
}
