//! Lists, page by page.

use tonic::Status;
use volumes::{SnapshotId, VolumeId};

use super::ControllerService;
use crate::Control;
use crate::check::{id, max_entries};
use crate::health;
use crate::page::page;
use crate::proto::{
    ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse, ListSnapshotsRequest,
    ListSnapshotsResponse, ListVolumesRequest, ListVolumesResponse, list_snapshots_response,
    list_volumes_response,
};
use crate::status::of;

impl<C: Control> ControllerService<C> {
    pub(super) async fn volumes(&self, asked: ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
        let most = max_entries(asked.max_entries)?;
        let all = self.control.volumes().await.map_err(|error| of(&error))?;
        let (part, next_token) = page(all, |volume| volume.id.as_str(), &asked.starting_token, most)?;
        let entry = |volume: &volumes::Volume| list_volumes_response::Entry {
            volume: Some(self.told(volume)),
            status: None,
        };
        Ok(ListVolumesResponse { entries: part.iter().map(entry).collect(), next_token })
    }

    /// Only those with which something is wrong.
    pub(super) async fn ill_volumes(
        &self,
        asked: ControllerListVolumeHealthRequest,
    ) -> Result<ControllerListVolumeHealthResponse, Status> {
        let most = max_entries(asked.max_entries)?;
        let ill = self.control.ill_volumes().await.map_err(|error| of(&error))?;
        let (part, next_token) = page(ill, |volume| volume.id.as_str(), &asked.starting_token, most)?;
        Ok(ControllerListVolumeHealthResponse {
            entries: part.iter().map(health::of_volume).collect(),
            next_token,
        })
    }

    pub(super) async fn snapshots(
        &self,
        asked: ListSnapshotsRequest,
    ) -> Result<ListSnapshotsResponse, Status> {
        let most = max_entries(asked.max_entries)?;
        let source = wanted::<VolumeId>("source_volume_id", &asked.source_volume_id)?;
        let one = wanted::<SnapshotId>("snapshot_id", &asked.snapshot_id)?;
        let mut all = self.control.snapshots().await.map_err(|error| of(&error))?;
        all.retain(|snapshot| one.takes(&snapshot.id) && source.takes(&snapshot.source));
        let (part, next_token) = page(all, |snapshot| snapshot.id.as_str(), &asked.starting_token, most)?;
        let entry = |snapshot: &volumes::Snapshot| list_snapshots_response::Entry {
            snapshot: Some(self.told_snapshot(snapshot)),
        };
        Ok(ListSnapshotsResponse { entries: part.iter().map(entry).collect(), next_token })
    }
}

/// Which ids a list is narrowed to.
enum Wanted<T> {
    All,
    One(T),
    /// One that was never given out.
    None,
}

impl<T: PartialEq> Wanted<T> {
    fn takes(&self, id: &T) -> bool {
        match self {
            Wanted::All => true,
            Wanted::One(wanted) => wanted == id,
            Wanted::None => false,
        }
    }
}

fn wanted<T: std::str::FromStr>(field: &str, given: &str) -> Result<Wanted<T>, Status> {
    match given {
        "" => Ok(Wanted::All),
        given => Ok(id(field, given)?.map_or(Wanted::None, Wanted::One)),
    }
}
