//! Snapshots of several volumes: no class can cut them yet, and the service says so.

use tonic::{Request, Response, Status};

use crate::proto::group_controller_server::GroupController;
use crate::proto::{
    CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotRequest,
    DeleteVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse,
    GroupControllerGetCapabilitiesRequest, GroupControllerGetCapabilitiesResponse,
};

/// The service.
#[derive(Debug)]
pub(crate) struct GroupService;

fn cannot<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("no class of this driver cuts snapshots of several volumes at once"))
}

#[tonic::async_trait]
impl GroupController for GroupService {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<GroupControllerGetCapabilitiesResponse>, Status> {
        Ok(Response::new(GroupControllerGetCapabilitiesResponse { capabilities: Vec::new() }))
    }

    async fn create_volume_group_snapshot(
        &self,
        _: Request<CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<CreateVolumeGroupSnapshotResponse>, Status> {
        cannot()
    }

    async fn delete_volume_group_snapshot(
        &self,
        _: Request<DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<DeleteVolumeGroupSnapshotResponse>, Status> {
        cannot()
    }

    async fn get_volume_group_snapshot(
        &self,
        _: Request<GetVolumeGroupSnapshotRequest>,
    ) -> Result<Response<GetVolumeGroupSnapshotResponse>, Status> {
        cannot()
    }
}
