//! `cargo xtask bindings`: makes what is generated and committed, or checks that it is up to date.
//!
//! | made | from | by |
//! |---|---|---|
//! | lvm-sys/src/bindings.rs | vendor-headers | bindgen, which needs libclang |
//! | csi/src/proto/generated.rs | csi/proto/csi.proto | protox and tonic-prost-build |
//!
//! Neither this program nor anybody's build shall need these tools: each lives in a package of its own outside of the
//! workspace, built only here.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::{paths, tool};

/// What it may be told.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Change nothing; fail where a committed file is not what its source gives
    #[arg(long)]
    check: bool,
}

/// One committed file, and the package whose program prints it.
struct Generated {
    file: &'static str,
    generator: &'static str,
    /// The program's arguments, as paths in the clone.
    sources: &'static [&'static str],
    needs: &'static str,
}

const GENERATED: [Generated; 2] = [
    Generated {
        file: "lvm-sys/src/bindings.rs",
        generator: "lvm-sys/generate",
        sources: &["vendor-headers/all.h", ".rustfmt.toml"],
        needs: "bindgen needs libclang: apt-get install libclang-dev",
    },
    Generated {
        file: "csi/src/proto/generated.rs",
        generator: "csi/generate",
        sources: &["csi/proto/csi.proto"],
        needs: "its dependencies come from the registry",
    },
];

/// Runs it.
///
/// # Errors
/// When a generator does not build or run, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let top = paths::repository()?;
    let mut stale = false;
    for generated in &GENERATED {
        let file = top.join(generated.file);
        let fresh = make(&top, generated)?;
        // A file that is not there yet is as stale as any.
        let committed = fs::read_to_string(&file).unwrap_or_default();
        if committed == fresh {
            println!("{} is up to date", file.display());
        } else if arguments.check {
            let sources = generated.sources.join(" and ");
            eprintln!("{} is not what {sources} give; run `cargo xtask bindings`", file.display());
            stale = true;
        } else {
            fs::write(&file, fresh).with_context(|| format!("writing {}", file.display()))?;
            println!("wrote {}", file.display());
        }
    }
    Ok(if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn make(top: &Path, generated: &Generated) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    tool::capture(
        Command::new(cargo)
            .args(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(top.join(generated.generator).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(paths::target()?.join("generate"))
            .arg("--")
            .args(generated.sources.iter().map(|source| top.join(source))),
    )
    .with_context(|| format!("making {} ({})", generated.file, generated.needs))
}
