//! Where a comparison takes place: some devices, one group on them, and one configuration for both sides.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use lvm::metadata::Options;
use lvm::ops::NewGroup;
use lvm::worker::conf::Activation;
use lvm::worker::host::HostSettings;
use lvm::{DevicePath, Lvm};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// The group of every site; each site sees its own devices only.
const VG: &str = "bench";

/// The devices and directories of one comparison. They can be told to a process that is traced.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    dir: PathBuf,
    devices: Vec<PathBuf>,
    live: bool,
    /// What is LVM's system directory for both sides.
    conf_dir: PathBuf,
    #[serde(skip)]
    owned: Option<TempDir>,
}

/// The disk that may be changed, in a machine that has device-mapper: the sixth spare disk.
pub(crate) fn spare_disk_for_changes() -> Option<PathBuf> {
    let mapper = Path::new("/dev/mapper/control").exists();
    rig::virtual_disks().get(5).filter(|_| mapper).cloned()
}

impl Site {
    /// A site where only metadata are written.
    pub(crate) fn metadata_only(devices: Vec<PathBuf>) -> Result<Self> {
        Self::new(devices, false)
    }

    /// A site where volumes are activated.
    pub(crate) fn live(devices: Vec<PathBuf>) -> Result<Self> {
        Self::new(devices, true)
    }

    fn new(devices: Vec<PathBuf>, live: bool) -> Result<Self> {
        let owned = tempfile::Builder::new().prefix("gabion-bench-").tempdir().context("make a directory")?;
        let dir = owned.path().to_owned();
        std::fs::create_dir(dir.join("lock")).context("make a directory for locks")?;
        let mut site = Self { dir, devices, live, conf_dir: PathBuf::new(), owned: Some(owned) };
        let paths: Vec<DevicePath> = site.devices.iter().map(DevicePath::new).collect::<Result<_, _>>()?;
        let lvm = site.handle()?;
        let _ = lvm.create_group(&NewGroup::new(VG.parse()?, paths))?;
        site.conf_dir = lvm.workers().context("the handle has no worker pool")?.conf_dir();
        std::fs::write(site.file(), serde_json::to_vec(&site)?).context("write the site's description")?;
        Ok(site)
    }

    /// Where its description lies.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join("site.json")
    }

    /// A site that another process owns.
    pub(crate) fn load(file: &Path) -> Result<Self> {
        let text = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether its volumes can be activated.
    pub(crate) const fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn devices(&self) -> &[PathBuf] {
        &self.devices
    }

    pub(crate) fn vg(&self) -> &'static str {
        VG
    }

    /// A handle of the library's.
    pub(crate) fn handle(&self) -> Result<Lvm> {
        let devices = self.devices.iter().map(DevicePath::new).collect::<Result<Vec<_>, _>>()?;
        let host = HostSettings { locking_dir: self.dir.join("lock"), ..HostSettings::default() };
        let activation = if self.live { Activation::Udev } else { Activation::MetadataOnly };
        let builder = Lvm::builder().devices(devices).activation(activation).host(host);
        let builder = builder.run_dir(self.dir.join("run")).backup_dir(self.dir.join("backup"));
        Ok(builder.worker(rig::workers::worker_binary()?).build()?)
    }

    /// How the native reader reads here.
    pub(crate) fn reader_options(&self) -> Options {
        let mut options = Options::default();
        options.locking_dir = Some(self.dir.join("lock"));
        options
    }

    /// A program that sees LVM's devices as our workers do.
    pub(crate) fn command(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(program(name)?);
        command.env_clear().env("LVM_SYSTEM_DIR", &self.conf_dir).env("LC_ALL", "C");
        command.env("LVM_SUPPRESS_FD_WARNINGS", "1").stdin(Stdio::null());
        Ok(command)
    }

    /// Runs LVM's own command and returns what it printed.
    pub(crate) fn lvm(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = self.command("lvm")?;
        command.args(arguments);
        spawn(&mut command)
    }
}

/// Spawns a prepared command, waits, and returns what it printed.
pub(crate) fn spawn(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(output.stdout)
}

impl Drop for Site {
    /// Removes what was made live; devices that only hold metadata go with their disks.
    fn drop(&mut self) {
        if self.owned.is_some()
            && self.live
            && let Err(error) = self.lvm(&["vgremove", "--force", "--yes", VG])
        {
            eprintln!("left behind: {error:#}");
        }
    }
}

/// The absolute path of a program, so that nobody pays for a search.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
    match places.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("{name} is not installed"),
    }
}
