//! `cargo xtask tidy`: what the compiler does not check. Its checks are also a test of this package.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::paths;
use crate::tool::capture;
use crate::workspace::{self, Package, cargo};

/// The longest source file that a reader is asked to know their way about in.
const MAX_LINES: usize = 600;

/// Made by `cargo xtask bindings`, not written.
const GENERATED: [&str; 2] = ["csi/src/proto/generated.rs", "lvm-sys/src/bindings.rs"];

/// Which of our packages a package may depend on; those that are not named may depend on any.
const ARROWS: [(&str, &[&str]); 7] = [
    ("gabion-lvm-sys", &[]),
    ("gabion-devices", &[]),
    ("gabion-lvm", &["gabion-lvm-sys", "gabion-devices"]),
    ("gabion-bcache", &["gabion-devices"]),
    ("gabion-volumes", &["gabion-lvm", "gabion-bcache", "gabion-devices"]),
    ("gabion-csi", &["gabion-volumes", "gabion-lvm", "gabion-bcache", "gabion-devices"]),
    ("xtask", &["gabion-guest"]),
];

/// Packages that build without these, however far down.
const LEAN: [&str; 4] = ["gabion-lvm", "gabion-bcache", "gabion-devices", "gabion-volumes"];
const HEAVY: [&str; 4] = ["tokio", "tonic", "kube", "k8s-openapi"];

/// Words that must not stand in a source file. They are written apart here, so that this file may name them.
const FORBIDDEN: [(&str, &str); 6] = [
    (concat!("todo", "!("), "unfinished"),
    (concat!("unimplemented", "!("), "unfinished"),
    (concat!("FIX", "ME"), "unfinished"),
    (concat!("#[ign", "ore]"), "a test that never runs"),
    (concat!("../sha", "red"), "a path outside of the clone"),
    (concat!("/wor", "k/"), "a path of one machine"),
];

/// Prints what is not tidy; fails if anything is.
///
/// # Errors
/// When the files or the dependencies cannot be read.
pub fn run() -> Result<ExitCode> {
    let problems = check()?;
    problems.iter().for_each(|problem| println!("{problem}"));
    println!("tidy: {} problems", problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that is not tidy, one line each.
///
/// # Errors
/// When the files or the dependencies cannot be read.
pub fn check() -> Result<Vec<String>> {
    let mut problems = sources()?;
    problems.extend(workspace::packages()?.iter().flat_map(forbidden_arrows));
    for package in LEAN {
        let tree = cargo(&["tree", "-p", package, "-e", "normal", "--prefix", "none"])?;
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        let heavy = names.filter(|name| HEAVY.contains(name));
        problems.extend(heavy.map(|name| format!("{package} depends on {name}")));
    }
    problems.dedup();
    Ok(problems)
}

fn sources() -> Result<Vec<String>> {
    let top = paths::repository()?;
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*.sh"]).current_dir(&top);
    let mut problems = Vec::new();
    for name in capture(&mut list)?.lines().filter(|name| !GENERATED.contains(name)) {
        // A file that was deleted and is still in the index has nothing to check.
        let Ok(text) = fs::read_to_string(top.join(name)) else { continue };
        problems.extend(source(Path::new(name), &text));
    }
    Ok(problems)
}

fn source(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("{}: {lines} lines; split it by concept at {MAX_LINES}", name.display()));
    }
    for (number, line) in text.lines().enumerate() {
        let found = FORBIDDEN.iter().filter(|(word, _)| line.contains(word));
        let at = || format!("{}:{}", name.display(), number + 1);
        problems.extend(found.map(|(word, why)| format!("{}: `{word}` ({why})", at())));
    }
    problems
}

fn forbidden_arrows(package: &Package) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else { return Vec::new() };
    let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    ours.filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        .filter(|dependency| !allowed.contains(&dependency.name.as_str()))
        .map(|dependency| format!("{} may not depend on {}", package.name, dependency.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    #[test]
    fn the_repository_is_tidy() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_long_file_and_a_forbidden_word_are_found() {
        let long = "line\n".repeat(MAX_LINES + 1);
        assert_eq!(source(Path::new("a.rs"), &long).len(), 1);
        let unfinished = format!("fn a() {{ {}) }}", FORBIDDEN[0].0);
        assert!(source(Path::new("a.rs"), &unfinished)[0].starts_with("a.rs:1: "));
        assert!(source(Path::new("a.rs"), "fn a() {}").is_empty());
    }

    #[test]
    fn an_arrow_in_the_wrong_direction_is_found() {
        let dependency = |name: &str, kind: Option<&str>| Dependency {
            name: name.into(),
            kind: kind.map(str::to_owned),
            path: Some("/x".into()),
        };
        let dependencies = vec![dependency("gabion-lvm", None), dependency("gabion-tests", Some("dev"))];
        let devices = Package { name: "gabion-devices".into(), targets: Vec::new(), dependencies };
        assert_eq!(forbidden_arrows(&devices), ["gabion-devices may not depend on gabion-lvm"]);
    }
}
