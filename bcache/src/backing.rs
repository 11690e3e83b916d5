//! A registered backing device.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use devices::{Bytes, DeviceNumber, Effect, Sectors};
use rustix::fs::OFlags;

use crate::attribute::Attributes;
use crate::error::system;
use crate::stop::{self, Stopped};
use crate::{Approximate, Bcache, CacheMode, CacheSet, Change, Error, Kind, Label, State, Uuid, wait};

/// How long the kernel may take to attach or to stop a device that nobody uses.
const SOON: Duration = Duration::from_secs(30);

/// A registered backing device, known by its uuid. Every call looks at the kernel anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    pub(crate) bcache: Bcache,
    number: DeviceNumber,
    uuid: Uuid,
}

/// How a backing device is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How it stands to its cache set, as its superblock tells.
    pub state: State,
    /// The cached device; `None` while the backing device waits for its cache set.
    pub device: Option<PathBuf>,
    /// The registered cache set that it is attached to.
    pub set: Option<Uuid>,
    /// What its cache does with writes.
    pub mode: CacheMode,
    /// How much exists only on the cache. Without the cache set nobody can tell.
    pub dirty: Option<Approximate>,
    /// Its label.
    pub label: Option<Label>,
}

impl Backing {
    pub(crate) fn new(bcache: Bcache, number: DeviceNumber, uuid: Uuid) -> Self {
        Self { bcache, number, uuid }
    }

    /// Its identity.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The number of the backing device itself, in this boot.
    #[must_use]
    pub const fn number(&self) -> DeviceNumber {
        self.number
    }

    /// The attributes, when it still is this device that has them.
    pub(crate) fn attributes(&self) -> Result<Attributes, Error> {
        let attributes = Attributes::new(self.block_dir().join("bcache"));
        let uuid = attributes.optional("backing_dev_uuid").ok().flatten();
        if uuid.and_then(|uuid| uuid.trim().parse().ok()) == Some(self.uuid) {
            return Ok(attributes);
        }
        Err(Error::new(Kind::NotFound, format!("find the bcache backing device {}", self.uuid))
            .with_answer(format!("{} is not registered as it any more", self.number)))
    }

    pub(crate) fn block_dir(&self) -> PathBuf {
        self.bcache.sys.join(format!("dev/block/{}", self.number))
    }

    /// The node of the backing device itself.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the device has gone, [`Kind::Io`].
    pub fn path(&self) -> Result<PathBuf, Error> {
        let uevent = Attributes::new(self.block_dir()).text("uevent")?;
        let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="));
        name.map(|name| self.bcache.dev.join(name)).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("find the node of {}", self.number))
                .with_answer("its uevent has no DEVNAME")
        })
    }

    /// The cached device's node (`/dev/bcacheN`, another one after each boot), or `None` while it waits for its cache set.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more.
    pub fn device(&self) -> Result<Option<PathBuf>, Error> {
        Ok(self.attributes()?.link("dev").map(|name| self.bcache.dev.join(name)))
    }

    /// The size of the cached device, or `None` while it waits for its cache set.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more, [`Kind::Io`].
    pub fn size(&self) -> Result<Option<Bytes>, Error> {
        let attributes = self.attributes()?;
        if attributes.link("dev").is_none() {
            return Ok(None);
        }
        let sectors = attributes.value("dev/size")?;
        Ok(Sectors::new(sectors).to_bytes())
    }

    /// The cache set that it is attached to.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more.
    pub fn set(&self) -> Result<Option<CacheSet>, Error> {
        let link = self.attributes()?.link("cache");
        Ok(link.and_then(|set| set.parse().ok()).map(|set| CacheSet::new(self.bcache.clone(), set)))
    }

    /// How it is now.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more, [`Kind::Unsupported`] when the kernel says something that is
    /// not understood, [`Kind::Io`].
    pub fn status(&self) -> Result<Status, Error> {
        let attributes = self.attributes()?;
        let set = attributes.link("cache").and_then(|set| set.parse().ok());
        let label = attributes.text("label")?;
        Ok(Status {
            state: attributes.chosen("state", State::of_word)?,
            device: attributes.link("dev").map(|name| self.bcache.dev.join(name)),
            set,
            mode: attributes.chosen("cache_mode", CacheMode::of_word)?,
            dirty: set.map(|_| attributes.size("dirty_data")).transpose()?,
            label: label.parse().ok(),
        })
    }

    /// Attaches the device to a cache set; it may be in use meanwhile.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] when it is attached to another set, [`Kind::Dirty`] when its dirty blocks are in another set,
    /// [`Kind::CacheMissing`] when the set is not registered, [`Kind::InvalidArgument`] when its blocks are smaller than those of
    /// the set, [`Kind::Io`].
    pub fn attach(&self, set: &CacheSet) -> Result<Change, Error> {
        let tried = format!("attach the backing device {} to the cache set {}", self.uuid, set.uuid());
        match self.set()? {
            Some(present) if present.uuid() == set.uuid() => return Ok(Change::Already(())),
            Some(other) => {
                return Err(Error::new(Kind::InUse, tried)
                    .with_answer(format!("it is attached to {}", other.uuid()))
                    .with_advice("detach it first"));
            }
            None => {}
        }
        self.bcache.set(set.uuid())?;
        self.refuse_loss(Some(set.uuid()), &tried)?;
        if self.status()?.mode == CacheMode::WriteBack {
            let _ = self.close_bypasses(Some(set))?;
        }
        if let Err(error) = self.attributes()?.write("attach", &set.uuid().to_string()) {
            // udev may have registered the set in this very moment, and the kernel attached it.
            if self.set()?.is_some_and(|present| present.uuid() == set.uuid()) {
                return Ok(Change::Already(()));
            }
            let answer = error.answer().unwrap_or_default().to_owned();
            return Err(Error::new(error.kind(), tried)
                .with_answer(answer)
                .with_advice("the kernel's log has the reason: its blocks may be smaller than the set's")
                .with_source(error));
        }
        let attached = || Ok(self.set()?.filter(|present| present.uuid() == set.uuid()).map(drop));
        match wait::until(SOON, attached)? {
            Some(()) => Ok(Change::Made(())),
            None => Err(Error::new(Kind::TimedOut, tried).with_effect(Effect::Unknown)),
        }
    }

    /// Stops the cached device and lets the backing device go. Nothing is lost: what is dirty stays on the cache, and comes
    /// back when both are registered again.
    ///
    /// The kernel alone would accept this for a mounted device and then wait, with the device half gone; so it is refused
    /// while anybody has the cached device for himself (a mount, device-mapper, LVM). What udev registers again meanwhile is
    /// stopped again.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`], [`Kind::TimedOut`] when someone keeps the cached device open, [`Kind::Busy`] when someone registers it
    /// again and again, [`Kind::Io`].
    pub fn stop(&self) -> Result<Change, Error> {
        let tried = format!("stop the backing device {}", self.uuid);
        if self.attributes().is_err() {
            return Ok(Change::Already(()));
        }
        let below = [self.path()?];
        stop::for_good(&tried, || self.stop_once(&below, &tried))?;
        Ok(Change::Made(()))
    }

    fn stop_once(&self, below: &[PathBuf], tried: &str) -> Result<Stopped, Error> {
        let dir = self.block_dir().join("bcache");
        let before = stop::inode(&dir);
        stop::unless_gone(self.tell_to_stop(tried))?;
        stop::wait_until_gone(&dir, before, below, SOON, tried)
    }

    fn tell_to_stop(&self, tried: &str) -> Result<(), Error> {
        let attributes = self.attributes()?;
        // The kernel lets go at the last close, which may be this one.
        let _claim = self.claim(tried)?;
        attributes.write("stop", "1")
    }

    /// The cached device for this process alone; `None` when there is none.
    pub(crate) fn claim(&self, tried: &str) -> Result<Option<File>, Error> {
        let Some(device) = self.device()? else { return Ok(None) };
        let excl = OFlags::EXCL.bits().cast_signed();
        // Not for writing, or udev would look at it again when it is closed.
        let file = File::options().read(true).custom_flags(excl).open(&device);
        file.map(Some).map_err(|cause| {
            let error = system(tried)(cause);
            match error.kind() {
                Kind::InUse => {
                    let answer = format!("{} is in use", device.display());
                    error.with_answer(answer).with_advice("unmount it, or deactivate what is on it")
                }
                _ => error,
            }
        })
    }
}
