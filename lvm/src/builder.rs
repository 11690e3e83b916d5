//! Putting a handle together from the worker pool and the native reader.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::lvm::{FillLimit, Lvm, Parts, Settings};
use crate::metadata::{Options, Reader};
use crate::recover::Recoverer;
use crate::run::Nobody;
use crate::worker::conf::{Activation, AutoExtend, Conf};
use crate::worker::host::HostSettings;
use crate::worker::{Pool, Recover};
use crate::{DevicePath, Error, MetadataSource, Tag};

/// Makes an [`Lvm`].
///
/// ```no_run
/// use lvm::{DevicePath, Lvm};
///
/// let lvm = Lvm::builder()
///     .device(DevicePath::new("/dev/sdb")?)
///     .device(DevicePath::new("/dev/sdc")?)
///     .owner("gabion.dev/owner=my-host".parse()?)
///     .build()?;
/// for group in lvm.groups()? {
///     println!("{}", group.label());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is made until build is called"]
pub struct LvmBuilder {
    conf: Conf,
    settings: Settings,
    worker: Option<PathBuf>,
    recover: Option<Arc<dyn Recover>>,
    deadline: Duration,
}

impl Lvm {
    /// Starts the description of a handle that sees no device yet.
    pub fn builder() -> LvmBuilder {
        LvmBuilder {
            conf: Conf::new(Vec::<PathBuf>::new()),
            settings: Settings::default(),
            worker: None,
            recover: None,
            deadline: crate::lvm::DEADLINE,
        }
    }

    /// Replaces the set of devices: commands that run go on with the old set, every later one gets the new one.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`](crate::Kind::Unsupported) for a handle on parts of the caller's choosing; as
    /// [`Conf::write`] otherwise, and then nothing changes.
    pub fn set_devices(&self, devices: impl IntoIterator<Item = DevicePath>) -> Result<(), Error> {
        let parts = self.parts("change the set of devices")?;
        let devices: Vec<PathBuf> = devices.into_iter().map(|device| device.as_path().to_owned()).collect();
        let mut conf = parts.conf.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = Conf { devices: devices.clone(), ..conf.clone() };
        parts.pool.reconfigure(&changed)?;
        parts.reader.set_devices(devices);
        *conf = changed;
        Ok(())
    }
}

impl LvmBuilder {
    /// Adds a device to the set. LVM and the reader see exactly the devices of the set and nothing else.
    pub fn device(mut self, device: DevicePath) -> Self {
        self.conf.devices.push(device.into());
        self
    }

    /// Adds devices to the set.
    pub fn devices(self, devices: impl IntoIterator<Item = DevicePath>) -> Self {
        devices.into_iter().fold(self, Self::device)
    }

    /// The tag that marks what is ours; with it, groups and volumes that lack it are never changed.
    pub fn owner(mut self, owner: Tag) -> Self {
        self.settings.owner = Some(owner);
        self
    }

    /// Whether and how LVM makes devices.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.conf.activation = activation;
        self.settings.activation = activation;
        self
    }

    /// Where generated configurations and our own locks lie, best on a tmpfs; otherwise `/run/gabion/lvm`.
    pub fn run_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.run_dir = directory.into();
        self
    }

    /// Where LVM keeps each group's last metadata; otherwise below `/var/lib/gabion`.
    pub fn backup_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.conf.backup_dir = Some(directory.into());
        self
    }

    /// Where LVM's locks are and what names this host; these must be the host's own.
    pub fn host(mut self, host: HostSettings) -> Self {
        self.conf.host = host;
        self
    }

    /// The worker's binary; otherwise it is looked for.
    pub fn worker(mut self, path: impl Into<PathBuf>) -> Self {
        self.worker = Some(path.into());
        self
    }

    /// When pools grow and report events.
    pub fn auto_extend(mut self, auto_extend: AutoExtend) -> Self {
        self.conf.auto_extend = auto_extend;
        self
    }

    /// Fill of a pool from which nothing new is made in it; otherwise 95 percent of data, 80 of metadata.
    pub fn refuse_at(mut self, limit: FillLimit) -> Self {
        self.settings.refuse_at = limit;
        self
    }

    /// How long callers wait for one command; otherwise two minutes.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// What recovers a group whose worker died, in the place of our own [`Recoverer`].
    pub fn recover(mut self, recover: Arc<dyn Recover>) -> Self {
        self.recover = Some(recover);
        self
    }

    /// Finds the worker's binary and writes its configuration. No process is started and no device is opened yet.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound) for the worker's binary, and those of [`Conf::write`].
    pub fn build(self) -> Result<Lvm, Error> {
        let reader = self.reader();
        let mut pool = Pool::builder(self.conf.clone()).conf_root(&self.settings.run_dir);
        if let Some(worker) = self.worker {
            pool = pool.binary(worker);
        }
        let source: Arc<dyn MetadataSource> = Arc::clone(&reader) as _;
        let locking_dir = self.conf.host.locking_dir.clone();
        let recoverer = Arc::new(Recoverer::new(source, Arc::new(self.settings.clone()), locking_dir));
        pool = pool.recover(self.recover.unwrap_or_else(|| Arc::clone(&recoverer) as _));
        let parts = Parts { pool: Arc::new(pool.build()?), reader, conf: Mutex::new(self.conf), recoverer };
        Ok(Lvm::of_parts(parts, self.settings).with_deadline(self.deadline))
    }
    /// A handle that only reads: no worker is looked for, nothing is written, and every command is refused as
    /// [`Kind::Unsupported`](crate::Kind::Unsupported).
    pub fn build_to_read(self) -> Lvm {
        Lvm::with_parts(Arc::new(Nobody), self.reader(), self.settings)
    }

    fn reader(&self) -> Arc<Reader> {
        let options = Options { locking_dir: Some(self.conf.host.locking_dir.clone()), ..Options::default() };
        Arc::new(Reader::new(self.conf.devices.clone(), options))
    }
}
