//! The proof that a device may be formatted.

use std::fs::File;
use std::path::{Path, PathBuf};

use devices::{Bytes, DeviceNumber, SIGNATURE_HEAD, signature_ends};

use crate::device::Device;
use crate::{Error, Kind, Superblock};

/// A block device that holds nothing, and that this process alone has open.
///
/// It is the only way to format a device. As long as it exists nobody else can mount the device, register it or make it part
/// of anything (`O_EXCL`, which spans mount namespaces), so what was proven stays true until the superblock is written.
///
/// A device that has bcache's magic is never blank, whatever a caller says of it: it was formatted once already.
///
/// ```no_run
/// use bcache::{Blank, NewBacking};
///
/// let blank = Blank::claim("/dev/vg/slow".as_ref())?;
/// let superblock = NewBacking::new().label("db".parse()?).format(blank)?;
/// println!("{}", superblock.uuid);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Blank {
    device: Device,
}

impl Blank {
    /// Claims a device that is all zeroes wherever a signature can lie ([`signature_ends`]).
    ///
    /// # Errors
    ///
    /// [`Kind::Foreign`] with the place of what is there, [`Kind::AlreadyExists`] when it is a bcache device,
    /// [`Kind::InUse`], [`Kind::Busy`] when it is suspended, [`Kind::NotFound`], [`Kind::Io`].
    pub fn claim(path: &Path) -> Result<Self, Error> {
        let tried = tried(path);
        let device = Device::claim(path, &tried)?;
        refuse_bcache(&device, &tried)?;
        for (from, to) in ends(device.size()) {
            if let Some(at) = device.first_content(from, to, &tried)? {
                return Err(Error::new(Kind::Foreign, tried)
                    .with_answer(format!("something is written at byte {at}"))
                    .with_advice("wipe it first if what is on it is not needed"));
            }
        }
        Ok(Self { device })
    }

    /// Claims a device of which the caller's own probe says that it holds nothing, though it is not all zeroes: space that
    /// was used before, and whose signatures were wiped.
    ///
    /// The probe runs while the device is held, on the open device, so that the check and the use are one step; it answers
    /// with the reason when the device holds something. In doubt (an ambiguous signature, an error) it must refuse.
    ///
    /// # Errors
    ///
    /// [`Kind::Foreign`] with the probe's reason, and the same as [`Blank::claim`].
    pub fn claim_probed(path: &Path, probe: impl FnOnce(&File) -> Result<(), String>) -> Result<Self, Error> {
        let tried = tried(path);
        let device = Device::claim(path, &tried)?;
        refuse_bcache(&device, &tried)?;
        match probe(device.file()) {
            Ok(()) => Ok(Self { device }),
            Err(reason) => Err(Error::new(Kind::Foreign, tried).with_answer(reason)),
        }
    }

    /// The device's path, as it was claimed.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> DeviceNumber {
        self.device.number()
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Bytes {
        self.device.size()
    }

    /// Its logical block size.
    #[must_use]
    pub fn logical_block(&self) -> Bytes {
        self.device.logical_block()
    }

    /// Zeroes where signatures could lie, as seen from the byte `start` of the device, then writes the superblock.
    ///
    /// The superblock comes last and in one write: before it the device is blank, after it the device is formatted.
    pub(crate) fn format(self, superblock: &Superblock, start: Bytes, tried: &str) -> Result<PathBuf, Error> {
        let size = self.device.size().get();
        for (from, to) in ends(self.device.size()) {
            self.device.zero(from, to, tried)?;
        }
        // Below the cache, what lies here is the start of the cached device, where an old filesystem would come back.
        self.device.zero(start.get(), start.get().saturating_add(SIGNATURE_HEAD.get()).min(size), tried)?;
        self.device.flush(tried)?;
        self.device.write(Superblock::OFFSET.get(), &superblock.encode(), tried)?;
        match Superblock::read_from(&self.device, tried)? {
            Some(written) if written == *superblock => Ok(self.device.path().to_owned()),
            _ => Err(Error::new(Kind::Io, tried)
                .with_effect(devices::Effect::Unknown)
                .with_answer("the superblock does not read back as it was written")),
        }
    }
}

fn tried(path: &Path) -> String {
    format!("claim {} for bcache", path.display())
}

fn refuse_bcache(device: &Device, tried: &str) -> Result<(), Error> {
    match Superblock::read_from(device, tried) {
        Ok(None) => Ok(()),
        Ok(Some(found)) => Err(Error::new(Kind::AlreadyExists, tried)
            .with_answer(format!("it is the bcache device {} already", found.uuid))
            .with_advice("register it; a bcache device is never formatted again")),
        Err(error) => Err(error.with_advice("it is a bcache device, and is not formatted again")),
    }
}

/// The ranges in which signatures can lie, in whole blocks.
fn ends(size: Bytes) -> impl Iterator<Item = (u64, u64)> {
    signature_ends(size).into_iter().map(|end| (aligned(end.start.get()), end.end.get()))
}

/// The start of the block of 4 KiB.
const fn aligned(at: u64) -> u64 {
    at & !4095
}
