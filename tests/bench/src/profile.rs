//! Where the time of one change goes, in the worker and in a spawned command.
//!
//! `strace -T` tells how long each system call lasted; what is left is the process's own computing (and the tracer's
//! weight, so shares say more than times).

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::changes::{Durability, Kind, Step, settle};
use crate::report::{Report, time};
use crate::site::{Site, program, spawn};
use crate::work::{Library, volume};

/// The time of one step, by what it was spent in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Split {
    pub(crate) name: String,
    total_ns: u64,
    /// Nanoseconds in system calls of each kind, of all processes of the command.
    parts: BTreeMap<&'static str, u64>,
    /// The single system calls that took longest, as strace names them.
    longest: Vec<(String, u64)>,
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}, traced: {}", self.name, time(self.total_ns))?;
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|(_, took)| std::cmp::Reverse(**took));
        for (name, took) in parts {
            write!(f, "; {name} {}", time(*took))?;
        }
        Ok(())
    }
}

/// Splits each step of one kind, both ways.
pub(crate) fn run(report: &mut Report, site: &Site, kind: Kind) -> Result<()> {
    let library = Library::start(site)?;
    let name = volume(0)?;
    for step in [Step::Create, Step::Remove] {
        let words = kind.words(site, step, &name);
        settle()?;
        let log = site.dir().join("spawned.strace");
        let mut traced = Command::new(program("strace")?);
        traced.args(["-f", "-T", "-o"]).arg(&log).arg("--").arg(program("lvm")?).args(&words);
        let environment = site.command("lvm")?;
        traced.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let start = Instant::now();
        spawn(&mut traced)?;
        report.split(split(&format!("{} {}, spawned", step.name(), kind.name()), start.elapsed(), &log)?);
    }
    // A command that changes nothing makes the worker start, and read its configuration.
    library.command(&["lvs".to_owned(), site.vg().to_owned()], Durability::AsLvmDoes)?;
    let pid = worker_pid()?;
    for step in [Step::Create, Step::Remove] {
        let words = kind.words(site, step, &name);
        settle()?;
        let log = site.dir().join("worker.strace");
        let tracer = Tracer::attach(&pid, &log)?;
        let start = Instant::now();
        library.command(&words, Durability::AsLvmDoes)?;
        let took = start.elapsed();
        tracer.end()?;
        report.split(split(&format!("{} {}, in the worker", step.name(), kind.name()), took, &log)?);
    }
    Ok(())
}

/// The one worker of this process.
fn worker_pid() -> Result<String> {
    let tasks = fs::read_dir("/proc/self/task").context("list this process's threads")?;
    for task in tasks.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if lvm::worker::find::NAME.starts_with(name.trim()) {
                return Ok(child.to_owned());
            }
        }
    }
    anyhow::bail!("no worker runs")
}

/// A tracer on a running process.
struct Tracer(Child);

impl Tracer {
    fn attach(pid: &str, log: &Path) -> Result<Self> {
        let mut command = Command::new(program("strace")?);
        command.args(["-f", "-T", "-p", pid, "-o"]).arg(log).stdin(Stdio::null()).stderr(Stdio::null());
        let tracer = Self(command.spawn().context("start strace")?);
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).context("look at the worker")?;
            let tracer_pid = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
            if tracer_pid.is_some_and(|pid| pid.trim() != "0") {
                return Ok(tracer);
            }
            ensure!(Instant::now() < end, "strace has not attached within 10 s");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(mut self) -> Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.context("strace has no pid")?, rustix::process::Signal::INT)?;
        self.0.wait().context("wait for strace")?;
        Ok(())
    }
}

fn split(name: &str, total: Duration, log: &Path) -> Result<Split> {
    let text = String::from_utf8_lossy(&fs::read(log).context("read what strace wrote")?).into_owned();
    let mut parts = BTreeMap::new();
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    for (call, took) in text.lines().filter_map(call) {
        if let Some(part) = part_of(&call) {
            *parts.entry(part).or_default() += took;
        }
        *calls.entry(call).or_default() += took;
    }
    let mut longest: Vec<(String, u64)> = calls.into_iter().collect();
    longest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    longest.truncate(12);
    let total_ns = u64::try_from(total.as_nanos()).unwrap_or(u64::MAX);
    Ok(Split { name: name.to_owned(), total_ns, parts, longest })
}

/// Name and nanoseconds of one line, such as `12 ioctl(3, DM_TABLE_LOAD, {…}) = 0 <0.000123>`, also where it was
/// resumed. An ioctl's name is that of its request.
fn call(line: &str) -> Option<(String, u64)> {
    let took = line.rsplit_once('<')?.1.strip_suffix('>')?.parse::<f64>().ok()?;
    let nanoseconds = u64::try_from(Duration::try_from_secs_f64(took).ok()?.as_nanos()).ok()?;
    let text = line.trim_start().split_once(' ')?.1.trim_start();
    let name = match text.strip_prefix("<... ") {
        Some(resumed) => resumed.split_once(' ')?.0.to_owned(),
        None => {
            let (name, arguments) = text.split_once('(')?;
            match arguments.split(", ").nth(1).filter(|_| name == "ioctl") {
                Some(request) => request.split([')', '(']).next()?.to_owned(),
                None => name.to_owned(),
            }
        }
    };
    Some((name, nanoseconds))
}

/// What a system call is for; `None` for those whose time is another process's work, waited for.
fn part_of(call: &str) -> Option<&'static str> {
    Some(match call {
        "semop" | "semtimedop" | "semctl" | "semget" => "udev",
        "wait4" | "waitid" | "restart_syscall" => return None,
        // The worker's own wait for its next command.
        "recvfrom" | "recvmsg" | "poll" => return None,
        "io_submit" | "io_getevents" | "pread64" | "preadv" | "pwrite64" => "devices",
        "fsync" | "fdatasync" | "rename" | "sync" => "backup",
        "mmap" | "munmap" | "mlock" | "munlock" | "brk" | "mprotect" => "memory",
        "execve" | "clone" | "vfork" | "clone3" => "processes",
        "nanosleep" | "clock_nanosleep" => "sleep",
        name if name.starts_with("DM_") => "device-mapper",
        name if name.starts_with("ioctl") || name.starts_with("BLK") => "ioctl",
        _ => "other calls",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_its_call_and_its_time() {
        let line = "77  ioctl(3, DM_TABLE_LOAD, {version=4.0.0}) = 0 <0.000250>";
        assert_eq!(call(line), Some(("DM_TABLE_LOAD".to_owned(), 250_000)));
        let resumed = "77  <... semtimedop resumed>) = 0 <1.500000>";
        assert_eq!(call(resumed), Some(("semtimedop".to_owned(), 1_500_000_000)));
        let plain = "77  ioctl(5, BLKGETSIZE64, [21474836480]) = 0 <0.000001>";
        assert_eq!(call(plain), Some(("BLKGETSIZE64".to_owned(), 1_000)));
        assert_eq!(call("77  +++ exited with 0 +++"), None);
        assert_eq!(call("77  semtimedop(1,  <unfinished ...>"), None);
    }
}
