//! A cache set and its backing devices on disks of one test, through the library; gone when dropped.
//!
//! ```no_run
//! use bcache::CacheMode;
//! use devices::Bytes;
//! use rig::caching::Caching;
//!
//! let caching = Caching::new(1, CacheMode::WriteBack)?;
//! println!("{}", caching.device(0)?.display());
//! # Ok::<(), anyhow::Error>(())
//! ```

use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bcache::{
    Backing, Bcache, Blank, CacheMode, CacheSet, Kind, Knob, NewBacking, NewCache, Registered, Superblock,
    Uuid, Writeback,
};
use devices::Bytes;

use crate::{Disk, skip_unless_loop, tool};

/// Says why on one line and returns true where this kernel has no bcache.
#[must_use]
pub fn skip_unless_bcache() -> bool {
    if skip_unless_loop() {
        return true;
    }
    let _ = std::process::Command::new("modprobe").args(["-q", "bcache"]).status();
    let missing = !Bcache::new().is_loaded();
    if missing {
        println!("SKIPPED: this kernel has no bcache");
    }
    missing
}

/// Lets work go on, whatever its progress.
pub fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The size of a cache disk; sparse.
pub const CACHE: Bytes = Bytes::mib(320);
/// The size of a backing disk; sparse.
pub const BACKING: Bytes = Bytes::mib(256);

/// Formats a disk as a cache device with buckets of 64 KiB, so that small disks have enough of them.
///
/// # Errors
///
/// If it is not blank.
pub fn format_cache(path: &Path) -> Result<Superblock> {
    Ok(NewCache::new().bucket_size(Bytes::kib(64)).format(Blank::claim(path)?)?)
}

/// Formats a disk as a backing device in the set of a cache device.
///
/// # Errors
///
/// If it is not blank.
pub fn format_backing(path: &Path, cache: &Superblock, mode: CacheMode) -> Result<Superblock> {
    Ok(NewBacking::new().mode(mode).in_set_of(cache).format(Blank::claim(path)?)?)
}

/// Ends everything of bcache on this machine when dropped, however it is: for tests, on disks that vanish.
#[derive(Debug)]
pub struct Clear;

impl Drop for Clear {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(20);
        let bcache = Bcache::new();
        let mut at_rest = false;
        while Instant::now() < end {
            let backings = bcache.backings().unwrap_or_default();
            let sets = bcache.sets().unwrap_or_default();
            if backings.is_empty() && sets.is_empty() {
                if at_rest {
                    return;
                }
                // What udev was told before the stop it may register after it; it can also be stuck on a test's device.
                let _ = tool::run("udevadm", ["settle", "--timeout=5"]);
                at_rest = true;
                continue;
            }
            at_rest = false;
            for backing in &backings {
                let _ = std::fs::write(format!("/sys/dev/block/{}/bcache/stop", backing.number()), "1");
            }
            for set in &sets {
                let _ = std::fs::write(format!("/sys/fs/bcache/{}/stop", set.uuid()), "1");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// One cache disk and some backing disks under it, all registered.
// The order of the fields is the order of their end.
#[derive(Debug)]
pub struct Caching {
    _clear: Clear,
    /// The cache disk.
    pub cache: Disk,
    /// The backing disks.
    pub backings: Vec<Disk>,
    /// The cache set.
    pub set: Uuid,
    /// The backing devices.
    pub uuids: Vec<Uuid>,
}

impl Caching {
    /// A cache set with `count` backing devices attached.
    ///
    /// # Errors
    ///
    /// If the disks cannot be made, formatted or registered.
    pub fn new(count: usize, mode: CacheMode) -> Result<Self> {
        let cache = Disk::new(CACHE)?;
        let superblock = format_cache(cache.path())?;
        let backings: Vec<Disk> = (0..count).map(|_| Disk::new(BACKING)).collect::<Result<_>>()?;
        let uuids: Vec<Uuid> = backings
            .iter()
            .map(|disk| Ok(format_backing(disk.path(), &superblock, mode)?.uuid))
            .collect::<Result<_>>()?;
        let set = superblock.set.context("a cache device has a set")?;
        let caching = Self::of(cache, backings, set, uuids);
        caching.register()?;
        Ok(caching)
    }

    /// What was formatted otherwise.
    #[must_use]
    pub fn of(cache: Disk, backings: Vec<Disk>, set: Uuid, uuids: Vec<Uuid>) -> Self {
        Self { _clear: Clear, cache, backings, set, uuids }
    }

    /// Registers all disks, the cache first, and waits for the cached devices.
    ///
    /// # Errors
    ///
    /// If one cannot be registered, or does not run.
    pub fn register(&self) -> Result<()> {
        let bcache = Bcache::new();
        let _ = bcache.register(self.cache.path())?;
        for disk in &self.backings {
            let _ = bcache.register(disk.path())?;
        }
        (0..self.backings.len()).try_for_each(|nth| self.device(nth).map(drop))
    }

    /// The cached device of a backing disk.
    ///
    /// # Errors
    ///
    /// If it does not appear within ten seconds.
    pub fn device(&self, nth: usize) -> Result<PathBuf> {
        wait_for_device(&self.backing(nth)?)
    }

    /// A backing device as the library sees it now.
    ///
    /// # Errors
    ///
    /// If it is not registered.
    pub fn backing(&self, nth: usize) -> Result<Backing> {
        Ok(Bcache::new().backing(self.uuids[nth])?)
    }

    /// The cache set as the library sees it now.
    ///
    /// # Errors
    ///
    /// If it is not registered.
    pub fn set(&self) -> Result<CacheSet> {
        Ok(Bcache::new().set(self.set)?)
    }

    /// Keeps everything that is written dirty until it is told otherwise.
    ///
    /// # Errors
    ///
    /// If a knob cannot be turned.
    pub fn keep_dirty(&self, nth: usize) -> Result<()> {
        let backing = self.backing(nth)?;
        backing.turn(&Knob::SequentialCutoff(Bytes::ZERO))?;
        self.set()?.turn(bcache::SetKnob::CongestedWrite(Duration::ZERO))?;
        Ok(backing.turn(&Knob::Writeback(Writeback::Paused))?)
    }

    /// Stops the backing devices, then the set, and waits until udev has seen all that it will see; everything stays on the
    /// disks.
    ///
    /// # Errors
    ///
    /// If one is in use.
    pub fn stop(&self) -> Result<()> {
        stop_all(&self.uuids, self.set)
    }
}

/// How often what udev registers behind our back is stopped again.
const STOPS: u32 = 10;

/// Stops backing devices, then their set, until none of them is there and udev has nothing more to do: it may come late to
/// what our own writes told it, and registers a device that was stopped meanwhile.
///
/// # Errors
///
/// If one is in use, or udev does not come to rest.
pub fn stop_all(backings: &[Uuid], set: Uuid) -> Result<()> {
    let bcache = Bcache::new();
    for _ in 0..STOPS {
        for backing in backings {
            match bcache.backing(*backing) {
                Ok(backing) => drop(backing.stop()?),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        match bcache.set(set).and_then(|set| set.stop()) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), Kind::CacheMissing | Kind::NotFound) => {}
            // A backing device came back in this very moment.
            Err(error) if error.kind() == Kind::InUse => continue,
            Err(error) => return Err(error.into()),
        }
        tool::run("udevadm", ["settle"])?;
        if bcache.set(set).is_err() && backings.iter().all(|backing| bcache.backing(*backing).is_err()) {
            return Ok(());
        }
    }
    anyhow::bail!("udev has registered them again after each of {STOPS} stops")
}

/// Registers a device and gives the backing device that it is.
///
/// # Errors
///
/// If it is none, or cannot be registered.
pub fn register_backing(path: &Path) -> Result<Backing> {
    match Bcache::new().register(path)?.into_inner() {
        Registered::Backing(backing) => Ok(backing),
        Registered::Cache(set) => anyhow::bail!("{} is of the cache set {}", path.display(), set.uuid()),
    }
}

/// Registers a device and gives the cache set that it is.
///
/// # Errors
///
/// If it is none, or cannot be registered.
pub fn register_cache(path: &Path) -> Result<CacheSet> {
    match Bcache::new().register(path)?.into_inner() {
        Registered::Cache(set) => Ok(set),
        Registered::Backing(backing) => {
            anyhow::bail!("{} is the backing device {}", path.display(), backing.uuid())
        }
    }
}

/// Makes, registers and stops a cache set with a backing device so many times: everybody at once, udev and two of us, in
/// both orders.
///
/// # Errors
///
/// If any of us fails, or the cached device does not appear.
pub fn make_under_udevd(rounds: u32) -> Result<()> {
    let _clear = Clear;
    let bcache = Bcache::new();
    for round in 0..rounds {
        let disks = [Disk::new(CACHE)?, Disk::new(BACKING)?];
        let cache = format_cache(disks[0].path())?;
        let made = format_backing(disks[1].path(), &cache, CacheMode::WriteBack)?;
        let results = std::thread::scope(|scope| {
            let register = |order: [usize; 2]| {
                let (bcache, paths) = (&bcache, order.map(|nth| disks[nth].path()));
                scope.spawn(move || paths.iter().try_for_each(|path| bcache.register(path).map(drop)))
            };
            [register([0, 1]), register([1, 0])].map(std::thread::ScopedJoinHandle::join)
        });
        for result in results {
            let result = result.map_err(|_| anyhow::anyhow!("a thread panicked"))?;
            result.with_context(|| format!("round {round}"))?;
        }
        let set = bcache.set(cache.set.context("a cache device has a set")?)?;
        let backing = bcache.backing(made.uuid)?;
        wait_for_device(&backing)?;
        ensure!(set.backings()? == std::slice::from_ref(&backing), "another one is attached");
        stop_all(&[made.uuid], set.uuid())?;
    }
    Ok(())
}

/// The cached device, which must appear within ten seconds.
fn wait_for_device(backing: &Backing) -> Result<PathBuf> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(device) = backing.device()?
            && device.exists()
        {
            return Ok(device);
        }
        ensure!(Instant::now() < end, "{} does not run: {:?}", backing.uuid(), backing.status());
        std::thread::sleep(Duration::from_millis(20));
    }
}

const STEP: usize = 1 << 20;
const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits().cast_signed();

/// Writes `mib` MiB that follow from `seed` at the start of a device, past the page cache, and flushes it.
///
/// # Errors
///
/// If it cannot be written.
pub fn fill(device: &Path, seed: u64, mib: usize) -> Result<()> {
    let file = OpenOptions::new().write(true).custom_flags(O_DIRECT).open(device)?;
    let mut buffer = vec![0; STEP + 4096];
    let start = buffer.as_ptr().align_offset(4096);
    for nth in 0..mib {
        let piece = &mut buffer[start..start + STEP];
        pattern(seed, nth, piece);
        file.write_all_at(piece, (nth * STEP) as u64)?;
    }
    Ok(file.sync_all()?)
}

/// Fails unless the device has, from the byte `offset` on, what [`fill`] wrote; read past the page cache.
///
/// # Errors
///
/// If it differs or cannot be read.
pub fn check(device: &Path, offset: u64, seed: u64, mib: usize) -> Result<()> {
    let file: File = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(device)?;
    let mut buffer = vec![0; STEP + 4096];
    let start = buffer.as_ptr().align_offset(4096);
    let mut expected = vec![0; STEP];
    for nth in 0..mib {
        let piece = &mut buffer[start..start + STEP];
        file.read_exact_at(piece, offset + (nth * STEP) as u64)?;
        pattern(seed, nth, &mut expected);
        ensure!(*piece == expected, "MiB {nth} of {} has another content", device.display());
    }
    Ok(())
}

fn pattern(seed: u64, nth: usize, piece: &mut [u8]) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (nth as u64) << 32 | 1;
    for word in piece.chunks_exact_mut(8) {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
}
