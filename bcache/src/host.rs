//! bcache on this host: what is registered, and registration.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use devices::{DeviceNumber, Effect};

use crate::attribute::{self, Attributes};
use crate::device::number_of;
use crate::error::system;
use crate::twin::Identity;
use crate::{Backing, CacheSet, Change, Error, Kind, Superblock, Uuid, wait};

/// How long a device may take to appear in sysfs, by our hand or by udev's.
const APPEAR: Duration = Duration::from_secs(10);
/// How long a refused registration is tried again: whoever held the device may only have looked at it.
const RETRY: Duration = Duration::from_millis(400);
const RETRIES: u32 = 4;

/// bcache of this host, through sysfs.
///
/// ```no_run
/// use bcache::{Bcache, Registered};
///
/// let bcache = Bcache::new();
/// match bcache.register("/dev/sdb".as_ref())?.into_inner() {
///     Registered::Backing(backing) => println!("{:?}", backing.device()?),
///     Registered::Cache(set) => println!("cache set {}", set.uuid()),
/// }
/// # Ok::<(), bcache::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bcache {
    pub(crate) sys: PathBuf,
    pub(crate) dev: PathBuf,
}

/// What a registered device is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is a backing device.
    Backing(Backing),
    /// It is the cache device of this set.
    Cache(CacheSet),
}

impl Default for Bcache {
    fn default() -> Self {
        Self::new()
    }
}

impl Bcache {
    /// With `/sys` and `/dev`.
    #[must_use]
    pub fn new() -> Self {
        Self::with_roots("/sys", "/dev")
    }

    /// With other directories of their form.
    pub fn with_roots(sys: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self { sys: sys.into(), dev: dev.into() }
    }

    /// Whether the kernel has bcache now. [`Bcache::register`] loads the module where it can.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.register_file().exists()
    }

    /// What the device with this number is registered as.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when sysfs cannot be read.
    pub fn registered(&self, number: DeviceNumber) -> Result<Option<Registered>, Error> {
        let dir = self.sys.join(format!("dev/block/{number}/bcache"));
        // On /dev/bcacheN itself it is a link to the directory of the backing device.
        if !std::fs::symlink_metadata(&dir).is_ok_and(|metadata| metadata.is_dir()) {
            return Ok(None);
        }
        let attributes = Attributes::new(dir);
        if let Some(set) = attributes.link("set").and_then(|set| set.parse().ok()) {
            // Reading an attribute waits until the kernel has ended the registration, whoever began it.
            let set = CacheSet::new(self.clone(), set);
            return Ok(set.attributes().optional("bucket_size")?.map(|_| Registered::Cache(set)));
        }
        let uuid = attributes.optional("backing_dev_uuid")?.and_then(|uuid| uuid.trim().parse().ok());
        let Some(uuid) = uuid else { return Ok(None) };
        let state = attributes.optional("state")?;
        Ok(state.map(|_| Registered::Backing(Backing::new(self.clone(), number, uuid))))
    }

    /// Registers a backing or cache device, unless udev or anyone else was quicker: both orders end the same.
    ///
    /// The kernel's module is loaded first if need be. A device in write-back mode that runs with this then keeps its writes in
    /// its cache ([`Backing::keep_in_cache`]).
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] without a bcache superblock, [`Kind::Unsupported`] when this kernel has no bcache,
    /// [`Kind::Inconsistent`] for a damaged superblock, when another device of the same identity is registered, or when the
    /// kernel refuses it, [`Kind::InUse`], [`Kind::Busy`] when the device is suspended, [`Kind::Io`].
    pub fn register(&self, path: &Path) -> Result<Change<Registered>, Error> {
        let registered = self.register_as_it_is(path)?;
        registered.get().keep_in_cache().map_err(|error| error.with_effect(Effect::Done))?;
        Ok(registered)
    }

    fn register_as_it_is(&self, path: &Path) -> Result<Change<Registered>, Error> {
        let tried = format!("register {} with bcache", path.display());
        let number = number_of(path, &tried)?;
        if let Some(registered) = self.registered(number)? {
            if let Registered::Backing(backing) = &registered {
                self.refuse_twin(Identity::Backing(backing.uuid()), number, &tried)?;
            }
            return Ok(Change::Already(registered));
        }
        let Some(superblock) = Superblock::read(path)? else {
            return Err(Error::new(Kind::NotFound, tried).with_answer("it has no bcache superblock"));
        };
        self.refuse_twin(Identity::of(&superblock), number, &tried)?;
        self.load(&tried)?;
        let node = std::fs::canonicalize(path).map_err(system(tried.clone()))?;
        let refused = self.write_register(&node, number)?;
        let appeared = || Ok(self.registered(number)?.filter(|found| found.is(&superblock)));
        match (refused, appeared()?) {
            (None, Some(registered)) => Ok(Change::Made(registered)),
            (Some(_), Some(registered)) => Ok(Change::Already(registered)),
            (Some(cause), None) => Err(refusal(tried, cause)),
            (None, None) => match wait::until(APPEAR, appeared)? {
                Some(registered) => Ok(Change::Made(registered)),
                None => Err(Error::new(Kind::Inconsistent, tried)
                    .with_answer("the kernel took the device, but shows nothing of it")
                    .with_advice("the kernel's log has the reason")),
            },
        }
    }

    /// The kernel's last refusal, unless it took the device or somebody else was quicker.
    fn write_register(&self, node: &Path, number: DeviceNumber) -> Result<Option<std::io::Error>, Error> {
        let mut refused = None;
        for attempt in 0..RETRIES {
            if attempt > 0 && wait::until(RETRY, || self.registered(number))?.is_some() {
                break;
            }
            match attribute::write(&self.register_file(), &node.display().to_string()) {
                Ok(()) => return Ok(None),
                Err(cause) => refused = Some(cause),
            }
        }
        Ok(refused)
    }

    /// The registered backing device of this identity, wherever it is now.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when none is registered, [`Kind::Inconsistent`] when two are, [`Kind::Io`].
    pub fn backing(&self, uuid: Uuid) -> Result<Backing, Error> {
        let tried = format!("find the bcache backing device {uuid}");
        let Some(found) = self.backings()?.into_iter().find(|backing| backing.uuid() == uuid) else {
            return Err(Error::new(Kind::NotFound, tried).with_answer("none of that identity is registered"));
        };
        self.refuse_twin(Identity::Backing(uuid), found.number(), &tried)?;
        Ok(found)
    }

    /// The registered cache set of this identity.
    ///
    /// # Errors
    ///
    /// [`Kind::CacheMissing`] when it is not registered.
    pub fn set(&self, uuid: Uuid) -> Result<CacheSet, Error> {
        let set = CacheSet::new(self.clone(), uuid);
        if set.exists() {
            return Ok(set);
        }
        Err(Error::new(Kind::CacheMissing, format!("find the cache set {uuid}"))
            .with_answer("it is not registered")
            .with_advice("register its cache device"))
    }

    /// Every registered backing device, by the kernel's names.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when sysfs cannot be read.
    pub fn backings(&self) -> Result<Vec<Backing>, Error> {
        let class = self.sys.join("class/block");
        let mut found = Vec::new();
        for name in names(&class)? {
            let number = std::fs::read_to_string(class.join(&name).join("dev")).ok();
            let Some(number) = number.and_then(|text| text.trim().parse().ok()) else { continue };
            if let Some(Registered::Backing(backing)) = self.registered(number)? {
                found.push(backing);
            }
        }
        Ok(found)
    }

    /// Every registered cache set, by uuid.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when sysfs cannot be read.
    pub fn sets(&self) -> Result<Vec<CacheSet>, Error> {
        let dir = self.sys.join("fs/bcache");
        if !dir.exists() {
            return Ok(Vec::new());
        }
        let uuids = names(&dir)?.into_iter().filter_map(|name| name.parse().ok());
        Ok(uuids.map(|uuid| CacheSet::new(self.clone(), uuid)).collect())
    }

    fn register_file(&self) -> PathBuf {
        self.sys.join("fs/bcache/register")
    }

    fn load(&self, tried: &str) -> Result<(), Error> {
        if self.is_loaded() {
            return Ok(());
        }
        let unsupported = |answer: String| {
            Err(Error::new(Kind::Unsupported, tried)
                .with_answer(answer)
                .with_advice("use a kernel with the module bcache"))
        };
        let program = ["/sbin/modprobe", "/usr/sbin/modprobe", "/bin/modprobe"];
        let Some(program) = program.into_iter().find(|path| Path::new(path).exists()) else {
            return unsupported("the kernel has no bcache now, and there is no modprobe to load it".into());
        };
        let output = Command::new(program)
            .arg("bcache")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(system(format!("run {program} bcache")))?;
        if wait::until(APPEAR, || Ok((self.is_loaded() || !output.status.success()).then_some(())))?.is_some()
            && self.is_loaded()
        {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        unsupported(format!("modprobe bcache: {}: {}", output.status, said.trim()))
    }
}

impl Registered {
    /// Whether this is the device whose superblock was read.
    fn is(&self, superblock: &Superblock) -> bool {
        match self {
            Self::Backing(backing) => backing.uuid() == superblock.uuid,
            Self::Cache(set) => Some(set.uuid()) == superblock.set,
        }
    }
}

fn refusal(tried: String, cause: std::io::Error) -> Error {
    let kind = match cause.kind() {
        std::io::ErrorKind::ResourceBusy => Kind::InUse,
        // EINVAL says all of: busy, too small, blocks too small, a duplicate.
        std::io::ErrorKind::InvalidInput => Kind::Inconsistent,
        _ => Kind::Io,
    };
    Error::new(kind, tried)
        .with_answer(format!("the kernel refused it: {cause}"))
        .with_advice("the kernel's log has the reason")
        .with_source(cause)
}

/// What is in a directory, sorted.
fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let tried = format!("list {}", dir.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(system(tried.clone()))? {
        names.extend(entry.map_err(system(tried.clone()))?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
