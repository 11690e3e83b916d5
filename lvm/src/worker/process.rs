//! One worker process, seen from the program that started it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::frame::{
    Hello, Job, JobReply, JobRequest, PROTOCOL, REPLY_MAX, REQUEST_MAX, read_frame, write_frame,
};
use crate::{Error, Kind};

/// How long a worker may take to say hello: it reads its configuration and nothing else.
const HELLO: Duration = Duration::from_secs(60);
/// How long a frame that has begun may take to arrive.
const FRAME: Duration = Duration::from_secs(60);
/// How long a worker with nothing to do may take to end, and to be gone once it was killed.
const ENDING: Duration = Duration::from_secs(10);
/// What LVM and the tools that it starts find programs by.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// How a job ended, as the socket tells it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The worker answered.
    Replied(JobReply),
    /// The worker is no more, or makes no sense.
    Died,
    /// There is no answer yet.
    Silent,
}

/// A worker that has said hello.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    socket: UnixStream,
    /// The last request's number.
    seq: u64,
    lvm_version: String,
}

impl Process {
    /// Starts a worker and hears its hello.
    pub(super) fn start(binary: &Path, conf_dir: &Path) -> Result<Self, Error> {
        let tried = || format!("start the LVM worker {}", binary.display());
        let failed = |error: io::Error| {
            Error::new(Kind::Io, tried())
                .with_answer(error.to_string())
                .with_advice("check that the program is there and may be run")
                .with_source(error)
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(binary);
        command.env_clear().env("PATH", PATH).env("LC_ALL", "C").env("LVM_SYSTEM_DIR", conf_dir);
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let child = command.spawn().map_err(failed)?;
        // The command holds the worker's end of the socket; an end is only heard once that is gone.
        drop(command);
        // A worker that reads nothing, as one that was stopped, must not keep who writes to it.
        ours.set_write_timeout(Some(FRAME)).map_err(failed)?;
        let mut process = Self { child, socket: ours, seq: 0, lvm_version: String::new() };
        match process.hello() {
            Ok(Some(hello)) if hello.protocol == PROTOCOL => {
                process.lvm_version = hello.lvm_version;
                Ok(process)
            }
            Ok(Some(hello)) => {
                process.end();
                Err(Error::new(Kind::Unsupported, tried())
                    .with_answer(format!("it speaks protocol {}, this program {PROTOCOL}", hello.protocol))
                    .with_advice("install the worker of the same version as this program"))
            }
            Ok(None) => {
                let status = process.end();
                Err(Error::new(Kind::Crashed, tried())
                    .with_answer(format!("it ended before its first word ({})", describe_exit(status)))
                    .with_advice("run it by hand to see what it says"))
            }
            Err(error) => {
                process.kill();
                process.end();
                Err(failed(error))
            }
        }
    }

    fn hello(&mut self) -> io::Result<Option<Hello>> {
        if !self.wait_readable(HELLO)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it says nothing"));
        }
        self.socket.set_read_timeout(Some(FRAME))?;
        read_frame(&mut self.socket, REPLY_MAX)
    }

    /// The version of LVM in this worker, such as `2.03.16(2) (2022-05-18)`.
    pub(super) fn lvm_version(&self) -> &str {
        &self.lvm_version
    }

    /// The process's number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How many jobs it was given.
    pub(super) fn jobs(&self) -> u64 {
        self.seq
    }

    /// Hands a job over. After an error the worker has not begun it: no whole frame arrived.
    pub(super) fn give(&mut self, job: Job) -> io::Result<()> {
        let request = JobRequest { seq: self.seq + 1, job };
        write_frame(&mut self.socket, &request, REQUEST_MAX)?;
        self.seq += 1;
        Ok(())
    }

    /// Waits for the answer to the job that was given.
    pub(super) fn answer(&mut self, patience: Duration) -> Outcome {
        match self.wait_readable(patience) {
            Ok(false) => Outcome::Silent,
            Ok(true) => match read_frame::<JobReply>(&mut self.socket, REPLY_MAX) {
                Ok(Some(reply)) if reply.seq == self.seq => Outcome::Replied(reply),
                _ => Outcome::Died,
            },
            Err(_) => Outcome::Died,
        }
    }

    /// Whether the worker has died while it had nothing to do.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, which a process in an uninterruptible wait takes only once that ends.
    pub(super) fn kill(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
    }

    /// Waits for a worker that was killed or has died, for a bounded time.
    pub(super) fn wait_end(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }

    /// Closes the socket, which ends an idle worker, and waits for that; one that does not end is killed. Nothing for
    /// one that the kernel does not let go of: it is left to a thread that waits for it.
    pub(super) fn end(self) -> Option<ExitStatus> {
        self.end_within(ENDING)
    }

    fn end_within(mut self, patience: Duration) -> Option<ExitStatus> {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some(status) = self.wait_end(patience) {
            return Some(status);
        }
        self.kill();
        let status = self.wait_end(patience);
        if status.is_none() {
            // Without the thread a zombie stays until this program ends.
            drop(std::thread::Builder::new().name("lvm-reaper".to_owned()).spawn(move || self.child.wait()));
        }
        status
    }

    /// Waits for a worker that was killed, however long that takes.
    pub(super) fn wait_for_ever(mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        // An error means that it is gone already.
        let _ = self.child.wait();
    }

    fn wait_readable(&self, patience: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// How a process ended, for people.
pub(super) fn describe_exit(status: Option<ExitStatus>) -> String {
    match status {
        None => "it does not end".to_owned(),
        Some(status) => match status.signal() {
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit code {}", status.code().unwrap_or_default()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &mut Command) -> Process {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap();
        Process { child, socket: ours, seq: 0, lvm_version: String::new() }
    }

    #[test]
    fn a_worker_that_does_not_end_by_itself_is_killed_and_one_that_does_is_not() {
        let begun = Instant::now();
        let deaf = of(Command::new("sleep").arg("600"));
        let status = deaf.end_within(Duration::from_millis(200));
        assert_eq!(describe_exit(status), "killed by signal 9");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        let status = of(&mut Command::new("cat")).end_within(Duration::from_secs(60));
        assert_eq!(describe_exit(status), "exit code 0");
    }

    #[test]
    fn a_worker_that_reads_nothing_does_not_keep_who_writes_to_it() {
        let mut deaf = of(Command::new("sleep").arg("600"));
        deaf.socket.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let job = Job::Lvm { line: "x".repeat(900_000), flush: Vec::new() };
        assert!(deaf.give(job).is_err());
        assert_eq!(describe_exit(deaf.end_within(Duration::from_millis(200))), "killed by signal 9");
    }

    #[test]
    fn whatever_a_worker_says_in_the_place_of_an_answer_it_counts_as_dead() {
        for says in ["", "x", "\\377\\377\\377\\377", "\\2\\0\\0\\0{}", "\\4\\0\\0\\0null"] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let child =
                Command::new("printf").arg(says).stdin(Stdio::null()).stdout(OwnedFd::from(theirs)).spawn();
            let mut process =
                Process { child: child.unwrap(), socket: ours, seq: 0, lvm_version: String::new() };
            assert!(matches!(process.answer(Duration::from_secs(60)), Outcome::Died), "{says:?}");
            process.end();
        }
    }
}
