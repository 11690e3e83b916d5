//! Doing what the steps say, showing it, and comparing it with what they claim.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use guest::protocol::{Command, Status, Stream};

use super::steps::{Act, Run, Step};
use crate::machine::{Machine, Output, Watch};

/// How long one command may take; emulation on a busy host is slow.
const LIMIT: Duration = Duration::from_secs(180);
/// Where the text of a step begins.
const INDENT: &str = "           ";
/// What the disks are called in the steps, in their order.
const DISK_NAMES: [&str; 4] = ["{a}", "{b}", "{c}", "{d}"];

/// Plays steps on a machine.
#[derive(Debug)]
pub(super) struct Player<'a> {
    machine: &'a mut Machine,
    begun: Instant,
    checked: usize,
}

impl<'a> Player<'a> {
    /// A player whose clock began at `begun`.
    pub(super) fn new(machine: &'a mut Machine, begun: Instant) -> Self {
        Self { machine, begun, checked: 0 }
    }

    /// How many claims have been checked.
    pub(super) const fn checked(&self) -> usize {
        self.checked
    }

    /// Plays one step.
    pub(super) fn play(&mut self, step: &Step) -> Result<()> {
        println!("\n[{:6.1} s] {}", self.begun.elapsed().as_secs_f64(), step.title);
        for act in step.acts {
            self.act(act)?;
        }
        Ok(())
    }

    fn act(&mut self, act: &Act) -> Result<()> {
        match act {
            Act::Run(run) => self.run(run),
            Act::Check { claim, script } => self.check(claim, script),
            Act::Unplug(index) => {
                println!("{INDENT}(disk {} is pulled out of the running machine)", index + 1);
                self.machine.unplug(*index)
            }
            Act::Serve(command) => self.serve(command),
            Act::CutPower { during, after } => self.cut_power(during, after),
        }
    }

    /// The script with the disks' nodes in it; after a start they may be others than before.
    fn filled(&self, script: &str) -> String {
        let names = DISK_NAMES.iter().zip(self.machine.disks());
        names.fold(script.to_owned(), |script, (name, disk)| script.replace(name, &disk.node))
    }

    fn guest(&mut self, script: &str) -> Result<Output> {
        Ok(self.machine.run(&Command::script(script).limit(LIMIT))?)
    }

    fn run(&mut self, run: &Run) -> Result<()> {
        let script = self.filled(run.command);
        println!("{INDENT}$ {}", script.replace('\n', &format!("\n{INDENT}  ")));
        let output = self.guest(&script)?;
        let text = output.text();
        for line in text.lines() {
            println!("{INDENT}{line}");
        }
        if output.status != Status::Exited(run.exit) {
            bail!(
                "the command should have ended with {}, and was {}{}",
                run.exit,
                output.status,
                log_of(&output)
            );
        }
        for word in run.says {
            if !text.contains(word) {
                bail!("the output should say {word:?}{}", log_of(&output));
            }
            self.checked += 1;
        }
        self.checked += 1;
        Ok(())
    }

    fn check(&mut self, claim: &str, script: &str) -> Result<()> {
        let output = self.guest(&self.filled(script))?;
        if !output.status.success() {
            bail!(
                "it is not so that {claim}: {script:?} was {}\n{}{}",
                output.status,
                output.text(),
                log_of(&output)
            );
        }
        self.checked += 1;
        println!("{INDENT}✓ {claim}");
        Ok(())
    }

    /// Starts the driver, outside of the group of processes that ends with its command.
    fn serve(&mut self, command: &str) -> Result<()> {
        println!("{INDENT}$ {command} &");
        let script = format!(
            "( echo 0 > /sys/fs/cgroup/cgroup.procs; exec {command} ) > /run/node.log 2>&1 &
             for nth in $(seq 600); do
                 grep 'serves CSI' /run/node.log && exit 0
                 sleep 0.1
             done
             cat /run/node.log; exit 1"
        );
        let output = self.guest(&script)?;
        for line in output.text().lines() {
            println!("{INDENT}{line}");
        }
        if !output.status.success() {
            bail!("the driver does not serve{}", log_of(&output));
        }
        self.checked += 1;
        Ok(())
    }

    fn cut_power(&mut self, during: &str, after: &str) -> Result<()> {
        println!("{INDENT}(the power is cut in the midst of writing, and comes back)");
        let mut written = String::new();
        let command = Command::script(&self.filled(during)).limit(LIMIT);
        let output = self.machine.run_watched(&command, &mut |stream, bytes| {
            if stream == Stream::Out {
                written.push_str(&String::from_utf8_lossy(bytes));
            }
            if written.contains(after) { Watch::CutPower } else { Watch::GoOn }
        })?;
        if !written.contains(after) {
            bail!("the writer ended before the power was cut: {}{}", output.text(), log_of(&output));
        }
        self.machine.start()?;
        let (release, uptime) = self.machine.booted();
        println!(
            "{INDENT}Linux {release} is ready again after {:.1} s of its own time",
            uptime.as_secs_f64()
        );
        Ok(())
    }
}

/// What the kernel logged meanwhile, for a step that went wrong.
fn log_of(output: &Output) -> String {
    match output.kernel_log.is_empty() {
        true => String::new(),
        false => format!("\nthe kernel's log meanwhile:\n  {}", output.kernel_log.join("\n  ")),
    }
}
