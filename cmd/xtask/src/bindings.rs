//! `cargo xtask bindings`: makes what is generated and committed, or checks that it is up to date.
//!
//! | made | from | by |
//! |---|---|---|
//! | lvm-sys/src/bindings.rs | vendor-headers | bindgen, which needs libclang |
//! | csi/src/proto/generated.rs | csi/proto/csi.proto | protox and tonic-prost-build |
//!
//! cmd/xtask/bindings.txt keeps two checksums of each, of what it was made of and of itself, so that a test of this package
//! tells at once, without any of the generators, whether one was changed and the other was not.
//!
//! Neither this program nor anybody's build shall need these tools: each lives in a package of its own outside of the
//! workspace, built only here.

use std::fs;
use std::path::{Path, PathBuf};
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
    /// Everything that it is made of, the generator included: files, and directories whose files all count.
    made_of: &'static [&'static str],
    needs: &'static str,
}

/// The checksums.
const SUMS: &str = "cmd/xtask/bindings.txt";

const GENERATED: [Generated; 2] = [
    Generated {
        file: "lvm-sys/src/bindings.rs",
        generator: "lvm-sys/generate",
        sources: &["vendor-headers/all.h", ".rustfmt.toml"],
        made_of: &[
            "vendor-headers",
            ".rustfmt.toml",
            "lvm-sys/generate/src",
            "lvm-sys/generate/Cargo.toml",
            "lvm-sys/generate/Cargo.lock",
        ],
        needs: "bindgen needs libclang: apt-get install libclang-dev",
    },
    Generated {
        file: "csi/src/proto/generated.rs",
        generator: "csi/generate",
        sources: &["csi/proto/csi.proto"],
        made_of: &[
            "csi/proto/csi.proto",
            "csi/generate/src",
            "csi/generate/Cargo.toml",
            "csi/generate/Cargo.lock",
        ],
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
    let (file, fresh) = (top.join(SUMS), sums(&top)?);
    if !arguments.check {
        fs::write(&file, fresh).with_context(|| format!("writing {}", file.display()))?;
    } else if fs::read_to_string(&file).unwrap_or_default() != fresh {
        eprintln!("{SUMS} tells of other files; run `cargo xtask bindings`");
        stale = true;
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

/// One line for each generated file: its name, the checksum of what it is made of, and its own.
fn sums(top: &Path) -> Result<String> {
    let mut text = String::new();
    for Generated { file, made_of, .. } in &GENERATED {
        let (sources, own) = (checksum_of(top, made_of)?, checksum_of(top, &[file])?);
        text += &format!("{file} {sources:016x} {own:016x}\n");
    }
    Ok(text)
}

fn checksum_of(top: &Path, made_of: &[&str]) -> Result<u64> {
    let mut files = Vec::new();
    for name in made_of {
        let path = top.join(name);
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))? {
                files.push(entry?.path());
            }
        } else {
            files.push(path);
        }
    }
    files.sort();
    let read = |file: &PathBuf| fs::read(file).with_context(|| format!("reading {}", file.display()));
    let contents = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(checksum(contents.iter().map(Vec::as_slice)))
}

/// FNV-1a of 64 bits over all parts, their lengths included: it guards against oversight, not against anybody.
fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    parts.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, part| {
        let length = (part.len() as u64).to_le_bytes();
        length.iter().chain(part).copied().fold(sum, step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_was_made_of_what_is_committed() {
        let top = paths::repository().unwrap();
        let kept = fs::read_to_string(top.join(SUMS)).unwrap();
        assert_eq!(sums(&top).unwrap(), kept, "run `cargo xtask bindings`");
    }

    #[test]
    fn a_checksum_tells_parts_and_their_bounds_apart() {
        let sum = |parts: &[&str]| checksum(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(sum(&["ab"]), sum(&["ab"]));
        assert_ne!(sum(&["ab"]), sum(&["a", "b"]));
        assert_ne!(sum(&["ab"]), sum(&["ac"]));
    }
}
