//! A pool of LVM workers that sees the disks of one test and nothing else of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lvm::run::{Reply, Request, ReturnCode, Runner, Scope};
use lvm::worker::conf::{Activation, Conf};
use lvm::worker::host::HostSettings;
use lvm::worker::{Pool, PoolBuilder, find};
use lvm::{Uuid, VgName};
use tempfile::TempDir;

use crate::Disk;

/// How long a command of a test may take before the test fails; emulated machines are slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The directories of one test's LVM: configurations, locks and backups, apart from the host's.
#[derive(Debug)]
pub struct Workers {
    dir: TempDir,
}

impl Workers {
    /// Makes the directories.
    ///
    /// # Errors
    ///
    /// If there is no room for them.
    pub fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-lvm-").tempdir()?;
        std::fs::create_dir(dir.path().join("lock"))?;
        Ok(Self { dir })
    }

    /// A file or directory among them.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A configuration that shows these disks.
    #[must_use]
    pub fn conf(&self, activation: Activation, disks: &[&Disk]) -> Conf {
        Conf {
            activation,
            backup_dir: Some(self.path("backup")),
            host: HostSettings { locking_dir: self.path("lock"), ..HostSettings::default() },
            ..Conf::new(disks.iter().map(|disk| disk.path()))
        }
    }

    /// The description of a pool with that configuration.
    ///
    /// # Errors
    ///
    /// If there is no worker to start.
    pub fn pool(&self, conf: Conf) -> Result<PoolBuilder> {
        Ok(Pool::builder(conf).conf_root(self.path("conf")).binary(worker_binary()?))
    }
}

/// The worker's binary: `GABION_LVM_WORKER`, else what cargo built beside the test.
///
/// # Errors
///
/// If it has not been built.
pub fn worker_binary() -> Result<PathBuf> {
    if let Ok(found) = find::find(None) {
        return Ok(found);
    }
    let test = std::env::current_exe()?;
    // Tests are in `deps`, one level below the binaries.
    let built = test.parent().and_then(Path::parent).map(|dir| dir.join(find::NAME));
    match built.filter(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("no {}: cargo build -p gabion-lvm --features worker", find::NAME),
    }
}

/// Runs words as one command, without a group's queue.
///
/// # Errors
///
/// If the pool has no answer to give.
pub fn ask(runner: &dyn Runner, words: &[&str]) -> Result<Reply, lvm::Error> {
    ask_in(runner, Scope::Alone, words, PATIENCE)
}

/// Runs words as one command of a scope.
///
/// # Errors
///
/// If the pool has no answer to give.
pub fn ask_in(
    runner: &dyn Runner,
    scope: Scope,
    words: &[&str],
    deadline: Duration,
) -> Result<Reply, lvm::Error> {
    runner.run(&Request {
        scope,
        tried: words.join(" "),
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        deadline,
    })
}

/// Runs words as one command that must succeed, and returns what it printed.
///
/// # Errors
///
/// If LVM refused it; the text has all that LVM said.
pub fn must(runner: &dyn Runner, words: &[&str]) -> Result<Vec<String>> {
    let reply = ask(runner, words).with_context(|| words.join(" "))?;
    let said: Vec<String> = reply.records.iter().map(ToString::to_string).collect();
    if reply.code != ReturnCode::Succeeded {
        bail!("{}: {:?}\n  {}", words.join(" "), reply.code, said.join("\n  "));
    }
    Ok(said)
}

/// The scope of a group that exists.
///
/// # Errors
///
/// If LVM does not know the group.
pub fn scope_of(runner: &dyn Runner, vg: &str) -> Result<Scope> {
    let said = must(runner, &["vgs", "--noheadings", "-o", "vg_uuid", vg])?;
    let uuid = said.iter().find_map(|line| line.trim().parse::<Uuid>().ok());
    Ok(Scope::Vg { name: VgName::new(vg)?, uuid: uuid.context("vgs printed no uuid")? })
}
