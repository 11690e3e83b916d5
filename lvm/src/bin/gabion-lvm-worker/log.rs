//! The buffer that the library's messages go into.
//!
//! A message may come while devices are suspended and memory is locked, so the buffer is reserved before any
//! command runs, and a message neither allocates (until a report outgrows the reserve) nor panics.

use std::sync::Mutex;

use lvm::run::LogRecord;

/// What is reserved from the start: more than any command but a long report says.
const RESERVE: usize = 256 << 10;
/// What is kept of one command, in bytes; the frame's limit leaves room for JSON's escapes.
const KEPT_MAX: usize = 16 << 20;
/// The length at which the library cuts a message without a word.
const CUT: usize = 4095;
/// The level of an error, as LVM counts.
const ERROR: u8 = 3;
/// The highest level that is kept: what `-v` and debugging add is dropped at once.
const LEVEL_MAX: u8 = 4;

struct Buffer {
    /// Messages one behind the other.
    text: Vec<u8>,
    /// Level and length of each.
    marks: Vec<(u8, usize)>,
    truncated: bool,
}

static BUFFER: Mutex<Buffer> = Mutex::new(Buffer { text: Vec::new(), marks: Vec::new(), truncated: false });

/// Takes memory for the messages of most commands.
pub(crate) fn reserve() {
    if let Ok(mut buffer) = BUFFER.lock() {
        buffer.text.reserve(RESERVE);
        buffer.marks.reserve(RESERVE / 64);
    }
}

/// Keeps one message, if it is of a level that says something to a caller.
pub(crate) fn append(level: u8, message: &[u8]) {
    if level > LEVEL_MAX {
        return;
    }
    let Ok(mut buffer) = BUFFER.lock() else { return };
    if buffer.text.len() + message.len() > KEPT_MAX {
        buffer.truncated = true;
        return;
    }
    buffer.truncated |= message.len() >= CUT;
    buffer.text.extend_from_slice(message);
    buffer.marks.push((level, message.len()));
}

/// Keeps what went wrong in this program itself.
pub(crate) fn say(message: &str) {
    append(ERROR, message.as_bytes());
}

/// The messages since the last call, oldest first, and whether any was cut or dropped.
pub(crate) fn take() -> (Vec<LogRecord>, bool) {
    let Ok(mut buffer) = BUFFER.lock() else { return (Vec::new(), true) };
    let mut rest = buffer.text.as_slice();
    let mut records = Vec::with_capacity(buffer.marks.len());
    for (level, length) in &buffer.marks {
        let (message, tail) = rest.split_at((*length).min(rest.len()));
        records.push(LogRecord { level: *level, message: String::from_utf8_lossy(message).into_owned() });
        rest = tail;
    }
    let truncated = std::mem::take(&mut buffer.truncated);
    buffer.text.clear();
    buffer.marks.clear();
    buffer.text.shrink_to(RESERVE);
    buffer.marks.shrink_to(RESERVE / 64);
    (records, truncated)
}
