//! A disk in memory that remembers every write and flush.

use std::io;

use super::super::Medium;
use crate::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Write { at: u64, bytes: Vec<u8> },
    Flush,
}

#[derive(Clone)]
pub(super) struct Memory {
    sector: u64,
    image: Vec<u8>,
    pub(super) acts: Vec<Act>,
    /// Reads and writes that touch this byte fail.
    pub(super) sick: Option<u64>,
    /// Writes that touch this byte fail.
    pub(super) fail_writes_at: Option<u64>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes after {} acts", self.image.len(), self.acts.len())
    }
}

impl PartialEq for Memory {
    fn eq(&self, other: &Self) -> bool {
        self.image == other.image
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

impl Memory {
    pub(super) fn new(mebibytes: u64, sector: u64) -> Self {
        Self::of_bytes(mebibytes << 20, sector)
    }

    pub(super) fn of_bytes(size: u64, sector: u64) -> Self {
        Self { sector, image: vec![0; index(size)], acts: Vec::new(), sick: None, fail_writes_at: None }
    }

    pub(super) fn grow(&mut self, to: u64) {
        self.image.resize(index(to), 0);
    }

    pub(super) fn shrink(&mut self, to: u64) {
        self.image.truncate(index(to));
    }

    pub(super) fn bytes(&self, at: u64, length: usize) -> &[u8] {
        &self.image[index(at)..index(at) + length]
    }

    /// Changes bytes as no disk could: any, and without a trace.
    pub(super) fn bytes_mut(&mut self, at: u64, length: usize) -> &mut [u8] {
        &mut self.image[index(at)..index(at) + length]
    }

    fn check(&self, at: Bytes, length: usize) -> io::Result<()> {
        let end = at.get() + length as u64;
        assert!(
            at.get().is_multiple_of(self.sector) && (length as u64).is_multiple_of(self.sector),
            "half a sector"
        );
        if self.sick.is_some_and(|sick| (at.get()..end).contains(&sick)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        if end > self.image.len() as u64 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(())
    }
}

impl Medium for Memory {
    fn name(&self) -> &str {
        "the test disk"
    }

    fn sector(&self) -> Bytes {
        Bytes::new(self.sector)
    }

    fn size(&self) -> Bytes {
        Bytes::new(self.image.len() as u64)
    }

    fn read_at(&self, at: Bytes, into: &mut [u8]) -> io::Result<()> {
        self.check(at, into.len())?;
        into.copy_from_slice(self.bytes(at.get(), into.len()));
        Ok(())
    }

    fn write_at(&mut self, at: Bytes, from: &[u8]) -> io::Result<()> {
        self.check(at, from.len())?;
        let end = at.get() + from.len() as u64;
        if self.fail_writes_at.is_some_and(|sick| (at.get()..end).contains(&sick)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.bytes_mut(at.get(), from.len()).copy_from_slice(from);
        self.acts.push(Act::Write { at: at.get(), bytes: from.to_vec() });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.acts.push(Act::Flush);
        Ok(())
    }
}
