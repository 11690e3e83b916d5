//! The distribution's tools, as builders and as oracles.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Says why on one line and returns true if one of `programs` is not installed.
#[must_use]
pub fn skip_unless_installed(programs: &[&str]) -> bool {
    let found = |program: &&str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    let missing: Vec<_> = programs.iter().filter(|program| !found(program)).copied().collect();
    if !missing.is_empty() {
        println!("SKIPPED: not installed: {}", missing.join(", "));
    }
    !missing.is_empty()
}

/// Runs a program in the C locale and gives what it wrote to standard output.
///
/// # Errors
///
/// With what it wrote to standard error, if it ends with anything but success.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().with_context(|| format!("run {program}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("{program} wrote no text"))
}
