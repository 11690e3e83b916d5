//! Who waits, who runs, and which groups are closed: the pool's state, without threads or processes.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use super::frame::{Job, JobReply};
use crate::run::Scope;
use crate::{Error, Uuid};

/// Names a job from the moment it is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A job that has not begun.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) scope: Scope,
    pub(super) tried: String,
    pub(super) job: Job,
}

/// A job that a worker has, or had until it was killed and would not die.
///
/// One that will not die does nothing more by itself: only the kernel still works for it, on its own group.
#[derive(Debug)]
struct Running {
    ticket: Ticket,
    scope: Scope,
    tried: String,
    /// Its caller has gone.
    abandoned: bool,
    /// Its worker was killed.
    doomed: bool,
}

/// A group whose worker died, or everything ([`Scope::Alone`]) where the dead worker's command had no group.
#[derive(Debug)]
pub(super) struct Quarantine {
    pub(super) scope: Scope,
    pub(super) reason: String,
    pub(super) recovering: bool,
    /// Counts deaths, so that a recovery lifts only what it has seen.
    pub(super) deaths: u64,
    /// How the last recovery failed.
    pub(super) failure: Option<String>,
    /// Counts recoveries that failed.
    pub(super) failures: u64,
}

/// All that the pool's threads share.
#[derive(Debug, Default)]
pub(super) struct State {
    last_ticket: u64,
    queue: VecDeque<Waiting>,
    running: Vec<Running>,
    results: HashMap<Ticket, Result<JobReply, Error>>,
    quarantines: Vec<Quarantine>,
    /// Groups with a long job, which holds no place in the queue.
    pub(super) long: Vec<Uuid>,
    /// Threads that keep a worker.
    pub(super) keepers: usize,
    /// Those of them that have a job.
    pub(super) busy: usize,
    /// Worker processes that are there now.
    pub(super) processes: usize,
    /// No job is taken any more.
    pub(super) closing: bool,
    /// Configuration for the next worker.
    pub(super) conf_dir: PathBuf,
    /// Configuration for the next long job.
    pub(super) long_conf_dir: PathBuf,
    pub(super) lvm_version: Option<String>,
}

/// Whether two jobs may not run at the same time.
fn collide(a: &Scope, b: &Scope) -> bool {
    match (a, b) {
        (Scope::Vg { uuid: a, .. }, Scope::Vg { uuid: b, .. }) => a == b,
        _ => true,
    }
}

/// What is suspect once the worker of a command of this scope has died: one group, or everything.
fn suspect(scope: &Scope) -> Scope {
    match scope {
        Scope::Vg { name, uuid } | Scope::Whole { name, uuid } => {
            Scope::Vg { name: name.clone(), uuid: *uuid }
        }
        Scope::Free | Scope::Alone => Scope::Alone,
    }
}

/// Whether a command has to wait until what is suspect has been recovered.
///
/// One on free devices need not wait for a group: it is refused beforehand the PVs that the group's committed metadata
/// name, LVM neither activates nor repairs other groups for it, and the recovery adds no device to the group.
fn keeps_out(suspect: &Scope, scope: &Scope) -> bool {
    match (suspect, scope) {
        (Scope::Vg { uuid: a, .. }, Scope::Vg { uuid: b, .. } | Scope::Whole { uuid: b, .. }) => a == b,
        (Scope::Vg { .. }, Scope::Free) => false,
        _ => true,
    }
}

impl Running {
    /// Whether no command of this scope may begin meanwhile.
    fn hinders(&self, scope: &Scope) -> bool {
        if self.doomed { keeps_out(&suspect(&self.scope), scope) } else { collide(&self.scope, scope) }
    }
}

/// Whether the same things are suspect with two scopes; a group keeps its uuid when it is renamed.
pub(super) fn same(a: &Scope, b: &Scope) -> bool {
    match (suspect(a), suspect(b)) {
        (Scope::Vg { uuid: a, .. }, Scope::Vg { uuid: b, .. }) => a == b,
        (Scope::Alone, Scope::Alone) => true,
        _ => false,
    }
}

impl State {
    pub(super) fn enqueue(&mut self, scope: Scope, tried: String, job: Job) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.queue.push_back(Waiting { ticket, scope, tried, job });
        ticket
    }

    /// How many jobs wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing waits and nothing runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty() && self.long.is_empty()
    }

    /// The oldest job that collides neither with a running one nor with an older one that waits: jobs of one
    /// group keep their order, and a job that runs alone is not overtaken for ever.
    pub(super) fn begin_next(&mut self) -> Option<Waiting> {
        let free = |index: usize, waiting: &Waiting| {
            let mut older = self.queue.iter().take(index);
            !older.any(|older| collide(&older.scope, &waiting.scope))
                && !self.running.iter().any(|running| running.hinders(&waiting.scope))
        };
        let index = self.queue.iter().enumerate().position(|(index, waiting)| free(index, waiting))?;
        let waiting = self.queue.remove(index)?;
        let Waiting { ticket, scope, tried, .. } = &waiting;
        let (scope, tried) = (scope.clone(), tried.clone());
        self.running.push(Running { ticket: *ticket, scope, tried, abandoned: false, doomed: false });
        Some(waiting)
    }

    /// Gives a running job's result to its caller, if there still is one.
    pub(super) fn finish(&mut self, ticket: Ticket, result: Result<JobReply, Error>) {
        let Some(index) = self.running.iter().position(|running| running.ticket == ticket) else { return };
        if !self.running.swap_remove(index).abandoned {
            self.results.insert(ticket, result);
        }
    }

    /// Sends the caller away with `error` and leaves the job running: its worker was killed and does not die.
    pub(super) fn abandon_with(&mut self, ticket: Ticket, error: Error) {
        let Some(running) = self.running.iter_mut().find(|running| running.ticket == ticket) else { return };
        running.doomed = true;
        if !running.abandoned {
            running.abandoned = true;
            self.results.insert(ticket, Err(error));
        }
    }

    pub(super) fn result(&mut self, ticket: Ticket) -> Option<Result<JobReply, Error>> {
        self.results.remove(&ticket)
    }

    /// Takes a job back that has not begun; `false` where it runs, and then nobody waits for it any more.
    pub(super) fn give_up(&mut self, ticket: Ticket) -> bool {
        if let Some(index) = self.queue.iter().position(|waiting| waiting.ticket == ticket) {
            self.queue.remove(index);
            return true;
        }
        if let Some(running) = self.running.iter_mut().find(|running| running.ticket == ticket) {
            running.abandoned = true;
        }
        false
    }

    /// What still runs in this scope although its caller has gone.
    pub(super) fn abandoned_in(&self, scope: &Scope) -> Option<&str> {
        let left = |running: &&Running| running.abandoned && running.hinders(scope);
        self.running.iter().find(left).map(|running| running.tried.as_str())
    }

    /// The quarantine that keeps a command of this scope out, but for the one that is being recovered.
    pub(super) fn barrier(&self, scope: &Scope, recovering: Option<&Scope>) -> Option<&Quarantine> {
        let passes = |quarantine: &Quarantine| {
            recovering.is_some_and(|own| same(own, &quarantine.scope) || *own == Scope::Alone)
        };
        self.quarantines.iter().find(|quarantine| keeps_out(&quarantine.scope, scope) && !passes(quarantine))
    }

    pub(super) fn quarantine(&mut self, scope: &Scope, reason: &str) {
        if let Some(quarantine) = self.quarantine_mut(scope) {
            quarantine.deaths += 1;
            reason.clone_into(&mut quarantine.reason);
            return;
        }
        let scope = suspect(scope);
        // The one over everything is recovered first: it would keep the recovery of a group out.
        let place = if scope == Scope::Alone { 0 } else { self.quarantines.len() };
        let quarantine = Quarantine {
            scope,
            reason: reason.to_owned(),
            recovering: false,
            deaths: 1,
            failure: None,
            failures: 0,
        };
        self.quarantines.insert(place, quarantine);
    }

    pub(super) fn quarantine_mut(&mut self, scope: &Scope) -> Option<&mut Quarantine> {
        self.quarantines.iter_mut().find(|quarantine| same(&quarantine.scope, scope))
    }

    pub(super) fn lift(&mut self, scope: &Scope) {
        self.quarantines.retain(|quarantine| !same(&quarantine.scope, scope));
    }

    pub(super) fn quarantines(&self) -> &[Quarantine] {
        &self.quarantines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VgName;

    fn vg(letter: char) -> Scope {
        let uuid = Uuid::from_bytes([u8::try_from(letter).unwrap(); 32]).unwrap();
        Scope::Vg { name: VgName::new(&letter.to_string()).unwrap(), uuid }
    }

    fn whole(letter: char) -> Scope {
        let Scope::Vg { name, uuid } = vg(letter) else { unreachable!() };
        Scope::Whole { name, uuid }
    }

    #[test]
    fn what_its_killed_worker_does_not_let_go_of_hinders_its_own_group_only() {
        let mut state = State::default();
        let a = queued(&mut state, vg('a'));
        state.begin_next().unwrap();
        let free = queued(&mut state, Scope::Free);
        assert!(state.begin_next().is_none());
        state.abandon_with(a, Error::new(crate::Kind::TimedOut, "try"));
        assert!(state.result(a).unwrap().is_err());
        assert!(state.abandoned_in(&vg('a')).is_some() && state.abandoned_in(&whole('a')).is_some());
        assert!(state.abandoned_in(&Scope::Free).is_none() && state.abandoned_in(&Scope::Alone).is_some());
        assert_eq!(state.begin_next().unwrap().ticket, free);
    }

    fn job() -> Job {
        Job::Lvm { line: "lvs".to_owned(), flush: Vec::new() }
    }

    fn reply() -> JobReply {
        let code = crate::run::ReturnCode::Succeeded;
        JobReply { seq: 1, code, records: Vec::new(), truncated: false, elapsed_us: 1 }
    }

    fn queued(state: &mut State, scope: Scope) -> Ticket {
        state.enqueue(scope, "try".to_owned(), job())
    }

    #[test]
    fn one_group_runs_one_command_in_order_while_others_pass() {
        let mut state = State::default();
        let (a1, a2, b) =
            (queued(&mut state, vg('a')), queued(&mut state, vg('a')), queued(&mut state, vg('b')));
        assert_eq!(state.begin_next().unwrap().ticket, a1);
        assert_eq!(state.begin_next().unwrap().ticket, b);
        assert!(state.begin_next().is_none());
        state.finish(a1, Ok(reply()));
        assert!(state.result(a1).unwrap().is_ok());
        assert_eq!(state.begin_next().unwrap().ticket, a2);
    }

    #[test]
    fn a_command_without_a_group_runs_alone_and_is_not_overtaken() {
        let mut state = State::default();
        let a = queued(&mut state, vg('a'));
        let alone = queued(&mut state, Scope::Alone);
        let b = queued(&mut state, vg('b'));
        assert_eq!(state.begin_next().unwrap().ticket, a);
        assert!(state.begin_next().is_none());
        state.finish(a, Ok(reply()));
        assert_eq!(state.begin_next().unwrap().ticket, alone);
        assert!(state.begin_next().is_none());
        state.finish(alone, Ok(reply()));
        assert_eq!(state.begin_next().unwrap().ticket, b);
    }

    #[test]
    fn who_gives_up_before_the_start_leaves_nothing_and_after_it_a_busy_group() {
        let mut state = State::default();
        let (a1, a2) = (queued(&mut state, vg('a')), queued(&mut state, vg('a')));
        state.begin_next().unwrap();
        assert!(state.give_up(a2));
        assert!(!state.give_up(a1));
        assert!(state.abandoned_in(&vg('a')).is_some());
        assert!(state.abandoned_in(&vg('b')).is_none());
        assert!(state.abandoned_in(&Scope::Alone).is_some());
        state.finish(a1, Ok(reply()));
        assert!(state.result(a1).is_none());
        assert!(state.is_quiet());
    }

    #[test]
    fn a_quarantine_keeps_its_own_group_out_and_commands_without_a_group() {
        let mut state = State::default();
        state.quarantine(&vg('a'), "killed by signal 11");
        assert!(state.barrier(&vg('a'), None).is_some());
        assert!(state.barrier(&Scope::Alone, None).is_some());
        assert!(state.barrier(&vg('b'), None).is_none());
        assert!(state.barrier(&vg('a'), Some(&vg('a'))).is_none());
        assert!(state.barrier(&vg('a'), Some(&vg('b'))).is_some());
        state.quarantine(&vg('a'), "again");
        assert_eq!(state.quarantines().len(), 1);
        state.lift(&vg('a'));
        assert!(state.barrier(&vg('a'), None).is_none());
        state.quarantine(&vg('a'), "killed");
        assert!(state.barrier(&Scope::Free, None).is_none());
        assert!(state.barrier(&whole('a'), None).is_some());
        assert!(state.barrier(&whole('b'), None).is_none());
        state.lift(&whole('a'));
        state.quarantine(&Scope::Free, "killed");
        assert_eq!(state.quarantines()[0].scope, Scope::Alone);
        assert!(state.barrier(&Scope::Free, None).is_some());
        assert!(state.barrier(&vg('b'), None).is_some());
        assert!(state.barrier(&vg('b'), Some(&Scope::Alone)).is_none());
    }
}
