//! What the monitor says of disks that come, go, grow and change, how fast, and that nothing is lost in a burst.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "device_events/rounds.rs"]
mod rounds;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use devices::Bytes;
use devices::discovery::{Discovery, DiskType};
use devices::monitor::{Event, Monitor};
use rig::disk::virtual_disks;
use rig::{WithoutUdevd, tool};
use rounds::{NVME, Rounds, SCSI, Udevd, VIRTIO, skip_unless_pluggable};

/// How many disks come at once, and go at once: a thousand events together.
const BURST: usize = 500;

#[test]
fn pulled_plugged_and_resized_disks_are_told_of_while_udevd_runs() {
    if skip_unless_pluggable() {
        return;
    }
    let mut rounds = Rounds::new();
    for _ in 0..5 {
        rounds.replug(SCSI, Udevd::Runs);
        rounds.resize(SCSI);
        rounds.divide("vda");
    }
    rounds.finish("with udevd, SCSI");
}

#[test]
fn pulled_plugged_and_resized_disks_are_told_of_without_udevd() {
    if skip_unless_pluggable() {
        return;
    }
    let _without = WithoutUdevd::begin().unwrap();
    let mut rounds = Rounds::new();
    for _ in 0..5 {
        rounds.replug(SCSI, Udevd::Absent);
        rounds.resize(SCSI);
        rounds.divide("vda");
    }
    rounds.finish("without udevd, SCSI");
}

#[test]
fn virtio_and_nvme_disks_are_told_of_too() {
    if skip_unless_pluggable() {
        return;
    }
    for (disk, name) in [(VIRTIO, "with udevd, virtio"), (NVME, "with udevd, NVMe")] {
        let mut rounds = Rounds::new();
        for _ in 0..2 {
            // The emulated NVMe controller tells nobody that a namespace grew.
            if disk != NVME {
                rounds.resize(disk);
            }
            rounds.replug(disk, Udevd::Runs);
        }
        rounds.finish(name);
    }
}

/// Makes and removes many disks of memory while nobody reads the monitor's messages; what is told afterwards must
/// be whole.
fn burst(buffer: Bytes) -> u64 {
    let _without = WithoutUdevd::begin().unwrap();
    let mut monitor = Monitor::with_buffer(Discovery::host(), buffer).unwrap();
    let before = monitor.disks().count();
    let all: BTreeSet<String> = (0..BURST).map(|number| format!("ram{number}")).collect();
    let start = Instant::now();
    tool::run("modprobe", ["brd", &format!("rd_nr={BURST}"), "rd_size=8"]).unwrap();
    let made = start.elapsed();
    let added = drain(&mut monitor, |event| matches!(event, Event::Added(_)));
    assert_eq!(added, all, "each is told of");
    let disks = monitor.disks().filter(|disk| disk.kind == DiskType::Ram);
    assert_eq!(disks.filter(|disk| disk.size == Bytes::kib(8)).count(), BURST);
    let start = Instant::now();
    tool::run("rmmod", ["brd"]).unwrap();
    let gone = start.elapsed();
    let removed = drain(&mut monitor, |event| matches!(event, Event::Removed(_)));
    assert_eq!(removed, all, "each is told of");
    assert_eq!(monitor.disks().count(), before);
    println!(
        "\nFIGURES: {BURST} disks came within {made:.0?} and went within {gone:.0?}; with a buffer of {buffer}: {} overflows",
        monitor.overflows()
    );
    monitor.overflows()
}

/// The names of the disks of all events of one kind; each may come once.
fn drain(monitor: &mut Monitor, is: impl Fn(&Event) -> bool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    while let Some(event) = monitor.wait(Some(Duration::from_millis(500))).unwrap() {
        if is(&event) {
            let name = &event.disk().name;
            assert!(names.insert(name.clone()), "{name} is told of twice");
        }
    }
    names
}

#[test]
fn a_burst_of_a_thousand_events_loses_nothing() {
    if virtual_disks().is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return;
    }
    assert_eq!(burst(Bytes::mib(8)), 0);
}

#[test]
fn a_burst_that_overflows_the_buffer_loses_nothing() {
    if virtual_disks().is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return;
    }
    assert!(burst(Bytes::kib(4)) > 0);
}
