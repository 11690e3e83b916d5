//! Filesystems made, found and refused, against what the distribution's own tools say.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::filesystem::{
    Blank, Format, FsType, MakeOptions, Record, State, Uuid, detect, ensure as ensure_made,
};
use devices::mount::{MountOptions, Target, WhenBusy, mount, unmount};
use devices::{Bytes, Effect, Error, Kind};
use rig::{Disk, kind, skip_unless_installed, skip_unless_loop, tool};

const PATIENCE: Duration = Duration::from_secs(5);

/// A record in memory, and how often it changed.
struct Book {
    state: State,
    changes: Vec<State>,
}

impl Book {
    fn new() -> Self {
        Self { state: State::New, changes: Vec::new() }
    }
}

impl Record for Book {
    fn state(&self) -> Result<State, Error> {
        Ok(self.state)
    }

    fn set_state(&mut self, state: State) -> Result<(), Error> {
        self.state = state;
        self.changes.push(state);
        Ok(())
    }
}

fn skip() -> bool {
    skip_unless_loop() || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"])
}

/// What `blkid` says of a device, by name.
fn blkid(device: &Path) -> Result<BTreeMap<String, String>> {
    let text = tool::run("blkid", ["-p", "-u", "filesystem", "-o", "export", &device.display().to_string()])?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect())
}

/// How many sectors were written to the device (Documentation/block/stat.rst), after all that was waiting.
fn writes(device: &Path) -> Result<u64> {
    OpenOptions::new().write(true).open(device)?.sync_all()?;
    let name = device.file_name().context("no name")?.display().to_string();
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
    Ok(stat.split_whitespace().nth(6).context("no count of sectors")?.parse()?)
}

fn write_at(device: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    let file = OpenOptions::new().write(true).open(device)?;
    file.write_all_at(bytes, offset)?;
    Ok(file.sync_all()?)
}

/// Mounts it, uses it and unmounts it.
fn use_once(fs: FsType, device: &Path, body: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("mnt");
    let target = Target::below(directory.path(), &path)?;
    let _ = target.make_directory()?;
    let _ = mount(device, fs.as_str(), &MountOptions::new(), &target)?;
    let result = body(&path);
    let _ = unmount(&target, WhenBusy::Refuse, PATIENCE)?;
    result
}

#[test]
fn each_type_is_made_once_on_the_smallest_device_and_mounts() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = Disk::new(fs.minimum_size())?;
        let format = Format::new(fs, Uuid::new_v4()).with_label("gabion-1")?;
        let mut book = Book::new();
        let made = ensure_made(disk.path(), &format, &mut book)?;
        ensure!(made.is_made() && made.get().uuid == format.uuid());
        ensure!(book.changes == [State::Formatting, State::Made(fs)]);
        let told = blkid(disk.path())?;
        ensure!(told["TYPE"] == fs.as_str() && told["UUID"] == format.uuid().to_string(), "{told:?}");
        ensure!(told["LABEL"] == "gabion-1");
        use_once(fs, disk.path(), |path| Ok(fs::write(path.join("file"), "content")?))?;
        // Again, with another uuid: nothing is made, and the file is there.
        let again = ensure_made(disk.path(), &Format::new(fs, Uuid::new_v4()), &mut book)?;
        ensure!(!again.is_made() && again.get().uuid == format.uuid() && book.changes.len() == 2);
        use_once(fs, disk.path(), |path| {
            // While it is mounted too.
            ensure!(
                !ensure_made(
                    disk.path(),
                    &format,
                    &mut Book { state: State::Made(fs), changes: Vec::new() }
                )?
                .is_made()
            );
            ensure!(kind(Blank::claim(disk.path()))? == Kind::InUse);
            ensure!(fs::read(path.join("file"))? == b"content");
            Ok(())
        })?;
        let smaller = Disk::new(Bytes::new(fs.minimum_size().get() - 4096))?;
        let refused = Blank::claim(smaller.path())?.make(&format);
        ensure!(kind(refused)? == Kind::NoSpace);
    }
    Ok(())
}

#[test]
fn any_signature_at_all_is_refused_and_nothing_is_written() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let makers: [(&str, &[&str]); 7] = [
        ("mkfs.ext4", &["-q", "-F"]),
        ("mkfs.xfs", &["-q", "-f"]),
        ("mkfs.btrfs", &["-q", "-f"]),
        ("mkswap", &[]),
        ("sgdisk", &["--zap-all", "--new=1:0:0"]),
        ("pvcreate", &["--config", "devices/use_devicesfile=0 global/use_lvmpolld=0", "-qq", "-y", "-ff"]),
        ("mke2fs", &["-q", "-F", "-t", "ext2"]),
    ];
    for (program, arguments) in makers {
        let disk = Disk::new(Bytes::mib(320))?;
        let device = disk.path().display().to_string();
        if let Err(error) = tool::run(program, arguments.iter().copied().chain([device.as_str()])) {
            println!("{program} could not make its own: {error:#}");
            ensure!(program == "pvcreate" || program == "sgdisk");
            continue;
        }
        let before = writes(disk.path())?;
        for fs in FsType::ALL {
            let mut book = Book::new();
            ensure!(
                kind(ensure_made(disk.path(), &Format::new(fs, Uuid::new_v4()), &mut book))? == Kind::Foreign
            );
            ensure!(book.changes.is_empty());
            // The same when an attempt was begun: another uuid is not ours.
            book.state = State::Formatting;
            ensure!(
                kind(ensure_made(disk.path(), &Format::new(fs, Uuid::new_v4()), &mut book))? == Kind::Foreign
            );
        }
        ensure!(writes(disk.path())? == before, "{program}: the device was written");
    }
    Ok(())
}

#[test]
fn contradicting_signatures_and_a_device_in_use_are_refused() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(320))?;
    let format = Format::new(FsType::Ext4, Uuid::new_v4());
    let held = OpenOptions::new().read(true).custom_flags_exclusive().open(disk.path())?;
    ensure!(kind(ensure_made(disk.path(), &format, &mut Book::new()))? == Kind::InUse);
    drop(held);
    // Made by hand: the magics of XFS and of ext2 at once.
    write_at(disk.path(), 1024 + 56, &[0x53, 0xef])?;
    tool::run("mkswap", [disk.path().display().to_string()])?;
    write_at(disk.path(), 0, b"XFSB")?;
    ensure!(kind(ensure_made(disk.path(), &format, &mut Book::new()))? == Kind::Foreign);
    // Two bytes at the very end are enough.
    let disk = Disk::new(Bytes::mib(320))?;
    write_at(disk.path(), (320 << 20) - 512, b"JM")?;
    let result = ensure_made(disk.path(), &format, &mut Book::new());
    println!("{result:?}");
    let known = tool::run("wipefs", ["--no-act", "--noheadings", &disk.path().display().to_string()])?;
    ensure!(known.trim().is_empty() == result.is_ok(), "libblkid says {known:?}");
    Ok(())
}

trait Exclusive {
    fn custom_flags_exclusive(&mut self) -> &mut Self;
}

impl Exclusive for OpenOptions {
    fn custom_flags_exclusive(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.custom_flags(i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap_or_default())
    }
}

#[test]
fn a_killed_attempt_is_made_again_and_only_with_its_own_uuid() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for fs in FsType::ALL {
        let disk = Disk::new(Bytes::mib(320))?;
        let format = Format::new(fs, Uuid::new_v4());
        let mut book = Book::new();
        for micros in [0, 500, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000] {
            let hasty = format.clone().with_patience(Duration::from_micros(micros));
            match ensure_made(disk.path(), &hasty, &mut book) {
                Ok(_) => {
                    // It was quick enough; as if the record had not been written.
                    book.state = State::Formatting;
                }
                Err(error) => {
                    println!("{error}");
                    ensure!((error.kind(), error.effect()) == (Kind::TimedOut, Effect::Unknown), "{error:?}");
                    ensure!(book.state == State::Formatting);
                }
            }
        }
        ensure!(ensure_made(disk.path(), &format, &mut book)?.is_made() && book.state == State::Made(fs));
        // An attempt with another uuid never takes it for its own.
        let mut other = Book { state: State::Formatting, changes: Vec::new() };
        ensure!(
            kind(ensure_made(disk.path(), &Format::new(fs, Uuid::new_v4()), &mut other))? == Kind::Foreign
        );
        use_once(fs, disk.path(), |path| Ok(fs::write(path.join("file"), "content")?))?;
    }
    Ok(())
}

#[test]
fn a_broken_superblock_is_never_taken_for_a_new_device() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // FS-02: blank to libblkid, and full of data.
    let disk = Disk::new(Bytes::mib(320))?;
    let device = disk.path().display().to_string();
    let format = Format::new(FsType::Ext4, Uuid::new_v4());
    let mut book = Book::new();
    let _ = ensure_made(disk.path(), &format, &mut book)?;
    use_once(FsType::Ext4, disk.path(), |path| Ok(fs::write(path.join("file"), "content")?))?;
    write_at(disk.path(), 1024, &[0; 1024])?;
    ensure!(detect(disk.path())?.is_none());
    let error = ensure_made(disk.path(), &format, &mut book).err().context("made again")?;
    println!("{error}");
    ensure!(error.kind() == Kind::Inconsistent && book.changes.len() == 2);
    // The advice is good.
    let advice = error.advice().context("no advice")?;
    let block = advice.split("-b ").nth(1).and_then(|rest| rest.split(' ').next()).context("no block")?;
    let repaired = tool::run("e2fsck", ["-fy", "-b", block, "-B", "4096", &device]);
    println!("{repaired:?}");
    ensure!(!ensure_made(disk.path(), &format, &mut book)?.is_made());
    use_once(FsType::Ext4, disk.path(), |path| {
        ensure!(fs::read(path.join("file"))? == b"content");
        Ok(())
    })
}

#[test]
fn bytes_that_look_like_an_arrays_do_not_hide_a_filesystem() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // LVM-03: written after the filesystem was made.
    for fs in FsType::ALL {
        let disk = Disk::new(Bytes::mib(320))?;
        let format = Format::new(fs, Uuid::new_v4());
        let mut book = Book::new();
        let _ = ensure_made(disk.path(), &format, &mut book)?;
        write_at(disk.path(), (320 << 20) - 512, b"JM")?;
        ensure!(detect(disk.path())?.map(|found| found.uuid) == Some(format.uuid()));
        ensure!(!ensure_made(disk.path(), &format, &mut book)?.is_made());
        use_once(fs, disk.path(), |_| Ok(()))?;
    }
    Ok(())
}

#[test]
fn another_type_is_refused_and_user_options_reach_the_filesystem() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(320))?;
    let device = disk.path().display().to_string();
    let mut book = Book::new();
    let options = MakeOptions::parse(FsType::Ext4, ["-m 3", "-O ^huge_file,quota,project", "-E stride=16"])?;
    let format = Format::new(FsType::Ext4, Uuid::new_v4()).with_options(options);
    let _ = ensure_made(disk.path(), &format, &mut book)?;
    // CSI-13.
    ensure!(
        kind(ensure_made(disk.path(), &Format::new(FsType::Xfs, Uuid::new_v4()), &mut book))?
            == Kind::AlreadyExists
    );
    ensure!(kind("ntfs".parse::<FsType>())? == Kind::InvalidArgument);
    let told = tool::run("dumpe2fs", ["-h", &device])?;
    let features =
        told.lines().find(|line| line.starts_with("Filesystem features")).context("no features")?;
    println!("{features}");
    for (feature, there) in [
        ("huge_file", false),
        ("quota", true),
        ("project", true),
        ("orphan_file", false),
        ("metadata_csum_seed", true),
        ("has_journal", true),
    ] {
        ensure!(features.split_whitespace().any(|word| word == feature) == there, "{feature}");
    }
    ensure!(told.contains("RAID stride:") && told.contains("Block size:               4096"));
    let disk = Disk::new(Bytes::mib(320))?;
    let options = MakeOptions::parse(FsType::Xfs, ["-i size=1024", "-m rmapbt=1", "-K"])?;
    let format = Format::new(FsType::Xfs, Uuid::new_v4()).with_options(options);
    let _ = ensure_made(disk.path(), &format, &mut Book::new())?;
    let told = tool::run("xfs_info", [disk.path()])?;
    ensure!(told.contains("isize=1024") && told.contains("rmapbt=1") && told.contains("nrext64=0"), "{told}");
    let bad = Format::new(FsType::Ext4, Uuid::new_v4())
        .with_options(MakeOptions::parse(FsType::Ext4, ["-O no_such_feature"])?);
    let disk = Disk::new(Bytes::mib(320))?;
    let error = Blank::claim(disk.path())?.make(&bad).err().context("made")?;
    println!("{error}");
    ensure!(error.to_string().contains("no_such_feature"));
    Ok(())
}

#[test]
fn a_file_or_nothing_is_no_device() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let file = tempfile::NamedTempFile::new()?;
    File::options().write(true).open(file.path())?.set_len(1 << 30)?;
    ensure!(kind(Blank::claim(file.path()))? == Kind::InvalidArgument);
    ensure!(kind(Blank::claim(Path::new("/dev/no-such-disk")))? == Kind::NotFound);
    ensure!(kind(detect(Path::new("/dev/no-such-disk")))? == Kind::NotFound);
    Ok(())
}

#[test]
fn leftovers_that_libblkid_does_not_know_are_overwritten_once_it_was_decided() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // FS-05: bytes of an old filesystem without its magic, before which a careful mkfs stops and asks.
    for fs in FsType::ALL {
        let disk = Disk::new(Bytes::mib(320))?;
        let old = Disk::new(Bytes::mib(320))?;
        Blank::claim(old.path())?.make(&Format::new(FsType::Btrfs, Uuid::new_v4()))?;
        let mut superblock = vec![0; 4096];
        File::open(old.path())?.read_exact_at(&mut superblock, 65_536)?;
        superblock[64..72].fill(0xff);
        write_at(disk.path(), 65_536, &superblock)?;
        write_at(disk.path(), 0, &[0xff; 400])?;
        let format = Format::new(fs, Uuid::new_v4());
        let mut book = Book::new();
        ensure!(ensure_made(disk.path(), &format, &mut book)?.is_made());
        let before = writes(disk.path())?;
        for _ in 0..3 {
            ensure!(!ensure_made(disk.path(), &format, &mut book)?.is_made());
        }
        ensure!(writes(disk.path())? == before && book.changes.len() == 2, "it was made again");
    }
    Ok(())
}

#[test]
fn what_is_decided_depends_neither_on_the_path_nor_on_udev() -> Result<()> {
    // FS-03: another blkid, and other programs of the same names, come first in PATH. The test runs itself with it.
    let test = "what_is_decided_depends_neither_on_the_path_nor_on_udev";
    if let Some(device) = std::env::var_os("GABION_WORK_ON") {
        let device = Path::new(&device);
        let format = Format::new(FsType::Ext4, Uuid::new_v4());
        return Ok(ensure_made(device, &format, &mut Book::new()).map(drop)?);
    }
    if skip() {
        return Ok(());
    }
    let fakes = tempfile::tempdir()?;
    for program in ["blkid", "lsblk", "mkfs.ext4", "mke2fs", "wipefs", "udevadm"] {
        let path = fakes.path().join(program);
        fs::write(&path, format!("#!/bin/sh\necho {program} >> {}/called\n", fakes.path().display()))?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let made = |device: &Path| -> Result<bool> {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command
            .args(["--exact", test, "--nocapture"])
            .env("PATH", fakes.path())
            .env("GABION_WORK_ON", device);
        Ok(command.output()?.status.success())
    };
    let (blank, used) = (Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(320))?);
    Blank::claim(used.path())?.make(&Format::new(FsType::Xfs, Uuid::new_v4()))?;
    ensure!(made(blank.path())? && detect(blank.path())?.is_some_and(|found| found.fs == FsType::Ext4));
    ensure!(!made(used.path())? && detect(used.path())?.is_some_and(|found| found.fs == FsType::Xfs));
    ensure!(!fakes.path().join("called").exists(), "a program of another directory was run");
    Ok(())
}
