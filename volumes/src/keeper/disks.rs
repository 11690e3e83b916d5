//! Disks that come, go, or become usable while the node runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use devices::discovery::{Discovery, DiskType, Purpose};
use devices::monitor::{self, Attribute, Monitor};
use lvm::VgName;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::picture::Picture;
use super::{Event, Shared};
use crate::Error;
use crate::class::DeviceClass;

/// So long nothing must happen before the disks are looked at: a disk that comes makes many messages.
const QUIET: Duration = Duration::from_millis(300);
/// Looked at after so long all the same.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long before a look that failed is tried again.
const AGAIN: Duration = Duration::from_secs(2);

pub(super) struct Disks {
    shared: Arc<Shared>,
    monitor: Monitor,
    /// What the node was refreshed for last; none after a failure.
    seen: Option<Picture>,
    /// The failure that was told last.
    told: String,
}

impl Disks {
    /// Begins to listen; what happens from now on is not missed.
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, Error> {
        let monitor = Monitor::start(Discovery::host())?;
        let seen = Some(Picture::take(&shared.node.classes())?);
        Ok(Self { shared, monitor, seen, told: String::new() })
    }

    pub(super) fn run(mut self) {
        while !self.shared.is_stopped() {
            let limit = self.seen.is_none().then_some(AGAIN);
            match self.happened(limit) {
                Ok(true) => self.look(),
                Ok(false) if self.seen.is_none() => self.look(),
                Ok(false) => {}
                Err(error) => {
                    self.tell(error);
                    self.seen = None;
                    self.shared.pause(AGAIN);
                }
            }
        }
    }

    /// Waits until something happened to disks that may matter, and is over; false when the time is.
    fn happened(&mut self, limit: Option<Duration>) -> Result<bool, Error> {
        if !self.pause_until_readable(limit)? {
            return Ok(false);
        }
        let end = Instant::now() + PATIENCE;
        let mut matters = false;
        let groups: Vec<VgName> =
            self.shared.node.classes().iter().filter_map(DeviceClass::volume_group).collect();
        while Instant::now() < end && !self.shared.is_stopped() {
            match self.monitor.wait(Some(Duration::ZERO))? {
                Some(event) => matters |= may_matter(&event, &groups),
                None if self.pause_until_readable(Some(QUIET))? => {}
                None => break,
            }
        }
        Ok(matters)
    }

    /// Refreshes the node if its classes select other disks than before.
    fn look(&mut self) {
        if self.shared.is_stopped() {
            return;
        }
        let picture = match Picture::take(&self.shared.node.classes()) {
            Ok(picture) => picture,
            Err(error) => return self.tell(error),
        };
        if self.seen.as_ref() == Some(&picture) {
            return;
        }
        match self.shared.node.refresh() {
            Ok(repairs) => {
                self.seen = Some(picture);
                self.told.clear();
                // What comes of our own first use of a disk is nothing new.
                if !repairs.is_empty() {
                    self.shared.report(&Event::Disks(repairs));
                }
            }
            // Another process may be opening its pools.
            Err(error) => {
                self.seen = None;
                self.tell(error);
            }
        }
    }

    fn tell(&mut self, error: Error) {
        let text = error.to_string();
        if self.told != text {
            self.shared.report(&Event::DisksUnseen(error));
            self.told = text;
        }
    }

    /// Whether the monitor has something; not when stopped or when the time is over.
    fn pause_until_readable(&self, limit: Option<Duration>) -> Result<bool, Error> {
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut fds =
            [PollFd::new(&self.monitor, PollFlags::IN), PollFd::new(&self.shared.stop, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(Error::system("wait for messages about disks", errno)),
        }
    }
}

/// Whether an event can change which disks a class has. Neither what is built on a disk can, nor our own volumes.
fn may_matter(event: &monitor::Event, groups: &[VgName]) -> bool {
    if let DiskType::Mapped(mapped) = &event.disk().kind
        && let Purpose::Lvm { group, .. } = Purpose::of(mapped)
        && groups.iter().any(|own| own.as_str() == group)
    {
        return false;
    }
    match event {
        monitor::Event::Changed { what, .. } => what.iter().any(|what| {
            matches!(
                what,
                Attribute::Links
                    | Attribute::Identity
                    | Attribute::State
                    | Attribute::Content
                    | Attribute::Geometry
            )
        }),
        _ => true,
    }
}
