//! Inline volumes: made when their pod is, at their target alone, and gone with it.

use std::collections::BTreeMap;
use std::path::Path;

use devices::Bytes;
use tonic::Status;
use volumes::class::Size;
use volumes::{Access, CreateVolume, Error, Kind, Lifecycle, Mode, SizeRange, Stage, VolumeId};

use super::NodeService;
use crate::check::{Use, volume_parameters};
use crate::names::{EPHEMERAL, SIZE};
use crate::status::{invalid, of, shown};

/// Whether a volume's attributes say that it lives as long as its pod.
pub(super) fn is_ephemeral(context: &BTreeMap<String, String>) -> bool {
    context.get(EPHEMERAL).is_some_and(|value| value == "true")
}

impl NodeService {
    pub(super) async fn publish_ephemeral(
        &self,
        id: VolumeId,
        target: &Path,
        wanted: Use,
        access: Access,
        context: &BTreeMap<String, String>,
    ) -> Result<(), Status> {
        if wanted.mode != Mode::Filesystem {
            return Err(invalid("volume_capability", "an inline volume is a filesystem"));
        }
        let mut ours = context.clone();
        let size =
            ours.remove(SIZE).ok_or_else(|| invalid("volume_context", format!("{SIZE} is missing")))?;
        let Size(size) = size.parse::<Size>().map_err(|_| {
            invalid("volume_context", format!("{SIZE}: {} is no size such as 10Gi", shown(&size)))
        })?;
        if size == Bytes::ZERO {
            return Err(invalid("volume_context", format!("{SIZE} is nothing")));
        }
        let parameters = volume_parameters("volume_context", &ours)?;
        let mut new =
            CreateVolume::new(id.clone(), SizeRange::at_least(size)).lifecycle(Lifecycle::Ephemeral);
        new.class = parameters.class;
        new.limits = parameters.limits;
        new.fs_type = wanted.fs_type.or(parameters.fs_type);
        let mut stage =
            Stage::new(id, target, Mode::Filesystem).mount_options(wanted.mount_options).access(access);
        stage.fs_type = new.fs_type;
        let publish = move |node: &volumes::Node| {
            node.create(&new)?;
            node.stage(&stage)
        };
        self.local.run(publish).await.map(drop).map_err(|error| of(&error))
    }
}

/// Takes a volume away from its target; with an ephemeral one goes the volume. What was done before is no error.
///
/// `given` is the id as the caller wrote it. An id of ours that cannot be looked up belongs to a volume whose class is
/// down: nothing more is to be done for it. Any other id is one of the kubelet's, for an inline volume that must go.
pub(super) fn unpublish(
    node: &volumes::Node,
    given: &str,
    id: &VolumeId,
    target: &Path,
) -> Result<(), Error> {
    node.unpublish(id, target)?;
    match node.volume(id) {
        Ok(volume) if volume.lifecycle == Lifecycle::Ephemeral => node.delete(id),
        Err(error) if error.kind() != Kind::NotFound && given != id.as_str() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
