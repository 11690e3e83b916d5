//! Project quotas on real filesystems: counted, enforced, inherited, and as xfs_quota sees them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::filesystem::{
    Blank, Format, FsType, MakeOptions, Project, ProjectLimits, ProjectQuotas, QuotaState, Uuid, project_of,
    set_project,
};
use devices::mount::{MountOptions, Target, WhenBusy, mount, unmount};
use devices::{Bytes, Kind};
use rig::{Disk, eventually, kind, skip_unless_installed, skip_unless_loop, tool};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);
const BOTH: [FsType; 2] = [FsType::Ext4, FsType::Xfs];

fn project(number: u32) -> Result<Project> {
    Project::new(number).context("no project")
}

/// A filesystem that can count projects, mounted with options.
struct Place {
    disk: Disk,
    fs: FsType,
    directory: TempDir,
    target: Target,
}

impl Place {
    fn new(fs: FsType, options: &[&str]) -> Result<Self> {
        let disk = Disk::new(Bytes::mib(320))?;
        let make = match fs {
            FsType::Ext4 => MakeOptions::parse(fs, ["-O project,quota", "-E quotatype=prjquota"])?,
            _ => MakeOptions::none(fs),
        };
        Blank::claim(disk.path())?.make(&Format::new(fs, Uuid::new_v4()).with_options(make))?;
        let directory = tempfile::tempdir()?;
        let target = Target::below(directory.path(), &directory.path().join("mnt"))?;
        let _ = target.make_directory()?;
        let place = Self { disk, fs, directory, target };
        place.mount(options)?;
        Ok(place)
    }

    fn mount(&self, options: &[&str]) -> Result<()> {
        let _ = mount(self.disk.path(), self.fs.as_str(), &MountOptions::parse(options)?, &self.target)?;
        Ok(())
    }

    fn unmount(&self) -> Result<()> {
        let _ = unmount(&self.target, WhenBusy::Refuse, PATIENCE)?;
        Ok(())
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    fn quotas(&self) -> Result<ProjectQuotas> {
        Ok(ProjectQuotas::of(&self.root())?)
    }

    fn made(&self, name: &str) -> Result<PathBuf> {
        let path = self.root().join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }

    /// What xfs_quota says a project uses and may use, in KiB.
    fn oracle(&self, project: Project) -> Result<Option<(u64, u64)>> {
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
fn usable() -> Vec<FsType> {
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
fn as_user(program: &[&str]) -> Result<bool> {
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
fn fill(path: &Path, size: Bytes) -> Result<Bytes> {
    let (to, count) = (format!("of={}", path.display()), format!("count={}", size.get() >> 18));
    as_user(&["dd", "if=/dev/urandom", &to, "bs=256k", &count, "conv=fsync", "status=none"])?;
    Ok(path.metadata().map_or(Bytes::ZERO, |file| Bytes::new(file.blocks() * 512)))
}

#[test]
fn a_project_gets_what_its_limits_allow_and_no_more() -> Result<()> {
    for fs in usable() {
        let place = Place::new(fs, &["prjquota"])?;
        let quotas = place.quotas()?;
        quotas.require_enforced()?;
        let (mine, other) = (project(1001)?, project(1002)?);
        ensure!(
            quotas.usage(mine)?.space == Bytes::ZERO
                && quotas.usage(mine)?.limits == ProjectLimits::default()
        );
        let (here, there) = (place.made("mine")?, place.made("other")?);
        ensure!(project_of(&here)?.is_none());
        let limits = ProjectLimits { space: Some(Bytes::mib(8)), inodes: Some(10) };
        ensure!(quotas.set_limits(mine, limits)?.is_made() && !quotas.set_limits(mine, limits)?.is_made());
        ensure!(set_project(&here, mine)?.is_made() && !set_project(&here, mine)?.is_made());
        ensure!(set_project(&there, other)?.is_made() && project_of(&there)? == Some(other));
        // Everything made in it is of the project, at any depth.
        fs::create_dir_all(here.join("a/b"))?;
        ensure!(project_of(&here.join("a/b"))? == Some(mine));
        let got = fill(&here.join("a/b/file"), Bytes::mib(16))?;
        let usage = quotas.usage(mine)?;
        println!("{fs}: {got} of 16 MiB, {usage:?}");
        ensure!(
            got > Bytes::mib(7) && usage.space <= Bytes::mib(8) && usage.space >= got && usage.inodes == 4
        );
        ensure!(place.oracle(mine)? == Some((usage.space.get() / 1024, 8192)), "{:?}", place.oracle(mine)?);
        ensure!(fill(&there.join("file"), Bytes::mib(16))? >= Bytes::mib(16), "another project was limited");
        // df in the directory shows the limit as the size.
        let stat = rustix::fs::statvfs(&here)?;
        ensure!(stat.f_blocks * stat.f_frsize == 8 << 20, "{} blocks of {}", stat.f_blocks, stat.f_frsize);
        // XFS makes no file where not even a block of a directory may be had.
        let _ = quotas.set_limits(mine, ProjectLimits { space: Some(Bytes::mib(16)), inodes: Some(10) })?;
        let names: Vec<String> =
            (0..20).map(|at| here.join(format!("file-{at}")).display().to_string()).collect();
        ensure!(!as_user(
            &["touch"].into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>()
        )?);
        let files = fs::read_dir(&here)?.count();
        ensure!(files == 7 && quotas.usage(mine)?.inodes == 10, "{files} files");
        // A limit below what is there takes nothing away; a higher one is there at once.
        let _ = quotas.set_limits(mine, ProjectLimits { space: Some(Bytes::mib(4)), inodes: None })?;
        ensure!(
            quotas.usage(mine)?.space == usage.space
                && fill(&here.join("more"), Bytes::mib(1))? == Bytes::ZERO
        );
        let _ = quotas.set_limits(mine, ProjectLimits { space: Some(Bytes::mib(32)), inodes: None })?;
        ensure!(fill(&here.join("more"), Bytes::mib(8))? >= Bytes::mib(8));
        ensure!(
            fs::rename(here.join("more"), there.join("more")).is_err(),
            "a file left its project by a rename"
        );
        // All of it outlasts a mount, and what is removed is free.
        let before = quotas.report()?;
        ensure!(before.iter().map(|usage| usage.project).collect::<Vec<_>>() == [mine, other], "{before:?}");
        drop(quotas);
        place.unmount()?;
        place.mount(&["prjquota"])?;
        let quotas = place.quotas()?;
        ensure!(quotas.report()? == before);
        fs::remove_dir_all(&here)?;
        let gone = ProjectLimits::default();
        // XFS frees what was removed a little later.
        let is_free = || quotas.usage(mine).is_ok_and(|usage| usage.inodes == 0);
        eventually("a project without files uses nothing", Duration::from_secs(30), is_free);
        ensure!(quotas.set_limits(mine, gone)?.is_made());
        ensure!(quotas.report()?.iter().map(|usage| usage.project).collect::<Vec<_>>() == [other]);
    }
    Ok(())
}

#[test]
fn what_counts_and_what_enforces_is_told_apart() -> Result<()> {
    for fs in usable() {
        let without = Place::new(fs, &[])?;
        let quotas = without.quotas()?;
        let state = quotas.state()?;
        println!("{fs} without the option: {state:?}");
        ensure!(state != QuotaState::Enforced && kind(quotas.require_enforced())? == Kind::Unsupported);
        drop(quotas);
        drop(without);
        if fs == FsType::Xfs {
            let lax = Place::new(fs, &["pqnoenforce"])?;
            ensure!(lax.quotas()?.state()? == QuotaState::Accounted);
        }
        let place = Place::new(fs, &["prjquota"])?;
        let quotas = place.quotas()?;
        for bad in [
            ProjectLimits { space: Some(Bytes::ZERO), inodes: None },
            ProjectLimits { space: None, inodes: Some(0) },
            ProjectLimits { space: Some(Bytes::new(u64::MAX)), inodes: None },
        ] {
            ensure!(kind(quotas.set_limits(project(7)?, bad))? == Kind::InvalidArgument);
        }
        // The largest number works, a link is not followed, and an odd size is rounded up.
        let largest = project(u32::MAX - 1)?;
        let odd = ProjectLimits { space: Some(Bytes::new((1 << 20) + 1)), inodes: None };
        ensure!(quotas.set_limits(largest, odd)?.is_made() && !quotas.set_limits(largest, odd)?.is_made());
        let limit = quotas.usage(largest)?.limits.space.context("no limit")?;
        ensure!(limit.get() > 1 << 20 && limit <= Bytes::kib(1028), "{limit}");
        let here = place.made("here")?;
        std::os::unix::fs::symlink(&here, place.root().join("link"))?;
        ensure!(set_project(&place.root().join("link"), largest).is_err() && project_of(&here)?.is_none());
        ensure!(set_project(&here, largest)?.is_made() && quotas.report()?.len() == 1);
    }
    Ok(())
}
