//! Running one LVM command: the request, the reply, and whoever carries it out.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::worker::table::TableChange;
use crate::{Error, Kind, Uuid, VgName};

/// What a command locks, and therefore which queue it waits in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One group. Its uuid is known once the group exists; commands of one group run one after the other.
    Vg {
        /// The name by which the command line calls it.
        name: VgName,
        /// Its identity, by which the queue is kept.
        uuid: Uuid,
    },
    /// One group together with what is in none, as when it is renamed or removed: the command runs while no other does,
    /// and waits for no other group's recovery.
    Whole {
        /// The name by which the command line calls it.
        name: VgName,
        /// Its identity.
        uuid: Uuid,
    },
    /// Only devices that are in no group, as when a PV or a group is made: the command runs while no other does, and
    /// waits for no group's recovery, since there is none that it touches.
    Free,
    /// Anything: the command runs while no other does, and after the recovery of every group.
    Alone,
}

/// One command to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the command locks.
    pub scope: Scope,
    /// What is tried, in the infinitive, for error texts: `create volume data/db`.
    pub tried: String,
    /// The command and its arguments; made from typed options only, never from a caller's text.
    pub argv: Vec<String>,
    /// How long the caller waits. The command itself goes on after that.
    pub deadline: Duration,
    /// Devices whose caches are flushed once LVM has carried the command out, and before it counts as done: LVM itself
    /// sends no flush, so that what it wrote could still be lost with the power.
    pub flush: Vec<PathBuf>,
}

/// Devices to flush without a command before it.
#[derive(Clone, Debug)]
pub struct Flush {
    /// In whose queue this waits.
    pub scope: Scope,
    /// What is tried, in the infinitive, for error texts.
    pub tried: String,
    /// The devices.
    pub devices: Vec<PathBuf>,
    /// How long the caller waits.
    pub deadline: Duration,
}

/// How liblvm2cmd's `lvm2_run` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnCode {
    /// The command was carried out.
    Succeeded,
    /// There is no such command.
    NoSuchCommand,
    /// The options were not understood.
    InvalidParameters,
    /// The library could not start.
    InitFailed,
    /// Any real failure; the records tell which.
    Failed,
    /// The command was carried out, but a device did not confirm that it keeps what was written.
    Unflushed,
}

/// One line that LVM wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// LVM's level: 2 fatal, 3 error, 4 print and warning, 5 verbose and up.
    pub level: u8,
    /// The text without its newline.
    pub message: String,
}

impl fmt::Display for LogRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What a command that was carried out by the library left behind.
#[derive(Clone, Debug)]
pub struct Reply {
    /// How it ended.
    pub code: ReturnCode,
    /// What LVM wrote at levels 2 to 4, oldest first.
    pub records: Vec<LogRecord>,
    /// True when a message reached the 4,095 bytes at which the library cuts.
    pub truncated: bool,
    /// How long the command ran.
    pub elapsed: Duration,
}

/// Carries out commands; the worker pool in production.
pub trait Runner: fmt::Debug + Send + Sync {
    /// Runs one command and waits for its end or for the request's deadline.
    ///
    /// A command that LVM refused is a [`Reply`] with another code than [`ReturnCode::Succeeded`], not an error.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] when the group is quarantined or an earlier command outlived its caller;
    /// [`Kind::TimedOut`] and [`Kind::Crashed`], both with
    /// [`Effect::Unknown`](crate::Effect::Unknown) once the command had begun.
    fn run(&self, request: &Request) -> Result<Reply, Error>;

    /// Changes device-mapper tables of our own, in the group's queue and with udev's cookies.
    ///
    /// # Errors
    ///
    /// As [`Runner::run`]; [`Kind::Unsupported`] from a runner that has no kernel.
    fn change_tables(&self, change: &TableChange) -> Result<Reply, Error> {
        Err(Error::new(Kind::Unsupported, &change.tried).with_answer("this runner changes no tables"))
    }

    /// Flushes the caches of devices, in the group's queue. A suspended device is not opened, and counts as one that
    /// cannot be flushed once it has stayed so for five seconds.
    ///
    /// # Errors
    ///
    /// As [`Runner::run`]; [`Kind::Unsupported`] from a runner without devices.
    fn flush(&self, flush: &Flush) -> Result<Reply, Error> {
        Err(Error::new(Kind::Unsupported, &flush.tried).with_answer("this runner flushes no devices"))
    }
}

/// Refuses every command.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Runner for Nobody {
    fn run(&self, request: &Request) -> Result<Reply, Error> {
        Err(Error::new(Kind::Unsupported, &request.tried).with_answer("this handle only reads"))
    }
}
