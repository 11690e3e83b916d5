//! `cargo xtask vm`: a shell or a command in the disposable machine.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use guest::protocol::{Command, Status, Stream};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use crate::boot::quoted;
use crate::built;
use crate::kernel::MachineKind;
use crate::lock::Lock;
use crate::machine::{Lost, Machine, MachineSpec, Output, Watch};
use crate::setup;
use crate::virtual_disk::DiskSpec;

/// A year: for commands that end when the person at the terminal wants it.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// What `cargo xtask vm` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Spare disks, as N, N:SIZE or N:SIZE:BUS (virtio, scsi, nvme), such as 3:20G:scsi; may be repeated
    #[arg(long, default_value = "4")]
    disks: Vec<DiskSpec>,
    /// What the machine is
    #[arg(long, value_enum, default_value_t)]
    machine: MachineKind,
    /// End the command after this many seconds
    #[arg(long)]
    limit: Option<u64>,
    /// The command, run as root; a shell when it is missing
    #[arg(last = true)]
    command: Vec<String>,
}

/// Boots a machine, runs the command or a shell, and ends like it.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.machine == MachineKind::Uml && arguments.command.is_empty() {
        bail!("user-mode Linux has no terminal here: give a command after --, or leave out --machine uml");
    }
    let kernel = setup::ready(arguments.machine)?;
    let programs = built::guest_programs()?;
    let lock = Lock::take(kernel.machine)?;
    let start = Instant::now();
    let mut machine =
        Machine::boot(&lock, &kernel, &MachineSpec { disks: arguments.disks.clone(), programs })?;
    let (release, _) = machine.booted();
    eprintln!("rig: Linux {release} is ready after {:.1} s", start.elapsed().as_secs_f64());
    let limit = arguments.limit.map_or(NO_LIMIT, Duration::from_secs);
    let output = if arguments.command.is_empty() {
        shell(&mut machine)?
    } else {
        let command = Command::new(&arguments.command).limit(limit).cwd("/tmp");
        machine.run_watched(&with_disks(command, &machine), &mut show)?
    };
    Ok(exit_code(&output.status))
}

/// Tells a command where the spare disks are.
fn with_disks(command: Command, machine: &Machine) -> Command {
    let nodes: Vec<&str> = machine.disks().iter().map(|disk| disk.node.as_str()).collect();
    command.env("GABION_DISKS", nodes.join(" "))
}

pub(crate) fn show(stream: Stream, bytes: &[u8]) -> Watch {
    // A closed pipe at our own output is no reason to leave the guest's command half-way.
    let _ = match stream {
        Stream::Out => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Err => io::stderr().write_all(bytes),
    };
    Watch::GoOn
}

fn exit_code(status: &Status) -> ExitCode {
    match status {
        Status::Exited(code) => ExitCode::from(u8::try_from(*code).unwrap_or(1)),
        other => {
            eprintln!("rig: the command was {other}");
            ExitCode::from(124)
        }
    }
}

fn shell(machine: &mut Machine) -> Result<Output> {
    let mut terminal = machine.terminal()?;
    let size = tcgetwinsize(io::stdin()).ok();
    let size = size.map_or(String::new(), |size| format!("stty rows {} cols {};", size.ws_row, size.ws_col));
    let term = std::env::var("TERM").unwrap_or_else(|_| "vt100".into());
    let script = format!("{size} export TERM={}; exec bash -l", quoted(&term));
    let mut command = Command::new(["/bin/sh", "-c", &script]).limit(NO_LIMIT).cwd("/tmp");
    command.on_console = true;
    let command = with_disks(command, machine);
    let raw = RawTerminal::enter()?;
    let mut from_guest = terminal.try_clone().context("sharing the terminal's socket")?;
    std::thread::spawn(move || io::copy(&mut from_guest, &mut io::stdout().lock()));
    std::thread::spawn(move || -> io::Result<()> {
        let mut keys = [0; 1024];
        loop {
            let length = io::stdin().read(&mut keys)?;
            if length == 0 {
                return Ok(());
            }
            terminal.write_all(&keys[..length])?;
        }
    });
    let output: Result<Output, Lost> = machine.run(&command);
    drop(raw);
    Ok(output?)
}

/// The terminal without line editing, put back when this value is dropped.
struct RawTerminal(Option<rustix::termios::Termios>);

impl RawTerminal {
    fn enter() -> Result<Self> {
        if !isatty(io::stdin()) {
            return Ok(RawTerminal(None));
        }
        let before = tcgetattr(io::stdin()).context("reading the terminal's settings")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).context("setting the terminal to raw")?;
        Ok(RawTerminal(Some(before)))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // Nothing better can be done with a terminal that is gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
