//! What is wrong with volumes and pools, as far as it can be told without touching what may hang.

use crate::backend::Backend;
use crate::pools::Place;
use crate::{ClassName, Error, Node, Volume, VolumeId};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// It works, but not as it should, or not with everything.
    Degraded,
    /// It cannot be used now.
    Inaccessible,
    /// Something of it is gone.
    DataLoss,
}

/// One thing that is wrong, for as long as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthIssue {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in one word in CamelCase: `PhysicalVolumeMissing`. No two issues of one volume have the same.
    pub reason: &'static str,
    /// What it is, for people.
    pub message: String,
}

impl HealthIssue {
    pub(crate) fn new(severity: Severity, reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity, reason, message: message.into() }
    }
}

/// What is wrong with the pool of a class on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassHealth {
    /// The class.
    pub class: ClassName,
    /// What is wrong; never empty.
    pub issues: Vec<HealthIssue>,
}

/// What is wrong with a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeHealth {
    /// The volume.
    pub id: VolumeId,
    /// What is wrong; empty where nothing is known to be.
    pub issues: Vec<HealthIssue>,
}

impl Node {
    /// What is wrong with a volume, wherever it is used, or nowhere.
    ///
    /// # Errors
    ///
    /// As [`Node::volume`]; when LVM's or the kernel's state cannot be read.
    pub fn health(&self, id: &VolumeId) -> Result<VolumeHealth, Error> {
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &format!("tell the health of volume {id}"))?;
        Ok(VolumeHealth { issues: self.issues(backend, &volume)?, id: volume.id })
    }

    fn issues(&self, backend: &dyn Backend, volume: &Volume) -> Result<Vec<HealthIssue>, Error> {
        let mut issues = backend.health(volume)?;
        issues.extend(self.limits_health(backend, volume));
        Ok(issues)
    }

    /// The volumes with which something is wrong, by id. Those of a class that cannot be used now are not among them.
    ///
    /// # Errors
    ///
    /// When a pool cannot be read.
    pub fn ill_volumes(&self) -> Result<Vec<VolumeHealth>, Error> {
        let pools = self.pools();
        let mut ill = Vec::new();
        for place in pools.places.values() {
            let Place::Ready(backend) = place else { continue };
            for volume in backend.volumes()? {
                let issues = self.issues(&**backend, &volume)?;
                ill.push(VolumeHealth { id: volume.id, issues });
            }
        }
        ill.retain(|volume| !volume.issues.is_empty());
        ill.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(ill)
    }

    /// The classes with which something is wrong on this node, by name. A class that has no disks here is well.
    #[must_use]
    pub fn ill_classes(&self) -> Vec<ClassHealth> {
        let pools = self.pools();
        let issues = |place: &Place| match place {
            Place::Absent => Vec::new(),
            Place::Down(why) => {
                vec![HealthIssue::new(Severity::Inaccessible, "ClassUnavailable", why.clone())]
            }
            Place::Ready(backend) => pool_issues(&**backend),
        };
        let all = pools
            .places
            .iter()
            .map(|(class, place)| ClassHealth { class: class.clone(), issues: issues(place) });
        all.filter(|class| !class.issues.is_empty()).collect()
    }
}

/// A pool that cannot be asked is not well either.
fn pool_issues(backend: &dyn Backend) -> Vec<HealthIssue> {
    backend.pool_health().unwrap_or_else(|error| {
        vec![HealthIssue::new(Severity::Inaccessible, "PoolUnreadable", error.to_string())]
    })
}
