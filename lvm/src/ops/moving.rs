//! Moving extents from one PV to others while the volumes on it are in use.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::Group;
use super::seen::{Need, Seen};
use crate::command::{PvMove, PvMoveAbort};
use crate::dm::Dm;
use crate::metadata::{Area, Lv, LvFlag, Vg};
use crate::{DevicePath, Error, Extents, Kind, LvName, Uuid};

/// How often a move's progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveProgress {
    /// Regions copied.
    pub copied: u64,
    /// Regions to be copied in all.
    pub total: u64,
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveEnd {
    /// The extents are on the other PVs.
    Moved,
    /// There was nothing to move.
    Nothing,
    /// It was given up, here or by another program, and everything is where it was. A move that was complete by then is
    /// [`Moved`](Self::Moved).
    Aborted,
}

/// Looks at a move's progress and says whether it shall go on.
type Watch<'a> = &'a mut dyn FnMut(MoveProgress) -> ControlFlow<()>;

impl Group {
    /// Moves all extents off a PV, or those of one volume, to the PVs named or to any. Volumes stay in use; their
    /// data switch over together at the end. Takes as long as copying does, and is not bound to the deadline.
    ///
    /// `watch` is called about twice a second; [`ControlFlow::Break`] gives the move up.
    ///
    /// After a crash of this program or the machine, [`Group::resume_moves`] goes on with it.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] for a device that is no PV of the group or a volume that is not in it; [`Kind::NoSpace`];
    /// [`Kind::Busy`] while another long command of the group runs; [`Kind::Unsupported`], [`Kind::MissingPv`],
    /// [`Kind::Foreign`], and what LVM itself says.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use lvm::{DevicePath, Lvm};
    ///
    /// # fn empty(lvm: &Lvm) -> Result<(), Box<dyn std::error::Error>> {
    /// let group = lvm.group(&"data".parse()?)?;
    /// let end = group.move_extents(&DevicePath::new("/dev/sdb")?, &[], None, &mut |progress| {
    ///     println!("{} of {}", progress.copied, progress.total);
    ///     ControlFlow::Continue(())
    /// })?;
    /// println!("{end:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn move_extents(
        &self,
        from: &DevicePath,
        to: &[DevicePath],
        only: Option<&LvName>,
        watch: Watch<'_>,
    ) -> Result<MoveEnd, Error> {
        let tried = format!("move extents off {from}");
        self.needs_kernel(&tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let source = from.resolved()?;
        let pv = seen.pv_on(&source, &tried)?;
        let below = |lv: &crate::metadata::Lv| seen.vg().pvs_below(lv).contains(&pv.uuid);
        let anything = match only {
            Some(name) => below(seen.finished_lv(&self.lvm, name, &tried)?),
            None => seen.vg().lvs.iter().any(below),
        };
        if !anything {
            return Ok(MoveEnd::Nothing);
        }
        let targets = seen.resolve(to, &tried)?;
        let command = PvMove { source: Some(&source), targets: &targets, only };
        let end = self.lvm.begin(seen.scope(), &tried, &command)?;
        let before = Lying::on(seen.vg(), vec![pv.uuid]);
        self.follow(&seen, &end, Some(&source), watch, &tried)?.judge(self, &before, &tried)
    }

    /// Goes on with the moves that a crash interrupted.
    ///
    /// # Errors
    ///
    /// As [`Group::move_extents`].
    pub fn resume_moves(&self, watch: Watch<'_>) -> Result<MoveEnd, Error> {
        let tried = format!("resume moves in group {}", self.label());
        self.needs_kernel(&tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        if !seen.vg().lvs.iter().any(|lv| lv.has(&LvFlag::PvMove)) {
            return Ok(MoveEnd::Nothing);
        }
        let end = self.lvm.begin(seen.scope(), &tried, &PvMove::default())?;
        let before = Lying::on(seen.vg(), sources(seen.vg()));
        self.follow(&seen, &end, None, watch, &tried)?.judge(self, &before, &tried)
    }

    /// Waits for a move, and gives it up when told to.
    fn follow(
        &self,
        seen: &Seen,
        end: &Receiver<Result<(), Error>>,
        source: Option<&DevicePath>,
        watch: Watch<'_>,
        tried: &str,
    ) -> Result<Ended, Error> {
        let dm = Dm::open()?;
        let mut given_up = false;
        loop {
            match end.recv_timeout(LOOK_EVERY) {
                Ok(end) => return Ok(Ended { end, given_up }),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(Kind::Crashed, tried)
                        .with_effect(crate::Effect::Unknown)
                        .with_answer("the worker's thread ended without a word"));
                }
            }
            let Some(progress) = progress(&dm, seen.vg().uuid)? else { continue };
            if !given_up && watch(progress).is_break() {
                given_up = true;
                if let Err(error) = self.run(seen, tried, &PvMoveAbort { source }) {
                    // LVM finds no move where it has ended meanwhile.
                    let end = end.recv_timeout(LOOK_EVERY).map_err(|_| error)?;
                    return Ok(Ended { end, given_up });
                }
            }
        }
    }
}

/// A move whose command has ended.
struct Ended {
    end: Result<(), Error>,
    given_up: bool,
}

impl Ended {
    /// What has become of the move. The command does not tell it: one that was given up may have been complete by then, and
    /// one that ended well may have been given up by another program.
    fn judge(self, group: &Group, before: &Lying, tried: &str) -> Result<MoveEnd, Error> {
        let failed = match self.end {
            Ok(()) => None,
            // It may say that its mirror has gone.
            Err(error) if self.given_up => Some(error),
            Err(error) => return Err(error),
        };
        let now = group.look()?;
        if before.has_left(&now) {
            return Ok(MoveEnd::Moved);
        }
        if now.lvs.iter().any(|lv| lv.has(&LvFlag::PvMove)) {
            return Err(failed.unwrap_or_else(|| {
                Error::new(Kind::Inconsistent, tried)
                    .with_answer("LVM's command has ended, and the move has not")
                    .with_advice("resume the group's moves")
            }));
        }
        Ok(MoveEnd::Aborted)
    }
}

/// How much of each volume lies on the PVs that a move empties.
#[derive(Debug)]
struct Lying {
    pvs: Vec<Uuid>,
    volumes: Vec<(Uuid, Extents)>,
}

impl Lying {
    fn on(vg: &Vg, pvs: Vec<Uuid>) -> Self {
        let volumes = vg.lvs.iter().filter(|lv| !lv.has(&LvFlag::PvMove));
        let volumes = volumes.map(|lv| (lv.uuid, extents_on(vg, lv, &pvs))).collect();
        Self { pvs, volumes }
    }

    /// Whether any volume has less on them now. All that a move takes switches over together, and what was removed
    /// meanwhile says nothing.
    fn has_left(&self, now: &Vg) -> bool {
        let less = |lv: &Lv, before| extents_on(now, lv, &self.pvs) < before;
        self.volumes.iter().any(|(lv, before)| now.lv_by_uuid(*lv).is_some_and(|lv| less(lv, *before)))
    }
}

/// How many extents of the volume lie on these PVs. What a move has under way has not left them yet.
fn extents_on(vg: &Vg, lv: &Lv, pvs: &[Uuid]) -> Extents {
    let is_here = |area: &&Area| match area {
        Area::Pv { pv, .. } => pvs.contains(pv),
        Area::Lv { lv, .. } => vg.lv(lv.as_str()).is_some_and(|lv| lv.has(&LvFlag::PvMove)),
    };
    let sums = lv.segments.iter().map(|segment| {
        let areas = segment.areas().iter().filter(is_here).count() as u64;
        segment.area_len().unwrap_or_default().get().saturating_mul(areas)
    });
    Extents::new(sums.fold(0, u64::saturating_add))
}

/// The PVs that the group's moves empty: those of the first legs of their mirrors.
fn sources(vg: &Vg) -> Vec<Uuid> {
    let moves = vg.lvs.iter().filter(|lv| lv.has(&LvFlag::PvMove));
    let first_legs = moves.flat_map(|lv| &lv.segments).filter_map(|segment| segment.areas().first());
    first_legs
        .filter_map(|area| match area {
            Area::Pv { pv, .. } => Some(*pv),
            Area::Lv { .. } => None,
        })
        .collect()
}

fn progress(dm: &Dm, group: Uuid) -> Result<Option<MoveProgress>, Error> {
    let moves = dm.moves(&group)?;
    let sum = |of: fn(crate::dm::Fill) -> u64| moves.iter().map(|(_, fill)| of(*fill)).sum();
    Ok((!moves.is_empty())
        .then(|| MoveProgress { copied: sum(crate::dm::Fill::used), total: sum(crate::dm::Fill::total) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Pv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcde0";
    const PLACES: [(&str, u64); 2] = [("pv0", 5), ("pv1", 0)];

    /// A group of a volume `db` with ten extents, and of one that stays; where the first five extents lie, and whether they
    /// do so through the move's mirror.
    fn group(place: (&str, u64), moving: bool) -> Vg {
        let segment = |start: u64, area: &str| {
            format!(
                r#"segment{start} {{ start_extent = {start} extent_count = 5 type = "striped" stripe_count = 1
                stripes = [{area}] }}"#
            )
        };
        let lv = |at: u64, name: &str, flags: &str, segments: &str, count: u64| {
            format!(
                r#"{name} {{ id = "Lv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcde{at}" status = ["READ", {flags}]
                segment_count = {count} {segments} }}"#
            )
        };
        let (pv, start) = place;
        let first = if moving { r#""pvmove0", 0"#.to_owned() } else { format!(r#""{pv}", {start}"#) };
        let mirror = r#"segment1 { start_extent = 0 extent_count = 5 type = "mirror" mirror_count = 2
            extents_moved = 0 mirrors = ["pv0", 5, "pv1", 0] }"#;
        let volumes = [
            lv(0, "db", r#""VISIBLE""#, &(segment(0, &first) + &segment(5, r#""pv1", 20"#)), 2),
            lv(1, "stays", r#""VISIBLE""#, &segment(0, r#""pv0", 20"#), 1),
            if moving { lv(2, "pvmove0", r#""PVMOVE""#, mirror, 1) } else { String::new() },
        ];
        let pv = |at: u64| {
            format!(
                r#"pv{at} {{ id = "Pv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcde{at}" status = [] pe_start = 2048
                pe_count = 100 }}"#
            )
        };
        Vg::from_text(&format!(
            r#"contents = "Text Format Volume Group" version = 1 v {{
            id = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef" seqno = 7 status = ["READ"] extent_size = 8192
            physical_volumes {{ {} {} }} logical_volumes {{ {} }} }}"#,
            pv(0),
            pv(1),
            volumes.concat()
        ))
        .unwrap()
    }

    #[test]
    fn a_move_is_done_when_a_volume_has_left_and_not_before() {
        let [old, new] = PLACES;
        let source: Uuid = OLD.parse().unwrap();
        assert_eq!(sources(&group(old, true)), [source]);
        for before in [group(old, false), group(old, true)] {
            let before = Lying::on(&before, vec![source]);
            assert_eq!(before.volumes.len(), 2, "the move's own mirror is no volume: {before:?}");
            assert!(!before.has_left(&group(old, false)), "given up");
            assert!(!before.has_left(&group(old, true)), "under way");
            assert!(before.has_left(&group(new, false)), "moved");
        }
    }

    #[test]
    fn a_volume_that_was_removed_meanwhile_has_not_been_moved() {
        let source: Uuid = OLD.parse().unwrap();
        let before = Lying::on(&group(PLACES[0], false), vec![source]);
        let mut now = group(PLACES[0], false);
        now.lvs.retain(|lv| lv.name.as_str() != "stays");
        assert!(!before.has_left(&now));
    }
}
