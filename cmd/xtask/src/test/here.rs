//! Tests on this very host: the loop tier always, the others only where they are marked host-safe.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use guest::protocol::Status;

use super::case::Case;
use super::tally::Tally;
use super::verdict::{Verdict, judge};
use crate::built;
use crate::setup;

/// Runs the tests of the loop tier, or says why that is not possible here.
///
/// # Errors
/// When the worker cannot be built or no scratch directory can be made.
pub fn run_loop_tier(cases: &[Case], tally: &mut Tally) -> Result<()> {
    run_if(setup::loop_devices(), cases, tally)
}

/// Runs what is marked host-safe of the other tiers, and skips the rest.
///
/// # Errors
/// When the worker cannot be built or no scratch directory can be made.
pub fn run_host_safe(cases: &[Case], tally: &mut Tally) -> Result<()> {
    let (safe, unsafe_here): (Vec<Case>, Vec<Case>) = cases.iter().cloned().partition(Case::is_host_safe);
    for case in unsafe_here {
        let why = "not marked host-safe; it runs in the machine, without --here".into();
        tally.count(&case.full_name(), &Verdict::Skipped(why), Duration::ZERO);
    }
    run_if(setup::loop_devices().and_then(|()| device_mapper()), &safe, tally)
}

fn run_if(possible: Result<(), String>, cases: &[Case], tally: &mut Tally) -> Result<()> {
    if cases.is_empty() {
        return Ok(());
    }
    if let Err(why) = possible {
        for case in cases {
            tally.count(&case.full_name(), &Verdict::Skipped(why.clone()), Duration::ZERO);
        }
        return Ok(());
    }
    let programs = built::guest_programs()?;
    for case in cases {
        let start = Instant::now();
        let scratch = std::env::temp_dir().join(format!("gabion-test-{}", std::process::id()));
        fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", &case.limit().as_secs().to_string()])
            .arg(&case.program)
            .args(case.arguments())
            .envs([("GABION_SCRATCH", &scratch), ("TMPDIR", &scratch)])
            .current_dir(&scratch)
            .env("RUST_BACKTRACE", "1");
        for (variable, program) in [("GABION_LVM_WORKER", "gabion-lvm-worker"), ("GABION_BIN", "gabion")] {
            command.envs(programs.get(program).map(|path| (variable, path)));
        }
        let (status, output) = run(&mut command)?;
        let mut verdict = judge(&status, &output, &[]);
        let left = left_loops(&scratch);
        if verdict == Verdict::Passed && !left.is_empty() {
            verdict = Verdict::Failed(format!("left behind: {}", left.join(", ")));
        }
        if matches!(verdict, Verdict::Failed(_)) {
            println!("{output}");
        }
        tally.count(&case.full_name(), &verdict, start.elapsed());
        fs::remove_dir_all(&scratch).with_context(|| format!("removing {}", scratch.display()))?;
    }
    Ok(())
}

/// Both streams share one pipe, so that their order stays.
fn run(command: &mut Command) -> Result<(Status, String)> {
    let (mut reader, writer) = std::io::pipe().context("making a pipe for a test's output")?;
    command.stdin(Stdio::null()).stderr(writer.try_clone().context("sharing the pipe")?).stdout(writer);
    let mut child = command.spawn().context("starting a test under timeout")?;
    // The command still holds the writing end: reading would never finish.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut output).context("reading a test's output")?;
    let status = child.wait().context("waiting for a test")?;
    Ok((ended(status), String::from_utf8_lossy(&output).into_owned()))
}

/// `timeout` answers 124 when it ended the test, and 137 when it had to kill it.
fn ended(status: ExitStatus) -> Status {
    match status.code() {
        Some(124 | 137) => Status::TimedOut,
        Some(code) => Status::Exited(code),
        None => Status::Signalled(status.signal().unwrap_or_default()),
    }
}

/// Loop devices over files of the scratch directory, detached again.
fn left_loops(scratch: &Path) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let of_scratch = entries.filter(|entry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(file.trim()).starts_with(scratch)
    });
    of_scratch
        .map(|entry| {
            let device = format!("/dev/{}", entry.file_name().to_string_lossy());
            let detached = Command::new("losetup").arg("-d").arg(&device).status();
            let stays = !detached.is_ok_and(|status| status.success());
            format!("the loop device {device}{}", if stays { " (cannot be detached)" } else { "" })
        })
        .collect()
}

fn device_mapper() -> Result<(), String> {
    match Command::new("dmsetup").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("this kernel has no device-mapper".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_arrive_in_order_and_the_exit_code_with_them() {
        let script = "echo one; echo two >&2; echo three; exit 3";
        let (status, output) = super::run(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!((status, output.as_str()), (Status::Exited(3), "one\ntwo\nthree\n"));
    }

    #[test]
    fn a_test_past_its_limit_counts_as_timed_out() {
        let (status, _) = super::run(Command::new("timeout").args(["0.1", "sleep", "10"])).unwrap();
        assert_eq!(status, Status::TimedOut);
    }
}
