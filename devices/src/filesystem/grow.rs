//! Growing a filesystem to the size of its device.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::check::ext4_thoroughly;
use super::claim::Claim;
use super::clone::refuse_half_changed;
use super::scratch::Scratch;
use super::tool::Tool;
use super::{FsType, Usage};
use crate::block::answering;
use crate::mount::{Access, Target};
use crate::{Bytes, Change, DeviceNumber, Error, Kind, Sectors, syscall};

/// Grows a mounted filesystem to the size of its device, while it is used.
///
/// The mount is found at the target and compared with the device by its number, so it does not matter under which name
/// the device was mounted, nor whether it has been renamed since. A filesystem that fills its device already is no
/// error. ext4 wants CAP_SYS_RESOURCE for this, the others CAP_SYS_ADMIN alone.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there; [`Kind::Foreign`] when it is something else;
/// [`Kind::InvalidArgument`] when it is mounted read-only, which cannot grow.
pub fn grow_mounted(device: &Path, fs: FsType, target: &Target) -> Result<Change<Usage>, Error> {
    let tried = || format!("grow {fs} of {} at {}", device.display(), target.given().display());
    let number = answering(device, "it", &tried)?;
    let (root, mount) = target.open_mounted(&tried)?;
    if mount.block_device() != Some(number) || mount.fs_type != fs.as_str() {
        return Err(Error::new(Kind::Foreign, tried()).with_answer(format!(
            "{} of {} ({}) is mounted there",
            mount.fs_type.display(),
            mount.source.display(),
            mount.device
        )));
    }
    if mount.access() == Access::ReadOnly {
        return Err(Error::new(Kind::InvalidArgument, tried())
            .with_answer("it is mounted read-only")
            .with_advice("grow it where it is mounted for writing"));
    }
    grow_at(&root, fs, number, &tried)
}

fn grow_at(
    root: &OwnedFd,
    fs: FsType,
    device: DeviceNumber,
    tried: &impl Fn() -> String,
) -> Result<Change<Usage>, Error> {
    let size = size_of(device, tried)?;
    let before = Usage::of(root, tried)?;
    online(fs, root, size).map_err(|errno| refused(tried(), errno))?;
    let after = Usage::of(root, tried)?;
    Ok(if after.total > before.total { Change::Made(after) } else { Change::Already(after) })
}

/// Grows a filesystem that is not mounted. ext4 is checked first, as its program demands; XFS and btrfs grow only
/// while they are mounted, so they are for a moment, in no directory: nothing stays mounted, even if this is killed.
///
/// # Errors
///
/// [`Kind::InUse`] when it is mounted; [`Kind::Inconsistent`] when ext4 is damaged.
pub fn grow_unmounted(device: &Path, fs: FsType, patience: Duration) -> Result<(), Error> {
    let tried = || format!("grow {fs} on {}", device.display());
    let held = Claim::new(device)?.release();
    if fs == FsType::Ext4 {
        ext4_thoroughly(&held, patience, &tried())?;
        return Tool::new(fs, "resize2fs", patience).device(&held).succeed(&tried()).map(drop);
    }
    refuse_half_changed(&held, fs, &tried())?;
    let scratch = Scratch::mount(&held, fs, &tried)?;
    grow_at(scratch.root(), fs, held.number(), &tried).map(drop)
}

/// What resize2fs, xfs_growfs and btrfs do in the end, on the mount that was looked at. They find it by the names of
/// the device and of the mount point, and fail when one of them was renamed.
fn online(fs: FsType, root: &OwnedFd, size: Bytes) -> Result<(), Errno> {
    match fs {
        FsType::Ext4 => {
            let block = rustix::fs::fstatvfs(root)?.f_bsize;
            syscall::ext4_resize(root.as_fd(), size.get().checked_div(block).ok_or(Errno::INVAL)?)
        }
        FsType::Xfs => {
            let geometry = syscall::xfs_geometry(root.as_fd())?;
            let blocks = size.get().checked_div(geometry.block_size.into()).ok_or(Errno::INVAL)?;
            if blocks <= geometry.blocks {
                return Ok(());
            }
            syscall::xfs_grow(root.as_fd(), blocks, geometry.inode_percent)
        }
        FsType::Btrfs => syscall::btrfs_resize(root.as_fd(), "max"),
    }
}

fn refused(tried: String, errno: Errno) -> Error {
    let error = Error::system(tried, errno);
    match errno {
        Errno::PERM => error
            .with_answer(
                "the filesystem has recorded errors, or this process lacks CAP_SYS_ADMIN or CAP_SYS_RESOURCE",
            )
            .with_advice("check it while it is not mounted; the kernel's log tells more"),
        Errno::UCLEAN => {
            error.with_answer("the filesystem is damaged").with_advice("check it while it is not mounted")
        }
        _ => error.with_advice("the kernel's log may tell more"),
    }
}

fn size_of(number: DeviceNumber, tried: &impl Fn() -> String) -> Result<Bytes, Error> {
    let path = format!("/sys/dev/block/{number}/size");
    let text = std::fs::read_to_string(&path).map_err(|cause| Error::system(tried(), cause))?;
    let sectors = text.trim().parse().ok().map(Sectors::new).and_then(Sectors::to_bytes);
    sectors
        .ok_or_else(|| Error::new(Kind::Inconsistent, tried()).with_answer(format!("{path} holds no size")))
}
