//! The suites of tests/suites, built for the machine, and the tests in them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::tier::{Selection, Tier};
use crate::built;
use crate::tool::capture;
use crate::workspace;

/// The package that holds the suites.
pub const PACKAGE: &str = "gabion-tests";

/// A module of this name in a test's path gives it so many minutes, as in `minutes_10`.
const MINUTES: &str = "minutes_";

/// A module of this name in a test's path gives it so many seconds, as in `seconds_5`.
const SECONDS: &str = "seconds_";

/// A module of this name in a test's path says that the rig must fail the test, in the way that the next module names:
/// such tests prove the rig itself.
const MUST_FAIL: &str = "must_fail";

/// A module of this name in a test's path says that the test may run on any host: loop devices and names of its own,
/// nothing suspended, nothing killed, no modules.
const HOST_SAFE: &str = "host_safe";

/// One test: a function in a built suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its tier.
    pub tier: Tier,
    /// Its suite, such as `system_rig`.
    pub suite: String,
    /// The suite's program.
    pub program: PathBuf,
    /// Its path within the suite.
    pub name: String,
}

impl Case {
    /// The name that people see and filter by.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}::{}", self.suite, self.name)
    }

    /// How long it may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        let seconds = self.name.split("::").find_map(|part| {
            let (number, unit) = match part.strip_prefix(MINUTES) {
                Some(number) => (number, 60),
                None => (part.strip_prefix(SECONDS)?, 1),
            };
            number.parse::<u64>().ok()?.checked_mul(unit)
        });
        seconds.map_or(self.tier.limit(), Duration::from_secs)
    }

    /// The way in which the rig must fail it, if it is one of those that prove the rig.
    #[must_use]
    pub fn must_fail(&self) -> Option<&str> {
        let mut parts = self.name.split("::").skip_while(|part| *part != MUST_FAIL);
        parts.next().and(parts.next())
    }

    /// Whether it may run outside of the machine.
    #[must_use]
    pub fn is_host_safe(&self) -> bool {
        self.name.split("::").any(|part| part == HOST_SAFE)
    }

    /// The arguments that make the suite's program run just this test.
    #[must_use]
    pub fn arguments(&self) -> [&str; 3] {
        ["--exact", &self.name, "--nocapture"]
    }
}

/// Builds the suites of the selected tiers and lists the selected tests.
///
/// # Errors
/// When a suite does not build or cannot list its tests.
pub fn select(selection: &Selection) -> Result<Vec<Case>> {
    let mut suites: Vec<String> = workspace::suites(|package| package == PACKAGE)?
        .into_iter()
        .filter(|suite| Tier::of_suite(suite).is_some_and(|tier| selection.has(tier)))
        .collect();
    if let Some(named) = named_suites(&suites, selection.filters()) {
        suites = named;
    }
    if suites.is_empty() {
        return Ok(Vec::new());
    }
    let mut cases = Vec::new();
    for program in built::with_suites(&suites)?.into_iter().filter(|program| program.is_test) {
        let Some(tier) = Tier::of_suite(&program.name) else { continue };
        let list = capture(Command::new(&program.path).args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        cases.extend(names.map(|name| Case {
            tier,
            suite: program.name.clone(),
            program: program.path.clone(),
            name: name.to_owned(),
        }));
    }
    cases.retain(|case| selection.wants(case.tier, &case.full_name()));
    cases.sort_by(|a, b| (a.tier, &a.suite, &a.name).cmp(&(b.tier, &b.suite, &b.name)));
    Ok(cases)
}

/// The suites that the filters mean, when each of them begins with the name of one: the others need not be built.
fn named_suites(suites: &[String], filters: &[String]) -> Option<Vec<String>> {
    let first = |filter: &str| filter.split("::").next().unwrap_or_default().to_owned();
    let named: Vec<String> = filters.iter().map(|filter| first(filter)).collect();
    (!named.is_empty() && named.iter().all(|name| suites.contains(name))).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        Case { tier: Tier::System, suite: "system_x".into(), program: "/x".into(), name: name.into() }
    }

    #[test]
    fn a_module_in_the_path_sets_the_limit() {
        assert_eq!(case("a").limit(), Duration::from_secs(120));
        assert_eq!(case("minutes_10::a").limit(), Duration::from_secs(600));
        assert_eq!(case("b::seconds_5::a").limit(), Duration::from_secs(5));
        assert_eq!(case("minutes_x::a").limit(), Duration::from_secs(120));
    }

    #[test]
    fn the_module_below_must_fail_names_the_way() {
        assert_eq!(case("must_fail::left_behind::a").must_fail(), Some("left_behind"));
        assert_eq!(case("a_must_fail::a").must_fail(), None);
    }

    #[test]
    fn a_filter_that_names_a_suite_keeps_the_others_from_being_built() {
        let suites = ["system_a".to_owned(), "system_b".to_owned()];
        let named = |filters: &[&str]| {
            named_suites(&suites, &filters.iter().map(|filter| (*filter).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(named(&["system_b::thin"]).unwrap(), ["system_b"]);
        assert_eq!(named(&["system_b", "thin"]), None);
        assert_eq!(named(&[]), None);
    }

    #[test]
    fn only_a_whole_module_name_marks_a_test_host_safe() {
        assert!(case("host_safe::a").is_host_safe());
        assert!(!case("not_host_safe::a").is_host_safe());
    }
}
