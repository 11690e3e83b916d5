//! Reading a set of devices, each by a thread of its own.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::assemble::assemble;
use super::committed::Texts;
use super::scan::{Found, Scanner};
use super::worker::Worker;
use super::{Buffer, Image, View};

/// How to read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How often an area whose checksum does not match is read again before the group's lock is taken; a commit that
    /// is under way looks like damage.
    pub retries: u32,
    /// Where LVM keeps its lock files (`global/locking_dir`); `None` takes no lock.
    pub locking_dir: Option<PathBuf>,
    /// How long to wait for the group's lock.
    pub lock_wait: Duration,
    /// How long to wait for a device. One that has not answered by then counts as unreadable, and gets no further
    /// read until it has answered.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retries: 5,
            locking_dir: Some(PathBuf::from("/run/lock/lvm")),
            lock_wait: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
        }
    }
}

/// What reading has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Reads of devices.
    pub reads: u64,
    /// Bytes read from devices.
    pub bytes: u64,
    /// System calls made on devices: stat, open, size, block size, reads, close.
    pub system_calls: u64,
    /// Different texts read; of each group the first and the newest are decoded.
    pub texts: u64,
}

/// Reads one set of devices again and again.
///
/// It keeps what it has read: while the labels and the headers of all areas stay the same, [`Reader::read`] gives
/// the same view again, after one small read of each device. A device has one thread and one outstanding read,
/// so a sick disk costs one thread and delays nobody beyond the deadline.
///
/// # Examples
///
/// ```no_run
/// use lvm::metadata::{Options, Reader};
///
/// let reader = Reader::new(["/dev/vdb", "/dev/vdc"], Options::default());
/// let view = reader.read();
/// for vg in &view.vgs {
///     println!("{}: {} volumes, {} free", vg.name, vg.visible_lvs().count(), vg.free_extents());
/// }
/// for problem in &view.problems {
///     eprintln!("{problem}");
/// }
/// ```
#[derive(Debug)]
pub struct Reader {
    inner: Mutex<Inner>,
    options: Options,
}

#[derive(Debug, Default)]
struct Inner {
    workers: Vec<Worker>,
    /// The last view and what it was made from.
    last: Option<Arc<View>>,
    /// Copies, by device and number, that differ from the newest ones and have been told.
    differing: Vec<(PathBuf, u64)>,
    cost: Cost,
}

/// Reads a set of devices once.
///
/// What cannot be read or understood is in the view's [`problems`](View::problems).
pub fn read(devices: impl IntoIterator<Item = impl Into<PathBuf>>, options: Options) -> Arc<View> {
    Reader::new(devices, options).read()
}

/// Reads images that are already in memory, each the beginning of a device or all of it.
///
/// The paths name the images in the view. A damaged image is not read twice.
#[must_use]
pub fn read_images(images: &[(&Path, &[u8])]) -> View {
    let options = Options { retries: 0, locking_dir: None, ..Options::default() };
    let texts = Texts::default();
    let mut buffer = Buffer::default();
    let mut found = Vec::new();
    for (path, bytes) in images {
        let source = Image(bytes);
        let mut scanner = Scanner { source: &source, buffer: &mut buffer, texts: &texts, options: &options };
        let result = match scanner.scan(None, None) {
            // Without an earlier scan there is always a new one.
            Ok(scan) => scan.map(|scan| Found::Scan(Arc::new(scan))),
            Err(error) => Some(Found::unreadable(path, &error)),
        };
        found.extend(result.map(|result| (path.to_path_buf(), result)));
    }
    assemble(&found)
}

impl Reader {
    /// A reader of exactly these block devices (or files with the same content).
    pub fn new(devices: impl IntoIterator<Item = impl Into<PathBuf>>, options: Options) -> Self {
        let workers = devices.into_iter().map(|path| Worker::start(path.into())).collect();
        Self { inner: Mutex::new(Inner { workers, ..Inner::default() }), options }
    }

    /// Replaces the set of devices; those that stay keep what was read from them.
    pub fn set_devices(&self, devices: impl IntoIterator<Item = impl Into<PathBuf>>) {
        let mut inner = self.lock();
        let mut old = std::mem::take(&mut inner.workers);
        for path in devices {
            let path = path.into();
            let kept = old.iter().position(|worker| worker.path() == path);
            let worker = kept.map_or_else(|| Worker::start(path), |index| old.swap_remove(index));
            inner.workers.push(worker);
        }
        inner.last = None;
    }

    /// The devices that are read.
    #[must_use]
    pub fn devices(&self) -> Vec<PathBuf> {
        self.lock().workers.iter().map(|worker| worker.path().to_owned()).collect()
    }

    /// What the devices hold now: the same view as before when nothing has changed.
    ///
    /// What cannot be read or understood is in the view's [`problems`](View::problems).
    #[must_use]
    pub fn read(&self) -> Arc<View> {
        let mut inner = self.lock();
        let mut pause = Duration::from_millis(2);
        let mut attempt = 0;
        loop {
            let view = inner.round(&self.options);
            // A commit reaches one PV after the other, so copies differ for a moment; those that stay so are told.
            let differing = view.differing_copies();
            let known = differing.iter().all(|copy| inner.differing.contains(copy));
            if known || attempt == self.options.retries {
                inner.differing = differing;
                return view;
            }
            attempt += 1;
            thread::sleep(pause);
            pause *= 2;
        }
    }

    /// What this reader has cost since it was made.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.lock().cost
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Asks every device once.
    fn round(&mut self, options: &Options) -> Arc<View> {
        let texts = Arc::new(Texts::default());
        let deadline = Instant::now() + options.deadline;
        let mut changed = self.last.is_none();
        for worker in &mut self.workers {
            worker.ask(&texts, options);
        }
        let mut begun = HashSet::new();
        for worker in &mut self.workers {
            if worker.wait(deadline, &mut self.cost) {
                changed = true;
                // The other devices are still read meanwhile, and their copies are mostly the same.
                worker.found().decode(&mut begun);
            }
        }
        self.cost.texts += texts.count() as u64;
        if let Some(last) = &self.last
            && !changed
        {
            return Arc::clone(last);
        }
        let found: Vec<_> =
            self.workers.iter().map(|worker| (worker.path().to_owned(), worker.found().clone())).collect();
        let view = Arc::new(assemble(&found));
        self.last = Some(Arc::clone(&view));
        view
    }
}

impl Cost {
    pub(super) fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.system_calls += other.system_calls;
        self.texts += other.texts;
    }
}
