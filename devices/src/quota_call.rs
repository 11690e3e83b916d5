//! The system calls of project quotas.
//!
//! `quotactl_fd` (Linux 5.14) takes any descriptor of the filesystem, so no device's name comes into it. The generic
//! commands work on ext4 and XFS alike.

#![allow(unsafe_code)]

use std::ffi::c_long;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::ioctl::{self, Getter, Opcode, Setter};

// linux/quota.h
const PRJQUOTA: u32 = 2;
const Q_GETQUOTA: u32 = 0x0080_0007;
const Q_SETQUOTA: u32 = 0x0080_0008;
const Q_GETNEXTQUOTA: u32 = 0x0080_0009;
const QIF_LIMITS: u32 = 1 | 4;
// linux/dqblk_xfs.h: XQM_CMD(8)
const Q_XGETQSTATV: u32 = (b'X' as u32) << 8 | 8;
const FS_QSTATV_VERSION1: i8 = 1;

// linux/fs.h
const FS_IOC_FSGETXATTR: Opcode = ioctl::opcode::read::<Attributes>(b'X', 31);
const FS_IOC_FSSETXATTR: Opcode = ioctl::opcode::write::<Attributes>(b'X', 32);
/// What is made in the directory gets its project, and its bit.
pub(crate) const FS_XFLAG_PROJINHERIT: u32 = 0x200;

/// `struct fsxattr` of linux/fs.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    /// `FS_XFLAG_…`.
    pub(crate) flags: u32,
    extent_size: u32,
    extents: u32,
    pub(crate) project: u32,
    cow_extent_size: u32,
    padding: [u8; 8],
}

/// `struct if_nextdqblk` of linux/quota.h; without its last field that is `struct if_dqblk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quota {
    /// In units of 1,024 bytes; zero is no limit.
    pub(crate) block_limit: u64,
    pub(crate) block_soft_limit: u64,
    /// In bytes.
    pub(crate) space: u64,
    /// Zero is no limit.
    pub(crate) inode_limit: u64,
    pub(crate) inode_soft_limit: u64,
    pub(crate) inodes: u64,
    pub(crate) block_time: u64,
    pub(crate) inode_time: u64,
    pub(crate) valid: u32,
    pub(crate) project: u32,
}

/// `struct fs_qfilestatv` of linux/dqblk_xfs.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FileState {
    inode: u64,
    blocks: u64,
    extents: u32,
    padding: u32,
}

/// `struct fs_quota_statv` of linux/dqblk_xfs.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct StateV {
    version: i8,
    padding: u8,
    flags: u16,
    in_core: u32,
    files: [FileState; 3],
    times: [i32; 3],
    warnings: [u16; 4],
    spare: u32,
    spare_wide: [u64; 7],
}

const _: () =
    assert!(size_of::<Attributes>() == 28 && size_of::<Quota>() == 72 && size_of::<StateV>() == 160);

/// `FS_QUOTA_…` bits of linux/dqblk_xfs.h.
pub(crate) const PROJECTS_ACCOUNTED: u16 = 1 << 4;
pub(crate) const PROJECTS_ENFORCED: u16 = 1 << 5;

/// What quotas of the filesystem are on, as `FS_QUOTA_…` bits.
pub(crate) fn quota_state(root: BorrowedFd<'_>) -> Result<u16, Errno> {
    let mut state = StateV { version: FS_QSTATV_VERSION1, ..StateV::default() };
    // SAFETY: Q_XGETQSTATV reads the version from, and writes, one `struct fs_quota_statv`, which `StateV` is.
    unsafe { call(root, Q_XGETQSTATV, 0, (&raw mut state).cast()) }?;
    Ok(state.flags)
}

/// What a project has and may have.
pub(crate) fn quota(root: BorrowedFd<'_>, project: u32) -> Result<Quota, Errno> {
    let mut quota = Quota::default();
    // SAFETY: Q_GETQUOTA writes one `struct if_dqblk`, which is how `Quota` begins.
    unsafe { call(root, Q_GETQUOTA, project, (&raw mut quota).cast()) }?;
    Ok(Quota { project, ..quota })
}

/// The same of the first project from this number on; `ENOENT` when there is none.
pub(crate) fn next_quota(root: BorrowedFd<'_>, from: u32) -> Result<Quota, Errno> {
    let mut quota = Quota::default();
    // SAFETY: Q_GETNEXTQUOTA writes one `struct if_nextdqblk`, which `Quota` is.
    unsafe { call(root, Q_GETNEXTQUOTA, from, (&raw mut quota).cast()) }?;
    Ok(quota)
}

/// Sets the limits of a project.
pub(crate) fn set_limits(root: BorrowedFd<'_>, project: u32, limits: Quota) -> Result<(), Errno> {
    let mut quota = Quota { valid: QIF_LIMITS, ..limits };
    // SAFETY: Q_SETQUOTA reads one `struct if_dqblk`, which is how `Quota` begins.
    unsafe { call(root, Q_SETQUOTA, project, (&raw mut quota).cast()) }
}

/// # Safety
///
/// `argument` must point to what the command reads and writes, for the length of the call.
unsafe fn call(
    root: BorrowedFd<'_>,
    command: u32,
    project: u32,
    argument: *mut std::ffi::c_void,
) -> Result<(), Errno> {
    // QCMD of linux/quota.h.
    let command = command << 8 | PRJQUOTA;
    // SAFETY: the caller vouches for the argument; the descriptor is open for the length of the call.
    let answer: c_long =
        unsafe { libc::syscall(libc::SYS_quotactl_fd, root.as_raw_fd(), command, project, argument) };
    if answer == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The attributes of an open file or directory.
pub(crate) fn attributes(file: BorrowedFd<'_>) -> Result<Attributes, Errno> {
    // SAFETY: FS_IOC_FSGETXATTR writes one `struct fsxattr`, whose size is asserted above.
    let request = unsafe { Getter::<FS_IOC_FSGETXATTR, Attributes>::new() };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(file, request) }
}

/// Changes the attributes of an open file or directory.
pub(crate) fn set_attributes(file: BorrowedFd<'_>, attributes: Attributes) -> Result<(), Errno> {
    // SAFETY: FS_IOC_FSSETXATTR reads one `struct fsxattr`, whose size is asserted above, and writes nothing back.
    let request = unsafe { Setter::<FS_IOC_FSSETXATTR, Attributes>::new(attributes) };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(file, request) }
}
