//! Replaying a recording: the disks after a cut of the power at each point, and between them.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use devices::{Bytes, Sectors};

use super::images::Images;
use super::log::{Action, Durability, Entry, Log};
use super::random::Random;
use super::record::{Recording, Slice};

/// Old content is kept in pieces of so many bytes, so that a discard of a whole disk costs little.
const PIECE: u64 = 1 << 20;

/// Where a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// At each flush and each write with FUA: what a disk with a volatile cache has for certain.
    Durable,
    /// After each write, too, in the log's order: a disk without a cache. Also for programs that never flush.
    EachWrite,
}

/// A cut of the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number among all points, from 0.
    pub number: usize,
    /// The entry of the log after whose completion the power is cut.
    pub entry: usize,
    /// What that entry is.
    pub durability: Durability,
}

/// The disks, from one point of a recording to the next.
#[derive(Debug)]
pub struct Replay<S = File> {
    log: Log<S>,
    images: Images,
    stops: Stops,
    next: usize,
    points: usize,
    marks: Vec<String>,
    /// What was written since the last flush, as far as it is not on the disk for good, and what was there before.
    open: Vec<Written>,
    /// The last point was a flush: what is open is from before it.
    flushed: bool,
}

/// A write that can be undone.
#[derive(Debug)]
struct Written {
    entry: usize,
    /// Places and what was there; where nothing is told, there were zeroes.
    before: Vec<(Bytes, Vec<u8>)>,
}

impl Replay<File> {
    /// Begins with blank disks.
    ///
    /// # Errors
    ///
    /// If the recording cannot be read.
    pub fn new(recording: &Recording, stops: Stops) -> Result<Self> {
        Self::of(recording.log()?, &recording.slices, stops)
    }
}

impl<S: Read + Seek> Replay<S> {
    /// Begins with blank disks; the log may have been changed.
    ///
    /// # Errors
    ///
    /// If there is no room for the images.
    pub fn of(log: Log<S>, slices: &[Slice], stops: Stops) -> Result<Self> {
        let images = Images::new(slices)?;
        let (marks, open) = (Vec::new(), Vec::new());
        Ok(Self { log, images, stops, next: 0, points: 0, marks, open, flushed: false })
    }

    /// How many points there are in all.
    #[must_use]
    pub fn points(&self) -> usize {
        self.log.entries.iter().filter(|entry| self.is_point(entry)).count()
    }

    fn is_point(&self, entry: &Entry) -> bool {
        let is_mark = matches!(entry.action, Action::Mark(_));
        !is_mark && (self.stops == Stops::EachWrite || entry.durability != Durability::Cached)
    }

    /// Goes on to the next point; `None` after the last one.
    ///
    /// # Errors
    ///
    /// If the log or the images fail.
    pub fn next_point(&mut self) -> Result<Option<Point>> {
        if std::mem::take(&mut self.flushed) {
            self.open.clear();
        }
        while let Some(entry) = self.log.entries.get(self.next).cloned() {
            let index = self.next;
            self.next += 1;
            if let Action::Mark(text) = &entry.action {
                self.marks.push(text.clone());
                continue;
            }
            self.apply(index, &entry).with_context(|| format!("entry {index}"))?;
            if self.is_point(&entry) {
                self.flushed = entry.durability.is_flush();
                let number = self.points;
                self.points += 1;
                return Ok(Some(Point { number, entry: index, durability: entry.durability }));
            }
        }
        Ok(None)
    }

    /// The disks at this point.
    #[must_use]
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The texts that were sent before this point.
    #[must_use]
    pub fn marks(&self) -> &[String] {
        &self.marks
    }

    /// The disks as they may be if the power was cut right before the flush of this point completed: each write since
    /// the flush before it is there, or is not, or only some sectors of it are, except where it was forced (FUA) or
    /// `may_be_lost` says no. The choice follows from the seed. Afterwards the disks are as they were.
    ///
    /// # Errors
    ///
    /// If this point is no flush, or what `audit` answers.
    pub fn with_losses<T>(
        &mut self,
        seed: u64,
        may_be_lost: impl Fn(&Entry) -> bool,
        audit: impl FnOnce(&Images) -> Result<T>,
    ) -> Result<T> {
        ensure!(self.flushed, "losses can only be chosen before a flush");
        let open = std::mem::take(&mut self.open);
        for written in open.iter().rev() {
            self.undo(written)?;
        }
        let mut random = Random::new(seed);
        let mut chosen = Vec::new();
        for written in &open {
            let entry = self.log.entries[written.entry].clone();
            let losses = may_be_lost(&entry).then_some(&mut random);
            chosen.push(self.write(written.entry, &entry, losses)?);
        }
        let audited = audit(&self.images);
        for written in chosen.iter().rev() {
            self.undo(written)?;
        }
        for written in open {
            let entry = self.log.entries[written.entry].clone();
            let written = self.write(written.entry, &entry, None)?;
            self.open.push(written);
        }
        audited
    }

    /// The disks as they are at this point if those that `keeps` speaks of have no volatile cache: what was written to them is
    /// there as soon as it completed. The log has such a write only where the flush stands that took it along, and several
    /// may be on their way at once, so all that was written up to the next mark comes in, also what completed a little later.
    /// Afterwards the disks are as they were.
    ///
    /// # Errors
    ///
    /// What `audit` answers.
    pub fn with_unflushed<T>(
        &mut self,
        keeps: impl Fn(&Entry) -> bool,
        audit: impl FnOnce(&Images) -> Result<T>,
    ) -> Result<T> {
        let rest = self.log.entries.iter().skip(self.next);
        let until = rest.take_while(|entry| !matches!(entry.action, Action::Mark(_))).count() + self.next;
        let mut written = Vec::new();
        for index in self.next..until {
            let entry = self.log.entries[index].clone();
            let is_cached = entry.durability == Durability::Cached && entry.length > Bytes::ZERO;
            if is_cached && keeps(&entry) {
                written.push(self.write(index, &entry, None)?);
            }
        }
        let audited = audit(&self.images);
        for written in written.iter().rev() {
            self.undo(written)?;
        }
        audited
    }

    /// How many writes could be lost before the flush of this point.
    #[must_use]
    pub fn open_writes(&self) -> usize {
        self.open.len()
    }

    fn apply(&mut self, index: usize, entry: &Entry) -> Result<()> {
        if entry.length == Bytes::ZERO {
            return Ok(());
        }
        let written = self.write(index, entry, None)?;
        self.open.push(written);
        Ok(())
    }

    /// Carries out an entry, or the part of it that chance leaves, and keeps what was there before.
    fn write(&mut self, index: usize, entry: &Entry, losses: Option<&mut Random>) -> Result<Written> {
        let written = Written { entry: index, before: self.before(entry)? };
        let mut losses = losses.filter(|_| !entry.durability.is_forced());
        let fate = losses.as_mut().map_or(Fate::Whole, |random| Fate::of(random));
        match (fate, &entry.action) {
            (Fate::Lost, _) | (_, Action::Mark(_)) => {}
            (Fate::Whole | Fate::Torn, Action::Discard) => {
                self.images.discard_device(entry.start, entry.length)?;
            }
            (Fate::Whole, Action::Write { .. }) => {
                let bytes = self.log.data(entry)?;
                self.images.write_device(entry.start, &bytes)?;
            }
            (Fate::Torn, Action::Write { .. }) => {
                let bytes = self.log.data(entry)?;
                let mut at = entry.start.get();
                for sector in bytes.chunks(usize::try_from(Sectors::SIZE)?) {
                    if losses.as_mut().is_some_and(|random| random.below(2) == 0) {
                        self.images.write_device(Bytes::new(at), sector)?;
                    }
                    at += Sectors::SIZE;
                }
            }
        }
        Ok(written)
    }

    fn before(&self, entry: &Entry) -> Result<Vec<(Bytes, Vec<u8>)>> {
        let end = entry.start.get() + entry.length.get();
        let mut before = Vec::new();
        let mut at = entry.start.get();
        while at < end {
            let length = (end - at).min(PIECE);
            let bytes = self.images.read_device(Bytes::new(at), Bytes::new(length))?;
            if bytes.iter().any(|byte| *byte != 0) {
                before.push((Bytes::new(at), bytes));
            }
            at += length;
        }
        Ok(before)
    }

    fn undo(&self, written: &Written) -> Result<()> {
        let entry = &self.log.entries[written.entry];
        self.images.discard_device(entry.start, entry.length)?;
        written.before.iter().try_for_each(|(at, bytes)| self.images.write_device(*at, bytes))
    }
}

/// What becomes of a write that no flush has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Whole,
    Lost,
    /// Some of its sectors are there; a sector is there as a whole or not at all.
    Torn,
}

impl Fate {
    fn of(random: &mut Random) -> Self {
        match random.below(5) {
            0 | 1 => Self::Whole,
            2 | 3 => Self::Lost,
            _ => Self::Torn,
        }
    }
}

impl<S> Log<S> {
    /// The same log as if one flush had never been sent: what it would have put on the disk gets there with the next
    /// one. For negative controls.
    ///
    /// # Errors
    ///
    /// If that entry is no flush.
    pub fn without_flush(self, index: usize) -> Result<Self> {
        let dropped = self.entries.get(index).context("no such entry")?;
        ensure!(dropped.durability.is_flush(), "entry {index} is no flush");
        self.without_flushes(index..index + 1)
    }

    /// The same without any flush among these entries.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn without_flushes(mut self, range: Range<usize>) -> Result<Self> {
        let dropped = self.entries.get_mut(range.clone()).context("no such entries")?;
        ensure!(dropped.iter().any(|entry| entry.durability.is_flush()), "no flush in {range:?}");
        for entry in dropped {
            entry.durability = entry.durability.without_flush();
        }
        let before = self.entries[..range.start].iter().rposition(|entry| entry.durability.is_flush());
        let begin = before.map_or(0, |before| before + 1);
        let after = self.entries[range.end..].iter().position(|entry| entry.durability.is_flush());
        let end = after.map_or(self.entries.len(), |after| range.end + after);
        let late = |entry: &Entry| {
            entry.durability == Durability::Cached && !matches!(entry.action, Action::Mark(_))
        };
        // A stable sort: what was forced and the marks stay in their order, the rest comes after them.
        self.entries[begin..end].sort_by_key(late);
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
