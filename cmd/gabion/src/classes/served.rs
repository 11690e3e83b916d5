//! A running `gabion node`, asked over its socket.

use std::future::Future;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result};
use csi::Endpoint;
use csi::proto::controller_client::ControllerClient;
use csi::proto::node_client::NodeClient;
use csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::proto::{self, VolumeCapability, VolumeContentSource};
use devices::Bytes;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint as Address};
use tonic::{Code, Response, Status};
use volumes::{
    Capacity, ClassName, CreateSnapshot, CreateVolume, Error, FsType, Kind, SnapshotId, Source, VolumeId,
};

use super::storage::{Cut, InClass};

/// `SINGLE_NODE_WRITER`.
const WRITER: i32 = 1;

/// A connection to the agent.
pub(super) struct Client {
    runtime: Runtime,
    channel: Channel,
}

impl Client {
    /// Connects, if anybody answers there.
    pub(super) fn connect(endpoint: &Endpoint) -> Result<Option<Self>> {
        let path = endpoint.path();
        match UnixStream::connect(path) {
            Ok(_) => {}
            Err(cause) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&cause.kind()) => {
                return Ok(None);
            }
            Err(cause) => {
                return Err(cause).with_context(|| format!("connecting to the agent at {}", path.display()));
            }
        }
        let runtime = Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
        let address = Address::from_shared(format!("unix://{}", path.display()))?;
        let channel = runtime.block_on(address.connect()).context("connecting to the agent")?;
        Ok(Some(Self { runtime, channel }))
    }

    fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.channel.clone())
    }

    fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone())
    }

    fn wait<T>(&self, tried: &str, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T> {
        Ok(self.runtime.block_on(call).map(Response::into_inner).map_err(|status| error(tried, &status))?)
    }

    pub(super) fn volumes(&self) -> Result<Vec<InClass>> {
        let request = proto::ListVolumesRequest::default();
        let answer = self.wait("list volumes", self.controller().list_volumes(request))?;
        Ok(answer.entries.into_iter().filter_map(|entry| entry.volume).map(told).collect())
    }

    pub(super) fn snapshots(&self) -> Result<Vec<Cut>> {
        let request = proto::ListSnapshotsRequest::default();
        let answer = self.wait("list snapshots", self.controller().list_snapshots(request))?;
        Ok(answer.entries.into_iter().filter_map(|entry| entry.snapshot).map(told_snapshot).collect())
    }

    pub(super) fn capacity(&self, class: &ClassName) -> Result<Capacity> {
        let request = proto::GetCapacityRequest { parameters: in_class(Some(class)), ..Default::default() };
        let tried = format!("tell the capacity of class {class}");
        let answer = self.wait(&tried, self.controller().get_capacity(request))?;
        let mut capacity = Capacity::default();
        capacity.available = bytes(answer.available_capacity);
        capacity.largest = answer.maximum_volume_size.map_or(capacity.available, bytes);
        Ok(capacity)
    }

    pub(super) fn create(&self, new: &CreateVolume) -> Result<InClass> {
        let mut parameters = in_class(new.class.as_ref());
        if let Some(fs) = new.fs_type {
            parameters.insert(csi::names::FS_TYPE.to_owned(), fs.to_string());
        }
        let source = new.source.as_ref().map(|source| match source {
            Source::Snapshot(id) => Type::Snapshot(SnapshotSource { snapshot_id: id.to_string() }),
            Source::Volume(id) => Type::Volume(VolumeSource { volume_id: id.to_string() }),
        });
        let request = proto::CreateVolumeRequest {
            name: new.id.to_string(),
            capacity_range: Some(range(new.size.required())),
            volume_capabilities: vec![filesystem(None)],
            parameters,
            volume_content_source: source.map(|of| VolumeContentSource { r#type: Some(of) }),
            ..Default::default()
        };
        let tried = format!("create volume {}", new.id);
        let made = self.wait(&tried, self.controller().create_volume(request))?;
        Ok(told(made.volume.unwrap_or_default()))
    }

    pub(super) fn grow(&self, id: &VolumeId, to: Bytes, mounted: Option<&Path>) -> Result<InClass> {
        let tried = format!("grow volume {id}");
        let request = proto::ControllerExpandVolumeRequest {
            volume_id: id.to_string(),
            capacity_range: Some(range(to)),
            ..Default::default()
        };
        let grown = self.wait(&tried, self.controller().controller_expand_volume(request))?;
        if let Some(path) = mounted {
            let request = proto::NodeExpandVolumeRequest {
                volume_id: id.to_string(),
                volume_path: path.display().to_string(),
                ..Default::default()
            };
            self.wait(&tried, self.node().node_expand_volume(request))?;
        }
        Ok(told(proto::Volume {
            volume_id: id.to_string(),
            capacity_bytes: grown.capacity_bytes,
            ..Default::default()
        }))
    }

    pub(super) fn delete(&self, id: &VolumeId) -> Result<()> {
        let request = proto::DeleteVolumeRequest { volume_id: id.to_string(), ..Default::default() };
        self.wait(&format!("delete volume {id}"), self.controller().delete_volume(request)).map(drop)
    }

    pub(super) fn cut(&self, new: &CreateSnapshot) -> Result<Cut> {
        let request = proto::CreateSnapshotRequest {
            name: new.id.to_string(),
            source_volume_id: new.source.to_string(),
            ..Default::default()
        };
        let tried = format!("snapshot volume {} as {}", new.source, new.id);
        let made = self.wait(&tried, self.controller().create_snapshot(request))?;
        Ok(told_snapshot(made.snapshot.unwrap_or_default()))
    }

    pub(super) fn delete_snapshot(&self, id: &SnapshotId) -> Result<()> {
        let request = proto::DeleteSnapshotRequest { snapshot_id: id.to_string(), ..Default::default() };
        self.wait(&format!("delete snapshot {id}"), self.controller().delete_snapshot(request)).map(drop)
    }

    pub(super) fn mount(
        &self,
        id: &VolumeId,
        staging: &Path,
        directory: &Path,
        fs: Option<FsType>,
    ) -> Result<()> {
        let tried = format!("mount volume {id} at {}", directory.display());
        let stage = proto::NodeStageVolumeRequest {
            volume_id: id.to_string(),
            staging_target_path: staging.display().to_string(),
            volume_capability: Some(filesystem(fs)),
            ..Default::default()
        };
        self.wait(&tried, self.node().node_stage_volume(stage))?;
        let publish = proto::NodePublishVolumeRequest {
            volume_id: id.to_string(),
            staging_target_path: staging.display().to_string(),
            target_path: directory.display().to_string(),
            volume_capability: Some(filesystem(fs)),
            ..Default::default()
        };
        self.wait(&tried, self.node().node_publish_volume(publish)).map(drop)
    }

    pub(super) fn unpublish(&self, id: &VolumeId, directory: &Path) -> Result<()> {
        let request = proto::NodeUnpublishVolumeRequest {
            volume_id: id.to_string(),
            target_path: directory.display().to_string(),
        };
        let tried = format!("unmount volume {id} from {}", directory.display());
        self.wait(&tried, self.node().node_unpublish_volume(request)).map(drop)
    }

    pub(super) fn unstage(&self, id: &VolumeId, staging: &Path) -> Result<()> {
        let request = proto::NodeUnstageVolumeRequest {
            volume_id: id.to_string(),
            staging_target_path: staging.display().to_string(),
        };
        self.wait(&format!("unmount volume {id}"), self.node().node_unstage_volume(request)).map(drop)
    }
}

fn in_class(class: Option<&ClassName>) -> std::collections::BTreeMap<String, String> {
    class.map(|class| (csi::names::DEVICE_CLASS.to_owned(), class.to_string())).into_iter().collect()
}

fn range(least: Bytes) -> proto::CapacityRange {
    // What is larger than any volume is refused as such by the agent.
    proto::CapacityRange { required_bytes: i64::try_from(least.get()).unwrap_or(i64::MAX), limit_bytes: 0 }
}

fn filesystem(fs: Option<FsType>) -> VolumeCapability {
    let fs_type = fs.map(|fs| fs.to_string()).unwrap_or_default();
    VolumeCapability {
        access_mode: Some(AccessMode { mode: WRITER }),
        access_type: Some(AccessType::Mount(MountVolume { fs_type, ..Default::default() })),
    }
}

fn bytes(given: i64) -> Bytes {
    Bytes::new(u64::try_from(given).unwrap_or_default())
}

fn told(volume: proto::Volume) -> InClass {
    let source = volume.content_source.and_then(|source| source.r#type).map(|source| match source {
        Type::Snapshot(source) => format!("snapshot/{}", source.snapshot_id),
        Type::Volume(source) => format!("volume/{}", source.volume_id),
    });
    InClass {
        id: volume.volume_id,
        class: None,
        size_bytes: bytes(volume.capacity_bytes).get(),
        content: None,
        source,
    }
}

fn told_snapshot(snapshot: proto::Snapshot) -> Cut {
    let created = snapshot.creation_time.map_or(0, |time| u64::try_from(time.seconds).unwrap_or_default());
    Cut {
        id: snapshot.snapshot_id,
        volume: snapshot.source_volume_id,
        size_bytes: bytes(snapshot.size_bytes).get(),
        created,
        state: if snapshot.ready_to_use { "ready" } else { "copying" },
    }
}

/// A refusal as the library would have told it.
fn error(tried: &str, status: &Status) -> Error {
    let kind = match status.code() {
        Code::NotFound => Kind::NotFound,
        Code::AlreadyExists => Kind::Exists,
        Code::Aborted => Kind::Busy,
        Code::ResourceExhausted => Kind::NoSpace,
        Code::InvalidArgument => Kind::InvalidArgument,
        Code::OutOfRange => Kind::OutOfRange,
        // The one that the specification knows of deleting.
        Code::FailedPrecondition if tried.starts_with("delete") => Kind::InUse,
        Code::FailedPrecondition | Code::Unimplemented => Kind::FailedPrecondition,
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => Kind::Unavailable,
        _ => Kind::Internal,
    };
    let message = status.message();
    let answer = message.strip_prefix(&format!("could not {tried}: ")).unwrap_or(message);
    Error::new(kind, tried).with_answer(answer.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_agent_is_told_as_the_library_tells_it() {
        let status =
            Status::new(Code::NotFound, "could not grow volume db: there is no volume db on this node");
        let told = error("grow volume db", &status);
        assert_eq!(told.kind(), Kind::NotFound);
        assert_eq!(told.to_string(), "could not grow volume db: there is no volume db on this node");
        let kind = |tried, code| error(tried, &Status::new(code, "x")).kind();
        assert_eq!(kind("delete volume db", Code::FailedPrecondition), Kind::InUse);
        assert_eq!(kind("mount volume db at /x", Code::FailedPrecondition), Kind::FailedPrecondition);
        assert_eq!(kind("list volumes", Code::Unknown), Kind::Internal);
    }
}
