//! Following what happens to devices, within milliseconds.
//!
//! ```no_run
//! use devices::discovery::Discovery;
//! use devices::monitor::Monitor;
//!
//! let mut monitor = Monitor::start(Discovery::host())?;
//! println!("{} devices now", monitor.disks().count());
//! while let Some(event) = monitor.wait(None)? {
//!     println!("{} {}", event.as_word(), event.disk().path.display());
//! }
//! # Ok::<(), devices::Error>(())
//! ```
//!
//! One netlink socket hears the kernel and, where it runs in the same network namespace, udevd. A message is only a hint:
//! the device is then looked at in sysfs and compared with what was known. So nothing depends on an order of messages, a
//! forged message does no harm, and when the kernel says that it dropped messages everything is looked at again.

mod event;
mod uevent;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with, sockopt};

pub use event::{Attribute, Event};

use crate::discovery::{Discovery, Disk};
use crate::{Bytes, Error};
use uevent::Hint;

/// The multicast groups of the kernel and of udevd, as bits.
const GROUPS: u32 = 1 | 2;
/// Longer than any message: the kernel's are at most 2 KiB and udevd's at most 8 KiB.
const LONGEST: usize = 16 << 10;
/// Room for some thousand messages.
const BUFFER: Bytes = Bytes::mib(8);

/// Follows the devices of this host.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
    discovery: Discovery,
    known: BTreeMap<String, Disk>,
    ready: VecDeque<Event>,
    overflows: u64,
}

impl Monitor {
    /// Begins to listen, and looks at every device once. What is there already is no event.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made, or sysfs cannot be read.
    pub fn start(discovery: Discovery) -> Result<Self, Error> {
        Self::with_buffer(discovery, BUFFER)
    }

    /// The same with another size of the socket's buffer. When it is full the kernel drops messages, and
    /// [`Self::overflows`] counts up; no change is lost by that, only time.
    ///
    /// # Errors
    ///
    /// As for [`Self::start`].
    pub fn with_buffer(discovery: Discovery, size: Bytes) -> Result<Self, Error> {
        let socket = listen(size)
            .map_err(|errno| Error::system("listen for the kernel's messages about devices", errno))?;
        let mut monitor =
            Self { socket, discovery, known: BTreeMap::new(), ready: VecDeque::new(), overflows: 0 };
        monitor.look_at_all()?;
        monitor.ready.clear();
        Ok(monitor)
    }

    /// The devices as they were when the last event was made.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.known.values()
    }

    /// How often the kernel dropped messages, so that everything was looked at again.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// The next event; `None` when nothing happens within the time. Without a time it waits for ever.
    ///
    /// # Errors
    ///
    /// When the socket breaks, or sysfs cannot be read.
    pub fn wait(&mut self, time: Option<Duration>) -> Result<Option<Event>, Error> {
        let end = time.and_then(|time| Instant::now().checked_add(time));
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if !self.is_readable(left)? {
                return Ok(None);
            }
            self.take_in()?;
        }
    }

    fn is_readable(&self, time: Option<Duration>) -> Result<bool, Error> {
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(count) => Ok(count > 0),
            // A signal; the caller looks at the time again.
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(Error::system("wait for messages about devices", errno)),
        }
    }

    /// Reads all messages that are there, and looks at each device that they name once.
    fn take_in(&mut self) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        let mut dropped = false;
        let mut buffer = vec![0; LONGEST];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, length)) if length > LONGEST => dropped = true,
                Ok((length, _)) => {
                    if let Some(hint) = buffer.get(..length).and_then(Hint::parse) {
                        names.insert(hint.name);
                        names.extend(hint.old_name);
                    }
                }
                Err(Errno::NOBUFS) => dropped = true,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::system("read messages about devices", errno)),
            }
        }
        if dropped {
            self.overflows += 1;
            return self.look_at_all();
        }
        self.look_at(names);
        Ok(())
    }

    fn look_at_all(&mut self) -> Result<(), Error> {
        let mut names: BTreeSet<String> = self.known.keys().cloned().collect();
        names.extend(self.discovery.names()?);
        self.look_at(names);
        Ok(())
    }

    /// Looks at devices, and at those that they are made of: these get no message of their own when something is built on
    /// them.
    fn look_at(&mut self, mut names: BTreeSet<String>) {
        let mut below = BTreeSet::new();
        for name in &names {
            let before = self.known.get(name).map(|disk| disk.below.clone()).unwrap_or_default();
            let after = self.update(name);
            below.extend(before);
            below.extend(after);
        }
        below.retain(|name| !names.contains(name));
        names.clear();
        for name in below {
            self.update(&name);
        }
    }

    /// Looks at one device, and gives the names of those below it.
    fn update(&mut self, name: &str) -> Vec<String> {
        let mut after = self.discovery.disk(name);
        let before = self.known.get(name);
        if let (Some(before), Some(after)) = (before, &mut after) {
            event::remember(before, after);
        }
        self.ready.extend(Event::between(before, after.as_ref()));
        match after {
            Some(disk) => {
                let below = disk.below.clone();
                self.known.insert(name.to_owned(), disk);
                below
            }
            None => {
                self.known.remove(name);
                Vec::new()
            }
        }
    }
}

/// Readable when something happened; then call [`Monitor::wait`].
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(size: Bytes) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(KOBJECT_UEVENT))?;
    let size = usize::try_from(size.get()).unwrap_or(usize::MAX);
    // More than the system's limit needs a privilege; without it the limit has to do.
    if sockopt::set_socket_recv_buffer_size_force(&socket, size).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, size)?;
    }
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}
