//! `gabion node` called as the kubelet and the sidecars call it: killed in between, with inline volumes, by many at once,
//! and with requests that nobody may make.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::proto::*;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::{tool, virtual_disks};
use tonic::{Code, Status};

const SECRET: &str = "hunter2";
const SIZE: i64 = 64 << 20;

/// A driver with a class of thick volumes on one of the spare disks.
struct Served {
    agent: Agent,
    csi: Csi,
}

impl Served {
    fn new() -> Option<Self> {
        let disks = virtual_disks();
        let Some(disk) = disks.first() else {
            println!("SKIPPED: there are no virtual disks outside of the machine");
            return None;
        };
        let classes = format!(
            "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec: {{default: true, \
             devices: {{paths: [{}]}}, pool: {{lvm: {{}}}}}}\n",
            disk.display()
        );
        let agent = Agent::start(&classes, &[]).unwrap();
        let csi = Csi::connect(&agent.socket()).unwrap();
        Some(Self { agent, csi })
    }

    fn create(&self, name: &str) -> Result<Volume, Status> {
        let request = create(name);
        let made = self.csi.wait(self.csi.controller().create_volume(request))?;
        Ok(made.volume.unwrap())
    }

    fn stage(&self, volume_id: &str, staging: &Path) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: volume_id.into(),
            staging_target_path: staging.display().to_string(),
            volume_capability: Some(mount()),
            secrets: secrets(),
            ..Default::default()
        };
        self.csi.wait(self.csi.node().node_stage_volume(request)).map(drop)
    }

    fn publish(
        &self,
        volume_id: &str,
        staging: &Path,
        target: &Path,
        context: &[(&str, &str)],
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: volume_id.into(),
            staging_target_path: staging.display().to_string(),
            target_path: target.display().to_string(),
            volume_capability: Some(mount()),
            secrets: secrets(),
            volume_context: context.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            ..Default::default()
        };
        self.csi.wait(self.csi.node().node_publish_volume(request)).map(drop)
    }

    fn unpublish(&self, volume_id: &str, target: &Path) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume_id.into(),
            target_path: target.display().to_string(),
        };
        self.csi.wait(self.csi.node().node_unpublish_volume(request)).map(drop)
    }

    fn unstage(&self, volume_id: &str, staging: &Path) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: volume_id.into(),
            staging_target_path: staging.display().to_string(),
        };
        self.csi.wait(self.csi.node().node_unstage_volume(request)).map(drop)
    }

    fn delete(&self, volume_id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest { volume_id: volume_id.into(), secrets: secrets() };
        self.csi.wait(self.csi.controller().delete_volume(request)).map(drop)
    }

    /// Every volume, as the driver lists them.
    fn listed(&self) -> Vec<Volume> {
        let answer =
            self.csi.wait(self.csi.controller().list_volumes(ListVolumesRequest::default())).unwrap();
        answer.entries.into_iter().map(|entry| entry.volume.unwrap()).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.agent.directory().join(name)
    }

    /// Kills the driver as a crash would, and starts it again on the same socket.
    fn crash(&mut self) {
        self.agent.crash().unwrap();
        self.csi = Csi::connect(&self.agent.socket()).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = self.agent.stop();
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

fn secrets() -> BTreeMap<String, String> {
    [("password".to_owned(), SECRET.to_owned())].into()
}

fn mount() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: 1 }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

fn create(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(CapacityRange { required_bytes: SIZE, limit_bytes: SIZE }),
        volume_capabilities: vec![mount()],
        secrets: secrets(),
        ..Default::default()
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

#[test]
fn a_volume_outlives_the_driver_that_made_it() {
    let Some(mut served) = Served::new() else { return };
    let (staging, target) = (served.path("staging"), served.path("target"));
    let volume = served.create("db").unwrap();
    assert_eq!((volume.volume_id.as_str(), volume.capacity_bytes), ("db", SIZE));
    served.stage("db", &staging).unwrap();
    served.publish("db", &staging, &target, &[]).unwrap();
    fs::write(target.join("file"), "kept").unwrap();
    assert_eq!(code(served.delete("db")), Code::FailedPrecondition);
    served.crash();
    assert_eq!(served.listed().len(), 1);
    served.publish("db", &staging, &target, &[]).unwrap();
    assert_eq!(fs::read(target.join("file")).unwrap(), b"kept");
    served.unpublish("db", &target).unwrap();
    served.unpublish("db", &target).unwrap();
    assert!(!target.exists());
    served.crash();
    served.unstage("db", &staging).unwrap();
    served.unstage("db", &staging).unwrap();
    assert!(staging.exists(), "the staging directory is its maker's");
    served.stage("db", &staging).unwrap();
    assert_eq!(fs::read(staging.join("file")).unwrap(), b"kept");
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
    served.delete("db").unwrap();
    assert!(served.listed().is_empty());
}

#[test]
fn an_inline_volume_goes_with_its_pod() {
    let Some(mut served) = Served::new() else { return };
    let (id, target) = (format!("csi-{}", "0f".repeat(32)), served.path("target"));
    let attributes = [("csi.storage.k8s.io/ephemeral", "true"), ("gabion.dev/size", "64Mi")];
    let publish = |served: &Served| served.publish(&id, Path::new(""), &target, &attributes);
    publish(&served).unwrap();
    publish(&served).unwrap();
    fs::write(target.join("file"), "scratch").unwrap();
    assert_eq!(served.listed().len(), 1);
    served.crash();
    served.unpublish(&id, &target).unwrap();
    assert!(served.listed().is_empty() && !target.exists());
    served.unpublish(&id, &target).unwrap();
}

#[test]
fn of_many_calls_at_once_one_works_and_the_others_are_told_to_come_back() {
    let Some(served) = Served::new() else { return };
    let socket = served.agent.socket();
    let codes: Vec<Code> = std::thread::scope(|scope| {
        let call = || {
            let csi = Csi::connect(&socket).unwrap();
            csi.wait(csi.controller().create_volume(create("one")))
                .map_or_else(|refusal| refusal.code(), |_| Code::Ok)
        };
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(
        codes.contains(&Code::Ok) && codes.iter().all(|code| [Code::Ok, Code::Aborted].contains(code)),
        "{codes:?}"
    );
    assert_eq!(served.listed().len(), 1);
    served.delete("one").unwrap();
}

#[test]
fn hostile_requests_change_nothing_and_no_secret_is_ever_written() {
    let Some(served) = Served::new() else { return };
    served.create("db").unwrap();
    let before = served.listed();
    for hostile in ["../../x".to_owned(), "a\nb".to_owned(), String::new(), "x".repeat(1 << 20)] {
        let range = |required_bytes, limit_bytes| Some(CapacityRange { required_bytes, limit_bytes });
        let mut requests = vec![create("other"); 5];
        requests[0].parameters.insert("gabion.dev/device-class".into(), hostile.clone());
        requests[1].parameters.insert(hostile.clone(), "1".into());
        requests[2].volume_capabilities[0].access_mode = Some(AccessMode { mode: 77 });
        requests[3].capacity_range = range(-1, -1);
        requests[4].capacity_range = range(i64::MAX, 0);
        for request in requests {
            let refused = code(served.csi.wait(served.csi.controller().create_volume(request)));
            assert!(
                [Code::InvalidArgument, Code::OutOfRange, Code::ResourceExhausted].contains(&refused),
                "{refused:?}"
            );
        }
        assert!(served.stage(&hostile, &served.path("staging")).is_err());
        assert!(served.stage("db", Path::new(&hostile)).is_err());
        assert!(served.publish("db", &served.path("staging"), Path::new(&hostile), &[]).is_err());
        // One that was never given out is gone already; one that cannot be is refused.
        let _ = served.delete(&hostile);
    }
    assert_eq!(served.listed(), before);
    assert!(!served.path("staging").exists());
    served.delete("db").unwrap();
    let log = served.agent.log();
    assert!(log.contains("CreateVolume: InvalidArgument") && !log.contains(SECRET), "{log}");
    assert!(log.lines().all(|line| line.len() < 1200));
}
