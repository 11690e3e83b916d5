//! The unit tier: the packages' own tests and documentation tests, run by cargo.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::tally::Tally;
use super::tier::Selection;
use super::verdict::Verdict;
use crate::paths;

/// Runs every package's tests; the suites' package gives only its library's.
///
/// # Errors
/// When cargo cannot be started.
pub fn run(selection: &Selection, tally: &mut Tally) -> Result<()> {
    cargo_test(&["--workspace", "--exclude", "gabion-tests", "--all-features"], selection, tally)?;
    cargo_test(&["-p", "gabion-tests", "--lib"], selection, tally)
}

fn cargo_test(packages: &[&str], selection: &Selection, tally: &mut Tally) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(["test", "--no-fail-fast"])
        .args(packages)
        .args(["--", "--show-output"])
        .args(selection.filters())
        .current_dir(paths::repository()?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let mut reader = Reader::default();
    for line in BufReader::new(child.stdout.take().context("cargo test has no output")?).lines() {
        reader.line(&line.context("reading the output of cargo test")?, tally);
    }
    let status = child.wait().context("waiting for cargo test")?;
    if !status.success() && reader.failed == 0 {
        let why = format!("it ended with {status} before or between the tests");
        tally.count(&format!("cargo test {}", packages.join(" ")), &Verdict::Failed(why), Duration::ZERO);
    }
    Ok(())
}

/// Reads the harness's lines (rustc's book, "Tests"): one a test, then the output of each, then the sum.
#[derive(Debug, Default)]
struct Reader {
    ran: Vec<(String, Verdict)>,
    output: Vec<String>,
    section: Option<String>,
    failed: usize,
}

impl Reader {
    fn line(&mut self, line: &str, tally: &mut Tally) {
        self.output.push(line.to_owned());
        if let Some((name, outcome)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            self.outcome(name, outcome);
        } else if let Some(section) = line.strip_prefix("---- ") {
            self.section = section.strip_suffix(" stdout ----").map(str::to_owned);
        } else if let (Some(section), Some(why)) = (&self.section, line.strip_prefix("SKIPPED: ")) {
            let of =
                self.ran.iter_mut().find(|(name, verdict)| name == section && *verdict == Verdict::Passed);
            if let Some((_, verdict)) = of {
                *verdict = Verdict::Skipped(why.trim().to_owned());
            }
        } else if line.starts_with("test result: ") {
            self.finish(tally);
        }
    }

    fn outcome(&mut self, name: &str, outcome: &str) {
        // Documentation tests add what they do: "src/lib.rs - (line 9) - compile".
        let verdict = if outcome.starts_with("ok") {
            Verdict::Passed
        } else if outcome.starts_with("ignored") {
            Verdict::Skipped("ignored by an attribute".into())
        } else {
            Verdict::Failed("see its output above".into())
        };
        self.ran.push((name.to_owned(), verdict));
    }

    fn finish(&mut self, tally: &mut Tally) {
        let failed = self.ran.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_))).count();
        if failed > 0 {
            println!("{}", self.output.join("\n"));
        }
        for (name, verdict) in self.ran.drain(..) {
            match verdict {
                Verdict::Passed => tally.count_passed(1),
                other => tally.count(&name, &other, Duration::ZERO),
            }
        }
        self.failed += failed;
        self.output.clear();
        self.section = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_of_the_harness_is_counted() {
        let output = "running 4 tests\ntest a::good ... ok\ntest a::bad ... FAILED\ntest a::cannot ... ok\n\
                      test src/lib.rs - (line 9) - compile ... ok\n\nsuccesses:\n\n---- a::cannot stdout ----\n\
                      SKIPPED: no header\n\ntest result: FAILED. 3 passed; 1 failed; 0 ignored";
        let (mut reader, mut tally) = (Reader::default(), Tally::default());
        output.lines().for_each(|line| reader.line(line, &mut tally));
        assert_eq!(reader.failed, 1);
        assert!(tally.report().ends_with("\n2 passed, 1 failed, 1 skipped\n"), "{}", tally.report());
    }
}
