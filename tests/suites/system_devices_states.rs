//! The verdict on devices in nearly seventy states, each made with the system's own tools: what the library says, and
//! what `gabion devices` says.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "device_states/content.rs"]
mod content;
#[path = "device_states/kinds.rs"]
mod kinds;
#[path = "device_states/stacks.rs"]
mod stacks;
#[path = "device_states/uses.rs"]
mod uses;

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use devices::discovery::Discovery;
use devices::eligibility::{Assessor, Policy, Reason};
use rig::disk::virtual_disks;
use rig::eventually;
use rustix::fs::{FallocateFlags, OFlags, fallocate};

/// One state of a device.
pub(crate) struct State {
    what: &'static str,
    /// A shell script that makes the state, and writes the device's path on its last line. `$D` and `$E` are virtio disks,
    /// `$S` is a SCSI disk, `$N` an NVMe disk, `$T` an empty directory.
    set_up: &'static str,
    /// The verdict's word.
    verdict: &'static str,
    /// The words of all reasons, in their order.
    reasons: &'static [&'static str],
    /// A shell script that undoes it; the disks are blanked after it.
    tear_down: &'static str,
}

const fn state(
    what: &'static str,
    set_up: &'static str,
    verdict: &'static str,
    reasons: &'static [&'static str],
    tear_down: &'static str,
) -> State {
    State { what, set_up, verdict, reasons, tear_down }
}

const _: () = assert!(kinds::ALL.len() + content::ALL.len() + uses::ALL.len() + stacks::ALL.len() >= 68);

/// What the states are made on.
struct Bench {
    disks: Vec<PathBuf>,
}

impl Bench {
    /// `None`, and a line that says so, where there are no disks for it.
    fn new() -> Option<Self> {
        let disks = virtual_disks();
        if disks.is_empty() {
            println!("SKIPPED: there are no virtual disks outside of the machine");
            return None;
        }
        if std::env::var("GABION_MACHINE").is_ok_and(|machine| machine == "uml") {
            println!("SKIPPED: user-mode Linux has neither SCSI nor NVMe disks");
            return None;
        }
        Some(Self { disks })
    }

    fn shell(&self, script: &str, scratch: &Path) -> Result<String, String> {
        let output = Command::new("sh")
            .args(["-euc", script])
            .stdin(Stdio::null())
            .envs(PLACES.map(|(variable, disk)| (&variable[1..], &self.disks[disk])))
            .env("T", scratch)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(format!("{script}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    /// What is wrong with the verdict on one state; nothing when it is as it must be.
    fn wrong(&self, state: &State, asked: Asked) -> Option<String> {
        let scratch = tempfile::tempdir().unwrap();
        let result = self.judge(state, scratch.path(), asked);
        let undone = match state.tear_down {
            "" => Ok(()),
            script => self.shell(script, scratch.path()).map(drop),
        };
        for (variable, disk) in PLACES {
            if state.set_up.contains(variable) {
                blank(&self.disks[disk]);
            }
        }
        settle();
        [result, undone].into_iter().find_map(Result::err)
    }

    fn judge(&self, state: &State, scratch: &Path, asked: Asked) -> Result<(), String> {
        let written = self.shell(state.set_up, scratch)?;
        let udevd_works = !scratch.join("unsettled").exists();
        if udevd_works {
            settle();
        }
        let path = written.trim().lines().next_back().unwrap_or_default();
        let inventory = Discovery::host().inventory().map_err(|error| format!("{error:?}"))?;
        let disk = inventory.at(Path::new(path)).map_err(|error| format!("{error:?}"))?;
        let policy = Policy::default().with_patience(Duration::from_millis(1500));
        let eligibility = Assessor::new(policy).assess(&inventory, disk);
        let words: Vec<&str> = eligibility.reasons().iter().map(Reason::as_word).collect();
        let verdict = eligibility.verdict().as_word();
        if (verdict, words.as_slice()) != (state.verdict, state.reasons) {
            return Err(format!(
                "{path} must be {} {:?} and is {verdict} {words:?}: {eligibility}",
                state.verdict, state.reasons
            ));
        }
        if asked == Asked::Library {
            return Ok(());
        }
        let shown = shown_by_the_command(path)?;
        let words: Vec<&str> = shown.1.iter().map(String::as_str).collect();
        if (shown.0.as_str(), words.as_slice()) == (state.verdict, state.reasons) {
            return Ok(());
        }
        Err(format!("gabion devices says of {path}: {shown:?}"))
    }
}

/// The scripts' names for disks, and their places.
const PLACES: [(&str, usize); 4] = [("$D", 0), ("$E", 1), ("$S", 6), ("$N", 8)];

/// Waits until udevd has nothing to do, as `udevadm settle` does it (systemd's `udev_queue_is_empty`).
fn settle() {
    let mut quiet = 0;
    eventually("udevd is done", Duration::from_secs(60), || {
        quiet = if Path::new("/run/udev/queue").exists() { 0 } else { quiet + 1 };
        quiet > 3
    });
}

/// Gives every block of a disk back, as soon as nobody uses it.
fn blank(disk: &Path) {
    let mut file = None;
    eventually("nobody uses the disk any more", Duration::from_secs(20), || {
        let flags = i32::try_from(OFlags::EXCL.bits()).unwrap();
        file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(disk).ok();
        file.is_some()
    });
    let mut file = file.unwrap();
    let size = file.seek(SeekFrom::End(0)).unwrap();
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, size).unwrap();
}

/// The verdict and the reasons that `gabion devices -o json` gives.
fn shown_by_the_command(path: &str) -> Result<(String, Vec<String>), String> {
    let program = std::env::var("GABION_BIN").unwrap();
    let output = Command::new(program).args(["devices", "-o", "json", path]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let json: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let device = &json["devices"][0];
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let reasons = device["reasons"].as_array().into_iter().flatten();
    Ok((word(&device["usable"]), reasons.map(|reason| word(&reason["reason"])).collect()))
}

/// Who is asked for the verdict.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Library,
    /// `gabion devices` as well, which takes a while to start in the machine.
    CommandToo,
}

/// How many threads of this process the kernel keeps waiting for a device.
fn waiting_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('D'))).count()
}

fn check(states: &[State], asked: Asked) {
    let Some(bench) = Bench::new() else { return };
    let mut failed = Vec::new();
    let mut slowest = (Duration::ZERO, "");
    for state in states {
        let start = Instant::now();
        if let Some(why) = bench.wrong(state, asked) {
            failed.push(format!("{}: {why}", state.what));
        }
        eprintln!("{:5.1} s  {}", start.elapsed().as_secs_f64(), state.what);
        slowest = slowest.max((start.elapsed(), state.what));
    }
    assert_eq!(waiting_threads(), 0, "nothing may wait for a device for good");
    assert!(failed.is_empty(), "{} of {} states:\n{}", failed.len(), states.len(), failed.join("\n"));
    println!(
        "FIGURES: {} states have the verdict that they must have; the slowest ({}) took {:.1} s",
        states.len(),
        slowest.1,
        slowest.0.as_secs_f64()
    );
}

/// Twenty states take less than a minute on a quiet host.
mod minutes_4 {
    use super::*;

    #[test]
    fn each_kind_of_device_gets_its_verdict() {
        check(&kinds::ALL, Asked::CommandToo);
    }

    #[test]
    fn each_content_gets_its_verdict() {
        check(&content::ALL, Asked::Library);
    }

    #[test]
    fn each_use_gets_its_verdict() {
        check(&uses::ALL, Asked::CommandToo);
    }

    #[test]
    fn mappings_and_partitions_get_their_verdicts() {
        check(&stacks::ALL, Asked::Library);
    }
}
