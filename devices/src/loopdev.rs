//! Loop devices: a file that serves as a disk.
//!
//! ```no_run
//! use devices::{Bytes, loopdev};
//!
//! let disk = loopdev::Attach::new().sector_size(Bytes::new(4096)).direct_io().file("/var/tmp/disk.img")?;
//! println!("{}", disk.path().display());
//! disk.detach()?;
//! # Ok::<(), devices::loopdev::LoopError>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::stamp::Stamp;
use crate::{Bytes, DeviceNumber, ioctl};

/// The major number of every loop device (Documentation/admin-guide/devices.txt).
const LOOP_MAJOR: u32 = 7;
/// How often a free device may be snatched away by another process before we give up.
const RACES: u32 = 64;
/// How long `detach` waits for others (udev's probes, mostly) to close the device.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// A loop device could not be attached, resized or detached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The system refused a step.
    #[error("could not {tried} {}", path.display())]
    Io {
        /// The step, in the infinitive.
        tried: &'static str,
        /// The file or device it was tried on.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// Every free device was taken by another process before it could be used.
    #[error("could not attach {} to a loop device: {RACES} free ones were taken by others; try again", image.display())]
    Contended {
        /// The file to attach.
        image: PathBuf,
    },
    /// The device is still open elsewhere; the kernel detaches it at the last close.
    #[error("could not detach {} within {CLOSE_WAIT:?}: it is still open; end what uses it", path.display())]
    InUse {
        /// The loop device.
        path: PathBuf,
    },
}

fn at(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LoopError {
    let path = path.to_owned();
    move |source| LoopError::Io { tried, path, source }
}

/// How to attach a file.
#[derive(Clone, Debug, Default)]
pub struct Attach {
    block_size: u32,
    offset: u64,
    flags: u32,
}

impl Attach {
    /// Read and write, 512-byte sectors, through the page cache, no partitions, until detached.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The logical block size: 512, 1024, 2048 or 4096 bytes. The kernel refuses others.
    #[must_use]
    pub fn sector_size(mut self, size: Bytes) -> Self {
        self.block_size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        self
    }

    /// The disk begins this far into the file.
    #[must_use]
    pub fn offset(mut self, offset: Bytes) -> Self {
        self.offset = offset.get();
        self
    }

    /// Writes to the device fail.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.flags |= ioctl::LO_FLAGS_READ_ONLY;
        self
    }

    /// The file is read and written past the page cache, where its filesystem can do that; else as usual.
    #[must_use]
    pub fn direct_io(mut self) -> Self {
        self.flags |= ioctl::LO_FLAGS_DIRECT_IO;
        self
    }

    /// The kernel makes devices for the partitions.
    #[must_use]
    pub fn scan_partitions(mut self) -> Self {
        self.flags |= ioctl::LO_FLAGS_PARTSCAN;
        self
    }

    /// The kernel detaches at the last close; the [`LoopDevice`] keeps the device open.
    #[must_use]
    pub fn detach_on_close(mut self) -> Self {
        self.flags |= ioctl::LO_FLAGS_AUTOCLEAR;
        self
    }

    /// Attaches `image` to a free loop device.
    ///
    /// Between asking for a free device and taking it another process may take it: then the next one is tried.
    ///
    /// # Errors
    ///
    /// If the file or `/dev/loop-control` cannot be opened, the kernel refuses the options, or other processes
    /// win every race.
    pub fn file(&self, image: impl AsRef<Path>) -> Result<LoopDevice, LoopError> {
        let image = image.as_ref();
        let file = self.open(image).map_err(at("open", image))?;
        let control_path = Path::new("/dev/loop-control");
        let control = open_read_write(control_path).map_err(at("open", control_path))?;
        for race in 0..RACES {
            let number = ioctl::loop_get_free(&control)
                .map_err(|errno| at("get a free loop device from", control_path)(errno.into()))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            match self.try_device(&path, &file, image) {
                Ok(device) => {
                    let number = DeviceNumber { major: LOOP_MAJOR, minor: number };
                    let attachment = Attachment::of(&device, number).map_err(at("look at", &path))?;
                    let held = (self.flags & ioctl::LO_FLAGS_AUTOCLEAR != 0).then_some(device);
                    return Ok(LoopDevice { path, number, attachment, held, attached: true });
                }
                // Taken (EBUSY), removed (ENXIO, ENODEV), or its node not made yet (ENOENT).
                Err(Errno::BUSY | Errno::NXIO | Errno::NODEV | Errno::NOENT) => {
                    thread::sleep(Duration::from_millis(u64::from(race.min(20))));
                }
                Err(errno) => return Err(at("attach", image)(errno.into())),
            }
        }
        Err(LoopError::Contended { image: image.to_owned() })
    }

    fn open(&self, image: &Path) -> io::Result<File> {
        let writes = self.flags & ioctl::LO_FLAGS_READ_ONLY == 0;
        OpenOptions::new().read(true).write(writes).open(image)
    }

    fn try_device(&self, path: &Path, file: &File, image: &Path) -> Result<File, Errno> {
        let device =
            open_read_write(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let name = image.as_os_str().as_bytes();
        let mut what = ioctl::Configuration {
            block_size: self.block_size,
            offset: self.offset,
            flags: self.flags,
            name,
        };
        match ioctl::loop_configure(&device, file, &what) {
            // Some kernels refuse direct I/O that the filesystem cannot do, others fall back by themselves.
            Err(Errno::INVAL) if what.flags & ioctl::LO_FLAGS_DIRECT_IO != 0 => {
                what.flags &= !ioctl::LO_FLAGS_DIRECT_IO;
                ioctl::loop_configure(&device, file, &what)?;
            }
            other => other?,
        }
        Ok(device)
    }
}

/// The attached file's path as the kernel shows it, `None` when nothing is attached.
fn backing_file(number: DeviceNumber) -> Option<Vec<u8>> {
    std::fs::read(format!("/sys/block/loop{}/loop/backing_file", number.minor)).ok()
}

fn open_read_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// What tells one attachment of a loop device from a later one: its number is given again to whoever asks next.
#[derive(Debug)]
struct Attachment {
    /// The kernel counts each attachment (Linux 5.15).
    sequence: Option<u64>,
    /// The file as sysfs shows it, which changes when it is renamed or removed.
    backing: Option<Vec<u8>>,
}

impl Attachment {
    fn of(device: &File, number: DeviceNumber) -> io::Result<Self> {
        let sequence = Stamp::of(device)?.and_then(|stamp| stamp.sequence);
        Ok(Self { sequence, backing: backing_file(number) })
    }

    /// Whether a later look found the same attachment.
    fn is_still(&self, sequence: Option<u64>, backing: Option<&[u8]>) -> bool {
        match (self.sequence, sequence) {
            (Some(then), Some(now)) => backing.is_some() && then == now,
            _ => backing.is_some() && self.backing.as_deref() == backing,
        }
    }

    fn lasts(&self, number: DeviceNumber) -> bool {
        let path = format!("/sys/block/loop{}/diskseq", number.minor);
        let sequence = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        self.is_still(sequence, backing_file(number).as_deref())
    }
}

/// An attached loop device. Dropping it detaches it, as far as that works without waiting; see [`Self::detach`].
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    number: DeviceNumber,
    attachment: Attachment,
    /// Kept open only for [`Attach::detach_on_close`], since an open descriptor disturbs exclusive users.
    held: Option<File>,
    attached: bool,
}

impl LoopDevice {
    /// The device's node, `/dev/loopN`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device's number.
    #[must_use]
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Has the device take the size that its file has now.
    ///
    /// # Errors
    ///
    /// If the device cannot be opened or the kernel refuses.
    pub fn set_capacity(&self) -> Result<(), LoopError> {
        let device = open_read_write(&self.path).map_err(at("open", &self.path))?;
        ioctl::loop_set_capacity(&device).map_err(|errno| at("resize", &self.path)(errno.into()))
    }

    /// Detaches and waits until the kernel has let go of the file.
    ///
    /// # Errors
    ///
    /// [`LoopError::InUse`] if somebody keeps the device open for ten seconds; it is then detached at the last
    /// close.
    pub fn detach(mut self) -> Result<(), LoopError> {
        self.clear()?;
        let end = Instant::now() + CLOSE_WAIT;
        // Another process may have attached another file to the same device meanwhile.
        while self.attachment.lasts(self.number) {
            if Instant::now() > end {
                return Err(LoopError::InUse { path: self.path.clone() });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Leaves the device attached and forgets it.
    #[must_use]
    pub fn leave(mut self) -> PathBuf {
        self.attached = false;
        std::mem::take(&mut self.path)
    }

    fn clear(&mut self) -> Result<(), LoopError> {
        if !std::mem::take(&mut self.attached) {
            return Ok(());
        }
        let device = match self.held.take() {
            Some(device) => device,
            None => open_read_write(&self.path)
                .or_else(|_| File::open(&self.path))
                .map_err(at("open", &self.path))?,
        };
        // While it is open here nobody can attach another file to it: LOOP_CLR_FD waits for the last close.
        let now = Attachment::of(&device, self.number).map_err(at("look at", &self.path))?;
        if !self.attachment.is_still(now.sequence, now.backing.as_deref()) {
            // Somebody else detached it, and the number may be of another file since.
            return Ok(());
        }
        match ioctl::loop_clear(&device) {
            // Not attached any more: somebody else was quicker.
            Ok(()) | Err(Errno::NXIO) => Ok(()),
            Err(errno) => Err(at("detach", &self.path)(errno.into())),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Nobody to tell here; `detach` is for those who want to know.
        let _ = self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loop devices need root and a kernel that has them.
    fn unavailable() -> bool {
        let missing = open_read_write(Path::new("/dev/loop-control")).is_err();
        if missing {
            println!("SKIPPED: /dev/loop-control cannot be opened");
        }
        missing
    }

    fn image(bytes: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        file
    }

    fn attribute(device: &LoopDevice, name: &str) -> String {
        let path = format!("/sys/block/loop{}/{name}", device.number().minor);
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    #[test]
    fn a_device_has_the_size_and_sector_asked_for_and_grows_with_its_file() {
        if unavailable() {
            return;
        }
        let file = image(1 << 20);
        let device = Attach::new().sector_size(Bytes::new(4096)).file(file.path()).unwrap();
        assert_eq!(attribute(&device, "size"), "2048");
        assert_eq!(attribute(&device, "queue/logical_block_size"), "4096");
        assert_eq!(attribute(&device, "dev"), device.number().to_string());
        file.as_file().set_len(3 << 20).unwrap();
        device.set_capacity().unwrap();
        assert_eq!(attribute(&device, "size"), "6144");
        device.detach().unwrap();
    }

    #[test]
    fn options_reach_the_kernel() {
        if unavailable() {
            return;
        }
        let file = image(1 << 20);
        let device = Attach::new()
            .read_only()
            .scan_partitions()
            .offset(Bytes::kib(64))
            .detach_on_close()
            .file(file.path())
            .unwrap();
        for (name, value) in
            [("ro", "1"), ("loop/offset", "65536"), ("loop/partscan", "1"), ("loop/autoclear", "1")]
        {
            assert_eq!(attribute(&device, name), value, "{name}");
        }
        device.detach().unwrap();
    }

    #[test]
    fn detaching_waits_for_whoever_has_the_device_open() {
        if unavailable() {
            return;
        }
        let file = image(1 << 20);
        let device = Attach::new().direct_io().file(file.path()).unwrap();
        let number = device.number();
        let shown = backing_file(number).unwrap();
        assert_eq!(shown.trim_ascii_end(), file.path().as_os_str().as_bytes());
        let open = File::open(device.path()).unwrap();
        let holder = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(open);
        });
        let start = Instant::now();
        device.detach().unwrap();
        assert!(start.elapsed() >= Duration::from_millis(150));
        assert_ne!(backing_file(number), Some(shown));
        holder.join().unwrap();
    }

    /// Attaches a file to the loop device of this number; false if another process was quicker.
    fn attached_at(number: DeviceNumber, file: &Path) -> bool {
        let node = format!("/dev/loop{}", number.minor);
        std::process::Command::new("losetup").arg(&node).arg(file).status().unwrap().success()
    }

    #[test]
    fn a_number_that_is_of_another_file_by_now_is_not_detached() {
        if unavailable() {
            return;
        }
        for drops in [true, false] {
            let (mine, other) = (image(1 << 20), image(1 << 20));
            // Somebody else may take the number in between.
            let (device, number) = loop {
                let device = Attach::new().file(mine.path()).unwrap();
                let number = device.number();
                std::process::Command::new("losetup").arg("-d").arg(device.path()).status().unwrap();
                if attached_at(number, other.path()) {
                    break (device, number);
                }
            };
            if drops {
                drop(device);
            } else {
                device.detach().unwrap();
            }
            let shown = backing_file(number).unwrap_or_default();
            assert_eq!(shown.trim_ascii_end(), other.path().as_os_str().as_bytes(), "it was detached");
            std::process::Command::new("losetup")
                .arg("-d")
                .arg(format!("/dev/loop{}", number.minor))
                .status()
                .unwrap();
        }
    }

    #[test]
    fn a_device_whose_file_was_removed_is_still_the_one_to_detach() {
        if unavailable() {
            return;
        }
        let file = image(1 << 20);
        let device = Attach::new().file(file.path()).unwrap();
        let (number, sequence) = (device.number(), device.attachment.sequence);
        drop(file);
        device.detach().unwrap();
        let shown = std::fs::read_to_string(format!("/sys/block/loop{}/diskseq", number.minor));
        assert!(sequence.is_some() == shown.is_ok());
        assert!(backing_file(number).is_none_or(|_| shown.unwrap().trim() != sequence.unwrap().to_string()));
    }

    #[test]
    fn many_at_once_each_get_a_device_of_their_own() {
        if unavailable() {
            return;
        }
        let threads: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn(|| {
                    let file = image(1 << 20);
                    let device = Attach::new().file(file.path()).unwrap();
                    let number = device.number();
                    let backing = attribute(&device, "loop/backing_file");
                    assert_eq!(backing, file.path().to_str().unwrap());
                    (device, number, file)
                })
            })
            .collect();
        let attached: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let mut numbers: Vec<_> = attached.iter().map(|(_, number, _)| *number).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
        for (device, ..) in attached {
            device.detach().unwrap();
        }
    }

    #[test]
    fn what_cannot_be_attached_says_why() {
        if unavailable() {
            return;
        }
        let error = Attach::new().file("/nonexistent/disk").unwrap_err();
        assert_eq!(error.to_string(), "could not open /nonexistent/disk");
        let file = image(1 << 20);
        let error = Attach::new().sector_size(Bytes::new(513)).file(file.path()).unwrap_err();
        assert!(error.to_string().starts_with("could not attach"), "{error}");
    }
}
