//! Serves the host's requests: one thread a command.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::disks::{self, Blanker};
use crate::kmsg::KernelLog;
use crate::leftovers::Baseline;
use crate::protocol::{Command, Event, Frame, Request, Status, Stream};

/// How long a killed command may take to disappear.
const DEATH: Duration = Duration::from_secs(10);

/// The virtio console that an interactive command gets.
const CONSOLE: &str = "/dev/hvc0";

/// The writing side of the port, shared by all threads.
#[derive(Clone)]
struct Host(Arc<Mutex<File>>);

impl Host {
    fn send(&self, frame: &Frame) {
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = frame.write(&mut *port) {
            // The host is gone: its end of the port is the only place where this could be told.
            eprintln!("gabion-guest: writing to the host: {error}");
        }
    }
}

/// Serves requests from `port` until the host closes its end.
///
/// # Errors
/// When the port fails or carries something that is no frame.
pub fn serve(port: File) -> io::Result<()> {
    let host = Host(Arc::new(Mutex::new(port.try_clone()?)));
    let mut requests = BufReader::new(port);
    let baseline = Baseline::take();
    let mut blanker = Blanker::default();
    host.send(&Frame::Event(ready()?));
    while let Some(frame) = Frame::read(&mut requests)? {
        let Frame::Request(request) = frame else {
            return Err(io::Error::other("the host sent something that is no request"));
        };
        match request {
            Request::Ping { id } => host.send(&Frame::Event(Event::Pong { id })),
            Request::Run { id, command } => {
                let host = host.clone();
                thread::spawn(move || host.send(&Frame::Event(run(id, &command, &host))));
            }
            Request::Blank { id, at_start } => {
                let failed = blanker.blank(at_start);
                host.send(&Frame::Event(Event::Blanked { id, disks: disks::spare(), failed }));
            }
            Request::Sweep { id } => {
                let (found, stuck) = baseline.sweep();
                host.send(&Frame::Event(Event::Swept { id, found, stuck }));
            }
            Request::BlockedTasks { id } => {
                fs::write("/proc/sysrq-trigger", "w")?;
                host.send(&Frame::Event(Event::Pong { id }));
            }
        }
    }
    Ok(())
}

fn ready() -> io::Result<Event> {
    let uptime = fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    Ok(Event::Ready { kernel, uptime: Duration::from_secs_f64(seconds), disks: disks::spare() })
}

fn run(id: u32, command: &Command, host: &Host) -> Event {
    let start = Instant::now();
    let mut log = KernelLog::from_now();
    let status = supervise(id, command, host).unwrap_or_else(|error| Status::NotStarted(error.to_string()));
    let kernel_log = match &mut log {
        Ok(log) => log.drain(),
        Err(error) => vec![format!("the kernel's log cannot be read: {error}")],
    };
    Event::Ended { id, status, kernel_log, took: start.elapsed() }
}

fn supervise(id: u32, command: &Command, host: &Host) -> io::Result<Status> {
    let group = Cgroup::create(&format!("run-{id}"))?;
    let mut child = spawn(command, &group)?;
    let pumps = [
        child.stdout.take().map(|from| pump(from, id, Stream::Out, host)),
        child.stderr.take().map(|from| pump(from, id, Stream::Err, host)),
    ];
    let status = wait(child, command.limit, &group)?;
    if status == Status::Stuck {
        return Ok(status);
    }
    // Daemons that the command left would keep the pipes open, and the disks in use.
    if !group.kill(DEATH)? {
        return Ok(Status::Stuck);
    }
    for pump in pumps.into_iter().flatten() {
        pump.join().map_err(|_| io::Error::other("the thread that copies the output panicked"))?;
    }
    Ok(status)
}

fn spawn(command: &Command, group: &Cgroup) -> io::Result<Child> {
    fs::create_dir_all(&command.cwd)?;
    // The shell joins the group before it becomes the command, so that nothing ever runs outside.
    let join = format!("echo $$ >{} && exec \"$@\"", group.procs().display());
    let mut process = std::process::Command::new("/bin/sh");
    process.args(["-c", &join, "sh"]);
    if command.on_console {
        let console = || OpenOptions::new().read(true).write(true).open(CONSOLE);
        process.args(["setsid", "--ctty", "--wait"]);
        process.stdin(console()?).stdout(console()?).stderr(console()?);
    } else {
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    }
    process.args(&command.argv).envs(&command.env).current_dir(&command.cwd).spawn()
}

fn pump(
    mut from: impl Read + Send + 'static,
    id: u32,
    stream: Stream,
    host: &Host,
) -> thread::JoinHandle<()> {
    let host = host.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            host.send(&Frame::Output { id, stream, bytes: buffer[..length].to_vec() });
        }
    })
}

fn wait(mut child: Child, limit: Duration, group: &Cgroup) -> io::Result<Status> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait()));
    match told.recv_timeout(limit) {
        Ok(status) => Ok(ended(status?)),
        Err(RecvTimeoutError::Timeout) if group.kill(DEATH)? => Ok(Status::TimedOut),
        Err(RecvTimeoutError::Timeout) => Ok(Status::Stuck),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that waits panicked")),
    }
}

fn ended(status: ExitStatus) -> Status {
    match status.code() {
        Some(code) => Status::Exited(code),
        None => Status::Signalled(status.signal().unwrap_or_default()),
    }
}
