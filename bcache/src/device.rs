//! Block devices, opened with care: never while suspended, and read and written past the page cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use devices::{Bytes, DeviceNumber};
use rustix::fs::OFlags;

use crate::error::{suspended, system};
use crate::{Error, Kind};

/// What buffers and offsets are aligned to: no disk has larger logical blocks.
const ALIGN: usize = 4096;
/// Bytes read or written at once.
const STEP: u64 = 1 << 20;

/// An open block device.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    path: PathBuf,
    number: DeviceNumber,
    size: Bytes,
}

impl Device {
    /// Opens a block device to look at it. Nobody is disturbed, but udev's watch does not fire either.
    pub(crate) fn open_to_read(path: &Path, tried: &str) -> Result<Self, Error> {
        Self::open(path, OFlags::empty(), false, tried)
    }

    /// Opens a block device for this process alone: it fails while the device is mounted or held by anyone.
    pub(crate) fn claim(path: &Path, tried: &str) -> Result<Self, Error> {
        Self::open(path, OFlags::EXCL, true, tried)
    }

    fn open(path: &Path, flags: OFlags, writes: bool, tried: &str) -> Result<Self, Error> {
        let number = number_of(path, tried)?;
        if is_suspended(Path::new("/sys"), number) {
            return Err(suspended(tried, number));
        }
        let flags = (flags | OFlags::DIRECT).bits().cast_signed();
        let file = File::options().read(true).write(writes).custom_flags(flags).open(path);
        let file = file.map_err(|cause| {
            let error = system(tried)(cause);
            match error.kind() {
                Kind::InUse => error.with_advice("unmount it, or stop what holds it, first"),
                _ => error,
            }
        })?;
        let opened = file.metadata().map_err(system(tried))?.rdev();
        if DeviceNumber::from_rdev(opened) != number {
            let answer = format!("{} became another device meanwhile", path.display());
            return Err(Error::new(Kind::Busy, tried).with_answer(answer));
        }
        let size = (&file).seek(SeekFrom::End(0)).map_err(system(tried))?;
        Ok(Self { file, path: path.to_owned(), number, size: Bytes::new(size) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn number(&self) -> DeviceNumber {
        self.number
    }

    pub(crate) fn size(&self) -> Bytes {
        self.size
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its logical block size as sysfs tells; 512 bytes where it does not.
    pub(crate) fn logical_block(&self) -> Bytes {
        let device = PathBuf::from(format!("/sys/dev/block/{}", self.number));
        // A partition has the queue of its disk.
        let read = |queue: &str| std::fs::read_to_string(device.join(queue)).ok()?.trim().parse::<u64>().ok();
        let size = read("queue/logical_block_size").or_else(|| read("../queue/logical_block_size"));
        Bytes::new(size.unwrap_or(512))
    }

    /// Whole aligned blocks.
    pub(crate) fn read(&self, at: u64, length: usize, tried: &str) -> Result<Vec<u8>, Error> {
        let mut buffer = vec![0; length + ALIGN];
        let start = buffer.as_ptr().align_offset(ALIGN);
        let piece = buffer.get_mut(start..start + length).unwrap_or_default();
        self.file.read_exact_at(piece, at).map_err(system(tried))?;
        Ok(piece.to_vec())
    }

    /// Whole aligned blocks, and down to the medium.
    pub(crate) fn write(&self, at: u64, bytes: &[u8], tried: &str) -> Result<(), Error> {
        let mut buffer = vec![0; bytes.len() + ALIGN];
        let start = buffer.as_ptr().align_offset(ALIGN);
        let piece = buffer.get_mut(start..start + bytes.len()).unwrap_or_default();
        piece.copy_from_slice(bytes);
        self.file.write_all_at(piece, at).map_err(system(tried))?;
        self.flush(tried)
    }

    pub(crate) fn flush(&self, tried: &str) -> Result<(), Error> {
        self.file.sync_all().map_err(system(tried))
    }

    /// Where in a range anything but a zero lies first, to the nearest step.
    pub(crate) fn first_content(&self, from: u64, to: u64, tried: &str) -> Result<Option<u64>, Error> {
        for (at, length) in steps(from, to) {
            let piece = self.read(at, length, tried)?;
            if let Some(place) = piece.iter().position(|byte| *byte != 0) {
                return Ok(Some(at + place as u64));
            }
        }
        Ok(None)
    }

    /// Zeroes over a range, where it is not zero already.
    pub(crate) fn zero(&self, from: u64, to: u64, tried: &str) -> Result<(), Error> {
        let to = to.min(self.size.get());
        for (at, length) in steps(from, to) {
            if self.first_content(at, at + length as u64, tried)?.is_some() {
                self.write(at, &vec![0; length], tried)?;
            }
        }
        Ok(())
    }
}

/// Whether nobody holds the device exclusively; what cannot be opened for another reason is not held.
pub(crate) fn is_free(path: &Path) -> bool {
    match Device::open(path, OFlags::EXCL, false, "look whether it is free") {
        Err(error) => error.kind() != Kind::InUse,
        Ok(_) => true,
    }
}

/// The number of a block device by its path, without opening it.
pub(crate) fn number_of(path: &Path, tried: &str) -> Result<DeviceNumber, Error> {
    let metadata = std::fs::metadata(path).map_err(system(tried))?;
    if !metadata.file_type().is_block_device() {
        let answer = format!("{} is no block device", path.display());
        return Err(Error::new(Kind::InvalidArgument, tried).with_answer(answer));
    }
    Ok(DeviceNumber::from_rdev(metadata.rdev()))
}

/// Whether device-mapper has the device suspended; taken for suspended when that cannot be told.
pub(crate) fn is_suspended(sys: &Path, number: DeviceNumber) -> bool {
    match std::fs::read_to_string(sys.join(format!("dev/block/{number}/dm/suspended"))) {
        Ok(text) => text.trim() != "0",
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn steps(from: u64, to: u64) -> impl Iterator<Item = (u64, usize)> {
    (from..to)
        .step_by(usize::try_from(STEP).unwrap_or(1 << 20))
        .map(move |at| (at, usize::try_from((to - at).min(STEP)).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_device_is_not_opened() {
        let error = Device::open_to_read(Path::new("/dev/null"), "look").unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        let error = Device::claim(Path::new("/no/such/device"), "look").unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
    }

    #[test]
    fn a_suspended_device_is_known_from_sysfs() {
        let sys = tempfile::tempdir().unwrap();
        let number = DeviceNumber { major: 254, minor: 3 };
        assert!(!is_suspended(sys.path(), number));
        let dm = sys.path().join("dev/block/254:3/dm");
        std::fs::create_dir_all(&dm).unwrap();
        for (text, suspended) in [("0\n", false), ("1\n", true), ("", true)] {
            std::fs::write(dm.join("suspended"), text).unwrap();
            assert_eq!(is_suspended(sys.path(), number), suspended, "{text:?}");
        }
    }
}
