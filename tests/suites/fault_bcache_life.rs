//! What happens to a bcache device in its life: it grows, its knobs are turned, its cache fails.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use bcache::{
    Bcache, CacheMode, Kind, Knob, OnError, Outcome, Percent, ReadaheadPolicy, Replacement, SetKnob,
    StopPolicy, Window, WriteCache, Writeback,
};
use devices::{Bytes, Sectors};
use rig::caching::{
    CACHE, Caching, Clear, check, fill, format_backing, format_cache, go_on, register_backing,
    register_cache, skip_unless_bcache,
};
use rig::{Disk, Faulty, eventually, skip_unless_dm, tool};

const PATIENCE: Duration = Duration::from_secs(20);

/// The finding that `Backing::grow_offline` stands on. Should a kernel grow the cached device by itself one day, this fails.
fn grows_only_offline(caching: &Caching, grow: impl FnOnce()) {
    let backing = caching.backing(0).unwrap();
    let device = caching.device(0).unwrap();
    let before = backing.room().unwrap();
    assert_eq!(before.present, Some(before.possible));
    assert!(!backing.grow_offline().unwrap().is_made());
    fill(&device, 1, 4).unwrap();
    let open = std::fs::File::open(&device).unwrap();
    grow();
    let room = backing.room().unwrap();
    assert!(room.can_grow() && room.possible > before.possible, "{room:?}");
    assert_eq!(room.present, before.present, "the kernel has grown the device in use");
    drop(open);
    // No attribute that could change it either.
    let attributes = format!("/sys/dev/block/{}/bcache", backing.number());
    for name in std::fs::read_dir(attributes).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("resize") && name != "size", "this kernel has {name}");
    }
    assert_eq!(backing.room().unwrap().present, before.present, "the kernel has grown the closed device");
    let held = std::fs::File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed())
        .open(&device)
        .unwrap();
    assert_eq!(backing.grow_offline().unwrap_err().kind(), Kind::InUse);
    check(&device, 0, 1, 4).unwrap();
    drop(held);
    let change = backing.grow_offline().unwrap();
    assert!(change.is_made());
    let after = caching.backing(0).unwrap();
    eventually("the cached device is back", PATIENCE, || after.device().unwrap().is_some());
    assert_eq!(after.room().unwrap().present, Some(room.possible));
    check(&caching.device(0).unwrap(), 0, 1, 4).unwrap();
}

/// Whether no write may pass the cache by; whether all is as the kernel begins.
fn bypasses(caching: &Caching) -> (bool, bool) {
    let cutoff = caching.backing(0).unwrap().knobs().unwrap().sequential_cutoff;
    let set = caching.set().unwrap().status().unwrap();
    let thresholds = (set.congested_read, set.congested_write);
    let kernels = (Duration::from_millis(2), Duration::from_millis(20));
    (
        cutoff.is_zero() && thresholds == (Duration::ZERO, Duration::ZERO),
        cutoff.is(Bytes::mib(4)) && thresholds == kernels,
    )
}

/// A cache disk that can fail under its set, and one backing disk.
fn on_a_faulty_cache(mode: CacheMode) -> (Caching, Faulty) {
    let faulty = Faulty::over(Disk::new(CACHE).unwrap()).unwrap();
    let made = format_cache(faulty.path()).unwrap();
    let backing = Disk::new(rig::caching::BACKING).unwrap();
    let uuid = format_backing(backing.path(), &made, mode).unwrap().uuid;
    let unused = Disk::new(Bytes::mib(1)).unwrap();
    let caching = Caching::of(unused, vec![backing], made.set.unwrap(), vec![uuid]);
    let _ = register_cache(faulty.path()).unwrap();
    let _ = register_backing(caching.backings[0].path()).unwrap();
    caching.device(0).unwrap();
    caching.set().unwrap().turn(SetKnob::IoErrorLimit(1)).unwrap();
    (caching, faulty)
}

/// What tells most, for every run.
mod smoke {
    use super::*;

    #[test]
    fn every_knob_is_turned_and_read_back() {
        if skip_unless_bcache() {
            return;
        }
        let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
        let backing = caching.backing(0).unwrap();
        for knob in [
            Knob::SequentialCutoff(Bytes::new(1_234_567)),
            Knob::WritebackPercent(Percent::new(0).unwrap()),
            Knob::WritebackRate(Sectors::new(4096)),
            Knob::WritebackRateMinimum(Sectors::new(16)),
            Knob::WritebackDelay(Duration::from_secs(7)),
            Knob::Readahead(ReadaheadPolicy::MetaOnly),
            Knob::StopPolicy(StopPolicy::Always),
            Knob::IoErrorLimit(3),
            Knob::Label("orders".parse().unwrap()),
        ] {
            backing.turn(&knob).unwrap_or_else(|error| panic!("{knob:?}: {error}"));
        }
        let knobs = backing.knobs().unwrap();
        assert!(knobs.sequential_cutoff.is(Bytes::new(1_234_567)), "{knobs:?}");
        assert!(knobs.writeback_rate.is(Bytes::mib(2)), "{knobs:?}");
        assert_eq!(knobs.writeback_percent.get(), 0);
        assert_eq!(knobs.writeback_rate_minimum, Sectors::new(16));
        assert_eq!((knobs.writeback_delay, knobs.writeback), (Duration::from_secs(7), Writeback::Running));
        assert_eq!(
            (knobs.readahead, knobs.stop_policy),
            (Some(ReadaheadPolicy::MetaOnly), StopPolicy::Always)
        );
        assert_eq!(knobs.io_error_limit, 3);
        backing.turn(&Knob::Writeback(Writeback::Paused)).unwrap();
        let paused = backing.knobs().unwrap();
        assert!(paused.writeback == Writeback::Paused && paused.writeback_rate.is_zero(), "{paused:?}");
        let error = backing.turn(&Knob::WritebackPercent(Percent::new(41).unwrap())).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument, "{error}");
        for mode in CacheMode::ALL.iter().copied().rev() {
            backing.turn(&Knob::Mode(mode)).unwrap();
            assert_eq!(backing.knobs().unwrap().mode, mode);
        }
        let set = caching.set().unwrap();
        for knob in [
            SetKnob::CongestedRead(Duration::from_micros(1500)),
            SetKnob::CongestedWrite(Duration::ZERO),
            SetKnob::OnError(OnError::Unregister),
            SetKnob::IoErrorLimit(5),
            SetKnob::JournalDelay(Duration::from_millis(50)),
        ] {
            set.turn(knob).unwrap_or_else(|error| panic!("{knob:?}: {error}"));
        }
        let status = set.status().unwrap();
        assert_eq!(
            (status.congested_read, status.congested_write),
            (Duration::from_micros(1500), Duration::ZERO)
        );
        assert_eq!((status.io_error_limit, status.on_error), (5, OnError::Unregister));
        assert_eq!(status.journal_delay, Duration::from_millis(50));
        assert!(status.bucket_size.is(Bytes::kib(64)) && status.block_size.is(Bytes::new(512)), "{status:?}");
        assert!(status.available.get() > 50, "{status:?}");
        // The mode and the label last, the others do not.
        caching.stop().unwrap();
        caching.register().unwrap();
        let status = caching.backing(0).unwrap().status().unwrap();
        assert_eq!((status.mode, status.label), (CacheMode::WriteThrough, Some("orders".parse().unwrap())));
        assert_eq!(caching.backing(0).unwrap().knobs().unwrap().writeback, Writeback::Running);
    }

    #[test]
    fn no_write_passes_a_write_back_cache_by_unless_that_is_wanted() {
        if skip_unless_bcache() {
            return;
        }
        const CLOSED: (bool, bool) = (true, false);
        const OPEN: (bool, bool) = (false, true);
        let caching = Caching::new(1, CacheMode::WriteBack).unwrap();
        assert_eq!(bypasses(&caching), CLOSED);
        let backing = caching.backing(0).unwrap();
        // What a caller wants stays, as long as the device is registered.
        backing.turn(&Knob::SequentialCutoff(Bytes::mib(8))).unwrap();
        caching.set().unwrap().turn(SetKnob::CongestedWrite(Duration::from_millis(50))).unwrap();
        assert!(!backing.keep_in_cache().unwrap().is_made());
        assert!(!Bcache::new().register(caching.backings[0].path()).unwrap().is_made());
        assert!(backing.knobs().unwrap().sequential_cutoff.is(Bytes::mib(8)));
        assert_eq!(caching.set().unwrap().status().unwrap().congested_write, Duration::from_millis(50));
        // udev registers, we come later.
        caching.stop().unwrap();
        let paths = [caching.cache.path(), caching.backings[0].path()];
        for path in paths {
            std::fs::write("/sys/fs/bcache/register_quiet", path.to_str().unwrap()).unwrap();
        }
        caching.device(0).unwrap();
        assert_eq!(bypasses(&caching), OPEN);
        let adopted = Bcache::new().adopt(&paths, PATIENCE);
        assert!(adopted.iter().any(|one| matches!(one.outcome, Outcome::Running { .. })), "{adopted:?}");
        assert_eq!(bypasses(&caching), CLOSED);
        // The other modes keep nothing that is not behind the cache as well.
        caching.backing(0).unwrap().turn(&Knob::Mode(CacheMode::WriteThrough)).unwrap();
        caching.stop().unwrap();
        caching.register().unwrap();
        assert_eq!(bypasses(&caching), OPEN);
        caching.backing(0).unwrap().turn(&Knob::Mode(CacheMode::WriteBack)).unwrap();
        assert_eq!(bypasses(&caching), CLOSED);
        // A set of its own for a device that has none.
        let backing = caching.backing(0).unwrap();
        assert!(backing.detach(PATIENCE, go_on).unwrap().is_made());
        for knob in [
            SetKnob::CongestedRead(Duration::from_millis(2)),
            SetKnob::CongestedWrite(Duration::from_millis(20)),
        ] {
            caching.set().unwrap().turn(knob).unwrap();
        }
        assert!(backing.attach(&caching.set().unwrap()).unwrap().is_made());
        assert_eq!(bypasses(&caching), CLOSED);
    }
}

/// By hand only: Linux 6.1.0-57 sometimes stops while it gives the set up (`kernel BUG` in `bch_prio_write`).
#[test]
fn a_clean_device_survives_the_death_of_its_cache_and_gets_a_new_one() {
    if skip_unless_bcache() || skip_unless_dm() {
        return;
    }
    let (caching, faulty) = on_a_faulty_cache(CacheMode::WriteThrough);
    let device = caching.device(0).unwrap();
    fill(&device, 1, 4).unwrap();
    faulty.fail().unwrap();
    // Whatever the cache answers, the device's content is right, and at some point the kernel gives the cache up.
    eventually("the set is given up", PATIENCE, || {
        let _ = fill(&device, 2, 4);
        caching.set().is_err()
    });
    fill(&device, 2, 4).unwrap();
    check(&device, 0, 2, 4).unwrap();
    let new = Disk::new(CACHE).unwrap();
    format_cache(new.path()).unwrap();
    let new_set = register_cache(new.path()).unwrap();
    let backing = caching.backing(0).unwrap();
    eventually("nothing of the old set is left", PATIENCE, || backing.set().unwrap().is_none());
    assert!(backing.replace_cache(&new_set, PATIENCE, go_on).unwrap().is_made());
    check(&device, 0, 2, 4).unwrap();
    drop(caching);
    drop((new, faulty));
}

#[test]
fn a_loop_device_below_grows_offline_and_keeps_what_is_dirty() {
    if skip_unless_bcache() {
        return;
    }
    let mut caching = Caching::new(1, CacheMode::WriteBack).unwrap();
    caching.keep_dirty(0).unwrap();
    let mut disk = caching.backings.remove(0);
    grows_only_offline(&caching, || disk.grow(Bytes::mib(384)).unwrap());
    drop(caching);
    drop(disk);
}

#[test]
fn a_device_mapper_device_below_grows_offline() {
    if skip_unless_bcache() || skip_unless_dm() {
        return;
    }
    let under = Disk::new(Bytes::mib(512)).unwrap();
    let name = format!("grows{}", std::process::id());
    let table = |mib: u64| format!("0 {} linear {} 0", mib * 2048, under.path().display());
    tool::run("dmsetup", ["create", &name, "--table", &table(256)]).unwrap();
    {
        let cache = Disk::new(CACHE).unwrap();
        let made = format_cache(cache.path()).unwrap();
        let path = Path::new("/dev/mapper").join(&name);
        let uuid = format_backing(&path, &made, CacheMode::WriteThrough).unwrap().uuid;
        let caching = Caching::of(cache, Vec::new(), made.set.unwrap(), vec![uuid]);
        let _ = register_cache(caching.cache.path()).unwrap();
        let _ = register_backing(&path).unwrap();
        grows_only_offline(&caching, || {
            tool::run("dmsetup", ["load", &name, "--table", &table(384)]).unwrap();
            tool::run("dmsetup", ["suspend", &name]).unwrap();
            tool::run("dmsetup", ["resume", &name]).unwrap();
        });
    }
    tool::run("dmsetup", ["remove", "--retry", &name]).unwrap();
}

#[test]
fn a_cache_counts_what_it_was_good_for() {
    if skip_unless_bcache() {
        return;
    }
    let caching = Caching::new(1, CacheMode::WriteThrough).unwrap();
    let backing = caching.backing(0).unwrap();
    backing.turn(&Knob::SequentialCutoff(Bytes::ZERO)).unwrap();
    for knob in [SetKnob::CongestedRead(Duration::ZERO), SetKnob::CongestedWrite(Duration::ZERO)] {
        caching.set().unwrap().turn(knob).unwrap();
    }
    let device = caching.device(0).unwrap();
    fill(&device, 1, 8).unwrap();
    backing.clear_statistics().unwrap();
    // The kernel adds up what it counted every few seconds; what a cache that had no bucket ready missed comes in later.
    eventually("most are hits", 3 * PATIENCE, || {
        check(&device, 0, 1, 8).unwrap();
        backing.statistics(Window::Total).unwrap().hit_ratio.get() > 50
    });
    let statistics = backing.statistics(Window::Total).unwrap();
    assert!(
        statistics.hit_ratio.get() > 50 && statistics.bypassed.at_most() < Bytes::mib(8),
        "{statistics:?}"
    );
    for window in [Window::Day, Window::Hour, Window::FiveMinutes] {
        backing.statistics(window).unwrap();
        caching.set().unwrap().statistics(window).unwrap();
    }
    let cache = caching.set().unwrap().caches().unwrap().remove(0);
    assert!(cache.written.at_least() >= Bytes::mib(4) && cache.io_errors == 0, "{cache:?}");
    assert_eq!((cache.replacement, cache.write_cache), (Replacement::Lru, WriteCache::Volatile));
}

#[test]
fn a_suspended_device_is_never_opened() {
    if skip_unless_bcache() || skip_unless_dm() {
        return;
    }
    let _clear = Clear;
    let disk = Disk::new(Bytes::mib(16)).unwrap();
    let name = format!("sleeps{}", std::process::id());
    let table = format!("0 32768 linear {} 0", disk.path().display());
    tool::run("dmsetup", ["create", &name, "--table", &table]).unwrap();
    tool::run("dmsetup", ["suspend", &name]).unwrap();
    let path = Path::new("/dev/mapper").join(&name);
    let errors = [
        bcache::Superblock::read(&path).unwrap_err(),
        bcache::Blank::claim(&path).unwrap_err(),
        Bcache::new().register(&path).unwrap_err(),
    ];
    tool::run("dmsetup", ["resume", &name]).unwrap();
    for error in errors {
        assert_eq!(error.kind(), Kind::Busy, "{error}");
    }
    tool::run("dmsetup", ["remove", "--retry", &name]).unwrap();
}
