//! Limits of a node's volumes, given to the kernel and changed.

use super::Limits;
use super::cgroup::PodsCgroup;
use crate::asked::can_limit;
use crate::backend::Backend;
use crate::health::{HealthIssue, Severity};
use crate::lock::Held;
use crate::{ClassProblem, Error, Node, Volume, VolumeId};

/// Its own limits, over those of its class.
fn limits_of(backend: &dyn Backend, volume: &Volume) -> Limits {
    volume.limits.over(backend.class().spec.volume.qos)
}

fn hold(cgroup: &PodsCgroup, backend: &dyn Backend, volume: &Volume) -> Result<(), Error> {
    match backend.number(volume)? {
        Some(number) => cgroup.hold(number, limits_of(backend, volume)),
        None => Ok(()),
    }
}

/// Only volumes are looked for that have limits, as long as the kernel holds none at all: there may be a thousand.
fn hold_all(cgroup: &PodsCgroup, backend: &dyn Backend) -> Result<(), Error> {
    let holds_some = cgroup.holds_some()?;
    let volumes = backend.volumes()?;
    let concerned = |volume: &&Volume| holds_some || limits_of(backend, volume).limit_something();
    volumes.iter().filter(concerned).try_for_each(|volume| hold(cgroup, backend, volume))
}

impl Node {
    /// Changes what a volume may read and write in a second, also while it is in use. What `changed` does not say stays. All
    /// of it holds when this returns, or nothing has changed.
    ///
    /// Where the kernel of this host cannot limit, it is recorded only, and the volume's [health](Node::health) says so.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound); [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) for a volume that
    /// is no device of its own; [`Kind::Busy`](crate::Kind::Busy); [`Kind::Unavailable`](crate::Kind::Unavailable).
    pub fn set_limits(&self, id: &VolumeId, changed: Limits) -> Result<Volume, Error> {
        let tried = format!("limit reading and writing of volume {id}");
        let _lock = self.lock(Held::Volume(id), &tried)?;
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &tried)?;
        let limits = changed.over(volume.limits);
        if limits == volume.limits {
            return Ok(volume);
        }
        can_limit(backend.class(), &tried)?;
        let wanted = Volume { limits, ..volume.clone() };
        // First where it may be refused. If this is killed before it is recorded, the next start gives the kernel what was.
        self.hold_limits(backend, &wanted)?;
        if let Err(error) = backend.set_limits(&volume, limits, &tried) {
            self.hold_limits(backend, &volume)?;
            return Err(error);
        }
        Ok(wanted)
    }

    /// Has the kernel hold the limits of a volume that is active. A host that cannot is told of by the volume's health.
    pub(crate) fn hold_limits(&self, backend: &dyn Backend, volume: &Volume) -> Result<(), Error> {
        if !backend.class().abilities().limits {
            return Ok(());
        }
        let Ok(cgroup) = PodsCgroup::find(self.settings().pods_cgroup.as_deref()) else { return Ok(()) };
        hold(&cgroup, backend, volume)
    }

    /// The same for all volumes that are active: the kernel may have been told otherwise by an earlier start. What fails is
    /// tried again when the volume is staged.
    pub(crate) fn hold_all_limits(&self) -> Vec<ClassProblem> {
        let Ok(cgroup) = PodsCgroup::find(self.settings().pods_cgroup.as_deref()) else { return Vec::new() };
        let pools = self.pools();
        let limited = pools.backends().filter(|backend| backend.class().abilities().limits);
        let problem =
            |(class, held): (_, Result<(), Error>)| Some(ClassProblem { class, error: held.err()? });
        limited
            .map(|backend| (backend.class().name.clone(), hold_all(&cgroup, backend)))
            .filter_map(problem)
            .collect()
    }

    /// What is wrong with limits on this host, if anything is limited.
    pub(crate) fn limits_health(&self, backend: &dyn Backend, volume: &Volume) -> Option<HealthIssue> {
        let limits = limits_of(backend, volume);
        if !limits.limit_something() {
            return None;
        }
        let why = PodsCgroup::find(self.settings().pods_cgroup.as_deref()).err()?;
        let message = format!("the limits {limits} are not held: {why}");
        Some(HealthIssue::new(Severity::Degraded, "QosUnavailable", message))
    }
}
