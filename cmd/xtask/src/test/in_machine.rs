//! Tests in the machine: one boot for all of them, fresh disks and a clean kernel for each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use guest::protocol::{Command, Stream};

use super::case::Case;
use super::tally::Tally;
use super::verdict::{Verdict, judge, wish};
use crate::built;
use crate::lock::Lock;
use crate::machine::{Lost, Machine, MachineSpec, Output, Watch};
use crate::setup;
use crate::virtual_disk::{Bus, DiskSpec};

/// The spare disks of every suite: six on virtio-blk, then two on SCSI, which can be pulled out without warning.
const DISKS: [DiskSpec; 2] = [DiskSpec::plain(6), DiskSpec { count: 2, bytes: 20 << 30, bus: Bus::Scsi }];

/// How often one test may cut the power.
const MAX_PHASES: usize = 50;

/// How often the machine may fail to start before the run is given up.
const MAX_FAILED_STARTS: usize = 3;

/// Runs all cases in one machine; a lost machine fails one test and is started again.
///
/// # Errors
/// When something cannot be built, or the machine cannot be started again.
pub fn run(cases: &[Case], tally: &mut Tally) -> Result<()> {
    let kernel = setup::ready()?;
    let mut programs = built::guest_programs()?;
    programs.extend(suites(cases));
    let lock = Lock::take()?;
    let start = Instant::now();
    let spec = MachineSpec { disks: DISKS.to_vec(), programs };
    let mut machine = Machine::boot(&lock, &kernel, &spec)?;
    println!("machine  Linux {} after {:.1} s", machine.booted().0, start.elapsed().as_secs_f64());
    for case in cases {
        let start = Instant::now();
        let verdict = match attempt(&mut machine, case) {
            Ok(verdict) => verdict,
            Err(error) => match error.downcast::<Lost>() {
                Ok(lost) => {
                    println!("{}\nthe end of the machine's console:\n{}", lost.written, lost.console);
                    Verdict::Failed(format!("the machine was lost: {}", lost.why))
                }
                Err(error) => Verdict::Failed(format!("{error:#}")),
            },
        };
        tally.count(&case.full_name(), &verdict, start.elapsed());
    }
    Ok(())
}

fn suites(cases: &[Case]) -> BTreeMap<String, PathBuf> {
    cases.iter().map(|case| (case.suite.clone(), case.program.clone())).collect()
}

/// Prepares the machine, runs the test through all its phases, and looks for what it left behind.
fn attempt(machine: &mut Machine, case: &Case) -> Result<Verdict> {
    prepare(machine)?;
    let mut taken = Duration::ZERO;
    let mut output = run_phase(machine, case, 0)?;
    for phase in 1..=MAX_PHASES {
        if machine.is_running() {
            break;
        }
        taken += output.took;
        machine.start().context("starting the machine after the power cut")?;
        let earlier = std::mem::take(&mut output.written);
        output = run_phase(machine, case, phase)?;
        output.written.splice(0..0, earlier);
    }
    let text = output.text();
    let mut verdict = judge(&output.status, &text, &output.kernel_log);
    let (found, stuck) = machine.sweep()?;
    if verdict == Verdict::Passed && !found.is_empty() {
        verdict = Verdict::Failed(format!("left behind: {}", found.join(", ")));
    }
    if !stuck.is_empty() || matches!(output.status, guest::protocol::Status::Stuck) {
        println!("the machine cannot be cleaned and is started again: {}", stuck.join(", "));
        machine.cut_power();
    }
    if matches!(verdict, Verdict::Failed(_)) {
        println!("--- {} wrote:\n{text}", case.full_name());
        println!("--- the kernel logged meanwhile:\n{}\n---", output.kernel_log.join("\n"));
    }
    Ok(verdict)
}

/// Gives the next test a running machine with all its disks, blank.
fn prepare(machine: &mut Machine) -> Result<()> {
    for _ in 1..MAX_FAILED_STARTS {
        if machine.is_running() && machine.plug_all().is_ok() && machine.blank_disks().is_ok() {
            return Ok(());
        }
        machine.start()?;
    }
    machine.plug_all()?;
    machine.blank_disks().map(drop)
}

fn run_phase(machine: &mut Machine, case: &Case, phase: usize) -> Result<Output, Lost> {
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
        .env("RUST_BACKTRACE", "1");
    let mut line = String::new();
    machine.run_watched(&command, &mut |stream, bytes| {
        if stream == Stream::Err {
            return Watch::GoOn;
        }
        line.push_str(&String::from_utf8_lossy(bytes));
        while let Some((first, rest)) = line.split_once('\n') {
            let wish = wish(first);
            line = rest.to_owned();
            if wish != Watch::GoOn {
                return wish;
            }
        }
        Watch::GoOn
    })
}
