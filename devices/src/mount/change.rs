//! Changing a mount that is there.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::mount::{
    FsPickFlags, MountAttrFlags, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string, fspick,
};

use super::attach::explained;
use super::{Access, Mount, MountOptions, Present, Target};
use crate::syscall::{MountAttributes, mount_setattr};
use crate::{Change, Error, Kind};

/// How mounts and unmounts below a mount spread to its copies (`Documentation/filesystems/sharedsubtree.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Both ways.
    Shared,
    /// Only towards this mount.
    Slave,
    /// Not at all.
    Private,
    /// Not at all, and bind mounts of it are refused.
    Unbindable,
}

/// Changes the options of the filesystem mounted at a target, and of this mount of it.
///
/// Attributes that the options do not name return to the kernel's defaults; filesystem options that they do not
/// name stay as they are.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there; [`Kind::InUse`] when files are open for writing that would
/// become read-only; [`Kind::InvalidArgument`] for an option that the filesystem does not know or cannot change.
pub fn remount(target: &Target, options: &MountOptions) -> Result<(), Error> {
    let tried = || format!("remount {} with {options}", target.given().display());
    let (root, _) = mounted(target, &tried)?;
    let failed = |errno: Errno| Error::system(tried(), errno);
    let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
    let context = fspick(root.as_fd(), "", flags).map_err(failed)?;
    let refused = |errno: Errno| match errno {
        Errno::BUSY => failed(errno).with_answer("files in it are open for writing"),
        errno => explained(failed(errno), &context, errno),
    };
    let access = if options.access() == Access::ReadOnly { "ro" } else { "rw" };
    fsconfig_set_flag(context.as_fd(), access).map_err(refused)?;
    for option in &options.filesystem {
        match &option.value {
            Some(value) => fsconfig_set_string(context.as_fd(), option.name.as_str(), value.as_str()),
            None => fsconfig_set_flag(context.as_fd(), option.name.as_str()),
        }
        .map_err(refused)?;
    }
    fsconfig_reconfigure(context.as_fd()).map_err(refused)?;
    let every = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NODIRATIME
        | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW
        | MountAttrFlags::MOUNT_ATTR__ATIME;
    let attributes = MountAttributes::new(options.attributes.bits().into(), every.bits().into(), 0);
    mount_setattr(root.as_fd(), attributes).map_err(failed)
}

/// Lets this one mount refuse or allow writes; the filesystem and its other mounts stay as they are.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there; [`Kind::InUse`] when files are open for writing through it.
pub fn set_access(target: &Target, access: Access) -> Result<Change, Error> {
    let tried = || match access {
        Access::ReadOnly => format!("make {} read-only", target.given().display()),
        Access::ReadWrite => format!("make {} writable", target.given().display()),
    };
    let (root, mount) = mounted(target, &tried)?;
    if mount.has_option("ro") == (access == Access::ReadOnly) {
        return Ok(Change::Already(()));
    }
    let bit = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    let attributes = match access {
        Access::ReadOnly => MountAttributes::new(bit, 0, 0),
        Access::ReadWrite => MountAttributes::new(0, bit, 0),
    };
    mount_setattr(root.as_fd(), attributes).map_err(|errno| Error::system(tried(), errno))?;
    Ok(Change::Made(()))
}

/// Sets how mounts below this one spread.
///
/// # Errors
///
/// [`Kind::NotFound`] when nothing is mounted there.
pub fn set_propagation(target: &Target, spread: Spread) -> Result<(), Error> {
    // linux/mount.h
    let bits = match spread {
        Spread::Unbindable => 1 << 17,
        Spread::Private => 1 << 18,
        Spread::Slave => 1 << 19,
        Spread::Shared => 1 << 20,
    };
    let tried = || format!("set the propagation of {}", target.given().display());
    let (root, _) = mounted(target, &tried)?;
    mount_setattr(root.as_fd(), MountAttributes::new(0, 0, bits))
        .map_err(|errno| Error::system(tried(), errno))
}

fn mounted(target: &Target, tried: &impl Fn() -> String) -> Result<(OwnedFd, Mount), Error> {
    let Present::Mounted(mount) = target.present()? else {
        return Err(Error::new(Kind::NotFound, tried()).with_answer("nothing is mounted there"));
    };
    let root = target.open().map_err(|errno| Error::system(tried(), errno))?;
    Ok((root, *mount))
}
