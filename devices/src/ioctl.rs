//! The ioctls of this crate: the only place in it where memory is handed to the kernel.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode};

// linux/loop.h
const LOOP_CLR_FD: Opcode = 0x4C01;
const LOOP_SET_CAPACITY: Opcode = 0x4C07;
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;

/// The image may not be written through the loop device.
pub(crate) const LO_FLAGS_READ_ONLY: u32 = 1;
/// The kernel detaches at the last close.
pub(crate) const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// The kernel looks for partitions.
pub(crate) const LO_FLAGS_PARTSCAN: u32 = 8;
/// The image is read and written past the page cache.
pub(crate) const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);

/// What `LOOP_CONFIGURE` is told besides the image.
pub(crate) struct Configuration<'a> {
    pub(crate) block_size: u32,
    pub(crate) offset: u64,
    pub(crate) flags: u32,
    /// Shown in `/sys/block/loopN/loop` only by old tools; cut at 63 bytes.
    pub(crate) name: &'a [u8],
}

/// A request whose argument is unused and whose answer is the return value.
struct ReturnsInteger(Opcode);

// SAFETY: the argument is null, which these requests ignore, and nothing but the return value comes back.
unsafe impl Ioctl for ReturnsInteger {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        self.0
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut std::ffi::c_void) -> rustix::io::Result<i32> {
        Ok(out)
    }
}

/// The number of a loop device that was free when the kernel looked; it makes one if there is none.
pub(crate) fn loop_get_free(control: &File) -> Result<u32, Errno> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and touches no memory of ours.
    let number = unsafe { ioctl::ioctl(control.as_fd(), ReturnsInteger(LOOP_CTL_GET_FREE)) }?;
    u32::try_from(number).map_err(|_| Errno::RANGE)
}

/// Attaches `image` to `device` with everything set in one step.
pub(crate) fn loop_configure(device: &File, image: &File, what: &Configuration<'_>) -> Result<(), Errno> {
    let mut file_name = [0; 64];
    for (to, from) in file_name.iter_mut().take(63).zip(what.name) {
        *to = *from;
    }
    let info = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: what.offset,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: what.flags,
        file_name,
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let fd = u32::try_from(image.as_raw_fd()).map_err(|_| Errno::BADF)?;
    let config = LoopConfig { fd, block_size: what.block_size, info, reserved: [0; 8] };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, whose layout and size are asserted above.
    let request = unsafe { ioctl::Setter::<LOOP_CONFIGURE, LoopConfig>::new(config) };
    // SAFETY: as above; the kernel writes nothing back.
    unsafe { ioctl::ioctl(device.as_fd(), request) }
}

/// Has the kernel take the image's present size.
pub(crate) fn loop_set_capacity(device: &File) -> Result<(), Errno> {
    // SAFETY: LOOP_SET_CAPACITY takes no argument and touches no memory of ours.
    unsafe { ioctl::ioctl(device.as_fd(), ReturnsInteger(LOOP_SET_CAPACITY)) }.map(drop)
}

/// Detaches now, or at the last close if somebody else has the device open.
pub(crate) fn loop_clear(device: &File) -> Result<(), Errno> {
    // SAFETY: LOOP_CLR_FD takes no argument and touches no memory of ours.
    unsafe { ioctl::ioctl(device.as_fd(), ReturnsInteger(LOOP_CLR_FD)) }.map(drop)
}
