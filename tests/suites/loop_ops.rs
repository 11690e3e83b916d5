//! Operations on groups and volumes as far as metadata alone carry them: loop devices, root, no device-mapper.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use devices::Bytes;
use lvm::ops::{Change, Content, Group, Layout, NewGroup, NewPv, NewVolume, OldContent, OnRemove};
use lvm::run::Scope;
use lvm::worker::conf::Activation;
use lvm::{ExtentSize, Extents, Kind, LvName, Space, Tag, VgName};
use rig::ask::{at_least, kind, lv, volume};
use rig::{Disk, Handle, device_paths, skip_unless_loop};

fn vg(name: &str) -> VgName {
    VgName::new(name).unwrap()
}

fn tag(tag: &str) -> Tag {
    Tag::new(tag).unwrap()
}

/// A group `v` on the disks, made through the handle.
fn group_on(handle: &Handle, disks: &[&Disk]) -> Result<Group> {
    Ok(handle.lvm.create_group(&NewGroup::new(vg("v"), device_paths(disks)?))?.into_inner())
}

fn seqno(group: &Group) -> Result<u64> {
    Ok(group.look()?.seqno)
}

#[test]
fn a_group_is_made_once_and_then_found() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::gib(1))?, Disk::new(Bytes::gib(1))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let new = NewGroup::new(vg("v"), device_paths(&[&a, &b])?).tag(tag("gabion"));
    let made = handle.lvm.create_group(&new)?;
    assert!(made.is_made());
    let group = made.into_inner();
    let seen = group.look()?;
    assert_eq!(seen.pvs.len(), 2);
    assert!(seen.has_tag("gabion"));
    assert!(seen.has(&lvm::metadata::VgFlag::NoAutoactivate), "{:?}", seen.flags);
    // 4 MiB of metadata on a small disk, then whole extents of the rest.
    let area = &seen.pvs[0].device.as_ref().context("no device")?.areas[0];
    assert!(area.size >= Bytes::mib(3) && area.size <= Bytes::mib(5), "{}", area.size);
    assert!(!handle.lvm.create_group(&new)?.is_made());
    assert_eq!(seqno(&group)?, seen.seqno);
    // Another set of devices or another extent size is another group.
    let fewer = NewGroup::new(vg("v"), device_paths(&[&a])?);
    assert_eq!(kind(handle.lvm.create_group(&fewer)), Kind::AlreadyExists);
    let extents = ExtentSize::new(devices::Sectors::new(2048)).context("size")?;
    assert_eq!(kind(handle.lvm.create_group(&new.extent_size(extents))), Kind::AlreadyExists);
    Ok(())
}

#[test]
fn groups_are_extended_reduced_renamed_tagged_and_removed_and_repeats_change_nothing() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let group = group_on(&handle, &[&a])?;
    let second = device_paths(&[&b])?;
    assert!(group.extend(&second, OldContent::Refuse)?.is_made());
    assert!(!group.extend(&second, OldContent::Refuse)?.is_made());
    assert_eq!(group.look()?.pvs.len(), 2);
    assert!(group.rename(&vg("other"))?.is_made());
    assert!(!group.rename(&vg("other"))?.is_made());
    assert_eq!(handle.lvm.group(&vg("other"))?.uuid(), group.uuid());
    assert_eq!(kind(handle.lvm.group(&vg("v"))), Kind::NotFound);
    assert!(group.tag(&[tag("x"), tag("y")], &[])?.is_made());
    assert!(!group.tag(&[tag("x")], &[tag("z")])?.is_made());
    assert!(group.tag(&[], &[tag("x")])?.is_made());
    assert_eq!(group.look()?.tags, [tag("y")]);
    // A PV in use does not leave, an empty one does, and the last one never.
    let on_second = volume("held", Bytes::mib(8)).on(second[0].clone());
    let _ = group.create_volume(&on_second)?;
    assert_eq!(kind(group.reduce(&second[0])), Kind::InUse);
    assert_eq!(kind(group.remove()), Kind::InUse);
    assert!(group.remove_volume(&lv("held"), OnRemove::Keep)?.is_made());
    assert!(group.reduce(&second[0])?.is_made());
    assert!(!group.reduce(&second[0])?.is_made());
    assert_eq!(kind(group.reduce(&device_paths(&[&a])?[0])), Kind::InUse);
    assert!(group.remove()?.is_made());
    assert!(!group.remove()?.is_made());
    assert!(handle.lvm.remove_pv(&second[0])?.is_made());
    assert!(!handle.lvm.remove_pv(&second[0])?.is_made());
    Ok(())
}

#[test]
fn a_volume_is_made_once_found_again_and_never_taken_for_another() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::gib(1))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let new = volume("db", Bytes::mib(100)).tag(tag("gabion.dev/volume=db"));
    let made = group.create_volume(&new)?;
    assert!(made.is_made());
    let made = made.into_inner();
    assert_eq!(made.size, Bytes::mib(100));
    // Never wiped, so neither unfinished nor blank.
    assert_eq!(made.tags, [tag("gabion.dev/volume=db")]);
    let before = seqno(&group)?;
    assert!(matches!(group.create_volume(&new)?, Change::Already(found) if found == made));
    assert_eq!(kind(group.create_volume(&volume("db", Bytes::mib(101)))), Kind::AlreadyExists);
    let at_most = NewVolume::new(lv("db"), at_least(Bytes::mib(1)).up_to(Bytes::mib(50)));
    assert_eq!(kind(group.create_volume(&at_most)), Kind::AlreadyExists);
    let mirrored = volume("db", Bytes::mib(100)).layout(Layout::Raid1 { copies: 2 });
    assert_eq!(kind(group.create_volume(&mirrored)), Kind::AlreadyExists);
    assert_eq!(seqno(&group)?, before);
    Ok(())
}

/// LVM-07: a size that extents do not divide is reached when it is passed, and asking again changes nothing.
#[test]
fn growing_rounds_up_to_extents_and_settles() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::gib(1))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let _ = group.create_volume(&volume("db", Bytes::mib(100)))?;
    for (asked, gets) in [(203, 213_909_504), (791, 830_472_192)] {
        let grown = group.extend_volume(&lv("db"), at_least(Bytes::mib(asked)), &[])?;
        assert!(grown.is_made());
        assert_eq!(grown.get().size, Bytes::new(gets));
        let before = seqno(&group)?;
        let again = group.extend_volume(&lv("db"), at_least(Bytes::mib(asked)), &[])?;
        assert!(!again.is_made());
        assert_eq!(again.get().size, Bytes::new(gets));
        assert_eq!(seqno(&group)?, before);
    }
    // Less than it has is no shrinking; a limit below what it has cannot be met.
    assert!(!group.extend_volume(&lv("db"), at_least(Bytes::mib(1)), &[])?.is_made());
    let limited = at_least(Bytes::mib(1)).up_to(Bytes::mib(2));
    assert_eq!(kind(group.extend_volume(&lv("db"), limited, &[])), Kind::InvalidArgument);
    let between = at_least(Bytes::mib(793)).up_to(Bytes::mib(795));
    assert_eq!(kind(group.extend_volume(&lv("db"), between, &[])), Kind::InvalidArgument);
    Ok(())
}

/// LVM-09: what the group says is free can be had to the last extent, and one byte more cannot.
#[test]
fn the_free_extents_can_really_be_had_and_not_one_byte_more() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::gib(1))?, Disk::new(Bytes::gib(1))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let group = group_on(&handle, &[&a, &b])?;
    assert_eq!(kind(group.create_volume(&volume("two", Bytes::gib(2)))), Kind::NoSpace(Space::Data));
    let seen = group.look()?;
    let free = seen.extent_size.span(seen.free_extents()).context("size")?;
    let more = Bytes::new(free.get() + 512);
    assert_eq!(kind(group.create_volume(&volume("more", more))), Kind::NoSpace(Space::Data));
    assert_eq!(group.create_volume(&volume("all", free))?.get().size, free);
    assert_eq!(group.look()?.free_extents(), Extents::ZERO);
    assert_eq!(kind(group.extend_volume(&lv("all"), at_least(more), &[])), Kind::NoSpace(Space::Data));
    assert_eq!(group.look()?.lvs.len(), 1);
    Ok(())
}

#[test]
fn legs_without_distinct_pvs_are_no_space_of_that_kind() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::mib(500))?, Disk::new(Bytes::mib(100))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let group = group_on(&handle, &[&a, &b])?;
    let before = seqno(&group)?;
    let stripe_size = Bytes::kib(64);
    for layout in [
        Layout::Raid1 { copies: 3 },
        Layout::Raid5 { stripes: 2, stripe_size },
        Layout::Raid10 { copies: 2, stripes: 2, stripe_size },
    ] {
        let new = volume("m", Bytes::mib(40)).layout(layout);
        assert_eq!(kind(group.create_volume(&new)), Kind::NoSpace(Space::Legs), "{layout:?}");
    }
    // Two PVs, but one leg of that size only.
    let new = volume("m", Bytes::mib(200)).layout(Layout::Raid1 { copies: 2 });
    assert_eq!(kind(group.create_volume(&new)), Kind::NoSpace(Space::Legs));
    assert_eq!(seqno(&group)?, before);
    Ok(())
}

#[test]
fn sizes_that_no_volume_can_have_never_reach_lvm() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(100))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let _ = group.create_volume(&volume("db", Bytes::mib(4)))?;
    let before = seqno(&group)?;
    for size in [0, 1, 511, 513, 4_194_305, 1 << 63, (1 << 63) - 1, (1 << 63) - 512, u64::MAX] {
        let size = Bytes::new(size);
        assert_eq!(kind(group.create_volume(&volume("x", size))), Kind::InvalidArgument, "{size:#}");
        let grown = group.extend_volume(&lv("db"), at_least(size), &[]);
        assert_eq!(kind(grown), Kind::InvalidArgument, "{size:#}");
    }
    // A name whose hyphens double beyond what device-mapper takes (LVM-05).
    let long = LvName::new(&"a-".repeat(60))?;
    let refused = group.create_volume(&NewVolume::new(long, at_least(Bytes::mib(4))));
    assert_eq!(kind(refused), Kind::InvalidArgument);
    assert_eq!(seqno(&group)?, before);
    Ok(())
}

#[test]
fn what_does_not_exist_and_what_exists_twice_have_their_kinds() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    for name in ["a", "b"] {
        let _ = group.create_volume(&volume(name, Bytes::mib(4)))?;
    }
    assert_eq!(kind(handle.lvm.group(&vg("absent"))), Kind::NotFound);
    assert_eq!(kind(group.extend_volume(&lv("c"), at_least(Bytes::mib(8)), &[])), Kind::NotFound);
    assert_eq!(kind(group.tag_volume(&lv("c"), &[tag("x")], &[])), Kind::NotFound);
    assert!(!group.remove_volume(&lv("c"), OnRemove::Keep)?.is_made());
    let a = group.volume(&lv("a"))?.uuid;
    assert!(group.rename_volume(a, &lv("c"))?.is_made());
    assert!(group.tag_volume(&lv("c"), &[tag("x")], &[])?.is_made());
    assert!(!group.tag_volume(&lv("c"), &[tag("x")], &[])?.is_made());
    assert_eq!(group.volume(&lv("c"))?.tags, [tag("x")]);
    // With one of the library's own tags, a complete volume would be removed as unfinished.
    for own in [lvm::ops::CREATING, lvm::ops::PART, lvm::ops::STALE, "gabion.dev/zero-from=1"].map(tag) {
        let own = std::slice::from_ref(&own);
        let new = volume("d", Bytes::mib(4)).tag(own[0].clone());
        assert_eq!(kind(group.create_volume(&new)), Kind::InvalidArgument, "{own:?}");
        assert_eq!(kind(group.tag_volume(&lv("c"), own, &[])), Kind::InvalidArgument, "{own:?}");
        assert_eq!(kind(group.tag_volume(&lv("c"), &[], own)), Kind::InvalidArgument, "{own:?}");
    }
    assert!(group.remove_unfinished()?.is_empty());
    Ok(())
}

/// A renaming that is asked for again is done, and another volume of the new name is never taken for the renamed one.
#[test]
fn a_volume_is_renamed_by_its_identity_and_no_other_one_passes_for_it() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let [a, b] =
        ["a", "b"].map(|name| group.create_volume(&volume(name, Bytes::mib(4))).unwrap().into_inner());
    let before = seqno(&group)?;
    assert_eq!(kind(group.rename_volume(a.uuid, &lv("b"))), Kind::AlreadyExists);
    assert_eq!(kind(group.rename_volume(group.uuid(), &lv("c"))), Kind::NotFound);
    assert!(!group.rename_volume(a.uuid, &lv("a"))?.is_made());
    assert_eq!(seqno(&group)?, before);
    let renamed = group.rename_volume(a.uuid, &lv("c"))?;
    assert!(renamed.is_made());
    let renamed = renamed.into_inner();
    assert_eq!((renamed.uuid, renamed.name, renamed.size), (a.uuid, lv("c"), a.size));
    assert!(!group.rename_volume(a.uuid, &lv("c"))?.is_made());
    // The old name is gone and a volume has the new one, as after the renaming; but that volume is another.
    assert!(group.remove_volume(&lv("c"), OnRemove::Keep)?.is_made());
    assert!(group.rename_volume(b.uuid, &lv("c"))?.is_made());
    let error = group.rename_volume(a.uuid, &lv("c")).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::AlreadyExists, lvm::Effect::None), "{error:?}");
    assert_eq!(kind(group.rename_volume(a.uuid, &lv("d"))), Kind::NotFound);
    assert_eq!(group.volume(&lv("c"))?.uuid, b.uuid);
    Ok(())
}

/// What a crash left half-made is removed, and making it again does not adopt it.
#[test]
fn unfinished_volumes_are_removed_and_never_adopted() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(400))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let pool = handle.lvm.workers().context("no pool")?;
    for name in ["a", "b", "keep"] {
        let words =
            ["lvcreate", "-y", "-an", "-Zn", "-Wn", "-l1", "--addtag", lvm::ops::CREATING, "-n", name, "v"];
        rig::workers::must(pool, &words)?;
    }
    rig::workers::must(pool, &["lvchange", "--deltag", lvm::ops::CREATING, "v/keep"])?;
    let old = group.volume(&lv("a"))?;
    let unfinished = group.extend_volume(&lv("a"), at_least(Bytes::mib(8)), &[]);
    assert_eq!(kind(unfinished), Kind::Busy);
    let made = group.create_volume(&volume("a", Bytes::mib(4)))?;
    assert!(made.is_made());
    assert_ne!(made.get().uuid, old.uuid);
    assert_eq!(group.remove_unfinished()?, [lv("b")]);
    assert_eq!(group.remove_unfinished()?, []);
    let names: Vec<_> = group.look()?.lvs.iter().map(|lv| lv.name.to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    Ok(())
}

/// LVM-19: a disk that grew is taken over once, with one commit.
#[test]
fn a_disk_that_grew_is_taken_over_once() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let mut disk = Disk::new(Bytes::mib(200))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    assert!(!group.resize_pvs()?.is_made());
    let (before, small) = (seqno(&group)?, group.look()?.total_extents());
    disk.grow(Bytes::mib(400))?;
    let resized = group.resize_pvs()?;
    assert!(resized.is_made());
    assert_eq!(resized.get().len(), 1);
    assert_eq!(group.look()?.total_extents().get(), small.get() + 50);
    assert!(!group.resize_pvs()?.is_made());
    assert_eq!(seqno(&group)?, before + 1);
    Ok(())
}

/// LVM-15: with two groups of one name neither is changed by name, and the other one is never touched.
#[test]
fn two_groups_of_one_name_are_told_apart_by_identity_and_not_changed() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?);
    let (ours, theirs) = (Handle::metadata_only(&[&a])?, Handle::metadata_only(&[&b])?);
    let group = group_on(&ours, &[&a])?;
    let foreign = group_on(&theirs, &[&b])?;
    ours.lvm.set_devices(device_paths(&[&a, &b])?)?;
    assert_eq!(kind(ours.lvm.group(&vg("v"))), Kind::Inconsistent);
    let both = ours.lvm.groups()?;
    assert_eq!(both.len(), 2);
    let before = foreign.look()?;
    let held = ours.lvm.group_by_uuid(group.uuid())?;
    let error = held.create_volume(&volume("x", Bytes::mib(4))).expect_err("two groups have the name");
    assert_eq!(error.kind(), Kind::Inconsistent);
    assert!(error.to_string().contains("2 groups are called v"), "{error}");
    assert_eq!(kind(held.remove()), Kind::Inconsistent);
    assert_eq!(foreign.look()?, before);
    // With the other disk away again, the handle by identity works.
    ours.lvm.set_devices(device_paths(&[&a])?)?;
    assert!(held.create_volume(&volume("x", Bytes::mib(4)))?.is_made());
    Ok(())
}

/// LVM-17: a disk that came back is known as such, and the group can be changed again once it is restored.
#[test]
fn a_group_with_a_missing_disk_refuses_changes_until_the_disk_is_restored() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, mut b) = (Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let group = group_on(&handle, &[&a, &b])?;
    let second = device_paths(&[&b])?.remove(0);
    let _ = group.create_volume(&volume("on-b", Bytes::mib(20)).on(second))?;
    b.detach()?;
    let pool = handle.lvm.workers().context("no pool")?;
    // LVM refuses this, but writes down that the PV is missing.
    let reply = rig::workers::ask(pool, &["vgreduce", "--removemissing", "v"])?;
    assert_ne!(reply.code, lvm::run::ReturnCode::Succeeded);
    assert_eq!(kind(group.create_volume(&volume("x", Bytes::mib(4)))), Kind::MissingPv);
    assert_eq!(kind(group.forget_missing()), Kind::InUse);
    assert!(!group.restore_missing()?.is_made());
    b.reattach()?;
    handle.lvm.set_devices(device_paths(&[&a, &b])?)?;
    let error = group.create_volume(&volume("x", Bytes::mib(4))).expect_err("still flagged as missing");
    assert_eq!(error.kind(), Kind::MissingPv);
    assert!(error.to_string().contains("not restored"), "{error}");
    assert!(group.restore_missing()?.is_made());
    assert!(!group.restore_missing()?.is_made());
    assert!(group.look()?.is_complete());
    assert!(group.create_volume(&volume("x", Bytes::mib(4)))?.is_made());
    Ok(())
}

#[test]
fn a_missing_disk_without_volumes_can_be_forgotten() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, mut b) = (Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?);
    let handle = Handle::metadata_only(&[&a, &b])?;
    let group = group_on(&handle, &[&a, &b])?;
    assert!(!group.forget_missing()?.is_made());
    b.detach()?;
    assert!(group.forget_missing()?.is_made());
    assert_eq!(group.look()?.pvs.len(), 1);
    assert!(group.create_volume(&volume("x", Bytes::mib(4)))?.is_made());
    Ok(())
}

#[test]
fn nothing_without_the_owners_tag_is_changed() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let plain = Handle::metadata_only(&[&disk])?;
    let group = group_on(&plain, &[&disk])?;
    let _ = group.create_volume(&volume("theirs", Bytes::mib(4)))?;
    let owner = tag("gabion.dev/owner=me");
    let ours = Handle::with(&[&disk], Activation::MetadataOnly, |builder| builder.owner(owner.clone()))?;
    let held = ours.lvm.group(&vg("v"))?;
    let before = held.look()?;
    assert_eq!(kind(held.create_volume(&volume("x", Bytes::mib(4)))), Kind::Foreign);
    assert_eq!(kind(held.remove_volume(&lv("theirs"), OnRemove::Keep)), Kind::Foreign);
    assert_eq!(kind(held.rename(&vg("mine"))), Kind::Foreign);
    assert_eq!(kind(held.remove()), Kind::Foreign);
    assert_eq!(kind(held.remove_unfinished()), Kind::Foreign);
    assert_eq!(held.look()?, before);
    assert!(held.adopt()?.is_made());
    assert!(!held.adopt()?.is_made());
    // The group is ours now, the volume in it is not.
    assert_eq!(kind(held.remove_volume(&lv("theirs"), OnRemove::Keep)), Kind::Foreign);
    assert_eq!(kind(held.create_volume(&volume("theirs", Bytes::mib(4)))), Kind::AlreadyExists);
    let made = held.create_volume(&volume("ours", Bytes::mib(4)))?.into_inner();
    assert!(made.tags.contains(&owner), "{:?}", made.tags);
    assert!(held.remove_volume(&lv("ours"), OnRemove::Keep)?.is_made());
    Ok(())
}

#[test]
fn a_disk_with_something_on_it_becomes_a_pv_only_by_consent() -> Result<()> {
    if skip_unless_loop() || rig::skip_unless_installed(&["mkfs.ext4"]) {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(100))?;
    rig::tool::run("mkfs.ext4", ["-q", "-F", &disk.path().display().to_string()])?;
    let head = |disk: &Disk| -> Result<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; 1 << 20];
        File::open(disk.path())?.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    let before = head(&disk)?;
    let handle = Handle::metadata_only(&[&disk])?;
    let device = device_paths(&[&disk])?.remove(0);
    let refused = handle.lvm.create_group(&NewGroup::new(vg("v"), [device.clone()]));
    assert_eq!(kind(refused), Kind::InUse);
    assert!(head(&disk)? == before, "a refused disk was written to");
    let consent = NewPv::new(device.clone()).old_content(OldContent::Wipe);
    assert!(handle.lvm.create_pv(&consent)?.is_made());
    assert!(!handle.lvm.create_pv(&consent)?.is_made());
    let group = group_on(&handle, &[&disk])?;
    // A PV of a group stays one, whatever is consented to.
    assert_eq!(kind(handle.lvm.create_pv(&consent)), Kind::InUse);
    assert_eq!(kind(handle.lvm.remove_pv(&device)), Kind::InUse);
    assert!(group.look()?.is_complete());
    Ok(())
}

#[test]
fn a_lock_held_by_another_process_is_busy_after_the_deadline_and_then_works() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(100))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let group = group_on(&handle, &[&disk])?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(handle.workers().path("lock").join("V_v"))?;
    lock.lock()?;
    let hurried = handle.lvm.with_deadline(Duration::from_secs(6)).group(&vg("v"))?;
    assert_eq!(kind(hurried.create_volume(&volume("x", Bytes::mib(4)))), Kind::Busy);
    assert_eq!(group.look()?.lvs.len(), 0);
    drop(lock);
    assert!(group.create_volume(&volume("x", Bytes::mib(4)))?.is_made());
    Ok(())
}

#[test]
fn a_full_metadata_area_is_no_space_of_that_kind() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::gib(1))?;
    let handle = Handle::metadata_only(&[&disk])?;
    let device = device_paths(&[&disk])?.remove(0);
    let _ = handle.lvm.create_pv(&NewPv::new(device.clone()).metadata_size(Bytes::mib(1)))?;
    let group = group_on(&handle, &[&disk])?;
    let mut refused = None;
    for number in 0..120 {
        let mut new = volume(&format!("v{number}"), Bytes::mib(4)).content(Content::Untouched);
        for part in 0..20 {
            new = new.tag(tag(&format!("{part}{}", "x".repeat(1000))));
        }
        if let Err(error) = group.create_volume(&new) {
            refused = Some((number, error));
            break;
        }
    }
    let (number, error) = refused.context("the area took everything")?;
    assert_eq!(error.kind(), Kind::NoSpace(Space::Metadata), "{error:#}");
    assert!(number > 20, "{number}");
    assert_eq!(group.look()?.lvs.len(), number);
    Ok(())
}

/// A group that nobody can recover must not keep others from being made: its lock is held by a program that hangs.
#[test]
fn a_closed_group_keeps_no_other_group_from_being_made() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (a, b) = (Disk::new(Bytes::mib(256))?, Disk::new(Bytes::mib(256))?);
    let short = |builder: lvm::LvmBuilder| builder.deadline(Duration::from_secs(5));
    let handle = Handle::with(&[&a, &b], Activation::MetadataOnly, short)?;
    let closed = group_on(&handle, &[&a])?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(handle.workers().path("lock/V_v"))?;
    lock.lock()?;
    let scope = Scope::Vg { name: vg("v"), uuid: closed.uuid() };
    handle.lvm.workers().context("no workers")?.quarantine(&scope, "its worker died");
    assert_eq!(kind(closed.create_volume(&volume("x", Bytes::mib(8)))), Kind::Busy);
    let start = Instant::now();
    let new = NewGroup::new(vg("w"), device_paths(&[&b])?);
    let made = handle.lvm.create_group(&new)?.into_inner();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let _ = made.create_volume(&volume("x", Bytes::mib(8)).content(Content::Untouched))?;
    // The devices of the closed group are its own all the same.
    assert_eq!(kind(handle.lvm.create_group(&NewGroup::new(vg("y"), device_paths(&[&a])?))), Kind::InUse);
    assert_eq!(kind(closed.rename(&vg("z"))), Kind::Busy);
    drop(lock);
    Ok(())
}
