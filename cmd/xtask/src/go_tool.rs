//! Programs of others, written in Go, that suites run: built once from tests/tools into the rig's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;
use crate::tool::{exists, run};

/// The test suite for CSI drivers of the Kubernetes project, as a program.
pub const CSI_SANITY: &str = "csi-sanity";

const CSI_SANITY_MODULE: &str = "github.com/kubernetes-csi/csi-test/v5";

/// Where Go's own archive is unpacked, if it is not in the path.
const GO: &str = "/usr/local/go/bin/go";

/// csi-sanity of the version that tests/tools/go.mod names, built if the cache does not have it.
///
/// # Errors
/// When there is no Go, a module cannot be fetched, or something does not build.
pub fn csi_sanity() -> Result<PathBuf> {
    let tools = paths::repository()?.join("tests/tools");
    let file = tools.join("go.mod");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let version = version(&text, CSI_SANITY_MODULE)
        .with_context(|| format!("{} does not require {CSI_SANITY_MODULE}", file.display()))?;
    let kept = paths::cache()?.join(format!("{CSI_SANITY}-{version}"));
    if !kept.exists() {
        build(&tools, &format!("{CSI_SANITY_MODULE}/cmd/{CSI_SANITY}"), &kept)?;
    }
    Ok(kept)
}

/// Builds a package beside its place and renames it, so that a broken build is never taken for a whole one.
fn build(tools: &Path, package: &str, kept: &Path) -> Result<()> {
    let go = match () {
        () if exists("go") => "go",
        () if Path::new(GO).exists() => GO,
        () => bail!(
            "Go is not installed (go.dev/dl; tests/tools/go.mod says which version), and {package} needs it"
        ),
    };
    eprintln!("rig: building {package}, once; this takes some minutes");
    let fresh = kept.with_extension(format!("new-{}", std::process::id()));
    let mut command = Command::new(go);
    command.args(["build", "-trimpath", "-mod=readonly", "-ldflags=-s -w", "-o"]).arg(&fresh).arg(package);
    // Static, for the machine may have another C library.
    run(command.current_dir(tools).env("CGO_ENABLED", "0"))?;
    fs::rename(&fresh, kept).with_context(|| format!("renaming {} to {}", fresh.display(), kept.display()))
}

/// The version of a module that the text of a go.mod requires.
fn version<'a>(text: &'a str, module: &str) -> Option<&'a str> {
    let required = |line: &'a str| line.trim().strip_prefix(module)?.strip_prefix(' ')?.split(' ').next();
    text.lines().find_map(required)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_module_itself() {
        let text =
            "module a\n\ntool x/v5/cmd/y\n\nrequire (\n\tx/v5/z v1.0.0\n\tx/v5 v5.6.0 // indirect\n)\n";
        assert_eq!(version(text, "x/v5"), Some("v5.6.0"));
        assert_eq!(version(text, "x"), None);
    }

    #[test]
    fn go_mod_names_the_version_of_csi_sanity() {
        let text = fs::read_to_string(paths::repository().unwrap().join("tests/tools/go.mod")).unwrap();
        assert!(version(&text, CSI_SANITY_MODULE).is_some_and(|version| version.starts_with('v')));
    }
}
