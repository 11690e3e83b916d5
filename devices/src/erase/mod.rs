//! Taking everything off a device: its signatures, or each of its blocks.
//!
//! The device is claimed first: one that is mounted, or held by anything, is not touched. Consent and a record of what was
//! done are the business of [`Records`].
//!
//! ```no_run
//! use devices::erase::{Cancel, Method, erase};
//!
//! let cancel = Cancel::new();
//! erase("/dev/sdb".as_ref(), Method::ZeroOut, &cancel, &mut |progress| println!("{progress}"))?;
//! # Ok::<(), devices::Error>(())
//! ```

mod blocks;
mod record;
mod signatures;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::gpt::DiskFile;
use crate::probe::Signature;
use crate::{Bytes, Error};

pub use record::{Consent, Records};

/// How the blocks of a device are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The disk is told that it needs none of its blocks; what a later read gives is up to it.
    Discard,
    /// The disk writes zeroes by itself, or the kernel does.
    ZeroOut,
    /// Random bytes are written over everything.
    Overwrite,
}

/// How far an erasure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is erased.
    pub done: Bytes,
    /// All of it.
    pub total: Bytes,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.done, self.total)
    }
}

/// Stops a long operation from another thread. Clones stop the same one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Nothing is stopped yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the operation at its next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A signature that was wiped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wiped {
    /// The disk, or the partition of it.
    pub device: PathBuf,
    /// What was there.
    pub signature: Signature,
}

/// Wipes every signature that libblkid knows from a device and from each of its partitions, which then are no more;
/// zeroes all of them in which signatures can lie ([`signature_ends`](crate::signature_ends)); and looks again whether
/// nothing is left.
///
/// # Errors
///
/// [`Kind::InUse`](crate::Kind::InUse) if the device or a part of it is in use, and then nothing was changed;
/// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) for anything but a block device: a file is never touched;
/// [`Kind::Inconsistent`](crate::Kind::Inconsistent) if something is still found afterwards; and of the disk.
pub fn wipe(path: &Path) -> Result<Vec<Wiped>, Error> {
    wiped(&mut DiskFile::claim(path)?)
}

fn wiped(disk: &mut DiskFile) -> Result<Vec<Wiped>, Error> {
    let found = signatures::present(disk)?;
    signatures::wipe(disk)?;
    Ok(found)
}

/// Wipes a device as [`wipe`] does, and then erases each of its blocks. `progress` is called after every piece.
///
/// # Errors
///
/// As [`wipe`]; [`Kind::Unsupported`](crate::Kind::Unsupported) if the disk cannot do it;
/// [`Kind::Cancelled`](crate::Kind::Cancelled) if it was stopped, when what is erased stays so.
pub fn erase(
    path: &Path,
    method: Method,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Wiped>, Error> {
    let mut claim = DiskFile::claim(path)?;
    let found = wiped(&mut claim)?;
    blocks::erase(&mut claim, method, cancel, progress)?;
    Ok(found)
}
