//! The reader of thin metadata on running pools, against the thin-provisioning tools on the same held state.

#![allow(clippy::unwrap_used)] // a test suite

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use devices::Bytes;
use lvm::Kind;
use lvm::dm::{Dm, DmUuid, ThinStatus};
use lvm::thin_meta::{Change, Chunks, Device, Difference, LivePool, Root, ThinId, ThinMetadata};
use rig::lab::{Lab, Under};
use rig::{skip_unless_dm, skip_unless_installed, tool};

const CHUNK: u64 = 64 << 10;

/// Writes one byte into each of `count` chunks that a fixed sequence chooses from 4,096 (xorshift).
fn scatter(device: &Path, seed: u64, count: usize) {
    let file = OpenOptions::new().write(true).open(device).unwrap();
    let mut state = seed;
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all_at(&[1], (state % 4096) * CHUNK).unwrap();
    }
    file.sync_all().unwrap();
}

/// A pool with a volume `thin` and its two snapshots `s1` and `s2`, all different.
fn pool() -> Lab {
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 512M -c 64k -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 256M -T VG/pool -n thin").unwrap();
    scatter(&lab.node("thin"), 1, 1500);
    lab.lvm("lvcreate -s -n s1 VG/thin").unwrap();
    scatter(&lab.node("thin"), 2, 200);
    let (range, device) = (["-o", "16777216", "-l", "33554432"], lab.node("thin"));
    tool::run("blkdiscard", range.into_iter().chain([device.to_str().unwrap()])).unwrap();
    lab.lvm("lvcreate -s -n s2 VG/thin").unwrap();
    lab
}

fn thin_id(lab: &Lab, lv: &str) -> ThinId {
    ThinId::new(lab.field(lv, "thin_id").unwrap().parse().unwrap()).unwrap()
}

/// The attributes of one element, which the tools write one a line.
fn attributes(line: &str) -> BTreeMap<&str, u64> {
    let pairs = line.split(' ').filter_map(|word| word.split_once("=\""));
    pairs.filter_map(|(name, rest)| Some((name, rest.split('"').next()?.parse().ok()?))).collect()
}

fn thin_delta(metadata: &Path, left: ThinId, right: ThinId, held: &[&str]) -> Vec<Change> {
    let (left, right) = (left.to_string(), right.to_string());
    let arguments = ["--snap1", &left, "--snap2", &right, metadata.to_str().unwrap()];
    let text = tool::run("thin_delta", held.iter().chain(&arguments)).unwrap();
    let change = |line: &str| {
        let difference = match line.trim().split_once(' ')?.0 {
            "<different" => Difference::Differs,
            "<left_only" => Difference::LeftOnly,
            "<right_only" => Difference::RightOnly,
            _ => return None,
        };
        let of = attributes(line);
        Some(Change { begin: Chunks::new(of["begin"]), len: Chunks::new(of["length"]), difference })
    };
    text.lines().filter_map(change).collect()
}

fn changes(metadata: &ThinMetadata<Device>, left: ThinId, right: ThinId) -> Vec<Change> {
    metadata.changes(left, right).unwrap().map(Result::unwrap).collect()
}

fn skip() -> bool {
    skip_unless_dm() || skip_unless_installed(&["thin_delta", "thin_ls"])
}

#[test]
fn changes_of_a_running_pool_are_those_of_thin_delta_whatever_is_written_meanwhile() {
    if skip() {
        return;
    }
    let lab = pool();
    let (dm, vg, uuid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    let [thin, one, two] = ["thin", "s1", "s2"].map(|lv| thin_id(&lab, lv));
    let held = LivePool::hold(&dm, &vg, &uuid).unwrap();
    let before = changes(held.metadata(), one, two);
    // The volume goes on, its metadata with it; what is held stays.
    scatter(&lab.node("thin"), 3, 300);
    let metadata = lab.node("pool_tmeta");
    for (left, right) in [(one, two), (two, one), (one, thin), (two, thin)] {
        let ours = changes(held.metadata(), left, right);
        assert_eq!(ours, thin_delta(&metadata, left, right, &["-m"]), "{left} and {right}");
    }
    assert_eq!(changes(held.metadata(), one, two), before);
    assert_eq!(changes(held.metadata(), two, thin), [], "held before the last writes");
    let kinds: Vec<_> = before.iter().map(|change| change.difference).collect();
    assert!(kinds.contains(&Difference::Differs), "{before:?}");
    assert!(kinds.contains(&Difference::LeftOnly), "{before:?}");
    held.release().unwrap();
    let held = LivePool::hold(&dm, &vg, &uuid).unwrap();
    assert_ne!(changes(held.metadata(), two, thin), [], "held after the last writes");
}

#[test]
fn volumes_of_a_running_pool_are_those_of_thin_ls_and_of_the_kernel() {
    if skip() {
        return;
    }
    let lab = pool();
    let (dm, vg, uuid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    let held = LivePool::hold(&dm, &vg, &uuid).unwrap();
    let columns = "DEV,MAPPED_BLOCKS,TRANSACTION,CREATE_TIME,SNAP_TIME";
    let node = lab.node("pool_tmeta");
    let text = tool::run("thin_ls", ["-m", "--no-headers", "-o", columns, node.to_str().unwrap()]).unwrap();
    let listed: Vec<Vec<u64>> = text
        .lines()
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    let metadata = held.metadata();
    let thins: Vec<_> = metadata.devices().map(Result::unwrap).collect();
    assert_eq!((thins.len(), listed.len()), (3, 3));
    for (thin, listed) in thins.iter().zip(&listed) {
        let ours = [u64::from(thin.id.get()), thin.mapped.get(), thin.transaction_id];
        assert_eq!((&ours[..], u64::from(thin.created)), (&listed[..3], listed[3]));
        assert_eq!(u64::from(thin.snapshotted), listed[4]);
        let mapped: u64 = metadata.mapped(thin.id).unwrap().map(|range| range.unwrap().len.get()).sum();
        assert_eq!(mapped, thin.mapped.get());
    }
    let lv = lab.uuid("thin").unwrap();
    let Some(ThinStatus::Mapped { mapped, .. }) = dm.thin_status(&vg, &lv).unwrap() else { panic!() };
    let own = thins.iter().find(|thin| thin.id == thin_id(&lab, "thin")).unwrap();
    assert_eq!(mapped.to_bytes(), own.mapped.to_bytes(metadata.chunk_size()));
    assert_eq!(metadata.transaction_id().to_string(), lab.field("pool", "transaction_id").unwrap());
}

#[test]
fn a_pool_holds_one_state_and_lets_it_go_when_the_guard_is_dropped_or_lost() {
    if skip() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -T VG/pool").unwrap();
    let (dm, vg, uuid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    let tpool = DmUuid::of_lvm(&vg, &uuid, Some("tpool"));
    let held = LivePool::hold(&dm, &vg, &uuid).unwrap();
    assert_eq!(LivePool::hold(&dm, &vg, &uuid).unwrap_err().kind(), Kind::Busy);
    drop(held);
    // A process that dies releases nothing.
    std::mem::forget(dm.hold_metadata(&tpool).unwrap());
    assert_eq!(LivePool::hold(&dm, &vg, &uuid).unwrap_err().kind(), Kind::Busy);
    assert!(dm.release_metadata(&tpool).unwrap());
    assert!(!dm.release_metadata(&tpool).unwrap());
    LivePool::hold(&dm, &vg, &uuid).unwrap().release().unwrap();
    lab.lvm("lvchange -an VG/pool").unwrap();
    assert_eq!(LivePool::hold(&dm, &vg, &uuid).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn the_metadata_of_an_inactive_pool_are_read_from_their_volume() {
    if skip() {
        return;
    }
    let lab = pool();
    let [one, two] = ["s1", "s2"].map(|lv| thin_id(&lab, lv));
    let data = lab.field("pool", "data_percent").unwrap();
    lab.lvm("lvchange -an VG/thin VG/pool").unwrap();
    lab.lvm("lvchange -ay VG/pool_tmeta").unwrap();
    let node = lab.node("pool_tmeta");
    let metadata = ThinMetadata::read(Device::open(&node).unwrap(), Root::Current).unwrap();
    assert_eq!(changes(&metadata, one, two), thin_delta(&node, one, two, &[]));
    assert_eq!(format!("{:.2}", metadata.data().percent()), data);
    assert!(!metadata.needs_check());
    let held = ThinMetadata::read(Device::open(&node).unwrap(), Root::Held).unwrap_err();
    assert_eq!(held.kind(), Kind::NotFound);
    drop(metadata);
    lab.lvm("lvchange -an VG/pool_tmeta").unwrap();
}
