//! Who may change the table of a disk: one thread of this process after the other, in the order in which they came, and
//! of all programs the one that has the disk locked (<https://systemd.io/BLOCK_DEVICE_LOCKING>).
//!
//! That lock alone knows no order: whoever looks at the right moment has it, and of many callers one may never be lucky.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::file::DiskFile;
use crate::{DeviceNumber, Error, Kind};

/// How long another program may have the disk locked.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// How long those of this process who came before may take together.
const TURN_WAIT: Duration = Duration::from_secs(120);
/// How often the lock is looked at: udev takes it again and again, for each event of the disk and of its partitions.
const PAUSE: Duration = Duration::from_millis(5);

/// The waiting threads of this process, by disk; the first of each has its turn.
static QUEUES: Queues = Queues { waiting: Mutex::new(BTreeMap::new()), moved: Condvar::new() };

struct Queues {
    waiting: Mutex<BTreeMap<DeviceNumber, VecDeque<u64>>>,
    moved: Condvar,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DeviceNumber, VecDeque<u64>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk that is this thread's to change, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    disk: DeviceNumber,
    ticket: u64,
}

impl Turn {
    /// Waits for those of this process who came before, then for other programs.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] if they take too long; and of the lock itself.
    pub(super) fn take(file: &DiskFile, disk: DeviceNumber, tried: &str) -> Result<Self, Error> {
        let turn = Self::wait(disk, TURN_WAIT).ok_or_else(|| {
            Error::new(Kind::Busy, tried)
                .with_answer(format!("other changes of its table took more than {TURN_WAIT:?}"))
                .with_advice("try again")
        })?;
        lock(file, tried)?;
        Ok(turn)
    }

    fn wait(disk: DeviceNumber, patience: Duration) -> Option<Self> {
        let mut waiting = QUEUES.lock();
        let queue = waiting.entry(disk).or_default();
        let ticket = queue.back().map_or(0, |last| last + 1);
        queue.push_back(ticket);
        // Dropping it leaves the queue, whether or not it came to its turn.
        let turn = Self { disk, ticket };
        let end = Instant::now() + patience;
        while waiting.get(&disk).and_then(VecDeque::front) != Some(&ticket) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(waiting);
                drop(turn);
                return None;
            }
            waiting = QUEUES.moved.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = QUEUES.lock();
        if let Some(queue) = waiting.get_mut(&self.disk) {
            queue.retain(|ticket| *ticket != self.ticket);
            if queue.is_empty() {
                let _ = waiting.remove(&self.disk);
            }
        }
        drop(waiting);
        QUEUES.moved.notify_all();
    }
}

/// Locks a disk against udev and every program that keeps to its lock; closing the file unlocks it.
fn lock(file: &DiskFile, tried: &str) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match flock(file.file(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::AGAIN) if start.elapsed() < LOCK_WAIT => thread::sleep(PAUSE),
            Err(Errno::AGAIN) => {
                let who = holders(file).unwrap_or_default();
                let who = if who.is_empty() { String::new() } else { format!(": {}", who.join(", ")) };
                return Err(Error::new(Kind::Busy, tried)
                    .with_answer(format!("other programs had it locked for {LOCK_WAIT:?}{who}"))
                    .with_advice("try again when they have ended"));
            }
            Err(errno) => {
                let path = file.path().display();
                return Err(Error::system(format!("lock {path}"), io::Error::from(errno)));
            }
        }
    }
}

/// The programs that have a disk locked now, for people (proc(5), `/proc/locks`).
fn holders(file: &DiskFile) -> io::Result<Vec<String>> {
    let metadata = file.file().metadata()?;
    let number = DeviceNumber::from_rdev(metadata.dev());
    let inode = format!("{:02x}:{:02x}:{}", number.major, number.minor, metadata.ino());
    Ok(locked_by(&fs::read_to_string("/proc/locks")?, &inode)
        .into_iter()
        .map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("{} ({pid})", name.trim())
        })
        .collect())
}

/// The processes that hold a lock on an inode; lines with `->` are of those that wait for one.
fn locked_by(locks: &str, inode: &str) -> Vec<u32> {
    let mut pids: Vec<u32> = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&inode))
        .filter_map(|words| words.get(4)?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No device has such a number, so that no other test waits for it.
    const fn disk(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 4000, minor }
    }

    #[test]
    fn threads_have_their_turn_in_the_order_in_which_they_came() {
        let first = Turn::wait(disk(1), Duration::ZERO).unwrap();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 1..=8_usize {
                scope.spawn({
                    let order = &order;
                    move || {
                        let _turn = Turn::wait(disk(1), Duration::from_secs(60)).unwrap();
                        order.lock().unwrap().push(number);
                    }
                });
                while QUEUES.lock()[&disk(1)].len() <= number {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            // Of another disk nobody waits for them.
            drop(Turn::wait(disk(2), Duration::ZERO).unwrap());
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(!QUEUES.lock().contains_key(&disk(1)));
    }

    #[test]
    fn whoever_gives_up_leaves_the_queue() {
        let first = Turn::wait(disk(3), Duration::ZERO).unwrap();
        assert!(Turn::wait(disk(3), Duration::from_millis(5)).is_none());
        drop(first);
        assert!(Turn::wait(disk(3), Duration::ZERO).is_some());
    }

    #[test]
    fn who_holds_a_lock_is_read_from_the_kernels_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 10 00:05:77 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 12 00:05:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 14 00:05:77 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 11 00:05:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 13 00:05:78 0 EOF\n";
        assert_eq!(locked_by(locks, "00:05:77"), [11, 12]);
        assert_eq!(locked_by("", "00:05:77"), [0; 0]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let disk = DiskFile::open_to_write(file.path()).unwrap();
        assert!(holders(&disk).unwrap().is_empty());
        lock(&disk, "t").unwrap();
        let me = format!("({})", std::process::id());
        assert!(holders(&disk).unwrap().iter().any(|holder| holder.ends_with(&me)));
    }
}
