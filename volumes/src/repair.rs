//! What opening a node found and put right.

use std::fmt;

use crate::{ClassName, Error, SnapshotId, VolumeId};

/// What opening a node did, and what it could not do.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Repairs {
    /// What was put right.
    pub repairs: Vec<Repair>,
    /// Classes that cannot be used now, and why.
    pub problems: Vec<ClassProblem>,
    /// What is ours and belongs to no class. It is never touched.
    pub orphans: Vec<Orphan>,
}

/// Something that was put right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The volume group, disk or directory.
    pub place: String,
    /// What was done, in words.
    pub done: String,
}

/// A class that cannot be used now.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClassProblem {
    /// The class.
    pub class: ClassName,
    /// Why.
    pub error: Error,
}

/// A volume or snapshot of ours whose class is not configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// The volume group, disk or directory.
    pub place: String,
    /// Its name there.
    pub name: String,
    /// The volume, where it is one.
    pub volume: Option<VolumeId>,
    /// The snapshot, where it is one.
    pub snapshot: Option<SnapshotId>,
}

impl Repairs {
    /// Tells what belongs to no class once, though several classes may lie in its place.
    pub(crate) fn add_orphans(&mut self, found: Vec<Orphan>) {
        for orphan in found {
            if !self.orphans.contains(&orphan) {
                self.orphans.push(orphan);
            }
        }
    }

    /// Whether there is nothing to be told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.repairs.is_empty() && self.problems.is_empty() && self.orphans.is_empty()
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repairs, problems, orphans } = self;
        write!(
            f,
            "{} repairs, {} classes unusable, {} orphans",
            repairs.len(),
            problems.len(),
            orphans.len()
        )?;
        for Repair { place, done } in repairs {
            write!(f, "\n{place}: {done}")?;
        }
        for ClassProblem { class, error } in problems {
            write!(f, "\nclass {class}: {error}")?;
        }
        for Orphan { place, name, .. } in orphans {
            write!(f, "\n{place}: {name} is ours and belongs to no class")?;
        }
        Ok(())
    }
}
