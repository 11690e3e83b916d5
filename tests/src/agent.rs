//! A running `gabion node`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::expect::eventually;

/// How long opening the pools, or ending in order, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The driver as a process of its own, with directories of its own. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    directory: TempDir,
}

impl Agent {
    /// Starts it with these classes (YAML), and waits until it answers.
    ///
    /// # Errors
    ///
    /// If it ends before, with what it wrote.
    pub fn start(classes: &str, more: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir().context("make the agent's directory")?;
        let config = directory.path().join("classes.yaml");
        std::fs::write(&config, classes).context("write the classes")?;
        let binary = std::env::var_os("GABION_BIN").context("GABION_BIN is not set")?;
        let log = File::options().create(true).append(true).open(directory.path().join("log"))?;
        let child = Command::new(binary)
            .args(["node", "--controller=local", "--owner=rig", "--node-name=rig", "--config"])
            .arg(&config)
            .arg("--csi-endpoint")
            .arg(format!("unix://{}", directory.path().join("csi.sock").display()))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start gabion node")?;
        let mut agent = Self { child, directory };
        eventually("the agent serves or has ended", PATIENCE, || agent.serves() || agent.has_ended());
        match agent.child.try_wait()? {
            None => Ok(agent),
            Some(ended) => bail!("gabion node ended with {ended}: {}", agent.log()),
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_some()
    }

    /// The socket exists before the pools are open; that it serves is a line in its log.
    fn serves(&self) -> bool {
        self.log().contains("serves CSI")
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("csi.sock")
    }

    /// Its directory, for whatever belongs to it.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Tells it to end, and waits for that.
    ///
    /// # Errors
    ///
    /// If it does not within a minute.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("tell the agent to end")?;
        eventually("the agent has ended", PATIENCE, || self.has_ended());
        self.child.wait().context("wait for the agent")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Of one that has ended there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
