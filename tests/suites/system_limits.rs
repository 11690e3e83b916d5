//! Limits of reading and writing, by calls over the socket and by what users of the volumes then get of the kernel.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use csi::proto::*;
use devices::DeviceNumber;
use rig::served::{SIZE, Served, at, block, code, volume};
use rig::tool;
use tonic::{Code, Status};

/// Where the cgroups of version 2 are.
const ROOT: &str = "/sys/fs/cgroup";

/// A cgroup like that of all pods, with pods in it.
struct Pods(PathBuf);

impl Pods {
    /// `None`, with a line that says why, where the kernel cannot limit.
    fn new(name: &str) -> Option<Self> {
        let known = fs::read_to_string(format!("{ROOT}/cgroup.controllers")).unwrap_or_default();
        if !known.split_whitespace().any(|controller| controller == "io") {
            println!("SKIPPED: {ROOT} has no io controller");
            return None;
        }
        let path = Path::new(ROOT).join(name);
        fs::create_dir(&path).unwrap();
        Some(Self(path))
    }

    fn argument(&self) -> String {
        format!("--pods-cgroup={}", self.0.display())
    }

    /// The limits of a device there.
    fn limits(&self, device: DeviceNumber) -> Option<String> {
        let begin = format!("{device} ");
        let held = fs::read_to_string(self.0.join("io.max")).unwrap();
        held.lines().find_map(|line| line.strip_prefix(&begin)).map(str::to_owned)
    }

    /// Writes so many MiB past the page cache to a device, as a process of that pod.
    fn writing(&self, pod: &str, device: &Path, mib: u32) -> Child {
        let cgroup = self.0.join(pod);
        match fs::create_dir(&cgroup) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("{error}"),
            _ => {}
        }
        let script =
            "echo 0 > \"$1/cgroup.procs\" && exec dd if=/dev/zero of=\"$2\" bs=1M count=\"$3\" oflag=direct";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(cgroup).arg(device).arg(mib.to_string());
        command.stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        for pod in fs::read_dir(&self.0).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            let _ = fs::remove_dir(pod.path());
        }
        fs::remove_dir(&self.0).unwrap();
    }
}

fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn modify(served: &Served, id: &str, pairs: &[(&str, &str)]) -> Result<(), Status> {
    let request = ControllerModifyVolumeRequest {
        volume_id: id.into(),
        mutable_parameters: parameters(pairs),
        ..Default::default()
    };
    served.csi.wait(served.csi.controller().controller_modify_volume(request)).map(drop)
}

/// Hands a volume out as a block device, and tells where, and its number.
fn handed_out(served: &Served, id: &str) -> (PathBuf, DeviceNumber) {
    let (staging, target) = (served.path(&format!("staging-{id}")), served.path(&format!("target-{id}")));
    served.stage(id, &staging, block()).unwrap();
    served.publish(at(id, &staging, &target, block())).unwrap();
    let number = DeviceNumber::from_rdev(fs::metadata(&target).unwrap().rdev());
    (target, number)
}

fn taken_back(served: &Served, id: &str) {
    served.unpublish(id, &served.path(&format!("target-{id}"))).unwrap();
    served.unstage(id, &served.path(&format!("staging-{id}"))).unwrap();
}

/// How long children take.
fn took(children: impl IntoIterator<Item = Child>) -> Duration {
    let start = Instant::now();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    start.elapsed()
}

#[test]
fn all_users_of_a_volume_together_get_what_it_is_limited_to_and_no_more() {
    let Some(pods) = Pods::new("gabion-rig-shared") else { return };
    let Some(served) =
        Served::with("pool: {lvm: {}}, volume: {qos: {writeIops: 100000}}", &[&pods.argument()])
    else {
        return;
    };
    let (slow, fast) = (
        CreateVolumeRequest { parameters: parameters(&[("writeBps", "4Mi")]), ..volume("slow") },
        CreateVolumeRequest { mutable_parameters: parameters(&[("writeBps", "1Gi")]), ..volume("fast") },
    );
    served.create(slow).unwrap();
    served.create(fast).unwrap();
    let ((slow, slow_number), (fast, fast_number)) =
        (handed_out(&served, "slow"), handed_out(&served, "fast"));
    assert_eq!(pods.limits(slow_number).unwrap(), "rbps=max wbps=4194304 riops=max wiops=100000");
    assert_eq!(pods.limits(fast_number).unwrap(), "rbps=max wbps=1073741824 riops=max wiops=100000");
    // Two pods, which share one volume; what is less than the limit gives them would be an error of the kernel's.
    let both = took([pods.writing("one", &slow, 6), pods.writing("two", &slow, 6)]);
    let alone = took([pods.writing("one", &fast, 12)]);
    println!("FIGURES: 12 MiB by two pods at 4 MiB/s in all {both:?}; by one at 1 GiB/s {alone:?}");
    // A tenth of a second's worth goes through at once.
    assert!(both >= Duration::from_secs(2), "two pods wrote 12 MiB in {both:?} at 4 MiB/s");
    modify(&served, "slow", &[("writeBps", "max"), ("readIops", "50")]).unwrap();
    assert_eq!(pods.limits(slow_number).unwrap(), "rbps=max wbps=max riops=50 wiops=100000");
    modify(&served, "slow", &[("writeIops", "max"), ("readIops", "max")]).unwrap();
    assert_eq!(pods.limits(slow_number), None);
    for id in ["slow", "fast"] {
        taken_back(&served, id);
        served.delete(id).unwrap();
    }
    assert_eq!(fs::read_to_string(pods.0.join("io.max")).unwrap(), "", "limits go with their devices");
}

#[test]
fn limits_follow_the_device_whatever_its_number_and_outlive_the_driver() {
    let Some(pods) = Pods::new("gabion-rig-numbers") else { return };
    let Some(mut served) = Served::with("pool: {thin: {}}", &[&pods.argument()]) else { return };
    served.create(volume("db")).unwrap();
    modify(&served, "db", &[("readBps", "1Mi"), ("writeIops", "77")]).unwrap();
    let (_, number) = handed_out(&served, "db");
    let line = "rbps=1048576 wbps=max riops=max wiops=77";
    assert_eq!(pods.limits(number).unwrap(), line);
    // What another program wrote, or an earlier driver, is put right by the next start.
    fs::write(pods.0.join("io.max"), format!("{number} rbps=max wbps=5 riops=max wiops=max")).unwrap();
    served.crash();
    assert_eq!(pods.limits(number).unwrap(), line);
    taken_back(&served, "db");
    // The device goes, and another one takes its number.
    let device = tool::run("lvs", ["--noheadings", "-o", "lv_full_name", "-S", "lv_name=v.db"]).unwrap();
    tool::run("lvchange", ["--activate", "n", device.trim()]).unwrap();
    let (major, minor) = (number.major.to_string(), number.minor.to_string());
    let taker = ["create", "taker", "--major", &major, "--minor", &minor, "--table", "0 8 zero"];
    tool::run("dmsetup", taker).unwrap();
    assert_eq!(pods.limits(number), None);
    let (_, other) = handed_out(&served, "db");
    assert_ne!(other, number);
    let (limits, of_taker) = (pods.limits(other), pods.limits(number));
    tool::run("dmsetup", ["remove", "taker"]).unwrap();
    assert_eq!((limits.as_deref(), of_taker), (Some(line), None));
    taken_back(&served, "db");
    served.delete("db").unwrap();
}

#[test]
fn where_nothing_can_be_limited_it_is_said() {
    let Some(served) =
        Served::with("pool: {lvm: {}}", &["--csi-alpha", "--pods-cgroup=/sys/fs/cgroup/not-there"])
    else {
        return;
    };
    served.create(volume("db")).unwrap();
    let health = || {
        let request = NodeGetVolumeHealthRequest { volume_id: "db".into(), ..Default::default() };
        let told = served.csi.wait(served.csi.node().node_get_volume_health(request)).unwrap();
        told.volume_health.unwrap().health_statuses.into_iter().map(|issue| issue.reason).collect::<Vec<_>>()
    };
    assert!(health().is_empty());
    modify(&served, "db", &[("readIops", "5")]).unwrap();
    assert_eq!(health(), ["QosUnavailable"]);
    let _ = handed_out(&served, "db");
    taken_back(&served, "db");
    modify(&served, "db", &[("readIops", "max")]).unwrap();
    assert!(health().is_empty());
    assert_eq!(code(modify(&served, "nobody", &[("XXX_FakeKey", "1")])), Code::NotFound);
    served.delete("db").unwrap();
}

#[test]
fn parts_of_a_device_cannot_be_limited() {
    let Some(served) = Served::with("pool: {partition: {}}", &[]) else { return };
    let limited =
        CreateVolumeRequest { mutable_parameters: parameters(&[("readIops", "5")]), ..volume("db") };
    assert_eq!(code(served.create(limited)), Code::InvalidArgument);
    assert!(served.volumes().is_empty());
    let made = served.create(volume("db")).unwrap();
    assert_eq!(made.capacity_bytes, SIZE);
    assert_eq!(code(modify(&served, "db", &[("readIops", "5")])), Code::InvalidArgument);
    served.delete("db").unwrap();
    drop(File::open(served.disk()).unwrap());
}
