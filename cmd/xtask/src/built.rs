//! What cargo builds for the guest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::paths;

#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A program that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The target's name.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Whether it is a test harness.
    pub is_test: bool,
}

/// Everything that runs in the machine, built at once: the dependencies have the same features in all of it, so
/// that none is compiled twice.
const PACKAGES: [&str; 4] = ["gabion-guest", "gabion", "gabion-lvm", "gabion-tests"];

/// Builds the guest's programs and the named suites, and returns all of them.
///
/// # Errors
/// When something does not build.
pub fn with_suites(suites: &[String]) -> Result<Vec<Built>> {
    let options = ["--profile", "guest", "--features", "gabion-lvm/worker", "--bins"];
    let packages = PACKAGES.iter().flat_map(|package| ["-p", package]);
    let suites = suites.iter().flat_map(|suite| ["--test", suite]);
    build(&options.into_iter().chain(packages).chain(suites).collect::<Vec<_>>())
}

/// Runs `cargo build` with these arguments and returns the programs that it built or found fresh.
///
/// # Errors
/// When something does not build.
pub fn build(arguments: &[&str]) -> Result<Vec<Built>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .arg("build")
        .args(arguments)
        .args(["--message-format", "json-render-diagnostics", "--quiet"])
        .current_dir(paths::repository()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    if !output.status.success() {
        bail!("cargo build {} ended with {}", arguments.join(" "), output.status);
    }
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| built(line).transpose()).collect()
}

/// Builds the programs that every machine gets, by name: the runner, the worker and the command.
///
/// # Errors
/// When something does not build.
pub fn guest_programs() -> Result<BTreeMap<String, PathBuf>> {
    let programs = with_suites(&[])?.into_iter().filter(|program| !program.is_test);
    Ok(programs.map(|program| (program.name, program.path)).collect())
}

fn built(line: &str) -> Result<Option<Built>> {
    let message: Message = serde_json::from_str(line).with_context(|| format!("cargo wrote {line}"))?;
    if message.reason != "compiler-artifact" {
        return Ok(None);
    }
    let (Some(path), Some(target)) = (message.executable, message.target) else { return Ok(None) };
    let is_test = message.profile.is_some_and(|profile| profile.test);
    Ok(Some(Built { name: target.name, path, is_test }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_artifacts_with_an_executable_count() {
        let artifact = r#"{"reason":"compiler-artifact","target":{"name":"system_rig"},
            "profile":{"test":true},"executable":"/t/system_rig-1"}"#;
        let expected = Built { name: "system_rig".into(), path: "/t/system_rig-1".into(), is_test: true };
        assert_eq!(built(artifact).unwrap(), Some(expected));
        let library = r#"{"reason":"compiler-artifact","target":{"name":"lvm"},"executable":null}"#;
        assert_eq!(built(library).unwrap(), None);
        assert_eq!(built(r#"{"reason":"build-finished","success":true}"#).unwrap(), None);
        assert!(built("warning").is_err());
    }
}
