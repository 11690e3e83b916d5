//! The unit tier: the packages' own tests and documentation tests, run by cargo.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::case;
use super::tally::Tally;
use super::tier::Selection;
use super::verdict::Verdict;
use crate::paths;
use crate::workspace;

/// Runs every package's tests but the suites.
///
/// # Errors
/// When cargo cannot be started.
pub fn run(selection: &Selection, tally: &Tally) -> Result<()> {
    let suites = workspace::suites(|package| package != case::PACKAGE)?;
    let mut targets = vec!["--lib", "--bins"];
    targets.extend(suites.iter().flat_map(|suite| ["--test", suite]));
    cargo_test(&targets, selection, tally)?;
    cargo_test(&["--doc"], selection, tally)
}

fn cargo_test(targets: &[&str], selection: &Selection, tally: &Tally) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .args(targets)
        .args(["--", "--show-output"])
        .args(selection.filters())
        .current_dir(paths::repository()?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let mut reader = Harness::default();
    let mut failed = 0;
    for line in BufReader::new(child.stdout.take().context("cargo test has no output")?).lines() {
        if let Some(harness) = reader.line(&line.context("reading the output of cargo test")?) {
            failed += harness.count(tally);
        }
    }
    let status = child.wait().context("waiting for cargo test")?;
    if !status.success() && failed == 0 {
        let why = format!("it ended with {status} before or between the tests");
        tally.count(&format!("cargo test {}", targets.join(" ")), &Verdict::Failed(why), Duration::ZERO);
    }
    Ok(())
}

/// One harness's lines (rustc's book, "Tests"): one a test, then the output of each, then the sum.
#[derive(Debug, Default)]
struct Harness {
    ran: Vec<(String, Verdict)>,
    output: Vec<String>,
    section: Option<String>,
}

impl Harness {
    /// Takes one line; gives the finished harness at its last one.
    fn line(&mut self, line: &str) -> Option<Harness> {
        self.output.push(line.to_owned());
        if let Some(section) = line.strip_prefix("---- ") {
            self.section = section.strip_suffix(" stdout ----").map(str::to_owned);
        } else if line.starts_with("test result: ") {
            return Some(std::mem::take(self));
        } else if let (Some(section), Some(why)) = (&self.section, line.strip_prefix("SKIPPED: ")) {
            let of =
                self.ran.iter_mut().find(|(name, verdict)| name == section && *verdict == Verdict::Passed);
            if let Some((_, verdict)) = of {
                *verdict = Verdict::Skipped(why.trim().to_owned());
            }
        } else if self.section.is_none()
            && let Some((name, outcome)) =
                line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            self.ran.push((name.to_owned(), verdict(outcome)));
        }
        None
    }

    /// Counts the tests, shows the whole output when one failed, and returns how many did.
    fn count(self, tally: &Tally) -> usize {
        let failed = self.ran.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_))).count();
        if failed > 0 {
            println!("{}", self.output.join("\n"));
        }
        for (name, verdict) in self.ran {
            match verdict {
                Verdict::Passed => tally.count_passed(1),
                other => tally.count(&name, &other, Duration::ZERO),
            }
        }
        failed
    }
}

fn verdict(outcome: &str) -> Verdict {
    if outcome.starts_with("ok") {
        Verdict::Passed
    } else if outcome.starts_with("ignored") {
        Verdict::Skipped("ignored by an attribute".into())
    } else {
        Verdict::Failed("see its output above".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_of_the_harness_is_read_and_what_tests_print_is_not_mistaken_for_one() {
        let output = "running 4 tests\ntest a::good ... ok\ntest a::bad ... FAILED\ntest a::cannot ... ok\n\
                      test src/lib.rs - (line 9) - compile ... ok\n\nsuccesses:\n\n---- a::cannot stdout ----\n\
                      SKIPPED: no header\ntest printed::by_a_test ... FAILED\n";
        let mut harness = Harness::default();
        assert!(output.lines().all(|line| harness.line(line).is_none()));
        let harness = harness.line("test result: FAILED. 3 passed; 1 failed; 0 ignored").unwrap();
        let verdicts: Vec<&Verdict> = harness.ran.iter().map(|(_, verdict)| verdict).collect();
        let failed = Verdict::Failed("see its output above".into());
        let skipped = Verdict::Skipped("no header".into());
        assert_eq!(verdicts, [&Verdict::Passed, &failed, &skipped, &Verdict::Passed]);
    }
}
