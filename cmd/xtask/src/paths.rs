//! Where things lie: the clone, and the rig's cache outside of it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The top of the clone that this program was built from.
pub fn repository() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_owned).context("cmd/xtask has no grandparent directory")
}

/// The rig's cache: kernels, the lock, the running machine's disks. `GABION_RIG_CACHE` sets it; else the XDG cache.
pub fn cache() -> Result<PathBuf> {
    let path = match (env::var_os("GABION_RIG_CACHE"), env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")) {
        (Some(own), _, _) => PathBuf::from(own),
        (None, Some(xdg), _) => PathBuf::from(xdg).join("gabion/rig"),
        (None, None, Some(home)) => PathBuf::from(home).join(".cache/gabion/rig"),
        (None, None, None) => env::temp_dir().join("gabion-rig"),
    };
    std::fs::create_dir_all(&path).with_context(|| format!("making the rig's cache {}", path.display()))?;
    path.canonicalize().with_context(|| format!("resolving {}", path.display()))
}

/// The directory that cargo builds into.
pub fn target() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(path) => std::path::absolute(path).context("resolving CARGO_TARGET_DIR"),
        None => Ok(repository()?.join("target")),
    }
}
