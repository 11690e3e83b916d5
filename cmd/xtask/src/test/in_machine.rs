//! Tests in the machine: one boot for many of them, fresh disks and a clean kernel for each.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use guest::protocol::{Command, Status, Stream};

use super::case::Case;
use super::queue::{End, Queue};
use super::tally::Tally;
use super::tier::Tier;
use super::verdict::{Verdict, figures, judge, wish};
use crate::built;
use crate::conformance;
use crate::go_tool;
use crate::kernel::{Kernel, MachineKind};
use crate::lock::Lock;
use crate::machine::{Lost, Machine, MachineSpec, Output, Watch};
use crate::setup;
use crate::virtual_disk::{Bus, DiskSpec};

/// The spare disks of every suite: six on virtio-blk, then two on SCSI, which can be pulled out without warning, and one
/// on NVMe.
const DISKS: [DiskSpec; 3] = [
    DiskSpec::plain(6),
    DiskSpec { count: 2, bytes: 20 << 30, bus: Bus::Scsi },
    DiskSpec { count: 1, bytes: 20 << 30, bus: Bus::Nvme },
];

/// Variables of this host that a test gets, too, by how their names begin.
const PASSED_ON: [&str; 2] = ["GABION_SWEEP_", "GABION_SEED"];

/// How often one test may cut the power.
const MAX_PHASES: usize = 50;

/// From so many suites on a second machine is worth its start.
const MANY: usize = 6;

/// Memory that a second machine needs beside the first: its own 4 GiB, and room for what runs on the host.
const ROOM: u64 = 8 << 30;

/// Suites for the machines of this host, and what these consist of.
#[derive(Debug)]
pub struct Work {
    queue: Queue,
    kernel: Kernel,
    spec: MachineSpec,
}

impl Work {
    /// Builds what the machines need.
    ///
    /// # Errors
    /// When something cannot be built or is not installed.
    pub fn new(cases: &[Case], on: MachineKind) -> Result<Self> {
        let kernel = setup::ready(on)?;
        let mut programs = built::guest_programs()?;
        programs.extend(suites(cases));
        if cases.iter().any(|case| case.tier == Tier::Conformance) {
            match go_tool::csi_sanity() {
                Ok(program) => drop(programs.insert(go_tool::CSI_SANITY.into(), program)),
                // The tests say that they are skipped; here is why.
                Err(error) => println!("machine  without csi-sanity: {error:#}"),
            }
        }
        Ok(Work { queue: Queue::new(cases), kernel, spec: MachineSpec { disks: DISKS.to_vec(), programs } })
    }

    /// Runs suites in the machine of this host until none is left.
    ///
    /// # Errors
    /// When the machine cannot be started.
    pub fn run(&self, tally: &Tally) -> Result<()> {
        self.drain(&Lock::take(self.kernel.machine)?, End::Front, tally)
    }

    /// Runs suites in a second machine, from the last one on, if many are left and the host has room for it.
    ///
    /// # Errors
    /// When the machine cannot be started.
    pub fn run_beside(&self, tally: &Tally) -> Result<()> {
        if self.queue.left() < MANY || self.kernel.machine != MachineKind::Qemu || available_memory()? < ROOM
        {
            return Ok(());
        }
        match Lock::take_second()? {
            Some(lock) => self.drain(&lock, End::Back, tally),
            None => Ok(()),
        }
    }

    /// One boot for all of them; a lost machine fails one test and is started again.
    fn drain(&self, lock: &Lock, end: End, tally: &Tally) -> Result<()> {
        let start = Instant::now();
        let mut machine = Machine::boot(lock, &self.kernel, &self.spec)?;
        println!("machine  Linux {} after {:.1} s", machine.booted().0, start.elapsed().as_secs_f64());
        while let Some(suite) = self.queue.take(end) {
            suite.iter().for_each(|case| run_case(&mut machine, case, tally));
        }
        Ok(())
    }
}

fn run_case(machine: &mut Machine, case: &Case, tally: &Tally) {
    let start = Instant::now();
    let attempt = attempt(machine, case).unwrap_or_else(|error| Attempt::failed(&error));
    let verdict = case.must_fail().map_or(attempt.verdict.clone(), |how| attempt.verdict.must_fail(how));
    if matches!(verdict, Verdict::Failed(_)) {
        println!("--- {} ---\n{}\n---", case.full_name(), attempt.report);
    }
    tally.count(&case.full_name(), &verdict, start.elapsed());
}

/// What programs can still get without swapping, in bytes (`MemAvailable` in proc(5)).
fn available_memory() -> Result<u64> {
    let info = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Ok(kib.context("/proc/meminfo names no MemAvailable")? << 10)
}

/// What one run of a test gave.
struct Attempt {
    verdict: Verdict,
    /// What a person wants to read when it failed.
    report: String,
}

impl Attempt {
    fn unpluggable() -> Self {
        let why = "user-mode Linux has no disks that can be pulled; it runs without --machine uml".into();
        Attempt { verdict: Verdict::Skipped(why), report: String::new() }
    }

    fn failed(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<Lost>() {
            Some(lost) => Attempt {
                verdict: Verdict::Failed(format!("the machine was lost: {}", lost.why)),
                report: format!("{}\nthe end of the machine's console:\n{}", lost.written, lost.console),
            },
            None => {
                let verdict = Verdict::Failed(format!("{error:#}"));
                Attempt { verdict, report: String::new() }
            }
        }
    }
}

fn suites(cases: &[Case]) -> BTreeMap<String, PathBuf> {
    cases.iter().map(|case| (case.suite.clone(), case.program.clone())).collect()
}

/// Prepares the machine, runs the test through all its phases, and looks for what it left behind.
fn attempt(machine: &mut Machine, case: &Case) -> Result<Attempt> {
    prepare(machine)?;
    let Some(mut output) = run_phase(machine, case, 0)? else { return Ok(Attempt::unpluggable()) };
    for phase in 1..=MAX_PHASES {
        if machine.is_running() {
            break;
        }
        machine.start().context("starting the machine after the power cut")?;
        let earlier = std::mem::take(&mut output.written);
        output = match run_phase(machine, case, phase)? {
            Some(output) => output,
            None => return Ok(Attempt::unpluggable()),
        };
        output.written.splice(0..0, earlier);
    }
    let text = output.text();
    text.lines().try_for_each(conformance::keep)?;
    let mut verdict = judge(&output.status, &text, &output.kernel_log);
    let mut report = format!("{text}\nthe kernel logged meanwhile:\n{}", output.kernel_log.join("\n"));
    if output.status == Status::Stuck {
        // What holds the process may hold whoever looks for leftovers, too.
        report += &format!("\nblocked tasks:\n{}", machine.blocked_tasks());
        machine.cut_power();
        return Ok(Attempt { verdict, report });
    }
    let (found, stuck) = machine.sweep()?;
    if verdict == Verdict::Passed && !found.is_empty() {
        verdict = Verdict::Failed(format!("left behind: {}", found.join(", ")));
    }
    if !stuck.is_empty() {
        report += &format!("\nthe machine cannot be cleaned and is started again: {}", stuck.join(", "));
        machine.cut_power();
    }
    Ok(Attempt { verdict, report })
}

/// Gives the next test a running machine with all its disks, blank.
fn prepare(machine: &mut Machine) -> Result<()> {
    if machine.is_running() && machine.plug_all().is_ok() && machine.blank_disks().is_ok() {
        return Ok(());
    }
    machine.start_blank().or_else(|_| machine.start_blank()).context("starting the machine twice")
}

/// Runs the test once; nothing when it wants a disk pulled or put back and the machine's disks stay where they are.
fn run_phase(machine: &mut Machine, case: &Case, phase: usize) -> Result<Option<Output>, Lost> {
    let nodes: Vec<String> = machine.disks().iter().map(|disk| disk.node.clone()).collect();
    let scratch = "/tmp/test";
    let program = format!("/run/rig/bin/{}", case.suite);
    let command = Command::new([&program].into_iter().map(String::as_str).chain(case.arguments()))
        .cwd(scratch)
        .limit(case.limit())
        .env("GABION_DISKS", nodes.join(" "))
        .env("GABION_SCRATCH", scratch)
        .env("TMPDIR", scratch)
        .env("GABION_PHASE", phase.to_string())
        .env("GABION_LVM_WORKER", "/run/rig/bin/gabion-lvm-worker")
        .env("GABION_BIN", "/run/rig/bin/gabion")
        .env("GABION_MACHINE", if machine.is_pluggable() { "qemu" } else { "uml" })
        .env("RUST_BACKTRACE", "1");
    let wishes = std::env::vars().filter(|(name, _)| PASSED_ON.iter().any(|begin| name.starts_with(begin)));
    let command = wishes.fold(command, |command, (name, value)| command.env(&name, value));
    let mut line = String::new();
    let (pluggable, mut unmet) = (machine.is_pluggable(), false);
    let output = machine.run_watched(&command, &mut |stream, bytes| {
        if stream == Stream::Err {
            return Watch::GoOn;
        }
        line.push_str(&String::from_utf8_lossy(bytes));
        while let Some((first, rest)) = line.split_once('\n') {
            if let Some(figures) = figures(first) {
                println!("figures  {}: {figures}", case.full_name());
            }
            let wish = wish(first);
            line = rest.to_owned();
            if matches!(wish, Watch::Unplug(_) | Watch::Plug(..) | Watch::Resize(..)) && !pluggable {
                unmet = true;
                return Watch::CutPower;
            }
            if wish != Watch::GoOn {
                return wish;
            }
        }
        Watch::GoOn
    })?;
    Ok((!unmet).then_some(output))
}
