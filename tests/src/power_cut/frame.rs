//! What every suite of cuts does: losing writes before a flush, and leaving out a flush that must be missed.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;

use anyhow::{Context, Result, bail};

use super::images::Images;
use super::log::{Action, Entry};
use super::record::Recording;
use super::replay::{Point, Replay, Stops};

impl<S: Read + Seek> Replay<S> {
    /// Where a replay stands, for the text of a failure.
    #[must_use]
    pub fn tell(&self, point: Point) -> String {
        format!("point of {}: {point:?}, after {:?}", self.points(), self.marks().last())
    }

    /// Chooses so many times what is lost before the flush of this point, as [`Replay::with_losses`] does, and audits each
    /// choice. There is none where the point is no flush, or nothing can be lost. Gives what the audits answered.
    ///
    /// # Errors
    ///
    /// What an audit answers.
    pub fn with_choices<T>(
        &mut self,
        point: Point,
        choices: u64,
        seed: u64,
        may_be_lost: impl Fn(&Entry) -> bool,
        mut audit: impl FnMut(&Images, &[String]) -> Result<T>,
    ) -> Result<Vec<T>> {
        if !point.durability.is_flush() || self.open_writes() == 0 {
            return Ok(Vec::new());
        }
        let marks = self.marks().to_vec();
        let mut audited = Vec::new();
        for choice in 0..choices {
            let seed = seed ^ ((point.number as u64) << 8) ^ choice;
            let answer = self.with_losses(seed, &may_be_lost, |images| audit(images, &marks));
            audited.push(answer.with_context(|| format!("losses {seed} at {}", self.tell(point)))?);
        }
        Ok(audited)
    }
}

impl Recording {
    /// The negative control: leaves out one flush after the other, until one is missed; with none of them missed an audit
    /// could not tell a flush from nothing. Tells how many it took.
    ///
    /// # Errors
    ///
    /// If none was missed, the recording cannot be read, or what `is_missed` answers.
    pub fn left_out(
        &self,
        flushes: impl IntoIterator<Item = usize>,
        stops: Stops,
        mut is_missed: impl FnMut(&mut Replay<File>, usize) -> Result<bool>,
    ) -> Result<usize> {
        let mut tried = 0;
        for flush in flushes {
            let log = self.log()?.without_flush(flush)?;
            tried += 1;
            if is_missed(&mut Replay::of(log, &self.slices, stops)?, flush)? {
                return Ok(tried);
            }
        }
        bail!("none of {tried} flushes that were left out was missed")
    }

    /// The same with all flushes of one acknowledged sync after the other, for a thin pool sends several for one commit:
    /// audited at each point up to the flush that follows, which makes up for those that were left out. What an audit
    /// answers says that they are missed.
    ///
    /// # Errors
    ///
    /// If none was missed, or the recording cannot be read.
    pub fn left_out_before_acknowledgement(
        &self,
        mut audit: impl FnMut(&mut Replay<File>, Point) -> Result<()>,
    ) -> Result<usize> {
        let entries = self.log()?.entries;
        let is_flush = |entry: &Entry| entry.durability.is_flush();
        let mut tried = 0;
        for sync in syncs(&entries) {
            let begin = entries[..sync.start].iter().rposition(is_flush).map_or(0, |before| before + 1);
            let next = entries[sync.end..].iter().position(is_flush);
            let end = next.map_or(entries.len(), |next| sync.end + next);
            let mut replay = Replay::of(self.log()?.without_flushes(sync)?, &self.slices, Stops::EachWrite)?;
            tried += 1;
            while let Some(point) = replay.next_point()? {
                if point.entry >= begin && audit(&mut replay, point).is_err() {
                    return Ok(tried);
                }
                if point.entry > end {
                    break;
                }
            }
        }
        bail!("none of {tried} syncs whose flushes were left out was missed")
    }
}

/// The entries between each acknowledgement and the mark before it, where a flush is among them.
fn syncs(entries: &[Entry]) -> Vec<Range<usize>> {
    let mut syncs = Vec::new();
    let mut begin = 0;
    for (index, entry) in entries.iter().enumerate() {
        let Action::Mark(text) = &entry.action else { continue };
        let sync = begin..index;
        begin = index + 1;
        if text.starts_with("ack:") && entries[sync.clone()].iter().any(|entry| entry.durability.is_flush()) {
            syncs.push(sync);
        }
    }
    syncs
}

/// Tests that all do the same, each with a life of its own: what is interrupted goes on with the next one.
#[macro_export]
macro_rules! lives {
    ($run:expr; $($name:ident)+) => {
        $(
            #[test]
            fn $name() -> anyhow::Result<()> {
                $run
            }
        )+
    };
}
