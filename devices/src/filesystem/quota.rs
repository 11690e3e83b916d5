//! Project quotas: limits for directories, on ext4 and XFS.
//!
//! ```no_run
//! use devices::Bytes;
//! use devices::filesystem::{Project, ProjectLimits, ProjectQuotas, set_project};
//!
//! let quotas = ProjectQuotas::of("/srv/volumes".as_ref())?;
//! quotas.require_enforced()?;
//! let project = Project::new(1_000_001).ok_or("no project")?;
//! let _ = quotas.set_limits(project, ProjectLimits { space: Some(Bytes::gib(1)), inodes: None })?;
//! let _ = set_project("/srv/volumes/db".as_ref(), project)?;
//! println!("{} of 1 GiB", quotas.usage(project)?.space);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! XFS has them when it is mounted with `prjquota`. ext4 has them when it was made with the features `project` and `quota`
//! (`-O project,quota -E quotatype=prjquota`) and is mounted with `prjquota`. Every call needs `CAP_SYS_ADMIN`.
//!
//! ext4 lets a process with `CAP_SYS_RESOURCE` exceed every limit, root outside of a container above all (tried on
//! Linux 6.1).

use std::fmt;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::quota_call::{self as call, FS_XFLAG_PROJINHERIT, PROJECTS_ACCOUNTED, PROJECTS_ENFORCED, Quota};
use crate::{Bytes, Change, Error, Kind};

/// The unit of limits (`QIF_DQBLKSIZE` of linux/quota.h).
const UNIT: Bytes = Bytes::kib(1);

/// The number under which the space of files and directories is counted together. Zero is that of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Project(NonZeroU32);

impl Project {
    /// `None` for zero, and for the largest number, which the kernel keeps for itself.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number == u32::MAX {
            return None;
        }
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a mounted filesystem does about projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaState {
    /// It counts nothing.
    Off,
    /// It counts, and lets everybody have more than the limits.
    Accounted,
    /// It counts, and refuses (`EDQUOT`, or `ENOSPC`) what would exceed a limit.
    Enforced,
}

/// How much a project may have; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProjectLimits {
    /// Space. The kernel counts it in KiB and some filesystems in their blocks, so it is rounded up to that.
    pub space: Option<Bytes>,
    /// Files, directories and all else that is an inode.
    pub inodes: Option<u64>,
}

/// What a project has, and may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectUsage {
    /// The project.
    pub project: Project,
    /// The space of its files; what is not yet written to the disk counts as well.
    pub space: Bytes,
    /// Its inodes.
    pub inodes: u64,
    /// Its limits.
    pub limits: ProjectLimits,
}

impl ProjectUsage {
    fn of(project: Project, quota: &Quota) -> Self {
        let some = |limit: u64| (limit > 0).then_some(limit);
        let space = some(quota.block_limit).map(|units| Bytes::new(units.saturating_mul(UNIT.get())));
        Self {
            project,
            space: Bytes::new(quota.space),
            inodes: quota.inodes,
            limits: ProjectLimits { space, inodes: some(quota.inode_limit) },
        }
    }
}

/// The project quotas of one mounted filesystem.
#[derive(Debug)]
pub struct ProjectQuotas {
    root: OwnedFd,
    name: String,
}

impl ProjectQuotas {
    /// Those of the filesystem that a directory is in.
    ///
    /// # Errors
    ///
    /// If the directory cannot be opened.
    pub fn of(directory: &Path) -> Result<Self, Error> {
        let name = directory.display().to_string();
        Ok(Self { root: open(directory, OFlags::empty(), || format!("open {name}"))?, name })
    }

    /// What the filesystem does about projects now. This asks the kernel, not the mount options.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to tell.
    pub fn state(&self) -> Result<QuotaState, Error> {
        match call::quota_state(self.root.as_fd()) {
            Ok(state) if state & PROJECTS_ENFORCED != 0 => Ok(QuotaState::Enforced),
            Ok(state) if state & PROJECTS_ACCOUNTED != 0 => Ok(QuotaState::Accounted),
            // A filesystem, or a kernel, that knows none, or has none on.
            Ok(_) | Err(Errno::NOSYS | Errno::SRCH | Errno::OPNOTSUPP | Errno::NOTTY) => Ok(QuotaState::Off),
            Err(errno) => Err(self.refused("ask for the project quotas of", errno)),
        }
    }

    /// Fails unless limits are enforced, with what to do about it.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`]; and as [`Self::state`].
    pub fn require_enforced(&self) -> Result<(), Error> {
        let answer = match self.state()? {
            QuotaState::Enforced => return Ok(()),
            QuotaState::Accounted => "the filesystem counts projects and lets them exceed their limits",
            QuotaState::Off => "the filesystem does not count projects",
        };
        Err(Error::new(Kind::Unsupported, format!("limit projects at {}", self.name))
            .with_answer(answer)
            .with_advice(
                "mount it with the option prjquota; ext4 needs the features project and quota as well \
                 (tune2fs -O project,quota -Q prjquota, while it is not mounted)",
            ))
    }

    /// What a project has and may have; nothing and no limit, where it has never been used.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] where the filesystem counts no projects.
    pub fn usage(&self, project: Project) -> Result<ProjectUsage, Error> {
        let quota = match call::quota(self.root.as_fd(), project.get()) {
            Ok(quota) => quota,
            Err(Errno::NOENT) => Quota::default(),
            Err(errno) => {
                return Err(self.refused(&format!("ask for the quota of project {project} at"), errno));
            }
        };
        Ok(ProjectUsage::of(project, &quota))
    }

    /// Every project that has something, or a limit, by number.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] where the filesystem counts no projects.
    pub fn report(&self) -> Result<Vec<ProjectUsage>, Error> {
        let mut report = Vec::new();
        let mut from = 1;
        loop {
            let quota = match call::next_quota(self.root.as_fd(), from) {
                Ok(quota) => quota,
                Err(Errno::NOENT) => return Ok(report),
                Err(errno) => return Err(self.refused("list the projects of", errno)),
            };
            let Some(project) = Project::new(quota.project).filter(|project| project.get() >= from) else {
                return Ok(report);
            };
            let usage = ProjectUsage::of(project, &quota);
            // A project that was removed keeps an entry full of zeroes.
            if (usage.space, usage.inodes, usage.limits) != (Bytes::ZERO, 0, ProjectLimits::default()) {
                report.push(usage);
            }
            from = match Project::new(project.get() + 1) {
                Some(next) => next.get(),
                None => return Ok(report),
            };
        }
    }

    /// Sets both limits of a project, also below what it has: then it gets no more. Limits that it has already are no
    /// error.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a limit of zero; [`Kind::Unsupported`] where the filesystem counts no projects.
    pub fn set_limits(&self, project: Project, limits: ProjectLimits) -> Result<Change, Error> {
        let tried = || format!("limit project {project} at {}", self.name);
        if limits.space == Some(Bytes::ZERO) || limits.inodes == Some(0) {
            return Err(Error::new(Kind::InvalidArgument, tried())
                .with_answer("the kernel takes a limit of zero for none")
                .with_advice("ask for at least one block and one inode"));
        }
        let units = match limits.space.map(|space| space.round_up(UNIT)) {
            None => 0,
            Some(Some(space)) => space.get() / UNIT.get(),
            Some(None) => {
                return Err(Error::new(Kind::InvalidArgument, tried()).with_answer("it is too large"));
            }
        };
        let wanted =
            Quota { block_limit: units, inode_limit: limits.inodes.unwrap_or(0), ..Quota::default() };
        let before = self.usage(project)?.limits;
        call::set_limits(self.root.as_fd(), project.get(), wanted)
            .map_err(|errno| self.refused(&format!("limit project {project} at"), errno))?;
        // XFS rounds to its blocks, so whether anything changed shows afterwards only.
        let after = self.usage(project)?.limits;
        Ok(if after == before { Change::Already(()) } else { Change::Made(()) })
    }

    fn refused(&self, what: &str, errno: Errno) -> Error {
        let tried = format!("{what} {}", self.name);
        match errno {
            // ESRCH: quotas are off; ENOSYS: the kernel or the filesystem has none.
            Errno::SRCH | Errno::NOSYS | Errno::NOTTY => Error::new(Kind::Unsupported, tried)
                .with_answer("the filesystem does not count projects")
                .with_advice("mount it with the option prjquota")
                .with_source(errno),
            Errno::PERM => Error::system(tried, errno).with_advice("this needs CAP_SYS_ADMIN"),
            errno => Error::system(tried, errno),
        }
    }
}

/// The project of a directory, whether quotas are on or not; `None` when it belongs to none.
///
/// # Errors
///
/// [`Kind::Unsupported`] for a filesystem that knows no projects; [`Kind::NotFound`]. The last part of the path is not
/// followed if it is a symbolic link.
pub fn project_of(directory: &Path) -> Result<Option<Project>, Error> {
    let tried = || format!("ask for the project of {}", directory.display());
    let open = open(directory, OFlags::NOFOLLOW, tried)?;
    project_of_open(open.as_fd(), directory)
}

/// The same of a directory that is open; `name` is for the text of errors.
///
/// # Errors
///
/// As [`project_of`].
pub fn project_of_open(directory: BorrowedFd<'_>, name: &Path) -> Result<Option<Project>, Error> {
    let attributes = call::attributes(directory)
        .map_err(|errno| no_projects(format!("ask for the project of {}", name.display()), errno))?;
    Ok(Project::new(attributes.project))
}

/// Puts a directory into a project, and has everything that is made in it belong there too. What is in it already stays
/// where it is, so do this to a directory that is new. Already so is no error.
///
/// Whoever owns a file of the project's may not move it to another one by renaming or linking it (`EXDEV`), and only
/// who may administer the filesystem can change the number.
///
/// # Errors
///
/// As [`project_of`].
pub fn set_project(directory: &Path, project: Project) -> Result<Change, Error> {
    let tried = || format!("put {} into project {project}", directory.display());
    let open = open(directory, OFlags::NOFOLLOW, tried)?;
    set_project_of_open(open.as_fd(), directory, project)
}

/// The same with a directory that is open; `name` is for the text of errors.
///
/// # Errors
///
/// As [`project_of`].
pub fn set_project_of_open(
    directory: BorrowedFd<'_>,
    name: &Path,
    project: Project,
) -> Result<Change, Error> {
    let failed = |errno| no_projects(format!("put {} into project {project}", name.display()), errno);
    let mut attributes = call::attributes(directory).map_err(failed)?;
    if attributes.project == project.get() && attributes.flags & FS_XFLAG_PROJINHERIT != 0 {
        return Ok(Change::Already(()));
    }
    attributes.project = project.get();
    attributes.flags |= FS_XFLAG_PROJINHERIT;
    call::set_attributes(directory, attributes).map_err(failed)?;
    Ok(Change::Made(()))
}

fn no_projects(tried: String, errno: Errno) -> Error {
    match errno {
        Errno::NOTTY | Errno::OPNOTSUPP => Error::new(Kind::Unsupported, tried)
            .with_answer("the filesystem knows no projects")
            .with_advice("use XFS, or ext4 with the feature project")
            .with_source(errno),
        errno => Error::system(tried, errno),
    }
}

fn open(directory: &Path, flags: OFlags, tried: impl Fn() -> String) -> Result<OwnedFd, Error> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, directory, flags, Mode::empty()).map_err(|errno| Error::system(tried(), errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_the_kernel_has_for_other_things_are_no_projects() {
        assert_eq!([0, u32::MAX].map(Project::new), [None, None]);
        assert_eq!(Project::new(u32::MAX - 1).map(Project::get), Some(u32::MAX - 1));
    }

    #[test]
    fn zeroes_of_the_kernel_are_no_limits() {
        let project = Project::new(7).unwrap();
        let none = ProjectUsage::of(project, &Quota::default());
        assert_eq!((none.limits, none.space), (ProjectLimits::default(), Bytes::ZERO));
        let quota = Quota { block_limit: 1024, space: 4096, inode_limit: 5, inodes: 2, ..Quota::default() };
        let usage = ProjectUsage::of(project, &quota);
        let limits = ProjectLimits { space: Some(Bytes::mib(1)), inodes: Some(5) };
        assert_eq!((usage.limits, usage.space, usage.inodes), (limits, Bytes::kib(4), 2));
    }

    #[test]
    fn a_filesystem_without_quotas_says_so_and_what_to_do() {
        // /proc has none.
        let quotas = ProjectQuotas::of(Path::new("/proc")).unwrap();
        assert_eq!(quotas.state().unwrap(), QuotaState::Off);
        let error = quotas.require_enforced().unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.advice().is_some_and(|advice| advice.contains("prjquota")));
        let project = Project::new(7).unwrap();
        assert_eq!(quotas.usage(project).unwrap_err().kind(), Kind::Unsupported);
        assert_eq!(project_of(Path::new("/proc")).unwrap_err().kind(), Kind::Unsupported);
        assert_eq!(set_project(Path::new("/proc"), project).unwrap_err().kind(), Kind::Unsupported);
    }
}
