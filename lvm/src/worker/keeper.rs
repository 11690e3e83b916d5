//! The thread that keeps one worker: takes jobs, hands them over, and stays with each until it ends, however
//! long its caller waits.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cookie;
use super::frame::{Job, JobReply};
use super::process::{Outcome, Process, describe_exit};
use super::state::{State, Waiting};
use crate::run::{ReturnCode, Scope};
use crate::{Effect, Error, Kind, classify};

/// How often a silent worker is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a worker that was killed may take to be gone before its slot is given to another.
const DYING: Duration = Duration::from_secs(10);
/// How long the helper may take that counts a cookie down.
const COMPLETING: Duration = Duration::from_secs(30);

/// Why a group is closed whose command was carried out and not confirmed: what a later one sees there may be lost yet.
const UNFLUSHED: &str = "what it wrote could not be flushed";

/// What does not change while the pool lives.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) binary: PathBuf,
    /// Workers at the same time, long jobs and the helper for cookies apart.
    pub(super) workers: usize,
    /// Commands after which a worker is replaced.
    pub(super) recycle_after: u64,
    /// Rest after which a worker ends.
    pub(super) rest: Duration,
    /// Time after which a command is killed.
    pub(super) kill_after: Duration,
    /// Time after which a udev cookie counts as stuck.
    pub(super) cookie_patience: Duration,
}

/// What all threads of a pool hold.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    state: Mutex<State>,
    /// Told of every change of the state.
    pub(super) changed: Condvar,
}

impl Shared {
    pub(super) fn new(settings: Settings, state: State) -> Self {
        Self { settings, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The state. No thread panics while it holds it, so a poisoned lock cannot hold half a change.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, at most this long.
    pub(super) fn wait<'a>(&self, guard: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Starts one more keeper where more jobs wait than there are keepers without one.
    pub(super) fn provide_keeper(self: &Arc<Self>, state: &mut State) -> Result<(), Error> {
        let free = state.keepers.saturating_sub(state.busy);
        if state.waiting() <= free || state.keepers >= self.settings.workers {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("lvm-worker".to_owned()).spawn(move || keep(&shared));
        match started {
            Ok(_) => state.keepers += 1,
            // Those that are there will come to the job.
            Err(_) if state.keepers > 0 => {}
            Err(error) => {
                return Err(Error::new(Kind::Io, "start a thread for an LVM worker")
                    .with_answer(error.to_string())
                    .with_source(error));
            }
        }
        Ok(())
    }

    fn start(&self, conf_dir: &std::path::Path) -> Result<Process, Error> {
        let process = Process::start(&self.settings.binary, conf_dir)?;
        let mut state = self.lock();
        state.processes += 1;
        if state.lvm_version.is_none() {
            state.lvm_version = Some(process.lvm_version().to_owned());
        }
        Ok(process)
    }

    fn end(&self, process: Process) {
        // The status of a worker that had nothing to do says nothing.
        let _ = process.end();
        self.lock().processes -= 1;
        self.changed.notify_all();
    }
}

/// A worker and the configuration that it read.
struct Kept {
    process: Process,
    conf_dir: PathBuf,
}

/// What became of a job in a worker's hands.
enum Fate {
    Replied(JobReply),
    /// The worker is dead; the text says how.
    Died(String),
    /// The worker was killed and is still there.
    Undying,
}

fn keep(shared: &Arc<Shared>) {
    let mut kept: Option<Kept> = None;
    while let Some((waiting, conf_dir)) = next_job(shared) {
        let ready =
            ready_worker(shared, &mut kept, &conf_dir).and_then(|()| hand_over(shared, &mut kept, &waiting));
        match ready {
            Err(error) => finish(shared, &waiting, Err(error)),
            Ok(()) => stay(shared, &mut kept, &waiting),
        }
    }
    if let Some(kept) = kept {
        shared.end(kept.process);
    }
}

/// Waits for a job; `None` when the keeper has rested long enough or the pool closes.
fn next_job(shared: &Shared) -> Option<(Waiting, PathBuf)> {
    let mut state = shared.lock();
    let end = Instant::now() + shared.settings.rest;
    loop {
        if let Some(waiting) = state.begin_next() {
            state.busy += 1;
            return Some((waiting, state.conf_dir.clone()));
        }
        let left = end.saturating_duration_since(Instant::now());
        // While jobs wait for another job's end, the keeper stays, for that end may be the other keeper's last.
        let over = state.waiting() == 0 && (state.closing || left.is_zero());
        if over {
            state.keepers -= 1;
            shared.changed.notify_all();
            return None;
        }
        let time = if left.is_zero() { LOOK } else { left };
        state = shared.wait(state, time);
    }
}

/// Sees to a live worker with the present configuration that is not worn out.
fn ready_worker(shared: &Shared, kept: &mut Option<Kept>, conf_dir: &PathBuf) -> Result<(), Error> {
    let stale = |kept: &mut Kept| {
        kept.process.is_gone()
            || kept.conf_dir != *conf_dir
            || kept.process.jobs() >= shared.settings.recycle_after
    };
    if kept.as_mut().is_some_and(stale)
        && let Some(old) = kept.take()
    {
        shared.end(old.process);
    }
    if kept.is_none() {
        *kept = Some(Kept { process: shared.start(conf_dir)?, conf_dir: conf_dir.clone() });
    }
    Ok(())
}

/// Gives the job to the worker, to a second one where the first died in its rest.
fn hand_over(shared: &Shared, kept: &mut Option<Kept>, waiting: &Waiting) -> Result<(), Error> {
    let mut last = None;
    for _ in 0..2 {
        let Some(worker) = kept.as_mut() else { break };
        match worker.process.give(waiting.job.clone()) {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
        let conf_dir = worker.conf_dir.clone();
        if let Some(old) = kept.take() {
            shared.end(old.process);
        }
        ready_worker(shared, kept, &conf_dir)?;
    }
    let answer = last.map_or_else(String::new, |error| error.to_string());
    Err(Error::new(Kind::Io, &waiting.tried).with_answer(format!("no LVM worker took the command: {answer}")))
}

/// Stays with a job that has begun until its fate is known.
fn stay(shared: &Arc<Shared>, kept: &mut Option<Kept>, waiting: &Waiting) {
    let Some(mut worker) = kept.take() else { return };
    match await_fate(shared, &mut worker.process) {
        Fate::Replied(reply) => {
            if classify::is_target_missing(&reply.records) {
                shared.end(worker.process);
            } else {
                *kept = Some(worker);
            }
            if reply.code == ReturnCode::Unflushed {
                shared.lock().quarantine(&waiting.scope, UNFLUSHED);
            }
            finish(shared, waiting, Ok(reply));
        }
        Fate::Died(how) => {
            shared.end(worker.process);
            shared.lock().busy -= 1;
            finish_dead(shared, waiting, &how);
        }
        Fate::Undying => {
            shared.lock().busy -= 1;
            mourn(shared, worker.process, waiting);
        }
    }
}

fn await_fate(shared: &Shared, process: &mut Process) -> Fate {
    let start = Instant::now();
    let mut stuck: Option<(u32, Instant)> = None;
    loop {
        match process.answer(LOOK.min(shared.settings.kill_after)) {
            Outcome::Replied(reply) => return Fate::Replied(reply),
            Outcome::Died => {
                process.kill();
                return match process.wait_end(DYING) {
                    Some(status) => Fate::Died(describe_exit(Some(status))),
                    None => Fate::Undying,
                };
            }
            Outcome::Silent => {}
        }
        if start.elapsed() >= shared.settings.kill_after {
            process.kill();
            return match process.wait_end(DYING) {
                Some(_) => Fate::Died(format!("killed after {} s without an end", start.elapsed().as_secs())),
                None => Fate::Undying,
            };
        }
        look_for_stuck_cookie(shared, process.id(), &mut stuck);
    }
}

/// Counts a cookie down that the worker has awaited too long: udev lost the event, and killing the worker would
/// leave its devices half-made.
fn look_for_stuck_cookie(shared: &Shared, pid: u32, stuck: &mut Option<(u32, Instant)>) {
    let Some(cookie) = cookie::awaited_by(pid) else {
        *stuck = None;
        return;
    };
    match *stuck {
        Some((same, since)) if same == cookie => {
            if since.elapsed() >= shared.settings.cookie_patience {
                complete(shared, cookie);
            }
        }
        _ => *stuck = Some((cookie, Instant::now())),
    }
}

/// Has a process of its own count the cookie down, since every worker may be waiting. Without success the next
/// look tries again, and the worker is killed in the end.
fn complete(shared: &Shared, cookie: u32) {
    let conf_dir = shared.lock().conf_dir.clone();
    let Ok(mut helper) = shared.start(&conf_dir) else { return };
    if helper.give(Job::CompleteCookie { cookie }).is_ok() {
        let _ = helper.answer(COMPLETING);
    }
    helper.kill();
    shared.end(helper);
}

fn finish(shared: &Shared, waiting: &Waiting, result: Result<JobReply, Error>) {
    let mut state = shared.lock();
    state.busy -= 1;
    state.finish(waiting.ticket, result);
    drop(state);
    shared.changed.notify_all();
}

/// Closes the scope whose worker died.
fn finish_dead(shared: &Shared, waiting: &Waiting, how: &str) {
    let error = crashed(&waiting.tried, how);
    let mut state = shared.lock();
    state.quarantine(&waiting.scope, how);
    state.finish(waiting.ticket, Err(error));
    drop(state);
    shared.changed.notify_all();
}

pub(super) fn crashed(tried: &str, how: &str) -> Error {
    Error::new(Kind::Crashed, tried)
        .with_effect(Effect::Unknown)
        .with_answer(format!("the LVM worker died: {how}"))
        .with_advice("the next command of this group recovers it first")
}

/// Waits on a thread of its own for a process that was killed in an uninterruptible wait, so that its slot is free
/// for other groups. Its own group stays busy: nothing may touch it while the command may still do something.
fn mourn(shared: &Arc<Shared>, process: Process, waiting: &Waiting) {
    let error = Error::new(Kind::TimedOut, &waiting.tried)
        .with_effect(Effect::Unknown)
        .with_answer("the LVM worker was killed, but the kernel does not let go of it")
        .with_advice("look for a device that does not answer; the group stays busy until then");
    shared.lock().abandon_with(waiting.ticket, error);
    shared.changed.notify_all();
    let mourner = Arc::clone(shared);
    let (ticket, scope) = (waiting.ticket, waiting.scope.clone());
    let tried = waiting.tried.clone();
    let spawned = thread::Builder::new().name("lvm-mourner".to_owned()).spawn(move || {
        process.wait_for_ever();
        mourner.lock().processes -= 1;
        let job = Job::Flush { devices: Vec::new() };
        finish_dead(&mourner, &Waiting { ticket, scope, tried, job }, "killed, and gone late");
    });
    // Without a thread to wait in, the group stays busy until this program ends: safe, and told by its error.
    drop(spawned);
}

/// Runs one job in a worker of its own, which ends with it.
pub(super) fn run_apart(
    shared: &Shared,
    conf_dir: &std::path::Path,
    scope: &Scope,
    tried: &str,
    job: Job,
) -> Result<JobReply, Error> {
    let mut process = shared.start(conf_dir)?;
    if let Err(error) = process.give(job) {
        shared.end(process);
        return Err(Error::new(Kind::Io, tried).with_answer(error.to_string()).with_source(error));
    }
    let mut stuck = None;
    let outcome = loop {
        match process.answer(LOOK) {
            Outcome::Silent => look_for_stuck_cookie(shared, process.id(), &mut stuck),
            other => break other,
        }
    };
    if let Outcome::Replied(reply) = outcome {
        if reply.code == ReturnCode::Unflushed {
            shared.lock().quarantine(scope, UNFLUSHED);
        }
        shared.end(process);
        return Ok(reply);
    }
    process.kill();
    let how = describe_exit(process.wait_end(DYING));
    shared.lock().quarantine(scope, &how);
    shared.end(process);
    Err(crashed(tried, &how))
}
