//! Project quotas on real filesystems: counted, enforced, inherited, and as xfs_quota sees them.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::filesystem::{FsType, Project, ProjectLimits, QuotaState, project_of, set_project};
use devices::{Bytes, Kind};
use rig::projects::{Place, as_user, fill, usable};
use rig::{eventually, kind};

fn project(number: u32) -> Result<Project> {
    Project::new(number).context("no project")
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
