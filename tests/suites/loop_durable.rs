//! What was told as done is on the disks for good: loop devices, root, no device-mapper. That the flushes come after the
//! writes, the suite of power cuts shows.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{Content, Group, NewGroup, NewPv, NewVolume, OldContent, OnRemove, SizeRange};
use lvm::run::{Request, ReturnCode, Runner};
use lvm::worker::{Recover, StillClosed};
use lvm::{DevicePath, Effect, Error, Kind, LvName, Tag, VgName, classify};
use rig::workers::{Bench, PATIENCE, ask_in, create};
use rig::{Disk, Handle, device_paths, skip_unless_loop};

fn vg(name: &str) -> VgName {
    VgName::new(name).unwrap()
}

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

fn volume(name: &str) -> NewVolume {
    NewVolume::new(lv(name), mib(4)).content(Content::Untouched)
}

/// How many writes and how many flushes a disk has completed (`Documentation/block/stat.rst`, fields 5 and 16).
fn counts(disk: &Disk) -> Result<(u64, u64)> {
    let name = disk.path().file_name().context("a disk without a name")?.to_string_lossy().into_owned();
    let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
    let field = |index: usize| text.split_whitespace().nth(index)?.parse::<u64>().ok();
    Ok((field(4).context("no count of writes")?, field(15).context("no count of flushes")?))
}

/// Fails unless each disk that the act writes to was flushed, and `wanted` at least.
fn flushes(what: &str, disks: &[&Disk], wanted: &[&Disk], act: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = disks.iter().map(|disk| counts(disk)).collect::<Result<Vec<_>>>()?;
    act().with_context(|| what.to_owned())?;
    for (disk, (writes, flushes)) in disks.iter().zip(before) {
        let (writes_now, flushes_now) = counts(disk)?;
        let wanted = wanted.iter().any(|other| other.path() == disk.path());
        ensure!(
            flushes_now > flushes || (writes_now == writes && !wanted),
            "{what}: {} got {} writes and no flush",
            disk.path().display(),
            writes_now - writes
        );
    }
    Ok(())
}

#[test]
fn every_change_of_a_group_is_flushed_to_all_its_pvs_before_it_is_told() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disks = [Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?];
    let all: Vec<&Disk> = disks.iter().collect();
    let handle = Handle::metadata_only(&all)?;
    let paths = device_paths(&all)?;
    let new = NewGroup::new(vg("v"), paths[..2].to_vec());
    let two = &all[..2];
    flushes("create the group", &all, two, || handle.lvm.create_group(&new).map(drop).map_err(Into::into))?;
    let group = handle.lvm.group(&vg("v"))?;
    type Act<'a> = &'a dyn Fn(&Group) -> Result<(), Error>;
    let acts: [(&str, &[&Disk], Act<'_>); 12] = [
        ("make a PV", &all[2..], &|group| group.lvm().create_pv(&NewPv::new(paths[2].clone())).map(drop)),
        ("create a volume", two, &|group| group.create_volume(&volume("a")).map(drop)),
        ("extend it", two, &|group| group.extend_volume(&lv("a"), mib(8), &[]).map(drop)),
        ("rename it", two, &|group| group.rename_volume(group.volume(&lv("a"))?.uuid, &lv("b")).map(drop)),
        ("tag it", two, &|group| group.tag_volume(&lv("b"), &[Tag::new("x").unwrap()], &[]).map(drop)),
        ("remove it", two, &|group| group.remove_volume(&lv("b"), OnRemove::Keep).map(drop)),
        ("tag the group", two, &|group| group.tag(&[Tag::new("x").unwrap()], &[]).map(drop)),
        ("extend the group", &all, &|group| group.extend(&paths[2..], OldContent::Refuse).map(drop)),
        ("tag a PV", &all, &|group| {
            group.change_pv(&paths[0], None, &[Tag::new("x").unwrap()], &[]).map(drop)
        }),
        ("reduce the group", &all, &|group| group.reduce(&paths[2]).map(drop)),
        ("rename the group", two, &|group| group.rename(&vg("w")).map(drop)),
        ("remove the group", two, &|group| group.remove().map(drop)),
    ];
    for (what, wanted, act) in acts {
        flushes(what, &all, wanted, || act(&group).map_err(Into::into))?;
    }
    flushes("remove a PV", &all, &all[..1], || handle.lvm.remove_pv(&paths[0]).map(drop).map_err(Into::into))
}

#[test]
fn what_another_program_may_have_left_unflushed_is_flushed_once_before_it_is_told() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let new = NewGroup::new(vg("v"), device_paths(&[&disk])?);
    let group = handle.lvm.create_group(&new)?.into_inner();
    let _ = group.create_volume(&volume("a"))?;
    // As a program that starts anew: it cannot know whether the one before it came to its flush.
    let later = Handle::metadata_only(&[&disk])?;
    let group = later.lvm.group(group.label())?;
    flushes("find it made", &[&disk], &[&disk], || {
        ensure!(!group.create_volume(&volume("a"))?.is_made());
        Ok(())
    })?;
    let (_, before) = counts(&disk)?;
    ensure!(!group.create_volume(&volume("a"))?.is_made());
    ensure!(!group.remove_volume(&lv("absent"), OnRemove::Keep)?.is_made());
    let _ = (group.look()?, group.volume(&lv("a"))?);
    ensure!(counts(&disk)?.1 == before, "what is known to be flushed was flushed again");
    Ok(())
}

/// A recovery that succeeds.
#[derive(Debug)]
struct Recovers;

impl Recover for Recovers {
    fn recover(&self, _: &lvm::run::Scope, _: &dyn Runner) -> Result<Vec<StillClosed>, Error> {
        Ok(Vec::new())
    }
}

#[test]
fn a_group_with_a_device_that_cannot_be_flushed_is_closed_until_it_is_recovered() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::with(|pool| pool.recover(std::sync::Arc::new(Recovers)))?;
    let (first, nowhere) = (bench.disks[0].path().to_owned(), bench.workers.path("absent"));
    let request = Request {
        scope: bench.scope.clone(),
        tried: "create a volume".to_owned(),
        argv: create("one").into_iter().map(str::to_owned).collect(),
        deadline: PATIENCE,
        flush: vec![nowhere, first],
    };
    let (_, before) = counts(&bench.disks[0])?;
    let reply = bench.pool.run(&request)?;
    assert_eq!(reply.code, ReturnCode::Unflushed, "{:?}", reply.records);
    assert!(
        counts(&bench.disks[0])?.1 > before,
        "one that fails does not keep the others from being flushed"
    );
    let error = classify::failure("create a volume", &reply);
    assert_eq!((error.kind(), error.effect()), (Kind::Io, Effect::Unknown), "{error}");
    assert!(error.to_string().contains("absent"), "{error}");
    let closed = bench.pool.quarantined();
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!(closed[0].scope, bench.scope);
    // The next command has it recovered first.
    let reply = ask_in(&bench.pool, bench.scope.clone(), &create("two"), PATIENCE)?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    assert!(bench.pool.quarantined().is_empty());
    Ok(())
}

#[test]
fn a_command_that_fails_is_not_flushed() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let new = NewGroup::new(vg("v"), device_paths(&[&disk])?);
    let group = handle.lvm.create_group(&new)?.into_inner();
    let (_, before) = counts(&disk)?;
    let too_large = group.create_volume(&NewVolume::new(lv("a"), mib(400))).unwrap_err();
    assert_eq!(too_large.kind(), Kind::NoSpace(lvm::Space::Data), "{too_large}");
    let nowhere = group.extend(&[DevicePath::new("/dev/nowhere")?], OldContent::Refuse).unwrap_err();
    assert_eq!(nowhere.kind(), Kind::NotFound, "{nowhere}");
    assert_eq!(counts(&disk)?.1, before);
    Ok(())
}
