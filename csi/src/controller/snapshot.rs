//! Cutting, showing and removing snapshots.

use std::time::{SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;
use tonic::{Code, Status};
use volumes::{CreateSnapshot, SnapshotState};

use super::{ControllerService, SnapshotId, VolumeId, bytes, missing_volume};
use crate::Control;
use crate::check::{id, text, without_parameters};
use crate::proto::{
    CreateSnapshotRequest, CreateSnapshotResponse, DeleteSnapshotRequest, DeleteSnapshotResponse,
    GetSnapshotRequest, GetSnapshotResponse, Snapshot,
};
use crate::status::{of, status};

impl<C: Control> ControllerService<C> {
    pub(super) async fn cut(&self, asked: CreateSnapshotRequest) -> Result<CreateSnapshotResponse, Status> {
        let name = text("name", &asked.name)?;
        let cut = SnapshotId::for_name(name).map_err(|error| of(&error))?;
        let source = id::<VolumeId>("source_volume_id", &asked.source_volume_id)?;
        without_parameters("parameters", &asked.parameters)?;
        self.place.must_take("accessibility_requirements", asked.accessibility_requirements.as_ref())?;
        let source = source.ok_or_else(|| missing_volume("source_volume_id"))?;
        let made = self
            .control
            .create_snapshot(CreateSnapshot::new(cut, source))
            .await
            .map_err(|error| of(&error))?;
        if let SnapshotState::Failed(why) = &made.state {
            let text =
                format!("snapshot {} could not be completed: {why}; delete it and cut another", made.id);
            return Err(status(Code::Internal, &text));
        }
        Ok(CreateSnapshotResponse { snapshot: Some(self.told_snapshot(&made)) })
    }

    pub(super) async fn delete_snapshot(
        &self,
        asked: DeleteSnapshotRequest,
    ) -> Result<DeleteSnapshotResponse, Status> {
        if let Some(id) = id::<SnapshotId>("snapshot_id", &asked.snapshot_id)? {
            self.control.delete_snapshot(id).await.map_err(|error| of(&error))?;
        }
        Ok(DeleteSnapshotResponse {})
    }

    pub(super) async fn snapshot(&self, asked: GetSnapshotRequest) -> Result<GetSnapshotResponse, Status> {
        let id = id::<SnapshotId>("snapshot_id", &asked.snapshot_id)?
            .ok_or_else(|| Status::not_found("snapshot_id: there is no such snapshot"))?;
        let there = self.control.snapshot(id).await.map_err(|error| of(&error))?;
        Ok(GetSnapshotResponse { snapshot: Some(self.told_snapshot(&there)) })
    }

    /// A snapshot as callers get it.
    pub(super) fn told_snapshot(&self, snapshot: &volumes::Snapshot) -> Snapshot {
        Snapshot {
            size_bytes: bytes(snapshot.size),
            snapshot_id: snapshot.id.to_string(),
            source_volume_id: snapshot.source.to_string(),
            creation_time: Some(timestamp(snapshot.created)),
            ready_to_use: snapshot.state == SnapshotState::Ready,
            group_snapshot_id: String::new(),
            accessible_topology: vec![self.place.topology()],
        }
    }
}

/// A moment on the wire: whole seconds and nanoseconds since 1970, the latter never negative.
fn timestamp(moment: SystemTime) -> Timestamp {
    let (seconds, nanos) = match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs(), since.subsec_nanos()),
        // A clock that stood before 1970.
        Err(_) => (0, 0),
    };
    Timestamp {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        // Below 10^9.
        nanos: i32::try_from(nanos).unwrap_or_default(),
    }
}
