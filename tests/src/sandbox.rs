//! A private LVM: the real command, on exactly the devices of one test and on nothing else.
//!
//! The suites use it to build what the library then reads, and as the oracle that knows better.
//!
//! ```no_run
//! use devices::Bytes;
//! use rig::{Disk, Sandbox};
//!
//! let disk = Disk::new(Bytes::gib(1))?;
//! let sandbox = Sandbox::metadata_only([disk.path()])?;
//! sandbox.lvm("pvcreate", [disk.path()])?;
//! sandbox.run("vgcreate data /dev/loop0")?;
//! # Ok::<(), anyhow::Error>(())
//! ```

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use lvm::metadata::{Options, View};
use tempfile::TempDir;

/// A directory with an lvm.conf, its own locks and backups.
#[derive(Debug)]
pub struct Sandbox {
    dir: TempDir,
    activation: bool,
    extra: String,
    devices: Vec<PathBuf>,
}

impl Sandbox {
    /// An LVM that never talks to device-mapper: it only reads and writes metadata on these devices.
    ///
    /// # Errors
    ///
    /// If its files cannot be written.
    pub fn metadata_only(devices: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self> {
        Self::new(devices, false)
    }

    /// An LVM that also activates volumes.
    ///
    /// # Errors
    ///
    /// If its files cannot be written.
    pub fn live(devices: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self> {
        Self::new(devices, true)
    }

    fn new(devices: impl IntoIterator<Item = impl AsRef<Path>>, activation: bool) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-lvm-").tempdir().context("make a directory")?;
        for part in ["lock", "run", "backup", "archive"] {
            std::fs::create_dir(dir.path().join(part)).context("make a directory for LVM")?;
        }
        let mut sandbox = Self { dir, activation, extra: String::new(), devices: Vec::new() };
        sandbox.set_devices(devices)?;
        Ok(sandbox)
    }

    /// Replaces the devices that this LVM sees.
    ///
    /// # Errors
    ///
    /// If its configuration cannot be written.
    pub fn set_devices(&mut self, devices: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<()> {
        self.devices = devices.into_iter().map(|path| path.as_ref().to_owned()).collect();
        self.write_conf()
    }

    /// Adds lines to its configuration, such as `activation { thin_pool_autoextend_threshold = 70 }`.
    ///
    /// # Errors
    ///
    /// If the configuration cannot be written.
    pub fn configure(&mut self, lines: &str) -> Result<()> {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self.write_conf()
    }

    fn write_conf(&self) -> Result<()> {
        let mut filter = String::new();
        for device in &self.devices {
            // The paths of disks hold no character that means something in a pattern but the dot.
            let pattern = device.display().to_string().replace('.', "\\\\.");
            write!(filter, "\"a|^{pattern}$|\", ")?;
        }
        let dir = self.dir.path().display();
        let activation = u8::from(self.activation);
        let conf = format!(
            "devices {{ global_filter = [{filter}\"r|.*|\"] filter = [\"a|.*|\"] use_devicesfile = 0\n\
             obtain_device_list_from_udev = 0 hints = \"none\" scan_lvs = 0 }}\n\
             global {{ activation = {activation} locking_dir = \"{dir}/lock\" use_lvmpolld = 0\n\
             event_activation = 0 notify_dbus = 0 use_aio = 0 io_memory_size = 65536 }}\n\
             activation {{ monitoring = 0 }}\n\
             backup {{ backup = 0 archive = 0 backup_dir = \"{dir}/backup\" archive_dir = \"{dir}/archive\" }}\n{}",
            self.extra
        );
        let path = self.dir.path().join("lvm.conf");
        std::fs::write(&path, conf).with_context(|| format!("write {}", path.display()))
    }

    /// The directory for `LVM_SYSTEM_DIR`.
    #[must_use]
    pub fn system_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where this LVM keeps its lock files.
    #[must_use]
    pub fn locking_dir(&self) -> PathBuf {
        self.dir.path().join("lock")
    }

    /// The devices that this LVM sees.
    #[must_use]
    pub fn devices(&self) -> &[PathBuf] {
        &self.devices
    }

    /// The real command in this sandbox, ready for further arguments.
    #[must_use]
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new("lvm");
        command.arg(name).env_clear().stdin(Stdio::null());
        command
            .env("LVM_SYSTEM_DIR", self.dir.path())
            .env("LC_ALL", "C")
            .env("LVM_SUPPRESS_FD_WARNINGS", "1");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("TZ", "UTC");
        command
    }

    /// Runs an LVM command and returns what it printed.
    ///
    /// # Errors
    ///
    /// If it cannot be run or fails; the error has LVM's own lines.
    pub fn lvm(&self, name: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        let mut command = self.command(name);
        command.args(args);
        let output = command.output().context("run lvm")?;
        if !output.status.success() {
            bail!("{command:?} ended with {}:\n{}", output.status, Self::lines(&output));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command line whose words are parted by white space, such as `lvcreate -an -n a -l 4 data`.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::lvm`].
    pub fn run(&self, line: &str) -> Result<String> {
        let mut words = line.split_whitespace();
        self.lvm(words.next().unwrap_or_default(), words)
    }

    /// Runs a command line that must fail and returns LVM's own lines.
    ///
    /// # Errors
    ///
    /// If it cannot be run, or does not fail.
    pub fn fails(&self, line: &str) -> Result<String> {
        let mut words = line.split_whitespace();
        let output =
            self.command(words.next().unwrap_or_default()).args(words).output().context("run lvm")?;
        let lines = Self::lines(&output);
        if output.status.success() {
            bail!("lvm {line} should have failed, but did not:\n{lines}");
        }
        Ok(lines)
    }

    fn lines(output: &Output) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    }

    /// How the library's reader is set up to read what this LVM writes.
    #[must_use]
    pub fn reader_options(&self) -> Options {
        let mut options = Options::default();
        options.locking_dir = Some(self.locking_dir());
        options
    }

    /// What the library's reader sees on the devices of this LVM.
    #[must_use]
    pub fn view(&self) -> std::sync::Arc<View> {
        lvm::metadata::read(self.devices.iter().cloned(), self.reader_options())
    }

    /// The text that `vgcfgbackup` writes for a group, named by its name or by `--select` arguments.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::lvm`].
    pub fn backup(&self, vg: &str) -> Result<String> {
        let file = self.dir.path().join("vgcfgbackup");
        self.lvm("vgcfgbackup", [OsStr::new("-f"), file.as_os_str(), OsStr::new(vg)])?;
        std::fs::read_to_string(&file).context("read the backup")
    }
}

impl Drop for Sandbox {
    /// Deactivates every volume that is still live, so that the disks can go.
    fn drop(&mut self) {
        if !self.activation {
            return;
        }
        match self.command("vgchange").args(["-an", "-f", "--yes"]).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => println!("left active: {}", Self::lines(&output)),
            Err(error) => println!("left active: {error}"),
        }
    }
}
