//! What `gabion node` does beside its callers: thin pools grow before they are full, disks join that come later, filesystems
//! are trimmed, and other classes are taken; and the memory that it takes.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::io::{Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume};
use csi::proto::*;
use devices::Bytes;
use devices::filesystem::FsType;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::projects::Place;
use rig::{Disk, Footprint, eventually, skip_unless_dm, tool, virtual_disks};

const PATIENCE: Duration = Duration::from_secs(60);
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Bytes of a disk of a test's own.
const SIZE: Bytes = Bytes::gib(2);
/// Capacity of one of the disks, as far as its first GiBs go.
const DISK: i64 = 19 * GIB;

/// The place of a disk among the machine's, and how its serial number is written.
const JOINS: u32 = 6;
const STAYS_OUT: u32 = 8;

/// A driver with these classes; its volumes are taken out of the kernel with it.
struct Running {
    agent: Agent,
    csi: Csi,
    /// Gone after the driver and its volumes.
    disks: Vec<Disk>,
}

impl Running {
    fn new(classes: &str, more: &[&str], disks: Vec<Disk>) -> Self {
        let agent = Agent::start(classes, more).unwrap();
        let csi = Csi::connect(&agent.socket()).unwrap();
        Self { agent, csi, disks }
    }

    /// On so many disks of its own, for which `DISK0`, `DISK1`, … stand. `None`, with a line that says why, where there is
    /// no device-mapper.
    fn with_disks(count: usize, classes: &str, more: &[&str]) -> Option<Self> {
        if skip_unless_dm() {
            return None;
        }
        let disks: Vec<Disk> =
            (0..count).map(|_| Disk::partitioned(SIZE, Bytes::new(512)).unwrap()).collect();
        let text = disks.iter().enumerate().fold(classes.to_owned(), |text, (at, disk)| {
            text.replace(&format!("DISK{at}"), &disk.path().display().to_string())
        });
        Some(Self::new(&text, more, disks))
    }

    fn create(&self, name: &str, class: &str, bytes: i64) -> Volume {
        let request = CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(CapacityRange { required_bytes: bytes, limit_bytes: 0 }),
            volume_capabilities: vec![VolumeCapability {
                access_mode: Some(AccessMode { mode: 1 }),
                access_type: Some(AccessType::Block(BlockVolume {})),
            }],
            parameters: [("gabion.dev/device-class".to_owned(), class.to_owned())].into(),
            ..Default::default()
        };
        self.csi.wait(self.csi.controller().create_volume(request)).unwrap().volume.unwrap()
    }

    fn delete(&self, name: &str) {
        let request = DeleteVolumeRequest { volume_id: name.into(), ..Default::default() };
        self.csi.wait(self.csi.controller().delete_volume(request)).unwrap();
    }

    fn capacity(&self, class: &str) -> i64 {
        let parameters = [("gabion.dev/device-class".to_owned(), class.to_owned())].into();
        let request = GetCapacityRequest { parameters, ..Default::default() };
        self.csi.wait(self.csi.controller().get_capacity(request)).unwrap().available_capacity
    }

    /// What the command says, which has the agent do it.
    fn gabion(&self, arguments: &[&str]) -> String {
        let endpoint = format!("unix://{}", self.agent.socket().display());
        let mut command = Command::new(std::env::var_os("GABION_BIN").unwrap());
        command.args(arguments).env("CSI_ENDPOINT", endpoint).env("GABION_CONFIG", self.classes());
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    }

    /// The file with its classes.
    fn classes(&self) -> PathBuf {
        self.agent.directory().join("classes.yaml")
    }

    fn told(&self, what: &str) {
        eventually(what, PATIENCE, || self.agent.log().contains(what));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.agent.log());
        }
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = tool::run("umount", [self.agent.directory().join("mounted"), "/run/gabion/mounts/db".into()]);
        let _ = self.agent.stop();
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

fn class(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n---\n"
    )
}

fn write(device: &Path, mib: i64) {
    let words = [format!("of={}", device.display()), format!("count={mib}")];
    tool::run("dd", ["if=/dev/zero", &words[0], &words[1], "bs=1M", "oflag=direct", "conv=fsync"]).unwrap();
}

fn skip() -> bool {
    let skip = virtual_disks().is_empty();
    if skip {
        println!("SKIPPED: there are no virtual disks outside of the machine");
    }
    skip
}

/// Asks the rig for something.
fn wish(what: &str) {
    println!("\nRIG: {what}");
    stdout().flush().unwrap();
}

fn is_there(disk: u32) -> bool {
    let serial = format!("rig-{disk:02}");
    tool::run("lsblk", ["--nodeps", "--noheadings", "--output", "SERIAL"])
        .unwrap()
        .lines()
        .any(|line| line.trim() == serial)
}

/// As if a volume had been trimmed for the last time eight days ago. Gives the record of that.
fn trimmed_long_ago(volume: &str) -> PathBuf {
    let record = Path::new("/var/lib/gabion/trimmed").join(volume);
    std::fs::create_dir_all(record.parent().unwrap()).unwrap();
    tool::run("touch", ["--date=8 days ago", record.to_str().unwrap()]).unwrap();
    record
}

fn is_fresh(record: &Path) -> bool {
    let Ok(there) = record.metadata() else { return false };
    there.modified().unwrap().elapsed().unwrap_or_default() < PATIENCE * 2
}

#[test]
fn a_thin_pool_grows_before_it_is_full_and_nobody_who_writes_notices() {
    let thin =
        "devices: {paths: [DISK0]}, pool: {thin: {sizePercent: 10, autoExtend: {threshold: 60, by: 50}}}";
    let Some(running) = Running::with_disks(1, &class("thin", thin), &[]) else { return };
    running.create("db", "thin", GIB);
    // The pool has a tenth of 2 GiB.
    write(Path::new("/dev/gabion-thin/v.db"), 320);
    running.told("thin pool gabion-thin/pool: its data were");
    running.told("grown from");
    let log = running.agent.log();
    assert!(!log.contains("could not"), "{log}");
    running.delete("db");
}

#[test]
fn filesystems_are_trimmed_when_they_are_due_and_what_cannot_be_trimmed_is_left_alone() {
    let directories = Place::new(FsType::Ext4, &[]).unwrap();
    let classes = class("thin", "devices: {paths: [DISK0]}, pool: {thin: {}}")
        + &class(
            "dirs",
            &format!("pool: {{directory: {{path: {}, quota: None}}}}", directories.root().display()),
        );
    let Some(mut running) = Running::with_disks(1, &classes, &[]) else { return };
    let place = running.agent.directory().join("mounted");
    running.gabion(&["volume", "create", "db", "--size=64MiB", "--class=thin"]);
    running.gabion(&["volume", "create", "site", "--size=1MiB", "--class=dirs"]);
    running.gabion(&["volume", "mount", "db", place.to_str().unwrap()]);
    write(&place.join("file"), 32);
    tool::run("sync", ["--file-system", place.to_str().unwrap()]).unwrap();
    std::fs::remove_file(place.join("file")).unwrap();
    let records = ["db", "site"].map(trimmed_long_ago);
    running.agent.crash().unwrap();
    running.csi = Csi::connect(&running.agent.socket()).unwrap();
    running.told("trimmed volume db: ");
    eventually("both were looked at", PATIENCE, || records.iter().all(|record| is_fresh(record)));
    let log = running.agent.log();
    assert!(!log.contains("trim volume site") && !log.contains("could not"), "{log}");
    running.gabion(&["volume", "unmount", "db", place.to_str().unwrap()]);
    for volume in ["db", "site"] {
        running.delete(volume);
    }
}

#[test]
fn other_classes_are_taken_from_the_file_without_a_restart_and_those_of_other_nodes_are_not_served() {
    let selecting = |operator: &str| {
        format!(
            "nodeSelector: {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: {operator}, values: [a]}}]}}]}}"
        )
    };
    let here = format!("devices: {{paths: [DISK0]}}, pool: {{lvm: {{}}}}, {}", selecting("In"));
    let elsewhere = format!("devices: {{paths: [DISK1]}}, pool: {{lvm: {{}}}}, {}", selecting("NotIn"));
    let classes = class("here", &here) + &class("elsewhere", &elsewhere);
    let Some(running) = Running::with_disks(2, &classes, &["--node-label=zone=a"]) else { return };
    assert_eq!(running.capacity("elsewhere"), 0);
    let is_blank = |disk: &Disk| tool::run("blkid", ["--probe".as_ref(), disk.path().as_os_str()]).is_err();
    assert_eq!(running.disks.iter().map(is_blank).collect::<Vec<_>>(), [false, true]);
    let before = running.capacity("here");
    running.create("db", "here", 64 * MIB);

    let text = std::fs::read_to_string(running.classes()).unwrap();
    // What may not change keeps everything as it is.
    std::fs::write(running.classes(), text.replacen("lvm: {}", "thin: {}", 1)).unwrap();
    running.told("the classes stay as they were");
    assert!(running.capacity("here") > before / 2);
    // What may is taken beside the volumes that are there.
    std::fs::write(running.classes(), text.replacen("spec: {", "spec: {reserve: 50%, ", 1)).unwrap();
    running.told("took other classes");
    assert!(running.capacity("here") < before * 6 / 10, "half of it is kept free");
    running.delete("db");
}

#[test]
fn the_agent_takes_little_memory_also_right_after_changes() {
    let classes = class("thin", "devices: {paths: [DISK0]}, pool: {thin: {sizePercent: 50}}")
        + &class("thick", "devices: {sharedWith: thin}, pool: {lvm: {}}");
    let Some(running) = Running::with_disks(1, &classes, &[]) else { return };
    let footprint = || Footprint::of(running.agent.pid()).unwrap();
    let begun = footprint();
    for class in ["thin", "thick"] {
        running.create(class, class, 64 * MIB);
    }
    running.delete("thick");
    let changed = footprint();
    running.delete("thin");
    println!("FIGURES: PSS of the agent: {begun} when its pools are made, {changed} right after changes");
    assert!(begun.own < Bytes::mib(20) && changed.own < Bytes::mib(20), "{begun}, {changed}");
    // LVM locked all its memory when it suspended devices, and that would be 75 MiB if nobody gave it back.
    let workers = u64::try_from(changed.count).unwrap();
    assert!((1..=2).contains(&workers), "{changed}");
    assert!(changed.children < Bytes::mib(workers * 16), "{changed}");
}

mod seconds_180 {
    use super::*;

    #[test]
    fn a_disk_that_comes_later_joins_a_class_that_looks_for_disks_and_no_other() {
        if skip() {
            return;
        }
        for disk in [JOINS, STAYS_OUT] {
            wish(&format!("unplug {disk}"));
            eventually("the disk is gone", PATIENCE, || !is_there(disk));
        }
        let selecting = |serials: &str, discovery: &str| {
            format!(
                "devices: {{match: [{{serial: \"{serials}\"}}], discovery: {discovery}}}, pool: {{lvm: {{}}}}"
            )
        };
        let classes = class("grows", &selecting("rig-0[67]", "Dynamic"))
            + &class("stays", &selecting("rig-0[58]", "Static"));
        let running = Running::new(&classes, &[], Vec::new());
        for class in ["grows", "stays"] {
            let one = running.capacity(class);
            assert!((DISK..2 * DISK).contains(&one), "{class}: {one}");
        }
        running.create("before", "grows", 64 * MIB);
        wish(&format!("plug {STAYS_OUT}"));
        eventually("the disk is back", PATIENCE, || is_there(STAYS_OUT));
        wish(&format!("plug {JOINS}"));
        eventually("the class has both disks", PATIENCE, || running.capacity("grows") > 2 * DISK);
        running.told("volume group gabion-grows: extended by 1 disks");
        assert!(running.capacity("stays") < 2 * DISK);
        // The pools are others now; volumes of before are there, and new ones are made.
        running.create("after", "grows", 64 * MIB);
        for volume in ["before", "after"] {
            running.delete(volume);
        }
    }
}
