//! Whose quotas limit the directories, and what may still be promised.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::BorrowedFd;

use devices::Bytes;
use devices::filesystem::{Inodes, Project, ProjectLimits, ProjectQuotas, ProjectUsage};

use crate::mounts::VolumeUsage;
use crate::{Error, Owner, VolumeId};

/// The first of the numbers that projects get here; people count from small ones.
const FIRST: u32 = 0x4000_0000;
/// How many there are.
const COUNT: u32 = 0x3fff_ffff;
/// The names that an administrator gave to projects, one a line: `name:number` (projid(5)).
const NAMED: &str = "/etc/projid";

/// Whether a number is one of those given out here.
fn is_given_here(project: Project) -> bool {
    (FIRST..FIRST + COUNT).contains(&project.get())
}

/// What the volumes of this filesystem may still write, whosever they are: their limits less what they have.
pub(super) fn promised(quotas: &ProjectQuotas) -> Result<Bytes, Error> {
    let report = quotas.report()?;
    Ok(outstanding(report.iter().filter(|usage| is_given_here(usage.project))))
}

fn outstanding<'a>(usages: impl Iterator<Item = &'a ProjectUsage>) -> Bytes {
    let left =
        |usage: &ProjectUsage| usage.limits.space.unwrap_or_default().saturating_sub(usage.space).get();
    Bytes::new(usages.fold(0_u64, |sum, usage| sum.saturating_add(left(usage))))
}

/// A number that nothing has, here or by an administrator's word, beginning at one that follows from owner and id.
pub(super) fn free_project(
    quotas: &ProjectQuotas,
    recorded: impl Iterator<Item = Project>,
    (owner, id): (&Owner, &VolumeId),
) -> Result<Option<Project>, Error> {
    let mut taken: BTreeSet<Project> = recorded.collect();
    taken.extend(quotas.report()?.iter().map(|usage| usage.project));
    taken.extend(fs::read_to_string(NAMED).unwrap_or_default().lines().filter_map(named));
    let bytes = *owner.filesystem_uuid(id)?.as_bytes();
    let wanted = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok(first_free(wanted, &taken))
}

fn first_free(wanted: u32, taken: &BTreeSet<Project>) -> Option<Project> {
    let begin = wanted % COUNT;
    (begin..COUNT)
        .chain(0..begin)
        .filter_map(|step| Project::new(FIRST + step))
        .find(|project| !taken.contains(project))
}

fn named(line: &str) -> Option<Project> {
    let (_, number) = line.split_once(':')?;
    Project::new(number.trim().parse().ok()?)
}

/// Limits a project to a size, or takes its limit off.
pub(super) fn limit(quotas: &ProjectQuotas, project: Project, size: Option<Bytes>) -> Result<(), Error> {
    let _ = quotas.set_limits(project, ProjectLimits { space: size, inodes: None })?;
    Ok(())
}

/// How full the filesystem of a directory is.
pub(super) fn usage_of(directory: BorrowedFd<'_>, tried: &str) -> Result<VolumeUsage, Error> {
    let stat = rustix::fs::fstatvfs(directory).map_err(|errno| Error::system(tried, errno))?;
    let bytes = |blocks: u64| Bytes::new(blocks.saturating_mul(stat.f_frsize));
    let used = stat.f_files.saturating_sub(stat.f_ffree);
    let inodes = Inodes { total: stat.f_files, used, free: stat.f_favail };
    Ok(VolumeUsage {
        total: bytes(stat.f_blocks),
        used: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
        available: bytes(stat.f_bavail),
        inodes: (stat.f_files > 0).then_some(inodes),
    })
}

/// What a project has of its size, in a filesystem that others fill too.
pub(super) fn usage_in(filesystem: VolumeUsage, of: &ProjectUsage, size: Bytes) -> VolumeUsage {
    let inodes = filesystem.inodes.map(|inodes| Inodes {
        total: of.inodes.saturating_add(inodes.free),
        used: of.inodes,
        free: inodes.free,
    });
    let available = size.saturating_sub(of.space).min(filesystem.available);
    VolumeUsage { total: size, used: of.space, available, inodes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(number: u32) -> Project {
        Project::new(number).unwrap()
    }

    #[test]
    fn a_number_that_is_taken_is_passed_over_also_at_the_end() {
        let taken = |numbers: &[u32]| numbers.iter().copied().map(project).collect::<BTreeSet<_>>();
        assert_eq!(first_free(5, &taken(&[])), Some(project(FIRST + 5)));
        assert_eq!(first_free(5, &taken(&[FIRST + 5, FIRST + 6])), Some(project(FIRST + 7)));
        assert_eq!(first_free(COUNT - 1, &taken(&[FIRST + COUNT - 1])), Some(project(FIRST)));
        assert!(first_free(u32::MAX, &taken(&[])).is_some_and(is_given_here));
    }

    #[test]
    fn what_an_administrator_named_is_read() {
        let lines = ["web:1073741829", "# web:7", "", "a:b", "none:0"];
        let found: Vec<Project> = lines.into_iter().filter_map(named).collect();
        assert_eq!(found, [project(FIRST + 5), project(7)]);
    }
}
