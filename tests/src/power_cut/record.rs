//! Recording: one device behind dm-log-writes, and slices of it that a test takes for disks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use devices::{Bytes, Sectors};

use super::log::Log;
use crate::{Disk, tool};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// How much a recording may hold; the file is sparse.
const LOG: Bytes = Bytes::gib(2);

/// A stretch of the recorded device that is a disk for the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it begins.
    pub start: Bytes,
    /// How long it is.
    pub length: Bytes,
}

/// A device whose writes are recorded, in the order in which they reach the disk for good.
///
/// All slices are on one device, so that one order holds for all of them. For the same reason a flush of one slice
/// counts for all: a test cannot tell that one of two disks was flushed and the other one forgotten.
#[derive(Debug)]
pub struct Recorder {
    /// The mapped devices: first the recorded one, then the slices.
    mapped: Vec<Mapped>,
    slices: Vec<Slice>,
    log: Disk,
    // Gone after the devices above it.
    device: Disk,
}

/// What was recorded.
#[derive(Debug)]
pub struct Recording {
    /// Where the slices are.
    pub slices: Vec<Slice>,
    log: Disk,
}

impl Recorder {
    /// Slices of these sizes, full of zeroes.
    ///
    /// # Errors
    ///
    /// If the devices cannot be made.
    pub fn new(sizes: &[Bytes]) -> Result<Self> {
        let mut slices = Vec::new();
        let mut start = Bytes::ZERO;
        for length in sizes {
            let length = length.round_up(Bytes::mib(1)).context("a slice is too large")?;
            slices.push(Slice { start, length });
            start = start.checked_add(length).context("the slices are too large")?;
        }
        let (device, log) = (Disk::new(start)?, Disk::new(LOG)?);
        let name = format!("cut{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (below, to) = (device.path().display(), log.path().display());
        let sectors = Sectors::try_from(start)?.get();
        let recorded = Mapped::new(name.clone(), &format!("0 {sectors} log-writes {below} {to}"))?;
        let mut recorder = Self { mapped: vec![recorded], slices: slices.clone(), log, device };
        for (index, slice) in slices.iter().enumerate() {
            let (start, length) = (Sectors::try_from(slice.start)?, Sectors::try_from(slice.length)?);
            let (start, length) = (start.get(), length.get());
            let table = format!("0 {length} linear {} {start}", recorder.mapped[0].path.display());
            recorder.mapped.push(Mapped::new(format!("{name}s{index}"), &table)?);
        }
        Ok(recorder)
    }

    /// The node of a slice.
    ///
    /// # Panics
    ///
    /// If there is no such slice.
    #[must_use]
    pub fn slice(&self, index: usize) -> &Path {
        &self.mapped[index + 1].path
    }

    /// Writes a text of at most 400 characters, without white space, into the recording: what was acknowledged before
    /// this call stands before it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn mark(&self, text: &str) -> Result<()> {
        tool::run("dmsetup", ["message", &self.mapped[0].name, "0", "mark", text]).map(drop)
    }

    /// Flushes the recorded device: for what the programs under test leave in a disk's cache, as LVM leaves its metadata.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn flush(&self) -> Result<()> {
        let path = &self.mapped[0].path;
        File::open(path)
            .and_then(|device| device.sync_all())
            .with_context(|| format!("flush {}", path.display()))
    }

    /// Ends the recording; nothing may use the slices any more.
    ///
    /// # Errors
    ///
    /// If something does.
    pub fn finish(mut self) -> Result<Recording> {
        // The slices first, then what is below them.
        while let Some(mut mapped) = self.mapped.pop() {
            mapped.remove()?;
        }
        self.device.detach()?;
        self.log.detach()?;
        Ok(Recording { slices: self.slices, log: self.log })
    }
}

impl Recording {
    /// The log of it.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn log(&self) -> Result<Log<File>> {
        let path = self.log.image();
        Log::read(File::open(path).with_context(|| format!("open {}", path.display()))?)
    }
}

/// A device of device-mapper; dropping it removes it.
#[derive(Debug)]
struct Mapped {
    name: String,
    path: PathBuf,
    exists: bool,
}

impl Mapped {
    fn new(name: String, table: &str) -> Result<Self> {
        tool::run("dmsetup", ["create", &name, "--table", table])?;
        Ok(Self { path: PathBuf::from("/dev/mapper").join(&name), name, exists: true })
    }

    fn remove(&mut self) -> Result<()> {
        self.exists = false;
        tool::run("dmsetup", ["remove", "--retry", &self.name]).map(drop)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.exists
            && let Err(error) = tool::run("dmsetup", ["remove", "--deferred", &self.name])
        {
            eprintln!("{}: {error:#}", self.name);
        }
    }
}
