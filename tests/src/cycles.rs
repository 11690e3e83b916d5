//! Volumes that are made and removed again and again, and what that leaves on the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{Content, NewGroup, OnRemove};

use crate::ask::{lv, volume};
use crate::{Disk, Handle, device_paths};

/// Where LVM keeps what it remembers of a host.
const HOST_DIR: &str = "/etc/lvm";

/// Makes and removes a volume of 4 MiB so many times. The files that the tenth time found are there at the end, and no
/// others, neither among our own nor among the host's.
///
/// Returns how long each time took.
///
/// # Errors
///
/// If an operation fails, or a file has appeared or vanished.
pub fn leave_no_file_behind(times: usize) -> Result<Vec<Duration>> {
    let disk = Disk::new(Bytes::mib(256))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let new = NewGroup::new("v".parse()?, device_paths(&[&disk])?);
    let group = handle.lvm.create_group(&new)?.into_inner();
    let own = handle.workers().path("");
    let new = volume("db", Bytes::mib(4)).content(Content::Untouched);
    let (mut before, mut took) = (None, Vec::with_capacity(times));
    for time in 0..times {
        if time == 10 {
            before = Some((files(&own)?, files(Path::new(HOST_DIR))?));
        }
        let start = Instant::now();
        ensure!(group.create_volume(&new)?.is_made(), "the volume of time {time} was there already");
        ensure!(group.remove_volume(&lv("db"), OnRemove::Keep)?.is_made(), "time {time} removed nothing");
        took.push(start.elapsed());
    }
    let (own_before, host_before) = before.context("ten times are not enough to compare with")?;
    ensure!(own_before.iter().any(|file| file.ends_with("backup/v")), "no backup is kept: {own_before:?}");
    for (before, now) in [(own_before, files(&own)?), (host_before, files(Path::new(HOST_DIR))?)] {
        let changed: Vec<_> = before.symmetric_difference(&now).collect();
        ensure!(changed.is_empty(), "appeared or vanished in {times} times: {changed:?}");
    }
    Ok(took)
}

/// Every file below a directory; none where there is no such directory.
///
/// # Errors
///
/// If a directory cannot be read.
pub fn files(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    if !dir.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.insert(entry.path());
        }
    }
    Ok(found)
}
