//! Erasing every block, piece by piece.

use std::fs::File;
use std::io::{self, Read};

use super::{Cancel, Method, Progress};
use crate::gpt::{DiskFile, Medium};
use crate::{Bytes, Effect, Error, Kind, Sectors, disk_ioctl};

/// Between two looks at the token. Disks discard fast; zeroes and random bytes have to be written.
const fn piece(method: Method) -> u64 {
    match method {
        Method::Discard => 1 << 30,
        Method::ZeroOut => 64 << 20,
        Method::Overwrite => 1 << 20,
    }
}

pub(super) fn erase(
    disk: &mut DiskFile,
    method: Method,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let tried = format!("erase {}", disk.name());
    let total = disk.size().round_down(disk.sector()).unwrap_or(Bytes::ZERO);
    let mut random = File::open("/dev/urandom").map_err(|error| Error::system("open /dev/urandom", error))?;
    let mut done = 0;
    while done < total.get() {
        if cancel.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, tried)
                .with_answer(format!("it was stopped when {} of {total} were erased", Bytes::new(done)))
                .with_effect(Effect::Unknown));
        }
        let length = piece(method).min(total.get() - done);
        let (at, size) = (Bytes::new(done), Bytes::new(length));
        let answer = match method {
            Method::Discard => discard(disk, at, size),
            Method::ZeroOut => disk_ioctl::zero_out(disk.file(), at, size).map_err(io::Error::from),
            Method::Overwrite => overwrite(disk, &mut random, at, size),
        };
        answer.map_err(|error| {
            let effect = if done == 0 { Effect::None } else { Effect::Unknown };
            Error::system(tried.clone(), error).with_effect(effect)
        })?;
        done += length;
        progress(Progress { done: Bytes::new(done), total });
    }
    disk.flush().map_err(|error| Error::system(tried, error).with_effect(Effect::Unknown))
}

fn discard(disk: &DiskFile, at: Bytes, size: Bytes) -> io::Result<()> {
    let sectors = |bytes: Bytes| Sectors::try_from(bytes).map_err(io::Error::other);
    crate::discard(disk.file(), sectors(at)?, sectors(size)?)
}

fn overwrite(disk: &mut DiskFile, random: &mut File, at: Bytes, size: Bytes) -> io::Result<()> {
    let mut bytes = vec![0; usize::try_from(size.get()).map_err(io::Error::other)?];
    random.read_exact(&mut bytes)?;
    disk.write_at(at, &bytes)
}
