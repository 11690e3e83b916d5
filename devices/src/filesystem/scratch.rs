//! A mount for a moment, at no place.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use super::FsType;
use crate::Error;
use crate::held::Held;
use crate::mount::{MountOptions, detached};

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
        let source = device.lasting_path();
        let mount = detached((&source, device.number()), fs.as_str(), &options, tried)?;
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
