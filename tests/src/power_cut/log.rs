//! Reading what dm-log-writes wrote.
//!
//! The format is that of the kernel's drivers/md/dm-log-writes.c, version 1, all numbers little-endian. Everything is
//! counted in sectors of the size that the superblock tells. Sector 0 is the superblock: magic, version, number of
//! entries (8 bytes each), sector size (4 bytes). From sector 1 on there are entries: a sector with place, length, flags
//! and length of inline data (8 bytes each), then the data of a write. A mark has its text in the entry's own sector, a
//! discard has no data.
//!
//! The kernel logs a write that needs no flush when the next flush completes, a write with FUA when it completes, and a
//! mark at once. So the log's order is the worst that a disk with a volatile cache may do, short of losing a part of
//! what lies between two flushes.

use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, Result, ensure};
use devices::Bytes;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const HEADER: usize = 32;

const FLUSH: u64 = 1 << 0;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;

/// What an entry did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It wrote the bytes that the log has at `data`; a flush alone writes none.
    Write {
        /// Where the bytes begin in the log.
        data: Bytes,
    },
    /// It discarded.
    Discard,
    /// Somebody sent this text.
    Mark(String),
}

/// When what an entry wrote is on the disk for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the next flush.
    Cached,
    /// After its own completion (FUA).
    Forced,
    /// It is a flush: whatever stands before it in the log is on the disk.
    Flush,
    /// It is a flush and, after that, a write with FUA.
    FlushAndForced,
}

impl Durability {
    /// Whether it is a flush, with or without a write of its own.
    #[must_use]
    pub const fn is_flush(self) -> bool {
        matches!(self, Self::Flush | Self::FlushAndForced)
    }

    /// Whether its own write is on the disk when it completes.
    #[must_use]
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::Forced | Self::FlushAndForced)
    }

    /// The same without the flush.
    #[must_use]
    pub const fn without_flush(self) -> Self {
        match self {
            Self::Flush => Self::Cached,
            Self::FlushAndForced => Self::Forced,
            other => other,
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where on the device.
    pub start: Bytes,
    /// How long.
    pub length: Bytes,
    /// What it did.
    pub action: Action,
    /// When that is on the disk.
    pub durability: Durability,
}

/// A log with all its entries; data stay in the source.
#[derive(Debug)]
pub struct Log<S> {
    source: S,
    /// The entries in the order of the log.
    pub entries: Vec<Entry>,
}

impl<S: Read + Seek> Log<S> {
    /// Reads all entries.
    ///
    /// # Errors
    ///
    /// If this is no log, an entry cannot be, or it ends too early.
    pub fn read(mut source: S) -> Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        let mut superblock = [0; HEADER];
        source.rewind()?;
        source.read_exact(&mut superblock).context("the log has no superblock")?;
        let [magic, version, count, sector] = numbers(&superblock);
        // The sector size has four bytes only; what follows them is not told.
        let sector = sector & u64::from(u32::MAX);
        ensure!(magic == MAGIC, "no log of dm-log-writes: its magic is {magic:#x}");
        ensure!(version == VERSION, "version {version} of the log, not {VERSION}");
        ensure!(
            sector.is_power_of_two() && (512..=65536).contains(&sector),
            "the log's sectors cannot have {sector} bytes"
        );
        let mut place = Place { source: &mut source, sector, size, next: sector };
        let mut entries = Vec::new();
        for index in 0..count {
            entries.push(place.entry().with_context(|| format!("entry {index} of {count}"))?);
        }
        Ok(Self { source, entries })
    }

    /// The bytes that a write wrote; none for another entry.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn data(&mut self, entry: &Entry) -> Result<Vec<u8>> {
        let Action::Write { data } = &entry.action else { return Ok(Vec::new()) };
        let mut bytes = vec![0; usize::try_from(entry.length.get())?];
        self.source.seek(SeekFrom::Start(data.get()))?;
        self.source.read_exact(&mut bytes).context("the data of an entry")?;
        Ok(bytes)
    }
}

/// The four numbers at the beginning of a superblock or an entry.
fn numbers(bytes: &[u8; HEADER]) -> [u64; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte));
    }
    numbers
}

struct Place<'a, S> {
    source: &'a mut S,
    sector: u64,
    size: u64,
    next: u64,
}

impl<S: Read + Seek> Place<'_, S> {
    fn entry(&mut self) -> Result<Entry> {
        let mut header = [0; HEADER];
        self.source.seek(SeekFrom::Start(self.next))?;
        self.source.read_exact(&mut header).context("the log ends within an entry")?;
        let [start, sectors, flags, inline] = numbers(&header);
        let in_bytes = |count: u64| count.checked_mul(self.sector).context("beyond all devices");
        let (start, length) = (in_bytes(start)?, in_bytes(sectors)?);
        ensure!(start.checked_add(length).is_some(), "beyond all devices");
        let data = self.next.checked_add(self.sector).context("beyond the log")?;
        let mut end = data;
        let action = if flags & MARK != 0 {
            Action::Mark(self.text(inline)?)
        } else if flags & DISCARD != 0 {
            Action::Discard
        } else {
            ensure!(inline == 0, "a write with {inline} inline bytes");
            end = data.checked_add(length).context("beyond the log")?;
            Action::Write { data: Bytes::new(data) }
        };
        ensure!(end <= self.size, "the log ends within the data");
        self.next = end;
        let durability = match (flags & FLUSH != 0, flags & FUA != 0) {
            (false, false) => Durability::Cached,
            (false, true) => Durability::Forced,
            (true, false) => Durability::Flush,
            (true, true) => Durability::FlushAndForced,
        };
        Ok(Entry { start: Bytes::new(start), length: Bytes::new(length), action, durability })
    }

    /// The text behind the header that was read last.
    fn text(&mut self, length: u64) -> Result<String> {
        ensure!(length <= self.sector - HEADER as u64, "a mark of {length} bytes");
        let mut text = vec![0; usize::try_from(length)?];
        self.source.read_exact(&mut text).context("the log ends within a mark")?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// Start, sectors, flags, and the text of a mark.
    type Raw = (u64, u64, u64, String);

    fn written(sector: u64, entries: &[Raw]) -> Vec<u8> {
        let sector = usize::try_from(sector).unwrap();
        let mut log = [MAGIC, VERSION, entries.len() as u64, sector as u64].map(u64::to_le_bytes).concat();
        log.resize(sector, 0);
        for (start, sectors, flags, mark) in entries {
            let inline = if flags & MARK == 0 { 0 } else { mark.len() as u64 };
            let begin = log.len();
            log.extend([*start, *sectors, *flags, inline].map(u64::to_le_bytes).concat());
            if flags & MARK != 0 {
                log.extend(mark.bytes());
            }
            log.resize(begin + sector, 0);
            if flags & (MARK | DISCARD) == 0 {
                let length = usize::try_from(*sectors).unwrap() * sector;
                log.resize(log.len() + length, u8::try_from(start & 0xff).unwrap());
            }
        }
        log
    }

    fn raw() -> impl Strategy<Value = Raw> {
        (0..1_u64 << 30, 0..20_u64, 0..32_u64, "[a-z0-9:.,]{0,60}")
    }

    proptest! {
        #[test]
        fn what_is_written_in_the_format_is_read_again(
            power in 9..13_u32,
            raws in prop::collection::vec(raw(), 0..30),
        ) {
            let sector = 1 << power;
            let mut log = Log::read(Cursor::new(written(sector, &raws))).unwrap();
            prop_assert_eq!(log.entries.len(), raws.len());
            for (entry, (start, sectors, flags, mark)) in log.entries.clone().iter().zip(&raws) {
                prop_assert_eq!(entry.start.get(), start * sector);
                prop_assert_eq!(entry.length.get(), sectors * sector);
                prop_assert_eq!(entry.durability.is_flush(), flags & FLUSH != 0);
                prop_assert_eq!(entry.durability.is_forced(), flags & FUA != 0);
                match &entry.action {
                    Action::Mark(text) => prop_assert_eq!(text, mark),
                    Action::Discard => prop_assert!(flags & DISCARD != 0),
                    Action::Write { .. } => {
                        let data = log.data(entry).unwrap();
                        prop_assert_eq!(data.len() as u64, sectors * sector);
                        prop_assert!(data.iter().all(|byte| u64::from(*byte) == start & 0xff));
                    }
                }
            }
        }

        #[test]
        fn any_bytes_and_any_damage_end_in_an_answer(
            raws in prop::collection::vec(raw(), 1..10),
            cut in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            noise in prop::collection::vec(any::<u8>(), 0..2000),
        ) {
            let _ = Log::read(Cursor::new(noise));
            let mut bytes = written(512, &raws);
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Ok(mut log) = Log::read(Cursor::new(bytes)) {
                for entry in log.entries.clone() {
                    log.data(&entry).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_log_that_ends_early_or_is_none_is_refused() {
        let log = written(512, &[(8, 2, FUA, String::new())]);
        assert!(Log::read(Cursor::new(log[..log.len() - 1].to_vec())).is_err());
        assert!(Log::read(Cursor::new(vec![0; 4096])).is_err());
        assert!(Log::read(Cursor::new(Vec::new())).is_err());
    }
}
