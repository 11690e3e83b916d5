//! The workers of one program: at most two, none at rest, and one queue for each group.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::calls::{Core, closing, line, reply};
use super::conf::{Activation, Conf, Locks};
use super::find::find;
use super::frame::Job;
use super::keeper::{Settings, Shared, run_apart};
use super::state::{Quarantine, State};
use super::table::TableChange;
use crate::run::{Flush, Reply, Request, Runner, Scope};
use crate::{Error, Kind};

/// Brings a group back in order whose worker died, before the next command of that group runs.
pub trait Recover: fmt::Debug + Send + Sync {
    /// Recovers `scope`, with commands through `runner`, which alone is let through. [`Scope::Alone`] means that the
    /// dead worker's command had no group: every group is suspect, and those are returned that stay closed while the
    /// others are opened.
    ///
    /// # Errors
    ///
    /// Whatever keeps the group from being in order; it stays closed, and the next command tries again.
    fn recover(&self, scope: &Scope, runner: &dyn Runner) -> Result<Vec<StillClosed>, Error>;
}

/// One of several groups that a recovery could not bring in order.
#[derive(Debug)]
pub struct StillClosed {
    /// The group.
    pub scope: Scope,
    /// What keeps it from being in order.
    pub error: Error,
}

/// Makes a [`Pool`].
#[derive(Debug)]
pub struct PoolBuilder {
    conf: Conf,
    conf_root: PathBuf,
    binary: Option<PathBuf>,
    recover: Option<Arc<dyn Recover>>,
    recycle_after: u64,
    rest: Duration,
    kill_after: Duration,
    cookie_patience: Duration,
}

impl PoolBuilder {
    /// The worker's binary; otherwise [`find`] looks for it.
    #[must_use]
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Where generated configurations are kept; otherwise `/run/gabion/lvm`.
    #[must_use]
    pub fn conf_root(mut self, path: impl Into<PathBuf>) -> Self {
        self.conf_root = path.into();
        self
    }

    /// What recovers a group whose worker died. Without it such a group stays closed.
    #[must_use]
    pub fn recover(mut self, recover: Arc<dyn Recover>) -> Self {
        self.recover = Some(recover);
        self
    }

    /// Commands after which a worker is replaced; otherwise 256.
    #[must_use]
    pub fn recycle_after(mut self, commands: u64) -> Self {
        self.recycle_after = commands.max(1);
        self
    }

    /// Rest after which a worker ends; otherwise 30 seconds.
    #[must_use]
    pub fn rest(mut self, rest: Duration) -> Self {
        self.rest = rest;
        self
    }

    /// Time after which a command is killed; otherwise five minutes. Killing leaves a group half-changed, so this
    /// is for commands that will never end.
    #[must_use]
    pub fn kill_after(mut self, time: Duration) -> Self {
        self.kill_after = time;
        self
    }

    /// Time after which a udev cookie that a worker waits for is counted down in udev's place; otherwise one minute.
    #[must_use]
    pub fn cookie_patience(mut self, time: Duration) -> Self {
        self.cookie_patience = time;
        self
    }

    /// Finds the worker's binary and writes its configuration; no process is started yet.
    ///
    /// # Errors
    ///
    /// Those of [`find`] and of [`Conf::write`].
    pub fn build(self) -> Result<Pool, Error> {
        let settings = Settings {
            binary: find(self.binary.as_deref())?,
            workers: 2,
            recycle_after: self.recycle_after,
            rest: self.rest,
            kill_after: self.kill_after,
            cookie_patience: self.cookie_patience,
        };
        let udev = self.conf.activation == Activation::Udev;
        let shared = Arc::new(Shared::new(settings, State::default()));
        let core = Core { shared, conf_root: self.conf_root, recover: self.recover, udev };
        let pool = Pool { core: Arc::new(core) };
        pool.reconfigure(&self.conf)?;
        Ok(pool)
    }
}

/// Runs commands in worker processes.
///
/// Commands of one group run one after the other, in the order they came; commands of two groups run side by
/// side; a command without a group runs alone. A caller waits until its deadline, a command until its end: what
/// outlives its caller leaves the group [`Kind::Busy`] until it has ended.
///
/// Dropping the pool ends its idle workers and no command: those that run go on to their end, their workers exit
/// then. [`Pool::drain`] waits for that.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
///
/// use lvm::run::{Request, Runner, Scope};
/// use lvm::worker::conf::Conf;
/// use lvm::worker::pool::Pool;
///
/// let pool = Pool::builder(Conf::new(["/dev/sdb"])).build()?;
/// let reply = pool.run(&Request {
///     scope: Scope::Alone,
///     tried: "list the groups".to_owned(),
///     argv: vec!["vgs".to_owned()],
///     deadline: Duration::from_secs(10),
///     flush: Vec::new(),
/// })?;
/// println!("{:?}", reply.records);
/// # Ok::<(), lvm::Error>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    core: Arc<Core>,
}

/// A group that is closed until it is recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The group, or [`Scope::Alone`] for all of them.
    pub scope: Scope,
    /// How its worker ended.
    pub reason: String,
    /// How the last recovery failed, if one did.
    pub failure: Option<String>,
}

impl Pool {
    /// Starts the description of a pool under this configuration.
    #[must_use]
    pub fn builder(conf: Conf) -> PoolBuilder {
        PoolBuilder {
            conf,
            conf_root: PathBuf::from("/run/gabion/lvm"),
            binary: None,
            recover: None,
            recycle_after: 256,
            rest: Duration::from_secs(30),
            kill_after: Duration::from_secs(300),
            cookie_patience: Duration::from_secs(60),
        }
    }

    /// Changes the configuration, above all the set of devices. Commands that run go on under the old one; each
    /// later command gets a worker with the new one.
    ///
    /// # Errors
    ///
    /// Those of [`Conf::write`]; the old configuration stays then.
    pub fn reconfigure(&self, conf: &Conf) -> Result<(), Error> {
        let conf_dir = conf.write(&self.core.conf_root)?;
        let long_conf_dir = Conf { locks: Locks::Wait, ..conf.clone() }.write(&self.core.conf_root)?;
        let mut state = self.core.shared.lock();
        state.conf_dir = conf_dir;
        state.long_conf_dir = long_conf_dir;
        Ok(())
    }

    /// The directory with the present lvm.conf, for a program of LVM's that shall see what the workers see.
    #[must_use]
    pub fn conf_dir(&self) -> PathBuf {
        self.core.shared.lock().conf_dir.clone()
    }

    /// What the workers' LVM calls its version, such as `2.03.16(2) (2022-05-18)`; `None` before the first command.
    #[must_use]
    pub fn lvm_version(&self) -> Option<String> {
        self.core.shared.lock().lvm_version.clone()
    }

    /// How many worker processes there are now.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.core.shared.lock().processes
    }

    /// The groups that are closed.
    #[must_use]
    pub fn quarantined(&self) -> Vec<Quarantined> {
        let state = self.core.shared.lock();
        let copy = |quarantine: &Quarantine| Quarantined {
            scope: quarantine.scope.clone(),
            reason: quarantine.reason.clone(),
            failure: quarantine.failure.clone(),
        };
        state.quarantines().iter().map(copy).collect()
    }

    /// Closes a group until it is recovered: what an earlier run of the program may have left is as suspect as
    /// what a dead worker leaves.
    pub fn quarantine(&self, scope: &Scope, reason: &str) {
        self.core.shared.lock().quarantine(scope, reason);
    }

    /// Opens a group again without a recovery. For a person who has looked, or who gives the group up.
    pub fn lift_quarantine(&self, scope: &Scope) {
        self.core.shared.lock().lift(scope);
        self.core.shared.changed.notify_all();
    }

    /// Takes no more commands, and waits until those that run have ended. Returns whether they have.
    #[must_use]
    pub fn drain(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut state = self.core.shared.lock();
        state.closing = true;
        self.core.shared.changed.notify_all();
        loop {
            if state.is_quiet() && state.keepers == 0 && state.processes == 0 {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.core.shared.wait(state, left);
        }
    }

    /// Runs a long command (`pvmove`, merge, convert) of one group in a worker of its own and returns at once.
    /// `on_end` is called on another thread when it has ended; the request's deadline does not count.
    ///
    /// It holds no place in the group's queue, since LVM itself lets go of the group between its steps; where it
    /// wants a lock that is held, it waits. It is not killed. To end it, run its own way of ending (`pvmove
    /// --abort`) as a command: it then comes to its end by itself. Its progress is read from device-mapper.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] where the group has a long command already, is closed, or the pool drains;
    /// [`Kind::InvalidArgument`] for words that make no command or a request without a group.
    pub fn run_long(
        &self,
        request: &Request,
        on_end: impl FnOnce(Result<Reply, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let job = Job::Lvm { line: line(&request.tried, &request.argv)?, flush: request.flush.clone() };
        let Scope::Vg { uuid, .. } = request.scope else {
            return Err(Error::new(Kind::InvalidArgument, &request.tried)
                .with_answer("a long command belongs to a group"));
        };
        self.core.pass_barriers(&request.scope, None, &request.tried, Instant::now() + request.deadline)?;
        let mut state = self.core.shared.lock();
        if state.closing {
            return Err(closing(&request.tried));
        }
        if state.long.contains(&uuid) {
            return Err(Error::new(Kind::Busy, &request.tried)
                .with_answer("a long command of this group runs already")
                .with_advice("wait for its end or abort it"));
        }
        let conf_dir = state.long_conf_dir.clone();
        let shared = Arc::clone(&self.core.shared);
        let (scope, tried) = (request.scope.clone(), request.tried.clone());
        let spawned = thread::Builder::new().name("lvm-long".to_owned()).spawn(move || {
            let result = run_apart(&shared, &conf_dir, &scope, &tried, job);
            shared.lock().long.retain(|other| *other != uuid);
            shared.changed.notify_all();
            on_end(result.map(reply));
        });
        match spawned {
            Ok(_) => state.long.push(uuid),
            Err(error) => {
                return Err(Error::new(Kind::Io, &request.tried)
                    .with_answer(error.to_string())
                    .with_source(error));
            }
        }
        Ok(())
    }
}

/// Idle workers end at once; those that run a command end with it.
impl Drop for Pool {
    fn drop(&mut self) {
        self.core.shared.lock().closing = true;
        self.core.shared.changed.notify_all();
    }
}

impl Runner for Pool {
    fn run(&self, request: &Request) -> Result<Reply, Error> {
        self.core.run_request(request, None)
    }

    fn change_tables(&self, change: &TableChange) -> Result<Reply, Error> {
        self.core.run_change(change, None)
    }

    fn flush(&self, flush: &Flush) -> Result<Reply, Error> {
        self.core.run_flush(flush, None)
    }
}
