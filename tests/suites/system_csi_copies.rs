//! Snapshots, restores and clones of thick volumes over the socket: whole copies, which take time, on a disk that is slow.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::proto::*;
use devices::Bytes;
use rig::csi_client::Csi;
use rig::served::{SIZE, Served, at, code, mount, persistently, volume};
use rig::throttle::Throttle;
use rig::{eventually, tool};
use tonic::Code;

/// At this pace the copy of a volume takes eight seconds.
const PACE: Bytes = Bytes::mib(8);

fn from(name: &str, source: Type) -> CreateVolumeRequest {
    CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource { r#type: Some(source) }),
        ..volume(name)
    }
}

fn from_snapshot(name: &str, snapshot_id: &str) -> CreateVolumeRequest {
    from(name, Type::Snapshot(SnapshotSource { snapshot_id: snapshot_id.into() }))
}

fn from_volume(name: &str, volume_id: &str) -> CreateVolumeRequest {
    from(name, Type::Volume(VolumeSource { volume_id: volume_id.into() }))
}

/// A volume that is in use, with a file that says `first`.
fn in_use(served: &Served) {
    served.create(volume("db")).unwrap();
    let (staging, target) = (served.path("staging"), served.path("target"));
    served.stage("db", &staging, mount("", &[])).unwrap();
    served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
    write(served, "first");
}

fn write(served: &Served, text: &str) {
    let file = served.path("target").join("file");
    fs::write(&file, text.repeat(100_000)).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
}

/// What the file on a volume says, which is staged for that.
fn content(served: &Served, id: &str) -> String {
    let staging = served.path("elsewhere");
    served.stage(id, &staging, mount("", &[])).unwrap();
    let text = fs::read_to_string(staging.join("file")).unwrap();
    served.unstage(id, &staging).unwrap();
    text[..6].trim_end_matches('f').to_owned()
}

fn away(served: &Served) {
    served.unpublish("db", &served.path("target")).unwrap();
    served.unstage("db", &served.path("staging")).unwrap();
}

#[test]
fn a_snapshot_is_ready_when_its_copy_is_and_outlives_a_killed_driver() {
    let Some(mut served) = Served::thick() else { return };
    let Some(slow) = Throttle::of(served.disk()).unwrap() else { return };
    let before = served.room();
    in_use(&served);
    slow.limit(PACE).unwrap();
    let cut = served.snapshot("cut", "db").unwrap();
    write(&served, "second");
    assert!(!cut.ready_to_use && cut.size_bytes == SIZE, "{cut:?}");
    assert_eq!(served.snapshot("cut", "db").unwrap(), cut);
    assert_eq!(served.snapshots(), std::slice::from_ref(&cut));
    assert_eq!(code(served.expand("db", 2 * SIZE)), Code::Aborted);
    assert_eq!(code(served.delete("db")), Code::FailedPrecondition);
    let start = Instant::now();
    let refused = served.create_within(from_snapshot("restored", "cut"), Duration::from_secs(2));
    assert_eq!(code(refused), Code::Unavailable);
    assert!((1.5..2.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
    served.crash();
    assert!(!served.snapshots()[0].ready_to_use);
    // Unmounted, but still copied.
    away(&served);
    assert_eq!(code(served.delete("db")), Code::Aborted);
    let socket = served.agent.socket();
    thread::scope(|scope| {
        let patient = scope.spawn(|| {
            let csi = Csi::connect(&socket).unwrap();
            csi.wait(csi.controller().create_volume(from_snapshot("restored", "cut")))
        });
        thread::sleep(Duration::from_secs(1));
        assert!(!patient.is_finished() && !served.snapshots()[0].ready_to_use);
        drop(slow);
        let restored = patient.join().unwrap().unwrap().volume.unwrap();
        assert_eq!(restored.capacity_bytes, SIZE);
    });
    assert_eq!(served.snapshots(), [Snapshot { ready_to_use: true, ..cut }]);
    assert_eq!(content(&served, "restored"), "first");
    assert_eq!(content(&served, "db"), "second");
    assert_eq!(served.expand("db", 2 * SIZE).unwrap(), 2 * SIZE);
    // A second restore, when the source is gone.
    persistently(|| served.delete("db")).unwrap();
    served.create(from_snapshot("again", "cut")).unwrap();
    served.delete_snapshot("cut").unwrap();
    assert_eq!(content(&served, "again"), "first");
    for id in ["restored", "again"] {
        served.delete(id).unwrap();
    }
    assert_eq!(served.room(), before);
}

#[test]
fn a_clone_goes_on_when_its_caller_went_away_and_its_source_can_be_used_meanwhile() {
    let Some(served) = Served::thick() else { return };
    let Some(slow) = Throttle::of(served.disk()).unwrap() else { return };
    let before = served.room();
    in_use(&served);
    slow.limit(PACE).unwrap();
    let refused = code(served.create_within(from_volume("clone", "db"), Duration::from_secs(2)));
    assert!([Code::Cancelled, Code::DeadlineExceeded].contains(&refused), "{refused:?}");
    assert_eq!(code(served.create(from_volume("clone", "db"))), Code::Aborted);
    assert_eq!(code(served.expand("db", 2 * SIZE)), Code::Aborted);
    assert_eq!(served.volumes().len(), 1, "what is not complete is not listed");
    let (staging, other) = (served.path("staging"), served.path("other"));
    // As soon as the temporary snapshot is cut.
    persistently(|| served.publish(at("db", &staging, &other, mount("", &[])))).unwrap();
    write(&served, "second");
    served.unpublish("db", &other).unwrap();
    assert_eq!(code(served.expand("db", 2 * SIZE)), Code::Aborted);
    drop(slow);
    let clone = persistently(|| served.create(from_volume("clone", "db"))).unwrap();
    assert_eq!(clone.content_source, from_volume("", "db").volume_content_source);
    assert_eq!(content(&served, "clone"), "first");
    away(&served);
    for id in ["db", "clone"] {
        served.delete(id).unwrap();
    }
    assert_eq!(served.room(), before);
}

/// SNAP-07: one clear error for each call, nothing left, and nothing that is tried again and again.
fn without_the_module(served: &Served) {
    let blocked = Path::new("/run/modprobe.d/gabion-test.conf");
    fs::create_dir_all("/run/modprobe.d").unwrap();
    fs::write(blocked, "install dm_snapshot /bin/false\ninstall dm-snapshot /bin/false\n").unwrap();
    let unloaded = tool::run("modprobe", ["-r", "dm_snapshot"]);
    let refused = served.snapshot("cut", "db").unwrap_err();
    fs::remove_file(blocked).unwrap();
    unloaded.unwrap();
    assert!(refused.message().contains("dm_snapshot"), "{refused:?}");
    assert!(served.snapshots().is_empty());
    let names = tool::run("lvs", ["--noheadings", "-o", "lv_name"]).unwrap();
    assert_eq!(names.trim(), "v.db");
}

#[test]
fn a_snapshot_and_a_clone_that_are_given_up_leave_nothing() {
    let Some(mut served) = Served::thick() else { return };
    let Some(slow) = Throttle::of(served.disk()).unwrap() else { return };
    let before = served.room();
    in_use(&served);
    without_the_module(&served);
    slow.limit(PACE).unwrap();
    served.snapshot("cut", "db").unwrap();
    served.delete_snapshot("cut").unwrap();
    served.delete_snapshot("cut").unwrap();
    assert!(served.snapshots().is_empty());
    served.create_within(from_volume("clone", "db"), Duration::from_secs(1)).unwrap_err();
    served.crash();
    drop(slow);
    // Nobody asks for it again.
    eventually("the source is free again", Duration::from_secs(20), || served.expand("db", 2 * SIZE).is_ok());
    assert_eq!(served.volumes().len(), 1);
    away(&served);
    served.delete("db").unwrap();
    assert_eq!(served.room(), before);
}
