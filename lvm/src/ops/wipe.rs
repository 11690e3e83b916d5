//! Writing over what lay on a device, straight past the page cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use devices::{Bytes, Sectors, signature_ends};
use rustix::io::Errno;

use crate::{Error, Kind};

/// Bytes written or read at once.
const STEP: u64 = 1 << 20;
/// What buffers and offsets are aligned to: no disk has larger logical blocks.
const ALIGN: usize = 4096;

const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits().cast_signed();
const O_EXCL: i32 = rustix::fs::OFlags::EXCL.bits().cast_signed();

/// Makes sure that no signature can be found on a new volume: wherever one can lie are zeroes, as read back from the
/// device, and flushed.
///
/// Whoever closes a device that he could write to has udevd probe it, and what is done with it next waits for that. So it
/// is opened for writing only where there is something to write.
///
/// # Errors
///
/// [`Kind::InUse`] when somebody has the device open for himself, [`Kind::Io`].
pub(crate) fn signatures(device: &Path, tried: &str) -> Result<(), Error> {
    let wipe = || -> io::Result<()> {
        if has_no_signatures(device)? {
            return Ok(());
        }
        let file = open(device)?;
        let size = length(&file)?;
        for end in signature_ends(Bytes::new(size)) {
            let (from, to) = (end.start.get(), end.end.get());
            if !is_zero(&file, from, to)? {
                write_zeroes(&file, from, to)?;
                if !is_zero(&file, from, to)? {
                    return Err(io::Error::other("it does not read back the zeroes that were written"));
                }
            }
        }
        file.sync_all()
    };
    wipe().map_err(|cause| failed(device, cause, "wipe", tried))
}

/// Whether zeroes are wherever a signature can lie. Then they are on the medium as well: LVM may have written them just
/// now.
fn has_no_signatures(device: &Path) -> io::Result<bool> {
    let file = File::options().read(true).custom_flags(O_DIRECT | O_EXCL).open(device)?;
    let size = length(&file)?;
    for end in signature_ends(Bytes::new(size)) {
        if !is_zero(&file, end.start.get(), end.end.get())? {
            return Ok(false);
        }
    }
    file.sync_all()?;
    Ok(true)
}

/// Writes zeroes over a whole device.
///
/// # Errors
///
/// [`Kind::InUse`] when somebody has the device open for himself, [`Kind::Io`].
pub(crate) fn zero(device: &Path, tried: &str) -> Result<(), Error> {
    let zero = || -> io::Result<()> {
        let file = open(device)?;
        let size = length(&file)?;
        write_zeroes(&file, 0, size)?;
        file.sync_all()
    };
    zero().map_err(|cause| failed(device, cause, "zero", tried))
}

/// Writes zeroes over parts of a device; what lies behind its end is left out.
///
/// # Errors
///
/// [`Kind::InUse`] when somebody has the device open for himself, [`Kind::Io`].
pub(crate) fn zero_ranges(
    device: &Path,
    ranges: impl IntoIterator<Item = Range<Bytes>>,
    tried: &str,
) -> Result<(), Error> {
    let zero = || -> io::Result<()> {
        let file = open(device)?;
        let size = length(&file)?;
        for range in ranges {
            write_zeroes(&file, range.start.get(), range.end.get().min(size))?;
        }
        file.sync_all()
    };
    zero().map_err(|cause| failed(device, cause, "zero", tried))
}

/// Writes zeroes from an offset of a device to its end, also while the device is in use.
///
/// # Errors
///
/// [`Kind::Io`].
pub(crate) fn zero_from(device: &Path, from: Bytes, tried: &str) -> Result<(), Error> {
    let zero = || -> io::Result<()> {
        let file = File::options().read(true).write(true).custom_flags(O_DIRECT).open(device)?;
        let size = length(&file)?;
        write_zeroes(&file, from.get(), size)?;
        file.sync_all()
    };
    zero().map_err(|cause| failed(device, cause, "zero the end of", tried))
}

/// Tells the disk that nothing on the device is needed any more, a GiB at a time.
///
/// # Errors
///
/// [`Kind::InUse`] when somebody has the device open for himself, [`Kind::Unsupported`], [`Kind::Io`].
pub(crate) fn discard(device: &Path, tried: &str) -> Result<(), Error> {
    const STEP: u64 = 1 << 21;
    let discard = || -> io::Result<()> {
        let file = open(device)?;
        let size = length(&file)? / Sectors::SIZE;
        let mut at = 0;
        while at < size {
            let step = STEP.min(size - at);
            devices::discard(&file, Sectors::new(at), Sectors::new(step))?;
            at += step;
        }
        Ok(())
    };
    discard().map_err(|cause| failed(device, cause, "discard", tried))
}

fn open(device: &Path) -> io::Result<File> {
    // O_EXCL on a block device fails while it is mounted or held by another one.
    File::options().read(true).write(true).custom_flags(O_DIRECT | O_EXCL).open(device)
}

fn length(file: &File) -> io::Result<u64> {
    use std::io::Seek;
    let mut file: &File = file;
    file.seek(io::SeekFrom::End(0))
}

/// A zeroed buffer and where in it an aligned step begins.
fn buffer() -> (Vec<u8>, usize) {
    let buffer = vec![0; usize::try_from(STEP).unwrap_or(1 << 20) + ALIGN];
    let start = buffer.as_ptr().align_offset(ALIGN);
    (buffer, start)
}

fn steps(from: u64, to: u64) -> impl Iterator<Item = (u64, usize)> {
    (from..to)
        .step_by(usize::try_from(STEP).unwrap_or(1 << 20))
        .map(move |at| (at, usize::try_from((to - at).min(STEP)).unwrap_or(0)))
}

fn write_zeroes(file: &File, from: u64, to: u64) -> io::Result<()> {
    let (buffer, start) = buffer();
    steps(from, to).try_for_each(|(at, len)| file.write_all_at(&buffer[start..start + len], at))
}

fn is_zero(file: &File, from: u64, to: u64) -> io::Result<bool> {
    let (mut buffer, start) = buffer();
    for (at, len) in steps(from, to) {
        let piece = &mut buffer[start..start + len];
        file.read_exact_at(piece, at)?;
        // Whole blocks at a time, which the compiler makes wide instructions of: with an end at the first byte it cannot.
        if piece.chunks(ALIGN).any(|block| block.iter().fold(0, |all, byte| all | byte) != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn failed(device: &Path, cause: io::Error, verb: &str, tried: &str) -> Error {
    let kind = match cause.raw_os_error() {
        Some(code) if code == Errno::BUSY.raw_os_error() => Kind::InUse,
        Some(code) if code == Errno::OPNOTSUPP.raw_os_error() => Kind::Unsupported,
        _ => Kind::Io,
    };
    Error::new(kind, tried).with_answer(format!("{verb} {}: {cause}", device.display())).with_source(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_as_long_as_a_buffer_at_most() {
        let mib = 1 << 20;
        let steps: Vec<_> = steps(3 * mib, 5 * mib + 4096).collect();
        assert_eq!(steps, [(3 * mib, 1 << 20), (4 * mib, 1 << 20), (5 * mib, 4096)]);
    }
}
