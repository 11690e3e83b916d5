//! Operations while and after disks are lost.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use devices::Bytes;
use lvm::dm::Dm;
use lvm::ops::{Group, Layout, NewPool, NewThin, NewThinSnapshot, PoolSize, Scrub};
use lvm::{Extents, Kind, Tag};
use rig::ask::{at_least, kind, lv, volume};
use rig::filesystem::format;
use rig::fixture::{FaultyFixture, Fixture, fill, is_active, synchronised};
use rig::{Disk, Mounted, skip_unless_dm, workers};

/// What continuous integration runs of this suite.
mod smoke {
    use super::*;

    #[test]
    fn a_pool_is_activated_and_deactivated_again_and_again() -> Result<()> {
        if skip_unless_dm() { Ok(()) } else { a_pool_goes_up_and_down(4) }
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
    assert!(seen.visible_lvs().all(|lv| !lv.has_tag(lvm::ops::CREATING)), "{:?}", seen.lvs);
    assert!(seen.lv("pool_tdata").is_some_and(|data| data.tags.is_empty()));
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

#[test]
fn the_spare_is_made_again_after_its_disk_was_lost() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = FaultyFixture::new(3, Bytes::mib(200))?;
    let group = &fixture.group;
    let first = fixture.device(0)?;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).on(first.clone());
    let _ = group.create_pool(&pool)?;
    let thin = NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(64)));
    let _ = group.create_thin(&thin)?;
    assert!(!group.remake_spare(&[])?.is_made());
    let raw = fixture.handle.lvm.workers().context("no pool")?;
    workers::must(raw, &["lvremove", "--yes", "v/lvol0_pmspare"])?;
    assert!(group.look()?.pool_metadata_spare().is_none());
    // With one extent left beside the pool, its metadata grow there and the spare goes to another disk.
    let seen = group.look()?;
    let beside = seen.pvs.iter().find(|pv| pv.device.as_ref().is_some_and(|at| at.path == first.as_path()));
    let free = seen.free_on(beside.context("no PV")?.uuid);
    let filling = seen.extent_size.span(Extents::new(free.get() - 1)).context("size")?;
    let _ = group.create_volume(&volume("filling", filling).on(first))?;
    assert!(group.remake_spare(&[])?.is_made());
    let seen = group.look()?;
    let spare = seen.pool_metadata_spare().context("no spare")?;
    let metadata = seen.lv("pool_tmeta").context("no metadata")?;
    assert!(spare.extents() >= metadata.extents());
    let [pv] = seen.pvs_below(spare)[..] else { anyhow::bail!("the spare is on several PVs") };
    let at = seen.pvs.iter().position(|other| other.uuid == pv).context("no PV")?;
    assert_ne!(at, 0, "the spare is beside the pool");
    // Lost with its disk, it is made again on the last one.
    fixture.disks[at].fail()?;
    assert!(group.remake_spare(&[])?.is_made());
    assert!(group.look()?.is_complete());
    let thin = NewThin::new(lv("pool"), lv("u"), at_least(Bytes::mib(64)));
    assert!(group.create_thin(&thin)?.is_made());
    Ok(())
}

/// THIN-09: a pool goes up and down under udev many times while a disk beside it is written to without pause.
fn a_pool_goes_up_and_down(rounds: usize) -> Result<()> {
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(64))))?;
    let busy = Disk::new(Bytes::mib(64))?;
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let slowest = thread::scope(|threads| {
        let writer = threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fill(busy.path(), 64);
            }
        });
        let slowest = up_and_down(group, rounds);
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        slowest
    })?;
    println!("FIGURES: {rounds} of {rounds} rounds in {:.0?}, the slowest in {slowest:.1?}", start.elapsed());
    Ok(())
}

/// Every round must succeed, and leave nothing active between: no metadata volume alone either.
fn up_and_down(group: &Group, rounds: usize) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let start = Instant::now();
        group.deactivate().with_context(|| format!("round {round}"))?;
        assert_eq!(Dm::open()?.vg_devices(&group.uuid())?.len(), 0, "round {round}");
        group.activate().with_context(|| format!("round {round}"))?;
        assert!(is_active(group, "t")?, "round {round}");
        slowest = slowest.max(start.elapsed());
    }
    Ok(slowest)
}

mod minutes_20 {
    use super::*;

    #[test]
    fn a_pool_is_activated_and_deactivated_fifty_times() -> Result<()> {
        if skip_unless_dm() { Ok(()) } else { a_pool_goes_up_and_down(50) }
    }
}
