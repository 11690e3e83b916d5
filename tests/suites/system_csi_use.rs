//! Volumes as workloads see them, by calls over the socket: read-only, alone or with others, as block devices, with options
//! of the class and of the caller; and calls that come twice, late, or for what is not there.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use csi::proto::volume_capability::AccessMode;
use csi::proto::*;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::served::{SIZE, Served, at, block, code, mount, persistently, secrets, volume};
use rig::{eventually, skip_unless_installed, tool};
use rustix::process::{Pid, Signal, kill_process};
use tonic::Code;

/// The same use by another mode.
fn by_mode(mode: i32, capability: VolumeCapability) -> VolumeCapability {
    VolumeCapability { access_mode: Some(AccessMode { mode }), ..capability }
}

/// The text of a class on a disk.
fn class(name: &str, disk: &Path, pool: &str) -> String {
    format!(
        "---\napiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: {name}}}\nspec: {{devices: {{paths: \
         [{}]}}, {pool}}}\n",
        disk.display()
    )
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

/// CSI-11.
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
    grows_as_a_device(&served, "raw", &target);
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

/// EXP-03, EXP-05: no filesystem grows, and the node's part is answered although nobody was told to ask for it.
fn grows_as_a_device(served: &Served, id: &str, target: &Path) {
    let capacity_range = Some(CapacityRange { required_bytes: 2 * SIZE, limit_bytes: 0 });
    let request = ControllerExpandVolumeRequest {
        volume_id: id.into(),
        capacity_range,
        volume_capability: Some(block()),
        secrets: secrets(),
    };
    let grown = served.csi.wait(served.csi.controller().controller_expand_volume(request)).unwrap();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (2 * SIZE, false));
    let request = NodeExpandVolumeRequest {
        volume_id: id.into(),
        volume_path: target.display().to_string(),
        capacity_range,
        ..Default::default()
    };
    for _ in 0..2 {
        let answer = served.csi.wait(served.csi.node().node_expand_volume(request.clone())).unwrap();
        assert_eq!(answer.capacity_bytes, 2 * SIZE);
    }
    let end = File::open(target).unwrap().seek(SeekFrom::End(0)).unwrap();
    assert_eq!(i64::try_from(end), Ok(2 * SIZE));
}

/// CSI-13.
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

/// CSI-09.
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

/// CSI-05.
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

/// CSI-03.
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

/// CSI-07.
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
    served.create(volume("lost")).unwrap();
    let disk = served.into_disk().unwrap();
    // The same node with a second class whose disk has not come back yet.
    let pool = "pool: {lvm: {}}";
    let classes = class("rig", disk.path(), pool) + &class("away", Path::new("/dev/disk/by-id/away"), pool);
    let mut agent = Agent::start(&classes, &[]).unwrap();
    let csi = Csi::connect(&agent.socket()).unwrap();
    let delete = |csi: &Csi, id: &str| {
        let request = DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
        csi.wait(csi.controller().delete_volume(request)).map(drop)
    };
    assert_eq!(code(delete(&csi, "other")), Code::Unavailable);
    agent.stop().unwrap();
    // The same node installed anew, with a blank disk: what was on it is provably gone.
    tool::run("vgremove", ["--yes", "--force", vg.trim()]).unwrap();
    tool::run("pvremove", [&disk.path().display().to_string()]).unwrap();
    let mut agent = Agent::start(&class("rig", disk.path(), pool), &[]).unwrap();
    let csi = Csi::connect(&agent.socket()).unwrap();
    for _ in 0..2 {
        delete(&csi, "lost").unwrap();
    }
    agent.stop().unwrap();
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

/// SEC-01: what a caller wrote is refused or quoted, and never becomes a word of a command, a path elsewhere, or memory.
#[test]
fn nothing_that_a_caller_wrote_reaches_a_command_or_another_path() {
    let Some(served) = Served::thick() else { return };
    if skip_unless_installed(&["strace"]) {
        return;
    }
    served.create(volume("db")).unwrap();
    let (staging, passwd) = (served.path("staging"), fs::read("/etc/passwd").unwrap());
    served.stage("db", &staging, mount("", &[])).unwrap();
    let trace = Trace::of(served.agent.pid(), &served.path("exec"));
    let before = resident(served.agent.pid());
    let huge = "x".repeat(1 << 20);
    for hostile in ["--config=x", "-f", "../../etc", "a;reboot", "$(id)", "a\nb", "a\0b", &huge] {
        let mut request = volume("other");
        request.parameters.insert("gabion.dev/device-class".into(), hostile.into());
        assert_eq!(code(served.create(request)), Code::InvalidArgument, "{hostile:.20}");
        let request =
            CreateVolumeRequest { volume_capabilities: vec![mount(hostile, &[])], ..volume("other") };
        assert_eq!(code(served.create(request)), Code::InvalidArgument, "{hostile:.20}");
        for flags in [vec![hostile], vec!["remount,suid,bind=/"], vec!["noatime", hostile]] {
            let refused = code(served.stage("db", &served.path("other"), mount("", &flags)));
            assert_eq!(refused, Code::InvalidArgument, "{flags:.20?}");
        }
        let refused = served.stage(hostile, &served.path("other"), mount("", &[])).unwrap_err();
        assert!([Code::InvalidArgument, Code::NotFound].contains(&refused.code()), "{refused:?}");
    }
    for path in ["/etc/passwd", "/etc/../etc/passwd", "etc", "/proc/self/root/etc/passwd"] {
        served.publish(at("db", &staging, Path::new(path), mount("", &[]))).unwrap_err();
        let _ = served.unpublish("db", Path::new(path));
        assert_eq!(mounts_at(Path::new(path)), 0, "{path}");
    }
    assert_eq!(fs::read("/etc/passwd").unwrap(), passwd);
    let grown = resident(served.agent.pid()).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more memory");
    // What shows that the trace sees commands at all.
    served.create(volume("second")).unwrap();
    served.stage("second", &served.path("other"), mount("", &[])).unwrap();
    let seen = trace.end();
    assert!(seen.contains("mkfs.ext4"), "{seen}");
    for hostile in
        ["config=x", "\"-f\"", "../etc", "reboot", "$(id)", "a\\nb", "xxxxxxxx", "remount", "passwd"]
    {
        assert!(!seen.contains(hostile), "{hostile}: {seen}");
    }
    for (id, place) in [("db", staging), ("second", served.path("other"))] {
        served.unstage(id, &place).unwrap();
        served.delete(id).unwrap();
    }
    let options = "volume: {mkfsOptions: [\"-d /dev/sda\"]}, pool: {lvm: {}}";
    let refused = Agent::start(&class("rig", served.disk(), options), &[]).unwrap_err().to_string();
    assert!(refused.contains("spec.volume.mkfsOptions"), "{refused}");
}

/// The commands that a process and its children start.
struct Trace {
    strace: Child,
    file: PathBuf,
}

impl Trace {
    fn of(pid: u32, file: &Path) -> Self {
        let strace = Command::new("strace")
            .args(["-f", "-q", "-s", "65536", "-e", "trace=execve", "-o"])
            .arg(file)
            .args(["-p", &pid.to_string()])
            .spawn()
            .unwrap();
        let traced =
            || fs::read_to_string(format!("/proc/{pid}/status")).unwrap().contains("TracerPid:\t0\n");
        eventually("the trace begins", Duration::from_secs(20), || !traced());
        Self { strace, file: file.to_owned() }
    }

    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.strace), Signal::INT).unwrap();
        self.strace.wait().unwrap();
        fs::read_to_string(self.file).unwrap()
    }
}

/// What a process has in memory, in KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
