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
    /// What it was started with beyond the usual.
    more: Vec<String>,
}

impl Agent {
    /// Starts it with these classes (YAML), and waits until it answers.
    ///
    /// # Errors
    ///
    /// If it ends before, with what it wrote.
    pub fn start(classes: &str, more: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir().context("make the agent's directory")?;
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        std::fs::write(directory.path().join("classes.yaml"), classes).context("write the classes")?;
        let child = spawn(directory.path(), &more)?;
        Self { child, directory, more }.answering()
    }

    /// Kills it as a crash would, and starts it again on the same socket.
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn crash(&mut self) -> Result<()> {
        self.child.kill().context("kill the agent")?;
        self.child.wait().context("wait for the killed agent")?;
        let before = self.starts();
        self.child = spawn(self.directory.path(), &self.more)?;
        eventually("the agent serves again or has ended", PATIENCE, || {
            self.starts() > before || self.has_ended()
        });
        self.running()
    }

    fn answering(mut self) -> Result<Self> {
        eventually("the agent serves or has ended", PATIENCE, || self.starts() > 0 || self.has_ended());
        self.running()?;
        Ok(self)
    }

    fn running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(ended) => bail!("gabion node ended with {ended}: {}", self.log()),
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_some()
    }

    /// How often it began to serve. The socket is there before the pools are open; this is a line of its log.
    fn starts(&self) -> usize {
        self.log().matches("serves CSI").count()
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

fn spawn(directory: &Path, more: &[String]) -> Result<Child> {
    let binary = std::env::var_os("GABION_BIN").context("GABION_BIN is not set")?;
    let log = File::options().create(true).append(true).open(directory.join("log"));
    Command::new(binary)
        .args(["node", "--controller=local", "--owner=rig", "--node-name=rig", "--config"])
        .arg(directory.join("classes.yaml"))
        .arg("--csi-endpoint")
        .arg(format!("unix://{}", directory.join("csi.sock").display()))
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.context("open the agent's log")?)
        .spawn()
        .context("start gabion node")
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Of one that has ended there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
