//! What a piece of work costs besides time: system calls by `strace`, bytes by the devices' own statistics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::site::{Site, program, spawn};
use crate::work::Work;

/// Cost of one piece of work, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cost {
    pub(crate) syscalls: u64,
    pub(crate) bytes_read: u64,
}

/// Counts the library's side: what doing it `times + 1` times costs more than doing it once. `clean` undoes between.
pub(crate) fn library(
    site: &Site,
    work: Work,
    times: u32,
    clean: &dyn Fn(u32) -> Result<()>,
) -> Result<Cost> {
    let run = |times: u32| -> Result<Cost> {
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        let name = clap::ValueEnum::to_possible_value(&work).context("the work has no name")?;
        command.args(["work", name.get_name(), "--times", &times.to_string(), "--site"]).arg(site.file());
        let cost = counted(site, &command)?;
        clean(times)?;
        Ok(cost)
    };
    let (once, more) = (run(1)?, run(times + 1)?);
    let each = |more: u64, once: u64| more.saturating_sub(once) / u64::from(times);
    Ok(Cost {
        syscalls: each(more.syscalls, once.syscalls),
        bytes_read: each(more.bytes_read, once.bytes_read),
    })
}

/// Counts a spawned command, from its first system call to its last.
pub(crate) fn counted(site: &Site, command: &Command) -> Result<Cost> {
    let log = site.dir().join("strace");
    let mut traced = Command::new(program("strace")?);
    traced.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&log).arg("--");
    traced.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    let before = read_from(site.devices())?;
    spawn(&mut traced)?;
    let bytes_read = read_from(site.devices())?.saturating_sub(before);
    Ok(Cost { syscalls: total(&fs::read_to_string(&log).context("read what strace counted")?)?, bytes_read })
}

/// The last line of the table, such as `123 total`.
fn total(table: &str) -> Result<u64> {
    let line = table.lines().rev().find_map(|line| line.trim().strip_suffix("total"));
    let count = line.and_then(|line| line.trim().parse().ok());
    count.with_context(|| format!("strace gave no total:\n{table}"))
}

/// Bytes read from the devices since the machine's start (Documentation/block/stat.rst: the third field, in sectors).
fn read_from(devices: &[PathBuf]) -> Result<u64> {
    devices.iter().try_fold(0, |sum, device| Ok(sum + sectors_read(device)? * devices::Sectors::SIZE))
}

fn sectors_read(device: &Path) -> Result<u64> {
    let name = device.file_name().context("the device has no name")?;
    let file = Path::new("/sys/class/block").join(name).join("stat");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let field = text.split_whitespace().nth(2).and_then(|field| field.parse().ok());
    ensure!(field.is_some(), "{} holds {text}", file.display());
    Ok(field.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_line() {
        let table = "    calls syscall\n--------- --------\n       12 read\n        3 totally\n--------- --\n       15 total\n";
        assert_eq!(total(table).unwrap(), 15);
        assert!(total("").is_err());
    }
}
