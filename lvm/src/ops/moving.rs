//! Moving extents from one PV to others while the volumes on it are in use.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::Group;
use super::seen::{Need, Seen};
use crate::command::{PvMove, PvMoveAbort};
use crate::dm::Dm;
use crate::metadata::LvFlag;
use crate::{DevicePath, Error, Kind, LvName, Uuid};

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
    /// It was given up, and everything is where it was.
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
        self.follow(&seen, &end, Some(&source), watch, &tried)
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
        self.follow(&seen, &end, None, watch, &tried)
    }

    /// Waits for a move, and gives it up when told to.
    fn follow(
        &self,
        seen: &Seen,
        end: &Receiver<Result<(), Error>>,
        source: Option<&DevicePath>,
        watch: Watch<'_>,
        tried: &str,
    ) -> Result<MoveEnd, Error> {
        let dm = Dm::open()?;
        let mut aborted = false;
        loop {
            match end.recv_timeout(LOOK_EVERY) {
                Ok(Ok(())) if aborted => return Ok(MoveEnd::Aborted),
                Ok(Ok(())) => return Ok(MoveEnd::Moved),
                // The move's own command may say that its mirror has gone.
                Ok(Err(_)) if aborted => return Ok(MoveEnd::Aborted),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(Kind::Crashed, tried)
                        .with_effect(crate::Effect::Unknown)
                        .with_answer("the worker's thread ended without a word"));
                }
            }
            let Some(progress) = progress(&dm, seen.vg().uuid)? else { continue };
            if !aborted && watch(progress).is_break() {
                self.run(seen, tried, &PvMoveAbort { source })?;
                aborted = true;
            }
        }
    }
}

fn progress(dm: &Dm, group: Uuid) -> Result<Option<MoveProgress>, Error> {
    let moves = dm.moves(&group)?;
    let sum = |of: fn(crate::dm::Fill) -> u64| moves.iter().map(|(_, fill)| of(*fill)).sum();
    Ok((!moves.is_empty())
        .then(|| MoveProgress { copied: sum(crate::dm::Fill::used), total: sum(crate::dm::Fill::total) }))
}
