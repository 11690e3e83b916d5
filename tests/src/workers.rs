//! A pool of LVM workers that sees the disks of one test and nothing else of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use devices::Bytes;
use lvm::run::{Reply, Request, ReturnCode, Runner, Scope};
use lvm::worker::conf::{Activation, Conf};
use lvm::worker::host::HostSettings;
use lvm::worker::{Pool, PoolBuilder, find};
use lvm::{Error, Uuid, VgName};
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
        flush: Vec::new(),
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

/// Two disks, a pool that sees them, and the group `vg` on both.
#[derive(Debug)]
pub struct Bench {
    /// The pool.
    pub pool: Pool,
    /// The group.
    pub scope: Scope,
    /// The disks.
    pub disks: Vec<Disk>,
    /// The directories of its LVM.
    pub workers: Workers,
}

impl Bench {
    /// With the pool's usual settings.
    ///
    /// # Errors
    ///
    /// If there are no loop devices, or LVM refuses.
    pub fn new() -> Result<Self> {
        Self::with(|pool| pool)
    }

    /// With settings of its own.
    ///
    /// # Errors
    ///
    /// As [`Bench::new`].
    pub fn with(settings: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Result<Self> {
        let disks = vec![Disk::new(Bytes::mib(256))?, Disk::new(Bytes::mib(256))?];
        let workers = Workers::new()?;
        let conf = workers.conf(Activation::MetadataOnly, &disks.iter().collect::<Vec<_>>());
        let pool = settings(workers.pool(conf)?).build()?;
        let paths: Vec<String> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
        must(&pool, &["pvcreate", "--metadatasize", "4m", &paths[0], &paths[1]])?;
        must(&pool, &["vgcreate", "vg", &paths[0], &paths[1]])?;
        let scope = scope_of(&pool, "vg")?;
        Ok(Self { pool, scope, disks, workers })
    }

    /// The path of a disk, as a word of a command.
    #[must_use]
    pub fn disk(&self, index: usize) -> String {
        self.disks[index].path().display().to_string()
    }

    /// The configuration that the pool began with.
    #[must_use]
    pub fn conf(&self) -> Conf {
        self.workers.conf(Activation::MetadataOnly, &self.disks.iter().collect::<Vec<_>>())
    }

    /// Runs words in the group's queue.
    ///
    /// # Errors
    ///
    /// If the pool has no answer to give.
    pub fn run(&self, words: &[&str]) -> Result<lvm::run::Reply, Error> {
        ask_in(&self.pool, self.scope.clone(), words, PATIENCE)
    }

    /// Runs words that must fail, and returns the error that they amount to.
    ///
    /// # Errors
    ///
    /// If they succeed, or the pool has no answer to give.
    pub fn refused(&self, words: &[&str]) -> Result<Error> {
        let reply = ask(&self.pool, words)?;
        if reply.code == ReturnCode::Succeeded {
            bail!("{} succeeded", words.join(" "));
        }
        Ok(lvm::classify::failure(&words.join(" "), &reply))
    }

    /// Holds the group's lock as another LVM command would.
    ///
    /// # Errors
    ///
    /// If the lock cannot be had.
    pub fn hold_lock(&self) -> Result<Held> {
        let lock = self.workers.path("lock/V_vg");
        // Without a fork, the process that is known is the one that holds the lock.
        let mut child = Command::new("flock")
            .arg("--no-fork")
            .arg(&lock)
            .args(["sh", "-c", "echo held; exec sleep 600"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = [0; 4];
        std::io::Read::read_exact(child.stdout.as_mut().context("no pipe")?, &mut said)?;
        Ok(Held(child))
    }

    /// The worker processes of this pool, found by the configuration in their environment.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn worker_pids(&self) -> Result<Vec<u32>> {
        let root = self.workers.path("conf").display().to_string();
        let mut pids = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if name.starts_with("gabion-lvm-work") && String::from_utf8_lossy(&environment).contains(&root) {
                pids.push(pid);
            }
        }
        Ok(pids)
    }
}

/// Another process that holds a lock, until this is dropped.
#[derive(Debug)]
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The beginning of a command that makes a volume of 4 MiB without touching the kernel.
pub const CREATE: [&str; 6] = ["lvcreate", "-an", "-Zn", "-Wn", "-L", "4m"];

/// The words that make a volume of 4 MiB in the group `vg`.
#[must_use]
pub fn create(name: &str) -> Vec<&str> {
    [CREATE.as_slice(), &["-n", name, "vg"]].concat()
}
