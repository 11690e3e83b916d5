//! Calls as the model makes them, on the driver's socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::proto::*;
use devices::Bytes;
use tonic::{Code, Response, Status};

use super::belief::{Mode, Op, Origin, Source};
use crate::csi_client::Csi;

/// How long any call may take, on a host that is busy with other things, too.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long a call may take that only looks whether the driver is there.
const SOON: Duration = Duration::from_secs(5);

/// What came back of a call.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) size: Option<Bytes>,
    /// Whether the volume was in the list, of [`Op::List`].
    pub(super) listed: Option<bool>,
}

impl Answer {
    fn of(result: Result<Option<i64>, Status>) -> Self {
        match result {
            Ok(size) => Self {
                code: Code::Ok,
                message: String::new(),
                size: size.map(|size| Bytes::new(u64::try_from(size).unwrap_or(u64::MAX))),
                listed: None,
            },
            Err(refusal) => Self::refused(&refusal),
        }
    }

    pub(super) fn refused(refusal: &Status) -> Self {
        Self { code: refusal.code(), message: refusal.message().to_owned(), size: None, listed: None }
    }
}

/// One caller's connection, and where the volumes of the run are mounted.
#[derive(Debug)]
pub(super) struct Calls {
    csi: Csi,
    directory: PathBuf,
    /// Counts the kills of the driver.
    kills: Arc<AtomicU64>,
    /// That count when this connection was last used.
    used: AtomicU64,
}

impl Calls {
    pub(super) fn new(socket: &Path, directory: &Path, kills: &Arc<AtomicU64>) -> Result<Self> {
        let used = AtomicU64::new(kills.load(Ordering::SeqCst));
        Ok(Self {
            csi: Csi::connect(socket)?,
            directory: directory.to_owned(),
            kills: Arc::clone(kills),
            used,
        })
    }

    pub(super) fn staging(directory: &Path, id: &str) -> PathBuf {
        directory.join("staging").join(id)
    }

    pub(super) fn target(directory: &Path, id: &str, at: usize) -> PathBuf {
        directory.join("pods").join(format!("{id}-{at}"))
    }

    fn wait<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
        let kills = self.kills.load(Ordering::SeqCst);
        if self.used.swap(kills, Ordering::SeqCst) != kills {
            // A connection that lay idle during a kill says so at its next use, which shall be one that changes nothing.
            let nothing = ControllerGetCapabilitiesRequest {};
            let _ = self.within(self.csi.controller().controller_get_capabilities(nothing), SOON);
        }
        self.within(call, PATIENCE)
    }

    fn within<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
        patience: Duration,
    ) -> Result<T, Status> {
        self.csi.wait(async {
            tokio::time::timeout(patience, call)
                .await
                .unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("no answer within {patience:?}"))))
        })
    }

    /// Makes one call on a volume.
    pub(super) fn perform(&self, id: &str, mode: Mode, op: &Op) -> Answer {
        match op {
            Op::List => self.list(id),
            Op::Create { size, from } => Answer::of(self.create(id, mode, *size, from.as_ref())),
            Op::Delete => {
                let request = DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
                Answer::of(self.wait(self.csi.controller().delete_volume(request)).map(|_| None))
            }
            Op::Grow { size } => Answer::of(self.grow(id, *size)),
            Op::Validate => Answer::of(self.validate(id, mode)),
            Op::Stage | Op::Unstage => Answer::of(self.stage(id, mode, op)),
            Op::Publish(at) => Answer::of(self.publish(id, mode, *at)),
            Op::Unpublish(at) => {
                let request =
                    NodeUnpublishVolumeRequest { volume_id: id.into(), target_path: self.shown(id, *at) };
                Answer::of(self.wait(self.csi.node().node_unpublish_volume(request)).map(|_| None))
            }
            Op::Expand(at) => {
                let request = NodeExpandVolumeRequest {
                    volume_id: id.into(),
                    volume_path: self.shown(id, *at),
                    ..Default::default()
                };
                let grown = self.wait(self.csi.node().node_expand_volume(request));
                Answer::of(grown.map(|grown| Some(grown.capacity_bytes)))
            }
            Op::Stats(at) => {
                let request = NodeGetVolumeStatsRequest {
                    volume_id: id.into(),
                    volume_path: self.shown(id, *at),
                    ..Default::default()
                };
                let stats = self.wait(self.csi.node().node_get_volume_stats(request));
                Answer::of(stats.map(|stats| stats.usage.first().map(|usage| usage.total)))
            }
        }
    }

    fn shown(&self, id: &str, at: usize) -> String {
        Self::target(&self.directory, id, at).display().to_string()
    }

    fn create(
        &self,
        id: &str,
        mode: Mode,
        size: Bytes,
        from: Option<&Origin>,
    ) -> Result<Option<i64>, Status> {
        let source = from.map(|origin| VolumeContentSource {
            r#type: Some(match &origin.source {
                Source::Snapshot(id) => Type::Snapshot(SnapshotSource { snapshot_id: id.clone() }),
                Source::Volume(id) => Type::Volume(VolumeSource { volume_id: id.clone() }),
            }),
        });
        let request = CreateVolumeRequest {
            name: id.into(),
            capacity_range: Some(at_least(size)),
            volume_capabilities: vec![capability(mode)],
            volume_content_source: source,
            ..Default::default()
        };
        let made = self.wait(self.csi.controller().create_volume(request))?;
        Ok(made.volume.map(|volume| volume.capacity_bytes))
    }

    fn grow(&self, id: &str, size: Bytes) -> Result<Option<i64>, Status> {
        let request = ControllerExpandVolumeRequest {
            volume_id: id.into(),
            capacity_range: Some(at_least(size)),
            ..Default::default()
        };
        let grown = self.wait(self.csi.controller().controller_expand_volume(request))?;
        Ok(Some(grown.capacity_bytes))
    }

    fn validate(&self, id: &str, mode: Mode) -> Result<Option<i64>, Status> {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: id.into(),
            volume_capabilities: vec![capability(mode)],
            ..Default::default()
        };
        let valid = self.wait(self.csi.controller().validate_volume_capabilities(request))?;
        match valid.confirmed {
            Some(_) => Ok(None),
            None => Err(Status::internal(format!("not confirmed: {}", valid.message))),
        }
    }

    fn stage(&self, id: &str, mode: Mode, op: &Op) -> Result<Option<i64>, Status> {
        let path = Self::staging(&self.directory, id).display().to_string();
        if *op == Op::Unstage {
            let request = NodeUnstageVolumeRequest { volume_id: id.into(), staging_target_path: path };
            return self.wait(self.csi.node().node_unstage_volume(request)).map(|_| None);
        }
        let request = NodeStageVolumeRequest {
            volume_id: id.into(),
            staging_target_path: path,
            volume_capability: Some(capability(mode)),
            ..Default::default()
        };
        self.wait(self.csi.node().node_stage_volume(request)).map(|_| None)
    }

    fn publish(&self, id: &str, mode: Mode, at: usize) -> Result<Option<i64>, Status> {
        let request = NodePublishVolumeRequest {
            volume_id: id.into(),
            staging_target_path: Self::staging(&self.directory, id).display().to_string(),
            target_path: self.shown(id, at),
            volume_capability: Some(capability(mode)),
            ..Default::default()
        };
        self.wait(self.csi.node().node_publish_volume(request)).map(|_| None)
    }

    fn list(&self, id: &str) -> Answer {
        match self.volumes() {
            Err(refusal) => Answer::of(Err(refusal)),
            Ok(all) => {
                let found = all.iter().find(|(listed, _)| listed == id);
                let mut answer = Answer::of(Ok(None));
                answer.size = found.map(|(_, size)| *size);
                answer.listed = Some(found.is_some());
                answer
            }
        }
    }

    /// All volumes with their sizes.
    pub(super) fn volumes(&self) -> Result<Vec<(String, Bytes)>, Status> {
        let request = ListVolumesRequest::default();
        let listed = self.wait(self.csi.controller().list_volumes(request))?;
        let volumes = listed.entries.into_iter().filter_map(|entry| entry.volume);
        Ok(volumes.map(|volume| (volume.volume_id, bytes(volume.capacity_bytes))).collect())
    }

    /// All snapshots: id, source, size, and whether they are ready.
    pub(super) fn snapshots(&self) -> Result<Vec<Snapshot>, Status> {
        let request = ListSnapshotsRequest::default();
        let listed = self.wait(self.csi.controller().list_snapshots(request))?;
        Ok(listed.entries.into_iter().filter_map(|entry| entry.snapshot).collect())
    }

    pub(super) fn create_snapshot(&self, id: &str, source: &str) -> Result<Snapshot, Status> {
        let request =
            CreateSnapshotRequest { name: id.into(), source_volume_id: source.into(), ..Default::default() };
        let made = self.wait(self.csi.controller().create_snapshot(request))?;
        made.snapshot.ok_or_else(|| Status::internal("the answer has no snapshot"))
    }

    pub(super) fn delete_snapshot(&self, id: &str) -> Result<(), Status> {
        let request = DeleteSnapshotRequest { snapshot_id: id.into(), ..Default::default() };
        self.wait(self.csi.controller().delete_snapshot(request)).map(drop)
    }

    /// What is free, and the largest volume that can be made.
    pub(super) fn capacity(&self) -> Result<(Bytes, Bytes), Status> {
        let request = GetCapacityRequest::default();
        let room = self.wait(self.csi.controller().get_capacity(request))?;
        Ok((bytes(room.available_capacity), bytes(room.maximum_volume_size.unwrap_or_default())))
    }
}

fn bytes(size: i64) -> Bytes {
    Bytes::new(u64::try_from(size).unwrap_or(u64::MAX))
}

fn at_least(size: Bytes) -> CapacityRange {
    CapacityRange { required_bytes: i64::try_from(size.get()).unwrap_or(i64::MAX), limit_bytes: 0 }
}

fn capability(mode: Mode) -> VolumeCapability {
    let access_type = match mode {
        Mode::Filesystem => AccessType::Mount(MountVolume::default()),
        Mode::Block => AccessType::Block(BlockVolume {}),
    };
    VolumeCapability { access_mode: Some(AccessMode { mode: 7 }), access_type: Some(access_type) }
}
