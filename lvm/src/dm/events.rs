//! Being told when something happens to a device.
//!
//! The kernel gives one sign for all devices; which one had an event, the event numbers in the list tell. Events
//! come when a thin pool reaches its low-water mark, runs full or is extended, when a snapshot is lost, when a RAID
//! leg dies or a sync ends; not for ordinary fill, for suspending or for another table, nor for creation and
//! removal. A pool without a low-water mark (LVM sets none at its default threshold of 100 %) gives no sign before
//! it is full: sample those. A pool told of its mark tells it again only after it was suspended and resumed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use devices::DeviceNumber;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::ioctl::{Header, Request};
use super::{Dm, Listed, refused};
use crate::{Error, Kind};

/// A device that had events since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The device as it is now.
    pub device: Listed,
    /// How many events it has had since the last look.
    pub events: u32,
}

/// Why [`Events::wait`] came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Woken {
    /// These devices had events.
    Changed(Vec<Changed>),
    /// Somebody called [`Waker::wake`].
    ByWaker,
    /// The time is over.
    TimedOut,
}

/// Makes [`Events::wait`] come back, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the present or else the next wait come back once.
    pub fn wake(&self) {
        // The only failure is a counter at its maximum, and then the waiter is awake anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Waits for device-mapper events. Nothing between two waits is lost.
///
/// ```no_run
/// use lvm::dm::{Events, Woken};
///
/// let mut events = Events::open()?;
/// while let Woken::Changed(changed) = events.wait(None)? {
///     for change in changed {
///         println!("{}: {} events", change.device.name, change.events);
///     }
/// }
/// # Ok::<(), lvm::Error>(())
/// ```
#[derive(Debug)]
pub struct Events {
    dm: Dm,
    wake: Arc<OwnedFd>,
    seen: HashMap<DeviceNumber, Listed>,
}

impl Events {
    /// Begins to listen: events from now on are told.
    ///
    /// # Errors
    ///
    /// As [`Dm::open`] and [`Dm::list`].
    pub fn open() -> Result<Self, Error> {
        let dm = Dm::open()?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| refused(errno, "make an event descriptor"))?;
        let mut events = Self { dm, wake: Arc::new(wake), seen: HashMap::new() };
        events.arm()?;
        events.seen = events.dm.list()?.into_iter().map(|device| (device.number, device)).collect();
        Ok(events)
    }

    /// A handle that ends a wait.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Waits until a device has had events, for at most `limit` if one is given.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the kernel refuses to be asked.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<Woken, Error> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            match self.sleep(end)? {
                Sign::Waker => return Ok(Woken::ByWaker),
                Sign::TimedOut => return Ok(Woken::TimedOut),
                Sign::Event => {
                    // Armed before the list is read: an event after the reading gives another sign.
                    self.arm()?;
                    let now = self.dm.list()?;
                    let changed = changes(&self.seen, &now);
                    self.seen = now.into_iter().map(|device| (device.number, device)).collect();
                    // The device may have gone together with its event number; then the wait goes on.
                    if !changed.is_empty() {
                        return Ok(Woken::Changed(changed));
                    }
                }
            }
        }
    }

    fn arm(&self) -> Result<(), Error> {
        let tried = "wait for device-mapper events";
        let answer = self.dm.ask(Request::ArmPoll, &Header::default(), &[], tried);
        answer.map(drop).map_err(|error| match error.kind() {
            Kind::Unsupported => error.with_advice("Linux 4.14 or later is needed"),
            _ => error,
        })
    }

    fn sleep(&self, end: Option<Instant>) -> Result<Sign, Error> {
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut fds = [
                PollFd::new(&self.dm.control, PollFlags::IN),
                PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(&*self.wake), PollFlags::IN),
            ];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(Sign::TimedOut),
                Ok(_) if !fds[1].revents().is_empty() => {
                    let mut count = [0; 8];
                    // Another waiter on a clone may have been quicker; the wake was for somebody, so it counts.
                    let _ = rustix::io::read(&*self.wake, &mut count);
                    return Ok(Sign::Waker);
                }
                Ok(_) => return Ok(Sign::Event),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(refused(errno, "wait for device-mapper events")),
            }
        }
    }
}

enum Sign {
    Event,
    Waker,
    TimedOut,
}

/// The devices whose event number moved. A device of the same number but another uuid, or another name where
/// there is no uuid, is a new device; of a new one all its events are new.
fn changes(seen: &HashMap<DeviceNumber, Listed>, now: &[Listed]) -> Vec<Changed> {
    let same = |old: &Listed, new: &Listed| match (&old.uuid, &new.uuid) {
        (Some(old), Some(new)) => old == new,
        (None, None) => old.name == new.name,
        _ => false,
    };
    let moved = |device: &Listed| {
        let old = seen.get(&device.number).filter(|old| same(old, device));
        let before = old.map_or(0, |old| old.event_nr);
        Changed { device: device.clone(), events: device.event_nr.wrapping_sub(before) }
    };
    now.iter().map(moved).filter(|change| change.events != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(minor: u32, name: &str, uuid: Option<&str>, event_nr: u32) -> Listed {
        Listed {
            number: DeviceNumber { major: 253, minor },
            name: name.parse().unwrap(),
            uuid: uuid.map(|uuid| uuid.parse().unwrap()),
            event_nr,
        }
    }

    #[test]
    fn only_moved_event_numbers_are_told() {
        let before = [
            listed(0, "quiet", Some("u0"), 7),
            listed(1, "moved", Some("u1"), u32::MAX),
            listed(2, "renamed", Some("u2"), 1),
            listed(3, "gone", Some("u3"), 1),
            listed(4, "remade", None, 5),
        ];
        let seen = before.into_iter().map(|device| (device.number, device)).collect();
        let now = [
            listed(0, "quiet", Some("u0"), 7),
            listed(1, "moved", Some("u1"), 1),
            listed(2, "otherwise", Some("u2"), 1),
            listed(3, "new", Some("u9"), 0),
            listed(4, "other", None, 5),
        ];
        let told: Vec<_> =
            changes(&seen, &now).into_iter().map(|c| (c.device.name.to_string(), c.events)).collect();
        assert_eq!(told, [("moved".to_owned(), 2), ("other".to_owned(), 5)]);
    }
}
