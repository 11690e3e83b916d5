//! A driver with one class on a disk of its own, called as the kubelet and the sidecars call it.

// What is not so fails the test, like in the suites themselves.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use csi::proto::*;
use devices::Bytes;
use tonic::{Code, Request, Status};

use crate::agent::Agent;
use crate::csi_client::Csi;
use crate::{Disk, skip_unless_dm, tool};

/// A word that must never be found in a log.
pub const SECRET: &str = "hunter2";
/// Bytes of a volume, if a test wants nothing else.
pub const SIZE: i64 = 64 << 20;

/// Bytes of its disk.
const DISK: Bytes = Bytes::gib(2);

/// How long a call that is told to come back may go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver that serves, and a connection to it.
#[derive(Debug)]
pub struct Served {
    /// The driver.
    pub agent: Agent,
    /// The connection.
    pub csi: Csi,
    /// Gone after the driver and its volumes.
    disk: Option<Disk>,
}

impl Served {
    /// With thick volumes. `None`, with a line that says why, where there is no device-mapper.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn thick() -> Option<Self> {
        Self::with("pool: {lvm: {}}", &[])
    }

    /// With what is said of the default class beside its disk, and more arguments.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn with(spec: &str, more: &[&str]) -> Option<Self> {
        if skip_unless_dm() {
            return None;
        }
        let disk = Disk::partitioned(DISK, Bytes::new(512)).unwrap();
        let classes = format!(
            "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec: {{default: true, \
             devices: {{paths: [{}]}}, {spec}}}\n",
            disk.path().display()
        );
        let agent = Agent::start(&classes, more).unwrap();
        let csi = Csi::connect(&agent.socket()).unwrap();
        Some(Self { agent, csi, disk: Some(disk) })
    }

    /// Its disk.
    #[must_use]
    pub fn disk(&self) -> &Path {
        self.disk.as_ref().map_or(Path::new(""), Disk::path)
    }

    /// Ends the driver, and gives its disk with all that is on it.
    #[must_use]
    pub fn into_disk(mut self) -> Option<Disk> {
        self.disk.take()
    }

    /// A path in the driver's directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.agent.directory().join(name)
    }

    /// Kills the driver as a crash would, and starts it again on the same socket.
    ///
    /// # Panics
    ///
    /// If it does not start again.
    pub fn crash(&mut self) {
        self.agent.crash().unwrap();
        self.csi = Csi::connect(&self.agent.socket()).unwrap();
    }

    /// Makes a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn create(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        Ok(self.csi.wait(self.csi.controller().create_volume(request))?.volume.unwrap())
    }

    /// The same, for a caller who waits only so long.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn create_within(&self, request: CreateVolumeRequest, patience: Duration) -> Result<Volume, Status> {
        let mut request = Request::new(request);
        request.set_timeout(patience);
        Ok(self.csi.wait(self.csi.controller().create_volume(request))?.volume.unwrap())
    }

    /// Stages a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn stage(&self, id: &str, staging: &Path, capability: VolumeCapability) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: id.into(),
            staging_target_path: staging.display().to_string(),
            volume_capability: Some(capability),
            secrets: secrets(),
            ..Default::default()
        };
        self.csi.wait(self.csi.node().node_stage_volume(request)).map(drop)
    }

    /// Publishes a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn publish(&self, request: NodePublishVolumeRequest) -> Result<(), Status> {
        self.csi.wait(self.csi.node().node_publish_volume(request)).map(drop)
    }

    /// Unpublishes a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn unpublish(&self, id: &str, target: &Path) -> Result<(), Status> {
        let target_path = target.display().to_string();
        let request = NodeUnpublishVolumeRequest { volume_id: id.into(), target_path };
        self.csi.wait(self.csi.node().node_unpublish_volume(request)).map(drop)
    }

    /// Unstages a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn unstage(&self, id: &str, staging: &Path) -> Result<(), Status> {
        let staging_target_path = staging.display().to_string();
        let request = NodeUnstageVolumeRequest { volume_id: id.into(), staging_target_path };
        self.csi.wait(self.csi.node().node_unstage_volume(request)).map(drop)
    }

    /// Makes a volume larger.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn expand(&self, id: &str, required_bytes: i64) -> Result<i64, Status> {
        let request = ControllerExpandVolumeRequest {
            volume_id: id.into(),
            capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
            secrets: secrets(),
            volume_capability: None,
        };
        let grown = self.csi.wait(self.csi.controller().controller_expand_volume(request))?;
        Ok(grown.capacity_bytes)
    }

    /// Removes a volume.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest { volume_id: id.into(), secrets: secrets() };
        self.csi.wait(self.csi.controller().delete_volume(request)).map(drop)
    }

    /// Cuts a snapshot.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn snapshot(&self, name: &str, source: &str) -> Result<Snapshot, Status> {
        let request = CreateSnapshotRequest {
            source_volume_id: source.into(),
            name: name.into(),
            secrets: secrets(),
            ..Default::default()
        };
        Ok(self.csi.wait(self.csi.controller().create_snapshot(request))?.snapshot.unwrap())
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn delete_snapshot(&self, id: &str) -> Result<(), Status> {
        let request = DeleteSnapshotRequest { snapshot_id: id.into(), secrets: secrets() };
        self.csi.wait(self.csi.controller().delete_snapshot(request)).map(drop)
    }

    /// Every volume, as the driver lists them.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[must_use]
    pub fn volumes(&self) -> Vec<Volume> {
        let answer =
            self.csi.wait(self.csi.controller().list_volumes(ListVolumesRequest::default())).unwrap();
        answer.entries.into_iter().map(|entry| entry.volume.unwrap()).collect()
    }

    /// Every snapshot, as the driver lists them.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[must_use]
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let answer = self.csi.wait(self.csi.controller().list_snapshots(ListSnapshotsRequest::default()));
        answer.unwrap().entries.into_iter().map(|entry| entry.snapshot.unwrap()).collect()
    }

    /// What the default class has left.
    ///
    /// # Panics
    ///
    /// If the driver does not tell.
    #[must_use]
    pub fn room(&self) -> GetCapacityResponse {
        self.csi.wait(self.csi.controller().get_capacity(GetCapacityRequest::default())).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = self.agent.stop();
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

/// Repeats a call that is told to come back later (`ABORTED`), as every caller does.
///
/// # Errors
///
/// Another refusal.
///
/// # Panics
///
/// If that goes on for a minute.
pub fn persistently<T>(mut call: impl FnMut() -> Result<T, Status>) -> Result<T, Status> {
    let start = Instant::now();
    loop {
        match call() {
            Err(refusal) if refusal.code() == Code::Aborted => {
                assert!(start.elapsed() < PATIENCE, "{refusal:?}");
                std::thread::sleep(Duration::from_millis(50));
            }
            ended => return ended,
        }
    }
}

/// The code of a refusal.
///
/// # Panics
///
/// If it was none.
pub fn code<T: Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

/// Secrets, of which no trace must be found.
#[must_use]
pub fn secrets() -> BTreeMap<String, String> {
    [("password".to_owned(), SECRET.to_owned())].into()
}

/// A filesystem for one node, with these options.
#[must_use]
pub fn mount(fs_type: &str, flags: &[&str]) -> VolumeCapability {
    let mount_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let mount = MountVolume { fs_type: fs_type.into(), mount_flags, volume_mount_group: String::new() };
    VolumeCapability {
        access_mode: Some(AccessMode { mode: 1 }),
        access_type: Some(AccessType::Mount(mount)),
    }
}

/// A block device for one node.
#[must_use]
pub fn block() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: 1 }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    }
}

/// A volume of [`SIZE`] bytes with a filesystem.
#[must_use]
pub fn volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(CapacityRange { required_bytes: SIZE, limit_bytes: SIZE }),
        volume_capabilities: vec![mount("", &[])],
        secrets: secrets(),
        ..Default::default()
    }
}

/// Where a volume is to be seen.
#[must_use]
pub fn at(id: &str, staging: &Path, target: &Path, capability: VolumeCapability) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: id.into(),
        staging_target_path: staging.display().to_string(),
        target_path: target.display().to_string(),
        volume_capability: Some(capability),
        secrets: secrets(),
        ..Default::default()
    }
}
