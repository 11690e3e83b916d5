//! A registered cache set.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use devices::DeviceNumber;

use crate::attribute::Attributes;
use crate::backing::Backing;
use crate::detach::DetachProgress;
use crate::host::Registered;
use crate::stop;
use crate::{Approximate, Bcache, Change, Error, Kind, Replacement, Uuid, WriteCache};

/// How long the kernel may take to write out a set's metadata.
const SOON: Duration = Duration::from_secs(60);

/// A registered cache set, known by its uuid. Every call looks at the kernel anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSet {
    pub(crate) bcache: Bcache,
    uuid: Uuid,
}

/// A cache device of a registered set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheDevice {
    /// Its number, in this boot.
    pub number: DeviceNumber,
    /// Its node.
    pub path: PathBuf,
    /// All that was written to it since it was formatted: what wears an SSD.
    pub written: Approximate,
    /// What of that was the set's own index and journal.
    pub metadata_written: Approximate,
    /// Recent errors of reads and writes; the kernel halves them with time.
    pub io_errors: u32,
    /// Which blocks are given up first.
    pub replacement: Replacement,
    /// Whether it has a volatile write cache of its own, which a write-back set should not have.
    pub write_cache: WriteCache,
}

impl CacheDevice {
    fn read(bcache: &Bcache, number: DeviceNumber) -> Result<Self, Error> {
        let dir = bcache.sys.join(format!("dev/block/{number}"));
        let uevent = Attributes::new(dir.clone()).text("uevent")?;
        let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="));
        // A partition has the queue of its disk.
        let queues = [dir.join("queue"), dir.join("../queue")];
        let queue = queues.into_iter().find(|queue| queue.exists()).unwrap_or_default();
        let attributes = Attributes::new(dir.join("bcache"));
        Ok(Self {
            number,
            path: bcache.dev.join(name.unwrap_or_default()),
            written: attributes.size("written")?,
            metadata_written: attributes.size("metadata_written")?,
            io_errors: attributes.value("io_errors")?,
            replacement: attributes.chosen("cache_replacement_policy", Replacement::of_word)?,
            write_cache: Attributes::new(queue).chosen("write_cache", WriteCache::of_word)?,
        })
    }
}

impl CacheSet {
    pub(crate) fn new(bcache: Bcache, uuid: Uuid) -> Self {
        Self { bcache, uuid }
    }

    /// Its identity.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Whether it is registered now.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.attributes().dir().exists()
    }

    pub(crate) fn attributes(&self) -> Attributes {
        Attributes::new(self.bcache.sys.join("fs/bcache").join(self.uuid.to_string()))
    }

    /// The backing devices that are attached to it.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more, [`Kind::Io`].
    pub fn backings(&self) -> Result<Vec<Backing>, Error> {
        let mut found = Vec::new();
        for number in self.members("bdev")? {
            match self.bcache.registered(number)? {
                Some(Registered::Backing(backing)) => found.push(backing),
                // It was stopped meanwhile.
                _ => continue,
            }
        }
        Ok(found)
    }

    /// Its cache devices, with what the kernel has counted of each.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more, [`Kind::Unsupported`], [`Kind::Io`].
    pub fn caches(&self) -> Result<Vec<CacheDevice>, Error> {
        let numbers = self.members("cache")?.into_iter();
        numbers.map(|number| CacheDevice::read(&self.bcache, number)).collect()
    }

    /// The devices behind the links that are `prefix` and a number.
    fn members(&self, prefix: &str) -> Result<Vec<DeviceNumber>, Error> {
        let attributes = self.attributes();
        let links = attributes.links(prefix)?;
        // Each points to the directory `bcache` of a block device.
        links.iter().map(|link| attributes.value(&format!("{link}/../dev"))).collect()
    }

    /// Stops the set and lets its cache devices go. Its content stays, and counts when it is registered again. What udev
    /// registers again meanwhile is stopped again.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while backing devices are attached, since the kernel would stop them too, [`Kind::TimedOut`],
    /// [`Kind::Busy`] when someone registers it again and again, [`Kind::Io`].
    pub fn stop(&self) -> Result<Change, Error> {
        let tried = format!("stop the cache set {}", self.uuid);
        if !self.exists() {
            return Ok(Change::Already(()));
        }
        self.end("stop", &tried)
    }

    /// Detaches all backing devices within `limit`, each as [`Backing::detach`] does it, and ends the set. After that the cache
    /// devices hold nothing that anyone needs. Given up or out of time, those that were detached stay so.
    ///
    /// # Errors
    ///
    /// Those of [`Backing::detach`]; [`Kind::InUse`] when the set has volumes of its own (flash-only ones, which we never
    /// make), [`Kind::TimedOut`], [`Kind::Io`].
    pub fn unregister(
        &self,
        limit: Duration,
        mut watch: impl FnMut(Uuid, DetachProgress) -> ControlFlow<()>,
    ) -> Result<Change, Error> {
        let tried = format!("unregister the cache set {}", self.uuid);
        if !self.exists() {
            return Ok(Change::Already(()));
        }
        self.refuse_volumes(&tried)?;
        let begun = Instant::now();
        for backing in self.backings()? {
            let uuid = backing.uuid();
            let left = limit.saturating_sub(begun.elapsed());
            let _ = backing.detach(left, |progress| watch(uuid, progress))?;
        }
        self.end("unregister", &tried)
    }

    fn end(&self, attribute: &str, tried: &str) -> Result<Change, Error> {
        let caches = match self.caches() {
            Err(_) if !self.exists() => return Ok(Change::Already(())),
            caches => caches?.into_iter().map(|cache| cache.path).collect::<Vec<_>>(),
        };
        let tell = || {
            self.refuse_in_use(tried, "stop or detach it first")?;
            self.attributes().write(attribute, "1")
        };
        stop::for_good(tried, || {
            let attributes = self.attributes();
            let before = stop::inode(attributes.dir());
            stop::unless_gone(tell())?;
            stop::wait_until_gone(attributes.dir(), before, &caches, SOON, tried)
        })?;
        Ok(Change::Made(()))
    }

    fn refuse_in_use(&self, tried: &str, advice: &str) -> Result<(), Error> {
        self.refuse_volumes(tried)?;
        match self.backings()?.first() {
            None => Ok(()),
            Some(backing) => Err(Error::new(Kind::InUse, tried)
                .with_answer(format!("the backing device {} is attached to it", backing.uuid()))
                .with_advice(advice)),
        }
    }

    fn refuse_volumes(&self, tried: &str) -> Result<(), Error> {
        match self.attributes().links("volume")?.first() {
            None => Ok(()),
            Some(volume) => {
                let answer = format!("it has the volume {volume}, which exists on the cache alone");
                Err(Error::new(Kind::InUse, tried).with_answer(answer))
            }
        }
    }
}
