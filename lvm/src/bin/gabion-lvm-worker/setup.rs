//! The process's own descriptors and signals, before the library looks at them.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use lvm::run::LogRecord;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::stdio;

use crate::ffi;

/// How much of what children and getopt write to standard error is passed on, in bytes.
const STDERR_MAX: u64 = 64 << 10;
/// The level under which it is passed on: an error of LVM's.
const STDERR_LEVEL: u8 = 3;

/// Takes the socket from standard input, and gives the library a process of its own: nothing on 0 and 1, no
/// descriptor above 2, and deaf to the signals that end the program it works for.
pub(crate) fn take_over() -> io::Result<UnixStream> {
    let socket = rustix::io::fcntl_dupfd_cloexec(stdio::stdin(), 3)?;
    ffi::process::close_all_but(&socket);
    ffi::process::ignore_signals();
    if let Some(group) = lvm::recover::maker_group(std::process::id()) {
        ffi::process::sign_semaphores(group);
    }
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    stdio::dup2_stdin(&nothing)?;
    stdio::dup2_stdout(&nothing)?;
    Ok(UnixStream::from(socket))
}

/// What getopt and child processes such as thin_check say past the library's log.
pub(crate) struct Stderr {
    memory: RefCell<File>,
}

impl Stderr {
    /// Puts a file in memory into the place of standard error, which was the starting program's until here: what
    /// keeps the library from starting is for people to see.
    pub(crate) fn capture() -> io::Result<Self> {
        let memory = File::from(rustix::fs::memfd_create("stderr", MemfdFlags::CLOEXEC)?);
        stdio::dup2_stderr(&memory)?;
        Ok(Self { memory: RefCell::new(memory) })
    }

    /// The lines since the last call.
    pub(crate) fn take(&self) -> Vec<LogRecord> {
        let memory = &mut *self.memory.borrow_mut();
        let mut text = Vec::new();
        let read = memory.rewind().and_then(|()| memory.by_ref().take(STDERR_MAX).read_to_end(&mut text));
        // The offset is shared with descriptor 2: whoever writes next starts at the beginning again.
        let emptied = rustix::fs::ftruncate(memory.as_fd(), 0).is_ok() && memory.rewind().is_ok();
        if read.is_err() || !emptied {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| LogRecord { level: STDERR_LEVEL, message: line.to_owned() }).collect()
    }
}
