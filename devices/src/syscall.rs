//! The system calls and ioctls of mounts and filesystems that rustix does not know.

#![allow(unsafe_code)]

use std::ffi::c_long;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// `struct mount_attr` of linux/mount.h, first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MountAttributes {
    /// `MOUNT_ATTR_…` bits to set.
    pub(crate) set: u64,
    /// `MOUNT_ATTR_…` bits to clear; access-time bits must all be cleared before one is set.
    pub(crate) clear: u64,
    /// One of `MS_SHARED`, `MS_PRIVATE`, `MS_SLAVE`, `MS_UNBINDABLE`, or zero.
    pub(crate) propagation: u64,
    user_namespace: u64,
}

const _: () = assert!(size_of::<MountAttributes>() == 32);

impl MountAttributes {
    pub(crate) fn new(set: u64, clear: u64, propagation: u64) -> Self {
        Self { set, clear, propagation, user_namespace: 0 }
    }
}

/// Changes the attributes of the mount whose root `mount` is open on, all or none of them (Linux 5.12).
pub(crate) fn mount_setattr(mount: BorrowedFd<'_>, attributes: MountAttributes) -> Result<(), Errno> {
    let empty = c"";
    // SAFETY: the path is a terminated string, the structure is a `struct mount_attr` of the length given, and the
    // kernel only reads both. The descriptor is open for the length of the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    checked(answer).map(drop)
}

fn checked(answer: c_long) -> Result<c_long, Errno> {
    if answer == -1 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(answer)
}
