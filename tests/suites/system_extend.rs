//! What an extended volume shows of those that lay on its new extents before.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{Added, Extension, Group, NewPool, NewThin, NewVolume, OnRemove, PoolSize, SizeRange};
use lvm::{Kind, LvName};
use rig::filesystem::format;
use rig::fixture::{Fixture, fill, is_active};
use rig::killer::Killer;
use rig::sweep::in_order;
use rig::{Mounted, skip_unless_dm, skip_unless_installed};

/// The volumes' size before and after, in bytes.
const SMALL: u64 = 32 << 20;
const LARGE: u64 = 64 << 20;

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn bytes(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::new(size))
}

fn extended(added: Added) -> Extension {
    Extension::to(bytes(LARGE)).added(added)
}

/// A volume `db` behind which the group's free extents are full of what a removed volume held.
fn with_old_content(group: &Group) -> Result<std::path::PathBuf> {
    let made = group.create_volume(&NewVolume::new(lv("db"), bytes(SMALL)))?.into_inner();
    let earlier = group.create_volume(&NewVolume::new(lv("earlier"), bytes(LARGE)))?.into_inner();
    ensure!(fill(&earlier.device, LARGE >> 20) == LARGE >> 20, "the earlier volume cannot be filled");
    let _ = group.remove_volume(&lv("earlier"), OnRemove::Keep)?;
    Ok(made.device)
}

/// How many MiB between two offsets hold anything but zeroes.
fn dirty(device: &Path, from: u64, to: u64) -> Result<usize> {
    let file = File::open(device)?;
    let mut block = vec![0; 1 << 20];
    let mut dirty = 0;
    for at in (from..to).step_by(1 << 20) {
        file.read_exact_at(&mut block, at).with_context(|| format!("{} at {at}", device.display()))?;
        dirty += usize::from(block.iter().any(|byte| *byte != 0));
    }
    Ok(dirty)
}

fn notes(group: &Group) -> Result<usize> {
    let seen = group.look()?;
    let lv = seen.lv("db").context("db")?;
    Ok(lv.tags.iter().filter(|tag| tag.as_str().starts_with("gabion.dev/zero-from=")).count())
}

#[test]
fn zeroes_are_written_over_what_a_mounted_volume_gains_and_only_when_asked_for() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(300))?;
    let group = &fixture.group;
    let device = with_old_content(group)?;
    format("ext4", &device)?;
    let mounted = Mounted::new("ext4", &device)?;
    mounted.write("data", 10)?;
    assert!(group.extend_volume_by(&lv("db"), &extended(Added::Zeroed))?.is_made());
    assert_eq!(dirty(&device, SMALL, LARGE)?, 0);
    assert_eq!(notes(group)?, 0);
    assert!(!group.extend_volume_by(&lv("db"), &extended(Added::Zeroed))?.is_made());
    mounted.check("data", 10)?;
    // Without the wish the old content shows: else the zeroes above prove nothing.
    let more = SizeRange::at_least(Bytes::new(LARGE + (16 << 20)));
    assert!(group.extend_volume(&lv("db"), more, &[])?.is_made());
    assert_eq!(dirty(&device, LARGE, LARGE + (16 << 20))?, 16);
    mounted.check("data", 10)?;
    mounted.unmount()
}

#[test]
fn an_inactive_volume_gains_zeroes_and_stays_inactive_and_a_thin_one_gains_nothing() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check"]) {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::gib(1))?;
    let group = &fixture.group;
    let device = with_old_content(group)?;
    let _ = group.deactivate_volume(&lv("db"))?;
    assert!(group.extend_volume_by(&lv("db"), &extended(Added::Zeroed))?.is_made());
    assert!(!is_active(group, "db")?);
    let _ = group.activate_volume(&lv("db"))?;
    assert_eq!(dirty(&device, SMALL, LARGE)?, 0);
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(bytes(LARGE))))?;
    let thin = group.create_thin(&NewThin::new(lv("pool"), lv("t"), bytes(SMALL)))?.into_inner();
    assert!(group.extend_volume_by(&lv("t"), &extended(Added::Zeroed))?.is_made());
    assert_eq!(dirty(&thin.device, 0, LARGE)?, 0);
    Ok(())
}

/// A worker killed between the extension and the zeroes, or between the note and the extension: the note stays, an
/// extension without zeroes is refused, and the next one with zeroes writes them.
#[test]
fn zeroes_that_a_crash_kept_from_being_written_are_written_by_the_next_extension() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["strace"]) {
        return Ok(());
    }
    let killer = Killer::new(1, Bytes::mib(300))?;
    let group = killer.group();
    let device = with_old_content(group)?;
    // No caller may set it.
    let note = format!("gabion.dev/zero-from={}", SMALL >> 22);
    let pool = group.lvm().workers().context("no workers")?;
    rig::workers::must(pool, &["lvchange", "--yes", "--addtag", &note, "v/db"])?;
    let refused = group.extend_volume(&lv("db"), bytes(LARGE), &[]).unwrap_err();
    assert_eq!(refused.kind(), Kind::Inconsistent, "{refused:?}");
    let calls = killer.start_calls()?.ioctls;
    // In the midst of the extension's own ioctls.
    let (victim, _) = killer
        .kill_at(calls + 20, |group| group.extend_volume_by(&lv("db"), &extended(Added::Zeroed)).map(drop))?;
    let _ = victim.lvm().recover(victim.uuid(), victim.label())?;
    assert!(victim.extend_volume_by(&lv("db"), &extended(Added::Zeroed))?.is_made());
    assert_eq!(dirty(&device, SMALL, LARGE)?, 0);
    assert_eq!(notes(&victim)?, 0);
    in_order(&victim)
}
