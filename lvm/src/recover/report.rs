//! What a recovery did and what it could not do.

use std::fmt;

use super::Difference;
use crate::{Error, LvName, Uuid, VgName};

/// One thing that a recovery did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Emptied a device's inactive slot of a table that was never committed.
    Cleared {
        /// The device's name.
        device: String,
    },
    /// Let a suspended device run again with the table that it had.
    Resumed {
        /// The device's name.
        device: String,
    },
    /// Removed a device that has no table, no volume, or nobody whom it serves.
    RemovedDevice {
        /// The device's name.
        device: String,
    },
    /// Had a thin pool forget a device that was made in it and never used.
    ForgotThinDevice {
        /// The pool.
        pool: LvName,
        /// The device's number in the pool.
        id: u32,
    },
    /// Gave a thin pool's metadata device, which a dead command had enlarged, its committed size back.
    ShrunkBack {
        /// The device.
        device: String,
    },
    /// Loaded a volume's tables anew.
    Refreshed {
        /// The volume.
        volume: LvName,
    },
    /// Removed a volume that was never completed.
    RemovedVolume {
        /// The volume.
        volume: LvName,
    },
    /// Let a thin pool drop the snapshot of its metadata that somebody had left behind.
    ReleasedMetadata {
        /// The pool.
        pool: LvName,
    },
    /// Removed a udev cookie whose maker is dead.
    DroppedCookie {
        /// The cookie.
        cookie: u32,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cleared { device } => write!(f, "cleared the inactive table of {device}"),
            Self::ShrunkBack { device } => {
                write!(f, "gave {device}, enlarged and never committed, its committed size back")
            }
            Self::Resumed { device } => write!(f, "resumed {device}"),
            Self::RemovedDevice { device } => write!(f, "removed device {device}"),
            Self::ForgotThinDevice { pool, id } => {
                write!(f, "had thin pool {pool} forget device {id}, which was never used")
            }
            Self::Refreshed { volume } => write!(f, "loaded the tables of {volume} anew"),
            Self::RemovedVolume { volume } => write!(f, "removed unfinished volume {volume}"),
            Self::ReleasedMetadata { pool } => write!(f, "released the held metadata of thin pool {pool}"),
            Self::DroppedCookie { cookie } => write!(f, "removed udev cookie {cookie:#x}"),
        }
    }
}

/// How the recovery of one of several groups ended.
#[derive(Debug)]
pub struct GroupResult {
    /// The group's name.
    pub name: VgName,
    /// Its identity.
    pub uuid: Uuid,
    /// What was done, or why the group stays closed.
    pub result: Result<Recovered, Error>,
}

/// What a recovery of one group did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it tells whether the group is in order"]
pub struct Recovered {
    /// What was done, in order; nothing where all was in order.
    pub steps: Vec<Step>,
    /// What is still not as the metadata say.
    pub remaining: Vec<Difference>,
    /// What failed on the way, in the system's words.
    pub failures: Vec<String>,
}

impl Recovered {
    /// Whether commands may run on the group again.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.remaining.iter().any(Difference::closes_group)
    }
}

impl Recovered {
    /// This and a later recovery as one.
    pub(super) fn followed_by(mut self, later: Self) -> Self {
        self.steps.extend(later.steps);
        self.failures.extend(later.failures);
        Self { remaining: later.remaining, ..self }
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |items: Vec<String>| if items.is_empty() { "nothing".to_owned() } else { items.join(", ") };
        let steps = self.steps.iter().map(Step::to_string).collect();
        let remaining = self.remaining.iter().map(Difference::to_string).collect();
        write!(f, "done: {}; still different: {}", list(steps), list(remaining))?;
        if self.failures.is_empty() { Ok(()) } else { write!(f, "; failed: {}", self.failures.join(", ")) }
    }
}
