//! What cargo knows of the workspace's packages.

use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::paths;
use crate::tool::capture;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// One of the workspace's packages.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// What it builds.
    pub targets: Vec<Target>,
    /// What it names as dependencies.
    pub dependencies: Vec<Dependency>,
}

/// Something that a package builds.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Such as `["test"]`.
    pub kind: Vec<String>,
}

/// A dependency as its package names it.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Nothing for a normal one, else `dev` or `build`.
    pub kind: Option<String>,
    /// Where it lies, if it is in the workspace.
    pub path: Option<String>,
}

/// All packages of the workspace.
///
/// # Errors
/// When cargo cannot read the workspace.
pub fn packages() -> Result<Vec<Package>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading cargo's metadata")?;
    Ok(metadata.packages)
}

/// The test suites of the packages whose names satisfy `of`.
///
/// # Errors
/// When cargo cannot read the workspace.
pub fn suites(of: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let packages = packages()?.into_iter().filter(|package| of(&package.name));
    let targets = packages.flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.kind == ["test"]).map(|target| target.name).collect())
}

/// Runs cargo on the committed lock file and returns what it wrote.
///
/// # Errors
/// When cargo fails.
pub fn cargo(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    capture(Command::new(cargo).args(arguments).arg("--locked").current_dir(paths::repository()?))
}
