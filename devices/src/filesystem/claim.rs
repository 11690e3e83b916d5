//! Having a device alone, and knowing what is on it, in one step.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use uuid::Uuid;

use super::FsType;
use super::tool::SPAWNING;
use crate::held::Held;
use crate::mount::MountTable;
use crate::probe::{Probed, Signature, probe};
use crate::{Bytes, Error, Kind};

/// How long somebody's look (udev's after a close, above all) may keep a device from being claimed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A filesystem that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its type.
    pub fs: FsType,
    /// Its uuid.
    pub uuid: Uuid,
    /// Its label.
    pub label: Option<String>,
}

/// Which filesystem is on a device, whoever uses it; `None` when there is none of ours.
///
/// Only filesystems are looked at: two bytes at the end of a volume that look like an array's do not hide one. This
/// is no proof that a device is blank; only [`Blank`] is.
///
/// # Errors
///
/// [`Kind::Busy`] for a suspended device; [`Kind::Io`] when it cannot be read: that is never "nothing found".
pub fn detect(device: &Path) -> Result<Option<Found>, Error> {
    let tried = || format!("look for a filesystem on {}", device.display());
    let held = Held::open(device, &tried)?;
    Ok(signatures(probe(held.file())?).into_iter().find_map(|signature| filesystem(&signature)))
}

/// A block device that this process alone has open for a claim, and on which no signature was found since.
///
/// It is the only thing from which a filesystem is made, and making one consumes it:
///
/// ```no_run
/// use devices::filesystem::{Blank, Format, FsType, Uuid};
///
/// let blank = Blank::claim("/dev/data/db".as_ref())?;
/// let made = blank.make(&Format::new(FsType::Ext4, Uuid::new_v4()))?;
/// println!("{} {}", made.fs, made.uuid);
/// # Ok::<(), devices::Error>(())
/// ```
///
/// That no signature was found does not mean that a device is new: a damaged superblock is no signature either.
/// Whether a device may be formatted is told by its owner's own record alone; see [`ensure`](super::ensure).
#[derive(Debug)]
pub struct Blank {
    claim: Claim,
}

impl Blank {
    /// Claims a device and looks at it.
    ///
    /// # Errors
    ///
    /// [`Kind::Foreign`] when anything is on it, contradicting signatures among that; [`Kind::InUse`] when it is
    /// mounted, held by another device or claimed; [`Kind::Busy`] for a suspended device; [`Kind::Io`] when it
    /// cannot be read: then nothing is known, and it is not blank.
    pub fn claim(device: &Path) -> Result<Self, Error> {
        Self::proven(Claim::new(device)?)
    }

    /// The same after an attempt of ours that did not end: what it may have left, a filesystem of exactly this type
    /// and uuid and nothing else, loses its superblock. Call it only where the owner's record says that making was
    /// begun and not ended.
    ///
    /// # Errors
    ///
    /// As for [`Blank::claim`].
    pub fn claim_unfinished(device: &Path, fs: FsType, uuid: Uuid) -> Result<Self, Error> {
        let claim = Claim::new(device)?;
        // mkfs.btrfs refuses a uuid that any device bears already, this one included.
        if let Probed::Found(found) = probe(&claim.file)?
            && is_nothing_but(&found, fs, uuid)
        {
            claim.erase_superblock(fs)?;
        }
        Self::proven(claim)
    }

    fn proven(claim: Claim) -> Result<Self, Error> {
        let device = claim.path();
        let refused = |what: String| {
            Error::new(Kind::Foreign, format!("use {} as a blank device", device.display()))
                .with_answer(what)
                .with_advice("nothing is made on a device that holds anything; wipe it if it may go")
        };
        match probe(&claim.file)? {
            Probed::Blank => Ok(Self { claim }),
            Probed::Found(found) => Err(refused(format!("it holds {}", named(&found)))),
            Probed::Ambiguous(found) => {
                Err(refused(format!("it holds signatures that contradict each other: {}", named(&found))))
            }
        }
    }

    pub(super) fn into_claim(self) -> Claim {
        self.claim
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Bytes {
        self.claim.size
    }
}

/// A block device opened with `O_EXCL`, which no mount, no other device and no other claim shares, in whatever mount
/// namespace.
#[derive(Debug)]
pub(super) struct Claim {
    file: File,
    held: Held,
    pub(super) size: Bytes,
}

impl Claim {
    pub(super) fn new(device: &Path) -> Result<Self, Error> {
        Self::of(Held::open(device, &|| claiming(device))?)
    }

    /// Claims the very device that is held.
    pub(super) fn of(held: Held) -> Result<Self, Error> {
        let tried = || claiming(held.path());
        let failed = |cause: std::io::Error| Error::system(tried(), cause);
        let deadline = Instant::now() + PATIENCE;
        let mut file = loop {
            match held.alone() {
                Ok(file) => break file,
                Err(cause) if Errno::from_io_error(&cause) == Some(Errno::BUSY) => {
                    if let Some(mount) = MountTable::read()?.of_device(held.number()).next() {
                        return Err(failed(cause)
                            .with_answer(format!("it is mounted at {}", mount.mount_point.display()))
                            .with_advice("unmount it first"));
                    }
                    if Instant::now() >= deadline {
                        return Err(failed(cause)
                            .with_answer(
                                "it is mounted, held by another device, or claimed by another program",
                            )
                            .with_advice("lsblk and fuser -v tell who uses it"));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(cause) => return Err(failed(cause)),
            }
        };
        let size = Bytes::new(file.seek(SeekFrom::End(0)).map_err(failed)?);
        Ok(Self { file, held, size })
    }

    /// Lets programs have the device that claim it themselves; it cannot become another one meanwhile.
    pub(super) fn release(self) -> Held {
        let _nobody_starts = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.file);
        self.held
    }

    /// The path that it was claimed by.
    pub(super) fn path(&self) -> &Path {
        self.held.path()
    }

    /// Zeroes the first superblock, by which libblkid and the kernel know the filesystem.
    fn erase_superblock(&self, fs: FsType) -> Result<(), Error> {
        // ext4: struct ext4_super_block; xfs: struct xfs_dsb, one sector; btrfs: BTRFS_SUPER_INFO_OFFSET and _SIZE.
        let (start, length) = match fs {
            FsType::Ext4 => (1024, 1024),
            FsType::Xfs => (0, 512),
            FsType::Btrfs => (65_536, 4096),
        };
        let erased = self.file.write_all_at(&vec![0; length], start).and_then(|()| self.file.sync_all());
        let tried = || format!("erase what an unfinished attempt left on {}", self.path().display());
        erased.map_err(|cause| Error::system(tried(), cause))
    }

    /// What is on it.
    pub(super) fn detect(&self) -> Result<Option<Found>, Error> {
        Ok(signatures(probe(&self.file)?).into_iter().find_map(|signature| filesystem(&signature)))
    }
}

fn claiming(device: &Path) -> String {
    format!("claim {}", device.display())
}

fn signatures(probed: Probed) -> Vec<Signature> {
    match probed {
        Probed::Blank => Vec::new(),
        Probed::Found(found) | Probed::Ambiguous(found) => found,
    }
}

fn filesystem(signature: &Signature) -> Option<Found> {
    let fs = signature.kind.parse().ok()?;
    let uuid = signature.uuid.as_deref()?.parse().ok()?;
    Some(Found { fs, uuid, label: signature.label.clone() })
}

/// Whether there is something, and all of it is this filesystem.
fn is_nothing_but(found: &[Signature], fs: FsType, uuid: Uuid) -> bool {
    let ours = |signature: &Signature| {
        filesystem(signature).is_some_and(|found| found.fs == fs && found.uuid == uuid)
    };
    !found.is_empty() && found.iter().all(ours)
}

fn named(signatures: &[Signature]) -> String {
    let names: Vec<_> = signatures
        .iter()
        .map(|signature| match &signature.uuid {
            Some(uuid) => format!("{} {uuid}", signature.kind),
            None => signature.kind.clone(),
        })
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Usage;

    #[test]
    fn only_what_was_found_and_is_all_ours_loses_its_superblock() {
        let ours = "11111111-2222-3333-4444-555555555555";
        let uuid: Uuid = ours.parse().unwrap();
        let signature = |kind: &str, uuid: &str| Signature {
            kind: kind.into(),
            usage: Usage::Filesystem,
            label: None,
            uuid: Some(uuid.into()),
            offset: None,
        };
        let is = |found: &[Signature]| is_nothing_but(found, FsType::Btrfs, uuid);
        assert!(is(&[signature("btrfs", ours)]));
        assert!(!is(&[]));
        assert!(!is(&[signature("ext4", ours)]));
        assert!(!is(&[signature("btrfs", ours), signature("xfs", ours)]));
        assert!(!is(&[signature("btrfs", "11111111-2222-3333-4444-666666666666")]));
    }
}
