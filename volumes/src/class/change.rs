//! What of a running class may change.

use std::fmt;

use super::{DeviceClass, Pool};
use crate::{Error, Kind};

/// A field that was changed and may not be, since the pool is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChange {
    /// The path of the field: `spec.pool.lvm.volumeGroup`.
    pub field: &'static str,
    /// Why it stays as it was.
    pub reason: &'static str,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot change: {}", self.field, self.reason)
    }
}

const BUILT: &str = "the pool is built of it; make another class and move the volumes there";
const CONSENT: &str = "it was agreed to when the pool was made";
const CHOSEN: &str = "the disks and nodes of the class were chosen by it";

/// Refuses other classes in the place of these where they differ in what may not change.
pub(crate) fn check_changes(from: &[DeviceClass], to: &[DeviceClass]) -> Result<(), Error> {
    let same = |class: &DeviceClass| from.iter().find(|there| there.name == class.name);
    let forbidden: Vec<String> = to
        .iter()
        .filter_map(|class| Some((class, same(class)?)))
        .flat_map(|(class, there)| {
            let changes = there.forbidden_changes(class);
            changes.into_iter().map(|change| format!("class {}: {change}", class.name))
        })
        .collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidArgument, "take other classes").with_answer(forbidden.join("; ")))
}

impl DeviceClass {
    /// The fields in which another version of this class differs and may not.
    ///
    /// Everything else may change: defaults of volumes, reserve, thresholds, over-provisioning, what is made of the class
    /// in a cluster, and disks named by path. A path that is taken out stays in the pool until it is moved away.
    #[must_use]
    pub fn forbidden_changes(&self, to: &Self) -> Vec<FieldChange> {
        let mut changes = Vec::new();
        let mut differs = |field, reason, differs: bool| {
            if differs {
                changes.push(FieldChange { field, reason });
            }
        };
        let (from_spec, to_spec) = (&self.spec, &to.spec);
        differs("metadata.name", BUILT, self.name != to.name);
        differs("spec.nodeSelector", CHOSEN, from_spec.node_selector != to_spec.node_selector);
        differs("spec.devices.match", CHOSEN, from_spec.devices.matches != to_spec.devices.matches);
        differs("spec.devices.wipe", CONSENT, from_spec.devices.wipe != to_spec.devices.wipe);
        differs(
            "spec.devices.sharedWith",
            BUILT,
            from_spec.devices.shared_with != to_spec.devices.shared_with,
        );
        match (&from_spec.pool, &to_spec.pool) {
            (Pool::Lvm(from), Pool::Lvm(to_pool)) => {
                differs("spec.pool.lvm.volumeGroup", BUILT, self.volume_group() != to.volume_group());
                differs("spec.pool.lvm.layout", BUILT, from.layout != to_pool.layout);
            }
            (Pool::Thin(from), Pool::Thin(to_pool)) => {
                differs("spec.pool.thin.volumeGroup", BUILT, self.volume_group() != to.volume_group());
                differs("spec.pool.thin.poolName", BUILT, from.pool_name != to_pool.pool_name);
                differs("spec.pool.thin.layout", BUILT, from.layout != to_pool.layout);
                differs("spec.pool.thin.chunkSize", BUILT, from.chunk_size != to_pool.chunk_size);
            }
            (Pool::Partition(from), Pool::Partition(to_pool)) => {
                differs("spec.pool.partition.exclusive", BUILT, from != to_pool);
            }
            (Pool::Directory(from), Pool::Directory(to_pool)) => {
                differs("spec.pool.directory.path", BUILT, from.path != to_pool.path);
                differs("spec.pool.directory.quota", BUILT, from.quota != to_pool.quota);
            }
            _ => differs("spec.pool", BUILT, true),
        }
        changes
    }
}
