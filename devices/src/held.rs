//! A block device that stays the one that was opened, whatever becomes of its name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::block::answering;
use crate::discovery::Disk;
use crate::stamp::{Stamp, path_of};
use crate::{DeviceNumber, Error, Kind};

/// A block device, open for reading and shared with everybody.
///
/// Whatever is done to a device by several steps or by other programs is done through this: a name in `/dev` can lead
/// to another device at any moment, [`Self::lasting_path`] cannot.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    path: PathBuf,
    stamp: Stamp,
}

impl Held {
    /// Opens the device that a path leads to now; a suspended one is refused, since it would not answer.
    pub(crate) fn open(device: &Path, tried: &impl Fn() -> String) -> Result<Self, Error> {
        let number = answering(device, "it", tried)?;
        let failed = |cause: io::Error| Error::system(tried(), cause);
        let file = open(device, OFlags::empty(), Write::No).map_err(failed)?;
        match Stamp::of(&file).map_err(failed)? {
            Some(stamp) if stamp.number == number => Ok(Self { file, path: device.to_owned(), stamp }),
            _ => Err(Error::new(Kind::Busy, tried())
                .with_answer("the path led to another device meanwhile")
                .with_advice("try again")),
        }
    }

    /// The path that it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads to this device and no other as long as this lives, in this process and in its children.
    pub(crate) fn lasting_path(&self) -> PathBuf {
        path_of(&self.file)
    }

    /// The device's number.
    pub(crate) fn number(&self) -> DeviceNumber {
        self.stamp.number
    }

    /// Fails when this is not the device that an inventory showed, but one that came to its name or number since.
    pub(crate) fn is_still(&self, disk: &Disk, tried: &str) -> Result<(), Error> {
        let sequences = (self.stamp.sequence, disk.sequence);
        let same = !matches!(sequences, (Some(now), Some(then)) if now != then);
        if self.stamp.number == disk.number && same {
            return Ok(());
        }
        Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("{} is not the device any more that was looked at", disk.path.display()))
            .with_advice("look at it again"))
    }

    /// The same device, open for reading through the page cache.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Opens the same device once more, for writing and with `O_EXCL`: no mount, no other device and no other such
    /// descriptor shares it, in whatever mount namespace. `EBUSY` where one does.
    pub(crate) fn alone(&self) -> io::Result<File> {
        let file = open(&self.lasting_path(), OFlags::EXCL, Write::Yes)?;
        match Stamp::of(&file)? {
            Some(stamp) if stamp == self.stamp => Ok(file),
            // A removable medium was changed.
            _ => Err(io::Error::other("it is another device or has another medium by now")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Yes,
    No,
}

fn open(device: &Path, flags: OFlags, write: Write) -> io::Result<File> {
    let flags = i32::try_from((flags | OFlags::NONBLOCK | OFlags::CLOEXEC).bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(write == Write::Yes).custom_flags(flags).open(device)
}
