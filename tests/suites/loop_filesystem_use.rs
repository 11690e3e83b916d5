//! Filesystems checked, grown, cloned, frozen, trimmed and measured.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use devices::filesystem::{
    Blank, Checked, Depth, Format, Frozen, FsType, Uuid, check, detect, grow_mounted, grow_unmounted,
    set_uuid, thaw, trim, usage,
};
use devices::mount::{MountOptions, Target, WhenBusy, mount, unmount};
use devices::{Bytes, Kind};
use rig::{Disk, kind, skip_unless_installed, skip_unless_loop, tool};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

fn skip() -> bool {
    skip_unless_loop() || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"])
}

fn made(fs: FsType, size: Bytes) -> Result<Disk> {
    let disk = Disk::new(size)?;
    Blank::claim(disk.path())?.make(&Format::new(fs, Uuid::new_v4()))?;
    Ok(disk)
}

/// A mounted filesystem, unmounted when the test ends, however it ends.
struct Mounted {
    directory: TempDir,
    target: Target,
}

impl Mounted {
    fn new(fs: FsType, device: &Path, options: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("gabion-use ").tempdir()?;
        let target = Target::below(directory.path(), &directory.path().join("mnt"))?;
        let _ = target.make_directory()?;
        let _ = mount(device, fs.as_str(), &MountOptions::parse(options)?, &target)?;
        Ok(Self { directory, target })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("mnt").join(name)
    }

    fn end(self) -> Result<()> {
        let _ = unmount(&self.target, WhenBusy::Refuse, PATIENCE)?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.target, WhenBusy::Refuse, Duration::from_secs(5))
            .map(drop)
            .unwrap_or_else(|error| println!("{error}"));
    }
}

/// Whether this process may grow the filesystem while it is mounted: ext4 wants CAP_SYS_RESOURCE (linux/capability.h),
/// which containers often lack. system_filesystem grows ext4 where it is there.
fn may_grow(fs: FsType) -> Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:")).context("no capabilities")?;
    let may = fs != FsType::Ext4 || u64::from_str_radix(field.trim(), 16)? & (1 << 24) != 0;
    if !may {
        println!("{fs} is not grown while it is mounted: no CAP_SYS_RESOURCE here");
    }
    Ok(may)
}

fn content(mib: usize) -> Vec<u8> {
    (0..mib << 20).map(|at| u8::try_from(at * 7 / 3 % 251).unwrap_or_default()).collect()
}

#[test]
fn each_type_grows_while_it_is_used_and_says_whether_it_did() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let mut disk = made(fs, Bytes::mib(320))?;
        // FS-11, EXP-03: mounted under one name, grown under another, with a space in the path.
        let names = tempfile::tempdir()?;
        let (first, second) = (names.path().join("first"), names.path().join("second"));
        symlink(disk.path(), &first)?;
        symlink(disk.path(), &second)?;
        let mounted = Mounted::new(fs, &first, &[])?;
        fs::remove_file(&first)?;
        fs::write(mounted.path("file"), content(8))?;
        let grow = |disk: &Path| grow_mounted(disk, fs, &mounted.target);
        // btrfs knows its device by the name that has gone.
        let by = if fs == FsType::Btrfs { symlink(disk.path(), &first).map(|()| &first)? } else { &second };
        ensure!(!may_grow(fs)? || !grow(by)?.is_made(), "{fs} grew into nothing");
        let before = usage(&mounted.target)?;
        disk.grow(Bytes::mib(640))?;
        if !may_grow(fs)? {
            let error = grow(by).err().context("it grew without the capability")?;
            ensure!(error.to_string().contains("CAP_SYS_RESOURCE"), "{error}");
            mounted.end()?;
            continue;
        }
        let after = grow(by)?;
        println!("{fs}: {} to {}", before.total, after.get().total);
        ensure!(after.is_made() && after.get().total.get() > before.total.get() + (250 << 20));
        ensure!(!grow(by)?.is_made());
        ensure!(fs::read(mounted.path("file"))? == content(8));
        let other = made(fs, Bytes::mib(320))?;
        ensure!(kind(grow(other.path()))? == Kind::Foreign);
        ensure!(kind(grow_unmounted(disk.path(), fs, PATIENCE))? == Kind::InUse);
        mounted.end()?;
        let read_only = Mounted::new(fs, disk.path(), &["ro"])?;
        ensure!(kind(grow_mounted(disk.path(), fs, &read_only.target))? == Kind::InvalidArgument);
        read_only.end()?;
    }
    Ok(())
}

#[test]
fn each_type_grows_while_nobody_uses_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let mut disk = made(fs, Bytes::mib(320))?;
        // EXP-01: used once, so resize2fs wants a check first.
        let mounted = Mounted::new(fs, disk.path(), &[])?;
        fs::write(mounted.path("file"), content(8))?;
        let before = usage(&mounted.target)?;
        mounted.end()?;
        disk.grow(Bytes::mib(640))?;
        grow_unmounted(disk.path(), fs, PATIENCE)?;
        grow_unmounted(disk.path(), fs, PATIENCE)?;
        let mounted = Mounted::new(fs, disk.path(), &[])?;
        let after = usage(&mounted.target)?;
        ensure!(after.total.get() > before.total.get() + (250 << 20), "{before:?} {after:?}");
        ensure!(fs::read(mounted.path("file"))? == content(8));
        mounted.end()?;
    }
    Ok(())
}

#[test]
fn a_clone_of_a_filesystem_in_use_gets_its_own_uuid_and_mounts_beside_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = made(fs, Bytes::mib(320))?;
        let original = Mounted::new(fs, disk.path(), &[])?;
        let mut file = File::create(original.path("file"))?;
        file.write_all(&content(8))?;
        file.sync_all()?;
        drop(file);
        fs::write(original.path("more"), "not synced")?;
        // SNAP-01: the log is dirty, as in a snapshot. btrfs would take a second device of the same uuid for its own
        // as soon as anything scanned it, so its original is unmounted.
        let original = if fs == FsType::Btrfs {
            original.end()?;
            None
        } else {
            Some(original)
        };
        let mut copy = disk.copy()?;
        let uuid = Uuid::new_v4();
        let now = set_uuid(copy.path(), fs, uuid, PATIENCE)?;
        ensure!(now.is_made() && now.get().uuid == uuid);
        ensure!(!set_uuid(copy.path(), fs, uuid, PATIENCE)?.is_made());
        ensure!(detect(copy.path())?.map(|found| found.uuid) == Some(uuid));
        let original = match original {
            Some(original) => original,
            None => Mounted::new(fs, disk.path(), &[])?,
        };
        // SNAP-03: restored into something larger.
        copy.grow(Bytes::mib(480))?;
        let clone = Mounted::new(fs, copy.path(), &[])?;
        ensure!(!may_grow(fs)? || grow_mounted(copy.path(), fs, &clone.target)?.is_made());
        ensure!(
            fs::read(clone.path("file"))? == content(8) && fs::read(original.path("file"))? == content(8)
        );
        fs::write(clone.path("file"), "another")?;
        ensure!(fs::read(original.path("file"))? == content(8));
        ensure!(kind(set_uuid(copy.path(), fs, Uuid::new_v4(), PATIENCE))? == Kind::InUse);
        clone.end()?;
        original.end()?;
        for device in [disk.path(), copy.path()] {
            ensure!(check(device, fs, Depth::Thorough, PATIENCE)? == Checked::Clean);
        }
    }
    Ok(())
}

#[test]
fn checks_mend_what_is_safe_and_refuse_the_rest() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = made(fs, Bytes::mib(320))?;
        let expected = if fs == FsType::Ext4 { Checked::Clean } else { Checked::AtMount };
        ensure!(check(disk.path(), fs, Depth::BeforeMount, PATIENCE)? == expected);
        ensure!(check(disk.path(), fs, Depth::Thorough, PATIENCE)? == Checked::Clean);
        let mounted = Mounted::new(fs, disk.path(), &[])?;
        fs::write(mounted.path("file"), "content")?;
        ensure!(kind(check(disk.path(), fs, Depth::Thorough, PATIENCE))? == Kind::InUse);
        let file = File::open(mounted.path("file"))?;
        file.sync_all()?;
        let dirty = disk.copy()?;
        drop(file);
        mounted.end()?;
        let found = check(dirty.path(), fs, Depth::BeforeMount, PATIENCE)?;
        println!("{fs} with a log to replay: {found:?}");
        ensure!(fs == FsType::Ext4 || found == Checked::AtMount);
    }
    // The root directory's inode is gone: nothing that may be mended without asking.
    let disk = made(FsType::Ext4, Bytes::mib(64))?;
    let device = disk.path().display().to_string();
    tool::run("debugfs", ["-w", "-R", "clri <2>", &device])?;
    let error = check(disk.path(), FsType::Ext4, Depth::Thorough, PATIENCE).err().context("it is clean")?;
    println!("{error}");
    ensure!(error.kind() == Kind::Inconsistent && error.advice().is_some());
    // A link count that is wrong is mended.
    let disk = made(FsType::Ext4, Bytes::mib(64))?;
    let device = disk.path().display().to_string();
    tool::run("debugfs", ["-w", "-R", "set_inode_field <11> links_count 7", &device])?;
    ensure!(check(disk.path(), FsType::Ext4, Depth::Thorough, PATIENCE)? == Checked::Repaired);
    ensure!(check(disk.path(), FsType::Ext4, Depth::Thorough, PATIENCE)? == Checked::Clean);
    // XFS: the first inode cluster is overwritten.
    let disk = made(FsType::Xfs, Bytes::mib(320))?;
    let file = OpenOptions::new().write(true).open(disk.path())?;
    file.write_all_at(&[0xff; 4096], 4096)?;
    file.sync_all()?;
    drop(file);
    ensure!(kind(check(disk.path(), FsType::Xfs, Depth::Thorough, PATIENCE))? == Kind::Inconsistent);
    Ok(())
}

#[test]
fn a_frozen_filesystem_holds_writes_back_until_it_thaws_or_the_limit_passes() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = made(fs, Bytes::mib(320))?;
        let mounted = Mounted::new(fs, disk.path(), &[])?;
        let frozen = Frozen::freeze(&mounted.target, Duration::from_secs(30))?;
        ensure!(kind(Frozen::freeze(&mounted.target, Duration::from_secs(30)))? == Kind::Busy);
        let (done, wait) = mpsc::channel();
        let path = mounted.path("file");
        let writer = thread::spawn(move || done.send(fs::write(path, "late")));
        ensure!(wait.recv_timeout(Duration::from_millis(300)).is_err(), "the write went through");
        frozen.thaw()?;
        wait.recv_timeout(Duration::from_secs(10)).context("the write never ended")??;
        ensure!(writer.join().is_ok());
        ensure!(kind(thaw(&mounted.target))? == Kind::InvalidArgument);
        let start = Instant::now();
        let frozen = Frozen::freeze(&mounted.target, Duration::from_millis(200))?;
        fs::write(mounted.path("file"), "after the limit")?;
        ensure!(start.elapsed() >= Duration::from_millis(200));
        ensure!(kind(frozen.thaw())? == Kind::TimedOut);
        mounted.end()?;
    }
    Ok(())
}

#[test]
fn trimming_gives_space_back_and_usage_is_what_df_says() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = made(fs, Bytes::mib(320))?;
        let mounted = Mounted::new(fs, disk.path(), &[])?;
        let mut file = File::create(mounted.path("file"))?;
        file.write_all(&content(64))?;
        file.sync_all()?;
        let told = usage(&mounted.target)?;
        let path = mounted.path("").display().to_string();
        let df = tool::run("df", ["-B1", "--output=size,used,avail,itotal,iused,iavail", &path])?;
        let df: Vec<u64> = df.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        println!("{fs}: {told:?}");
        ensure!(df[..3] == [told.total.get(), told.used.get(), told.available.get()], "{df:?}");
        match told.inodes {
            Some(inodes) => ensure!(df[3..] == [inodes.total, inodes.used, inodes.free], "{df:?}"),
            None => ensure!(fs == FsType::Btrfs && df[3] == 0),
        }
        drop(file);
        fs::remove_file(mounted.path("file"))?;
        tool::run("sync", ["-f", &path])?;
        let before = disk.image().metadata()?.blocks();
        let mut trimmed = trim(&mounted.target, Bytes::ZERO)?;
        let mut after = disk.image().metadata()?.blocks();
        // XFS frees the blocks of removed files in the background.
        let start = Instant::now();
        while after + (60 << 11) > before && start.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(200));
            tool::run("sync", ["-f", &path])?;
            trimmed = trim(&mounted.target, Bytes::ZERO)?;
            after = disk.image().metadata()?.blocks();
        }
        println!("{fs}: {trimmed} trimmed, {before} to {after} sectors");
        ensure!(trimmed >= Bytes::mib(60) && after + (60 << 11) <= before);
        mounted.end()?;
    }
    // Nothing is mounted: what lies below is not measured instead.
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join("empty"))?;
    let target = Target::below(directory.path(), &directory.path().join("empty"))?;
    ensure!(kind(usage(&target))? == Kind::NotFound && kind(trim(&target, Bytes::ZERO))? == Kind::NotFound);
    Ok(())
}
