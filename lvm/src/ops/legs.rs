//! Where the legs of a RAID volume grow: each on PVs of its own, so that the loss of one PV breaks one leg.
//!
//! LVM itself lets one leg's end lie where another leg is, as soon as not every leg can go on where it was. So it is told
//! which extents to use: one run of the same length for each leg, in the order of the legs. With the PVs alone it would
//! begin with the short runs at which all legs end, and then give one leg another's PV (2.03.16, seen by the suite of
//! these extensions). What takes several runs takes several commands.

use std::collections::HashSet;
use std::ops::Range;

use super::seen::Seen;
use crate::command::Place;
use crate::metadata::{Lv, Pv, Raid, RaidLevel};
use crate::{DevicePath, Effect, Error, Extents, Kind, Space, Uuid};

/// Most commands that one extension may take.
const STEPS_MAX: usize = 32;

/// One command's part of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The size that the volume gets.
    pub(super) to: Extents,
    /// Where to take them from; none meaning anywhere.
    pub(super) places: Vec<Place>,
}

/// A PV and its free runs, in extents.
type Free = (Uuid, Vec<Range<u64>>);

/// What each leg gets next: so many extents, from these on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Growth {
    rows: u64,
    from: Vec<(Uuid, u64)>,
}

impl Seen {
    /// The next command on the way of a volume to its new size, on `devices` or on any PVs.
    ///
    /// # Errors
    ///
    /// [`Kind::NoSpace`] where its legs cannot grow so far on PVs of their own.
    pub(super) fn next_step(
        &self,
        lv: &Lv,
        wanted: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<Step, Error> {
        let Some(raid) = lv.as_raid().filter(|raid| raid.level != RaidLevel::Raid0) else {
            return Ok(Step { to: wanted, places: anywhere_on(devices) });
        };
        let (has, stripes) = (lv.extents().get(), u64::from(super::extend::stripes_of(lv)));
        let rows = wanted.get().saturating_sub(has).div_ceil(stripes);
        let usage = self.vg().usage();
        let runs =
            |pv: Uuid| usage.free_ranges(pv).iter().map(|run| run.start.get()..run.end.get()).collect();
        let free = self.allocatable(devices).into_iter().map(|pv| (pv, runs(pv))).collect();
        let steps = growth(&self.places(raid), free, rows).ok_or_else(|| self.no_legs(lv, rows, tried))?;
        let Some(first) = steps.first() else { return Ok(Step { to: wanted, places: anywhere_on(devices) }) };
        let to = if first.rows >= rows { wanted.get() } else { has + first.rows * stripes };
        let place = |(pv, start): &(Uuid, u64)| {
            let run = Extents::new(*start)..Extents::new(start + first.rows);
            Ok(Place { device: self.path_of(*pv, tried)?, run: Some(run) })
        };
        let places = first.from.iter().map(place).collect::<Result<_, Error>>()?;
        Ok(Step { to: Extents::new(to), places })
    }

    /// As [`Seen::next_step`], with whole PVs named, and the others behind those for the legs: something besides grows
    /// with it, and takes its extents wherever it finds them.
    pub(super) fn next_step_and_more(
        &self,
        lv: &Lv,
        wanted: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<Step, Error> {
        let mut step = self.next_step(lv, wanted, &[], tried)?;
        let others: Vec<DevicePath> = match devices {
            [] => self
                .allocatable(&[])
                .into_iter()
                .map(|pv| self.path_of(pv, tried))
                .collect::<Result<_, _>>()?,
            some => some.to_vec(),
        };
        if step.places.is_empty() {
            return Ok(Step { places: anywhere_on(devices), ..step });
        }
        step.places.iter_mut().for_each(|place| place.run = None);
        for place in anywhere_on(&others) {
            if !step.places.contains(&place) {
                step.places.push(place);
            }
        }
        Ok(step)
    }

    /// Looks whether legs that were apart before have stayed so. That they do is what the choice of PVs is for.
    pub(super) fn legs_stayed_apart(&self, before: &Self, lv: &Lv, tried: &str) -> Result<(), Error> {
        let earlier = before.vg().lv_by_uuid(lv.uuid).and_then(|lv| before.vg().pv_of_several_legs(lv));
        match self.vg().pv_of_several_legs(lv) {
            Some(pv) if earlier.is_none() => Err(Error::new(Kind::NoSpace(Space::Legs), tried)
                .with_effect(Effect::Done)
                .with_answer(format!("it was extended, but LVM put several legs on PV {pv}"))
                .with_advice("move the extents of one leg off that PV")),
            _ => Ok(()),
        }
    }

    /// The PVs of each leg, the one at whose end it would go on first.
    fn places(&self, raid: &Raid) -> Vec<Vec<Uuid>> {
        let of_leg = |leg: &crate::metadata::RaidLeg| {
            let vg = self.vg();
            let parts = std::iter::once(&leg.data).chain(&leg.meta).filter_map(|part| vg.lv(part.as_str()));
            let mut pvs: Vec<Uuid> = Vec::new();
            let last = vg.lv(leg.data.as_str()).and_then(|data| data.segments.last());
            let last = last.into_iter().flat_map(|segment| segment.areas()).filter_map(|area| match area {
                crate::metadata::Area::Pv { pv, .. } => Some(*pv),
                crate::metadata::Area::Lv { .. } => None,
            });
            for pv in last.chain(parts.flat_map(|part| vg.pvs_below(part))) {
                if !pvs.contains(&pv) {
                    pvs.push(pv);
                }
            }
            pvs
        };
        raid.legs.iter().map(of_leg).collect()
    }

    fn path_of(&self, pv: Uuid, tried: &str) -> Result<DevicePath, Error> {
        let device = self.vg().pv(pv).and_then(|pv: &Pv| pv.device.as_ref());
        let device = device.ok_or_else(|| {
            Error::new(Kind::MissingPv, tried).with_answer(format!("PV {pv} is on no device"))
        })?;
        DevicePath::new(&device.path)?.resolved()
    }

    fn no_legs(&self, lv: &Lv, rows: u64, tried: &str) -> Error {
        Error::new(Kind::NoSpace(Space::Legs), tried)
            .with_answer(format!(
                "each leg of {} needs {rows} more extents on PVs that no other leg is on, and group {} has no room for \
                 that",
                lv.name,
                self.vg().name
            ))
            .with_advice("add disks to the group, ask for less, or name other disks")
    }
}

fn anywhere_on(devices: &[DevicePath]) -> Vec<Place> {
    devices.iter().map(|device| Place { device: device.clone(), run: None }).collect()
}

/// How legs that are on these PVs grow by so many extents each, and stay apart: on their own PVs while there is room, then
/// on PVs that no leg is on.
fn growth(places: &[Vec<Uuid>], mut free: Vec<Free>, rows: u64) -> Option<Vec<Growth>> {
    let mut places: Vec<Vec<Uuid>> = places.to_vec();
    let (mut steps, mut left) = (Vec::new(), rows);
    while left > 0 {
        if steps.len() == STEPS_MAX {
            return None;
        }
        let on = choose(&places, &free, left)?;
        let longest = |pv: &Uuid| free.iter().find(|(uuid, _)| uuid == pv).map_or(0, |(_, runs)| max(runs));
        let length = on.iter().map(longest).min()?.min(left);
        let mut from = Vec::new();
        for (leg, pv) in places.iter_mut().zip(&on) {
            leg.retain(|other| other != pv);
            leg.insert(0, *pv);
            let (_, runs) = free.iter_mut().find(|(uuid, _)| uuid == pv)?;
            // The shortest run that is long enough, so that long ones stay.
            let run =
                runs.iter_mut().filter(|run| length_of(run) >= length).min_by_key(|run| length_of(run))?;
            from.push((*pv, run.start));
            run.start += length;
        }
        left -= length;
        steps.push(Growth { rows: length, from });
    }
    Some(steps)
}

/// A PV for each leg.
fn choose(places: &[Vec<Uuid>], free: &[Free], wanted: u64) -> Option<Vec<Uuid>> {
    let room =
        |pv: &Uuid| free.iter().find(|(uuid, _)| uuid == pv).map_or(0, |(_, runs)| max(runs).min(wanted));
    let mut taken: HashSet<Uuid> = HashSet::new();
    let mut chosen: Vec<Option<Uuid>> = Vec::new();
    for (index, leg) in places.iter().enumerate() {
        let others = || places.iter().enumerate().filter(|(other, _)| *other != index);
        let alone = |pv: &&Uuid| others().all(|(_, other)| !other.contains(pv));
        // The first of those with most room: where the leg ends.
        let own = leg.iter().filter(alone).filter(|pv| room(pv) > 0).rev().max_by_key(|pv| room(pv));
        taken.extend(leg);
        chosen.push(own.copied());
    }
    chosen
        .into_iter()
        .map(|own| {
            let pv = own.or_else(|| {
                let fresh = free.iter().map(|(pv, _)| pv).filter(|pv| !taken.contains(*pv) && room(pv) > 0);
                fresh.rev().max_by_key(|pv| room(pv)).copied()
            })?;
            taken.insert(pv);
            Some(pv)
        })
        .collect()
}

fn max(runs: &[Range<u64>]) -> u64 {
    runs.iter().map(length_of).max().unwrap_or(0)
}

fn length_of(run: &Range<u64>) -> u64 {
    run.end.saturating_sub(run.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pv(index: usize) -> Uuid {
        Uuid::from_bytes([b'a' + u8::try_from(index).unwrap(); 32]).unwrap()
    }

    fn pvs(indices: &[usize]) -> Vec<Uuid> {
        indices.iter().map(|index| pv(*index)).collect()
    }

    /// Runs of these lengths, with a used extent between each two.
    fn apart(lengths: &[u64]) -> Vec<Range<u64>> {
        let mut start = 0;
        let place = |length: &u64| {
            let run = start..start + length;
            start = run.end + 1;
            run
        };
        lengths.iter().map(place).collect()
    }

    fn free(runs: &[&[u64]]) -> Vec<Free> {
        runs.iter().enumerate().map(|(index, runs)| (pv(index), apart(runs))).collect()
    }

    #[test]
    fn legs_stay_where_they_are_while_there_is_room_and_go_where_no_leg_is() {
        let legs = [pvs(&[0]), pvs(&[1])];
        let step = |rows, from: &[(usize, u64)]| Growth {
            rows,
            from: from.iter().map(|(index, start)| (pv(*index), *start)).collect(),
        };
        let steps = |runs: &[&[u64]], rows| growth(&legs, free(runs), rows);
        assert_eq!(steps(&[&[9], &[9], &[50]], 9), Some(vec![step(9, &[(0, 0), (1, 0)])]));
        // A full PV: its leg goes on elsewhere, the other one stays.
        assert_eq!(steps(&[&[], &[9], &[50]], 9), Some(vec![step(9, &[(2, 0), (1, 0)])]));
        assert_eq!(steps(&[&[], &[9], &[]], 9), None);
        assert_eq!(steps(&[&[4], &[9]], 5), None);
        // Two runs take two commands.
        assert_eq!(
            steps(&[&[4, 5], &[9]], 9),
            Some(vec![step(5, &[(0, 5), (1, 0)]), step(4, &[(0, 0), (1, 5)])])
        );
        assert_eq!(
            steps(&[&[4], &[9], &[50]], 9),
            Some(vec![step(4, &[(0, 0), (1, 0)]), step(5, &[(2, 0), (1, 4)])])
        );
        // A PV that bears two legs already takes neither of them.
        assert_eq!(
            growth(&[pvs(&[0, 2]), pvs(&[1, 0])], free(&[&[9], &[9], &[9]]), 5),
            Some(vec![step(5, &[(2, 0), (1, 0)])])
        );
    }

    proptest! {
        #[test]
        fn whatever_is_free_legs_grow_by_what_was_asked_for_and_stay_apart(
            runs in prop::collection::vec(prop::collection::vec(1..40_u64, 0..4), 2..8),
            legs in 2..5_usize,
            rows in 1..100_u64,
        ) {
            let places: Vec<Vec<Uuid>> = (0..legs.min(runs.len())).map(|leg| vec![pv(leg)]).collect();
            let free: Vec<Free> = runs.iter().enumerate().map(|(index, runs)| (pv(index), apart(runs))).collect();
            if let Some(steps) = growth(&places, free, rows) {
                prop_assert_eq!(steps.iter().map(|step| step.rows).sum::<u64>(), rows);
                let mut owner: std::collections::HashMap<Uuid, usize> =
                    places.iter().enumerate().map(|(leg, pvs)| (pvs[0], leg)).collect();
                let mut used = HashSet::new();
                for step in &steps {
                    for (leg, (pv, start)) in step.from.iter().enumerate() {
                        prop_assert_eq!(*owner.entry(*pv).or_insert(leg), leg);
                        let index = (0..runs.len()).find(|index| super::tests::pv(*index) == *pv).unwrap();
                        let run = *start..start + step.rows;
                        prop_assert!(apart(&runs[index]).iter().any(|free| free.start <= run.start && run.end <= free.end));
                        prop_assert!(run.into_iter().all(|extent| used.insert((*pv, extent))), "an extent twice");
                    }
                }
            }
        }
    }
}
