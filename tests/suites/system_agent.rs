//! What `gabion node` does beside its callers: disks join that come later.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::io::{Write as _, stdout};
use std::time::Duration;

use csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume};
use csi::proto::*;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::{eventually, tool, virtual_disks};

const PATIENCE: Duration = Duration::from_secs(60);
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Capacity of one of the disks, as far as its first GiBs go.
const DISK: i64 = 19 * GIB;

/// The place of a disk among the machine's, and how its serial number is written.
const JOINS: u32 = 6;
const STAYS_OUT: u32 = 8;

/// A driver with these classes; its volumes are taken out of the kernel with it.
struct Running {
    agent: Agent,
    csi: Csi,
}

impl Running {
    /// `DISK0`, `DISK1`, … stand for the spare disks.
    fn new(classes: &str, more: &[&str]) -> Self {
        let disks = virtual_disks();
        let text = disks.iter().enumerate().fold(classes.to_owned(), |text, (at, disk)| {
            text.replace(&format!("DISK{at}"), &disk.display().to_string())
        });
        let agent = Agent::start(&text, more).unwrap();
        let csi = Csi::connect(&agent.socket()).unwrap();
        Self { agent, csi }
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
        let _ = self.agent.stop();
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

fn class(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n---\n"
    )
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
        let running = Running::new(&classes, &[]);
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
