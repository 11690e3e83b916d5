//! `gabion node` called as the kubelet and the sidecars call it: killed in between, with inline volumes, by many at once,
//! and with requests that nobody may make.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use csi::proto::volume_capability::AccessMode;
use csi::proto::*;
use rig::csi_client::Csi;
use rig::served::{SECRET, SIZE, Served, at, block, code, mount, volume};
use rig::tool;
use tonic::Code;

#[test]
fn a_volume_outlives_the_driver_that_made_it() {
    let Some(mut served) = Served::thick() else { return };
    let (staging, target) = (served.path("staging"), served.path("target"));
    let made = served.create(volume("db")).unwrap();
    assert_eq!((made.volume_id.as_str(), made.capacity_bytes), ("db", SIZE));
    served.stage("db", &staging, mount("", &[])).unwrap();
    served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
    fs::write(target.join("file"), "kept").unwrap();
    assert_eq!(code(served.delete("db")), Code::FailedPrecondition);
    served.crash();
    assert_eq!(served.volumes().len(), 1);
    served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
    assert_eq!(fs::read(target.join("file")).unwrap(), b"kept");
    served.unpublish("db", &target).unwrap();
    served.unpublish("db", &target).unwrap();
    assert!(!target.exists());
    served.crash();
    served.unstage("db", &staging).unwrap();
    served.unstage("db", &staging).unwrap();
    assert!(staging.exists(), "the staging directory is its maker's");
    served.stage("db", &staging, mount("", &[])).unwrap();
    assert_eq!(fs::read(staging.join("file")).unwrap(), b"kept");
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
    served.delete("db").unwrap();
    assert!(served.volumes().is_empty());
}

/// ORPH-01: deleted is told only of what is off the disk, and what is on it is still told, whenever the driver dies.
#[test]
fn a_volume_is_told_as_deleted_only_when_it_is_off_the_disk() {
    let Some(mut served) = Served::thick() else { return };
    let on_disk = |field| tool::run("lvs", ["--noheadings", "-o", field]).unwrap().trim().to_owned();
    served.create(volume("db")).unwrap();
    let held = File::open(on_disk("lv_path")).unwrap();
    assert_eq!(code(served.delete("db")), Code::FailedPrecondition);
    assert_eq!((served.volumes().len(), on_disk("lv_name").as_str()), (1, "v.db"));
    drop(held);
    let mut cut_off = 0;
    for pause in [0, 60] {
        served.create(volume("db")).unwrap();
        let csi = Csi::connect(&served.agent.socket()).unwrap();
        let call = thread::spawn(move || {
            let request = DeleteVolumeRequest { volume_id: "db".into(), ..Default::default() };
            csi.wait(csi.controller().delete_volume(request))
        });
        thread::sleep(Duration::from_millis(pause));
        served.crash();
        match call.join().unwrap() {
            Ok(_) => assert_eq!(on_disk("lv_name"), "", "told as deleted"),
            Err(_) => cut_off += 1,
        }
        assert_eq!(served.volumes().is_empty(), on_disk("lv_name").is_empty());
        served.delete("db").unwrap();
        assert_eq!((served.volumes().len(), on_disk("lv_name").as_str()), (0, ""));
    }
    println!("{cut_off} of 2 calls were cut off");
}

/// A device that hangs its readers until this is dropped.
struct Suspended(String);

impl Suspended {
    fn new(device: String) -> Self {
        tool::run("dmsetup", ["suspend", &device]).unwrap();
        Self(device)
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        tool::run("dmsetup", ["resume", &self.0]).unwrap();
    }
}

/// What is wrong with a volume, which the controller and the node say alike.
fn health(served: &Served, id: &str) -> Vec<(VolumeHealthErrorType, String)> {
    let request = NodeGetVolumeHealthRequest { volume_id: id.into(), ..Default::default() };
    let told = served.csi.wait(served.csi.node().node_get_volume_health(request)).unwrap();
    let request = ControllerGetVolumeHealthRequest { volume_id: id.into(), ..Default::default() };
    let same = served.csi.wait(served.csi.controller().controller_get_volume_health(request)).unwrap();
    assert_eq!(told.volume_health, same.volume_health);
    let told = told.volume_health.unwrap();
    assert_eq!(told.volume_id, id);
    told.health_statuses.into_iter().map(|issue| (issue.status(), issue.reason)).collect()
}

/// A thin pool of 100 MiB.
const POOL: &str = "pool: {thin: {sizePercent: 5, autoExtend: {threshold: 100}, refuseAt: {data: 50}}}";

#[test]
fn what_is_wrong_with_volumes_and_classes_is_told_for_as_long_as_it_is() {
    let Some(served) = Served::with(POOL, &["--csi-alpha"]) else { return };
    let listed = || {
        let request = ControllerListVolumeHealthRequest::default();
        served.csi.wait(served.csi.controller().controller_list_volume_health(request)).unwrap().entries
    };
    let storage = || {
        let request = NodeGetStorageHealthRequest::default();
        let told = served.csi.wait(served.csi.node().node_get_storage_health(request)).unwrap();
        told.backend_health.into_iter().map(|one| (one.status(), one.reason)).collect::<Vec<_>>()
    };
    for id in ["db", "other"] {
        served.create(volume(id)).unwrap();
        assert!(health(&served, id).is_empty());
    }
    assert_eq!((listed(), storage()), (vec![], vec![]));
    let device = tool::run("lvs", ["--noheadings", "-o", "lv_dm_path", "-S", "lv_name=v.db"]).unwrap();
    let suspended = Suspended::new(device.trim().to_owned());
    assert_eq!(health(&served, "db"), [(VolumeHealthErrorType::Inaccessible, "DeviceSuspended".to_owned())]);
    assert!(health(&served, "other").is_empty());
    assert_eq!(listed().into_iter().map(|ill| ill.volume_id).collect::<Vec<_>>(), ["db"]);
    drop(suspended);
    assert_eq!((health(&served, "db"), listed()), (vec![], vec![]));
    let (staging, target) = (served.path("staging"), served.path("target"));
    served.stage("db", &staging, block()).unwrap();
    served.publish(at("db", &staging, &target, block())).unwrap();
    let written = File::options().write(true).open(&target).unwrap();
    (&written).write_all(&vec![7; 60 << 20]).unwrap();
    written.sync_all().unwrap();
    drop(written);
    let full = (StorageHealthErrorType::StorageDegraded, "ThinPoolNearlyFull".to_owned());
    assert_eq!((storage(), health(&served, "db")), (vec![full], vec![]));
    assert_eq!(code(served.create(volume("more"))), Code::ResourceExhausted);
    served.unpublish("db", &target).unwrap();
    served.unstage("db", &staging).unwrap();
    for id in ["db", "other"] {
        served.delete(id).unwrap();
    }
    assert!(storage().is_empty());
}

#[test]
fn an_inline_volume_goes_with_its_pod() {
    let Some(mut served) = Served::thick() else { return };
    let (id, target) = (format!("csi-{}", "0f".repeat(32)), served.path("target"));
    let publish = |served: &Served| {
        let mut request = at(&id, Path::new(""), &target, mount("", &[]));
        for (key, value) in [("csi.storage.k8s.io/ephemeral", "true"), ("gabion.dev/size", "64Mi")] {
            request.volume_context.insert(key.into(), value.into());
        }
        served.publish(request)
    };
    publish(&served).unwrap();
    publish(&served).unwrap();
    fs::write(target.join("file"), "scratch").unwrap();
    assert_eq!(served.volumes().len(), 1);
    served.crash();
    served.unpublish(&id, &target).unwrap();
    assert!(served.volumes().is_empty() && !target.exists());
    served.unpublish(&id, &target).unwrap();
}

#[test]
fn of_many_calls_at_once_one_works_and_the_others_are_told_to_come_back() {
    let Some(served) = Served::thick() else { return };
    let socket = served.agent.socket();
    let codes: Vec<Code> = std::thread::scope(|scope| {
        let call = || {
            let csi = Csi::connect(&socket).unwrap();
            csi.wait(csi.controller().create_volume(volume("one")))
                .map_or_else(|refusal| refusal.code(), |_| Code::Ok)
        };
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(
        codes.contains(&Code::Ok) && codes.iter().all(|code| [Code::Ok, Code::Aborted].contains(code)),
        "{codes:?}"
    );
    assert_eq!(served.volumes().len(), 1);
    served.delete("one").unwrap();
}

#[test]
fn hostile_requests_change_nothing_and_no_secret_is_ever_written() {
    let Some(served) = Served::thick() else { return };
    served.create(volume("db")).unwrap();
    let before = served.volumes();
    for hostile in ["../../x".to_owned(), "a\nb".to_owned(), String::new(), "x".repeat(1 << 20)] {
        let range = |required_bytes, limit_bytes| Some(CapacityRange { required_bytes, limit_bytes });
        let mut requests = vec![volume("other"); 5];
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
        assert!(served.stage(&hostile, &served.path("staging"), mount("", &[])).is_err());
        assert!(served.stage("db", Path::new(&hostile), mount("", &[])).is_err());
        let request = at("db", &served.path("staging"), Path::new(&hostile), mount("", &[]));
        assert!(served.publish(request).is_err());
        // One that was never given out is gone already; one that cannot be is refused.
        let _ = served.delete(&hostile);
    }
    assert_eq!(served.volumes(), before);
    assert!(!served.path("staging").exists());
    served.delete("db").unwrap();
    let log = served.agent.log();
    assert!(log.contains("CreateVolume: InvalidArgument") && !log.contains(SECRET), "{log}");
    assert!(log.lines().all(|line| line.len() < 1200));
}
