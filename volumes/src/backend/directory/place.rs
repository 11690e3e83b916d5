//! Where directories lie: in a filesystem that is there, that root alone may write to, and that enforces quotas.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use devices::filesystem::{ProjectQuotas, project_of_open};
use devices::mount::{Mount, MountTable};

use crate::backend::DirectoryPlace;
use crate::{Error, FsType, Kind};

/// Fails where somebody else could put another directory into a volume's place.
pub(super) fn own_alone(root: &File, tried: &str) -> Result<(), Error> {
    let failed = |cause| Error::system(tried, cause);
    let there = root.metadata().map_err(failed)?;
    let me = std::fs::metadata("/proc/self").map_err(failed)?.uid();
    if !there.is_dir() {
        return Err(Error::new(Kind::FailedPrecondition, tried).with_answer("it is no directory"));
    }
    if there.mode() & 0o022 == 0 && [0, me].contains(&there.uid()) {
        return Ok(());
    }
    Err(Error::new(Kind::Refused, tried)
        .with_answer(format!(
            "user {} owns it and its mode is {:o}, so others can put links and directories there",
            there.uid(),
            there.mode() & 0o7777
        ))
        .with_advice("give it to root with mode 0755 or less: chown root DIRECTORY, chmod go-w DIRECTORY"))
}

/// The project quotas of a directory's filesystem, if they keep what is made in it within limits.
pub(super) fn enforced(root: &File, path: &Path, tried: &str) -> Result<ProjectQuotas, Error> {
    let quotas = ProjectQuotas::of(path)?;
    quotas.require_enforced()?;
    if let Some(project) = project_of_open(root.as_fd(), path)? {
        return Err(Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("it is in project {project} itself, and nothing can be in two"))
            .with_advice("use a directory that is in none"));
    }
    Ok(quotas)
}

/// Where a directory lies, as the mount table has it, and in which filesystem.
pub(super) fn place_of(path: &Path, tried: &str) -> Result<(DirectoryPlace, FsType), Error> {
    let table = MountTable::read()?;
    let depth = |mount: &&Mount| mount.mount_point.components().count();
    // Of mounts at one place the last one is seen.
    let mounts = table.iter().filter(|mount| path.starts_with(&mount.mount_point));
    let mount = mounts.max_by_key(depth).ok_or_else(|| {
        Error::new(Kind::Internal, tried).with_answer("the mount table has nothing that it lies in")
    })?;
    let name = mount.fs_type.to_string_lossy();
    let fs = name.parse().map_err(|_| {
        Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("it lies in {name}"))
            .with_advice("use a directory in ext4 or xfs, mounted with prjquota")
    })?;
    let inside = path.strip_prefix(&mount.mount_point).unwrap_or(Path::new(""));
    let place =
        DirectoryPlace { path: path.to_owned(), device: mount.device, inside: mount.root.join(inside) };
    Ok((place, fs))
}
