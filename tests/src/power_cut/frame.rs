//! What every suite of cuts does: losing writes before a flush, and leaving out a flush that must be missed.

use std::fs::File;
use std::io::{Read, Seek};

use anyhow::{Context, Result, bail};

use super::images::Images;
use super::log::Entry;
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
