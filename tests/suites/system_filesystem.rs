//! Filesystems and mounts on devices that fail, stop, grow and change their names.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use devices::filesystem::{Blank, Format, FsType, Record, State, Uuid, detect, grow_mounted, usage};
use devices::mount::{MountOptions, MountTable, Present, Target, Unmounted, WhenBusy, mount, unmount};
use devices::{Bytes, Change, Error, Kind};
use rig::{Disk, Faulty, kind, skip_unless_dm, tool};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);

/// A record that may be read and must not change.
struct Sealed(State);

impl Record for Sealed {
    fn state(&self) -> Result<State, Error> {
        Ok(self.0)
    }

    fn set_state(&mut self, state: State) -> Result<(), Error> {
        Err(Error::new(Kind::Other, format!("change the record to {state:?}")))
    }
}

fn place(directory: &TempDir) -> Result<Target> {
    let target = Target::below(directory.path(), &directory.path().join("mnt"))?;
    let _ = target.make_directory()?;
    Ok(target)
}

fn make(fs: FsType, device: &Path) -> Result<Uuid> {
    let uuid = Uuid::new_v4();
    Blank::claim(device)?.make(&Format::new(fs, uuid))?;
    Ok(uuid)
}

/// A device-mapper device of a test's own, removed when the test ends.
struct Mapped(String);

impl Mapped {
    fn new(disk: &Disk, size: Bytes) -> Result<Self> {
        let name = format!("gabion-fs-{}", std::process::id());
        tool::run("dmsetup", ["create", &name, "--table", &Self::table(disk, size)])?;
        Ok(Self(name))
    }

    fn table(disk: &Disk, size: Bytes) -> String {
        format!("0 {} linear {} 0", size.get() / 512, disk.path().display())
    }

    fn path(&self) -> std::path::PathBuf {
        Path::new("/dev/mapper").join(&self.0)
    }

    fn grow(&self, disk: &Disk, size: Bytes) -> Result<()> {
        tool::run("dmsetup", ["reload", &self.0, "--table", &Self::table(disk, size)])?;
        tool::run("dmsetup", ["resume", &self.0]).map(drop)
    }

    fn rename(&mut self) -> Result<()> {
        let name = format!("{}-renamed", self.0);
        tool::run("dmsetup", ["rename", &self.0, &name])?;
        self.0 = name;
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        for command in ["resume", "remove"] {
            if let Err(error) = tool::run("dmsetup", [command, &self.0]) {
                println!("left behind: {error:#}");
            }
        }
    }
}

#[test]
fn filesystems_grow_while_used_after_their_device_was_renamed() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    for fs in [FsType::Ext4, FsType::Xfs] {
        let disk = Disk::new(Bytes::mib(512))?;
        let mut device = Mapped::new(&disk, Bytes::mib(320))?;
        make(fs, &device.path())?;
        let directory = tempfile::tempdir()?;
        let target = place(&directory)?;
        let _ = mount(&device.path(), fs.as_str(), &MountOptions::new(), &target)?;
        let path = directory.path().join("mnt/file");
        fs::write(&path, "content")?;
        // FS-11: what the mount table calls it is no name of the device any more.
        device.rename()?;
        device.grow(&disk, Bytes::mib(512))?;
        let before = usage(&target)?;
        let after = grow_mounted(&device.path(), fs, &target)?;
        ensure!(
            after.is_made() && after.get().total.get() > before.total.get() + (150 << 20),
            "{before:?} {after:?}"
        );
        ensure!(!grow_mounted(&device.path(), fs, &target)?.is_made());
        ensure!(!mount(&device.path(), fs.as_str(), &MountOptions::new(), &target)?.is_made());
        ensure!(fs::read(&path)? == b"content");
        let _ = unmount(&target, WhenBusy::Refuse, PATIENCE)?;
    }
    Ok(())
}

#[test]
fn a_device_that_cannot_be_read_is_not_taken_for_a_blank_one() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    // FS-01: blkid says the same of it as of a blank device.
    let device = Faulty::over(Disk::new(Bytes::mib(320))?)?;
    let uuid = make(FsType::Xfs, device.path())?;
    device.fail()?;
    for state in [State::New, State::Formatting, State::Made(FsType::Xfs)] {
        let format = Format::new(FsType::Xfs, Uuid::new_v4());
        let result = devices::filesystem::ensure(device.path(), &format, &mut Sealed(state));
        ensure!(kind(result)? == Kind::Io, "{state:?}");
    }
    ensure!(kind(detect(device.path()))? == Kind::Io);
    device.recover()?;
    ensure!(detect(device.path())?.map(|found| found.uuid) == Some(uuid));
    Ok(())
}

#[test]
fn a_dead_filesystem_is_seen_in_the_table_and_unmounts() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    // FS-07: stat, ls and mountpoint all answer EIO.
    let device = Faulty::over(Disk::new(Bytes::mib(320))?)?;
    make(FsType::Xfs, device.path())?;
    let directory = tempfile::tempdir()?;
    let target = place(&directory)?;
    let root = directory.path().join("mnt");
    for open in [false, true] {
        let _ = mount(device.path(), "xfs", &MountOptions::new(), &target)?;
        let file = File::create(root.join("file"))?;
        device.fail()?;
        file.sync_all().err().context("the failing device takes writes")?;
        let start = Instant::now();
        while fs::metadata(&root).is_ok() && start.elapsed() < PATIENCE {
            // The log finds out, and shuts the filesystem down.
            File::create(root.join("another")).and_then(|file| file.sync_all()).ok();
        }
        println!("stat: {:?}", fs::metadata(&root));
        ensure!(matches!(target.present()?, Present::Mounted(_)));
        let file = open.then_some(file);
        let soon = Duration::from_millis(300);
        let ended = if file.is_some() {
            ensure!(kind(unmount(&target, WhenBusy::Refuse, soon))? == Kind::InUse);
            unmount(&target, WhenBusy::DetachIfSafe, soon)?
        } else {
            unmount(&target, WhenBusy::Refuse, PATIENCE)?
        };
        let expected = if open { Unmounted::Detached } else { Unmounted::Gone };
        ensure!(ended == Change::Made(expected), "{ended:?}");
        ensure!(MountTable::read()?.at(&root).is_none());
        ensure!(!unmount(&target, WhenBusy::Refuse, PATIENCE)?.is_made());
        drop(file);
        device.recover()?;
    }
    ensure!(target.remove()?.is_made());
    Ok(())
}

#[test]
fn a_suspended_device_is_refused_at_once_and_never_waited_for() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(320))?;
    let device = Mapped::new(&disk, Bytes::mib(320))?;
    let directory = tempfile::tempdir()?;
    let target = place(&directory)?;
    tool::run("dmsetup", ["suspend", &device.0])?;
    let start = Instant::now();
    let format = Format::new(FsType::Ext4, Uuid::new_v4());
    ensure!(
        kind(devices::filesystem::ensure(&device.path(), &format, &mut Sealed(State::New)))? == Kind::Busy
    );
    ensure!(kind(detect(&device.path()))? == Kind::Busy);
    ensure!(kind(mount(&device.path(), "ext4", &MountOptions::new(), &target))? == Kind::Busy);
    ensure!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    Ok(())
}
