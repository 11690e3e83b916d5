//! The device-mapper ioctls: the only place in this module where memory is handed to the kernel.
//!
//! Everything here follows linux/dm-ioctl.h; one buffer holds the header, what is sent and what comes back.

#![allow(unsafe_code)]

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{self, Direction, Ioctl, IoctlOutput, Opcode};

/// `struct dm_ioctl`.
#[repr(C)]
struct RawHeader {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

const _: () = assert!(size_of::<RawHeader>() == 312 && align_of::<RawHeader>() == 8);
const _: () = assert!(offset_of!(RawHeader, dev) == 40 && offset_of!(RawHeader, uuid) == 176);

/// Bytes of the header before the data.
pub(crate) const HEADER: usize = size_of::<RawHeader>();
/// The longest name or uuid, without its terminating zero.
pub(crate) const NAME_MAX: usize = 127;
/// As above.
pub(crate) const UUID_MAX: usize = 128;

/// A request; the number is the ioctl's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Request {
    Version = 0,
    ListDevices = 2,
    DevStatus = 7,
    TableDeps = 11,
    TableStatus = 12,
    ListVersions = 13,
    TargetMessage = 14,
    ArmPoll = 16,
}

/// Flags that go in and come out of requests.
pub(crate) mod flag {
    pub(crate) const READ_ONLY: u32 = 1;
    pub(crate) const SUSPENDED: u32 = 1 << 1;
    pub(crate) const STATUS_TABLE: u32 = 1 << 4;
    pub(crate) const ACTIVE_PRESENT: u32 = 1 << 5;
    pub(crate) const INACTIVE_PRESENT: u32 = 1 << 6;
    pub(crate) const BUFFER_FULL: u32 = 1 << 8;
    pub(crate) const NOFLUSH: u32 = 1 << 11;
    pub(crate) const QUERY_INACTIVE: u32 = 1 << 12;
    pub(crate) const SECURE_DATA: u32 = 1 << 15;
    pub(crate) const DEFERRED_REMOVE: u32 = 1 << 17;
    pub(crate) const INTERNAL_SUSPEND: u32 = 1 << 18;
}

/// The header in a form that cannot be misread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: [u32; 3],
    pub(crate) data_size: u32,
    pub(crate) data_start: u32,
    pub(crate) target_count: u32,
    pub(crate) open_count: i32,
    pub(crate) flags: u32,
    pub(crate) event_nr: u32,
    pub(crate) dev: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) uuid: Vec<u8>,
}

/// The interface version that is spoken; the kernel takes every minor number of its own major.
const VERSION: [u32; 3] = [4, 0, 0];

/// The buffer of one call. It is made of words so that the kernel's structures are aligned in it.
pub(crate) struct Buffer {
    words: Vec<u64>,
}

impl Buffer {
    /// A zeroed buffer of a header and at least `data` bytes.
    fn new(data: usize) -> Self {
        Self { words: vec![0; (HEADER + data).div_ceil(8)] }
    }

    /// The length in bytes; never above 4 GiB, see [`call`].
    fn len(&self) -> usize {
        self.words.len() * 8
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        for (at, byte) in (offset..).zip(bytes) {
            let Some(word) = self.words.get_mut(at / 8) else { return };
            let mut parts = word.to_ne_bytes();
            parts[at % 8] = *byte;
            *word = u64::from_ne_bytes(parts);
        }
    }

    /// The whole buffer as bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

impl Header {
    fn write(&self, buffer: &mut Buffer) {
        let size = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let start = u32::try_from(HEADER).unwrap_or(u32::MAX);
        for (field, offset) in VERSION.into_iter().zip([0, 4, 8]) {
            buffer.put(offset, &field.to_ne_bytes());
        }
        buffer.put(offset_of!(RawHeader, data_size), &size.to_ne_bytes());
        buffer.put(offset_of!(RawHeader, data_start), &start.to_ne_bytes());
        buffer.put(offset_of!(RawHeader, flags), &self.flags.to_ne_bytes());
        buffer.put(offset_of!(RawHeader, dev), &self.dev.to_ne_bytes());
        buffer.put(offset_of!(RawHeader, name), self.name.get(..NAME_MAX).unwrap_or(&self.name));
        buffer.put(offset_of!(RawHeader, uuid), self.uuid.get(..UUID_MAX).unwrap_or(&self.uuid));
    }

    /// Reads the header at the start of `bytes`; `None` if they are too few.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let u32_at = |offset: usize| Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?));
        let text = |offset: usize, len: usize| {
            let field = bytes.get(offset..offset + len)?;
            Some(field.split(|byte| *byte == 0).next()?.to_vec())
        };
        Some(Self {
            version: [u32_at(0)?, u32_at(4)?, u32_at(8)?],
            data_size: u32_at(offset_of!(RawHeader, data_size))?,
            data_start: u32_at(offset_of!(RawHeader, data_start))?,
            target_count: u32_at(offset_of!(RawHeader, target_count))?,
            open_count: u32_at(offset_of!(RawHeader, open_count))?.cast_signed(),
            flags: u32_at(offset_of!(RawHeader, flags))?,
            event_nr: u32_at(offset_of!(RawHeader, event_nr))?,
            dev: u64::from_ne_bytes(*bytes.get(offset_of!(RawHeader, dev)..)?.first_chunk()?),
            name: text(offset_of!(RawHeader, name), 128)?,
            uuid: text(offset_of!(RawHeader, uuid), 129)?,
        })
    }
}

/// One device-mapper request on its buffer.
struct Call<'a> {
    request: Request,
    buffer: &'a mut Buffer,
}

// SAFETY: the kernel reads and writes at the pointer at most as many bytes as the header's data_size says, which
// `call` sets to the buffer's length; the buffer is exclusively borrowed for as long as the call lasts.
unsafe impl Ioctl for Call<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        ioctl::opcode::from_components(Direction::ReadWrite, 0xfd, self.request as u8, HEADER)
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        self.buffer.words.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut std::ffi::c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Sends `request` with `header` and `payload`, with room for `room` bytes of answer; gives the whole buffer.
pub(crate) fn call(
    control: &File,
    request: Request,
    header: &Header,
    payload: &[u8],
    room: usize,
) -> Result<Buffer, Errno> {
    let room = room.max(payload.len());
    if u32::try_from(HEADER + room + 8).is_err() {
        return Err(Errno::NOMEM);
    }
    let mut buffer = Buffer::new(room);
    header.write(&mut buffer);
    buffer.put(HEADER, payload);
    // SAFETY: see the implementation of `Ioctl` above; data_size was written by `Header::write`.
    unsafe { ioctl::ioctl(control.as_fd(), Call { request, buffer: &mut buffer }) }?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_buffer_and_long_names_are_cut() {
        let header = Header {
            flags: flag::NOFLUSH,
            dev: 0xfd00_0007,
            name: b"group-volume".to_vec(),
            uuid: vec![b'u'; 200],
            ..Header::default()
        };
        let mut buffer = Buffer::new(100);
        header.write(&mut buffer);
        let read = Header::read(&buffer.bytes()).unwrap();
        assert_eq!(read.version, VERSION);
        assert_eq!(usize::try_from(read.data_size).unwrap(), (HEADER + 100).div_ceil(8) * 8);
        assert_eq!((read.flags, read.dev, read.name), (header.flags, header.dev, header.name));
        assert_eq!(read.uuid.len(), UUID_MAX);
        assert_eq!(Header::read(&[0; 304]), None);
    }

    #[test]
    fn request_codes_are_the_kernels() {
        // DM_DEV_STATUS as strace and the C header give it on x86_64: _IOWR(0xfd, 7, 312 bytes).
        let mut buffer = Buffer::new(0);
        let call = Call { request: Request::DevStatus, buffer: &mut buffer };
        assert_eq!(call.opcode(), 0xc138_fd07);
    }
}
