//! Mounting: a filesystem of a device, a directory again elsewhere, a device's node on a file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::target::mount_id;
use super::{Access, Mount, MountId, MountOptions, MountTable, Present, RootState, Target};
use crate::block::answering;
use crate::syscall::{MountAttributes, mount_setattr};
use crate::{Change, DeviceNumber, Effect, Error, Kind};

/// How long somebody else's hold of a device may be one that ends by itself, and how often it is looked whether it has.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Mounts a device's filesystem.
///
/// The mount is made out of sight, found to be of this very device, and only then put in its place, so that nobody
/// ever sees a wrong or a half-configured one. The type is never guessed. Mounted there already with the same
/// access, from whatever name of the device, is no error; anything else there is.
///
/// ```no_run
/// use devices::mount::{self, MountOptions, Target};
///
/// let target = Target::new("/srv/data".as_ref())?;
/// target.make_directory()?;
/// mount::mount("/dev/data/db".as_ref(), "ext4", &MountOptions::parse(["noatime"])?, &target)?;
/// # Ok::<(), devices::Error>(())
/// ```
///
/// # Errors
///
/// [`Kind::AlreadyExists`] when something else is mounted there; [`Kind::NotFound`] when the device or the
/// directory is not there; [`Kind::InvalidArgument`] for an option that the filesystem does not know, with its own
/// words; [`Kind::Busy`] for a suspended device, which would not answer.
pub fn mount(
    device: &Path,
    fs_type: &str,
    options: &MountOptions,
    target: &Target,
) -> Result<Change<Mount>, Error> {
    let tried = || format!("mount {fs_type} of {} on {}", device.display(), target.given().display());
    let number = answering(device, "the source", &tried)?;
    let _alone = target.lock()?;
    match target.present()? {
        Present::Directory => {}
        Present::Mounted(mount) => {
            let same = mount.block_device() == Some(number)
                && mount.fs_type == fs_type
                // btrfs shows whichever subvolume its default or an option says.
                && (mount.root == Path::new("/") || fs_type == "btrfs")
                && mount.access() == options.access();
            return if same { Ok(Change::Already(*mount)) } else { Err(occupied(tried(), &mount)) };
        }
        other => return Err(unfit(tried(), &other)),
    }
    let mounted = detached((device, number), fs_type, options, &tried)?;
    let found = rustix::fs::fstat(&mounted).map_err(|errno| Error::system(tried(), errno))?.st_dev;
    // btrfs gives its files the number of no device; there the device's own claim by the filesystem must do.
    let of_other = DeviceNumber::from_rdev(found) != number && fs_type != "btrfs";
    if of_other || answering(device, "the source", &tried)? != number {
        return Err(Error::new(Kind::Busy, tried())
            .with_answer("the path led to another device meanwhile")
            .with_advice("try again"));
    }
    put(&mounted, target, tried)
}

/// Shows a directory, with what is in it, at another place as well.
///
/// The source's path may hold no symbolic link. A read-only one never passes through a state in which it could be
/// written. Mounts below the source are not shown. Already so is no error.
///
/// # Errors
///
/// [`Kind::AlreadyExists`] when something else is mounted there; [`Kind::NotFound`] when the source or the target is
/// not there; [`Kind::Inconsistent`] when what is mounted there no longer answers: unmount it first.
pub fn bind(source: &Path, access: Access, target: &Target) -> Result<Change<Mount>, Error> {
    let options = MountOptions::new();
    let options = if access == Access::ReadOnly { options.read_only() } else { options };
    bind_with(source, &options, target)
}

/// The same with options of the mount itself (`noatime`, `nosuid`), beside those that the source's mount has.
///
/// # Errors
///
/// As [`bind`]; [`Kind::InvalidArgument`] for an option that only a filesystem takes.
pub fn bind_with(source: &Path, options: &MountOptions, target: &Target) -> Result<Change<Mount>, Error> {
    let tried = || format!("bind {} to {}", source.display(), target.given().display());
    let from = Target::new(source)?.open().map_err(|errno| Error::system(tried(), errno))?;
    bind_open(from.as_fd(), source, options, target)
}

/// The same of a directory that is open, so that nobody can put another one into its place; `name` is for the text of
/// errors.
///
/// # Errors
///
/// As [`bind_with`].
pub fn bind_open(
    from: BorrowedFd<'_>,
    name: &Path,
    options: &MountOptions,
    target: &Target,
) -> Result<Change<Mount>, Error> {
    let tried = || format!("bind {} to {}", name.display(), target.given().display());
    let failed = |errno: Errno| Error::system(tried(), errno);
    options.require_of_mount_alone()?;
    let seen = look(from).map_err(failed)?;
    if rustix::fs::FileType::from_raw_mode(seen.stx_mode.into()) != rustix::fs::FileType::Directory {
        return Err(Error::new(Kind::InvalidArgument, tried()).with_answer("the source is no directory"));
    }
    let _alone = target.lock()?;
    match target.present()? {
        Present::Directory => {}
        Present::Mounted(mount) => {
            let same = shows(target, &seen).map_err(|errno| stale(tried(), &mount, errno))?
                && mount.root_state == RootState::Present
                && read_only_by_itself(&mount) == (options.access() == Access::ReadOnly);
            return if same { Ok(Change::Already(*mount)) } else { Err(occupied(tried(), &mount)) };
        }
        other => return Err(unfit(tried(), &other)),
    }
    let copy = copy_of(from).map_err(failed)?;
    let set = options.attributes;
    if !set.is_empty() {
        let cleared = set.intersection(MountAttrFlags::MOUNT_ATTR__ATIME);
        let clear =
            if cleared.is_empty() { MountAttrFlags::empty() } else { MountAttrFlags::MOUNT_ATTR__ATIME };
        let attributes = MountAttributes::new(set.bits().into(), clear.bits().into(), 0);
        mount_setattr(copy.as_fd(), attributes).map_err(failed)?;
    }
    put(&copy, target, tried)
}

/// Shows a block device's node at the place of a file, which is how raw volumes are handed to containers.
///
/// The device may be named by a symbolic link (`/dev/mapper/…`). Already there under whatever name is no error.
/// A mount that refuses writes does not stop writes to a device, so there is no read-only form: set the device
/// itself to read-only.
///
/// # Errors
///
/// [`Kind::AlreadyExists`] when something else is mounted there; [`Kind::InvalidArgument`] when the target is a
/// directory or the source no block device; [`Kind::NotFound`] when either is not there.
pub fn bind_device(device: &Path, target: &Target) -> Result<Change<Mount>, Error> {
    let tried = || format!("bind device {} to {}", device.display(), target.given().display());
    let failed = |errno: Errno| Error::system(tried(), errno);
    let from =
        rustix::fs::openat(CWD, device, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let seen = look(from.as_fd()).map_err(failed)?;
    if !is_block_device(&seen) {
        return Err(Error::new(Kind::InvalidArgument, tried()).with_answer("the source is no block device"));
    }
    let _alone = target.lock()?;
    match target.present()? {
        Present::File => {}
        Present::Mounted(mount) => {
            let there =
                target.open().and_then(|there| look(there.as_fd())).map_err(|e| stale(tried(), &mount, e))?;
            let same = is_block_device(&there) && number_of(&there) == number_of(&seen);
            return if same { Ok(Change::Already(*mount)) } else { Err(occupied(tried(), &mount)) };
        }
        Present::Directory => {
            return Err(Error::new(Kind::InvalidArgument, tried())
                .with_answer("the target is a directory, and a device's node needs a file"));
        }
        other => return Err(unfit(tried(), &other)),
    }
    let copy = copy_of(from.as_fd()).map_err(failed)?;
    put(&copy, target, tried)
}

/// The filesystem, configured and opened, at no place yet. The kernel unmounts it when the descriptor is closed before it
/// has one.
///
/// A device that is in use and mounted nowhere is tried again for a moment: somebody may be looking at it, and a program
/// that any thread of this process is just starting has every descriptor of ours until it calls `execve`, also a claim
/// that is closed here meanwhile.
pub(crate) fn detached(
    (device, number): (&Path, DeviceNumber),
    fs_type: &str,
    options: &MountOptions,
    tried: &impl Fn() -> String,
) -> Result<OwnedFd, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match detached_now(device, fs_type, options, tried) {
            Err(error) if error.kind() == Kind::InUse && Instant::now() < deadline => {
                if MountTable::read()?.of_device(number).next().is_some() {
                    return Err(error);
                }
                sleep(PAUSE);
            }
            other => return other,
        }
    }
}

fn detached_now(
    device: &Path,
    fs_type: &str,
    options: &MountOptions,
    tried: &impl Fn() -> String,
) -> Result<OwnedFd, Error> {
    let failed = |errno: Errno| Error::system(tried(), errno);
    let context = fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| match errno {
        Errno::NODEV => Error::new(Kind::Unsupported, tried())
            .with_answer(format!("this kernel does not know {fs_type}"))
            .with_advice(format!("load its module: modprobe {fs_type}")),
        errno => failed(errno),
    })?;
    let refused = |errno: Errno| explained(failed(errno), &context, errno);
    fsconfig_set_string(context.as_fd(), "source", device).map_err(refused)?;
    if options.access() == Access::ReadOnly {
        fsconfig_set_flag(context.as_fd(), "ro").map_err(refused)?;
    }
    for option in &options.filesystem {
        match &option.value {
            Some(value) => fsconfig_set_string(context.as_fd(), option.name.as_str(), value.as_str()),
            None => fsconfig_set_flag(context.as_fd(), option.name.as_str()),
        }
        .map_err(refused)?;
    }
    fsconfig_create(context.as_fd()).map_err(refused)?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, options.attributes).map_err(refused)
}

/// Adds what the filesystem itself said about its refusal.
pub(super) fn explained(error: Error, context: &OwnedFd, errno: Errno) -> Error {
    let mut said = Vec::new();
    let mut buffer = [0; 512];
    // Each reading gives one message, with a letter for its gravity before it.
    while let Ok(length @ 1..) = rustix::io::read(context, &mut buffer) {
        let line = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
        said.push(line.get(2..).unwrap_or_default().trim_end().to_owned());
        if said.len() == 16 {
            break;
        }
    }
    match (said.is_empty(), errno) {
        (false, _) => error.with_answer(said.join("; ")),
        (true, Errno::BUSY) => error
            .with_answer("the device is in use, or mounted elsewhere with the other access")
            .with_advice("end what uses it, or mount it with the same access"),
        (true, Errno::UCLEAN) => error
            .with_answer("the filesystem is damaged")
            .with_advice("check it; the kernel's log tells what is wrong"),
        (true, Errno::INVAL) => error
            .with_answer("the kernel found no such filesystem on the device, or refused an option")
            .with_advice("see the kernel's log for the reason"),
        (true, _) => error.with_advice("see the kernel's log for the reason"),
    }
}

/// Puts a mount that is at no place yet into its own, and sees that nobody else put one there at the same time.
fn put(mount: &OwnedFd, target: &Target, tried: impl Fn() -> String) -> Result<Change<Mount>, Error> {
    let failed = |errno: Errno| Error::system(tried(), errno);
    let place = target.open().map_err(failed)?;
    let below = target.mount_below().map_err(|cause| Error::system(tried(), cause))?;
    let ours = mount_id(mount.as_fd()).map_err(|cause| Error::system(tried(), cause))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), "", place.as_fd(), "", flags).map_err(failed)?;
    let unknown = |error: Error| error.with_effect(Effect::Unknown);
    let table = MountTable::read().map_err(unknown)?;
    match table.by_id(ours) {
        // The kernel stacks mounts without a word.
        Some(made) if made.parent != below => Err(raced(tried(), target, ours)),
        Some(made) => Ok(Change::Made(made.clone())),
        None => Err(unknown(
            Error::new(Kind::Busy, tried()).with_answer("it was unmounted at once by somebody else"),
        )),
    }
}

fn raced(tried: String, target: &Target, ours: MountId) -> Error {
    let error = Error::new(Kind::Busy, tried)
        .with_answer("somebody else mounted something there at the same time")
        .with_advice("try again");
    let top = target.open().ok().and_then(|top| mount_id(top.as_fd()).ok());
    let undone = top == Some(ours)
        && rustix::mount::unmount(target.through_parent(), rustix::mount::UnmountFlags::NOFOLLOW).is_ok();
    if undone { error } else { error.with_effect(Effect::Done) }
}

fn copy_of(from: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(from, "", flags)
}

fn look(file: BorrowedFd<'_>) -> Result<Statx, Errno> {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
}

/// Whether the directory seen is what is mounted at the target: the same inode of the same filesystem.
fn shows(target: &Target, seen: &Statx) -> Result<bool, Errno> {
    let there = look(target.open()?.as_fd())?;
    let key = |of: &Statx| (of.stx_dev_major, of.stx_dev_minor, of.stx_ino);
    Ok(key(&there) == key(seen))
}

fn is_block_device(seen: &Statx) -> bool {
    rustix::fs::FileType::from_raw_mode(seen.stx_mode.into()) == rustix::fs::FileType::BlockDevice
}

fn number_of(seen: &Statx) -> DeviceNumber {
    DeviceNumber { major: seen.stx_rdev_major, minor: seen.stx_rdev_minor }
}

fn read_only_by_itself(mount: &Mount) -> bool {
    mount.has_option("ro")
}

fn occupied(tried: String, mount: &Mount) -> Error {
    let access = if mount.access() == Access::ReadOnly { "read-only" } else { "read-write" };
    let answer = format!(
        "{} of {} ({}, {access}) is mounted there, showing {}",
        mount.fs_type.display(),
        mount.source.display(),
        mount.device,
        mount.root.display()
    );
    Error::new(Kind::AlreadyExists, tried).with_answer(answer).with_advice("unmount it first, if it may go")
}

fn stale(tried: String, mount: &Mount, errno: Errno) -> Error {
    let answer = format!("what is mounted there ({}) no longer answers", mount.source.display());
    Error::new(Kind::Inconsistent, tried)
        .with_answer(answer)
        .with_advice("unmount it first")
        .with_source(errno)
}

fn unfit(tried: String, present: &Present) -> Error {
    match present {
        Present::Nothing => Error::new(Kind::NotFound, tried).with_answer("the target does not exist"),
        _ => Error::new(Kind::InvalidArgument, tried).with_answer("the target is of the wrong kind"),
    }
}
