//! Kills of the driver and of its LVM workers, and what they excuse.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};

use crate::agent::Agent;
use crate::power_cut::Random;

/// How long a killed worker excuses a call that is told to come back: recovery follows.
const RECOVERY: Duration = Duration::from_secs(30);

/// What was killed, and when.
#[derive(Debug, Default)]
pub(super) struct Turmoil {
    /// Two more with each kill of the driver; odd while it is down.
    pub(super) driver: Arc<AtomicU64>,
    worker: Mutex<Option<Instant>>,
    workers: AtomicU64,
}

/// The moment at which a call began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    driver: u64,
    at: Instant,
}

/// What a call may have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Nothing,
    DeadWorker,
    DeadDriver,
}

impl Turmoil {
    pub(super) fn now(&self) -> Moment {
        Moment { driver: self.driver.load(Ordering::SeqCst), at: Instant::now() }
    }

    pub(super) fn since(&self, moment: Moment) -> Met {
        let driver = self.driver.load(Ordering::SeqCst);
        if driver != moment.driver || moment.driver % 2 == 1 {
            return Met::DeadDriver;
        }
        let worker = *self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        match worker {
            Some(killed) if killed + RECOVERY > moment.at => Met::DeadWorker,
            _ => Met::Nothing,
        }
    }

    /// Drivers and workers killed so far.
    pub(super) fn kills(&self) -> (u64, u64) {
        (self.driver.load(Ordering::SeqCst) / 2, self.workers.load(Ordering::SeqCst))
    }

    fn kill_worker(&self, driver: u32) {
        let workers = children(driver);
        if workers.is_empty() {
            return;
        }
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        for pid in workers {
            // One that has ended meanwhile is as dead.
            if kill_process(pid, Signal::KILL).is_ok() {
                self.workers.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn kill_driver(&self, agent: &mut Agent) -> Result<()> {
        self.driver.fetch_add(1, Ordering::SeqCst);
        let back = agent.crash();
        self.driver.fetch_add(1, Ordering::SeqCst);
        back
    }

    /// Kills at random until told to stop; the driver is up when this returns. `done` tells how many operations have ended.
    pub(super) fn rage(
        &self,
        agent: &mut Agent,
        random: &mut Random,
        stop: &AtomicBool,
        done: impl Fn() -> u64,
    ) -> Result<()> {
        loop {
            // So many operations, whatever they take, and a moment within the next ones.
            let next = done() + 4 + random.below(24);
            while done() < next {
                if stop.load(Ordering::SeqCst) {
                    return Ok(());
                }
                sleep(Duration::from_millis(1));
            }
            sleep(Duration::from_millis(random.below(60)));
            match random.below(8) {
                0..3 => self.kill_worker(agent.pid()),
                3 => {
                    self.kill_worker(agent.pid());
                    self.kill_driver(agent)?;
                }
                _ => self.kill_driver(agent)?,
            }
        }
    }
}

/// The LVM workers of a process.
fn children(parent: u32) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let worker = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // "pid (name) state parent …", where the name may hold anything.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let of: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        (of == parent && name.starts_with("gabion-lvm")).then_some(pid)
    };
    processes.flatten().filter_map(worker).collect()
}
