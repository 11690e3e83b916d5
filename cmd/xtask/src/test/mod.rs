//! `cargo xtask test`: every test that there is, tier by tier, and one line that sums them up.
//!
//! A suite is a file `tests/suites/TIER_SUBJECT.rs`, declared in tests/Cargo.toml. What a suite can rely on, and say:
//!
//! | | |
//! |---|---|
//! | one process a test | `--exact NAME --nocapture`, in an empty scratch directory (`GABION_SCRATCH`, also `TMPDIR`) |
//! | `GABION_DISKS` | in the machine: nine blank disks of 20 GiB, six on virtio-blk, two on SCSI, one on NVMe |
//! | `GABION_LVM_WORKER`, `GABION_BIN` | the worker and the command |
//! | `csi-sanity` in `PATH` | for conformance suites, where Go could build it |
//! | `GABION_PHASE` | 0; after each power cut that the test asked for, one more |
//! | `GABION_MACHINE` | `qemu`, or `uml` for user-mode Linux; a test that pulls a disk counts as skipped there |
//! | a line `SKIPPED: reason` | the test counts as skipped |
//! | a line `FIGURES: text` | is shown at once, and although the test passes |
//! | a line `CONFORMANCE: {…}` | results for `cargo xtask conformance-table` |
//! | `GABION_SWEEP_…`, `GABION_SEED` | variables of this host that a test in the machine gets, too |
//! | `RIG: cut power` | the machine loses its power, starts again on the same disks and runs the test again |
//! | `RIG: unplug 6`, `RIG: plug 6 [SECTOR…]` | a disk is pulled, or put back with sectors that cannot be read |
//! | `RIG: resize 6 BYTES` | a disk gets another size; after each wish about disks `/run/out/delay` says how many microseconds the host took until it acted |
//! | modules `seconds_N`, `minutes_N` | the test's own time limit |
//! | module `host_safe` | the test also runs with `--here`, outside of the machine |
//! | module `smoke` of a fault or conformance suite | the test runs in continuous integration |
//! | module `must_fail::WORDS` | the rig must fail the test for a reason that contains the words |
//!
//! A test fails when it leaves a mount, a device-mapper, loop or bcache device or a udev cookie behind, or when the kernel
//! warns meanwhile. Its processes end with it, daemons too.

pub mod case;
pub mod here;
pub mod in_machine;
mod leftover;
pub mod queue;
pub mod tally;
pub mod tier;
pub mod unit;
pub mod verdict;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::kernel::MachineKind;

use case::Case;
use in_machine::Work;
use tally::Tally;
use tier::{Selection, Tier};
use verdict::Verdict;

/// What `cargo xtask test` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Tiers (unit, loop, system, conformance, fault, soak), `full` for all of them, and parts of test names; without a tier:
    /// what continuous integration runs
    words: Vec<String>,
    /// Run the suites on this very host instead of the machine: only what is marked host-safe
    #[arg(long)]
    here: bool,
    /// What the machine is
    #[arg(long, value_enum, default_value_t, conflicts_with = "here")]
    machine: MachineKind,
    /// How many machines may run side by side, at most two; with one, the tests come in their order. Two are
    /// sooner done, and harder on tests that wait for something
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2), conflicts_with = "here")]
    machines: u8,
    /// Only list what would run
    #[arg(long)]
    list: bool,
}

/// Runs the selected tests; fails when any test failed or none was found.
///
/// # Errors
/// When the tests cannot be listed.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let selection = Selection::parse(&arguments.words);
    let tally = Tally::default();
    for tier in Tier::ALL {
        if let Some(why) = selection.leaves_out(tier) {
            tally.leave_out(format!("the tier {}", tier.name()), why);
        }
    }
    if arguments.list {
        for case in &case::select(&selection)? {
            println!("{}", case.full_name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Whatever cannot be run at all is a failure among the others, so that the sum always comes last.
    if selection.has(Tier::Unit) {
        or_failed("the unit tests", unit::run(&selection, &tally), &tally);
    }
    let cases = or_failed("building the suites", case::select(&selection), &tally).unwrap_or_default();
    let (on_loop, rest): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.tier == Tier::Loop);
    if arguments.here || rest.is_empty() {
        or_failed("the loop tier", here::run_loop_tier(&on_loop, &tally), &tally);
        or_failed("the suites on this host", here::run_host_safe(&rest, &tally), &tally);
    } else {
        side_by_side(&on_loop, &rest, arguments, &tally);
    }
    print!("{}", tally.report());
    Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the machine's suites, and beside them what needs no machine; then a second machine, where one is wanted, takes
/// its share. On two cores each test then takes 1.6 times as long and all of them a quarter less (measured).
fn side_by_side(on_loop: &[Case], rest: &[Case], arguments: &Arguments, tally: &Tally) {
    let work = or_failed("preparing the machine", Work::new(rest, arguments.machine), tally);
    let in_machine = || {
        let Some(work) = &work else { return };
        or_failed("the suites in the machine", work.run(tally), tally);
    };
    let beside = || {
        or_failed("the loop tier", here::run_loop_tier(on_loop, tally), tally);
        let Some(work) = work.as_ref().filter(|_| arguments.machines > 1) else { return };
        or_failed("the suites in the second machine", work.run_beside(tally), tally);
    };
    thread::scope(|scope| {
        let _ = scope.spawn(beside);
        in_machine();
    });
}

fn or_failed<T>(what: &str, result: Result<T>, tally: &Tally) -> Option<T> {
    result.map_err(|error| tally.count(what, &Verdict::Failed(format!("{error:#}")), Duration::ZERO)).ok()
}
