//! Every refusal that a caller has to tell apart, by operations that really fail in the machine, and what each left behind.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::File;
use std::time::Duration;

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::ops::{Content, Group, Layout, NewGroup, NewThin, NewThinSnapshot, NewVolume, OnRemove, SizeRange};
use lvm::{DevicePath, Effect, Error, Kind, LvName, Space, Tag, VgName};
use rig::{Disk, Handle, device_paths, skip_unless_dm, skip_unless_installed};

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

fn untouched(name: &str, size: u64) -> NewVolume {
    NewVolume::new(lv(name), mib(size)).content(Content::Untouched)
}

/// An operation, and the refusal that is expected of it.
type Row<'a> = (&'a str, Kind, &'a dyn Fn(&Group) -> Result<(), Error>);

/// Fails unless every row is refused so, with no effect, and nothing in the group has changed.
fn refused(group: &Group, rows: &[Row<'_>]) -> Result<()> {
    for (what, kind, act) in rows {
        let before = group.look()?;
        let Err(error) = act(group) else { anyhow::bail!("{what} was not refused") };
        println!("{what}: {error}");
        ensure!((error.kind(), error.effect()) == (*kind, Effect::None), "{what}: {error:?}");
        ensure!(error.answer().is_some(), "{what}: {error:?}");
        ensure!(group.look()?.lvs == before.lvs, "{what} left something");
    }
    Ok(())
}

#[test]
fn every_refusal_of_an_operation_has_its_kind_and_leaves_nothing() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check"]) {
        return Ok(());
    }
    let mut disks = [Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?];
    let paths = device_paths(&[&disks[0], &disks[1]])?;
    let handle = Handle::active(&[&disks[0], &disks[1]])?;
    let group = handle.lvm.create_group(&NewGroup::new(VgName::new("v")?, paths.clone()))?.into_inner();
    let checked = whole_group(&group, &paths).and_then(|()| locked(&group, &handle));
    group.deactivate()?;
    checked?;
    disks[1].detach()?;
    let raid1 = Layout::Raid1 { copies: 2 };
    refused(
        &group,
        &[
            ("create in a partial group", Kind::MissingPv, &|group| {
                group.create_volume(&untouched("x", 4)).map(drop)
            }),
            ("mirror in a partial group", Kind::MissingPv, &|group| {
                group.create_volume(&untouched("x", 4).layout(raid1)).map(drop)
            }),
            ("extend in a partial group", Kind::MissingPv, &|group| {
                group.extend_volume(&lv("a"), mib(8), &[]).map(drop)
            }),
        ],
    )
}

fn whole_group(group: &Group, paths: &[DevicePath]) -> Result<()> {
    let _ = group.create_volume(&NewVolume::new(lv("a"), mib(4)))?;
    let raid1 = Layout::Raid1 { copies: 2 };
    let free = group.look()?.free_on(group.look()?.pvs[0].uuid).get();
    let _ = group.create_volume(&untouched("filler", free * 4).on(paths[0].clone()))?;
    let open = File::open(group.volume(&lv("a"))?.device)?;
    let rows: [Row<'_>; 13] = [
        ("find an absent group", Kind::NotFound, &|group| {
            group.lvm().group(&VgName::new("absent").unwrap()).map(drop)
        }),
        ("extend an absent volume", Kind::NotFound, &|group| {
            group.extend_volume(&lv("absent"), mib(8), &[]).map(drop)
        }),
        ("rename an absent volume", Kind::NotFound, &|group| {
            group.rename_volume(group.uuid(), &lv("b")).map(drop)
        }),
        ("snapshot an absent volume", Kind::NotFound, &|group| {
            group.snapshot_thin(&NewThinSnapshot::new(lv("absent"), lv("s"))).map(drop)
        }),
        ("a thin volume in an absent pool", Kind::NotFound, &|group| {
            group.create_thin(&NewThin::new(lv("absent"), lv("t"), mib(8))).map(drop)
        }),
        ("add an absent device", Kind::NotFound, &|group| {
            group.extend(&[DevicePath::new("/dev/absent").unwrap()], lvm::ops::OldContent::Refuse).map(drop)
        }),
        ("create what exists in another size", Kind::AlreadyExists, &|group| {
            group.create_volume(&untouched("a", 400)).map(drop)
        }),
        ("rename to what exists", Kind::AlreadyExists, &|group| {
            group.rename_volume(group.volume(&lv("a"))?.uuid, &lv("filler")).map(drop)
        }),
        ("a linear volume that is too large", Kind::NoSpace(Space::Data), &|group| {
            group.create_volume(&untouched("x", 1 << 20)).map(drop)
        }),
        ("extend beyond what is free", Kind::NoSpace(Space::Data), &|group| {
            group.extend_volume(&lv("a"), mib(1 << 20), &[]).map(drop)
        }),
        ("a mirror with room on one PV only", Kind::NoSpace(Space::Legs), &|group| {
            group.create_volume(&untouched("x", 8).layout(raid1)).map(drop)
        }),
        ("remove what is open", Kind::InUse, &|group| {
            group.remove_volume(&lv("a"), OnRemove::Keep).map(drop)
        }),
        ("take a PV out that is in use", Kind::InUse, &|group| group.reduce(&paths[0]).map(drop)),
    ];
    refused(group, &rows)?;
    drop(open);
    for name in [
        "",
        "-x",
        "snapshot-1",
        "a_tdata",
        "a b",
        "a'b",
        "a\"b",
        "a\\b",
        "a;b",
        "a\nb",
        "é",
        &"x".repeat(128),
    ] {
        ensure!(LvName::new(name).is_err(), "{name:?} is taken for a name");
    }
    ensure!(LvName::new(&"x".repeat(127)).is_ok());
    for tag in ["", "a b", "a@b", "a\nb", "a;b", "a'b", "é", "-x", &"x".repeat(1025)] {
        ensure!(Tag::new(tag).is_err(), "{tag:?} is taken for a tag");
    }
    Ok(())
}

/// Another process, which has the lock of LVM's own commands.
fn locked(group: &Group, handle: &Handle) -> Result<()> {
    let lock = handle.workers().path("lock/V_v");
    let held = File::options().create(true).truncate(false).write(true).open(&lock)?;
    held.lock()?;
    // Long enough for several tries on a slow machine: one that does not end in time leaves its effect in doubt.
    let impatient = group.lvm().with_deadline(Duration::from_secs(6)).group_by_uuid(group.uuid())?;
    let row: Row<'_> = ("create while another process has the lock", Kind::Busy, &|group| {
        group.create_volume(&untouched("x", 4)).map(drop)
    });
    let outcome = refused(&impatient, &[row]);
    drop(held);
    outcome?;
    ensure!(group.create_volume(&untouched("x", 4))?.is_made());
    Ok(())
}
