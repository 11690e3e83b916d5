//! Counting, and the report at the end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::verdict::Verdict;

/// How many of the slowest tests the report names.
const SLOWEST: usize = 10;

/// What became of all tests so far. Tests that run side by side share it.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    failed: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
    left_out: Vec<(String, String)>,
    times: Vec<(Duration, String)>,
}

impl Tally {
    /// Counts one test and prints its line.
    pub fn count(&self, name: &str, verdict: &Verdict, took: Duration) {
        let mut counts = self.counts();
        let seconds = took.as_secs_f64();
        match verdict {
            Verdict::Passed => {
                println!("passed   {name} ({seconds:.1} s)");
                counts.passed += 1;
            }
            Verdict::Skipped(why) => {
                println!("skipped  {name}: {why}");
                counts.skipped.push((name.to_owned(), why.clone()));
            }
            Verdict::Failed(why) => {
                println!("FAILED   {name} ({seconds:.1} s): {why}");
                counts.failed.push((name.to_owned(), why.clone()));
            }
        }
        counts.times.push((took, name.to_owned()));
    }

    /// Counts tests that a harness ran by itself and passed.
    pub fn count_passed(&self, number: usize) {
        self.counts().passed += number;
    }

    /// Notes what is not run at all.
    pub fn leave_out(&self, what: impl Into<String>, why: impl Into<String>) {
        self.counts().left_out.push((what.into(), why.into()));
    }

    /// Whether something passed and nothing failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let counts = self.counts();
        counts.failed.is_empty() && counts.passed > 0
    }

    /// What was left out and why, the slowest tests, every failure, and last the sum.
    #[must_use]
    pub fn report(&self) -> String {
        let mut counts = self.counts();
        counts.times.sort_by(|a, b| b.cmp(a));
        let mut report = String::new();
        let mut lines = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                report += &format!("\n{title}\n  {}\n", lines.join("\n  "));
            }
        };
        let pairs = |of: &[(String, String)]| of.iter().map(|(what, why)| format!("{what}: {why}")).collect();
        let slowest = counts.times.iter().take(SLOWEST).filter(|(took, _)| took.as_secs() >= 1);
        lines(
            "slowest:",
            slowest.map(|(took, name)| format!("{:6.1} s  {name}", took.as_secs_f64())).collect(),
        );
        lines("left out:", pairs(&counts.left_out));
        lines("skipped:", pairs(&counts.skipped));
        lines("failed:", pairs(&counts.failed));
        if counts.times.is_empty() && counts.passed == 0 {
            report += "\nno test was selected\n";
        }
        let (failed, skipped) = (counts.failed.len(), counts.skipped.len());
        report + &format!("\n{} passed, {failed} failed, {skipped} skipped\n", counts.passed)
    }

    /// No thread panics while it counts, so a poisoned lock cannot hold half a count.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_ends_with_the_sum_and_names_what_failed_and_was_left_out() {
        let tally = Tally::default();
        tally.count("a", &Verdict::Passed, Duration::from_secs(2));
        tally.count("b", &Verdict::Failed("why".into()), Duration::from_secs(3));
        tally.count("c", &Verdict::Skipped("no root".into()), Duration::ZERO);
        tally.count_passed(4);
        tally.leave_out("soak", "long");
        let report = tally.report();
        assert_eq!(report.lines().last().unwrap(), "5 passed, 1 failed, 1 skipped");
        for part in ["b: why", "c: no root", "soak: long", "3.0 s  b"] {
            assert!(report.contains(part), "{part} in {report}");
        }
        assert!(!tally.is_good());
    }

    #[test]
    fn nothing_run_is_not_good() {
        assert!(!Tally::default().is_good());
        assert!(Tally::default().report().contains("no test was selected"));
    }
}
