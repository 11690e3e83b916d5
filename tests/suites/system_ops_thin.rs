//! Operations on thin pools and volumes end to end on a kernel with device-mapper, with data on them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::dm::WhenFull;
use lvm::ops::{Layout, NewGroup, NewPool, NewThin, NewThinSnapshot, OnRemove, PoolSize};
use lvm::worker::conf::Activation;
use lvm::{FillLimit, Kind, Space, Tag, VgName};
use rig::ask::{at_least, kind, lv};
use rig::filesystem::format;
use rig::fixture::{Fixture, fill, is_active};
use rig::{Disk, Handle, Mounted, device_paths, skip_unless_dm, tool};
use rustix::fs::inotify;

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

/// How often a text stands at the beginning of a sector of a disk.
fn sectors_with(disk: &Disk, text: &[u8]) -> Result<usize> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    let file = File::open(disk.path())?;
    let mut buffer = vec![0; 4 << 20];
    let (mut found, mut at) = (0, 0);
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            return Ok(found);
        }
        found += buffer[..read].chunks(512).filter(|sector| sector.starts_with(text)).count();
        at += read as u64;
    }
}

#[test]
fn zeroing_a_thin_volume_of_eight_tebibytes_writes_only_what_it_has_and_spares_its_snapshot() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(400))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    let made =
        group.create_thin(&NewThin::new(lv("pool"), lv("a"), at_least(Bytes::gib(8 << 10))))?.into_inner();
    let sectors = |text: &[u8]| [text, &vec![0; 512 - text.len()]].concat().repeat(512);
    let device = std::fs::File::options().write(true).open(&made.device)?;
    let write = |text: &[u8], at: Bytes| device.write_all_at(&sectors(text), at.get());
    write(b"told to the snapshot", Bytes::gib(3 << 10))?;
    device.sync_all()?;
    let _ = group.snapshot_thin(&NewThinSnapshot::new(lv("a"), lv("cut")))?;
    for at in [Bytes::ZERO, Bytes::gib(1), Bytes::gib(8 << 10).saturating_sub(Bytes::kib(256))] {
        write(b"its own secret", at)?;
    }
    device.sync_all()?;
    drop(device);
    ensure!(sectors_with(&fixture.disks[0], b"its own secret")? == 3 * 512);
    let start = std::time::Instant::now();
    assert!(group.remove_volume(&lv("a"), OnRemove::Zero)?.is_made());
    println!("removed in {:.1} s", start.elapsed().as_secs_f64());
    ensure!(sectors_with(&fixture.disks[0], b"its own secret")? == 0, "the disk still has the secret");
    let _ = group.activate_volume(&lv("cut"))?;
    let mut found = vec![0; 512 * 512];
    File::open(group.volume(&lv("cut"))?.device)?.read_exact_at(&mut found, Bytes::gib(3 << 10).get())?;
    ensure!(found == sectors(b"told to the snapshot"), "the snapshot lost what it had");
    Ok(())
}

/// Whoever closes a device that he could write to has udevd open it at the moment at which it is to go.
#[test]
fn a_thin_volume_that_was_never_written_is_removed_without_being_opened_for_writing() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(1, Bytes::mib(400))?;
    let group = &fixture.group;
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))))?;
    for (name, content) in [("a", OnRemove::Discard), ("b", OnRemove::Zero)] {
        for written in [false, true] {
            let thin = NewThin::new(lv("pool"), lv(name), at_least(Bytes::mib(64)));
            let made = group.create_thin(&thin)?.into_inner();
            if written {
                std::fs::write(&made.device, [1; 4096])?;
            }
            let watch = inotify::init(inotify::CreateFlags::NONBLOCK)?;
            inotify::add_watch(&watch, made.device.canonicalize()?, inotify::WatchFlags::CLOSE_WRITE)?;
            assert!(group.remove_volume(&lv(name), content)?.is_made());
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(&watch, &mut buffer);
            let mut opened = false;
            while let Ok(event) = reader.next() {
                opened |= event.events().contains(inotify::ReadFlags::CLOSE_WRITE);
            }
            assert_eq!(opened, written, "{content:?}");
        }
    }
    Ok(())
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
fn a_pool_on_stripes_grows_by_whole_stripes_within_the_callers_limit() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let fixture = Fixture::new(3, Bytes::mib(100))?;
    let group = &fixture.group;
    let layout = Layout::Striped { stripes: 3, stripe_size: Bytes::kib(64) };
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(40)))).layout(layout);
    assert_eq!(group.create_pool(&pool)?.get().size, Bytes::mib(48));
    assert!(!group.create_pool(&pool)?.is_made());
    let limited = PoolSize::Data(at_least(Bytes::mib(50)).up_to(Bytes::mib(59)));
    assert_eq!(kind(group.extend_pool(&lv("pool"), limited, &[])), Kind::InvalidArgument);
    let grown = group.extend_pool(&lv("pool"), PoolSize::Data(at_least(Bytes::mib(50))), &[])?;
    assert_eq!(grown.get().size, Bytes::mib(60));
    assert!(!group.extend_pool(&lv("pool"), PoolSize::Data(at_least(Bytes::mib(50))), &[])?.is_made());
    assert!(group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(40))))?.is_made());
    Ok(())
}

/// The limit is the caller's; a new pool's own bookkeeping is above one percent of the smallest metadata.
#[test]
fn a_pool_whose_metadata_are_fuller_than_allowed_takes_nothing_new() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(200))?;
    let limit = FillLimit { data: 95, metadata: 1 };
    let handle = Handle::with(&[&disk], Activation::Udev, |builder| builder.refuse_at(limit))?;
    let new = NewGroup::new(VgName::new("v")?, device_paths(&[&disk])?);
    let group = handle.lvm.create_group(&new)?.into_inner();
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).metadata(Bytes::mib(2));
    let _ = group.create_pool(&pool)?;
    let seqno = group.look()?.seqno;
    let refused = group.create_thin(&NewThin::new(lv("pool"), lv("t"), at_least(Bytes::mib(64))));
    let after = group.look()?.seqno;
    group.deactivate()?;
    assert_eq!(kind(refused), Kind::NoSpace(Space::Metadata));
    assert_eq!(after, seqno);
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

/// What may take longer in an emulated machine.
mod minutes_5 {
    use super::*;

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
        let _ = group.tag_volume(
            &lv("db"),
            &[Tag::new("gabion.dev/fs=ext4")?],
            &[Tag::new(lvm::ops::FS_NEW)?],
        )?;
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
}
