//! Wiping signatures: libblkid's own wipe for each superblock, zeroes for both ends, and a last look.

use super::Wiped;
use crate::gpt::{DiskFile, Medium, forget_partitions, open_partitions, zero_ends};
use crate::probe::{self, Probed};
use crate::{Bytes, Effect, Error, Kind};

/// What is on a claimed device and in its partitions.
pub(super) fn present(disk: &DiskFile) -> Result<Vec<Wiped>, Error> {
    let mut found = on(disk)?;
    for partition in open_partitions(disk)? {
        found.extend(on(&partition)?);
    }
    Ok(found)
}

/// Leaves no signature on a claimed device and in its partitions, and no partition.
pub(super) fn wipe(disk: &mut DiskFile) -> Result<(), Error> {
    // While the table still says where they are: a partition made in the same place would show the old content. The
    // claim of the whole disk keeps everybody else from its partitions.
    for mut partition in open_partitions(disk)? {
        wipe_one(&mut partition)?;
    }
    forget_partitions(disk)?;
    wipe_one(disk)
}

fn wipe_one(medium: &mut DiskFile) -> Result<(), Error> {
    let tried = format!("wipe {}", medium.name());
    let file = medium.buffered()?;
    probe::wipe_superblocks(&file)?;
    file.sync_all().map_err(|error| Error::system(tried.clone(), error).with_effect(Effect::Unknown))?;
    let size = medium.size().round_down(medium.sector()).unwrap_or(Bytes::ZERO);
    zero_ends(medium, Bytes::ZERO, size)
        .map_err(|error| Error::system(tried.clone(), error).with_effect(Effect::Unknown))?;
    let left = on(medium)?;
    match left.first() {
        None => Ok(()),
        Some(wiped) => Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("it still has a signature of {}", wiped.signature.kind))
            .with_advice("see whether the disk takes writes; if it does, erase all of it")
            .with_effect(Effect::Unknown)),
    }
}

fn on(medium: &DiskFile) -> Result<Vec<Wiped>, Error> {
    let signatures = match probe::probe(&medium.buffered()?)? {
        Probed::Blank => Vec::new(),
        Probed::Found(signatures) | Probed::Ambiguous(signatures) => signatures,
    };
    let device = medium.path();
    Ok(signatures.into_iter().map(|signature| Wiped { device: device.to_owned(), signature }).collect())
}
