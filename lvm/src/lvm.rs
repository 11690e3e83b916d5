//! The handle through which everything is read and changed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Command;
use crate::metadata::View;
use crate::run::{Reply, Request, ReturnCode, Runner, Scope};
use crate::{Error, Kind, Tag};

/// How long a caller waits for one command unless it says otherwise.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where the metadata of all groups are read from; the native reader in production.
pub trait MetadataSource: fmt::Debug + Send + Sync {
    /// What the metadata on all devices say now.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when nothing can be read at all; what is wrong with single devices is in the view.
    fn view(&self) -> Result<Arc<View>, Error>;
}

/// Whether this kernel can activate volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Volumes are activated, wiped, and checked against the kernel's tables.
    #[default]
    DeviceMapper,
    /// There is no device-mapper, or it is not to be used: only metadata are changed. Volumes made so were never
    /// wiped; they stay without the tag that would let anybody format them.
    MetadataOnly,
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
/// # fn make(lvm: &Lvm) -> Result<(), Box<dyn std::error::Error>> {
/// let disk = DevicePath::new("/dev/sdb")?;
/// let group = lvm.create_group(&NewGroup::new("data".parse()?, [disk]))?.into_inner();
/// let volume = group.create_volume(&NewVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(1))))?;
/// println!("{}", volume.into_inner().device.display());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lvm {
    runner: Arc<dyn Runner>,
    source: Arc<dyn MetadataSource>,
    settings: Arc<Settings>,
    deadline: Duration,
}

/// What holds for every operation of a handle.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The tag that marks what is ours. With it, groups and volumes that lack it are never changed.
    pub owner: Option<Tag>,
    /// Whether volumes can be activated.
    pub kernel: Kernel,
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
            kernel: Kernel::DeviceMapper,
            run_dir: PathBuf::from("/run/gabion/lvm"),
            refuse_at: FillLimit { data: 95, metadata: 80 },
        }
    }
}

impl Lvm {
    /// A handle on parts of the caller's choosing.
    #[must_use]
    pub fn with_parts(runner: Arc<dyn Runner>, source: Arc<dyn MetadataSource>, settings: Settings) -> Self {
        Self { runner, source, settings: Arc::new(settings), deadline: DEADLINE }
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

    /// Runs a command and turns its refusal into an error.
    pub(crate) fn run(&self, scope: Scope, tried: &str, command: &impl Command) -> Result<Reply, Error> {
        let argv = command.words().into_argv(tried)?;
        let request = Request { scope, tried: tried.to_owned(), argv, deadline: self.deadline };
        let reply = self.runner.run(&request)?;
        if reply.code == ReturnCode::Succeeded {
            return Ok(reply);
        }
        Err(refusal(tried, reply))
    }
}

/// The error of a command that LVM did not carry out.
fn refusal(tried: &str, reply: Reply) -> Error {
    let kind = Kind::Other;
    let answer = reply.records.iter().find(|record| record.level <= 3).map(|record| record.message.clone());
    Error::new(kind, tried)
        .with_answer(answer.unwrap_or_else(|| "LVM failed without a word".to_owned()))
        .with_elapsed(reply.elapsed)
        .with_records(reply.records)
}
