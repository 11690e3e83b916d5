//! How fast the monitor tells of disks that come, go, grow and change: a hundred times each.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

#[path = "device_events/rounds.rs"]
mod rounds;

use rig::WithoutUdevd;
use rounds::{NVME, Rounds, SCSI, Udevd, VIRTIO, skip_unless_pluggable};

const ROUNDS: usize = 100;

fn scsi(udevd: Udevd, of: &str) {
    let mut rounds = Rounds::new();
    for _ in 0..ROUNDS {
        rounds.replug(SCSI, udevd);
        rounds.resize(SCSI);
        rounds.divide("vda");
    }
    rounds.finish(of);
}

mod minutes_20 {
    use super::*;

    #[test]
    fn a_hundred_rounds_with_udevd() {
        if !skip_unless_pluggable() {
            scsi(Udevd::Runs, "with udevd, SCSI");
        }
    }

    #[test]
    fn a_hundred_rounds_without_udevd() {
        if !skip_unless_pluggable() {
            let _without = WithoutUdevd::begin().unwrap();
            scsi(Udevd::Absent, "without udevd, SCSI");
        }
    }

    #[test]
    fn a_hundred_rounds_of_virtio_and_nvme() {
        if skip_unless_pluggable() {
            return;
        }
        for (disk, of) in [(VIRTIO, "with udevd, virtio"), (NVME, "with udevd, NVMe")] {
            let mut rounds = Rounds::new();
            for _ in 0..ROUNDS {
                rounds.replug(disk, Udevd::Runs);
            }
            rounds.finish(of);
        }
    }
}
