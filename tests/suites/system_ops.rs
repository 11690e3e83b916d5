//! Operations on thick volumes end to end on a kernel with device-mapper, with data on them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::loopdev::Attach;
use lvm::dm::Dm;
use lvm::ops::{
    AfterDetach, CacheMode, Content, Group, Integrity, Layout, MoveEnd, NewGroup, NewSnapshot, OnRemove,
};
use lvm::worker::conf::Activation;
use lvm::{DevicePath, Kind, Tag, VgName};
use rig::ask::{at_least, kind, lv, volume};
use rig::crawl::Crawl;
use rig::filesystem::{format, signatures};
use rig::fixture::{Fixture, fill};
use rig::{Handle, Mounted, skip_unless_dm, tool};

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

/// The devices below the volume `db`.
fn below_db(group: &Group) -> Result<Vec<PathBuf>> {
    let seen = group.look()?;
    let pvs = seen.pvs_below(seen.lv("db").context("db")?);
    Ok(pvs.iter().filter_map(|pv| seen.pv(*pv)?.device.as_ref().map(|at| at.path.clone())).collect())
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
    let crawl = Crawl::begin()?;
    let mut given_up = None;
    let end = group.move_extents(&from, &[], None, &mut |at| {
        given_up = Some(at);
        ControlFlow::Break(())
    })?;
    ensure!(given_up.is_some_and(|at| at.copied < at.total), "given up too late: {given_up:?}");
    assert_eq!(end, MoveEnd::Aborted);
    assert_eq!(below_db(group)?, [from.as_path()]);
    drop(crawl);
    let mut seen = Vec::new();
    let end = group.move_extents(&from, std::slice::from_ref(&to), None, &mut |progress| {
        seen.push(progress);
        ControlFlow::Continue(())
    })?;
    assert_eq!(end, MoveEnd::Moved);
    assert!(seen.iter().all(|at| at.copied <= at.total) && !seen.is_empty(), "{seen:?}");
    assert_eq!(below_db(group)?, [to.as_path()]);
    mounted.check("data", 50)?;
    let nothing = group.move_extents(&from, &[], None, &mut |_| ControlFlow::Continue(()))?;
    assert_eq!(nothing, MoveEnd::Nothing);
    assert!(group.reduce(&from)?.is_made());
    mounted.unmount()
}

/// The last moment: everything is copied, and LVM has not looked yet. Its command ends well in either case; where the extents
/// are is what counts.
#[test]
fn a_move_that_is_given_up_too_late_is_told_as_done() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(2, Bytes::mib(100))?;
    let group = &fixture.group;
    let disks = [fixture.device(0)?, fixture.device(1)?];
    let _ = group.create_volume(&volume("db", Bytes::mib(40)).on(disks[0].clone()))?;
    let (mut at, mut ends) = (0, Vec::new());
    for _ in 0..4 {
        let (from, to) = (&disks[at], &disks[1 - at]);
        let end = group.move_extents(from, std::slice::from_ref(to), None, &mut |progress| {
            if progress.copied < progress.total { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        at = match end {
            MoveEnd::Moved => 1 - at,
            MoveEnd::Aborted => at,
            MoveEnd::Nothing => anyhow::bail!("there was something to move"),
        };
        ends.push(end);
        assert_eq!(below_db(group)?, [disks[at].as_path()], "{ends:?}");
        assert_eq!(group.look()?.lvs.len(), 1, "the move is still in the metadata");
    }
    println!("FIGURES: given up when everything was copied: {ends:?}");
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

#[test]
fn a_volume_that_is_open_for_a_moment_is_waited_for_and_one_that_stays_open_is_in_use() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(2, Bytes::mib(200))?;
    let group = &fixture.group;
    let slow = group.create_volume(&volume("slow", Bytes::mib(64)))?.into_inner();
    let fast = group.create_volume(&volume("fast", Bytes::mib(32)))?.into_inner();
    let attach = || group.attach_cache(&lv("slow"), &lv("fast"), CacheMode::WriteThrough, None);
    let held = File::open(&fast.device)?;
    assert_eq!(kind(attach()), Kind::InUse);
    // As udev does, which opens every device that was just made.
    let let_go = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        drop(held);
    });
    assert!(attach()?.is_made());
    let_go.join().expect("the thread that holds the device");
    assert!(group.detach_cache(&lv("slow"), AfterDetach::Remove)?.is_made());

    let snapshot = NewSnapshot::new(lv("slow"), lv("cut"), at_least(Bytes::mib(16)));
    assert!(group.snapshot(&snapshot)?.is_made());
    let held = File::open(&slow.device)?;
    assert_eq!(kind(group.restore_snapshot(&lv("cut"))), Kind::InUse);
    let let_go = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        drop(held);
    });
    group.restore_snapshot(&lv("cut"))?;
    let_go.join().expect("the thread that holds the device");
    Ok(())
}

/// What may take longer in an emulated machine.
mod minutes_5 {
    use super::*;

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
}
