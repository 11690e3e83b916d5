//! Snapshots and copies: calls that read one volume and make another thing.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tonic::{Code, Status};

use super::belief::{Content, Cut, Mode, Op, Origin, Source, State, There};
use super::call::{Answer, Calls};
use super::caller::{Caller, Known, PATIENCE, Slot, is_lost, told};
use super::content;

impl Caller<'_> {
    /// Writes or reads where a volume is published.
    pub(super) fn use_it(&mut self, slot: &Slot, known: &mut Known, there: &There) {
        let Some(at) = there.published.iter().position(|published| *published) else { return };
        let target = Calls::target(&self.world.directory, &slot.id, at);
        let checked = content::check(&target, slot.mode, there.data);
        if let Err(error) = checked {
            return self.world.fault(told(slot, known, &format!("{error:#}")));
        }
        if self.random.below(2) == 0 {
            return;
        }
        let data = self.random.number();
        match content::write(&target, slot.mode, data) {
            Ok(()) => {
                known.note(format!("written: {data}"));
                known.beliefs = vec![Some(There { data: Some(data), ..there.clone() })];
            }
            Err(error) => self.world.fault(told(slot, known, &format!("write: {error:#}"))),
        }
    }

    /// One of the snapshots for volumes of a mode.
    fn snapshot_for(&mut self, mode: Mode) -> usize {
        let half = self.world.snapshots.len() / 2;
        self.below(half) * 2 + usize::from(mode == Mode::Block)
    }

    /// Makes a volume from a snapshot or another volume, whether or not that is there.
    pub(super) fn make_from(&mut self, slot: &Slot, known: &mut Known) {
        let world = self.world;
        let more = self.random.below(3) * (3 << 20);
        if self.random.below(3) > 0 {
            let (id, cut) = &world.snapshots[self.snapshot_for(slot.mode)];
            let Ok(cut) = cut.try_lock() else { return };
            self.copy(slot, known, Source::Snapshot(id.clone()), cut.clone(), more);
            return;
        }
        let other =
            &world.volumes[self.below(world.volumes.len() / 2) * 2 + usize::from(slot.mode == Mode::Block)];
        if other.id == slot.id {
            return;
        }
        let Ok(source) = other.inner.try_lock() else { return };
        let Some(state) = source.certain() else { return };
        let there = state.as_ref().map(|there| there.cut(&other.id));
        // What is half made is refused, and which error comes first is of no interest.
        if there.as_ref().is_some_and(|cut| cut.content == Content::Formatting) {
            return;
        }
        self.copy(slot, known, Source::Volume(other.id.clone()), there, more);
    }

    fn copy(&mut self, slot: &Slot, known: &mut Known, source: Source, there: Option<Cut>, more: u64) {
        let least = there.as_ref().map_or(16 << 20, |cut| cut.size.get());
        // Now and then less than the source has.
        let size = if self.random.below(8) == 0 { least - (4 << 20) } else { least + more };
        let size = devices::Bytes::new(size.max(16 << 20));
        self.settle(slot, known, Op::Create { size, from: Some(Origin { source, there }) });
    }

    /// Cuts a snapshot of a volume, and waits until it is ready.
    pub(super) fn cut(&mut self, slot: &Slot, known: &mut Known, state: &State) {
        let world = self.world;
        let (id, cut) = &world.snapshots[self.snapshot_for(slot.mode)];
        let Ok(mut cut) = cut.try_lock() else { return };
        let expected = match (&*cut, state) {
            (Some(there), _) if there.source == slot.id => Code::Ok,
            (Some(_), _) => Code::AlreadyExists,
            (None, None) => Code::NotFound,
            (None, Some(there)) if there.content == Content::Formatting || !world.rules.copies => {
                Code::FailedPrecondition
            }
            (None, Some(_)) => Code::Ok,
        };
        let made = self.until_known(|calls| calls.create_snapshot(id, &slot.id));
        known.note(format!("snapshot {id}: {made:?}"));
        let code = made.as_ref().map_or_else(Status::code, |_| Code::Ok);
        if code != expected {
            return world.fault(told(slot, known, &format!("snapshot {id}: {expected:?} was expected")));
        }
        let Ok(made) = made else { return };
        if cut.is_none() {
            *cut = state.as_ref().map(|there| there.cut(&slot.id));
        }
        let size = cut.as_ref().map(|cut| cut.size.get());
        if made.source_volume_id != slot.id || u64::try_from(made.size_bytes).ok() != size {
            return world.fault(told(slot, known, &format!("snapshot {id} is another one: {made:?}")));
        }
        let start = Instant::now();
        let mut ready = made.ready_to_use;
        while !ready {
            sleep(Duration::from_millis(100));
            let all = self.until_known(Calls::snapshots);
            let found = all.as_ref().ok().and_then(|all| all.iter().find(|found| found.snapshot_id == *id));
            ready = found.is_some_and(|found| found.ready_to_use);
            if found.is_none() || start.elapsed() > PATIENCE {
                return world.fault(told(slot, known, &format!("snapshot {id} does not get ready: {all:?}")));
            }
        }
    }

    /// Deletes a snapshot, whether or not it is there.
    pub(super) fn uncut(&mut self) {
        let at = self.below(self.world.snapshots.len());
        let (id, cut) = &self.world.snapshots[at];
        let Ok(mut cut) = cut.try_lock() else { return };
        match self.until_known(|calls| calls.delete_snapshot(id)) {
            Ok(()) => *cut = None,
            Err(refusal) => self.world.fault(format!("delete snapshot {id}, {cut:?}: {refusal:?}")),
        }
    }

    /// Makes a call until its answer is known.
    fn until_known<T>(&self, call: impl Fn(&Calls) -> Result<T, Status>) -> Result<T, Status> {
        let start = Instant::now();
        loop {
            let since = self.world.turmoil.now();
            let result = call(&self.calls[0]);
            let met = self.world.turmoil.since(since);
            match &result {
                Err(refusal) if is_lost(&Answer::refused(refusal), met) && start.elapsed() < PATIENCE => {
                    sleep(Duration::from_millis(50));
                }
                _ => return result,
            }
        }
    }
}
