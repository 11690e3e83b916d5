//! Filesystems that count projects, and programs that fill them as a volume's user would.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::filesystem::{Blank, Format, FsType, MakeOptions, Project, ProjectQuotas, QuotaState, Uuid};
use devices::mount::{MountOptions, Target, WhenBusy, mount, unmount};
use tempfile::TempDir;

use crate::{Disk, skip_unless_installed, skip_unless_loop, tool};

const PATIENCE: Duration = Duration::from_secs(30);
const BOTH: [FsType; 2] = [FsType::Ext4, FsType::Xfs];

/// A filesystem that can count projects, mounted with options.
#[derive(Debug)]
pub struct Place {
    /// Its own, where it has one.
    disk: Option<Disk>,
    device: PathBuf,
    fs: FsType,
    directory: TempDir,
    target: Target,
}

impl Place {
    /// A new one, mounted with these options.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn new(fs: FsType, options: &[&str]) -> Result<Self> {
        Self::sized(fs, Bytes::mib(320), options)
    }

    /// The same of another size.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn sized(fs: FsType, size: Bytes, options: &[&str]) -> Result<Self> {
        let disk = Disk::new(size)?;
        format(disk.path(), fs)?;
        let mut place = Self::on(disk.path(), fs, options)?;
        place.disk = Some(disk);
        Ok(place)
    }

    /// One that [`format`] made, on a device that stays.
    ///
    /// # Errors
    ///
    /// If it cannot be mounted.
    pub fn on(device: &Path, fs: FsType, options: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let target = Target::below(directory.path(), &directory.path().join("mnt"))?;
        let _ = target.make_directory()?;
        let place = Self { disk: None, device: device.to_owned(), fs, directory, target };
        place.mount(options)?;
        Ok(place)
    }

    /// Mounts it again.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn mount(&self, options: &[&str]) -> Result<()> {
        let _ = mount(&self.device, self.fs.as_str(), &MountOptions::parse(options)?, &self.target)?;
        Ok(())
    }

    /// Unmounts it.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn unmount(&self) -> Result<()> {
        let _ = unmount(&self.target, WhenBusy::Refuse, PATIENCE)?;
        Ok(())
    }

    /// Where it is mounted.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    /// Its quotas.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn quotas(&self) -> Result<ProjectQuotas> {
        Ok(ProjectQuotas::of(&self.root())?)
    }

    /// A new directory at its top.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn made(&self, name: &str) -> Result<PathBuf> {
        let path = self.root().join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// What `xfs_quota` says a project uses and may use, in KiB.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn oracle(&self, project: Project) -> Result<Option<(u64, u64)>> {
        let root = self.root().display().to_string();
        let report = tool::run("xfs_quota", ["-f", "-x", "-c", "report -p -n -N -b", &root])?;
        let line = report.lines().find(|line| line.starts_with(&format!("#{project} ")));
        let Some(line) = line else { return Ok(None) };
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(Some((words.get(1).context("no use")?.parse()?, words.get(3).context("no limit")?.parse()?)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            println!("left behind: {error:#}");
        }
    }
}

/// Makes a filesystem that can count projects on a blank device.
///
/// # Errors
///
/// If that fails.
pub fn format(device: &Path, fs: FsType) -> Result<()> {
    let make = match fs {
        FsType::Ext4 => MakeOptions::parse(fs, ["-O project,quota", "-E quotatype=prjquota"])?,
        _ => MakeOptions::none(fs),
    };
    Blank::claim(device)?.make(&Format::new(fs, Uuid::new_v4()).with_options(make))?;
    Ok(())
}

/// Whether this kernel counts projects on a filesystem; says which does not.
fn able(fs: FsType) -> bool {
    let enforced = Place::new(fs, &["prjquota"]).and_then(|place| Ok(place.quotas()?.state()?));
    let able = matches!(enforced, Ok(QuotaState::Enforced));
    if !able {
        println!("this kernel has no project quotas on {fs}: {enforced:?}");
    }
    able
}

/// The filesystems to test; empty, with the reason, where there is none.
#[must_use]
pub fn usable() -> Vec<FsType> {
    if skip_unless_loop() || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "xfs_quota", "setpriv"]) {
        return Vec::new();
    }
    let usable: Vec<FsType> = BOTH.into_iter().filter(|fs| able(*fs)).collect();
    if usable.is_empty() {
        println!("SKIPPED: this kernel has no project quotas");
    }
    usable
}

/// Runs a program as a volume's user would: ext4 lets whoever has CAP_SYS_RESOURCE exceed a limit. Whether it succeeded.
///
/// # Errors
///
/// If that fails.
pub fn as_user(program: &[&str]) -> Result<bool> {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "--"]).args(program);
    let output = command.env("LC_ALL", "C").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // EDQUOT, and what XFS says instead for projects.
    let limited = said.contains("quota exceeded") || said.contains("No space left");
    ensure!(output.status.success() || limited, "{said}");
    Ok(output.status.success())
}

/// Writes so much; how much of it came to be.
///
/// # Errors
///
/// If that fails.
pub fn fill(path: &Path, size: Bytes) -> Result<Bytes> {
    let (to, count) = (format!("of={}", path.display()), format!("count={}", size.get() >> 18));
    as_user(&["dd", "if=/dev/urandom", &to, "bs=256k", &count, "conv=fsync", "status=none"])?;
    Ok(path.metadata().map_or(Bytes::ZERO, |file| Bytes::new(file.blocks() * 512)))
}
