//! SIGKILL at every ioctl of the worker, in the midst of each kind of command.
//!
//! After each kill the group is recovered: nothing may be suspended or half-loaded, live must be what is committed,
//! pools and group agree, nothing unfinished and no cookie is left, no blank volume shows old content, and the next
//! command of the kind works.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{Group, Layout, NewPool, NewThin, NewThinSnapshot, NewVolume, OnRemove, PoolSize, SizeRange};
use lvm::{Error, LvName};
use rig::Mounted;
use rig::filesystem::format;
use rig::killer::Killer;
use rig::sweep::{Points, Sweep, plant, plant_shows};
use rig::{skip_unless_dm, skip_unless_installed, tool};

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

fn cannot_run() -> bool {
    skip_unless_dm() || skip_unless_installed(&["strace", "mkfs.ext4", "thin_check", "dmsetup"])
}

fn gone(group: &Group, name: &str) -> Result<()> {
    let _ = group.remove_volume(&lv(name), OnRemove::Keep)?;
    Ok(())
}

fn nothing(_: &Group) -> Result<()> {
    Ok(())
}

/// Makes an ext4 on a volume and mounts it; it must take writes whenever it is asked.
fn mounted(killer: &Killer, name: &str) -> Result<Mounted> {
    let device = killer.group().volume(&lv(name))?.device;
    format("ext4", &device)?;
    Mounted::new("ext4", &device)
}

/// Writes past the page cache; a device that lets no I/O through fails by the tool's time limit.
fn writes(mounted: &Mounted) -> Result<()> {
    let path = mounted.path().join("alive");
    fs::write(&path, b"alive")?;
    let path = path.to_str().context("path")?;
    tool::run("timeout", ["-s", "KILL", "30", "sync", path])?;
    ensure!(fs::read(path)? == b"alive");
    Ok(())
}

fn with_pool() -> Result<Killer> {
    let killer = Killer::new(2, Bytes::gib(1))?;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(mib(200)));
    let _ = killer.group().create_pool(&pool)?;
    Ok(killer)
}

fn with_thin() -> Result<Killer> {
    let killer = with_pool()?;
    let _ = killer.group().create_thin(&NewThin::new(lv("pool"), lv("t"), mib(64)))?;
    Ok(killer)
}

fn done<T>(result: Result<T, Error>) -> Result<(), Error> {
    result.map(drop)
}

fn lvcreate_thick(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::mib(300))?;
    plant_shows(&killer)?;
    Sweep {
        killer: &killer,
        name: "lvcreate thick",
        prepare: &|group| gone(group, "x").and_then(|()| plant(&killer)),
        act: &|group| done(group.create_volume(&NewVolume::new(lv("x"), mib(32)))),
        check: &nothing,
    }
    .run(points)
}

fn lvcreate_raid1(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::mib(300))?;
    Sweep {
        killer: &killer,
        name: "lvcreate raid1",
        prepare: &|group| gone(group, "x").and_then(|()| plant(&killer)),
        act: &|group| {
            let new = NewVolume::new(lv("x"), mib(16)).layout(Layout::Raid1 { copies: 2 });
            done(group.create_volume(&new))
        },
        check: &nothing,
    }
    .run(points)
}

fn lvcreate_thin(points: Points) -> Result<()> {
    let killer = with_pool()?;
    Sweep {
        killer: &killer,
        name: "lvcreate thin",
        prepare: &|group| gone(group, "x"),
        act: &|group| done(group.create_thin(&NewThin::new(lv("pool"), lv("x"), mib(64)))),
        check: &nothing,
    }
    .run(points)
}

fn lvcreate_thin_snapshot(points: Points) -> Result<()> {
    let killer = with_thin()?;
    let mounted = mounted(&killer, "t")?;
    Sweep {
        killer: &killer,
        name: "lvcreate thin snapshot of a mounted volume",
        prepare: &|group| gone(group, "s"),
        act: &|group| done(group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("s")))),
        check: &|_| writes(&mounted),
    }
    .run(points)
}

/// Lets the group run as it did before the machine ended; a volume that is mounted could not be ended with it.
fn started(group: &Group) -> Result<()> {
    group.activate()?;
    Ok(())
}

fn lvcreate_thin_snapshot_and_restart(points: Points) -> Result<()> {
    let killer = with_thin()?;
    Sweep {
        killer: &killer,
        name: "lvcreate thin snapshot, and a restart",
        prepare: &|group| started(group).and_then(|()| gone(group, "s")),
        act: &|group| done(group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("s")))),
        check: &nothing,
    }
    .run_with_restarts(points)
}

fn lvcreate_thin_and_restart(points: Points) -> Result<()> {
    let killer = with_thin()?;
    Sweep {
        killer: &killer,
        name: "lvcreate thin, and a restart",
        prepare: &|group| started(group).and_then(|()| gone(group, "x")),
        act: &|group| done(group.create_thin(&NewThin::new(lv("pool"), lv("x"), mib(64)))),
        check: &nothing,
    }
    .run_with_restarts(points)
}

fn lvremove_thin_and_restart(points: Points) -> Result<()> {
    let killer = with_thin()?;
    Sweep {
        killer: &killer,
        name: "lvremove thin, and a restart",
        prepare: &|group| {
            started(group)?;
            let _ = group.create_thin(&NewThin::new(lv("pool"), lv("x"), mib(64)))?;
            Ok(())
        },
        act: &|group| done(group.remove_volume(&lv("x"), OnRemove::Keep)),
        check: &nothing,
    }
    .run_with_restarts(points)
}

fn lvcreate_thin_pool(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::gib(1))?;
    Sweep {
        killer: &killer,
        name: "lvcreate thin pool",
        prepare: &|group| gone(group, "pool").and_then(|()| plant(&killer)),
        act: &|group| done(group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(mib(100))))),
        check: &nothing,
    }
    .run(points)
}

fn lvextend_thick(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::gib(1))?;
    let _ = killer.group().create_volume(&NewVolume::new(lv("x"), mib(32)))?;
    let mounted = mounted(&killer, "x")?;
    Sweep {
        killer: &killer,
        name: "lvextend of a mounted volume",
        prepare: &nothing,
        act: &|group| {
            let size = group.volume(&lv("x"))?.size.get() + Bytes::mib(4).get();
            done(group.extend_volume(&lv("x"), SizeRange::at_least(Bytes::new(size)), &[]))
        },
        check: &|_| writes(&mounted),
    }
    .run(points)
}

fn lvextend_pool_data(points: Points) -> Result<()> {
    let killer = with_thin()?;
    let mounted = mounted(&killer, "t")?;
    Sweep {
        killer: &killer,
        name: "lvextend of a pool's data",
        prepare: &nothing,
        act: &|group| {
            let size = group.volume(&lv("pool"))?.size.get() + Bytes::mib(4).get();
            let size = PoolSize::Data(SizeRange::at_least(Bytes::new(size)));
            done(group.extend_pool(&lv("pool"), size, &[]))
        },
        check: &|_| writes(&mounted),
    }
    .run(points)
}

fn lvextend_pool_metadata(points: Points) -> Result<()> {
    let killer = with_thin()?;
    let mounted = mounted(&killer, "t")?;
    Sweep {
        killer: &killer,
        name: "lvextend of a pool's metadata",
        prepare: &nothing,
        act: &|group| {
            let vg = group.look()?;
            let extents = vg.lv("pool_tmeta").unwrap().extents();
            let size = vg.extent_size.span(extents).unwrap().get() + Bytes::mib(4).get();
            done(group.extend_pool_metadata(&lv("pool"), Bytes::new(size)))
        },
        check: &|_| writes(&mounted),
    }
    .run(points)
}

fn lvremove_thin(points: Points) -> Result<()> {
    let killer = with_thin()?;
    let mounted = mounted(&killer, "t")?;
    Sweep {
        killer: &killer,
        name: "lvremove thin",
        prepare: &|group| {
            let _ = group.create_thin(&NewThin::new(lv("pool"), lv("x"), mib(64)))?;
            Ok(())
        },
        act: &|group| done(group.remove_volume(&lv("x"), OnRemove::Keep)),
        check: &|_| writes(&mounted),
    }
    .run(points)
}

fn lvremove_thick(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::mib(300))?;
    Sweep {
        killer: &killer,
        name: "lvremove thick",
        prepare: &|group| {
            let _ = group.create_volume(&NewVolume::new(lv("x"), mib(32)))?;
            Ok(())
        },
        act: &|group| done(group.remove_volume(&lv("x"), OnRemove::Keep)),
        check: &nothing,
    }
    .run(points)
}

/// A pool on striped data: two volumes are made, and converted into the pool.
fn lvconvert_to_pool(points: Points) -> Result<()> {
    let killer = Killer::new(2, Bytes::gib(1))?;
    Sweep {
        killer: &killer,
        name: "lvconvert to a thin pool",
        prepare: &|group| gone(group, "pool").context("remove the pool"),
        act: &|group| {
            let layout = Layout::Striped { stripes: 2, stripe_size: Bytes::kib(64) };
            done(group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(mib(64))).layout(layout)))
        },
        check: &nothing,
    }
    .run(points)
}

/// A few points of the two commands that leave most behind, for continuous integration.
mod smoke {
    use super::*;

    #[test]
    fn some_kills_of_an_lvcreate_of_a_thick_volume_are_recovered() -> Result<()> {
        if cannot_run() { Ok(()) } else { lvcreate_thick(Points::Some(2)) }
    }

    #[test]
    fn some_kills_of_an_lvcreate_of_a_thin_snapshot_are_recovered() -> Result<()> {
        if cannot_run() { Ok(()) } else { lvcreate_thin_snapshot(Points::Some(3)) }
    }

    #[test]
    fn a_thin_snapshot_that_was_taken_and_not_counted_is_removed_after_a_restart() -> Result<()> {
        if cannot_run() { Ok(()) } else { lvcreate_thin_snapshot_and_restart(Points::Messages) }
    }
}

macro_rules! every_point {
    ($($test:ident = $sweep:ident),+ $(,)?) => {
        /// Every point of every command: long, 4 to 15 seconds a point.
        mod minutes_60 {
            use super::*;
            $(
                #[test]
                fn $test() -> Result<()> {
                    if cannot_run() { Ok(()) } else { $sweep(points()) }
                }
            )+
        }
    };
}

/// All points, or what `GABION_SWEEP_POINTS` says: a number of points of each command, `FROM-TO`, `distinct`, or
/// `distinct:FROM-TO` for a part of those.
fn points() -> Points {
    let Ok(wish) = std::env::var("GABION_SWEEP_POINTS") else { return Points::All };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("GABION_SWEEP_POINTS={wish}"));
    if wish == "distinct" {
        return Points::Distinct;
    }
    if let Some((from, to)) = wish.strip_prefix("distinct:").and_then(|part| part.split_once('-')) {
        return Points::DistinctBetween(number(from), number(to));
    }
    match wish.split_once('-') {
        Some((from, to)) => Points::Between(number(from), number(to)),
        None => Points::Some(number(&wish)),
    }
}

every_point! {
    a_killed_lvcreate_of_a_thick_volume_is_recovered = lvcreate_thick,
    a_killed_lvcreate_of_a_raid1_volume_is_recovered = lvcreate_raid1,
    a_killed_lvcreate_of_a_thin_volume_is_recovered = lvcreate_thin,
    a_killed_lvcreate_of_a_thin_snapshot_is_recovered = lvcreate_thin_snapshot,
    a_killed_lvcreate_of_a_thin_pool_is_recovered = lvcreate_thin_pool,
    a_killed_lvcreate_of_a_thin_snapshot_is_recovered_after_a_restart = lvcreate_thin_snapshot_and_restart,
    a_killed_lvcreate_of_a_thin_volume_is_recovered_after_a_restart = lvcreate_thin_and_restart,
    a_killed_lvremove_of_a_thin_volume_is_recovered_after_a_restart = lvremove_thin_and_restart,
    a_killed_lvextend_of_a_mounted_volume_is_recovered = lvextend_thick,
    a_killed_lvextend_of_a_pools_data_is_recovered = lvextend_pool_data,
    a_killed_lvextend_of_a_pools_metadata_is_recovered = lvextend_pool_metadata,
    a_killed_lvremove_of_a_thin_volume_is_recovered = lvremove_thin,
    a_killed_lvremove_of_a_thick_volume_is_recovered = lvremove_thick,
    a_killed_lvconvert_to_a_thin_pool_is_recovered = lvconvert_to_pool,
}
