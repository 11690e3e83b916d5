//! The handle through which everything is read and changed.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::command::Command;
use crate::metadata::{Reader, View};
use crate::recover::Recoverer;
use crate::run::{Reply, Request, ReturnCode, Runner, Scope};
use crate::worker::Pool;
use crate::worker::conf::{Activation, Conf};
use crate::{Error, Kind, Tag, Uuid, classify};

/// How long a caller waits for one command unless it says otherwise.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Where the metadata of all groups are read from; the native reader in production.
pub trait MetadataSource: fmt::Debug + Send + Sync {
    /// What the metadata on all devices say now.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when nothing can be read at all; what is wrong with single devices is in the view.
    fn view(&self) -> Result<Arc<View>, Error>;
}

/// LVM on a fixed set of devices. Clones are cheap and share everything.
///
/// All calls block. Calls on different volumes may run at the same time on different threads; two calls on the same
/// volume do not mix, the second is [`Kind::Busy`].
///
/// ```no_run
/// use devices::Bytes;
/// use lvm::ops::{NewGroup, NewVolume, SizeRange};
/// use lvm::{DevicePath, Lvm};
///
/// let disk = DevicePath::new("/dev/sdb")?;
/// let lvm = Lvm::builder().device(disk.clone()).build()?;
/// let group = lvm.create_group(&NewGroup::new("data".parse()?, [disk]))?.into_inner();
/// let volume = group.create_volume(&NewVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(1))))?;
/// println!("{}", volume.into_inner().device.display());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lvm {
    runner: Arc<dyn Runner>,
    source: Arc<dyn MetadataSource>,
    parts: Option<Arc<Parts>>,
    settings: Arc<Settings>,
    pub(crate) deadline: Duration,
    /// Of each group, the number of the metadata that are known to be flushed.
    pub(crate) flushed: Arc<Mutex<HashMap<Uuid, u64>>>,
}

/// What a handle that was built stands on.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) pool: Arc<Pool>,
    pub(crate) reader: Arc<Reader>,
    pub(crate) conf: Mutex<Conf>,
    /// What recovers a group whose worker died.
    pub(crate) recoverer: Arc<Recoverer>,
}

/// What holds for every operation of a handle.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The tag that marks what is ours. With it, groups and volumes that lack it are never changed.
    pub owner: Option<Tag>,
    /// Whether volumes can be activated. Without that only metadata are changed; volumes made so were never wiped,
    /// and stay without the tag that would let anybody format them.
    pub activation: Activation,
    /// Where the locks lie that keep two processes of ours from making the same volume.
    pub run_dir: PathBuf,
    /// FillLimit of a thin pool from which nothing new is made in it.
    pub refuse_at: FillLimit,
}

/// FillLimit of a thin pool, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FillLimit {
    /// Of its data, 1 to 100.
    pub data: u8,
    /// Of its metadata, 1 to 100; a pool whose metadata are full goes read-only at once.
    pub metadata: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            owner: None,
            activation: Activation::Udev,
            run_dir: PathBuf::from("/run/gabion/lvm"),
            refuse_at: FillLimit { data: 95, metadata: 80 },
        }
    }
}

impl Lvm {
    /// A handle on parts of the caller's choosing.
    #[must_use]
    pub fn with_parts(runner: Arc<dyn Runner>, source: Arc<dyn MetadataSource>, settings: Settings) -> Self {
        Self {
            runner,
            source,
            parts: None,
            settings: Arc::new(settings),
            deadline: DEADLINE,
            flushed: Arc::default(),
        }
    }

    pub(crate) fn of_parts(parts: Parts, settings: Settings) -> Self {
        let runner: Arc<dyn Runner> = Arc::clone(&parts.pool) as _;
        let source: Arc<dyn MetadataSource> = Arc::clone(&parts.reader) as _;
        Self { parts: Some(Arc::new(parts)), ..Self::with_parts(runner, source, settings) }
    }

    pub(crate) fn parts(&self, tried: &str) -> Result<&Parts, Error> {
        self.parts.as_deref().ok_or_else(|| {
            Error::new(Kind::Unsupported, tried).with_answer("this handle has no worker pool of its own")
        })
    }

    pub(crate) fn runner(&self) -> &dyn Runner {
        &*self.runner
    }

    pub(crate) fn recoverer(&self, tried: &str) -> Result<&Recoverer, Error> {
        Ok(&self.parts(tried)?.recoverer)
    }

    /// The worker pool, for draining it and for looking at groups that are closed; `None` for a handle on parts of
    /// the caller's choosing.
    #[must_use]
    pub fn workers(&self) -> Option<&Pool> {
        self.parts.as_deref().map(|parts| &*parts.pool)
    }

    /// The same handle with another deadline for each command.
    ///
    /// A deadline ends the caller's wait, not the command: the group then answers [`Kind::Busy`] until the
    /// command has ended.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// What the metadata on all devices say now. No command runs.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when nothing can be read at all.
    pub fn view(&self) -> Result<Arc<View>, Error> {
        self.source.view()
    }

    /// What holds for every operation of this handle.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins a long command in a worker of its own; what it came to arrives on the channel.
    pub(crate) fn begin(
        &self,
        scope: Scope,
        tried: &str,
        command: &impl Command,
    ) -> Result<Receiver<Result<(), Error>>, Error> {
        let argv = command.words().into_argv(tried)?;
        let flush = self.written_by(&scope, command)?;
        let request = Request { scope, tried: tried.to_owned(), argv, deadline: self.deadline, flush };
        let (sender, receiver) = mpsc::channel();
        let told = tried.to_owned();
        self.parts(tried)?.pool.run_long(&request, move |reply| {
            let end = reply.and_then(|reply| match reply.code {
                ReturnCode::Succeeded => Ok(()),
                _ => Err(classify::failure(&told, &reply)),
            });
            // Whoever waited may have gone; the command has ended all the same.
            let _ = sender.send(end);
        })?;
        Ok(receiver)
    }

    /// Runs a command and turns its refusal into an error.
    pub(crate) fn run(&self, scope: Scope, tried: &str, command: &impl Command) -> Result<Reply, Error> {
        let argv = command.words().into_argv(tried)?;
        let flush = self.written_by(&scope, command)?;
        let request = Request { scope, tried: tried.to_owned(), argv, deadline: self.deadline, flush };
        let reply = self.runner.run(&request)?;
        if reply.code == ReturnCode::Succeeded {
            return Ok(reply);
        }
        Err(classify::failure(tried, &reply))
    }
}

impl MetadataSource for Reader {
    fn view(&self) -> Result<Arc<View>, Error> {
        Ok(self.read())
    }
}
