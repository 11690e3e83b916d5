//! Frames between host and guest: a little-endian u32 length, one byte of kind, then the payload.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The name of the virtio-serial port that carries the frames.
pub const PORT: &str = "gabion.rig";

/// The largest payload that either side accepts, in bytes.
pub const MAX_PAYLOAD: usize = 4 << 20;

/// What the host asks of the guest. Each request is answered by exactly one [`Event`] with its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Answered by [`Event::Pong`] at once, even while commands run.
    Ping {
        /// Comes back in the answer.
        id: u32,
    },
    /// Run a command; answered by any number of outputs, then [`Event::Ended`].
    Run {
        /// Comes back in the answers.
        id: u32,
        /// What to run.
        command: Command,
    },
    /// Discard every spare disk that was written to since the last time; answered by [`Event::Blanked`].
    Blank {
        /// Comes back in the answer.
        id: u32,
        /// What the disks held when the machine started.
        at_start: Content,
    },
    /// Name everything that a test left behind and remove it; answered by [`Event::Swept`].
    Sweep {
        /// Comes back in the answer.
        id: u32,
    },
    /// Write the stacks of blocked tasks to the console; answered by [`Event::Pong`].
    BlockedTasks {
        /// Comes back in the answer.
        id: u32,
    },
}

/// What is known of the spare disks' content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing but zeroes.
    Blank,
    /// Anything.
    Unknown,
}

/// A command, its surroundings and its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments; the program is looked up in PATH when it has no slash.
    pub argv: Vec<String>,
    /// Variables added to the guest's own environment.
    pub env: BTreeMap<String, String>,
    /// Working directory; made when it is missing.
    pub cwd: String,
    /// After this time the command and everything that it started are killed.
    pub limit: Duration,
    /// Run on the interactive console instead of collecting the output.
    pub on_console: bool,
}

impl Command {
    /// A command with a limit of one minute, in a directory of its own below /tmp, without further variables.
    #[must_use]
    pub fn new<I, S>(argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: "/tmp/run".into(),
            limit: Duration::from_secs(60),
            on_console: false,
        }
    }

    /// A script for /bin/sh that ends at its first failing command.
    #[must_use]
    pub fn script(text: &str) -> Self {
        Command::new(["/bin/sh", "-e", "-c", text])
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the time after which the command is killed.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the working directory, which is made when it is missing.
    #[must_use]
    pub fn cwd(mut self, path: impl Into<String>) -> Self {
        self.cwd = path.into();
        self
    }
}

/// What the guest tells the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The guest is ready for requests.
    Ready {
        /// The kernel's release.
        kernel: String,
        /// Time since the kernel's start.
        uptime: Duration,
        /// The spare disks, in order: device node by serial number.
        disks: Vec<Disk>,
    },
    /// The answer to a ping.
    Pong {
        /// Of the request.
        id: u32,
    },
    /// A command ended.
    Ended {
        /// Of the request.
        id: u32,
        /// How it ended.
        status: Status,
        /// What the kernel logged meanwhile.
        kernel_log: Vec<String>,
        /// How long it ran.
        took: Duration,
    },
    /// The spare disks are blank.
    Blanked {
        /// Of the request.
        id: u32,
        /// The spare disks that are there now.
        disks: Vec<Disk>,
        /// What could not be blanked, and why.
        failed: Vec<String>,
    },
    /// What a test had left behind.
    Swept {
        /// Of the request.
        id: u32,
        /// What was found, one line each.
        found: Vec<String>,
        /// What could not be removed; not empty means that the machine must be started anew.
        stuck: Vec<String>,
    },
}

/// A spare virtual disk as the guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The serial number that the host gave it.
    pub serial: String,
    /// Its device node, such as `/dev/vda`.
    pub node: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
    /// It ran into its limit and was killed.
    TimedOut,
    /// It ran into its limit and cannot be killed (it sleeps in the kernel).
    Stuck,
    /// It could not be started.
    NotStarted(String),
}

impl Status {
    /// Whether the command exited with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        *self == Status::Exited(0)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Exited(code) => write!(f, "exited with {code}"),
            Status::Signalled(signal) => write!(f, "killed by signal {signal}"),
            Status::TimedOut => write!(f, "killed at its time limit"),
            Status::Stuck => write!(f, "stuck in the kernel past its time limit, cannot be killed"),
            Status::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

/// Which of a command's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One frame in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Host to guest.
    Request(Request),
    /// Guest to host.
    Event(Event),
    /// Guest to host: bytes that a command wrote.
    Output {
        /// Of the request.
        id: u32,
        /// Where it wrote them.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Frame {
    /// Writes the frame with one call, so that frames of several threads never mix under a lock.
    ///
    /// # Errors
    /// When the port cannot be written, or the payload is larger than [`MAX_PAYLOAD`].
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, payload) = match self {
            Frame::Request(request) => (b'q', serde_json::to_vec(request)?),
            Frame::Event(event) => (b'e', serde_json::to_vec(event)?),
            Frame::Output { id, stream, bytes } => {
                let kind = if *stream == Stream::Out { b'1' } else { b'2' };
                (kind, [&id.to_le_bytes(), bytes.as_slice()].concat())
            }
        };
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= MAX_PAYLOAD);
        let length = length.ok_or_else(|| invalid(format!("a payload of {} bytes", payload.len())))?;
        let mut wire = length.to_le_bytes().to_vec();
        wire.push(kind);
        wire.extend_from_slice(&payload);
        to.write_all(&wire)?;
        to.flush()
    }

    /// Reads the next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// When the port cannot be read, ends inside a frame, or carries something that is no frame.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut head = [0; 5];
        if from.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut head[1..])?;
        let [a, b, c, d, kind] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_PAYLOAD {
            return Err(invalid(format!("a frame of {length} bytes")));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload)?;
        Frame::decode(kind, &payload).map(Some)
    }

    fn decode(kind: u8, payload: &[u8]) -> io::Result<Frame> {
        match kind {
            b'q' => Ok(Frame::Request(serde_json::from_slice(payload)?)),
            b'e' => Ok(Frame::Event(serde_json::from_slice(payload)?)),
            b'1' | b'2' => {
                let (id, bytes) =
                    payload.split_first_chunk::<4>().ok_or_else(|| invalid("an output without id".into()))?;
                let stream = if kind == b'1' { Stream::Out } else { Stream::Err };
                Ok(Frame::Output { id: u32::from_le_bytes(*id), stream, bytes: bytes.to_vec() })
            }
            other => Err(invalid(format!("a frame of kind {other:#x}"))),
        }
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_frame_survives_the_wire() {
        let frames = [
            Frame::Request(Request::Sweep { id: 3 }),
            Frame::Event(Event::Ended {
                id: 4,
                status: Status::Signalled(9),
                kernel_log: vec!["a".into()],
                took: Duration::from_millis(12),
            }),
            Frame::Output { id: 5, stream: Stream::Err, bytes: vec![0, 255, 10] },
        ];
        let mut wire = Vec::new();
        for frame in &frames {
            frame.write(&mut wire).unwrap();
        }
        let mut from = wire.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut from).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).unwrap(), None);
    }

    #[test]
    fn a_frame_larger_than_the_limit_is_refused_before_it_is_read() {
        let wire = [0xff, 0xff, 0xff, 0xff, b'1', 0, 0];
        assert_eq!(Frame::read(&mut wire.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(wire in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut from = wire.as_slice();
            while let Ok(Some(_)) = Frame::read(&mut from) {}
        }
    }
}
