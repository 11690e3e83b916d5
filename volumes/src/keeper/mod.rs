//! What keeps a node in shape beside its callers.
//!
//! ```text
//!   Keeper ──┬─ growth: one thread for each thin pool, woken by device-mapper's events
//!            ├─ disks:  hears the kernel and udevd; Node::refresh where a class's disks are others
//!            └─ trim:   Node::trim of what is mounted, by the schedule of its class
//! ```
//!
//! ```no_run
//! use volumes::keeper::Keeper;
//! # fn keep(node: volumes::Node) -> Result<(), volumes::Error> {
//! let keeper = Keeper::start(&node, |event| println!("{event}"))?;
//! // …
//! assert!(keeper.stop(std::time::Duration::from_secs(5)));
//! # Ok(())
//! # }
//! ```

mod activation;
mod disks;
mod growth;
mod picture;
mod trim;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use devices::Bytes;
use lvm::autoextend::Outcome;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::{ClassName, Error, Node, Repairs, VolumeId};

pub(crate) use growth::Growing;

/// What a keeper did, or could not do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A thin pool was too full, and grew or could not. What cannot be is told once, not at every try.
    Pool(Outcome),
    /// A thin pool cannot be watched now; that is tried again.
    PoolUnwatched {
        /// The pool, as `group/pool`.
        pool: String,
        /// Why.
        error: Error,
    },
    /// The volumes of a class's group that were not active are, where there were too many to do that before serving.
    Activated {
        /// The class.
        class: ClassName,
        /// How many they were.
        volumes: usize,
        /// How long it took.
        took: Duration,
    },
    /// Not all of them came up; each was tried. One that is staged is tried again then.
    NotActivated {
        /// The class.
        class: ClassName,
        /// Why.
        error: Error,
    },
    /// The disks of a class were others than before, and all of them were looked at again.
    Disks(Repairs),
    /// They could not be looked at; that is tried again.
    DisksUnseen(Error),
    /// Blocks that no file of a volume uses went back to its pool.
    Trimmed {
        /// The volume.
        volume: VolumeId,
        /// How much the filesystem gave back. ext4 gives again only what was freed since it was mounted.
        freed: Bytes,
        /// How long it took.
        took: Duration,
    },
    /// A volume could not be trimmed, or none could be looked at. That is tried again when it is due again.
    TrimFailed {
        /// The volume, where it is about one.
        volume: Option<VolumeId>,
        /// Why.
        error: Error,
    },
}

impl Event {
    /// Whether somebody has to do something about it.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Pool(outcome) => outcome.result.is_err(),
            Self::Disks(repairs) => !repairs.problems.is_empty(),
            Self::Activated { .. } | Self::Trimmed { .. } => false,
            Self::NotActivated { .. }
            | Self::PoolUnwatched { .. }
            | Self::DisksUnseen(_)
            | Self::TrimFailed { .. } => true,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(outcome) => outcome.fmt(f),
            Self::PoolUnwatched { pool, error } => write!(f, "thin pool {pool} is not watched: {error}"),
            Self::Activated { class, volumes, took } => {
                write!(f, "activated {volumes} volumes of class {class} in {:.1} s", took.as_secs_f64())
            }
            Self::NotActivated { class, error } => {
                write!(f, "not all volumes of class {class} came up: {error}")
            }
            Self::Disks(repairs) => write!(f, "other disks than before: {repairs}"),
            Self::DisksUnseen(error) => write!(f, "the disks were not looked at: {error}"),
            Self::Trimmed { volume, freed, took } => {
                write!(f, "trimmed volume {volume}: {freed} in {:.1} s", took.as_secs_f64())
            }
            // The error says what was tried.
            Self::TrimFailed { error, .. } => error.fmt(f),
        }
    }
}

/// What one of its threads does.
type Job = Box<dyn FnOnce() + Send>;

/// Keeps a node in shape until it is [stopped](Keeper::stop) or dropped.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads of a keeper share.
struct Shared {
    node: Node,
    report: Box<dyn Fn(&Event) + Send + Sync>,
    stopped: AtomicBool,
    /// Readable when stopped.
    stop: OwnedFd,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits, unless and until stopped.
    fn pause(&self, time: Duration) {
        let timeout = Timespec::try_from(time).ok();
        // A signal only makes the pause shorter.
        let _ = poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], timeout.as_ref());
    }

    fn report(&self, event: &Event) {
        (self.report)(event);
    }
}

impl Keeper {
    /// Begins. `report` is called from several threads.
    ///
    /// # Errors
    ///
    /// [`Kind::Internal`](crate::Kind::Internal) when the kernel's messages cannot be heard, or a thread not be started.
    pub fn start(node: &Node, report: impl Fn(&Event) + Send + Sync + 'static) -> Result<Self, Error> {
        let failed = |what: &str, cause: std::io::Error| Error::system(format!("start {what}"), cause);
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed("the keeper of a node", errno.into()))?;
        let shared = Arc::new(Shared {
            node: node.clone(),
            report: Box::new(report),
            stopped: AtomicBool::new(false),
            stop,
        });
        let mut keeper = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        let disks = disks::Disks::new(Arc::clone(&shared))?;
        let (activating, trimming) = (Arc::clone(&shared), Arc::clone(&shared));
        let jobs: [(&str, Job); 4] = [
            ("activation", Box::new(move || activation::run(&activating))),
            ("growth", Box::new(move || growth::run(&shared))),
            ("disks", Box::new(move || disks.run())),
            ("trim", Box::new(move || trim::run(&trimming))),
        ];
        for (name, job) in jobs {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(job);
            keeper.threads.push(thread.map_err(|cause| failed(name, cause))?);
        }
        Ok(keeper)
    }

    /// Ends it, and waits for what is under way, for at most so long. Returns whether it has ended.
    #[must_use]
    pub fn stop(mut self, patience: Duration) -> bool {
        self.tell();
        let end = Instant::now() + patience;
        while Instant::now() < end && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = self.threads.iter().all(JoinHandle::is_finished);
        if !ended {
            // They go on without us until the process ends.
            self.threads.clear();
        }
        ended
    }

    fn tell(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The only failure is a counter at its maximum, which is readable too.
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        self.shared.node.changes().announce();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tell();
        for thread in self.threads.drain(..) {
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}
