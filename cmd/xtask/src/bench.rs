//! `cargo xtask bench`: the library against spawning LVM's own command, natively and in the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use guest::protocol::Command;
use serde_json::{Value, json};

use crate::built;
use crate::kernel::MachineKind;
use crate::lock::Lock;
use crate::machine::{Machine, MachineSpec};
use crate::setup;
use crate::virtual_disk::{Bus, DiskSpec};
use crate::vm::show;

/// One disk for a group alone, four for a second group, one for volumes that are made and removed.
const DISKS: DiskSpec = DiskSpec { count: 6, bytes: 20 << 30, bus: Bus::Virtio };

/// How long everything in the machine may take.
const LIMIT: Duration = Duration::from_secs(1200);

/// The program that measures, and the one that it needs beside it.
const BENCH: &str = "gabion-bench";
const WORKER: &str = "gabion-lvm-worker";

/// What `cargo xtask bench` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write the figures here as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// How long to measure each case, in seconds; changes get five times as much
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Only this part: cache, changes, driver, fill or reads
    #[arg(long)]
    only: Option<String>,
    /// Leave the machine out
    #[arg(long)]
    native_only: bool,
    /// What the machine is
    #[arg(long, value_enum, default_value_t, conflicts_with = "native_only")]
    machine: MachineKind,
}

/// Measures natively, then in the machine. Only what keeps it from measuring is a failure.
///
/// # Errors
/// When something cannot be built, the machine cannot be started, or a measured command fails.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let options = ["--release", "-p", BENCH, "-p", "gabion-lvm", "--features", FEATURES];
    let release = built::build(&options)?;
    let release: BTreeMap<String, PathBuf> =
        release.into_iter().map(|program| (program.name, program.path)).collect();
    let kernel = if arguments.native_only { None } else { Some(setup::ready(arguments.machine)?) };
    let guest = if arguments.native_only { BTreeMap::new() } else { built::guest_programs()? };
    // Nobody else's machine may run meanwhile, natively neither.
    let lock = Lock::take(arguments.machine)?;
    let start = Instant::now();
    let mut figures = vec![natively(&lock, &release, arguments)?];
    if let Some(kernel) = kernel {
        let programs = guest.into_iter().chain(release).collect();
        let mut machine = Machine::boot(&lock, &kernel, &MachineSpec { disks: vec![DISKS], programs })?;
        figures.push(in_machine(&mut machine, arguments)?);
    }
    println!("bench: {:.0} s", start.elapsed().as_secs_f64());
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&joined(&figures)).context("writing the figures as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The worker is a feature of its package.
const FEATURES: &str = "gabion-lvm/worker";

fn natively(lock: &Lock, programs: &BTreeMap<String, PathBuf>, arguments: &Arguments) -> Result<Value> {
    let file = lock.run_dir().join("bench.json");
    let bench = programs.get(BENCH).context("cargo built no benchmark")?;
    let mut command = std::process::Command::new(bench);
    command.args(words("native", arguments)).arg(&file).current_dir(lock.run_dir());
    command.envs(programs.get(WORKER).map(|worker| ("GABION_LVM_WORKER", worker)));
    let status = command.status().with_context(|| format!("starting {}", bench.display()))?;
    ensure!(status.success(), "the native part ended with {status}");
    read(&file)
}

fn in_machine(machine: &mut Machine, arguments: &Arguments) -> Result<Value> {
    let nodes: Vec<&str> = machine.disks().iter().map(|disk| disk.node.as_str()).collect();
    let program = format!("/run/rig/bin/{BENCH}");
    let words = std::iter::once(program).chain(words("machine", arguments));
    let command = Command::new(words.chain(["/run/out/bench.json".to_owned()]))
        .cwd("/tmp/bench")
        .limit(LIMIT)
        .env("GABION_DISKS", nodes.join(" "))
        .env("GABION_LVM_WORKER", format!("/run/rig/bin/{WORKER}"))
        .env("GABION_BIN", "/run/rig/bin/gabion")
        .env("GABION_MACHINE", if machine.is_pluggable() { "qemu" } else { "uml" });
    let output = machine.run_watched(&command, &mut show)?;
    ensure!(output.status.success(), "the part in the machine ended with {}", output.status);
    read(&machine.out().join("bench.json"))
}

/// The measuring program's words, less the file that ends them.
fn words(place: &str, arguments: &Arguments) -> Vec<String> {
    let seconds = arguments.seconds.to_string();
    let only = arguments.only.iter().flat_map(|part| ["--only", part]);
    let words = ["run", "--place", place, "--seconds", &seconds].into_iter().chain(only).chain(["--json"]);
    words.map(str::to_owned).collect()
}

/// The figures of one place; none where it could not measure and said so.
fn read(file: &Path) -> Result<Value> {
    if !file.exists() {
        return Ok(json!({}));
    }
    let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("understanding {}", file.display()))
}

/// All places' figures in one document.
fn joined(figures: &[Value]) -> Value {
    let all = |key: &str| -> Vec<&Value> {
        figures.iter().filter_map(|figures| figures.get(key)?.as_array()).flatten().collect()
    };
    json!({
        "places": all("places"),
        "results": all("results"),
        "sums": all("sums"),
        "profile": all("profile"),
        "cache": all("cache"),
        "memory": all("memory"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_all_places_are_in_one_document() {
        let native = json!({"places": [1], "results": [2, 3], "sums": [8], "profile": []});
        let machine = json!({"places": [4], "results": [5], "profile": [6], "cache": [7], "memory": [9]});
        let expected = json!({
            "places": [1, 4], "results": [2, 3, 5], "sums": [8], "profile": [6], "cache": [7], "memory": [9]
        });
        assert_eq!(joined(&[native, json!({}), machine]), expected);
    }
}
