//! The suites of tests/suites, built for the machine, and the tests in them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::tier::{Selection, Tier};
use crate::built;
use crate::paths;
use crate::tool::capture;

/// The package that holds the suites.
const PACKAGE: &str = "gabion-tests";

/// A module of this name in a test's path gives it so many minutes, as in `minutes_10`.
const MINUTES: &str = "minutes_";

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
        let minutes = self.name.split("::").find_map(|part| part.strip_prefix(MINUTES)?.parse::<u64>().ok());
        minutes.map_or(self.tier.limit(), |minutes| Duration::from_secs(60 * minutes))
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

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds the suites of the selected tiers and lists the selected tests.
///
/// # Errors
/// When a suite does not build or cannot list its tests.
pub fn select(selection: &Selection) -> Result<Vec<Case>> {
    let suites: Vec<String> = suites()?
        .into_iter()
        .filter(|suite| Tier::of_suite(suite).is_some_and(|tier| selection.has(tier)))
        .collect();
    if suites.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec!["test", "--no-run", "--profile", built::PROFILE, "-p", PACKAGE];
    arguments.extend(suites.iter().flat_map(|suite| ["--test", suite]));
    let mut cases = Vec::new();
    for program in built::cargo(&arguments)?.into_iter().filter(|program| program.is_test) {
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

/// The names of all suites.
fn suites() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(paths::repository()?);
    let metadata: Metadata =
        serde_json::from_str(&capture(&mut command)?).context("reading cargo's metadata")?;
    let packages = metadata.packages.into_iter().filter(|package| package.name == PACKAGE);
    let targets = packages.flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.kind == ["test"]).map(|target| target.name).collect())
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
        assert_eq!(case("minutes_x::a").limit(), Duration::from_secs(120));
    }

    #[test]
    fn only_a_whole_module_name_marks_a_test_host_safe() {
        assert!(case("host_safe::a").is_host_safe());
        assert!(!case("not_host_safe::a").is_host_safe());
    }
}
