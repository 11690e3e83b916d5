//! LVM's choice of extents for a new volume, followed step by step.
//!
//! Whether a volume fits depends on which free runs LVM takes first, so the only exact answer is to take the same ones.
//! In each step it picks one free run for each leg and gives every leg as much as the shortest of them has; then it looks
//! again. It prefers PVs that the volume is on already, and that can cost it runs of which others would have needed two.
//!
//! Source: `_allocate` in `lib/metadata/lv_manip.c` and `lib/metadata/pv_map.c` of LVM 2.03.16.

use std::cmp::Reverse;

use super::AllocationPolicy;

/// What is to be found: legs of one length, side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// Legs with data.
    pub(super) data_legs: usize,
    /// Legs with parity; LVM does not mind where the volume's parity lies already when it prefers PVs.
    pub(super) parity_legs: usize,
    /// Extents of each leg, its metadata among them.
    pub(super) rows: u64,
    /// Extents of RAID metadata at the beginning of each leg, which must lie in one run.
    pub(super) metadata: u64,
}

/// The PVs of each leg, in the order in which they were taken.
pub(super) type Legs = Vec<Vec<usize>>;

/// Follows LVM to the end of a wish.
#[derive(Debug)]
pub(super) struct Allocator {
    pvs: Vec<FreeRuns>,
    wish: Wish,
    legs: Legs,
    /// Extents that each leg has.
    rows: u64,
}

/// How the runs of a step are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// A run that is long enough, from each PV; or its longest where the leg may be split.
    Any { split: bool },
    /// On the PVs that the volume is on, each leg where it was.
    SamePlaces,
    /// On the PVs that the volume is on.
    SamePvs,
}

/// A run that a leg gets.
#[derive(Clone, Copy, Debug)]
struct Piece {
    pv: usize,
    run: usize,
    length: u64,
}

/// A chosen run is too short for the RAID metadata: LVM gives up.
#[derive(Clone, Copy, Debug)]
struct MetadataTooLong;

impl Allocator {
    /// On the free runs of each PV, in the order of the PVs in the group.
    pub(super) fn new(free: &[Vec<u64>], wish: Wish) -> Self {
        let legs = vec![Vec::new(); wish.data_legs + wish.parity_legs];
        Self { pvs: free.iter().map(|runs| FreeRuns::new(runs)).collect(), wish, legs, rows: 0 }
    }

    /// Where LVM puts the legs; `None` where it says that there is no room.
    pub(super) fn legs(mut self, policy: &AllocationPolicy) -> Option<Legs> {
        self.attempt(policy, true).ok()?;
        (self.rows == self.wish.rows).then_some(self.legs)
    }

    /// How far LVM gets when it does not mind that the wish cannot be fulfilled.
    pub(super) fn reach(mut self, policy: &AllocationPolicy) -> u64 {
        // What was taken before LVM gave up counts; whoever asks checks it anyway.
        let _ = self.attempt(policy, false);
        self.rows
    }

    /// Tries LVM's policies one after the other, from the strictest to that of the group.
    fn attempt(&mut self, policy: &AllocationPolicy, all_or_nothing: bool) -> Result<(), MetadataTooLong> {
        let enough = |own: &Self| !all_or_nothing || own.may_suffice();
        let split = *policy != AllocationPolicy::Contiguous;
        if !enough(self) {
            return Ok(());
        }
        self.step(Choice::Any { split })?;
        if !split || self.is_done() || !enough(self) {
            return Ok(());
        }
        while !self.is_done() && self.step(Choice::SamePlaces)? {}
        let strict = matches!(policy, AllocationPolicy::Cling | AllocationPolicy::ClingByTags);
        if strict || !enough(self) {
            return Ok(());
        }
        let mut choice = Choice::SamePvs;
        while !self.is_done() {
            choice = match (self.step(choice)?, choice) {
                (true, _) => Choice::SamePvs,
                (false, Choice::SamePvs) => Choice::Any { split },
                (false, _) => break,
            };
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.rows == self.wish.rows
    }

    /// Whether the free extents, wherever they lie, are as many as are needed.
    fn may_suffice(&self) -> bool {
        let free: u64 = self.pvs.iter().flat_map(|pv| &pv.runs).map(|run| run.length).sum();
        (self.wish.rows - self.rows).saturating_mul(self.legs.len() as u64) <= free
    }

    /// One run for each leg; whether there were enough of them.
    fn step(&mut self, choice: Choice) -> Result<bool, MetadataTooLong> {
        let wanted = self.wish.rows - self.rows;
        self.pvs.iter_mut().for_each(FreeRuns::forget_reservations);
        let pieces = match choice {
            Choice::SamePlaces => self.same_places(),
            choice => self.longest(choice, wanted),
        };
        if pieces.len() < self.legs.len() {
            return Ok(false);
        }
        let length = pieces.iter().map(|piece| piece.length).min().unwrap_or(0).min(wanted);
        self.take(&pieces, length)?;
        Ok(true)
    }

    /// The longest of the runs that the PVs offer.
    fn longest(&mut self, choice: Choice, wanted: u64) -> Vec<Piece> {
        let least = wanted.max(self.wish.metadata);
        let mut pieces = Vec::new();
        for (pv, runs) in self.pvs.iter_mut().enumerate() {
            let clings = self.legs.iter().take(self.wish.data_legs).any(|leg| leg.contains(&pv));
            let piece = match choice {
                Choice::Any { split } => {
                    runs.reserve(least, |run, first| run.unreserved >= wanted || (split && first))
                }
                _ if clings => runs.reserve(least, |_, _| true),
                _ => None,
            };
            pieces.extend(piece.map(|(run, length)| Piece { pv, run, length }));
        }
        // LVM's sort keeps the order of equals.
        pieces.sort_by_key(|piece| Reverse(piece.length));
        pieces.truncate(self.legs.len());
        pieces
    }

    /// Each leg's next run on a PV that it is on; none when one leg has none, or where there is parity.
    fn same_places(&self) -> Vec<Piece> {
        let mut places: Vec<Option<Piece>> = vec![None; self.wish.data_legs];
        for (pv, runs) in self.pvs.iter().enumerate() {
            let Some(run) = runs.runs.first() else { continue };
            let mut open = places.iter_mut().zip(&self.legs).filter(|(place, _)| place.is_none());
            if let Some((place, _)) = open.find(|(_, leg)| leg.contains(&pv)) {
                *place = Some(Piece { pv, run: run.id, length: run.length });
            }
        }
        places.into_iter().collect::<Option<_>>().unwrap_or_default()
    }

    /// Gives each leg the beginning of its run.
    fn take(&mut self, pieces: &[Piece], length: u64) -> Result<(), MetadataTooLong> {
        let metadata = if self.rows == 0 { self.wish.metadata } else { 0 };
        let data = length.checked_sub(metadata).ok_or(MetadataTooLong)?;
        for (piece, leg) in pieces.iter().zip(&mut self.legs) {
            if let Some(runs) = self.pvs.get_mut(piece.pv) {
                runs.consume(piece.run, metadata);
                runs.consume(piece.run, data);
            }
            if data > 0 && !leg.contains(&piece.pv) {
                leg.push(piece.pv);
            }
        }
        self.rows += length;
        Ok(())
    }
}

/// The free runs of a PV in LVM's order: the longest first, a new one behind those of its length.
#[derive(Debug)]
struct FreeRuns {
    runs: Vec<Run>,
    /// Whether parts of runs were set aside in this step.
    reserved: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    id: usize,
    length: u64,
    /// What this step has not set aside.
    unreserved: u64,
}

impl FreeRuns {
    fn new(lengths: &[u64]) -> Self {
        let mut runs: Vec<Run> = lengths
            .iter()
            .enumerate()
            .map(|(id, length)| Run { id, length: *length, unreserved: *length })
            .collect();
        runs.sort_by_key(|run| Reverse(run.length));
        Self { runs, reserved: false }
    }

    /// Puts a run where one of this length belongs, and tells where that is.
    fn insert(&mut self, run: Run, length: u64) -> usize {
        let at = self.runs.iter().position(|other| length > other.length).unwrap_or(self.runs.len());
        self.runs.insert(at, run);
        at
    }

    /// Sets aside up to `least` extents of the last run that passes, and of those before it; the caller learns of the
    /// last one. `passes` is told whether the run would be the first.
    ///
    /// A run of which a part remains moves back while LVM walks over the list, so that it may miss others.
    fn reserve(&mut self, least: u64, passes: impl Fn(&Run, bool) -> bool) -> Option<(usize, u64)> {
        let (mut found, mut at) = (None, 0);
        while let Some(run) = self.runs.get(at).copied() {
            if run.unreserved > 0 {
                if !passes(&run, found.is_none()) {
                    break;
                }
                let length = least.min(run.unreserved);
                found = Some((run.id, length));
                self.reserved = true;
                let rest = Run { unreserved: run.unreserved - length, ..run };
                if rest.unreserved == 0 {
                    self.runs[at] = rest;
                } else {
                    self.runs.remove(at);
                    at = self.insert(rest, rest.unreserved);
                }
            }
            at += 1;
        }
        found
    }

    fn forget_reservations(&mut self) {
        if !self.reserved {
            return;
        }
        self.reserved = false;
        let mut at = 0;
        while let Some(run) = self.runs.get(at).copied() {
            if run.unreserved != run.length {
                self.runs.remove(at);
                at = self.insert(Run { unreserved: run.length, ..run }, run.length);
            }
            at += 1;
        }
    }

    /// Takes extents from the beginning of a run.
    fn consume(&mut self, id: usize, extents: u64) {
        if extents == 0 {
            return;
        }
        let Some(at) = self.runs.iter().position(|run| run.id == id) else { return };
        let run = self.runs.remove(at);
        let length = run.length.saturating_sub(extents);
        if length > 0 {
            self.insert(Run { length, unreserved: length, ..run }, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What LVM 2.03.16 did on groups made by chance: the policy, the free runs of each PV, the legs with data and with
    /// parity, their extents and those of metadata, and the PVs of each leg, or `-` where it found no room.
    const RECORDED: &str = include_str!("../../testdata/allocations");

    fn numbers<T: std::str::FromStr>(text: &str, by: char) -> Vec<T> {
        text.split(by).filter_map(|number| number.parse().ok()).collect()
    }

    #[test]
    fn every_allocation_that_was_recorded_from_lvm_is_foretold_leg_by_leg() {
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [policy, free, legs, extents, found] = words[..] else { panic!("{line}") };
            let policy = match policy {
                "normal" => AllocationPolicy::Normal,
                "cling" => AllocationPolicy::Cling,
                "contiguous" => AllocationPolicy::Contiguous,
                other => panic!("{other}"),
            };
            let free: Vec<Vec<u64>> = free.split('|').map(|runs| numbers(runs, ',')).collect();
            let (legs, extents) = (numbers(legs, '+'), numbers(extents, '+'));
            let wish = Wish {
                data_legs: legs[0],
                parity_legs: legs[1],
                rows: extents[0] + extents[1],
                metadata: extents[1],
            };
            let found: Option<Legs> =
                (found != "-").then(|| found.split('|').map(|pvs| numbers(pvs, ',')).collect());
            assert_eq!(Allocator::new(&free, wish).legs(&policy), found, "{line}");
        }
    }
}
