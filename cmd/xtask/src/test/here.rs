//! Tests on this very host: the loop tier always, the others only where they are marked host-safe.

use std::fs;
use std::io::{PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use guest::protocol::Status;
use rustix::process::Pid;

use super::case::Case;
use super::leftover::{Leftover, Marks};
use super::tally::Tally;
use super::verdict::{Verdict, judge};
use crate::built;
use crate::setup;

/// Runs the tests of the loop tier, or says why that is not possible here.
///
/// # Errors
/// When the worker cannot be built or no scratch directory can be made.
pub fn run_loop_tier(cases: &[Case], tally: &Tally) -> Result<()> {
    run_if(setup::loop_devices(), cases, tally)
}

/// Runs what is marked host-safe of the other tiers, and skips the rest.
///
/// # Errors
/// When the worker cannot be built or no scratch directory can be made.
pub fn run_host_safe(cases: &[Case], tally: &Tally) -> Result<()> {
    let (safe, unsafe_here): (Vec<Case>, Vec<Case>) = cases.iter().cloned().partition(Case::is_host_safe);
    for case in unsafe_here {
        let why = "not marked host-safe; it runs in the machine, without --here".into();
        tally.count(&case.full_name(), &Verdict::Skipped(why), Duration::ZERO);
    }
    run_if(setup::loop_devices().and_then(|()| device_mapper()), &safe, tally)
}

fn run_if(possible: Result<(), String>, cases: &[Case], tally: &Tally) -> Result<()> {
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
        let Ran { status, output, mut left } = run(&mut command)?;
        let mut verdict = judge(&status, &output, &[]);
        left.extend(left_loops(&scratch));
        if verdict == Verdict::Passed && !left.is_empty() {
            verdict = Verdict::Failed(format!("left behind: {}", left.join(", ")));
        }
        if matches!(verdict, Verdict::Failed(_)) {
            println!("{output}");
            left.iter().for_each(|left| println!("left behind: {left}"));
        }
        tally.count(&case.full_name(), &verdict, start.elapsed());
        fs::remove_dir_all(&scratch).with_context(|| format!("removing {}", scratch.display()))?;
    }
    Ok(())
}

/// How a test ended, what it wrote, and what it left running, which has been killed.
struct Ran {
    status: Status,
    output: String,
    left: Vec<String>,
}

/// Runs a test in a process group of its own. Both streams share one pipe, so that their order stays.
fn run(command: &mut Command) -> Result<Ran> {
    let (reader, writer) = std::io::pipe().context("making a pipe for a test's output")?;
    let pipe = rustix::fs::fstat(&reader).context("looking at the pipe")?.st_ino;
    command.stdin(Stdio::null()).stderr(writer.try_clone().context("sharing the pipe")?).stdout(writer);
    let mut child = command.process_group(0).spawn().context("starting a test under timeout")?;
    // The command still holds the writing end: reading would never finish.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let output = Arc::new(Mutex::new(Vec::new()));
    let closed = collect(reader, Arc::clone(&output));
    let status = child.wait().context("waiting for a test")?;
    let left = end_others(Pid::from_child(&child), pipe, &closed);
    let output = output.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Ran { status: ended(status), output: String::from_utf8_lossy(&output).into_owned(), left })
}

/// Gathers what comes through the pipe, and tells when nobody can write to it any more.
fn collect(mut reader: PipeReader, output: Arc<Mutex<Vec<u8>>>) -> Receiver<()> {
    let (tell, closed) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            output.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..length]);
        }
        // Nobody listens where the wait was given up.
        let _ = tell.send(());
    });
    closed
}

/// How long what a test has started may outlive it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until all that the test started has ended, kills what has not by then, and names it.
fn end_others(group: Pid, pipe: u64, closed: &Receiver<()>) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_closed = closed.recv_timeout(Duration::from_millis(20)).is_ok();
    let mut left = Leftover::all(Marks { group, pipe: (!is_closed).then_some(pipe) });
    while !(is_closed && left.is_empty()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        is_closed = is_closed || closed.try_recv().is_ok();
        left = Leftover::all(Marks { group, pipe: (!is_closed).then_some(pipe) });
    }
    left.iter().for_each(Leftover::kill);
    let mut names: Vec<String> = left.iter().map(Leftover::to_string).collect();
    if !is_closed && closed.recv_timeout(PATIENCE).is_err() {
        names.push("something that holds its output open and cannot be killed".to_owned());
    }
    names
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
        let ran = super::run(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!((ran.status, ran.output.as_str()), (Status::Exited(3), "one\ntwo\nthree\n"));
        assert!(ran.left.is_empty(), "{:?}", ran.left);
    }

    #[test]
    fn a_test_past_its_limit_counts_as_timed_out() {
        let ran = super::run(Command::new("timeout").args(["0.1", "sleep", "10"])).unwrap();
        assert_eq!(ran.status, Status::TimedOut);
    }

    #[test]
    fn what_a_test_leaves_running_is_named_and_killed() {
        // One that keeps the output open in a session of its own, one that does not but stays in the group, and one that
        // only takes a moment.
        let script = "setsid sleep 611 & sleep 612 >/dev/null 2>&1 & sleep 0.2 & echo done; exit 1";
        let start = Instant::now();
        let ran = super::run(Command::new("sh").args(["-c", script])).unwrap();
        assert!(start.elapsed() < Duration::from_secs(60), "it waited for them: {:?}", start.elapsed());
        assert_eq!((ran.status, ran.output.as_str()), (Status::Exited(1), "done\n"));
        let mut commands: Vec<_> = ran.left.iter().filter_map(|left| left.split_once(" (")).collect();
        commands.sort_by_key(|(_, command)| *command);
        assert_eq!(
            commands.iter().map(|(_, command)| *command).collect::<Vec<_>>(),
            ["sleep 611)", "sleep 612)"]
        );
        for (process, _) in commands {
            let id = process.rsplit(' ').next().unwrap();
            let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // The kernel takes a moment to end what was killed.
            while !(state().is_empty() || state().contains(") Z ")) {
                assert!(start.elapsed() < Duration::from_secs(60), "it still runs: {}", state());
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
