//! What was acknowledged before a machine was killed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Result, ensure};

/// Marks on a disk of their own: one record of 512 bytes for each, in order.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    records: u64,
}

impl Ledger {
    const RECORD: usize = 512;

    /// Opens it, and reads the marks that it has.
    ///
    /// # Errors
    ///
    /// If the disk cannot be read, or holds something else.
    pub fn open(path: &Path) -> Result<(Self, Vec<String>)> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut marks = Vec::new();
        let mut record = [0; Self::RECORD];
        loop {
            file.read_exact_at(&mut record, (marks.len() * Self::RECORD) as u64)?;
            let text = String::from_utf8(record.to_vec())?;
            let text = text.trim_end_matches('\0');
            if text.is_empty() {
                return Ok((Self { file, records: marks.len() as u64 }, marks));
            }
            marks.push(text.to_owned());
        }
    }

    /// Adds a mark, which is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// If it is too long, or the disk cannot be written.
    pub fn add(&mut self, mark: &str) -> Result<()> {
        let mut record = mark.as_bytes().to_vec();
        ensure!(record.len() <= Self::RECORD, "a mark of {} bytes", record.len());
        record.resize(Self::RECORD, 0);
        self.file.write_all_at(&record, self.records * Self::RECORD as u64)?;
        self.file.sync_data()?;
        self.records += 1;
        Ok(())
    }
}
