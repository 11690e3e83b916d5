//! `lvm::dm` against real devices, and against `dmsetup`'s own words about them.

#![allow(clippy::unwrap_used)] // a test suite

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use devices::{Bytes, Sectors};
use lvm::Kind;
use lvm::dm::{
    Activity, CacheMode, CacheStatus, Dm, DmName, DmUuid, Fill, LegHealth, PoolMode, Slot, SnapshotStatus,
    Status, SyncAction, Target, ThinPoolStatus, ThinPoolUse, ThinStatus,
};
use lvm::thin_meta::LivePool;
use rig::lab::{Lab, Under};
use rig::{skip_unless_dm, tool};

/// Writes `mib` MiB at `seek` MiB past the page cache, to the disk when it returns.
fn write(device: &Path, seek: u64, mib: u64) -> anyhow::Result<String> {
    let to = format!("of={}", device.display());
    let (seek, count) = (format!("seek={seek}"), format!("count={mib}"));
    tool::run("dd", ["if=/dev/zero", &to, "bs=1M", &seek, &count, "oflag=direct", "conv=fsync,notrunc"])
}

fn read(device: &Path, mib: u64) {
    let from = format!("if={}", device.display());
    tool::run("dd", [&from, "of=/dev/null", "bs=1M", &format!("count={mib}"), "iflag=direct"]).unwrap();
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        sleep(Duration::from_millis(50));
    }
}

fn working(status: Option<ThinPoolStatus>) -> ThinPoolUse {
    match status {
        Some(ThinPoolStatus::Working(used)) => used,
        other => panic!("the pool does not work: {other:?}"),
    }
}

/// The lines that `dmsetup` prints of one device: start, length, target and words.
fn dmsetup(command: &str, name: &str) -> Vec<(Sectors, Sectors, String, String)> {
    let arguments: &[&str] = match command {
        "status" => &["status", "--noflush", name],
        _ => &[command, name],
    };
    let text = tool::run("dmsetup", arguments).unwrap();
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let mut number = || Sectors::new(words.next().unwrap().parse().unwrap());
        let (start, len) = (number(), number());
        let kind = words.next().unwrap().to_owned();
        (start, len, kind, words.next().unwrap_or_default().trim().to_owned())
    };
    text.lines().map(line).collect()
}

/// Compares everything that is said of every device of the lab, now that nothing changes any more.
fn compare(lab: &Lab, expected: &str) {
    let (dm, vg) = (Dm::open().unwrap(), lab.vg_uuid().unwrap());
    eventually("the legs are in sync, so that two looks see the same", || {
        let lines = dm.vg_devices(&vg).unwrap().into_iter();
        let mut lines = lines.flat_map(|device| dm.status(device.device.number).unwrap());
        lines.all(|line| !matches!(line.status, Status::Raid(raid) if !raid.is_healthy())).then_some(())
    });
    tool::run("udevadm", ["settle"]).unwrap();
    let fields = "name,uuid,major,minor,events,open,segments,suspended,readonly,tables_loaded";
    let text =
        tool::run("dmsetup", ["info", "-c", "--noheadings", "--separator", "|", "-o", fields]).unwrap();
    let list = dm.list().unwrap();
    assert_eq!(text.lines().count(), list.len());
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        let device = list.iter().find(|device| device.name.to_string() == words[0]).unwrap();
        assert_eq!(device.uuid.as_ref().map(DmUuid::to_string).unwrap_or_default(), words[1]);
        assert_eq!(device.uuid.as_ref().unwrap().lvm().unwrap().vg, vg);
        let info = dm.info(device.number).unwrap();
        let numbers = [info.number.major, info.number.minor, info.event_nr, info.open_count, info.targets];
        assert_eq!(numbers.map(|number| number.to_string()), words[2..7], "{line}");
        let theirs = (words[7] == "Suspended", words[8] == "Read-only", words[9]);
        let tables = match (info.has_live_table, info.has_inactive_table) {
            (true, false) => "Live",
            (false, true) => "Inactive",
            (true, true) => "Both",
            (false, false) => "None",
        };
        assert_eq!((info.activity != Activity::Running, info.read_only, tables), theirs, "{line}");
        kinds.extend(compare_lines(&dm, &info.name));
    }
    assert_eq!(kinds, expected.split(' ').map(str::to_owned).collect());
    let targets: BTreeSet<_> = dm.targets().unwrap().into_iter().map(|target| target.name).collect();
    assert!(targets.is_superset(&kinds), "{targets:?}");
    assert_eq!(dm.version().unwrap().major, 4);
}

/// One device's table and status, against `dmsetup`'s; the targets that it has.
fn compare_lines(dm: &Dm, name: &DmName) -> BTreeSet<String> {
    let table = dm.table(name, Slot::Live).unwrap().segments;
    let theirs = dmsetup("table", &name.to_string());
    assert_eq!(table.len(), theirs.len());
    for (ours, (start, len, kind, text)) in table.iter().zip(&theirs) {
        assert_eq!((ours.start, ours.len), (*start, *len));
        assert_eq!(ours.target, Target::parse(kind, text).unwrap(), "{name}: {kind} {text}");
        assert!(!matches!(ours.target, Target::Other { .. }), "{name}: {kind} {text}");
    }
    assert_eq!(dm.table(name, Slot::Inactive).unwrap().segments, []);
    let status = dm.status(name).unwrap();
    assert_eq!(status.len(), theirs.len());
    for (ours, (_, _, kind, text)) in status.iter().zip(dmsetup("status", &name.to_string())) {
        assert_eq!(ours.status, Status::parse(&kind, &text).unwrap(), "{name}: {kind} {text}");
        assert!(!matches!(ours.status, Status::Other { .. }), "{name}: {kind} {text}");
    }
    theirs.into_iter().map(|(_, _, kind, _)| kind).collect()
}

#[test]
fn what_is_said_of_plain_and_thin_volumes_and_snapshots_is_what_dmsetup_says() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::gib(1), Under::Loop).unwrap();
    for line in [
        "lvcreate -L 32M -n linear VG PV0",
        "lvcreate -L 32M -i 2 -n striped VG",
        "lvcreate -L 128M -T VG/pool",
        "lvcreate -V 64M -T VG/pool -n thin",
        "lvcreate -s -L 8M -n snap VG/linear",
    ] {
        lab.lvm(line).unwrap();
    }
    compare(&lab, "linear snapshot snapshot-origin striped thin thin-pool");
}

#[test]
fn what_is_said_of_raid_is_what_dmsetup_says() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(3, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 16M --type raid1 -m1 -n raid1 VG").unwrap();
    lab.lvm("lvcreate -L 16M --type raid5 -i2 -n raid5 VG").unwrap();
    compare(&lab, "linear raid");
}

#[test]
fn what_is_said_of_caches_is_what_dmsetup_says() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::gib(1), Under::Loop).unwrap();
    for line in [
        "lvcreate -L 32M -n slow VG PV0",
        "lvcreate -L 16M --type cache-pool -n fast VG PV1",
        "lvconvert --type cache --cachepool VG/fast VG/slow",
        "lvcreate -L 32M -n slower VG PV0",
        "lvcreate -an -L 16M -n faster VG PV1",
        "lvconvert --type writecache --cachevol VG/faster VG/slower",
    ] {
        lab.lvm(line).unwrap();
    }
    compare(&lab, "cache linear writecache");
}

#[test]
fn dependencies_are_what_the_table_names() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 64M -T VG/pool -n thin").unwrap();
    let (dm, vg) = (Dm::open().unwrap(), lab.vg_uuid().unwrap());
    let pool = lab.uuid("pool").unwrap();
    let table = dm.pool_table(&vg, &pool).unwrap().unwrap();
    let tpool = DmUuid::of_lvm(&vg, &pool, Some("tpool"));
    let mut deps = dm.deps(&tpool, Slot::Live).unwrap();
    deps.sort();
    let mut named = [table.metadata, table.data];
    named.sort();
    assert_eq!(deps, named);
    let hidden = dm.info(table.metadata).unwrap().uuid.unwrap().lvm().unwrap();
    assert_eq!(hidden.lv, lab.uuid("pool_tmeta").unwrap());
    let thin = DmUuid::of_lvm(&vg, &lab.uuid("thin").unwrap(), None);
    let below = dm.deps(&thin, Slot::Live).unwrap();
    assert_eq!(below, [dm.info(&tpool).unwrap().number]);
    let absent: DmName = "no-such-device".parse().unwrap();
    assert_eq!(dm.info(&absent).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(dm.table(&absent, Slot::Live).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_table_too_long_for_the_first_buffer_is_read_whole() {
    if skip_unless_dm() {
        return;
    }
    let name = format!("gabion-long-{}", std::process::id());
    let table: String = (0..1500).map(|line| format!("{} 8 zero\n", line * 8)).collect();
    tool::run("dmsetup", ["create", &name, "--table", &table]).unwrap();
    let read = Dm::open().unwrap().table(&name.parse::<DmName>().unwrap(), Slot::Live);
    let status = Dm::open().unwrap().status(&name.parse::<DmName>().unwrap());
    tool::run("dmsetup", ["remove", "--retry", &name]).unwrap();
    let read = read.unwrap();
    assert_eq!((read.segments.len(), status.unwrap().len()), (1500, 1500));
    assert_eq!(read.segments[1499].start, Sectors::new(1499 * 8));
    assert!(read.segments.iter().all(|line| line.target == Target::Zero));
}

#[test]
fn a_thin_pool_fills_by_what_is_written_and_empties_by_what_is_discarded() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -c 64k --errorwhenfull y -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 128M -T VG/pool -n thin").unwrap();
    let (dm, vg) = (Dm::open().unwrap(), lab.vg_uuid().unwrap());
    let (pool, thin) = (lab.uuid("pool").unwrap(), lab.uuid("thin").unwrap());
    let status = || working(dm.pool_status(&vg, &pool).unwrap());
    let mapped = || match dm.thin_status(&vg, &thin).unwrap().unwrap() {
        ThinStatus::Mapped { mapped, highest } => (mapped.get(), highest),
        other => panic!("{other:?}"),
    };
    let fresh = status();
    assert_eq!((fresh.data, fresh.mode), (Fill::new(0, 1024), PoolMode::ReadWrite));
    assert_eq!(fresh.transaction_id.to_string(), lab.field("pool", "transaction_id").unwrap());
    assert_eq!(mapped(), (0, None));
    assert_eq!(dm.pool_table(&vg, &pool).unwrap().unwrap().block, Sectors::new(128));

    write(&lab.node("thin"), 4, 10).unwrap();
    assert_eq!(status().data, Fill::new(160, 1024));
    assert_eq!(mapped(), (10 * 2048, Some(14 * 2048 - 1)));
    assert!(status().metadata.used() >= fresh.metadata.used());
    assert_eq!(format!("{:.2}", status().data.percent()), lab.field("pool", "data_percent").unwrap());

    tool::run("blkdiscard", [lab.node("thin")]).unwrap();
    eventually("the discard frees all blocks", || (status().data.used() == 0).then_some(()));
    assert_eq!(mapped(), (0, None));

    // Chunks that were discarded before can be had only after a commit, so the first refusal may come too early.
    let full = eventually("the pool is full", || {
        assert!(write(&lab.node("thin"), 0, 100).is_err());
        Some(status()).filter(|used| used.data.free() == 0)
    });
    assert_eq!(full.mode, PoolMode::OutOfDataSpace);
    assert!(full.data.reaches(100));
    lab.lvm("lvchange -an VG/thin VG/pool").unwrap();
    assert_eq!(dm.pool_status(&vg, &pool).unwrap(), None);
    assert_eq!(dm.thin_status(&vg, &thin).unwrap(), None);
}

#[test]
fn a_classic_snapshot_fills_and_then_is_invalid() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 32M -n origin VG").unwrap();
    lab.lvm("lvcreate -s -L 8M -n snap VG/origin").unwrap();
    let (dm, vg, snap) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("snap").unwrap());
    let status = || dm.snapshot_status(&vg, &snap).unwrap().unwrap();
    let SnapshotStatus::Valid { used: before, total, .. } = status() else { panic!("{:?}", status()) };
    assert_eq!(total, Sectors::new(8 * 2048));
    write(&lab.node("origin"), 0, 2).unwrap();
    let SnapshotStatus::Valid { used, metadata, .. } = status() else { panic!("{:?}", status()) };
    assert!(used.get() >= before.get() + 2 * 2048 && metadata <= used, "{used} {metadata}");
    write(&lab.node("origin"), 0, 16).unwrap();
    assert!(matches!(status(), SnapshotStatus::Invalid | SnapshotStatus::Overflow), "{:?}", status());
    // The origin carries no snapshot target of its own, and no merge runs.
    let origin = lab.uuid("origin").unwrap();
    assert_eq!(dm.snapshot_status(&vg, &origin).unwrap(), None);
    assert_eq!(dm.merge_status(&vg, &origin).unwrap(), None);
}

#[test]
fn a_dead_leg_shows_in_the_health_letters_although_the_sync_is_complete() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::mib(512), Under::Linear).unwrap();
    lab.lvm("lvcreate -L 64M --type raid1 -m1 -n raid VG").unwrap();
    let (dm, vg, raid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("raid").unwrap());
    let health = || dm.raid_health(&vg, &raid).unwrap().unwrap();
    eventually("both legs are in sync", || health().is_healthy().then_some(()));
    assert_eq!(health().level, "raid1");
    lab.break_disk(1).unwrap();
    write(&lab.node("raid"), 0, 8).unwrap();
    let broken = health();
    assert_eq!(broken.failed_legs(), [1]);
    assert_eq!(broken.legs, [LegHealth::InSync, LegHealth::Dead]);
    assert_eq!(broken.synced, broken.sync_end, "the ratio hides the dead leg");
    lab.mend_disk(1).unwrap();
    assert_eq!(health().failed_legs(), [1], "a leg does not come back by itself");
    lab.lvm("lvchange --refresh VG/raid").unwrap();
    eventually("the leg is back in sync", || health().is_healthy().then_some(()));
}

#[test]
fn a_new_raid_says_how_far_it_has_synced() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::gib(1), Under::Loop).unwrap();
    // At 1 MiB a second the sync is far from its end when it is looked at.
    lab.lvm("lvcreate -L 512M --type raid1 -m1 --maxrecoveryrate 1M -n raid VG").unwrap();
    let (dm, vg, raid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("raid").unwrap());
    let status = dm.raid_health(&vg, &raid).unwrap().unwrap();
    assert!(!status.is_healthy() && status.failed_legs().is_empty(), "{status:?}");
    assert!(status.synced < status.sync_end, "{status:?}");
    assert_eq!(status.sync_end, Sectors::new(512 * 2048));
    assert_eq!(status.action, Some(SyncAction::Resync));
}

#[test]
fn a_cache_counts_its_hits_and_its_dirty_blocks() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -n slow VG PV0").unwrap();
    lab.lvm("lvcreate -L 64M --type cache-pool -n fast VG PV1").unwrap();
    lab.lvm("lvconvert --type cache --cachemode writeback --cachepool VG/fast VG/slow").unwrap();
    let (dm, vg, slow) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("slow").unwrap());
    let status = || match dm.cache_status(&vg, &slow).unwrap().unwrap() {
        CacheStatus::Working(used) => used,
        other => panic!("{other:?}"),
    };
    let before = status();
    assert_eq!((before.mode, before.read_only, before.needs_check), (CacheMode::Writeback, false, false));
    for _ in 0..4 {
        read(&lab.node("slow"), 8);
    }
    write(&lab.node("slow"), 0, 4).unwrap();
    // udev reads what was written; then the counters rest.
    tool::run("udevadm", ["settle"]).unwrap();
    let after = status();
    let reads = after.read_hits + after.read_misses - before.read_hits - before.read_misses;
    assert!(reads >= 32, "four times 8 MiB in requests of at most 1 MiB: {after:?}");
    assert!(after.write_hits + after.write_misses > before.write_hits + before.write_misses, "{after:?}");
    for (field, ours) in [
        ("cache_read_hits", after.read_hits),
        ("cache_read_misses", after.read_misses),
        ("cache_total_blocks", after.cache.total()),
    ] {
        assert_eq!(lab.field("slow", field).unwrap(), ours.to_string(), "{field}");
    }
}

#[test]
fn suspended_devices_and_open_counts_are_seen() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 16M -n one VG").unwrap();
    lab.lvm("lvcreate -L 16M -n two VG").unwrap();
    let (dm, vg, one) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("one").unwrap());
    assert_eq!(dm.suspended(&vg).unwrap(), []);
    let settled = || dm.open_count(&vg, &one).unwrap().unwrap();
    eventually("udev has looked at the volume", || (settled() == 0).then_some(()));
    let held = [File::open(lab.node("one")).unwrap(), File::open(lab.node("one")).unwrap()];
    // The kernel counts the openers of the block device.
    assert_eq!(settled(), 2);
    drop(held);
    eventually("closed again", || (settled() == 0).then_some(()));

    tool::run("dmsetup", ["suspend", &lab.dm_name("one")]).unwrap();
    let table = format!("0 {} zero", 16 * 2048);
    tool::run("dmsetup", ["load", &lab.dm_name("one"), "--table", &table]).unwrap();
    let suspended = dm.suspended(&vg).unwrap();
    let uuid = DmUuid::of_lvm(&vg, &one, None);
    let inactive = dm.table(&uuid, Slot::Inactive).unwrap();
    let live = dm.table(&uuid, Slot::Live).unwrap();
    tool::run("dmsetup", ["clear", &lab.dm_name("one")]).unwrap();
    tool::run("dmsetup", ["resume", &lab.dm_name("one")]).unwrap();
    assert_eq!(suspended.len(), 1);
    assert_eq!(suspended[0].uuid, Some(uuid));
    assert_eq!((suspended[0].activity, suspended[0].has_inactive_table), (Activity::Suspended, true));
    assert_eq!((inactive.segments.len(), &inactive.segments[0].target), (1, &Target::Zero));
    assert!(matches!(live.segments[0].target, Target::Linear(_)), "{live:?}");
    assert_eq!(dm.suspended(&vg).unwrap(), []);
}

#[test]
fn a_suspended_metadata_device_is_never_opened() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -T VG/pool").unwrap();
    let (dm, vg, pool) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    // Without volumes the pool's device has the pool's own name; its uuid is the same at all times.
    LivePool::hold(&dm, &vg, &pool).unwrap().release().unwrap();
    lab.lvm("lvcreate -V 64M -T VG/pool -n thin").unwrap();
    for device in ["pool_tmeta", "pool-tpool"] {
        let name = lab.dm_name(device);
        tool::run("dmsetup", ["suspend", &name]).unwrap();
        let start = Instant::now();
        let refused = LivePool::hold(&dm, &vg, &pool).map(drop);
        let elapsed = start.elapsed();
        tool::run("dmsetup", ["resume", &name]).unwrap();
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
        assert!(error.to_string().contains("suspended"), "{error}");
        assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
    }
    LivePool::hold(&dm, &vg, &pool).unwrap().release().unwrap();
}

#[test]
fn a_move_says_how_far_it_has_come() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 200M -n moved VG PV0").unwrap();
    let (dm, vg) = (Dm::open().unwrap(), lab.vg_uuid().unwrap());
    assert_eq!(dm.moves(&vg).unwrap(), []);
    let mut command = lab.sandbox().command("pvmove");
    let mut child = command.args(["-i", "1"]).args(lab.pvs()).spawn().unwrap();
    let (device, fill) = eventually("a move is seen", || {
        let moves = dm.moves(&vg).unwrap();
        let running = child.try_wait().unwrap().is_none();
        assert!(running || !moves.is_empty(), "the move ended unseen");
        moves.into_iter().next()
    });
    assert!(device.device.name.to_string().contains("pvmove"), "{}", device.device.name);
    assert!(fill.total() > 0 && fill.used() <= fill.total(), "{fill}");
    assert!(child.wait().unwrap().success());
    assert_eq!(dm.moves(&vg).unwrap(), []);
}
