//! The disks as a cut of the power leaves them: one sparse file for each slice.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use tempfile::TempDir;

use super::record::Slice;
use crate::Disk;

/// The content of all slices.
#[derive(Debug)]
pub struct Images {
    dir: TempDir,
    images: Vec<Image>,
}

#[derive(Debug)]
struct Image {
    slice: Slice,
    file: File,
    path: PathBuf,
}

impl Images {
    /// Slices full of zeroes.
    ///
    /// # Errors
    ///
    /// If the files cannot be made.
    pub fn new(slices: &[Slice]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-cut-").tempdir()?;
        let image = |(index, slice): (usize, &Slice)| {
            let path = dir.path().join(format!("slice{index}"));
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            file.set_len(slice.length.get())?;
            Ok(Image { slice: *slice, file, path })
        };
        let images = slices.iter().enumerate().map(image).collect::<Result<_>>()?;
        Ok(Self { dir, images })
    }

    /// The file with the content of a slice.
    ///
    /// # Panics
    ///
    /// If there is no such slice.
    #[must_use]
    pub fn path(&self, slice: usize) -> &Path {
        &self.images[slice].path
    }

    /// The files of all slices.
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        self.images.iter().map(|image| image.path.as_path()).collect()
    }

    /// A place for files of a test, gone with the images.
    #[must_use]
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What a slice has at `start`.
    ///
    /// # Errors
    ///
    /// If the slice ends before.
    pub fn read(&self, slice: usize, start: Bytes, length: Bytes) -> Result<Vec<u8>> {
        let image = self.images.get(slice).context("no such slice")?;
        let mut bytes = vec![0; usize::try_from(length.get())?];
        image.file.read_exact_at(&mut bytes, start.get()).with_context(|| format!("slice {slice}"))?;
        Ok(bytes)
    }

    /// Copies of all slices, each behind a loop device: they may be written, the images stay as they are.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn disks(&self) -> Result<Vec<Disk>> {
        self.images.iter().map(Image::copy).collect()
    }

    /// A copy of one slice behind a loop device.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn disk(&self, slice: usize) -> Result<Disk> {
        self.images.get(slice).context("no such slice")?.copy()
    }

    /// What the recorded device has at `start`.
    pub(super) fn read_device(&self, start: Bytes, length: Bytes) -> Result<Vec<u8>> {
        let (image, within) = self.at(start, length)?;
        let mut bytes = vec![0; usize::try_from(length.get())?];
        image.file.read_exact_at(&mut bytes, within)?;
        Ok(bytes)
    }

    /// Writes to the recorded device.
    pub(super) fn write_device(&self, start: Bytes, bytes: &[u8]) -> Result<()> {
        let (image, within) = self.at(start, Bytes::new(bytes.len() as u64))?;
        image.file.write_all_at(bytes, within)?;
        Ok(())
    }

    /// Lets a stretch of the recorded device read as zeroes.
    pub(super) fn discard_device(&self, start: Bytes, length: Bytes) -> Result<()> {
        let (image, within) = self.at(start, length)?;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&image.file, how, within, length.get())?)
    }

    /// The slice that holds a stretch of the recorded device, and the place in it.
    fn at(&self, start: Bytes, length: Bytes) -> Result<(&Image, u64)> {
        for image in &self.images {
            let within = start.get().wrapping_sub(image.slice.start.get());
            if within < image.slice.length.get() {
                let fits = within + length.get() <= image.slice.length.get();
                ensure!(fits, "a write at {start} of {length} reaches beyond its slice");
                return Ok((image, within));
            }
        }
        bail!("a write at {start} is on no slice")
    }
}

impl Image {
    fn copy(&self) -> Result<Disk> {
        Disk::filled(self.slice.length, |to| copy_data(&self.file, to))
    }
}

/// Copies what is not a hole; the target is a sparse file of the same length.
fn copy_data(from: &File, to: &Path) -> Result<()> {
    let to = File::options().write(true).open(to)?;
    let mut at = 0;
    loop {
        let data = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        at = seek(from, SeekFrom::Hole(data))?;
        copy_range(from, &to, data, at)?;
    }
}

fn copy_range(from: &File, to: &File, mut at: u64, end: u64) -> Result<()> {
    let mut piece = vec![0; 1 << 20];
    while at < end {
        let length = usize::try_from(end - at)?.min(piece.len());
        from.read_exact_at(&mut piece[..length], at)?;
        to.write_all_at(&piece[..length], at)?;
        at += length as u64;
    }
    Ok(())
}

/// Whether two files have the same content; for tests of the rig.
///
/// # Errors
///
/// If one cannot be read.
pub fn same_content(one: &Path, other: &Path) -> Result<bool> {
    Ok(fs::read(one)? == fs::read(other)?)
}
