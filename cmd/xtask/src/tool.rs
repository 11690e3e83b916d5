//! Running the system's tools: an error names the command and what it said.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a tool whose output goes to this program's standard error.
pub fn run(command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    let status = command.status().with_context(|| format!("starting {}", describe(command)))?;
    if status.success() { Ok(()) } else { bail!("{} ended with {status}", describe(command)) }
}

/// Runs a tool and returns its standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", describe(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", describe(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes a file beside its place and renames it: who reads the old one, or makes the same one, is not disturbed.
///
/// # Errors
/// When the file cannot be written or renamed.
pub fn put(path: &Path, content: &[u8]) -> Result<()> {
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    fs::write(&fresh, content).with_context(|| format!("writing {}", fresh.display()))?;
    fs::rename(&fresh, path).with_context(|| format!("renaming {} to {}", fresh.display(), path.display()))
}

/// Whether a program of this name can be found, in the administrator's directories too.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(Into::into))
        .any(|directory| directory.join(program).exists())
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
