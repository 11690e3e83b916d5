//! Volumes as workloads see them, by calls over the socket: read-only, alone or with others, as block devices, with options
//! of the class and of the caller; and calls that come twice, late, or for what is not there.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use csi::proto::volume_capability::AccessMode;
use csi::proto::*;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::served::{SIZE, Served, at, block, code, mount, persistently, volume};
use rig::tool;
use tonic::Code;

/// The same use by another mode.
fn by_mode(mode: i32, capability: VolumeCapability) -> VolumeCapability {
    VolumeCapability { access_mode: Some(AccessMode { mode }), ..capability }
}

/// How often something is mounted at a path.
fn mounts_at(path: &Path) -> usize {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.split(' ').nth(4) == path.to_str()).count()
}

/// The options of what is mounted at a path.
fn options_at(path: &Path) -> String {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.split(' ').nth(4) == path.to_str()).unwrap();
    format!("{} {}", line.split(' ').nth(5).unwrap(), line.rsplit(' ').next().unwrap())
}

#[test]
fn a_volume_is_seen_read_only_by_one_and_written_by_others() {
    let Some(served) = Served::thick() else { return };
    let (staging, target) = (served.path("staging"), |name: &str| served.path(name));
    served.create(volume("db")).unwrap();
    // The modes of ReadWriteOnce and of ReadWriteOncePod.
    let (many, one) = (by_mode(7, mount("", &[])), by_mode(6, mount("", &[])));
    served.stage("db", &staging, many.clone()).unwrap();
    served.stage("db", &staging, many.clone()).unwrap();
    for name in ["a", "b"] {
        served.publish(at("db", &staging, &target(name), many.clone())).unwrap();
    }
    fs::write(target("a").join("file"), "a").unwrap();
    fs::write(target("b").join("file"), "b").unwrap();
    let reading = |name: &str, readonly| NodePublishVolumeRequest {
        readonly,
        ..at("db", &staging, &target(name), many.clone())
    };
    served.publish(reading("r", true)).unwrap();
    served.publish(reading("r", true)).unwrap();
    assert_eq!(fs::read(target("r").join("file")).unwrap(), b"b");
    let refused = fs::write(target("r").join("file"), "r").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(code(served.publish(reading("r", false))), Code::AlreadyExists);
    assert_eq!(code(served.publish(reading("a", true))), Code::AlreadyExists);
    assert_eq!(
        code(served.publish(at("db", &staging, &target("alone"), one.clone()))),
        Code::FailedPrecondition
    );
    assert!(!target("alone").exists());
    for name in ["b", "r", "a"] {
        served.unpublish("db", &target(name)).unwrap();
    }
    served.publish(at("db", &staging, &target("alone"), one.clone())).unwrap();
    served.publish(at("db", &staging, &target("alone"), one.clone())).unwrap();
    assert_eq!(code(served.publish(at("db", &staging, &target("other"), one))), Code::FailedPrecondition);
    assert_eq!((mounts_at(&target("alone")), mounts_at(&target("other"))), (1, 0));
    served.unpublish("db", &target("alone")).unwrap();
    served.unstage("db", &staging).unwrap();
    served.stage("db", &staging, by_mode(2, mount("", &[]))).unwrap();
    assert!(fs::write(staging.join("file"), "r").is_err());
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
}

#[test]
fn a_block_device_is_never_formatted_and_never_put_over_a_directory() {
    let Some(mut served) = Served::thick() else { return };
    let (staging, target) = (served.path("staging"), served.path("new/target"));
    let request = CreateVolumeRequest { volume_capabilities: vec![block()], ..volume("raw") };
    served.create(request).unwrap();
    served.stage("raw", &staging, block()).unwrap();
    fs::create_dir_all(&target).unwrap();
    let refused = served.publish(at("raw", &staging, &target, block())).unwrap_err();
    assert!([Code::InvalidArgument, Code::AlreadyExists].contains(&refused.code()), "{refused:?}");
    assert!(target.is_dir() && mounts_at(&target) == 0);
    fs::remove_dir_all(served.path("new")).unwrap();
    // The parent is made, too.
    served.publish(at("raw", &staging, &target, block())).unwrap();
    served.publish(at("raw", &staging, &target, block())).unwrap();
    assert!(fs::metadata(&target).unwrap().file_type().is_block_device());
    assert_eq!(mounts_at(&target), 1);
    let mut device = File::options().write(true).open(&target).unwrap();
    device.write_all(b"kept").unwrap();
    device.sync_all().unwrap();
    drop(device);
    assert_eq!(code(served.stage("raw", &served.path("fs"), mount("", &[]))), Code::FailedPrecondition);
    served.crash();
    served.unpublish("raw", &target).unwrap();
    assert!(!target.exists() && mounts_at(&target) == 0);
    served.unstage("raw", &staging).unwrap();
    served.stage("raw", &staging, block()).unwrap();
    served.publish(at("raw", &staging, &target, block())).unwrap();
    let mut kept = [0; 4];
    File::open(&target).unwrap().read_exact(&mut kept).unwrap();
    assert_eq!(&kept, b"kept");
    served.unpublish("raw", &target).unwrap();
    served.unstage("raw", &staging).unwrap();
    served.delete("raw").unwrap();
}

#[test]
fn options_of_the_class_and_of_the_caller_are_kept() {
    let spec = "volume: {mkfsOptions: [\"-N\", \"2048\"], mountOptions: [nodev], rootMode: \"0750\"}, pool: {lvm: {}}";
    let Some(served) = Served::with(spec, &[]) else { return };
    let (staging, target) = (served.path("staging"), served.path("target"));
    served.create(volume("db")).unwrap();
    for (bad, expected) in [
        (mount("", &["noatime", "bogus"]), vec![Code::InvalidArgument, Code::Internal]),
        (mount("ntfs", &[]), vec![Code::InvalidArgument]),
    ] {
        let refused = served.stage("db", &staging, bad).unwrap_err();
        assert!(expected.contains(&refused.code()), "{refused:?}");
        assert_eq!(mounts_at(&staging), 0);
    }
    let used = mount("", &["noatime"]);
    served.stage("db", &staging, used.clone()).unwrap();
    served.publish(at("db", &staging, &target, used.clone())).unwrap();
    let options = options_at(&staging);
    assert!(options.contains("noatime") && options.contains("nodev"), "{options}");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o750);
    let request = NodeGetVolumeStatsRequest {
        volume_id: "db".into(),
        volume_path: target.display().to_string(),
        ..Default::default()
    };
    let stats = served.csi.wait(served.csi.node().node_get_volume_stats(request)).unwrap();
    let inodes = stats.usage.iter().find(|usage| usage.unit == 2).unwrap();
    assert_eq!(inodes.total, 2048);
    // What a user set stays.
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    served.unpublish("db", &target).unwrap();
    served.unstage("db", &staging).unwrap();
    // Made as ext4; what carries one filesystem is never made another.
    assert_eq!(code(served.stage("db", &staging, mount("xfs", &[]))), Code::InvalidArgument);
    served.stage("db", &staging, used).unwrap();
    assert_eq!(fs::metadata(&staging).unwrap().permissions().mode() & 0o7777, 0o700);
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
    let node = served.csi.wait(served.csi.node().node_get_capabilities(NodeGetCapabilitiesRequest {}));
    let told = format!("{:?}", node.unwrap());
    assert!(!told.contains("VolumeMountGroup"), "the kubelet sets fsGroup: {told}");
}

#[test]
fn a_target_is_mounted_once_and_never_through_a_link() {
    let Some(served) = Served::thick() else { return };
    let (staging, target) = (served.path("staging"), served.path("target"));
    served.create(volume("db")).unwrap();
    served.stage("db", &staging, mount("", &[])).unwrap();
    for _ in 0..3 {
        served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
    }
    assert_eq!(mounts_at(&target), 1);
    served.unpublish("db", &target).unwrap();
    assert_eq!(mounts_at(&target), 0);
    let (link, elsewhere) = (served.path("link"), served.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &link).unwrap();
    assert!(served.publish(at("db", &staging, &link, mount("", &[]))).is_err());
    assert_eq!((mounts_at(&link), mounts_at(&elsewhere)), (0, 0));
    assert!(link.is_symlink());
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
}

#[test]
fn a_name_that_is_taken_is_told_from_the_same_wish_again() {
    let Some(served) = Served::with("pool: {thin: {}}", &[]) else { return };
    let sized = |required_bytes, limit_bytes| CreateVolumeRequest {
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes }),
        ..volume("db")
    };
    let codes = [
        sized(SIZE, 0),
        sized(SIZE, 0),
        // The same number of extents.
        sized(SIZE - 1, 0),
        sized(2 * SIZE, 0),
        CreateVolumeRequest { volume_capabilities: vec![mount("xfs", &[])], ..sized(SIZE, 0) },
        CreateVolumeRequest {
            volume_content_source: Some(VolumeContentSource {
                r#type: Some(volume_content_source::Type::Volume(volume_content_source::VolumeSource {
                    volume_id: "db".into(),
                })),
            }),
            ..sized(SIZE, 0)
        },
    ]
    .map(|request| served.create(request).map_or_else(|refusal| refusal.code(), |_| Code::Ok));
    let taken = Code::AlreadyExists;
    assert_eq!(codes[..5], [Code::Ok, Code::Ok, Code::Ok, taken, taken]);
    // Its own source: another volume of that name is asked for, or one that copies itself.
    assert!([taken, Code::Aborted].contains(&codes[5]), "{:?}", codes[5]);
    assert_eq!(served.volumes().len(), 1);
    served.delete("db").unwrap();
}

#[test]
fn a_caller_who_went_away_or_whose_driver_died_finds_one_volume() {
    let Some(mut served) = Served::thick() else { return };
    served.create_within(volume("late"), Duration::from_millis(30)).unwrap_err();
    assert_eq!(persistently(|| served.create(volume("late"))).unwrap().volume_id, "late");
    let socket = served.agent.socket();
    let call = std::thread::spawn(move || {
        let csi = Csi::connect(&socket).unwrap();
        csi.wait(csi.controller().create_volume(volume("killed")))
    });
    std::thread::sleep(Duration::from_millis(100));
    served.crash();
    // It may have been answered before.
    let _ = call.join().unwrap();
    assert_eq!(persistently(|| served.create(volume("killed"))).unwrap().volume_id, "killed");
    let names = tool::run("lvs", ["--noheadings", "-o", "lv_name"]).unwrap();
    assert_eq!(names.split_whitespace().collect::<Vec<_>>(), ["v.killed", "v.late"]);
    for id in ["late", "killed"] {
        served.delete(id).unwrap();
    }
}

#[test]
fn what_is_gone_is_deleted_and_what_may_only_be_away_is_not() {
    let Some(served) = Served::thick() else { return };
    served.create(volume("db")).unwrap();
    assert_eq!(code(served.delete("")), Code::InvalidArgument);
    for unknown in ["other", "Ungültig/../..", "pvc-6c3f3d1e-0000-4000-8000-000000000000"] {
        served.delete(unknown).unwrap();
    }
    let vg = tool::run("vgs", ["--noheadings", "-o", "vg_name"]).unwrap();
    tool::run("lvremove", ["--yes", &format!("{}/v.db", vg.trim())]).unwrap();
    served.delete("db").unwrap();
    served.delete("db").unwrap();
    let disk = served.into_disk().unwrap();
    // The same node with a second class whose disk has not come back yet.
    let class = |name: &str, disk: &str| {
        format!(
            "---\napiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: {name}}}\nspec: {{devices: \
             {{paths: [{disk}]}}, pool: {{lvm: {{}}}}}}\n"
        )
    };
    let classes = class("rig", &disk.path().display().to_string()) + &class("away", "/dev/disk/by-id/away");
    let mut agent = Agent::start(&classes, &[]).unwrap();
    let csi = Csi::connect(&agent.socket()).unwrap();
    let request = DeleteVolumeRequest { volume_id: "other".into(), ..Default::default() };
    assert_eq!(code(csi.wait(csi.controller().delete_volume(request))), Code::Unavailable);
    agent.stop().unwrap();
    tool::run("vgchange", ["--activate", "n"]).unwrap();
}

#[test]
fn a_partition_and_its_refusals() {
    let Some(served) = Served::with("pool: {partition: {}}", &[]) else { return };
    served.create(volume("db")).unwrap();
    let (staging, target) = (served.path("staging"), served.path("target"));
    served.stage("db", &staging, mount("", &[])).unwrap();
    served.publish(at("db", &staging, &target, mount("", &[]))).unwrap();
    fs::write(target.join("file"), "kept").unwrap();
    assert_eq!(code(served.snapshot("cut", "db")), Code::FailedPrecondition);
    assert_eq!(served.expand("db", 2 * SIZE).unwrap(), 2 * SIZE);
    assert_eq!(code(served.delete("db")), Code::FailedPrecondition);
    assert_eq!(fs::read(target.join("file")).unwrap(), b"kept");
    served.unpublish("db", &target).unwrap();
    served.unstage("db", &staging).unwrap();
    served.delete("db").unwrap();
}

#[test]
fn a_published_partition_keeps_its_number_whatever_is_written_to_its_disk() {
    let Some(mut served) = Served::with("pool: {partition: {}}", &[]) else { return };
    let (staging, target) = (served.path("staging"), served.path("target"));
    let disk = served.disk().display().to_string();
    // What udevd does after anybody wrote to the whole disk.
    let read_again = || tool::run("blockdev", ["--rereadpt", &disk]).is_ok();
    served.create(CreateVolumeRequest { volume_capabilities: vec![block()], ..volume("raw") }).unwrap();
    served.stage("raw", &staging, block()).unwrap();
    served.publish(at("raw", &staging, &target, block())).unwrap();
    let published = fs::metadata(&target).unwrap().rdev();
    assert!(!read_again());
    served.create(volume("other")).unwrap();
    served.crash();
    assert!(!read_again());
    served.delete("other").unwrap();
    served.publish(at("raw", &staging, &target, block())).unwrap();
    assert_eq!((fs::metadata(&target).unwrap().rdev(), mounts_at(&target)), (published, 1));
    served.unpublish("raw", &target).unwrap();
    let pause = || std::thread::sleep(Duration::from_millis(100));
    assert!((0..50).any(|_| read_again() || (pause(), false).1), "it is still kept open");
    served.unstage("raw", &staging).unwrap();
    served.delete("raw").unwrap();
}
