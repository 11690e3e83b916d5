//! Wiping signatures: libblkid's own wipe for each superblock, zeroes for both ends, and a last look.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use super::Wiped;
use crate::gpt::{DiskFile, Medium, forget_partitions, partition_nodes, zero_ends};
use crate::probe::{self, Probed};
use crate::{Bytes, Effect, Error, Kind};

/// What is on a claimed device and in its partitions.
pub(super) fn present(disk: &DiskFile) -> Result<Vec<Wiped>, Error> {
    let mut found = on(disk.path())?;
    for node in partition_nodes(disk)? {
        found.extend(on(&node)?);
    }
    Ok(found)
}

/// Leaves no signature on a claimed device and in its partitions, and no partition.
pub(super) fn wipe(disk: &mut DiskFile) -> Result<(), Error> {
    // While the table still says where they are: a partition made in the same place would show the old content.
    for node in partition_nodes(disk)? {
        // The claim of the whole disk keeps everybody else from its partitions.
        let mut partition = DiskFile::open_to_write(&node)?;
        wipe_one(&node, &mut partition)?;
    }
    forget_partitions(disk)?;
    let path = disk.path().to_owned();
    wipe_one(&path, disk)
}

fn wipe_one(path: &Path, medium: &mut DiskFile) -> Result<(), Error> {
    let tried = format!("wipe {}", path.display());
    let file = buffered(path)?;
    probe::wipe_superblocks(&file)?;
    file.sync_all().map_err(|error| Error::system(tried.clone(), error).with_effect(Effect::Unknown))?;
    let size = medium.size().round_down(medium.sector()).unwrap_or(Bytes::ZERO);
    zero_ends(medium, Bytes::ZERO, size)
        .map_err(|error| Error::system(tried.clone(), error).with_effect(Effect::Unknown))?;
    let left = on(path)?;
    match left.first() {
        None => Ok(()),
        Some(wiped) => Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("it still has a signature of {}", wiped.signature.kind))
            .with_advice("see whether the disk takes writes; if it does, erase all of it")
            .with_effect(Effect::Unknown)),
    }
}

fn on(path: &Path) -> Result<Vec<Wiped>, Error> {
    let signatures = match probe::probe(&buffered(path)?)? {
        Probed::Blank => Vec::new(),
        Probed::Found(signatures) | Probed::Ambiguous(signatures) => signatures,
    };
    let device: PathBuf = path.to_owned();
    Ok(signatures.into_iter().map(|signature| Wiped { device: device.clone(), signature }).collect())
}

/// A descriptor through the page cache, since libblkid reads and writes what is no whole sector.
fn buffered(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| Error::system(format!("open {}", path.display()), error))
}
