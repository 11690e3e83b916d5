//! What a test's output says: passed, failed or skipped, and what it asks of the host.

use guest::protocol::Status;

use crate::machine::Watch;

/// What became of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It ran and passed.
    Passed,
    /// It says itself why it could not run.
    Skipped(String),
    /// It failed; why, in one line.
    Failed(String),
}

impl Verdict {
    /// The verdict on a test that the rig must fail in the named way, whose words appear in the reason.
    #[must_use]
    pub fn must_fail(&self, how: &str) -> Verdict {
        let words = how.replace('_', " ");
        match self {
            Verdict::Failed(why) if why.contains(&words) => Verdict::Passed,
            Verdict::Skipped(why) => Verdict::Skipped(why.clone()),
            other => Verdict::Failed(format!("the rig should have failed it with `{words}`, but: {other:?}")),
        }
    }
}

/// Kernel lines that fail a test whatever it says itself.
const KERNEL_ALARMS: [&str; 4] = ["BUG: ", "WARNING: CPU", "general protection fault", "UBSAN: "];

/// Judges a test by how its process ended and what it wrote.
#[must_use]
pub fn judge(status: &Status, output: &str, kernel_log: &[String]) -> Verdict {
    if !status.success() {
        return Verdict::Failed(status.to_string());
    }
    if let Some(alarm) = kernel_log.iter().find(|line| KERNEL_ALARMS.iter().any(|alarm| line.contains(alarm)))
    {
        return Verdict::Failed(format!("the kernel said: {alarm}"));
    }
    // A name that matches no test ends with success, too.
    if !output.contains("1 passed; 0 failed") {
        return Verdict::Failed("the suite did not run exactly this test".into());
    }
    match output.lines().find_map(|line| marked(line, "SKIPPED: ")) {
        Some(reason) => Verdict::Skipped(reason.to_owned()),
        None => Verdict::Passed,
    }
}

/// What follows a mark at the beginning of a line, or behind the harness's own `test NAME ... `.
fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let line = match line.strip_prefix("test ") {
        Some(rest) => rest.split_once(" ... ").map_or(line, |(_, rest)| rest),
        None => line,
    };
    line.strip_prefix(mark).map(str::trim)
}

/// What a test wants a person to read at once, and although it passes: a line `FIGURES: text`.
#[must_use]
pub fn figures(line: &str) -> Option<&str> {
    marked(line, "FIGURES: ")
}

/// What a test asks of the host by a line `RIG: cut power`, `RIG: unplug N`, `RIG: plug N [BAD-SECTOR…]` or
/// `RIG: resize N BYTES`.
#[must_use]
pub fn wish(line: &str) -> Watch {
    let Some(wish) = marked(line, "RIG: ") else { return Watch::GoOn };
    let mut words = wish.split_whitespace();
    let (verb, first) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (verb, first, first.parse()) {
        ("cut", "power", _) => Watch::CutPower,
        ("unplug", _, Ok(index)) => Watch::Unplug(index),
        ("resize", _, Ok(index)) => match words.next().and_then(|word| word.parse().ok()) {
            Some(bytes) => Watch::Resize(index, bytes),
            None => Watch::GoOn,
        },
        ("plug", _, Ok(index)) => Watch::Plug(index, words.filter_map(|word| word.parse().ok()).collect()),
        _ => Watch::GoOn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored;";

    #[test]
    fn a_good_exit_alone_does_not_pass_a_test() {
        assert_eq!(judge(&Status::Exited(0), GOOD, &[]), Verdict::Passed);
        assert!(matches!(judge(&Status::Exited(0), "0 passed; 0 failed", &[]), Verdict::Failed(_)));
        assert!(matches!(judge(&Status::Exited(101), GOOD, &[]), Verdict::Failed(_)));
        assert!(matches!(judge(&Status::TimedOut, GOOD, &[]), Verdict::Failed(_)));
    }

    #[test]
    fn a_kernel_bug_fails_a_test_that_passed() {
        let log = ["[    1.000000] BUG: kernel NULL pointer dereference".to_owned()];
        assert!(matches!(judge(&Status::Exited(0), GOOD, &log), Verdict::Failed(_)));
        let log = ["[    1.000000] debug: fine".to_owned()];
        assert_eq!(judge(&Status::Exited(0), GOOD, &log), Verdict::Passed);
    }

    #[test]
    fn a_test_that_proves_the_rig_passes_only_when_it_failed_as_told() {
        let failed = Verdict::Failed("left behind: a mount".into());
        assert_eq!(failed.must_fail("left_behind"), Verdict::Passed);
        assert!(matches!(failed.must_fail("time_limit"), Verdict::Failed(_)));
        assert!(matches!(Verdict::Passed.must_fail("left_behind"), Verdict::Failed(_)));
    }

    #[test]
    fn a_skip_is_seen_at_the_beginning_of_a_line_and_behind_the_harness() {
        for line in ["SKIPPED: no loop", "test a::b ... SKIPPED: no loop"] {
            let output = format!("{line}\n{GOOD}");
            assert_eq!(judge(&Status::Exited(0), &output, &[]), Verdict::Skipped("no loop".into()));
        }
        let output = format!("it said SKIPPED: no\n{GOOD}");
        assert_eq!(judge(&Status::Exited(0), &output, &[]), Verdict::Passed);
    }

    #[test]
    fn figures_are_shown_whatever_else_the_test_writes() {
        assert_eq!(figures("test a ... FIGURES: 3 of 3"), Some("3 of 3"));
        assert_eq!(figures("FIGURES: 4 s"), Some("4 s"));
        assert_eq!(figures("not FIGURES: x"), None);
    }

    #[test]
    fn wishes_are_read_from_lines() {
        assert_eq!(wish("RIG: cut power"), Watch::CutPower);
        assert_eq!(wish("test a ... RIG: unplug 6"), Watch::Unplug(6));
        assert_eq!(wish("RIG: plug 6 2048 4096"), Watch::Plug(6, vec![2048, 4096]));
        assert_eq!(wish("RIG: resize 6 4096"), Watch::Resize(6, 4096));
        assert_eq!(wish("RIG: resize 6"), Watch::GoOn);
        assert_eq!(wish("RIG: unplug x"), Watch::GoOn);
        assert_eq!(wish("anything"), Watch::GoOn);
    }
}
