//! The disposable virtual machine: boot it, run commands in it, pull its disks, cut its power.

mod hotplug;
mod outcome;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use guest::protocol::{Command, Content, Disk, Event, Frame, Request, Status, Stream};

use crate::boot;
use crate::kernel::{Kernel, MachineKind};
use crate::lock::Lock;
use crate::qemu::{self, Accelerator, Emulator, RunDir, connect};
use crate::uml;
use crate::virtual_disk::{DiskSpec, VirtualDisk};

use outcome::text;
pub use outcome::{Lost, Output, Watch};

/// How long the machine may take to boot; emulation needs about 7 seconds on an idle host.
const BOOT: Duration = Duration::from_secs(300);

/// How much longer than a command's own limit the guest may take to report its end.
const GRACE: Duration = Duration::from_secs(30);

/// How long the guest may take for anything that is not a command.
const ANSWER: Duration = Duration::from_secs(180);

/// The most that is kept of one command's output, in bytes.
const OUTPUT: usize = 8 << 20;

/// What a machine consists of.
#[derive(Debug, Clone, Default)]
pub struct MachineSpec {
    /// Its spare disks.
    pub disks: Vec<DiskSpec>,
    /// Programs that the guest finds in /run/rig/bin (first in its PATH), by name.
    pub programs: BTreeMap<String, PathBuf>,
}

/// A running machine. Dropping it cuts its power; its disks are deleted with the lock's directory.
///
/// ```no_run
/// use guest::protocol::Command;
/// use xtask::{built, kernel::MachineKind, lock::Lock, machine::{Machine, MachineSpec}, setup, virtual_disk::DiskSpec};
///
/// # fn main() -> anyhow::Result<()> {
/// let kernel = setup::ready(MachineKind::Qemu)?;
/// let spec = MachineSpec { disks: vec![DiskSpec::plain(3)], programs: built::guest_programs()? };
/// let lock = Lock::take(kernel.machine)?;
/// let mut machine = Machine::boot(&lock, &kernel, &spec)?;
/// let output = machine.run(&Command::script("pvcreate /dev/vda && pvs"))?;
/// assert!(output.status.success(), "{}", output.text());
/// machine.cut_power();
/// machine.start()?; // the same disks, and what was written to them
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Machine {
    kernel: Kernel,
    run: RunDir,
    /// None where nothing is emulated.
    accelerator: Option<Accelerator>,
    virtual_disks: Vec<VirtualDisk>,
    /// What the disks held at the last start.
    content: Content,
    running: Option<Running>,
    next_id: u32,
}

#[derive(Debug)]
struct Running {
    emulator: Emulator,
    port: UnixStream,
    frames: Receiver<Frame>,
    kernel: String,
    uptime: Duration,
    disks: Vec<Disk>,
}

impl Machine {
    /// Boots a machine with fresh disks.
    pub fn boot(lock: &Lock, kernel: &Kernel, spec: &MachineSpec) -> Result<Self> {
        let run = RunDir(lock.run_dir().clone());
        for directory in [run.share(), run.out()] {
            fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        }
        boot::stage(&run.share(), kernel, &spec.programs)?;
        let accelerator = match kernel.machine {
            MachineKind::Qemu => Some(qemu::accelerator(kernel, &run)?),
            MachineKind::Uml => None,
        };
        let virtual_disks = VirtualDisk::create_all(&spec.disks, lock.run_dir())?;
        let kernel = kernel.clone();
        let content = Content::Blank;
        let mut machine =
            Machine { kernel, run, accelerator, virtual_disks, content, running: None, next_id: 0 };
        machine.start_blank()?;
        Ok(machine)
    }

    /// Starts the machine again with all its disks blank.
    ///
    /// # Errors
    /// As [`Machine::start`].
    pub fn start_blank(&mut self) -> Result<()> {
        self.cut_power();
        self.virtual_disks.iter_mut().try_for_each(VirtualDisk::blank)?;
        self.start()?;
        self.content = Content::Blank;
        Ok(())
    }

    /// Starts the machine again on the same disks, after [`Machine::cut_power`] or when it was lost.
    ///
    /// # Errors
    /// [`Lost`] when the machine does not come up; else when the emulator cannot be started.
    pub fn start(&mut self) -> Result<()> {
        self.cut_power();
        self.content = Content::Unknown;
        // A machine that starts has all its disks.
        self.virtual_disks.iter_mut().for_each(|disk| disk.plugged = true);
        let (emulator, port) = self.start_process()?;
        let frames = receive(port.try_clone().context("sharing the runner's port")?);
        match frames.recv_timeout(BOOT) {
            Ok(Frame::Event(Event::Ready { kernel, uptime, disks })) => {
                self.running = Some(Running { emulator, port, frames, kernel, uptime, disks });
                Ok(())
            }
            Ok(other) => bail!("the guest's runner began with {other:?}"),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.lost(format!("it did not boot within {} s", BOOT.as_secs()), "").into())
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.lost("it ended while booting".into(), "").into()),
        }
    }

    fn start_process(&self) -> Result<(Emulator, UnixStream)> {
        let Some(accelerator) = self.accelerator else {
            return uml::start(&self.kernel, &self.run, &self.virtual_disks);
        };
        let mut emulator = Emulator::start(&self.kernel, &self.run, &self.virtual_disks, accelerator)?;
        qemu::check_started(&mut emulator, &self.run)?;
        let port = connect(&self.run.runner_socket())?;
        Ok((emulator, port))
    }

    /// Ends the machine at once, as a power cut does. What the guest had written stays on the disks.
    pub fn cut_power(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.emulator.kill();
        }
    }

    /// The guest's kernel release, and the time from its start until it was ready.
    pub fn booted(&self) -> (String, Duration) {
        self.running.as_ref().map(|running| (running.kernel.clone(), running.uptime)).unwrap_or_default()
    }

    /// Whether its disks can be pulled out and put back.
    #[must_use]
    pub fn is_pluggable(&self) -> bool {
        self.kernel.machine == MachineKind::Qemu
    }

    /// The spare disks as the guest saw them last, in their order.
    pub fn disks(&self) -> &[Disk] {
        self.running.as_ref().map_or(&[], |running| &running.disks)
    }

    /// The guest's writable share on the host: what a command writes to /run/out appears here.
    pub fn out(&self) -> PathBuf {
        self.run.out()
    }

    /// Runs a command and collects what it writes.
    pub fn run(&mut self, command: &Command) -> Result<Output, Lost> {
        self.run_watched(command, &mut |_, _| Watch::GoOn)
    }

    /// Runs a command and shows everything that it writes to `watch`, which may pull disks or cut the power; after a
    /// cut the command counts as killed, and the machine waits for [`Machine::start`].
    pub fn run_watched(
        &mut self,
        command: &Command,
        watch: &mut dyn FnMut(Stream, &[u8]) -> Watch,
    ) -> Result<Output, Lost> {
        let id = self.send(|id| Request::Run { id, command: command.clone() })?;
        let start = Instant::now();
        let deadline = start + command.limit + GRACE;
        let mut written: Vec<(Stream, Vec<u8>)> = Vec::new();
        let mut kept = 0;
        loop {
            match self.receive(deadline) {
                Ok(Frame::Output { id: of, stream, bytes }) if of == id => {
                    let wish = watch(stream, &bytes);
                    let room = OUTPUT.saturating_sub(kept).min(bytes.len());
                    kept += room;
                    written.push((stream, bytes[..room].to_vec()));
                    if let Err(error) = self.fulfil(&wish) {
                        let note = format!("\nrig: {wish:?}: {error:#}\n");
                        written.push((Stream::Err, note.into_bytes()));
                    }
                    if !self.is_running() {
                        let (status, took) = (Status::Signalled(9), start.elapsed());
                        return Ok(Output { status, written, kernel_log: vec![], took });
                    }
                }
                Ok(Frame::Event(Event::Ended { id: of, status, kernel_log, took })) if of == id => {
                    return Ok(Output { status, written, kernel_log, took });
                }
                Ok(_) => {}
                Err(why) => return Err(self.lost(why, &text(&written))),
            }
        }
    }

    /// Whether the machine runs, as far as is known.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Zeroes every spare disk that was written to, and returns the disks.
    pub fn blank_disks(&mut self) -> Result<Vec<Disk>> {
        let at_start = self.content;
        match self.ask(|id| Request::Blank { id, at_start })? {
            Event::Blanked { disks, failed, .. } if failed.is_empty() => {
                if let Some(running) = &mut self.running {
                    running.disks.clone_from(&disks);
                }
                Ok(disks)
            }
            Event::Blanked { failed, .. } => bail!("{}", failed.join("\n")),
            other => bail!("the guest answered {other:?}"),
        }
    }

    /// Names what was left behind in the guest and removes it; the second list is what could not be removed.
    pub fn sweep(&mut self) -> Result<(Vec<String>, Vec<String>)> {
        match self.ask(|id| Request::Sweep { id })? {
            Event::Swept { found, stuck, .. } => Ok((found, stuck)),
            other => bail!("the guest answered {other:?}"),
        }
    }

    /// The last lines of the console.
    pub fn console_tail(&self, lines: usize) -> String {
        tail(&self.run.console_log(), lines)
    }

    /// The socket of the interactive terminal.
    pub fn terminal(&self) -> Result<UnixStream> {
        connect(&self.run.terminal_socket())
    }

    /// The end of the console, after the kernel was asked to write the stacks of blocked tasks there.
    pub fn blocked_tasks(&mut self) -> String {
        if let Some(running) = &mut self.running
            && running.emulator.is_running()
            && self.send(|id| Request::BlockedTasks { id }).is_ok()
        {
            // The stacks take a moment on an emulated serial line.
            thread::sleep(Duration::from_secs(3));
        }
        self.console_tail(80)
    }

    fn lost(&mut self, why: String, written: &str) -> Lost {
        let console = self.blocked_tasks();
        self.cut_power();
        Lost { why, console, written: written.to_owned() }
    }

    fn send(&mut self, request: impl FnOnce(u32) -> Request) -> Result<u32, Lost> {
        self.next_id += 1;
        let id = self.next_id;
        let sent = match &mut self.running {
            Some(running) => Frame::Request(request(id)).write(&mut running.port),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        };
        match sent {
            Ok(()) => Ok(id),
            Err(error) => {
                let why = format!("a request cannot be sent: {error}");
                let console = self.console_tail(80);
                self.cut_power();
                Err(Lost { why, console, written: String::new() })
            }
        }
    }

    fn receive(&self, deadline: Instant) -> Result<Frame, String> {
        let running = self.running.as_ref().ok_or("it does not run")?;
        let left = deadline.saturating_duration_since(Instant::now());
        running.frames.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => "the guest does not answer any more".to_owned(),
            RecvTimeoutError::Disconnected => {
                "it ended by itself (a kernel panic, if nothing was told)".to_owned()
            }
        })
    }

    fn ask(&mut self, request: impl FnOnce(u32) -> Request) -> Result<Event> {
        let id = self.send(request)?;
        let deadline = Instant::now() + ANSWER;
        loop {
            match self.receive(deadline) {
                Ok(Frame::Event(event)) if answers(&event, id) => return Ok(event),
                Ok(_) => {}
                Err(why) => return Err(self.lost(why, "").into()),
            }
        }
    }
}

fn answers(event: &Event, to: u32) -> bool {
    match event {
        Event::Ready { .. } => false,
        Event::Pong { id }
        | Event::Ended { id, .. }
        | Event::Blanked { id, .. }
        | Event::Swept { id, .. } => *id == to,
    }
}

fn receive(mut port: UnixStream) -> Receiver<Frame> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(Some(frame)) = Frame::read(&mut port) {
            if tell.send(frame).is_err() {
                break;
            }
        }
    });
    told
}

fn tail(path: &Path, lines: usize) -> String {
    let log = fs::read(path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).replace('\r', "");
    let all: Vec<&str> = log.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
