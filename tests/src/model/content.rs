//! The contents of volumes, as their users write and read them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::belief::Mode;
use crate::node::content;

/// What is written at once.
const BYTES: usize = 256 << 10;

/// Writes a content where a volume is shown; it is on the disk when this returns.
pub(super) fn write(target: &Path, mode: Mode, data: u64) -> Result<()> {
    let bytes = content(&data.to_string(), BYTES);
    if mode == Mode::Block {
        let device = File::options().write(true).open(target).context("open the device")?;
        device.write_all_at(&bytes, 0)?;
        return device.sync_all().context("flush the device");
    }
    // Whoever cuts a snapshot meanwhile finds the old one or the new one, whole.
    let (new, name) = (target.join("new"), target.join("data"));
    let file = File::create(&new).context("make a file")?;
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    fs::rename(&new, &name)?;
    File::open(target)?.sync_all().context("flush the directory")
}

/// Fails unless exactly that content is there; nothing was ever written where there is none.
pub(super) fn check(target: &Path, mode: Mode, data: Option<u64>) -> Result<()> {
    let Some(data) = data else {
        ensure!(mode == Mode::Block || !target.join("data").exists(), "a file is there that nobody wrote");
        return Ok(());
    };
    let place = if mode == Mode::Block { target.to_owned() } else { target.join("data") };
    let mut found = vec![0; BYTES];
    let file = File::open(&place).with_context(|| format!("open {}", place.display()))?;
    file.read_exact_at(&mut found, 0)?;
    ensure!(found == content(&data.to_string(), BYTES), "the content {data} is not at {}", place.display());
    Ok(())
}
