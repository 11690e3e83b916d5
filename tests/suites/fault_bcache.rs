//! bcache on a real kernel, under a real udevd that registers what it sees.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bcache::{
    Bcache, Blank, CacheMode, DetachPhase, Kind, Knob, NewBacking, Outcome, Registered, State, Superblock,
    Writeback,
};
use devices::{Bytes, Effect};
use rig::caching::{
    BACKING, CACHE, Caching, Clear, check, fill, format_backing, format_cache, go_on, make_under_udevd,
    register_backing, register_cache, skip_unless_bcache, stop_all,
};
use rig::{Disk, Faulty, eventually, skip_unless_dm, tool};

const PATIENCE: Duration = Duration::from_secs(20);

/// udevd, held back as long as this exists: what is registered meanwhile is registered by nobody else.
struct UdevHeld;

impl UdevHeld {
    fn new() -> Self {
        tool::run("udevadm", ["control", "--stop-exec-queue"]).unwrap();
        Self
    }
}

impl Drop for UdevHeld {
    fn drop(&mut self) {
        tool::run("udevadm", ["control", "--start-exec-queue"]).unwrap();
    }
}

fn settle() {
    tool::run("udevadm", ["settle"]).unwrap();
}

fn superblock(path: &Path) -> Superblock {
    Superblock::read(path).unwrap().unwrap()
}

/// A set in write-back mode whose backing disk takes so many milliseconds for a write, with 16 MiB of dirty blocks.
fn dirty_over_a_slow_disk(seed: u64, milliseconds: u32) -> (Caching, Faulty) {
    let slow = Faulty::over(Disk::new(BACKING).unwrap()).unwrap();
    let cache = Disk::new(CACHE).unwrap();
    let made = format_cache(cache.path()).unwrap();
    let uuid = format_backing(slow.path(), &made, CacheMode::WriteBack).unwrap().uuid;
    let caching = Caching::of(cache, Vec::new(), made.set.unwrap(), vec![uuid]);
    let _ = register_cache(caching.cache.path()).unwrap();
    let _ = register_backing(slow.path()).unwrap();
    let device = caching.device(0).unwrap();
    caching.keep_dirty(0).unwrap();
    fill(&device, seed, 16).unwrap();
    slow.slow_writes(milliseconds).unwrap();
    (caching, slow)
}

/// What tells most, for every run.
mod smoke {
    use super::*;

    #[test]
    fn a_cache_set_is_made_used_stopped_and_found_again() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(1, CacheMode::WriteBack).unwrap();
        caching.keep_dirty(0).unwrap();
        fill(&caching.device(0).unwrap(), 1, 8).unwrap();
        let status = caching.backing(0).unwrap().status().unwrap();
        assert_eq!(
            (status.state, status.set, status.mode),
            (State::Dirty, Some(caching.set), CacheMode::WriteBack)
        );
        assert!(status.dirty.unwrap().at_most() >= Bytes::mib(8), "{status:?}");
        // What the kernel has written over our superblocks is understood, and says the same.
        let cache = superblock(caching.cache.path());
        assert!(cache.cache().unwrap().in_use && cache.cache().unwrap().journal_buckets > 0, "{cache:?}");
        assert_eq!(superblock(caching.backings[0].path()).backing().unwrap().state, State::Dirty);
        caching.stop().unwrap();
        assert!(Bcache::new().backings().unwrap().is_empty() && Bcache::new().sets().unwrap().is_empty());
        assert_eq!(Blank::claim(caching.cache.path()).unwrap_err().kind(), Kind::AlreadyExists);
        caching.register().unwrap();
        check(&caching.device(0).unwrap(), 0, 1, 8).unwrap();
    }

    #[test]
    fn registration_ends_well_whether_udev_or_we_come_first() {
        if skip_unless_bcache() {
            return;
        }
        let (cache, backing) = (Disk::new(CACHE).unwrap(), Disk::new(BACKING).unwrap());
        let _clear = Clear;
        {
            let _held = UdevHeld::new();
            let made = format_cache(cache.path()).unwrap();
            format_backing(backing.path(), &made, CacheMode::WriteThrough).unwrap();
            for disk in [&backing, &cache] {
                let change = Bcache::new().register(disk.path()).unwrap();
                assert!(change.is_made(), "{change:?}");
            }
        }
        // Now udev comes to it late, and finds it done.
        settle();
        assert!(!Bcache::new().register(cache.path()).unwrap().is_made());
        let registered = register_backing(backing.path()).unwrap();
        eventually("the cached device runs", PATIENCE, || registered.device().unwrap().is_some());
        stop_all(&[registered.uuid()], register_cache(cache.path()).unwrap().uuid()).unwrap();
        // And now udev alone, at what looks to it like a new device.
        for disk in [&cache, &backing] {
            tool::run("udevadm", ["trigger", "--settle", "--action=change", disk.path().to_str().unwrap()])
                .unwrap();
        }
        eventually("udev registers both", PATIENCE, || Bcache::new().backing(registered.uuid()).is_ok());
        for disk in [&cache, &backing] {
            assert!(!Bcache::new().register(disk.path()).unwrap().is_made());
        }
    }

    #[test]
    fn a_detach_that_is_given_up_or_takes_too_long_leaves_the_device_attached() {
        if skip_unless_bcache() || skip_unless_dm() {
            return;
        }
        let (caching, slow) = dirty_over_a_slow_disk(2, 3000);
        let backing = caching.backing(0).unwrap();
        let knobs = backing.knobs().unwrap();
        let cancelled = backing.detach(PATIENCE, |_| ControlFlow::Break(())).unwrap_err();
        assert_eq!(cancelled.kind(), Kind::Cancelled, "{cancelled}");
        let begun = Instant::now();
        let late = backing.detach(Duration::from_secs(1), go_on).unwrap_err();
        assert_eq!(late.kind(), Kind::TimedOut, "{late}");
        // The superblock is on the slow disk, too, and the mode is in it.
        assert!((1..15).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
        for error in [cancelled, late] {
            assert!(
                error.effect() == Effect::None && error.to_string().contains("stays attached"),
                "{error}"
            );
        }
        assert_eq!(backing.set().unwrap().unwrap().uuid(), caching.set);
        let after = backing.knobs().unwrap();
        assert_eq!(
            (after.mode, after.writeback, after.writeback_delay),
            (knobs.mode, knobs.writeback, knobs.writeback_delay)
        );
        check(&caching.device(0).unwrap(), 0, 2, 16).unwrap();
        slow.recover().unwrap();
        assert!(backing.detach(PATIENCE, go_on).unwrap().is_made());
        check(slow.path(), 8192, 2, 16).unwrap();
        caching.stop().unwrap();
        drop(caching);
        drop(slow);
    }

    #[test]
    fn what_somebody_registers_again_is_stopped_again_but_not_for_ever() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
        let paths = [caching.cache.path(), caching.backings[0].path()].map(|path| path.display().to_string());
        let (backing, set) = (caching.backing(0).unwrap(), caching.set().unwrap());
        // As udev does it, only without end: each write is refused while the device is registered.
        let go_on = AtomicBool::new(true);
        let answers = std::thread::scope(|scope| {
            scope.spawn(|| {
                while go_on.load(Ordering::Relaxed) {
                    for path in &paths {
                        let _ = std::fs::write("/sys/fs/bcache/register_quiet", path);
                    }
                }
            });
            let begun = Instant::now();
            let answers = [backing.stop(), set.stop()];
            go_on.store(false, Ordering::Relaxed);
            assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
            answers
        });
        for answer in answers {
            // Between two registrations it can have been gone, and that is what was asked for.
            let kinds = [Kind::Busy, Kind::InUse];
            assert!(
                answer.as_ref().map_or_else(|error| kinds.contains(&error.kind()), |_| true),
                "{answer:?}"
            );
        }
        caching.stop().unwrap();
    }

    #[test]
    fn of_two_devices_with_one_identity_neither_is_taken() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
        caching.stop().unwrap();
        let _held = UdevHeld::new();
        let copy = |disk: &Disk, size: Bytes| {
            let mut head = vec![0; 1 << 20];
            std::fs::File::open(disk.image()).unwrap().read_exact_at(&mut head, 0).unwrap();
            Disk::filled(size, |path| {
                Ok(std::fs::OpenOptions::new().write(true).open(path)?.write_all_at(&head, 0)?)
            })
            .unwrap()
        };
        let (twin, other_cache) = (copy(&caching.backings[0], BACKING), copy(&caching.cache, CACHE));
        let bcache = Bcache::new();
        let paths = [caching.backings[0].path(), twin.path(), caching.cache.path(), other_cache.path()];
        for adopted in bcache.adopt(&paths, PATIENCE) {
            let Outcome::Failed(error) = adopted.outcome else { panic!("{adopted:?}") };
            assert_eq!(error.kind(), Kind::Inconsistent, "{error}");
        }
        assert!(bcache.backings().unwrap().is_empty() && bcache.sets().unwrap().is_empty());
        caching.register().unwrap();
        for copy in [&twin, &other_cache] {
            let error = bcache.register(copy.path()).unwrap_err();
            assert_eq!(error.kind(), Kind::Inconsistent, "{error}");
        }
        // udev looks at nothing; then the identity alone says no more which one is meant.
        std::fs::write("/sys/fs/bcache/register_quiet", twin.path().to_str().unwrap()).unwrap();
        let error = bcache.backing(caching.uuids[0]).unwrap_err();
        assert_eq!(error.kind(), Kind::Inconsistent, "{error}");
        drop(caching);
        drop((twin, other_cache));
    }

    #[test]
    fn a_dirty_device_without_its_cache_set_waits_and_is_never_forced() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(1, CacheMode::WriteBack).unwrap();
        caching.keep_dirty(0).unwrap();
        fill(&caching.device(0).unwrap(), 3, 8).unwrap();
        caching.backing(0).unwrap().turn(&Knob::Label("orders".parse().unwrap())).unwrap();
        let attached = caching.backing(0).unwrap().loss().unwrap().unwrap();
        assert!(attached.to_string().contains("about 8 MiB that exists only on the cache set"), "{attached}");
        caching.stop().unwrap();
        let other = Disk::new(CACHE).unwrap();
        format_cache(other.path()).unwrap();
        let other = register_cache(other.path()).map(|set| (set, other)).unwrap();
        // The machine starts, and the cache device is not there.
        let paths = [caching.backings[0].path()];
        let adopted = Bcache::new().adopt(&paths, Duration::from_secs(10)).remove(0);
        let Outcome::Waiting { backing, set, state } = adopted.outcome else { panic!("{adopted:?}") };
        assert_eq!((set, state), (Some(caching.set), State::Dirty));
        assert_eq!(backing.device().unwrap(), None);
        for error in [
            backing.run_without_cache().unwrap_err(),
            backing.attach(&other.0).unwrap_err(),
            backing.replace_cache(&other.0, PATIENCE, go_on).unwrap_err(),
            backing.detach(PATIENCE, go_on).unwrap_err(),
        ] {
            assert_eq!(error.kind(), Kind::Dirty, "{error}");
            let text = error.to_string();
            for word in
                [caching.uuids[0].to_string(), caching.set.to_string(), "(orders)".into(), "256 MiB".into()]
            {
                assert!(text.contains(&word), "no {word:?} in {text}");
            }
        }
        assert_eq!(backing.device().unwrap(), None);
        stop_all(&caching.uuids, caching.set).unwrap();
        // Neither of the two is ever retired: each has what the other one lacks.
        for (disk, uuid) in [
            (&caching.backings[0], caching.uuids[0]),
            (&caching.cache, superblock(caching.cache.path()).uuid),
        ] {
            let error = Bcache::new().retire(disk.path(), uuid, &paths).unwrap_err();
            assert_eq!(error.kind(), Kind::Dirty, "{error}");
        }
        // The cache device comes: everything is there.
        caching.register().unwrap();
        check(&caching.device(0).unwrap(), 0, 3, 8).unwrap();
        let _ = other.0.stop().unwrap();
    }

    #[test]
    fn one_cache_set_serves_many_and_is_stopped_only_when_none_is_left() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(3, CacheMode::WriteBack).unwrap();
        let set = caching.set().unwrap();
        assert_eq!(set.backings().unwrap().len(), 3);
        assert_eq!(set.caches().unwrap()[0].path, caching.cache.path());
        for nth in 0..3 {
            caching.keep_dirty(nth).unwrap();
            fill(&caching.device(nth).unwrap(), nth as u64, 2).unwrap();
        }
        let error = set.stop().unwrap_err();
        assert_eq!(error.kind(), Kind::InUse, "{error}");
        let mut drained = std::collections::BTreeSet::new();
        let change = set.unregister(PATIENCE, |uuid, _| {
            drained.insert(uuid);
            ControlFlow::Continue(())
        });
        assert!(change.unwrap().is_made());
        assert_eq!(drained.into_iter().collect::<Vec<_>>(), {
            let mut uuids = caching.uuids.clone();
            uuids.sort_unstable();
            uuids
        });
        assert!(
            !set.exists() && !set.unregister(PATIENCE, |_, _| ControlFlow::Continue(())).unwrap().is_made()
        );
        for nth in 0..3 {
            check(&caching.device(nth).unwrap(), 0, nth as u64, 2).unwrap();
            let _ = caching.backing(nth).unwrap().stop().unwrap();
        }
    }
}

#[test]
fn devices_are_made_under_a_running_udevd() {
    if !skip_unless_bcache() {
        make_under_udevd(3).unwrap();
    }
}

#[test]
fn a_detach_writes_out_what_is_dirty() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteBack).unwrap();
    let backing = caching.backing(0).unwrap();
    caching.keep_dirty(0).unwrap();
    fill(&caching.device(0).unwrap(), 2, 8).unwrap();
    let mut seen = Vec::new();
    let change = backing
        .detach(PATIENCE, |progress| {
            seen.push(progress);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(change.is_made());
    assert!(seen.iter().any(|progress| progress.phase == DetachPhase::Draining && progress.dirty.is_zero()));
    let status = backing.status().unwrap();
    assert_eq!((status.state, status.set, status.mode), (State::NoCache, None, CacheMode::WriteBack));
    assert!(!backing.detach(PATIENCE, go_on).unwrap().is_made());
    // It goes on without the cache, and the backing device alone has it all.
    check(&caching.device(0).unwrap(), 0, 2, 8).unwrap();
    check(caching.backings[0].path(), 8192, 2, 8).unwrap();
    // And back.
    assert!(backing.attach(&caching.set().unwrap()).unwrap().is_made());
    assert!(!backing.attach(&caching.set().unwrap()).unwrap().is_made());
    assert_eq!(backing.status().unwrap().state, State::Clean);
}

#[test]
fn a_waiting_device_starts_by_itself_when_its_cache_comes() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
    caching.stop().unwrap();
    let _held = UdevHeld::new();
    let backing = register_backing(caching.backings[0].path()).unwrap();
    assert_eq!((backing.status().unwrap().state, backing.device().unwrap()), (State::Clean, None));
    let _ = register_cache(caching.cache.path()).unwrap();
    eventually("the cached device runs", PATIENCE, || backing.device().unwrap().is_some());
}

#[test]
fn a_clean_device_goes_on_with_another_cache_or_with_none() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(2, CacheMode::WriteThrough).unwrap();
    for nth in 0..2 {
        fill(&caching.device(nth).unwrap(), 4, 4).unwrap();
    }
    caching.stop().unwrap();
    // The cache device has failed for good; a new one comes.
    let new = Disk::new(CACHE).unwrap();
    format_cache(new.path()).unwrap();
    let new_set = register_cache(new.path()).unwrap();
    let first = register_backing(caching.backings[0].path()).unwrap();
    assert_eq!(first.loss().unwrap(), None);
    assert!(first.replace_cache(&new_set, PATIENCE, go_on).unwrap().is_made());
    assert!(!first.replace_cache(&new_set, PATIENCE, go_on).unwrap().is_made());
    eventually("it runs under the new cache", PATIENCE, || first.device().unwrap().is_some());
    check(&caching.device(0).unwrap(), 0, 4, 4).unwrap();
    let second = register_backing(caching.backings[1].path()).unwrap();
    assert!(second.run_without_cache().unwrap().is_made());
    assert_eq!(second.status().unwrap().state, State::Inconsistent);
    let device = caching.device(1).unwrap();
    fill(&device, 5, 4).unwrap();
    // The old cache comes back: what it has of the device is old, and is not used.
    let _ = register_cache(caching.cache.path()).unwrap();
    let _ = second.attach(&caching.set().unwrap());
    check(&device, 0, 5, 4).unwrap();
    drop(caching);
    drop(new);
}

#[test]
fn a_working_cache_is_replaced_by_another_one_in_use() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteBack).unwrap();
    caching.keep_dirty(0).unwrap();
    let device = caching.device(0).unwrap();
    fill(&device, 6, 4).unwrap();
    let new = Disk::new(CACHE).unwrap();
    format_cache(new.path()).unwrap();
    let new_set = register_cache(new.path()).unwrap();
    let open = std::fs::File::open(&device).unwrap();
    let backing = caching.backing(0).unwrap();
    assert!(backing.replace_cache(&new_set, PATIENCE, go_on).unwrap().is_made());
    assert_eq!(backing.set().unwrap().unwrap().uuid(), new_set.uuid());
    check(&device, 0, 6, 4).unwrap();
    drop(open);
    // The old cache holds nothing any more, and its device can be something else.
    assert!(caching.set().unwrap().unregister(PATIENCE, |_, progress| go_on(progress)).unwrap().is_made());
    let uuid = superblock(caching.cache.path()).uuid;
    let backings = [caching.backings[0].path()];
    assert!(Bcache::new().retire(caching.cache.path(), uuid, &backings).unwrap().is_made());
    assert!(!Bcache::new().retire(caching.cache.path(), uuid, &backings).unwrap().is_made());
    let _ = backing.stop().unwrap();
    let _ = new_set.stop().unwrap();
}

#[test]
fn a_mounted_device_is_not_stopped() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
    let device = caching.device(0).unwrap();
    rig::filesystem::format("ext4", &device).unwrap();
    let mounted = rig::Mounted::new("ext4", &device).unwrap();
    let error = caching.backing(0).unwrap().stop().unwrap_err();
    assert_eq!(error.kind(), Kind::InUse);
    assert!(error.to_string().contains("unmount"), "{error}");
    // It is all there, not half gone.
    mounted.write("file", 1).unwrap();
    mounted.check("file", 1).unwrap();
    mounted.unmount().unwrap();
    caching.stop().unwrap();
}

#[test]
fn an_old_filesystem_does_not_come_back_on_a_new_cached_device() {
    if skip_unless_bcache() {
        return;
    }
    let _clear = Clear;
    let disk = Disk::new(Bytes::mib(400)).unwrap();
    let first = NewBacking::new().format(Blank::claim(disk.path()).unwrap()).unwrap();
    let backing = register_backing(disk.path()).unwrap();
    eventually("it runs", PATIENCE, || backing.device().unwrap().is_some_and(|device| device.exists()));
    rig::filesystem::format("xfs", &backing.device().unwrap().unwrap()).unwrap();
    settle();
    let _ = backing.stop().unwrap();
    assert!(Bcache::new().retire(disk.path(), first.uuid, &[disk.path()]).unwrap().is_made());
    settle();
    // The outer signatures are gone, the caller's probe finds nothing; the filesystem lies 8 KiB on.
    let blank = Blank::claim_probed(disk.path(), |_| Ok(())).unwrap();
    let second = NewBacking::new().format(blank).unwrap();
    let backing = register_backing(disk.path()).unwrap();
    assert_eq!(backing.uuid(), second.uuid);
    eventually("it runs", PATIENCE, || backing.device().unwrap().is_some_and(|device| device.exists()));
    let device = backing.device().unwrap().unwrap();
    assert_eq!(rig::filesystem::signatures(&device).unwrap(), Vec::<String>::new());
    rig::filesystem::format("ext4", &device).unwrap();
    settle();
    let _ = backing.stop().unwrap();
}

#[test]
fn a_device_with_another_signature_is_registered_though_udev_passes_it_by() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
    fill(&caching.device(0).unwrap(), 7, 2).unwrap();
    caching.stop().unwrap();
    // Swap space at the head hides the superblock, which lies behind it, from the probe that udev's rule trusts.
    let path = caching.backings[0].path();
    let held = UdevHeld::new();
    let mut page = vec![0; 4096];
    page[4086..].copy_from_slice(b"SWAPSPACE2");
    std::os::unix::fs::FileExt::write_all_at(
        &std::fs::OpenOptions::new().write(true).open(path).unwrap(),
        &page,
        0,
    )
    .unwrap();
    drop(held);
    settle();
    for _boot in 0..5 {
        tool::run("udevadm", ["trigger", "--settle", "--action=change", path.to_str().unwrap()]).unwrap();
        let paths = [path, caching.cache.path(), Path::new("/dev/null")];
        let adopted = Bcache::new().adopt(&paths, Duration::from_secs(10));
        assert!(adopted.iter().any(|one| matches!(one.outcome, Outcome::Running { .. })), "{adopted:?}");
        assert!(adopted.iter().any(|one| matches!(one.outcome, Outcome::Cache(_))), "{adopted:?}");
        assert!(adopted.iter().any(|one| matches!(one.outcome, Outcome::Failed(_))), "{adopted:?}");
        check(&caching.device(0).unwrap(), 0, 7, 2).unwrap();
        caching.stop().unwrap();
    }
}

#[test]
fn what_a_device_is_registered_as_is_told_by_its_number() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
    let bcache = Bcache::new();
    let backing = caching.backing(0).unwrap();
    assert_eq!(backing.path().unwrap(), caching.backings[0].path());
    assert_eq!(bcache.registered(backing.number()).unwrap(), Some(Registered::Backing(backing.clone())));
    let cache = caching.set().unwrap().caches().unwrap().remove(0);
    assert_eq!(bcache.registered(cache.number).unwrap(), Some(Registered::Cache(caching.set().unwrap())));
    assert_eq!(bcache.backings().unwrap(), std::slice::from_ref(&backing));
    assert_eq!(bcache.sets().unwrap(), [caching.set().unwrap()]);
    backing.turn(&Knob::Writeback(Writeback::Running)).unwrap();
    let other = Disk::new(Bytes::mib(16)).unwrap();
    let error = bcache.register(other.path()).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    caching.stop().unwrap();
    assert_eq!(bcache.registered(backing.number()).unwrap(), None);
    assert!(!backing.stop().unwrap().is_made());
    assert_eq!(backing.status().unwrap_err().kind(), Kind::NotFound);
    assert_eq!(bcache.set(caching.set).unwrap_err().kind(), Kind::CacheMissing);
}
