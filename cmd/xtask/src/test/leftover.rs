//! Processes that a test has started and that outlive it.

use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Words of a command line beyond which it tells nobody anything new.
const NAME_MAX: usize = 120;

/// A process that a test left running.
#[derive(Debug)]
pub(super) struct Leftover {
    id: Pid,
    /// Stays this very process, whoever gets its number later.
    handle: OwnedFd,
    name: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the process {} ({})", self.id.as_raw_nonzero(), self.name)
    }
}

/// What tells a test's processes: their process group or session, and the pipe of its output, while it is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) group: Pid,
    pub(super) pipe: Option<u64>,
}

impl Leftover {
    /// All of them at this moment.
    #[must_use]
    pub(super) fn all(marks: Marks) -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        ids.filter(|id| *id != rustix::process::getpid()).filter_map(|id| Self::look(id, marks)).collect()
    }

    fn look(id: Pid, marks: Marks) -> Option<Self> {
        let dir = PathBuf::from(format!("/proc/{}", id.as_raw_nonzero()));
        if !bears(&dir, marks) {
            return None;
        }
        let handle = pidfd_open(id, PidfdFlags::empty()).ok()?;
        // The number may have passed to another process before the handle was made.
        bears(&dir, marks).then(|| Self { id, handle, name: name(&dir) })
    }

    /// Ends it at once; a process that is gone already counts as ended.
    pub(super) fn kill(&self) {
        if let Err(error) = pidfd_send_signal(&self.handle, Signal::KILL)
            && error != rustix::io::Errno::SRCH
        {
            eprintln!("{self} cannot be killed: {error}");
        }
    }
}

/// Whether the process of this directory in /proc has one of the marks. One that is dead and not yet buried has none.
fn bears(dir: &Path, marks: Marks) -> bool {
    let Ok(stat) = fs::read_to_string(dir.join("stat")) else { return false };
    // The name in parentheses may hold anything: state, parent, group and session stand behind it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let [state, _parent, group, session, ..] = fields.as_slice() else { return false };
    let own = marks.group.as_raw_nonzero().to_string();
    let is_member = *group == own || *session == own;
    !matches!(*state, "Z" | "X") && (is_member || marks.pipe.is_some_and(|pipe| holds(dir, pipe)))
}

fn holds(dir: &Path, pipe: u64) -> bool {
    let wanted = PathBuf::from(format!("pipe:[{pipe}]"));
    let files = fs::read_dir(dir.join("fd")).into_iter().flatten().flatten();
    files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
}

fn name(dir: &Path) -> String {
    let line = fs::read(dir.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mut name = words.join(" ").trim().to_owned();
    if let Some((end, _)) = name.char_indices().nth(NAME_MAX) {
        name.truncate(end);
    }
    name
}
