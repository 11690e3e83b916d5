//! `cargo xtask bindings`: makes lvm-sys/src/bindings.rs from vendor-headers, or checks that it is up to date.
//!
//! bindgen needs libclang, which neither this program nor anybody's build shall need: it lives in a package of its
//! own outside of the workspace, built only here.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::{paths, tool};

/// What it may be told.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Change nothing; fail where the committed file is not what the headers give
    #[arg(long)]
    check: bool,
}

/// Runs it.
///
/// # Errors
/// When the generator does not build or run, or the file cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let top = paths::repository()?;
    let file = top.join("lvm-sys/src/bindings.rs");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let fresh = tool::capture(
        Command::new(cargo)
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(top.join("lvm-sys/generate/Cargo.toml"))
            .arg("--target-dir")
            .arg(paths::target()?.join("generate"))
            .arg("--")
            .arg(top.join("vendor-headers/all.h"))
            .arg(top.join(".rustfmt.toml")),
    )
    .context("making the bindings (bindgen needs libclang: apt-get install libclang-dev)")?;
    let committed = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    if committed == fresh {
        println!("{} is up to date", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.check {
        eprintln!("{} is not what vendor-headers give; run `cargo xtask bindings`", file.display());
        return Ok(ExitCode::FAILURE);
    }
    fs::write(&file, fresh).with_context(|| format!("writing {}", file.display()))?;
    println!("wrote {}", file.display());
    Ok(ExitCode::SUCCESS)
}
