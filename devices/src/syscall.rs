//! The system calls and ioctls of mounts and filesystems that rustix does not know.

#![allow(unsafe_code)]

use std::ffi::c_long;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
#[cfg(feature = "filesystem")]
use rustix::ioctl::{self, Getter, NoArg, Opcode, Setter, Updater};

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

// linux/fs.h
#[cfg(feature = "filesystem")]
const FIFREEZE: Opcode = ioctl::opcode::read_write::<i32>(b'X', 119);
#[cfg(feature = "filesystem")]
const FITHAW: Opcode = ioctl::opcode::read_write::<i32>(b'X', 120);
#[cfg(feature = "filesystem")]
const FITRIM: Opcode = ioctl::opcode::read_write::<TrimRange>(b'X', 121);

/// `struct fstrim_range` of linux/fs.h, in bytes. The kernel puts the number of bytes trimmed into `length`.
#[cfg(feature = "filesystem")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrimRange {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) minimum: u64,
}

/// Writes out what is waiting and holds all further writes of the filesystem back.
#[cfg(feature = "filesystem")]
pub(crate) fn freeze(root: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: FIFREEZE looks at no argument.
    let request = unsafe { NoArg::<FIFREEZE>::new() };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}

/// Lets writes go on.
#[cfg(feature = "filesystem")]
pub(crate) fn thaw(root: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: FITHAW looks at no argument.
    let request = unsafe { NoArg::<FITHAW>::new() };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}

/// Discards the blocks of a range that no file uses.
#[cfg(feature = "filesystem")]
pub(crate) fn trim(root: BorrowedFd<'_>, range: &mut TrimRange) -> Result<(), Errno> {
    // SAFETY: FITRIM reads and writes one `struct fstrim_range`, which `TrimRange` is.
    let request = unsafe { Updater::<FITRIM, TrimRange>::new(range) };
    // SAFETY: as above; the range outlives the call, and the descriptor is open for its length.
    unsafe { ioctl::ioctl(root, request) }
}

// fs/ext4/ext4.h, fs/xfs/libxfs/xfs_fs.h, linux/btrfs.h
#[cfg(feature = "filesystem")]
const EXT4_IOC_RESIZE_FS: Opcode = ioctl::opcode::write::<u64>(b'f', 16);
#[cfg(feature = "filesystem")]
const XFS_IOC_FSGROWFSDATA: Opcode = ioctl::opcode::write::<XfsGrowth>(b'X', 110);
#[cfg(feature = "filesystem")]
const XFS_IOC_FSGEOMETRY: Opcode = ioctl::opcode::read::<XfsGeometry>(b'X', 126);
#[cfg(feature = "filesystem")]
const BTRFS_IOC_RESIZE: Opcode = ioctl::opcode::write::<BtrfsArguments>(0x94, 3);

/// `struct xfs_growfs_data`.
#[cfg(feature = "filesystem")]
#[repr(C)]
#[derive(Clone, Copy)]
struct XfsGrowth {
    blocks: u64,
    inode_percent: u32,
    padding: u32,
}

/// `struct xfs_fsop_geom`; only what is used here has a name.
#[cfg(feature = "filesystem")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct XfsGeometry {
    /// Bytes in a block.
    pub(crate) block_size: u32,
    others: [u32; 6],
    /// How much of the space inodes may take.
    pub(crate) inode_percent: u32,
    /// Its size in blocks.
    pub(crate) blocks: u64,
    rest: [u64; 27],
}

/// `struct btrfs_ioctl_vol_args`.
#[cfg(feature = "filesystem")]
#[repr(C)]
#[derive(Clone, Copy)]
struct BtrfsArguments {
    descriptor: i64,
    name: [u8; 4088],
}

#[cfg(feature = "filesystem")]
const _: () = assert!(
    size_of::<XfsGrowth>() == 16 && size_of::<XfsGeometry>() == 256 && size_of::<BtrfsArguments>() == 4096
);

/// Grows a mounted ext4 to so many of its blocks.
#[cfg(feature = "filesystem")]
pub(crate) fn ext4_resize(root: BorrowedFd<'_>, blocks: u64) -> Result<(), Errno> {
    // SAFETY: EXT4_IOC_RESIZE_FS reads one 64-bit integer and writes nothing back.
    let request = unsafe { Setter::<EXT4_IOC_RESIZE_FS, u64>::new(blocks) };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}

/// What a mounted XFS is like.
#[cfg(feature = "filesystem")]
pub(crate) fn xfs_geometry(root: BorrowedFd<'_>) -> Result<XfsGeometry, Errno> {
    // SAFETY: XFS_IOC_FSGEOMETRY fills one `struct xfs_fsop_geom`, whose size is asserted above.
    let request = unsafe { Getter::<XFS_IOC_FSGEOMETRY, XfsGeometry>::new() };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}

/// Grows a mounted XFS to so many of its blocks.
#[cfg(feature = "filesystem")]
pub(crate) fn xfs_grow(root: BorrowedFd<'_>, blocks: u64, inode_percent: u32) -> Result<(), Errno> {
    let growth = XfsGrowth { blocks, inode_percent, padding: 0 };
    // SAFETY: XFS_IOC_FSGROWFSDATA reads one `struct xfs_growfs_data` and writes nothing back.
    let request = unsafe { Setter::<XFS_IOC_FSGROWFSDATA, XfsGrowth>::new(growth) };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}

/// Resizes a mounted btrfs; `what` is what `btrfs filesystem resize` takes (`1:max`), below 4,088 bytes.
#[cfg(feature = "filesystem")]
pub(crate) fn btrfs_resize(root: BorrowedFd<'_>, what: &str) -> Result<(), Errno> {
    let mut arguments = BtrfsArguments { descriptor: 0, name: [0; 4088] };
    for (to, from) in arguments.name.iter_mut().take(4087).zip(what.bytes()) {
        *to = from;
    }
    // SAFETY: BTRFS_IOC_RESIZE reads one `struct btrfs_ioctl_vol_args`, whose name ends with a zero.
    let request = unsafe { Setter::<BTRFS_IOC_RESIZE, BtrfsArguments>::new(arguments) };
    // SAFETY: as above; the descriptor is open for the length of the call.
    unsafe { ioctl::ioctl(root, request) }
}
