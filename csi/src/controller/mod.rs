//! Making, growing and removing volumes and snapshots: each call translated, each field looked at first.

mod create;
mod list;
mod snapshot;

use std::sync::Arc;

use tonic::{Request, Response, Status};
use volumes::{Abilities, ClassName, Mode, SnapshotId, VolumeId};

use crate::check::{Use, every_use, id, map, mutable_parameters, one_use, size, volume_parameters};
use crate::deadline::Deadline;
use crate::ending::Ending;
use crate::proto::controller_server::Controller;
use crate::proto::controller_service_capability::{self as capability, rpc};
use crate::proto::*;
use crate::status::{answer, invalid, of, of_growing};
use crate::{Alpha, Control, Place, health};

/// The service.
#[derive(Debug)]
pub(crate) struct ControllerService<C> {
    pub(crate) control: Arc<C>,
    pub(crate) place: Place,
    pub(crate) alpha: Alpha,
    pub(crate) ending: Ending,
}

fn missing_volume(field: &str) -> Status {
    Status::not_found(format!("{field}: there is no such volume"))
}

impl<C: Control> ControllerService<C> {
    async fn delete(&self, asked: DeleteVolumeRequest) -> Result<DeleteVolumeResponse, Status> {
        if let Some(id) = id::<VolumeId>("volume_id", &asked.volume_id)? {
            self.control.delete(id).await.map_err(|error| of(&error))?;
        }
        Ok(DeleteVolumeResponse {})
    }

    async fn expand(
        &self,
        asked: ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, Status> {
        let id = id::<VolumeId>("volume_id", &asked.volume_id)?;
        let range =
            asked.capacity_range.as_ref().ok_or_else(|| invalid("capacity_range", "it is missing"))?;
        let range = size("capacity_range", range)?;
        let mode = match &asked.volume_capability {
            Some(given) => Some(one_use("volume_capability", Some(given))?.mode),
            None => None,
        };
        let id = id.ok_or_else(|| missing_volume("volume_id"))?;
        let grown = self.control.grow(id, range).await.map_err(|error| of_growing(&error))?;
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: bytes(grown.size),
            node_expansion_required: mode != Some(Mode::Block),
        })
    }

    /// Changes what a volume may read and write. Whether the volume exists is told before what is wrong with the rest.
    async fn modify(
        &self,
        asked: ControllerModifyVolumeRequest,
    ) -> Result<ControllerModifyVolumeResponse, Status> {
        let id = id::<VolumeId>("volume_id", &asked.volume_id)?.ok_or_else(|| missing_volume("volume_id"))?;
        let _ = self.control.volume(id.clone()).await.map_err(|error| of(&error))?;
        let limits = mutable_parameters("mutable_parameters", &asked.mutable_parameters)?;
        self.control.set_limits(id, limits).await.map_err(|error| of(&error))?;
        Ok(ControllerModifyVolumeResponse {})
    }

    async fn validate(
        &self,
        asked: ValidateVolumeCapabilitiesRequest,
    ) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
        let id = id::<VolumeId>("volume_id", &asked.volume_id)?;
        if asked.volume_capabilities.is_empty() {
            return Err(invalid("volume_capabilities", "it is missing"));
        }
        map("volume_context", &asked.volume_context)?;
        let id = id.ok_or_else(|| missing_volume("volume_id"))?;
        let volume = self.control.volume(id).await.map_err(|error| of(&error))?;
        let confirmed = self.confirms(&volume, &asked);
        Ok(match confirmed {
            Ok(()) => ValidateVolumeCapabilitiesResponse {
                confirmed: Some(validate_volume_capabilities_response::Confirmed {
                    volume_context: asked.volume_context,
                    volume_capabilities: asked.volume_capabilities,
                    parameters: asked.parameters,
                    mutable_parameters: asked.mutable_parameters,
                }),
                message: String::new(),
            },
            Err(why) => {
                ValidateVolumeCapabilitiesResponse { confirmed: None, message: why.message().to_owned() }
            }
        })
    }

    /// Whether a volume is what a request says, and can be used so.
    fn confirms(
        &self,
        volume: &volumes::Volume,
        asked: &ValidateVolumeCapabilitiesRequest,
    ) -> Result<(), Status> {
        let uses = every_use("volume_capabilities", &asked.volume_capabilities)?;
        let parameters = volume_parameters("parameters", &asked.parameters)?;
        let changeable = mutable_parameters("mutable_parameters", &asked.mutable_parameters)?;
        if !changeable.is_empty() && !self.class(Some(&volume.class))?.1.limits {
            return Err(invalid("mutable_parameters", format!("class {} limits nothing", volume.class)));
        }
        if parameters.class.is_some_and(|class| class != volume.class) {
            return Err(invalid("parameters", format!("the volume is in class {}", volume.class)));
        }
        let (class, abilities) = self.class(Some(&volume.class))?;
        fits(&class, abilities, &uses)?;
        let named = uses.iter().filter_map(|wanted| wanted.fs_type).chain(parameters.fs_type);
        match volume.fs_type {
            Some(has) if named.clone().any(|wanted| wanted != has) => {
                Err(invalid("volume_capabilities", format!("the volume is for {has}")))
            }
            _ => Ok(()),
        }
    }

    async fn room(&self, asked: GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
        let parameters = volume_parameters("parameters", &asked.parameters)?;
        let (class, abilities) = self.class(parameters.class.as_ref())?;
        let elsewhere = asked.accessible_topology.is_some_and(|place| !self.place.is_at(&place));
        let unusable = !asked.volume_capabilities.is_empty()
            && every_use("volume_capabilities", &asked.volume_capabilities)
                .and_then(|uses| fits(&class, abilities, &uses))
                .is_err();
        let room = match elsewhere || unusable {
            // What cannot be made here has no room here.
            true => volumes::Capacity::default(),
            false => self.control.capacity(Some(class)).await.map_err(|error| of(&error))?,
        };
        Ok(GetCapacityResponse {
            available_capacity: bytes(room.available),
            maximum_volume_size: Some(bytes(room.largest)),
            minimum_volume_size: (self.alpha == Alpha::Offered).then(|| bytes(room.minimum)),
        })
    }

    /// A class by its name, or the default one.
    fn class(&self, name: Option<&ClassName>) -> Result<(ClassName, Abilities), Status> {
        self.control.class(name).map_err(|error| invalid("parameters", error))
    }

    async fn one(&self, asked: ControllerGetVolumeRequest) -> Result<ControllerGetVolumeResponse, Status> {
        let id = id::<VolumeId>("volume_id", &asked.volume_id)?.ok_or_else(|| missing_volume("volume_id"))?;
        let volume = self.control.volume(id).await.map_err(|error| of(&error))?;
        Ok(ControllerGetVolumeResponse {
            volume: Some(self.told(&volume)),
            status: Some(controller_get_volume_response::VolumeStatus::default()),
        })
    }

    async fn health(
        &self,
        asked: ControllerGetVolumeHealthRequest,
    ) -> Result<ControllerGetVolumeHealthResponse, Status> {
        let id = id::<VolumeId>("volume_id", &asked.volume_id)?.ok_or_else(|| missing_volume("volume_id"))?;
        let health = self.control.health(id).await.map_err(|error| of(&error))?;
        Ok(ControllerGetVolumeHealthResponse { volume_health: Some(health::of_volume(&health)) })
    }

    fn capabilities(&self) -> Vec<ControllerServiceCapability> {
        use rpc::Type;
        let abilities = self.control.abilities();
        let mut offered = vec![
            Type::CreateDeleteVolume,
            Type::ListVolumes,
            Type::GetCapacity,
            Type::ExpandVolume,
            Type::SingleNodeMultiWriter,
        ];
        if abilities.snapshots {
            offered.extend([Type::CreateDeleteSnapshot, Type::ListSnapshots]);
        }
        if abilities.copies {
            offered.push(Type::CloneVolume);
        }
        if abilities.limits {
            offered.push(Type::ModifyVolume);
        }
        if self.alpha == Alpha::Offered {
            offered.extend([Type::GetVolume, Type::GetVolumeHealth, Type::ListVolumeHealth]);
            offered.extend(abilities.snapshots.then_some(Type::GetSnapshot));
        }
        let capability = |of: Type| ControllerServiceCapability {
            r#type: Some(capability::Type::Rpc(capability::Rpc { r#type: of.into() })),
        };
        offered.into_iter().map(capability).collect()
    }

    /// A volume as callers get it.
    fn told(&self, volume: &volumes::Volume) -> Volume {
        Volume {
            capacity_bytes: bytes(volume.size),
            volume_id: volume.id.to_string(),
            volume_context: [].into(),
            content_source: volume.source.as_ref().map(create::told_source),
            accessible_topology: vec![self.place.topology()],
        }
    }
}

/// Refuses what volumes of a class cannot be used as.
fn fits(class: &ClassName, abilities: Abilities, uses: &[Use]) -> Result<(), Status> {
    match uses.iter().any(|wanted| wanted.mode == Mode::Block) && !abilities.block {
        true => Err(invalid("volume_capabilities", format!("volumes of class {class} are no block devices"))),
        false => Ok(()),
    }
}

/// Bytes on the wire. No volume has more than fits.
fn bytes(size: devices::Bytes) -> i64 {
    i64::try_from(size.get()).unwrap_or(i64::MAX)
}

fn unpublished<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented(
        "local volumes are attached where they are: nothing is published by the controller",
    ))
}

#[tonic::async_trait]
impl<C: Control> Controller for ControllerService<C> {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let deadline = Deadline::of(request.metadata());
        answer("CreateVolume", self.create(request.into_inner(), deadline).await)
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        answer("DeleteVolume", self.delete(request.into_inner()).await)
    }

    async fn controller_publish_volume(
        &self,
        _: Request<ControllerPublishVolumeRequest>,
    ) -> Result<Response<ControllerPublishVolumeResponse>, Status> {
        unpublished()
    }

    async fn controller_unpublish_volume(
        &self,
        _: Request<ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<ControllerUnpublishVolumeResponse>, Status> {
        unpublished()
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        answer("ValidateVolumeCapabilities", self.validate(request.into_inner()).await)
    }

    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        answer("ListVolumes", self.volumes(request.into_inner()).await)
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<ControllerListVolumeHealthRequest>,
    ) -> Result<Response<ControllerListVolumeHealthResponse>, Status> {
        answer("ControllerListVolumeHealth", self.ill_volumes(request.into_inner()).await)
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<ControllerGetVolumeHealthRequest>,
    ) -> Result<Response<ControllerGetVolumeHealthResponse>, Status> {
        answer("ControllerGetVolumeHealth", self.health(request.into_inner()).await)
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        answer("GetCapacity", self.room(request.into_inner()).await)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities: self.capabilities() }))
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<CreateSnapshotResponse>, Status> {
        answer("CreateSnapshot", self.cut(request.into_inner()).await)
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<DeleteSnapshotResponse>, Status> {
        answer("DeleteSnapshot", self.delete_snapshot(request.into_inner()).await)
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        answer("ListSnapshots", self.snapshots(request.into_inner()).await)
    }

    async fn get_snapshot(
        &self,
        request: Request<GetSnapshotRequest>,
    ) -> Result<Response<GetSnapshotResponse>, Status> {
        answer("GetSnapshot", self.snapshot(request.into_inner()).await)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        answer("ControllerExpandVolume", self.expand(request.into_inner()).await)
    }

    async fn controller_get_volume(
        &self,
        request: Request<ControllerGetVolumeRequest>,
    ) -> Result<Response<ControllerGetVolumeResponse>, Status> {
        answer("ControllerGetVolume", self.one(request.into_inner()).await)
    }

    async fn controller_modify_volume(
        &self,
        request: Request<ControllerModifyVolumeRequest>,
    ) -> Result<Response<ControllerModifyVolumeResponse>, Status> {
        answer("ControllerModifyVolume", self.modify(request.into_inner()).await)
    }
}
