//! Running the filesystems' own programs.
//!
//! Each is found in the system's directories alone, runs without a shell, with an empty environment in the C locale,
//! without standard input, in a process group of its own, and has a deadline.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::FsType;
use crate::held::Held;
use crate::{Effect, Error, Kind};

/// Where programs are looked for, also by those that call others (`xfs_admin` is a script).
const DIRECTORIES: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// What is kept of each output: the end of it, where the reason stands.
const KEPT: usize = 16 << 10;
/// How long a killed program may take to end. One that waits for a dead device takes for ever.
const KILL_WAIT: Duration = Duration::from_secs(10);

/// Locked while a program starts. Until it is another program, it has a copy of each of our descriptors, claims among
/// them; who closes one and wants it to be closed takes this.
pub(super) static SPAWNING: Mutex<()> = Mutex::new(());

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct Tool {
    program: &'static str,
    package: &'static str,
    arguments: Vec<OsString>,
    patience: Duration,
    /// What to call the device that the program knows by its lasting path.
    device: Option<(String, String)>,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit status; never that of a signal.
    pub(super) code: i32,
    /// What it wrote to standard output, the end of it.
    pub(super) output: String,
    /// What it wrote to standard error, the end of it.
    pub(super) errors: String,
}

impl Ended {
    /// The last lines that tell why, on one line.
    pub(super) fn reason(&self) -> String {
        let text = if self.errors.trim().is_empty() { &self.output } else { &self.errors };
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(4)..).unwrap_or_default();
        if last.is_empty() { "it gave no reason".to_owned() } else { last.join(" / ") }
    }
}

impl Tool {
    pub(super) fn new(fs: FsType, program: &'static str, patience: Duration) -> Self {
        Self { program, package: fs.package(), arguments: Vec::new(), patience, device: None }
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(super) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// A device as the next argument: not its name, which may lead to another one by now, but the open device.
    pub(super) fn device(mut self, device: &Held) -> Self {
        let path = device.lasting_path();
        self.device = Some((path.display().to_string(), device.path().display().to_string()));
        self.arg(path)
    }

    /// Runs it to its end and gives its exit status, whatever that is.
    ///
    /// [`Kind::TimedOut`] when the deadline passed: it was killed then, and [`Effect::Unknown`] says that it may have
    /// written. [`Kind::Other`] when something else killed it.
    pub(super) fn run(&self, tried: &str) -> Result<Ended, Error> {
        let program = find(self.program).ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("{} is in none of {DIRECTORIES}", self.program))
                .with_advice(format!("install {}", self.package))
        })?;
        let starting = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(program)
            .args(&self.arguments)
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", DIRECTORIES)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|cause| {
                Error::system(tried, cause).with_answer(format!("{} did not start", self.program))
            })?;
        drop(starting);
        let output = child.stdout.take().map(keep_end);
        let errors = child.stderr.take().map(keep_end);
        let status = self.wait(child, tried)?;
        let text =
            |reader: Option<JoinHandle<String>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
        let named = |text: String| match &self.device {
            Some((path, name)) => text.replace(path, name),
            None => text,
        };
        let (output, errors) = (named(text(output)), named(text(errors)));
        let Some(code) = status.code() else {
            return Err(Error::new(Kind::Other, tried)
                .with_answer(format!(
                    "{} was killed by signal {}",
                    self.program,
                    status.signal().unwrap_or(0)
                ))
                .with_effect(Effect::Unknown));
        };
        Ok(Ended { code, output, errors })
    }

    /// Runs it and demands exit status 0.
    pub(super) fn succeed(&self, tried: &str) -> Result<Ended, Error> {
        let ended = self.run(tried)?;
        match ended.code {
            0 => Ok(ended),
            code => Err(self.failed(tried, code, &ended)),
        }
    }

    pub(super) fn failed(&self, tried: &str, code: i32, ended: &Ended) -> Error {
        Error::new(Kind::Other, tried).with_answer(format!(
            "{} ended with {code}: {}",
            self.program,
            ended.reason()
        ))
    }

    fn wait(&self, mut child: Child, tried: &str) -> Result<ExitStatus, Error> {
        let deadline = Instant::now() + self.patience;
        let failed = |cause| Error::system(tried, cause).with_effect(Effect::Unknown);
        if let Some(status) = ended_by(&mut child, deadline).map_err(failed)? {
            return Ok(status);
        }
        let late = Error::new(Kind::TimedOut, tried).with_effect(Effect::Unknown);
        let passed = format!("{} did not end within {:?}", self.program, self.patience);
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended just now; then there is nobody to kill.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        if ended_by(&mut child, Instant::now() + KILL_WAIT).map_err(failed)?.is_some() {
            return Err(late.with_answer(format!("{passed} and was killed")));
        }
        // The kernel holds it, most likely for a device that does not answer. Somebody has to take its status later.
        thread::spawn(move || child.wait());
        Err(late
            .with_answer(format!("{passed}, and not after it was killed either"))
            .with_advice("the device does not answer; it stays in use until the program has gone"))
    }
}

fn ended_by(child: &mut Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Reads to the end in a thread of its own, so that the program never waits for us.
fn keep_end(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            kept.extend_from_slice(buffer.get(..length).unwrap_or_default());
            if kept.len() > 2 * KEPT {
                kept.drain(..kept.len() - KEPT);
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

pub(super) fn find(program: &str) -> Option<PathBuf> {
    DIRECTORIES.split(':').map(|directory| Path::new(directory).join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(program: &'static str) -> Tool {
        Tool::new(FsType::Ext4, program, Duration::from_secs(20))
    }

    #[test]
    fn the_environment_is_clean_and_there_is_no_input() {
        let ended = tool("env").succeed("see the environment").unwrap();
        assert_eq!(ended.output, format!("LC_ALL=C\nPATH={DIRECTORIES}\n"));
        assert_eq!(tool("cat").succeed("read nothing").unwrap().output, "");
    }

    #[test]
    fn a_status_comes_with_the_last_words() {
        let error = tool("sh").args(["-c", "echo one; echo two >&2; exit 3"]).succeed("try").unwrap_err();
        assert_eq!(error.to_string(), "could not try: sh ended with 3: two");
        let error = tool("sh").args(["-c", "kill -9 $$"]).run("try").unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Other, Effect::Unknown));
        let error = tool("no-such-program").run("try").unwrap_err();
        assert_eq!((error.kind(), error.advice()), (Kind::NotFound, Some("install e2fsprogs")));
    }

    #[test]
    fn a_program_that_is_late_is_killed_with_its_children() {
        let slow =
            Tool::new(FsType::Ext4, "sh", Duration::from_millis(200)).args(["-c", "sleep 60 & sleep 60"]);
        let start = Instant::now();
        let error = slow.run("sleep").unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::TimedOut, Effect::Unknown));
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    }

    #[test]
    fn endless_output_keeps_its_end_only() {
        let ended = tool("seq").arg("300000").succeed("count").unwrap();
        assert!(ended.output.len() <= 2 * KEPT + 4096 && ended.output.ends_with("\n300000\n"));
    }
}
