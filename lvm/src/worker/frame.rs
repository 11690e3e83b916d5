//! What goes over the socket between a program and its worker.
//!
//! A frame is its length in bytes (32 bits, little endian) and that many bytes of JSON. The worker says [`Hello`]
//! once, then answers each [`JobRequest`] with one [`JobReply`] of the same number. It writes nothing while a
//! command runs. This is no stable interface: both ends come from one build, and [`PROTOCOL`] tells them apart.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::table::TableStep;
use crate::run::{LogRecord, ReturnCode};

/// Changes with every change of the types below.
pub const PROTOCOL: u32 = 2;
/// Longest request, in bytes.
pub const REQUEST_MAX: usize = 1 << 20;
/// Longest reply, in bytes.
pub const REPLY_MAX: usize = 64 << 20;

/// The worker's first words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the worker.
    pub protocol: u32,
    /// What `lvm version` says about itself, such as `2.03.16(2) (2022-05-18)`.
    pub lvm_version: String,
}

/// What a worker shall do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Run an LVM command line, quoted by [`command_line`](super::line::command_line).
    Lvm {
        /// The line.
        line: String,
        /// Devices to flush once it was carried out.
        flush: Vec<PathBuf>,
    },
    /// Flush devices.
    Flush {
        /// The devices.
        devices: Vec<PathBuf>,
    },
    /// Change tables, one step after the other; the first failure ends the job.
    Tables {
        /// The steps.
        steps: Vec<TableStep>,
        /// Whether udev is waited for.
        udev: bool,
    },
    /// Count a udev cookie down once, in the place of a rule that never came to its end.
    CompleteCookie {
        /// The cookie.
        cookie: u32,
    },
}

/// A job with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    /// Counts up from 1 in each worker.
    pub seq: u64,
    /// What to do.
    pub job: Job,
}

/// What a job left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReply {
    /// The number of the request.
    pub seq: u64,
    /// How it ended.
    pub code: ReturnCode,
    /// Messages at levels 2 to 4, oldest first.
    pub records: Vec<LogRecord>,
    /// A message was cut by the library, or the records did not fit the worker's buffer.
    pub truncated: bool,
    /// How long the job ran, in microseconds.
    pub elapsed_us: u64,
}

fn too_long(length: usize, max: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a frame of {length} bytes; at most {max} are allowed"),
    )
}

/// Writes one frame of at most `max` bytes.
///
/// # Errors
///
/// What the writer says; [`io::ErrorKind::InvalidData`] for a value that is too long.
pub fn write_frame<T: Serialize>(writer: &mut impl Write, value: &T, max: usize) -> io::Result<()> {
    let mut bytes = vec![0; size_of::<u32>()];
    serde_json::to_writer(&mut bytes, value).map_err(io::Error::other)?;
    let body = bytes.len() - size_of::<u32>();
    let length = u32::try_from(body).ok().filter(|_| body <= max).ok_or_else(|| too_long(body, max))?;
    bytes[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    writer.write_all(&bytes)
}

/// Reads one frame of at most `max` bytes; `None` where the other end closed the socket between two frames.
///
/// # Errors
///
/// What the reader says; [`io::ErrorKind::UnexpectedEof`] within a frame; [`io::ErrorKind::InvalidData`] for a
/// frame that is too long or holds something else than `T`.
pub fn read_frame<T: DeserializeOwned>(reader: &mut impl Read, max: usize) -> io::Result<Option<T>> {
    let mut length = [0; size_of::<u32>()];
    let first = loop {
        match reader.read(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    reader.read_exact(&mut length[first..])?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > max {
        return Err(too_long(length, max));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_comes_back_as_it_went() {
        let request = JobRequest {
            seq: 7,
            job: Job::Lvm { line: "vgs \"a b\"".to_owned(), flush: vec!["/dev/sdb".into()] },
        };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &request, REQUEST_MAX).unwrap();
        let mut reader = bytes.as_slice();
        assert_eq!(read_frame::<JobRequest>(&mut reader, REQUEST_MAX).unwrap(), Some(request));
        assert_eq!(read_frame::<JobRequest>(&mut reader, REQUEST_MAX).unwrap(), None);
    }

    #[test]
    fn an_end_within_a_frame_is_an_error() {
        let hello = Hello { protocol: PROTOCOL, lvm_version: "2.03.16(2)".to_owned() };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &hello, REPLY_MAX).unwrap();
        for length in 1..bytes.len() {
            let error = read_frame::<Hello>(&mut &bytes[..length], REPLY_MAX).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_on_both_sides() {
        let line = "x".repeat(100);
        assert!(write_frame(&mut Vec::new(), &line, 50).is_err());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &line, 200).unwrap();
        assert_eq!(
            read_frame::<String>(&mut bytes.as_slice(), 50).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_frame::<JobReply>(&mut bytes.as_slice(), 1 << 16);
            let _ = read_frame::<JobRequest>(&mut bytes.as_slice(), 1 << 16);
        }
    }
}
