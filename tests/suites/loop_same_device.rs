//! Names that lead to another device while something is done: what was looked at is what is changed, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use devices::filesystem::{
    Blank, Checked, Depth, Format, FsType, Uuid, check, detect, grow_unmounted, set_uuid,
};
use devices::gpt::{Disk as Table, Owner};
use devices::{Bytes, Kind};
use rig::filesystem::signatures;
use rig::{Disk, kind, skip_unless_installed, skip_unless_loop, tool};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// How often each is tried while the name moves.
const ROUNDS: usize = 4;

fn skip() -> bool {
    skip_unless_loop() || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "strace"])
}

/// A name that leads to either of two devices.
struct Name {
    directory: TempDir,
}

impl Name {
    fn of(device: &Path) -> Result<Self> {
        let name = Self { directory: tempfile::tempdir()? };
        symlink(device, name.path())?;
        Ok(name)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("device")
    }

    /// As udev does it: there is no moment without the name.
    fn point_to(&self, device: &Path) -> Result<()> {
        let new = self.directory.path().join("new");
        symlink(device, &new)?;
        Ok(fs::rename(new, self.path())?)
    }

    /// Points it to one and the other as long as something runs.
    fn moving<T>(&self, devices: [&Path; 2], work: impl FnOnce() -> T) -> Result<T> {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let mover = scope.spawn(|| -> Result<()> {
                while !done.load(Ordering::Acquire) {
                    for device in devices {
                        self.point_to(device)?;
                        thread::sleep(Duration::from_micros(300));
                    }
                }
                Ok(())
            });
            let result = work();
            done.store(true, Ordering::Release);
            mover.join().ok().context("the mover panicked")??;
            Ok(result)
        })
    }
}

fn made(fs: FsType) -> Result<Disk> {
    let disk = Disk::new(Bytes::mib(320))?;
    Blank::claim(disk.path())?.make(&Format::new(fs, Uuid::new_v4()))?;
    Ok(disk)
}

fn uuid_of(disk: &Disk) -> Result<Uuid> {
    Ok(detect(disk.path())?.context("there is no filesystem")?.uuid)
}

#[test]
fn a_filesystem_is_made_on_the_device_that_was_claimed_wherever_its_name_leads_then() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let (mine, other) = (Disk::new(Bytes::mib(320))?, Disk::new(Bytes::mib(320))?);
        let name = Name::of(mine.path())?;
        let blank = Blank::claim(&name.path())?;
        name.point_to(other.path())?;
        let uuid = Uuid::new_v4();
        let found = blank.make(&Format::new(fs, uuid))?;
        ensure!(found.uuid == uuid && uuid_of(&mine)? == uuid);
        ensure!(signatures(other.path())?.is_empty(), "{fs}: another device was formatted");
    }
    Ok(())
}

#[test]
fn a_loop_device_cannot_get_another_file_between_the_claim_and_the_making() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let (mine, other) = (Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(64))?);
    let blank = Blank::claim(mine.path())?;
    // The kernel detaches at the last close, which is ours.
    tool::run("losetup", ["-d", mine.path().to_str().context("no text")?])?;
    let device = mine.path().to_str().context("no text")?;
    ensure!(tool::run("losetup", [device, other.image().to_str().context("no text")?]).is_err());
    let uuid = Uuid::new_v4();
    blank.make(&Format::new(FsType::Ext4, uuid))?;
    let made =
        tool::run("blkid", ["-p", "-s", "UUID", "-o", "value", mine.image().to_str().context("no text")?])?;
    ensure!(made.trim() == uuid.to_string(), "{made}");
    ensure!(signatures(other.path())?.is_empty());
    Ok(())
}

#[test]
fn a_new_uuid_goes_to_one_device_while_its_name_moves() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disks = [made(fs)?, made(fs)?];
        let name = Name::of(disks[0].path())?;
        for _ in 0..ROUNDS {
            let before = [uuid_of(&disks[0])?, uuid_of(&disks[1])?];
            let uuid = Uuid::new_v4();
            let paths = [disks[0].path(), disks[1].path()];
            let result = name.moving(paths, || set_uuid(&name.path(), fs, uuid, PATIENCE))?;
            let after = [uuid_of(&disks[0])?, uuid_of(&disks[1])?];
            let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
            match result {
                Ok(made) => {
                    ensure!(made.is_made() && changed == 1 && after.contains(&uuid), "{fs}: {after:?}");
                }
                // The name moved between the look at its number and the opening.
                Err(error) => ensure!(error.kind() == Kind::Busy && changed == 0, "{fs}: {error}"),
            }
        }
        for disk in &disks {
            ensure!(check(disk.path(), fs, Depth::Thorough, PATIENCE)? == Checked::Clean);
        }
    }
    Ok(())
}

#[test]
fn a_filesystem_grows_to_the_size_of_its_own_device_while_its_name_moves() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let mut large = made(fs)?;
        large.grow(Bytes::mib(640))?;
        let small = made(fs)?;
        let name = Name::of(large.path())?;
        for _ in 0..ROUNDS {
            let result = name.moving([large.path(), small.path()], || {
                let checked = check(&name.path(), fs, Depth::Thorough, PATIENCE);
                checked.and_then(|_| grow_unmounted(&name.path(), fs, PATIENCE))
            })?;
            ensure!(result.as_ref().err().is_none_or(|error| error.kind() == Kind::Busy), "{fs}: {result:?}");
        }
        for disk in [&large, &small] {
            ensure!(check(disk.path(), fs, Depth::Thorough, PATIENCE)? == Checked::Clean, "{fs}");
        }
    }
    Ok(())
}

#[test]
fn a_table_is_made_on_the_disk_that_was_looked_at_while_its_name_moves() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let owner: Owner = "same-device".parse()?;
    for round in 0..2 * ROUNDS {
        let disks = [
            Disk::partitioned(Bytes::mib(16), Bytes::new(512))?,
            Disk::partitioned(Bytes::mib(16), Bytes::new(512))?,
        ];
        // One of them is mounted, held or claimed by somebody: nothing may be made on it.
        let held = Blank::claim(disks[0].path())?;
        let name = Name::of(disks[1].path())?;
        let result =
            name.moving([disks[0].path(), disks[1].path()], || Table::create(&name.path(), &owner))?;
        drop(held);
        ensure!(
            signatures(disks[0].path())?.is_empty(),
            "round {round}: a disk that somebody holds was changed"
        );
        match result {
            Ok(table) => {
                ensure!(table.table().partitions().is_empty() && !signatures(disks[1].path())?.is_empty());
            }
            Err(error) => ensure!(
                matches!(error.kind(), Kind::Busy | Kind::InUse) && signatures(disks[1].path())?.is_empty(),
                "{error}"
            ),
        }
    }
    Ok(())
}

/// Runs this test's own work on a device in another process, killed at its n-th call of a kind; whether it was.
fn killed(test: &str, device: &Path, call: &str, nth: u32) -> Result<bool> {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .arg("-e")
        .arg(format!("inject={call}:signal=SIGKILL:when={nth}"))
        .arg(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env("GABION_WORK_ON", device)
        .output()?
        .status;
    Ok(!status.success())
}

/// The program for btrfs writes its superblocks three times, and does not go on where it was killed.
#[test]
fn a_btrfs_whose_uuid_was_changed_by_half_is_told_as_that_and_used_for_nothing() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let test = "a_btrfs_whose_uuid_was_changed_by_half_is_told_as_that_and_used_for_nothing";
    if let Some(device) = std::env::var_os("GABION_WORK_ON") {
        let _ = set_uuid(Path::new(&device), FsType::Btrfs, Uuid::new_v4(), PATIENCE)?;
        return Ok(());
    }
    let (mut half, mut kills) = (0, 0);
    for nth in 1..100 {
        let disk = made(FsType::Btrfs)?;
        let before = uuid_of(&disk)?;
        if !killed(test, disk.path(), "pwrite64", nth)? {
            break;
        }
        kills += 1;
        let again = set_uuid(disk.path(), FsType::Btrfs, Uuid::new_v4(), PATIENCE);
        match again {
            Ok(_) => {}
            Err(error) if error.kind() == Kind::Inconsistent => {
                ensure!(error.to_string().contains("never ended"), "{error}");
                let grown = grow_unmounted(disk.path(), FsType::Btrfs, PATIENCE);
                ensure!(kind(grown)? == Kind::Inconsistent, "what the kernel does not mount was grown");
                half += 1;
            }
            Err(error) => bail!("{before}, killed at the {nth}th write: {error}"),
        }
    }
    println!("FIGURES: {half} of {kills} kills left a change by half");
    ensure!(half > 0 && kills < 99, "{half} of {kills}");
    Ok(())
}

#[test]
fn nothing_stays_mounted_when_who_grows_or_copies_is_killed() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let test = "nothing_stays_mounted_when_who_grows_or_copies_is_killed";
    if let Some(device) = std::env::var_os("GABION_WORK_ON") {
        let device = Path::new(&device);
        let fs = detect(device)?.context("no filesystem")?.fs;
        grow_unmounted(device, fs, PATIENCE)?;
        let _ = set_uuid(device, fs, Uuid::new_v4(), PATIENCE)?;
        return Ok(());
    }
    for fs in [FsType::Xfs, FsType::Btrfs] {
        let mut disk = made(fs)?;
        let mut size = 320;
        for call in ["fsconfig", "fsmount", "ioctl"] {
            let step = if call == "ioctl" { 4 } else { 1 };
            for nth in (1..).step_by(step) {
                size += 16;
                disk.grow(Bytes::mib(size))?;
                if !killed(test, disk.path(), call, nth)? {
                    println!("{fs}: killed at the calls of {call} before the {nth}th");
                    ensure!(nth > 1, "{call} was never called");
                    break;
                }
                ensure!(
                    !fs::read_to_string("/proc/mounts")?.contains(disk.path().to_str().context("no text")?)
                );
                // The kernel unmounts what nobody has open any more, by itself and soon.
                let start = Instant::now();
                let refused = kind(Blank::claim(disk.path()))?;
                ensure!(refused == Kind::Foreign, "{fs} is still in use after {:?}", start.elapsed());
                // What was killed was the kill, and no failure that comes again each time.
                match grow_unmounted(disk.path(), fs, PATIENCE) {
                    Err(error) if fs == FsType::Btrfs && error.kind() == Kind::Inconsistent => {
                        (disk, size) = (made(fs)?, 320);
                    }
                    grown => grown?,
                }
            }
        }
        grow_unmounted(disk.path(), fs, PATIENCE)?;
        ensure!(check(disk.path(), fs, Depth::Thorough, PATIENCE)? == Checked::Clean);
    }
    Ok(())
}
