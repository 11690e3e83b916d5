//! What becomes of a command, or of the whole machine.

use std::fmt;
use std::time::Duration;

use guest::protocol::{Status, Stream};

/// What a command gave.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: Status,
    /// What it wrote, in the order of arrival.
    pub written: Vec<(Stream, Vec<u8>)>,
    /// What the kernel logged meanwhile.
    pub kernel_log: Vec<String>,
    /// How long it ran in the guest.
    pub took: Duration,
}

impl Output {
    /// Both streams as text, in the order of arrival.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.written.iter().flat_map(|(_, bytes)| bytes).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Standard output as text.
    pub fn stdout(&self) -> String {
        let out = self.written.iter().filter(|(stream, _)| *stream == Stream::Out);
        let bytes: Vec<u8> = out.flat_map(|(_, bytes)| bytes).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The machine is gone or does not answer; the same disks can be started again.
#[derive(Debug)]
pub struct Lost {
    /// What happened.
    pub why: String,
    /// The end of its console.
    pub console: String,
    /// What the command had written until then.
    pub written: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the machine is lost: {}; the end of its console:\n{}", self.why, self.console)
    }
}

impl std::error::Error for Lost {}

/// What the watcher of a running command wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Nothing.
    GoOn,
    /// Cut the machine's power now.
    CutPower,
    /// Pull the disk with this place out.
    Unplug(usize),
    /// Put the disk with this place back; reading these sectors fails.
    Plug(usize, Vec<u64>),
    /// Give the disk with this place so many bytes.
    Resize(usize, u64),
}

pub(super) fn text(written: &[(Stream, Vec<u8>)]) -> String {
    let bytes: Vec<u8> = written.iter().flat_map(|(_, bytes)| bytes).copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
