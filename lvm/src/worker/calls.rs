//! What a call does on its caller's thread: pass the quarantines, queue the job, wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{Job, JobReply};
use super::keeper::Shared;
use super::line::command_line;
use super::pool::{Recover, StillClosed};
use super::state::{State, same};
use super::table::TableChange;
use crate::classify;
use crate::run::{Flush, Reply, Request, ReturnCode, Runner, Scope};
use crate::{Effect, Error, Kind};

/// First and longest pause between two tries of a command that found a lock held.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// How many times as long as the last try the next one may take: a busy host is not equally fast at each.
const MARGIN: u32 = 3;

/// The pool without its owner, so that a recovery can hold it too.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) shared: Arc<Shared>,
    pub(super) conf_root: PathBuf,
    pub(super) recover: Option<Arc<dyn Recover>>,
    /// Whether changes of tables wait for udev.
    pub(super) udev: bool,
}

impl Core {
    pub(super) fn run_request(
        self: &Arc<Self>,
        request: &Request,
        recovering: Option<&Scope>,
    ) -> Result<Reply, Error> {
        let job = Job::Lvm { line: line(&request.tried, &request.argv)?, flush: request.flush.clone() };
        self.carry_out(&request.scope, &request.tried, &job, request.deadline, recovering)
    }

    pub(super) fn run_change(
        self: &Arc<Self>,
        change: &TableChange,
        recovering: Option<&Scope>,
    ) -> Result<Reply, Error> {
        for step in &change.steps {
            step.check()?;
        }
        let job = Job::Tables { steps: change.steps.clone(), udev: self.udev };
        self.carry_out(&change.scope, &change.tried, &job, change.deadline, recovering)
    }

    pub(super) fn run_flush(
        self: &Arc<Self>,
        flush: &Flush,
        recovering: Option<&Scope>,
    ) -> Result<Reply, Error> {
        let job = Job::Flush { devices: flush.devices.clone() };
        self.carry_out(&flush.scope, &flush.tried, &job, flush.deadline, recovering)
    }

    /// Runs a job within the deadline, again and again where a lock is held.
    fn carry_out(
        self: &Arc<Self>,
        scope: &Scope,
        tried: &str,
        job: &Job,
        deadline: Duration,
        recovering: Option<&Scope>,
    ) -> Result<Reply, Error> {
        let end = Instant::now() + deadline;
        let mut pause = PAUSES.0;
        loop {
            self.pass_barriers(scope, recovering, tried, end)?;
            let begun = Instant::now();
            let reply = reply(self.submit(scope, tried, job, end)?);
            let carried_out = matches!(reply.code, ReturnCode::Succeeded | ReturnCode::Unflushed);
            if carried_out || !classify::is_lock_held(&reply.records) {
                return Ok(reply);
            }
            // A try that would not end before the deadline is not begun: it would leave the group in doubt.
            if Instant::now() + pause + begun.elapsed() * MARGIN >= end {
                return Err(classify::failure(tried, &reply));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Queues a job and waits for its result until `end`.
    fn submit(&self, scope: &Scope, tried: &str, job: &Job, end: Instant) -> Result<JobReply, Error> {
        let mut state = self.shared.lock();
        if state.closing {
            return Err(closing(tried));
        }
        if let Some(left) = state.abandoned_in(scope) {
            return Err(busy(tried, &format!("an earlier command still runs ({left})")));
        }
        let ticket = state.enqueue(scope.clone(), tried.to_owned(), job.clone());
        if let Err(error) = self.shared.provide_keeper(&mut state) {
            state.give_up(ticket);
            return Err(error);
        }
        self.shared.changed.notify_all();
        loop {
            if let Some(result) = state.result(ticket) {
                return result;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let never_begun = state.give_up(ticket);
                drop(state);
                self.shared.changed.notify_all();
                return Err(if never_begun {
                    busy(tried, "other commands were before it until the deadline")
                } else {
                    Error::new(Kind::TimedOut, tried)
                        .with_effect(Effect::Unknown)
                        .with_answer("the command has not ended by the deadline; it goes on")
                        .with_advice("the group is busy until it ends; look again then")
                });
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Has every quarantine that keeps this scope out recovered, within the deadline.
    pub(super) fn pass_barriers(
        self: &Arc<Self>,
        scope: &Scope,
        recovering: Option<&Scope>,
        tried: &str,
        end: Instant,
    ) -> Result<(), Error> {
        let mut state = self.shared.lock();
        // The recovery that this call has started or joined: how many had failed before it.
        let mut joined: Option<(Scope, u64)> = None;
        loop {
            let Some(barrier) = state.barrier(scope, recovering) else { return Ok(()) };
            let (closed, reason) = (barrier.scope.clone(), barrier.reason.clone());
            let seen =
                joined.as_ref().filter(|(joined, _)| same(joined, &closed)).map(|(_, failures)| *failures);
            if let Some(failure) =
                barrier.failure.as_ref().filter(|_| seen.is_some_and(|seen| seen < barrier.failures))
            {
                return Err(quarantined(tried, &closed, &reason, failure));
            }
            if recovering.is_some() {
                return Err(quarantined(tried, &closed, &reason, "another worker died during a recovery"));
            }
            let Some(recover) = &self.recover else {
                return Err(quarantined(tried, &closed, &reason, "nothing here recovers groups"));
            };
            if seen.is_none() {
                joined = Some((closed.clone(), barrier.failures));
            }
            if !barrier.recovering {
                self.start_recovery(&mut state, &closed, recover)?;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(quarantined(
                    tried,
                    &closed,
                    &reason,
                    "its recovery has not ended by the deadline",
                ));
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Recovers on a thread of its own: the caller's deadline ends its wait, not the recovery.
    fn start_recovery(
        self: &Arc<Self>,
        state: &mut State,
        scope: &Scope,
        recover: &Arc<dyn Recover>,
    ) -> Result<(), Error> {
        let Some(quarantine) = state.quarantine_mut(scope) else { return Ok(()) };
        let deaths = quarantine.deaths;
        let bypass = Bypass { core: Arc::clone(self), scope: scope.clone() };
        let recover = Arc::clone(recover);
        thread::Builder::new()
            .name("lvm-recovery".to_owned())
            .spawn(move || {
                let result = recover.recover(&bypass.scope, &bypass);
                conclude(&mut bypass.core.shared.lock(), &bypass.scope, deaths, result);
                bypass.core.shared.changed.notify_all();
            })
            .map_err(|error| {
                Error::new(Kind::Io, "start a thread for a recovery")
                    .with_answer(error.to_string())
                    .with_source(error)
            })?;
        quarantine.recovering = true;
        Ok(())
    }
}

/// Opens a recovered group, unless another worker died meanwhile. After a recovery of everything, the groups that could
/// not be recovered stay closed, each by itself.
fn conclude(state: &mut State, scope: &Scope, deaths: u64, result: Result<Vec<StillClosed>, Error>) {
    let Some(quarantine) = state.quarantine_mut(scope) else { return };
    quarantine.recovering = false;
    let failure = match result {
        Ok(closed) if quarantine.deaths == deaths => {
            let reason = quarantine.reason.clone();
            state.lift(scope);
            for StillClosed { scope, error } in closed {
                state.quarantine(&scope, &reason);
                if let Some(quarantine) = state.quarantine_mut(&scope) {
                    quarantine.failure = Some(error.to_string());
                    quarantine.failures += 1;
                }
            }
            return;
        }
        Ok(_) => "another worker died meanwhile".to_owned(),
        Err(error) => error.to_string(),
    };
    quarantine.failure = Some(failure);
    quarantine.failures += 1;
}

/// The runner that a recovery gets: it passes the quarantine that is being recovered.
#[derive(Debug)]
struct Bypass {
    core: Arc<Core>,
    scope: Scope,
}

impl Runner for Bypass {
    fn run(&self, request: &Request) -> Result<Reply, Error> {
        self.core.run_request(request, Some(&self.scope))
    }

    fn change_tables(&self, change: &TableChange) -> Result<Reply, Error> {
        self.core.run_change(change, Some(&self.scope))
    }

    fn flush(&self, flush: &Flush) -> Result<Reply, Error> {
        self.core.run_flush(flush, Some(&self.scope))
    }
}

pub(super) fn line(tried: &str, argv: &[String]) -> Result<String, Error> {
    command_line(argv).map_err(|error| {
        Error::new(Kind::InvalidArgument, tried).with_answer(error.to_string()).with_source(error)
    })
}

pub(super) fn reply(reply: JobReply) -> Reply {
    Reply {
        code: reply.code,
        records: reply.records,
        truncated: reply.truncated,
        elapsed: Duration::from_micros(reply.elapsed_us),
    }
}

fn busy(tried: &str, answer: &str) -> Error {
    Error::new(Kind::Busy, tried).with_answer(answer).with_advice("try again later")
}

pub(super) fn closing(tried: &str) -> Error {
    Error::new(Kind::Busy, tried).with_answer("this program is ending and takes no more commands")
}

fn quarantined(tried: &str, scope: &Scope, reason: &str, failure: &str) -> Error {
    let what = match scope {
        Scope::Vg { name, .. } | Scope::Whole { name, .. } => format!("group {name} is"),
        Scope::Free | Scope::Alone => "all groups are".to_owned(),
    };
    Error::new(Kind::Busy, tried)
        .with_answer(format!(
            "{what} closed since an LVM worker died ({reason}), and not recovered: {failure}"
        ))
        .with_advice("try again; if it stays so, look at the group's devices with `dmsetup info`")
}
