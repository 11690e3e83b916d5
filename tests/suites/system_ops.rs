//! Operations end to end on a kernel with device-mapper, filesystems with data on them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::loopdev::Attach;
use lvm::dm::{Dm, WhenFull};
use lvm::ops::{
    AfterDetach, CacheMode, Content, Group, Integrity, Layout, MoveEnd, NewGroup, NewPool, NewSnapshot,
    NewThin, NewThinSnapshot, NewVolume, OnRemove, PoolSize, Scrub, SizeRange,
};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, Error, Kind, LvName, Space, Tag, VgName};
use rig::filesystem::{format, signatures};
use rig::{Disk, Faulty, Handle, Mounted, device_paths, skip_unless_dm, tool, workers};

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn at_least(size: Bytes) -> SizeRange {
    SizeRange::at_least(size)
}

fn volume(name: &str, size: Bytes) -> NewVolume {
    NewVolume::new(lv(name), at_least(size))
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> Kind {
    result.expect_err("it should have been refused").kind()
}

/// A group `v` with its disks and its handle. What is active in it is deactivated when the test ends.
struct Fixture {
    group: Group,
    handle: Handle,
    disks: Vec<Disk>,
}

impl Fixture {
    fn new(disks: usize, size: Bytes) -> Result<Self> {
        let disks: Vec<Disk> = (0..disks).map(|_| Disk::new(size)).collect::<Result<_>>()?;
        let refs: Vec<&Disk> = disks.iter().collect();
        let handle = Handle::active(&refs)?;
        let new = NewGroup::new(VgName::new("v")?, device_paths(&refs)?);
        let group = handle.lvm.create_group(&new)?.into_inner();
        Ok(Self { group, handle, disks })
    }

    fn device(&self, index: usize) -> Result<DevicePath> {
        Ok(DevicePath::new(self.disks[index].path())?)
    }

    /// Runs words as one command of the same workers, for what no operation does.
    fn raw(&self, words: &[&str]) -> Result<Vec<String>> {
        workers::must(self.handle.lvm.workers().context("no pool")?, words)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Err(error) = self.group.deactivate() {
            eprintln!("deactivate: {error:#}");
        }
    }
}

/// A group `v` on disks that can fail.
struct FaultyFixture {
    group: Group,
    // The handle's directories and the disks go after the group has been deactivated.
    handle: Handle,
    disks: Vec<Faulty>,
}

impl FaultyFixture {
    fn new(disks: usize, size: Bytes) -> Result<Self> {
        let disks: Vec<Faulty> = (0..disks).map(|_| Faulty::over(Disk::new(size)?)).collect::<Result<_>>()?;
        let paths: Vec<DevicePath> =
            disks.iter().map(|disk| Ok(DevicePath::new(disk.path())?)).collect::<Result<_>>()?;
        let handle = Handle::on(paths.clone(), Activation::Udev, |builder| builder)?;
        let group = handle.lvm.create_group(&NewGroup::new(VgName::new("v")?, paths))?.into_inner();
        Ok(Self { group, handle, disks })
    }

    fn device(&self, index: usize) -> Result<DevicePath> {
        Ok(DevicePath::new(self.disks[index].path())?)
    }
}

impl Drop for FaultyFixture {
    fn drop(&mut self) {
        for disk in &self.disks {
            if let Err(error) = disk.recover() {
                eprintln!("recover: {error:#}");
            }
        }
        if let Err(error) = self.group.deactivate() {
            eprintln!("deactivate: {error:#}");
        }
        let _ = &self.handle;
    }
}

fn is_active(group: &Group, name: &str) -> Result<bool> {
    let seen = group.look()?;
    let lv = seen.lv(name).context("no such volume")?;
    Ok(Dm::open()?.lv_info(&seen.uuid, &lv.uuid)?.is_some())
}

/// Waits until the kernel has synchronised a RAID volume.
fn synchronised(group: &Group, name: &str) -> Result<()> {
    let seen = group.look()?;
    let uuid = seen.lv(name).context("no such volume")?.uuid;
    for _ in 0..600 {
        let health = Dm::open()?.raid_health(&seen.uuid, &uuid)?.context("not active")?;
        if health.is_healthy() && health.synced == health.sync_end {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    anyhow::bail!("{name} was not in step after two minutes")
}

#[test]
fn a_volume_with_a_filesystem_grows_while_it_is_mounted_and_ends_erased() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(400))?;
    let group = &fixture.group;
    let made = group.create_volume(&volume("db", Bytes::mib(64)))?.into_inner();
    assert_eq!(made.tags, [Tag::new(lvm::ops::FS_NEW)?]);
    assert_eq!(signatures(&made.device)?, Vec::<String>::new());
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("before", 20)?;
    let grown = group.extend_volume(&lv("db"), at_least(Bytes::mib(203)), &[])?.into_inner();
    assert_eq!(grown.size, Bytes::mib(204));
    tool::run("resize2fs", [&made.device])?;
    mounted.write("after", 100)?;
    mounted.check("before", 20)?;
    mounted.check("after", 100)?;
    assert_eq!(kind(group.deactivate_volume(&lv("db"))), Kind::InUse);
    assert_eq!(kind(group.remove_volume(&lv("db"), OnRemove::Keep)), Kind::InUse);
    assert_eq!(kind(group.remove_volume(&lv("db"), OnRemove::Zero)), Kind::InUse);
    mounted.check("after", 100)?;
    mounted.unmount()?;
    assert!(group.deactivate_volume(&lv("db"))?.is_made());
    assert!(!group.deactivate_volume(&lv("db"))?.is_made());
    assert!(group.remove_volume(&lv("db"), OnRemove::Zero)?.is_made());
    // The same extents again, unwiped: nothing of the old volume can be read.
    let again = group.create_volume(&volume("again", Bytes::mib(204)).content(Content::Untouched))?;
    assert!(group.activate_volume(&lv("again"))?.is_made());
    assert!(!group.activate_volume(&lv("again"))?.is_made());
    let mut bytes = vec![1; 1 << 20];
    for at in 0..204 {
        File::open(&again.get().device)?.read_exact_at(&mut bytes, at << 20)?;
        ensure!(bytes.iter().all(|byte| *byte == 0), "old content at {at} MiB");
    }
    Ok(())
}

/// LVM-01 and LVM-03: neither an old filesystem nor two bytes near the end are seen on a new volume.
#[test]
fn old_signatures_do_not_stop_a_volume_nor_survive_in_it() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(600))?;
    let group = &fixture.group;
    let old = group.create_volume(&volume("old", Bytes::mib(400)))?.into_inner();
    format("xfs", &old.device)?;
    let device = File::options().write(true).open(&old.device)?;
    device.write_all_at(b"JM", old.size.get() - 512)?;
    // A second LUKS2 header lies as far as 4 MiB into a volume.
    device.write_all_at(b"SKUL\xba\xbe\0\x02", 4 << 20)?;
    device.sync_all()?;
    drop(device);
    assert!(signatures(&old.device)?.contains(&"xfs".to_owned()));
    assert!(group.remove_volume(&lv("old"), OnRemove::Keep)?.is_made());
    let new = group.create_volume(&volume("new", Bytes::mib(400)))?.into_inner();
    assert_eq!(signatures(&new.device)?, Vec::<String>::new());
    for at in [0, 4 << 20, new.size.get() - 512] {
        let mut bytes = [1; 512];
        File::open(&new.device)?.read_exact_at(&mut bytes, at)?;
        assert_eq!(bytes, [0; 512], "at {at}");
    }
    assert_eq!(group.look()?.lvs.len(), 1);
    Ok(())
}

/// LVM-07 and RAID-03: stripes round further, and settle.
#[test]
fn striped_volumes_round_to_their_stripes_and_settle() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(4, Bytes::mib(100))?;
    let group = &fixture.group;
    let layout = Layout::Striped { stripes: 4, stripe_size: Bytes::kib(64) };
    let new = volume("s", Bytes::mib(10)).layout(layout);
    assert_eq!(group.create_volume(&new)?.get().size, Bytes::mib(16));
    assert!(!group.create_volume(&new)?.is_made());
    let grown = group.extend_volume(&lv("s"), at_least(Bytes::mib(18)), &[])?;
    assert!(grown.is_made());
    assert_eq!(grown.get().size, Bytes::mib(32));
    let seqno = group.look()?.seqno;
    assert!(!group.extend_volume(&lv("s"), at_least(Bytes::mib(18)), &[])?.is_made());
    assert_eq!(group.look()?.seqno, seqno);
    Ok(())
}

/// Makes a volume of that layout, puts data on it, finds it again and grows it.
fn a_layout_carries_data(layout: Layout, integrity: Integrity) -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let disks = usize::try_from(layout.legs())?;
    let fixture = Fixture::new(disks, Bytes::mib(100))?;
    let group = &fixture.group;
    let new = volume("r", Bytes::mib(24)).layout(layout).integrity(integrity);
    let made = group.create_volume(&new)?;
    assert!(made.is_made());
    assert!(!group.create_volume(&new)?.is_made());
    format("ext4", &made.get().device)?;
    let mounted = Mounted::new("ext4", &made.get().device)?;
    mounted.write("data", 8)?;
    let grown = group.extend_volume(&lv("r"), at_least(Bytes::mib(40)), &[]);
    match integrity {
        Integrity::None => assert!(grown?.get().size >= Bytes::mib(40)),
        _ => assert_eq!(kind(grown), Kind::Unsupported),
    }
    mounted.check("data", 8)?;
    mounted.unmount()?;
    assert!(group.remove_volume(&lv("r"), OnRemove::Keep)?.is_made());
    assert_eq!(group.look()?.lvs.len(), 0);
    Ok(())
}

const STRIPE: Bytes = Bytes::kib(64);

#[test]
fn raid_1_with_checksums_carries_data_and_is_not_extended() -> Result<()> {
    a_layout_carries_data(Layout::Raid1 { copies: 2 }, Integrity::Bitmap)
}

#[test]
fn raid_4_carries_data_and_grows() -> Result<()> {
    a_layout_carries_data(Layout::Raid4 { stripes: 2, stripe_size: STRIPE }, Integrity::None)
}

#[test]
fn raid_5_carries_data_and_grows() -> Result<()> {
    a_layout_carries_data(Layout::Raid5 { stripes: 2, stripe_size: STRIPE }, Integrity::None)
}

#[test]
fn raid_6_carries_data_and_grows() -> Result<()> {
    a_layout_carries_data(Layout::Raid6 { stripes: 3, stripe_size: STRIPE }, Integrity::None)
}

#[test]
fn raid_10_carries_data_and_grows() -> Result<()> {
    a_layout_carries_data(Layout::Raid10 { copies: 2, stripes: 2, stripe_size: STRIPE }, Integrity::None)
}

/// RAID-01: a dead leg shows in the kernel's health and not in the percentage; back again it is refreshed, lost for
/// good it is replaced, and the data are there throughout.
#[test]
fn a_raid_volume_survives_a_lost_leg_is_refreshed_and_repaired() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = FaultyFixture::new(3, Bytes::mib(200))?;
    let group = &fixture.group;
    let new = volume("m", Bytes::mib(64))
        .layout(Layout::Raid1 { copies: 2 })
        .on(fixture.device(0)?)
        .on(fixture.device(1)?);
    let made = group.create_volume(&new)?.into_inner();
    synchronised(group, "m")?;
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("first", 8)?;
    assert!(!group.repair_volume(&lv("m"), &[])?.is_made());

    fixture.disks[1].fail()?;
    mounted.write("second", 8)?;
    let seen = group.look()?;
    let health = Dm::open()?.raid_health(&seen.uuid, &made.uuid)?.context("not active")?;
    assert_eq!(health.failed_legs(), [1]);
    assert_eq!(health.synced, health.sync_end, "the percentage does not tell");
    fixture.disks[1].recover()?;
    group.refresh_volume(&lv("m"))?;
    synchronised(group, "m")?;
    mounted.check("first", 8)?;

    fixture.disks[0].fail()?;
    mounted.write("third", 8)?;
    let repaired = group.repair_volume(&lv("m"), &[fixture.device(2)?])?;
    assert!(repaired.is_made());
    synchronised(group, "m")?;
    mounted.check("first", 8)?;
    mounted.check("second", 8)?;
    mounted.check("third", 8)?;
    // Nothing lies on the lost disk any more, so the group can do without it.
    assert_eq!(kind(group.create_volume(&volume("x", Bytes::mib(4)))), Kind::MissingPv);
    assert!(group.forget_missing()?.is_made());
    assert!(group.create_volume(&volume("x", Bytes::mib(4)))?.is_made());
    group.scrub_volume(&lv("m"), Scrub::Check)?;
    mounted.unmount()
}

/// A PV is emptied while its volume is in use, a move that is given up leaves everything in place, and the extents
/// end on the other PV.
#[test]
fn extents_move_to_another_disk_while_they_are_in_use() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(2, Bytes::mib(300))?;
    let group = &fixture.group;
    let (from, to) = (fixture.device(0)?, fixture.device(1)?);
    let made = group.create_volume(&volume("db", Bytes::mib(200)).on(from.clone()))?.into_inner();
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("data", 50)?;
    let on = |group: &Group| -> Result<Vec<std::path::PathBuf>> {
        let seen = group.look()?;
        let pvs = seen.pvs_below(seen.lv("db").context("db")?);
        Ok(pvs.iter().filter_map(|pv| seen.pv(*pv)?.device.as_ref().map(|at| at.path.clone())).collect())
    };
    let end = group.move_extents(&from, &[], None, &mut |_| ControlFlow::Break(()))?;
    assert_eq!(end, MoveEnd::Aborted);
    assert_eq!(on(group)?, [from.as_path()]);
    let mut seen = Vec::new();
    let end = group.move_extents(&from, std::slice::from_ref(&to), None, &mut |progress| {
        seen.push(progress);
        ControlFlow::Continue(())
    })?;
    assert_eq!(end, MoveEnd::Moved);
    assert!(seen.iter().all(|at| at.copied <= at.total) && !seen.is_empty(), "{seen:?}");
    assert_eq!(on(group)?, [to.as_path()]);
    mounted.check("data", 50)?;
    let nothing = group.move_extents(&from, &[], None, &mut |_| ControlFlow::Continue(()))?;
    assert_eq!(nothing, MoveEnd::Nothing);
    assert!(group.reduce(&from)?.is_made());
    mounted.unmount()
}

#[test]
fn thin_volumes_snapshots_and_clones_share_a_pool() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::gib(1))?;
    let group = &fixture.group;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(400))));
    assert!(group.create_pool(&pool)?.is_made());
    assert!(!group.create_pool(&pool)?.is_made());
    // Larger than the pool: the size is virtual.
    let new = NewThin::new(lv("pool"), lv("db"), at_least(Bytes::gib(2)));
    let made = group.create_thin(&new)?.into_inner();
    assert_eq!((made.size, &made.tags[..]), (Bytes::gib(2), &[Tag::new(lvm::ops::FS_NEW)?][..]));
    assert!(!group.create_thin(&new)?.is_made());
    format("ext4", &made.device)?;
    let _ =
        group.tag_volume(&lv("db"), &[Tag::new("gabion.dev/fs=ext4")?], &[Tag::new(lvm::ops::FS_NEW)?])?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("old", 20)?;
    let snapshot = group.snapshot_thin(&NewThinSnapshot::new(lv("db"), lv("cut")))?.into_inner();
    assert_eq!(snapshot.tags, [Tag::new("gabion.dev/fs=ext4")?]);
    assert!(!is_active(group, "cut")?, "a snapshot to keep is not activated");
    mounted.write("new", 20)?;

    // A clone of the snapshot, larger than it (SNAP-03).
    let clone = NewThinSnapshot::clone_of(lv("cut"), lv("clone"), at_least(Bytes::mib(2500)));
    let clone = group.snapshot_thin(&clone)?.into_inner();
    assert_eq!(clone.size, Bytes::mib(2500));
    tool::run("e2fsck", ["-fp", &clone.device.display().to_string()])?;
    tool::run("resize2fs", [&clone.device])?;
    let cloned = Mounted::new("ext4", &clone.device)?;
    cloned.check("old", 20)?;
    ensure!(!cloned.has("new"), "the snapshot changed after the cut");
    let free = tool::run("df", ["--output=size", "-BM", &cloned.path().display().to_string()])?;
    let size: u64 = free.split_whitespace().last().context("df")?.trim_end_matches('M').parse()?;
    assert!(size > 2200, "{size} MiB");
    cloned.unmount()?;

    // Restoring needs the origin closed, uses the snapshot up, and brings the old content back.
    assert_eq!(kind(group.restore_snapshot(&lv("cut"))), Kind::InUse);
    mounted.unmount()?;
    let keep = NewThinSnapshot::new(lv("cut"), lv("kept"));
    assert!(group.snapshot_thin(&keep)?.is_made());
    let restored = group.restore_snapshot(&lv("cut"))?;
    assert_eq!(restored.name, lv("db"));
    assert_eq!(kind(group.restore_snapshot(&lv("cut"))), Kind::NotFound);
    let _ = group.activate_volume(&lv("db"))?;
    let mounted = Mounted::new("ext4", &restored.device)?;
    mounted.check("old", 20)?;
    ensure!(!mounted.has("new"), "the restored volume has what was written after the cut");
    mounted.unmount()?;

    // SNAP-05: the source goes first, and its snapshots live on.
    assert_eq!(kind(group.remove_volume(&lv("pool"), OnRemove::Keep)), Kind::InUse);
    assert!(group.remove_volume(&lv("db"), OnRemove::Keep)?.is_made());
    assert!(group.activate_volume(&lv("kept"))?.is_made());
    let kept = Mounted::new("ext4", &group.volume(&lv("kept"))?.device)?;
    kept.check("old", 20)?;
    kept.unmount()?;
    for name in ["kept", "clone"] {
        assert!(group.remove_volume(&lv(name), OnRemove::Keep)?.is_made());
    }
    assert_eq!(group.look()?.visible_lvs().count(), 1);
    assert!(group.remove_volume(&lv("pool"), OnRemove::Keep)?.is_made());
    assert_eq!(group.look()?.lvs.len(), 0);
    Ok(())
}

#[test]
fn a_pool_on_raid_legs_grows_and_survives_a_lost_disk() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = FaultyFixture::new(3, Bytes::mib(500))?;
    let group = &fixture.group;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(100))))
        .layout(Layout::Raid1 { copies: 2 })
        .tag(Tag::new("gabion")?)
        .on(fixture.device(0)?)
        .on(fixture.device(1)?);
    let made = group.create_pool(&pool)?.into_inner();
    assert_eq!(made.tags, [Tag::new("gabion")?]);
    assert!(!group.create_pool(&pool)?.is_made());
    let seen = group.look()?;
    for part in ["pool_tdata", "pool_tmeta"] {
        assert!(seen.lv(part).is_some_and(|part| part.as_raid().is_some()), "{part} is not RAID");
    }
    assert!(seen.pool_metadata_spare().is_some());
    assert!(seen.lvs.iter().all(|lv| !lv.has_tag(lvm::ops::CREATING)), "{:?}", seen.lvs);
    let thin = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(80))))?.into_inner();
    format("ext4", &thin.device)?;
    let mounted = Mounted::new("ext4", &thin.device)?;
    mounted.write("first", 20)?;
    let devices = [fixture.device(0)?, fixture.device(1)?];
    let grown = group.extend_pool(&lv("pool"), PoolSize::Data(at_least(Bytes::mib(160))), &devices)?;
    assert!(grown.is_made());
    assert_eq!(grown.get().size, Bytes::mib(160));
    assert!(group.extend_pool_metadata(&lv("pool"), Bytes::mib(8))?.is_made());
    assert!(!group.extend_pool_metadata(&lv("pool"), Bytes::mib(8))?.is_made());
    synchronised(group, "pool_tdata")?;
    synchronised(group, "pool_tmeta")?;

    fixture.disks[1].fail()?;
    mounted.write("second", 20)?;
    assert!(group.repair_volume(&lv("pool"), &[fixture.device(2)?])?.is_made());
    synchronised(group, "pool_tdata")?;
    synchronised(group, "pool_tmeta")?;
    mounted.check("first", 20)?;
    mounted.check("second", 20)?;
    mounted.unmount()
}

/// THIN-03: a full pool refuses what is new, and takes it again after it has grown.
#[test]
fn a_full_pool_refuses_new_volumes_until_it_has_grown() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(400))?;
    let group = &fixture.group;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).when_full(WhenFull::Error);
    let _ = group.create_pool(&pool)?;
    let new = |name| NewThin::new(lv("pool"), lv(name), at_least(Bytes::mib(200)));
    let made = group.create_thin(&new("a"))?.into_inner();
    let filled = fill(&made.device, 200);
    assert!(filled < 200, "a pool of 64 MiB took {filled} MiB");
    let seqno = group.look()?.seqno;
    assert_eq!(kind(group.create_thin(&new("b"))), Kind::NoSpace(Space::Data));
    let snapshot = NewThinSnapshot::new(lv("a"), lv("cut"));
    assert_eq!(kind(group.snapshot_thin(&snapshot)), Kind::NoSpace(Space::Data));
    assert_eq!(group.look()?.seqno, seqno);
    assert!(group.extend_pool(&lv("pool"), PoolSize::Data(at_least(Bytes::mib(128))), &[])?.is_made());
    assert!(group.create_thin(&new("b"))?.is_made());
    assert!(group.snapshot_thin(&snapshot)?.is_made());
    Ok(())
}

/// Writes up to so many MiB and returns how many went through.
fn fill(device: &Path, mib: u64) -> u64 {
    let Ok(file) = File::options().write(true).open(device) else { return 0 };
    let block = vec![0xa5; 1 << 20];
    (0..mib)
        .take_while(|at| file.write_all_at(&block, at << 20).and_then(|()| file.sync_data()).is_ok())
        .count() as u64
}

/// THIN-05: with disagreeing transaction ids nothing is changed, and other pools work.
#[test]
fn a_pool_with_a_wrong_transaction_id_is_left_alone() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(600))?;
    let group = &fixture.group;
    for name in ["bad", "good"] {
        let _ = group.create_pool(&NewPool::new(lv(name), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    }
    for name in ["a", "b"] {
        let _ = group.create_thin(&NewThin::new(lv("bad"), lv(name), at_least(Bytes::mib(64))))?;
    }
    group.deactivate()?;
    let backup = fixture.handle.workers().path("edited");
    let file = backup.display().to_string();
    fixture.raw(&["vgcfgbackup", "-f", &file, "v"])?;
    let text = std::fs::read_to_string(&backup)?;
    let edited = text.replacen("transaction_id = 2\n", "transaction_id = 0\n", 1);
    assert_ne!(text, edited);
    std::fs::write(&backup, edited)?;
    fixture.raw(&["vgcfgrestore", "--force", "-f", &file, "v"])?;
    let seqno = group.look()?.seqno;
    let new = NewThin::new(lv("bad"), lv("c"), at_least(Bytes::mib(64)));
    for _ in 0..3 {
        let error = group.create_thin(&new).expect_err("the ids disagree");
        assert_eq!(error.kind(), Kind::Inconsistent, "{error:#}");
        let text = format!("{error:#}");
        assert!(text.contains('2') && text.contains('0'), "{text}");
    }
    assert_eq!(group.look()?.seqno, seqno);
    assert!(group.create_thin(&NewThin::new(lv("good"), lv("d"), at_least(Bytes::mib(64))))?.is_made());
    Ok(())
}

/// THIN-07: a share of the group is reached once and then settles; THIN-01: a pool that takes the whole group still
/// takes volumes.
#[test]
fn a_pool_sized_as_a_share_settles() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    for percent in [60, 99, 100] {
        let fixture = Fixture::new(1, Bytes::gib(1))?;
        let group = &fixture.group;
        let pool = NewPool::new(lv("pool"), PoolSize::Share(percent));
        assert!(group.create_pool(&pool)?.is_made(), "{percent}");
        let seen = group.look()?;
        let taken = seen.total_extents().get() - seen.free_extents().get();
        let share = seen.total_extents().get() * u64::from(percent) / 100;
        assert!(taken <= share && taken + 1 >= share, "{percent}: {taken} of {share}");
        for _ in 0..20 {
            assert!(!group.create_pool(&pool)?.is_made());
            assert!(!group.extend_pool(&lv("pool"), PoolSize::Share(percent), &[])?.is_made());
        }
        assert_eq!(group.look()?.seqno, seen.seqno);
        let thin = NewThin::new(lv("pool"), lv("t"), at_least(Bytes::gib(5)));
        assert!(group.create_thin(&thin)?.is_made());
        assert!(group.remove_volume(&lv("t"), OnRemove::Keep)?.is_made());
    }
    Ok(())
}

/// THIN-09: a pool goes up and down under udev many times.
#[test]
fn a_pool_is_activated_and_deactivated_again_and_again() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(64))))?;
    for round in 0..15 {
        group.deactivate().with_context(|| format!("round {round}"))?;
        assert_eq!(Dm::open()?.vg_devices(&group.uuid())?.len(), 0, "round {round}");
        group.activate().with_context(|| format!("round {round}"))?;
        assert!(is_active(group, "t")?, "round {round}");
    }
    Ok(())
}

/// A device that the pool has already under a new volume's number is found out and handed to nobody.
#[test]
fn old_data_under_a_new_thin_number_are_never_handed_out() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("first"), at_least(Bytes::mib(16))))?;
    // What a restored backup of the metadata leaves: a device in the pool that the group does not know.
    tool::run("dmsetup", ["message", "v-pool-tpool", "0", "create_thin 2"])?;
    tool::run("dmsetup", ["create", "stale", "--table", "0 32768 thin /dev/mapper/v-pool-tpool 2"])?;
    File::options().write(true).open("/dev/mapper/stale")?.write_all_at(b"secret of another tenant", 0)?;
    tool::run("sync", ["/dev/mapper/stale"])?;
    tool::run("dmsetup", ["remove", "--retry", "stale"])?;
    let new = NewThin::new(lv("pool"), lv("second"), at_least(Bytes::mib(16)));
    let error = group.create_thin(&new).expect_err("the number is taken");
    assert_eq!(error.kind(), Kind::Inconsistent, "{error:#}");
    assert!(!is_active(group, "second")?);
    let kept = group.volume(&lv("second"))?;
    assert_eq!(kept.tags, [Tag::new(lvm::ops::STALE)?]);
    assert_eq!(group.remove_unfinished()?, []);
    // Another name gets another number, and is blank.
    assert!(group.create_thin(&NewThin::new(lv("pool"), lv("third"), at_least(Bytes::mib(16))))?.is_made());
    Ok(())
}

#[test]
fn classic_snapshots_hold_their_origin_and_give_its_content_back() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(600))?;
    let group = &fixture.group;
    let made = group.create_volume(&volume("db", Bytes::mib(100)))?.into_inner();
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("old", 10)?;
    let new = NewSnapshot::new(lv("db"), lv("cut"), at_least(Bytes::mib(60)));
    assert!(group.snapshot(&new)?.is_made());
    assert!(!group.snapshot(&new)?.is_made());
    mounted.write("new", 10)?;
    let grown = group.extend_volume(&lv("db"), at_least(Bytes::mib(200)), &[]);
    assert_eq!(kind(grown), Kind::InUse);
    assert_eq!(kind(group.remove_volume(&lv("db"), OnRemove::Keep)), Kind::InUse);
    assert_eq!(kind(group.restore_snapshot(&lv("cut"))), Kind::InUse);
    mounted.unmount()?;
    group.restore_snapshot(&lv("cut"))?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.check("old", 10)?;
    ensure!(!mounted.has("new"), "the restored volume has what was written after the cut");
    mounted.unmount()?;
    let grown = group.extend_volume(&lv("db"), at_least(Bytes::mib(200)), &[])?;
    assert_eq!(grown.get().size, Bytes::mib(200));
    assert_eq!(group.look()?.lvs.len(), 1);
    Ok(())
}

/// SNAP-07: without the module there is one clear error each time, and nothing is left.
#[test]
fn a_kernel_without_dm_snapshot_is_told_by_name() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(200))?;
    let group = &fixture.group;
    let _ = group.create_volume(&volume("db", Bytes::mib(40)))?;
    let blocked = Path::new("/run/modprobe.d/gabion-test.conf");
    std::fs::create_dir_all("/run/modprobe.d")?;
    std::fs::write(blocked, "install dm_snapshot /bin/false\ninstall dm-snapshot /bin/false\n")?;
    let unloaded = tool::run("modprobe", ["-r", "dm_snapshot"]);
    let refused = group.snapshot(&NewSnapshot::new(lv("db"), lv("cut"), at_least(Bytes::mib(20))));
    std::fs::remove_file(blocked)?;
    unloaded?;
    let error = refused.expect_err("there is no dm-snapshot");
    assert_eq!(error.kind(), Kind::Unsupported, "{error:#}");
    assert!(error.to_string().contains("dm_snapshot"), "{error}");
    assert_eq!(group.look()?.lvs.len(), 1);
    assert!(group.snapshot(&NewSnapshot::new(lv("db"), lv("cut"), at_least(Bytes::mib(20))))?.is_made());
    Ok(())
}

/// LVM-23: after a start everything comes up, kept snapshots among them, and a lost disk keeps no other volume down.
#[test]
fn a_group_comes_up_as_far_as_its_disks_allow() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = FaultyFixture::new(2, Bytes::mib(300))?;
    let group = &fixture.group;
    let healthy = volume("healthy", Bytes::mib(20)).on(fixture.device(0)?);
    let lost = volume("lost", Bytes::mib(20)).on(fixture.device(1)?);
    let _ = (group.create_volume(&healthy)?, group.create_volume(&lost)?);
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).on(fixture.device(0)?);
    let _ = group.create_pool(&pool)?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(32))))?;
    let _ = group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("cut")))?;
    group.deactivate()?;
    group.activate()?;
    for name in ["healthy", "lost", "t", "cut"] {
        assert!(is_active(group, name)?, "{name}");
    }
    group.deactivate()?;
    fixture.disks[1].fail()?;
    assert_eq!(kind(group.activate()), Kind::MissingPv);
    for (name, active) in [("healthy", true), ("t", true), ("cut", true), ("lost", false)] {
        assert_eq!(is_active(group, name)?, active, "{name}");
    }
    assert_eq!(kind(group.create_volume(&volume("x", Bytes::mib(4)))), Kind::MissingPv);
    fixture.disks[1].recover()?;
    group.activate()?;
    assert!(is_active(group, "lost")?);
    Ok(())
}

/// LVM-25: a volume over a disk that was gone for a while works again once it is refreshed.
#[test]
fn a_volume_works_again_after_its_disk_came_back() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = FaultyFixture::new(1, Bytes::mib(200))?;
    let group = &fixture.group;
    let made = group.create_volume(&volume("db", Bytes::mib(64)))?.into_inner();
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("before", 8)?;
    mounted.unmount()?;
    fixture.disks[0].fail()?;
    assert!(Mounted::new("ext4", &made.device).is_err());
    fixture.disks[0].recover()?;
    group.refresh_volume(&lv("db"))?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.check("before", 8)?;
    mounted.unmount()?;
    assert!(group.deactivate_volume(&lv("db"))?.is_made());
    assert!(group.activate_volume(&lv("db"))?.is_made());
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.check("before", 8)?;
    mounted.unmount()
}

/// FS-09: a guest's own group inside a volume is neither seen nor in the way.
#[test]
fn a_guests_group_inside_a_volume_stays_invisible() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let made = group.create_volume(&volume("vm", Bytes::mib(128)))?.into_inner();
    // A guest sees its disk by another device than the host's.
    let seen_by_guest = Attach::new().file(&made.device)?;
    let inside = DevicePath::new(seen_by_guest.path())?;
    let guest = Handle::on([inside.clone()], Activation::MetadataOnly, |builder| builder)?;
    let guests = NewGroup::new(VgName::new("guest")?, [inside]);
    let guests = guest.lvm.create_group(&guests)?.into_inner();
    let _ = guests.create_volume(&volume("root", Bytes::mib(16)))?;
    seen_by_guest.detach()?;
    tool::run("udevadm", ["settle", "-t", "10"])?;
    let names: Vec<_> = fixture.handle.lvm.groups()?.iter().map(|group| group.label().to_string()).collect();
    assert_eq!(names, ["v"]);
    let said = fixture.raw(&["vgs", "--noheadings", "-o", "vg_name"])?;
    assert!(said.iter().all(|line| !line.contains("guest")), "{said:?}");
    assert_eq!(Dm::open()?.vg_devices(&guests.uuid())?.len(), 0);
    assert!(group.remove_volume(&lv("vm"), OnRemove::Keep)?.is_made());
    Ok(())
}

#[test]
fn caches_are_put_on_changed_and_taken_off_with_the_data_in_place() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(2, Bytes::mib(400))?;
    let group = &fixture.group;
    let slow = volume("slow", Bytes::mib(100)).on(fixture.device(0)?);
    let made = group.create_volume(&slow)?.into_inner();
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("before", 10)?;
    let fast = volume("fast", Bytes::mib(32)).on(fixture.device(1)?);
    let _ = group.create_volume(&fast)?;
    let attach = |mode| group.attach_cache(&lv("slow"), &lv("fast"), mode, None);
    assert!(attach(CacheMode::WriteThrough)?.is_made());
    assert!(!attach(CacheMode::WriteThrough)?.is_made());
    mounted.write("through", 10)?;
    assert!(attach(CacheMode::WriteBack)?.is_made());
    mounted.write("back", 10)?;
    // Asking for the slow volume again finds it, whatever is in front of it.
    assert!(!group.create_volume(&slow)?.is_made());
    assert!(group.detach_cache(&lv("slow"), AfterDetach::Keep)?.is_made());
    assert!(!group.detach_cache(&lv("slow"), AfterDetach::Keep)?.is_made());
    for name in ["before", "through", "back"] {
        mounted.check(name, 10)?;
    }
    mounted.unmount()?;
    assert!(group.attach_writecache(&lv("slow"), &lv("fast"))?.is_made());
    assert!(!group.attach_writecache(&lv("slow"), &lv("fast"))?.is_made());
    assert_eq!(kind(attach(CacheMode::WriteBack)), Kind::InvalidArgument);
    let _ = group.activate_volume(&lv("slow"))?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("cached", 10)?;
    mounted.unmount()?;
    assert!(group.detach_cache(&lv("slow"), AfterDetach::Remove)?.is_made());
    let _ = group.activate_volume(&lv("slow"))?;
    let mounted = Mounted::new("ext4", &made.device)?;
    for name in ["before", "through", "back", "cached"] {
        mounted.check(name, 10)?;
    }
    mounted.unmount()?;
    assert_eq!(group.look()?.visible_lvs().count(), 1);
    Ok(())
}

#[test]
fn a_pools_metadata_are_rewritten_into_the_spare() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(400))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    let made = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(64))))?.into_inner();
    format("ext4", &made.device)?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.write("data", 10)?;
    assert_eq!(kind(group.repair_pool(&lv("pool"))), Kind::InUse);
    mounted.unmount()?;
    group.deactivate()?;
    group.repair_pool(&lv("pool"))?;
    group.activate()?;
    let mounted = Mounted::new("ext4", &made.device)?;
    mounted.check("data", 10)?;
    mounted.unmount()
}

#[test]
fn space_of_a_removed_volume_is_discarded_when_asked() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let blocks = || -> Result<u64> {
        use std::os::unix::fs::MetadataExt;
        tool::run("sync", ["-f", "/tmp"])?;
        Ok(std::fs::metadata(fixture.disks[0].image())?.blocks() * 512)
    };
    let made = group.create_volume(&volume("db", Bytes::mib(128)))?.into_inner();
    assert_eq!(fill(&made.device, 100), 100);
    let full = blocks()?;
    assert!(full >= 100 << 20, "{full}");
    assert!(group.remove_volume(&lv("db"), OnRemove::Discard)?.is_made());
    let after = blocks()?;
    assert!(after + (90 << 20) < full, "{full} bytes before, {after} after");
    Ok(())
}
