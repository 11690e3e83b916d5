//! Recovery and comparison on a real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a suite is tests only: a panic is its way to fail"
)]

use std::fs;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::dm::{Activity, Dm, DmUuid};
use lvm::ops::{
    Integrity, Layout, NewPool, NewSnapshot, NewThin, NewThinSnapshot, NewVolume, OnRemove, PoolSize,
    SizeRange,
};
use lvm::recover::{Difference, Step};
use lvm::run::{Request, Runner, Scope};
use lvm::{Effect, Kind, LvName};
use rig::killer::{Ended, Killer};
use rig::sweep::in_order;
use rig::{skip_unless_dm, skip_unless_installed, tool, workers};

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

/// Runs words as one command of the group's own workers.
fn raw(killer: &Killer, words: &[&str]) -> Result<Vec<String>> {
    workers::must(killer.group().lvm().workers().context("no pool")?, words)
}

fn scope(killer: &Killer) -> Scope {
    Scope::Vg { name: killer.group().label().clone(), uuid: killer.group().uuid() }
}

fn command(killer: &Killer, words: &[&str], deadline: Duration) -> Result<lvm::run::Reply, lvm::Error> {
    let request = Request {
        scope: scope(killer),
        tried: words.join(" "),
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        deadline,
        flush: Vec::new(),
    };
    killer.group().lvm().workers().expect("a pool").run(&request)
}

fn no_difference(killer: &Killer) -> Result<()> {
    let differences = killer.group().lvm().differences(killer.group().uuid())?;
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    ensure!(differences.is_empty(), "{}\n{}", told.join("\n"), tool::run("dmsetup", ["table"])?);
    Ok(())
}

#[test]
fn no_layout_that_lvm_activates_differs_from_its_metadata() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check", "cache_check", "dmsetup"]) {
        return Ok(());
    }
    let killer = Killer::new(5, Bytes::gib(1))?;
    let group = killer.group();
    let stripe_size = Bytes::kib(64);
    for (name, layout) in [
        ("linear", Layout::Linear),
        ("striped", Layout::Striped { stripes: 3, stripe_size }),
        ("r1", Layout::Raid1 { copies: 3 }),
        ("r4", Layout::Raid4 { stripes: 2, stripe_size }),
        ("r5", Layout::Raid5 { stripes: 2, stripe_size }),
        ("r6", Layout::Raid6 { stripes: 3, stripe_size }),
        ("r10", Layout::Raid10 { copies: 2, stripes: 2, stripe_size }),
    ] {
        let _ = group.create_volume(&NewVolume::new(lv(name), mib(12)).layout(layout))?;
        no_difference(&killer).with_context(|| name.to_owned())?;
    }
    let checked = NewVolume::new(lv("checked"), mib(12))
        .layout(Layout::Raid1 { copies: 2 })
        .integrity(Integrity::Bitmap);
    let _ = group.create_volume(&checked)?;
    no_difference(&killer).context("raid1 with integrity")?;
    // More than one segment, and a name with hyphens.
    let _ = group.create_volume(&NewVolume::new(lv("a--b-c"), mib(900)))?;
    let _ = group.extend_volume(&lv("a--b-c"), mib(1300), &[])?;
    no_difference(&killer).context("several segments")?;
    Ok(())
}

#[test]
fn no_pool_snapshot_or_cache_that_lvm_activates_differs_from_its_metadata() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check", "cache_check", "dmsetup"]) {
        return Ok(());
    }
    let killer = Killer::new(3, Bytes::gib(1))?;
    let group = killer.group();
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(mib(100))))?;
    no_difference(&killer).context("a pool without volumes")?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("t"), mib(64)))?;
    no_difference(&killer).context("a thin volume")?;
    let _ = group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("cut")))?;
    let _ = group.activate_volume(&lv("cut"))?;
    no_difference(&killer).context("a thin snapshot")?;
    let on_raid = NewPool::new(lv("safe"), PoolSize::Data(mib(64))).layout(Layout::Raid1 { copies: 2 });
    let _ = group.create_pool(&on_raid)?;
    let _ = group.create_thin(&NewThin::new(lv("safe"), lv("u"), mib(64)))?;
    no_difference(&killer).context("a pool on RAID 1")?;
    for name in ["origin", "slow", "slower", "read-only"] {
        let _ = group.create_volume(&NewVolume::new(lv(name), mib(32)))?;
    }
    let _ = group.snapshot(&NewSnapshot::new(lv("origin"), lv("shot"), mib(16)))?;
    no_difference(&killer).context("a classic snapshot")?;
    raw(&killer, &["lvcreate", "--yes", "--type", "cache", "--size", "16M", "--name", "fast", "v/slow"])?;
    no_difference(&killer).context("a cache on a pool")?;
    raw(&killer, &["lvcreate", "--yes", "--activate", "n", "--size", "16M", "--name", "vol", "v"])?;
    raw(&killer, &["lvconvert", "--yes", "--type", "cache", "--cachevol", "vol", "v/slower"])?;
    no_difference(&killer).context("a cache on a volume")?;
    raw(&killer, &["lvchange", "--yes", "--activate", "n", "v/read-only"])?;
    raw(&killer, &["lvchange", "--yes", "--permission", "r", "v/read-only"])?;
    raw(
        &killer,
        &["lvcreate", "--yes", "--type", "thin", "--name", "ext", "--thinpool", "pool", "v/read-only"],
    )?;
    no_difference(&killer).context("a thin volume with an external origin")?;
    raw(&killer, &["lvremove", "--yes", "v/ext"])?;
    for name in ["u", "cut", "t"] {
        let _ = group.remove_volume(&lv(name), OnRemove::Keep)?;
    }
    no_difference(&killer).context("pools after their volumes")?;
    Ok(())
}

#[test]
fn a_crash_of_the_library_closes_the_group_which_is_recovered_and_works() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let killer = Killer::new(1, Bytes::mib(300))?;
    let group = killer.group();
    let _ = group.create_volume(&NewVolume::new(lv("x"), mib(16)))?;
    // liblvm2cmd 2.03.16 crashes in a command after one with `--devices` on the same handle.
    let disk = killer.disks()[0].path().display().to_string();
    let devices = ["lvs", "--devices", &disk, "v"];
    let commands = [devices.as_slice(), &["lvs", "v"]];
    let crash = (0..6).find_map(|turn| command(&killer, commands[turn % 2], Duration::from_secs(60)).err());
    let Some(crash) = crash else {
        println!("SKIPPED: this version of liblvm2cmd does not crash on --devices");
        return Ok(());
    };
    assert_eq!((crash.kind(), crash.effect()), (Kind::Crashed, Effect::Unknown), "{crash:?}");
    let pool = group.lvm().workers().unwrap();
    assert_eq!(pool.quarantined().len(), 1);
    let _ = group.create_volume(&NewVolume::new(lv("y"), mib(16)))?;
    assert_eq!(pool.quarantined(), []);
    in_order(group)
}

#[test]
fn a_start_finds_and_mends_what_an_earlier_program_left() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["strace", "thin_check", "dmsetup"]) {
        return Ok(());
    }
    let killer = Killer::new(2, Bytes::mib(500))?;
    let group = killer.group();
    let _ = group.create_pool(&NewPool::new(lv("pool"), PoolSize::Data(mib(100))))?;
    let _ = group.create_thin(&NewThin::new(lv("pool"), lv("t"), mib(64)))?;
    let snapshot = NewThinSnapshot::new(lv("t"), lv("s"));
    let all = killer.calls(|group| Ok(group.snapshot_thin(&snapshot).map(drop)?))?.ioctls;
    let _ = group.remove_volume(&lv("s"), OnRemove::Keep)?;
    let half = killer.start_calls()?.ioctls + (all - killer.start_calls()?.ioctls) / 2;
    let (victim, ended) = killer.kill_at(half, |group| group.snapshot_thin(&snapshot).map(drop))?;
    assert!(matches!(ended, Ended::Killed), "{ended:?}");
    // The program ends with its group closed; the next one knows nothing of it.
    drop(victim);
    let vg = group.look()?;
    let tpool = DmUuid::of_lvm(&vg.uuid, &vg.lv("pool").unwrap().uuid, Some("tpool"));
    let dm = Dm::open()?;
    let suspended = !dm.suspended(&vg.uuid)?.is_empty();
    if !suspended {
        std::mem::forget(dm.hold_metadata(&tpool)?);
    }
    let results = killer.second_handle()?.recover_all()?;
    assert_eq!(results.len(), 1);
    let report = results.into_iter().next().unwrap().result?;
    println!("killed at ioctl {half} of {all}: {report}");
    assert!(!report.steps.is_empty());
    let released = report.steps.iter().any(|step| matches!(step, Step::ReleasedMetadata { .. }));
    assert_eq!(released, !suspended);
    in_order(group)?;
    let _ = group.snapshot_thin(&snapshot)?;
    in_order(group)
}

/// `bugs.md`: THIN-05.
#[test]
fn a_pool_of_another_time_is_left_to_a_person_and_other_pools_work() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check"]) {
        return Ok(());
    }
    let killer = Killer::new(1, Bytes::gib(1))?;
    let group = killer.group();
    for pool in ["pool", "other"] {
        let _ = group.create_pool(&NewPool::new(lv(pool), PoolSize::Data(mib(64))))?;
    }
    for name in ["a", "b"] {
        let _ = group.create_thin(&NewThin::new(lv("pool"), lv(name), mib(32)))?;
    }
    group.deactivate()?;
    let file = killer.path("v.backup");
    let path = file.to_str().context("path")?;
    raw(&killer, &["vgcfgbackup", "--file", path, "v"])?;
    let text = fs::read_to_string(&file)?;
    assert_eq!(text.matches("transaction_id = 2\n").count(), 1, "{text}");
    fs::write(&file, text.replace("transaction_id = 2\n", "transaction_id = 0\n"))?;
    raw(&killer, &["vgcfgrestore", "--yes", "--force", "--file", path, "v"])?;
    let seqno = group.look()?.seqno;
    for _ in 0..3 {
        let error =
            group.create_thin(&NewThin::new(lv("pool"), lv("c"), mib(32))).expect_err("it is out of step");
        assert_eq!(error.kind(), Kind::Inconsistent, "{error:?}");
        let text = error.to_string();
        assert!(text.contains('0') && text.contains('2'), "both ids: {text}");
    }
    assert_eq!(group.look()?.seqno, seqno, "nothing was committed");
    let _ = group.create_thin(&NewThin::new(lv("other"), lv("d"), mib(32)))?;
    let report = group.lvm().recover(group.uuid(), group.label())?;
    assert!(report.steps.is_empty(), "{report}");
    for difference in group.lvm().differences(group.uuid())? {
        assert!(matches!(difference, Difference::Transaction { .. }), "{difference}");
    }
    Ok(())
}

/// `bugs.md`: LVM-21.
#[test]
fn a_suspended_volume_hangs_nobody_who_looks() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["dmsetup"]) {
        return Ok(());
    }
    let killer = Killer::new(1, Bytes::mib(300))?;
    let group = killer.group();
    let _ = group.create_volume(&NewVolume::new(lv("x"), mib(16)))?;
    let _ = group.create_volume(&NewVolume::new(lv("y"), mib(16)))?;
    tool::run("dmsetup", ["suspend", "v-x"])?;
    let (tell, told) = mpsc::channel();
    let lvm = group.lvm().clone();
    let uuid = group.uuid();
    thread::spawn(move || {
        let look = || -> Result<Vec<Difference>> {
            let vg = lvm.view()?.vg_by_uuid(uuid).cloned().context("the group")?;
            let dm = Dm::open()?;
            for device in dm.vg_devices(&vg.uuid)? {
                dm.status(device.device.number)?;
            }
            ensure!(dm.suspended(&vg.uuid)?.iter().all(|info| info.activity == Activity::Suspended));
            Ok(lvm.differences(uuid)?)
        };
        tell.send(look()).unwrap();
    });
    let answer = told.recv_timeout(Duration::from_secs(2));
    let resumed = tool::run("dmsetup", ["resume", "v-x"]);
    let differences = answer.context("looking took more than 2 s")??;
    resumed?;
    assert_eq!(differences, [Difference::Suspended { device: "v-x".to_owned() }]);
    in_order(group)
}

/// Stops udevd, and lets it go on when dropped.
struct StoppedUdev(Vec<String>);

impl StoppedUdev {
    fn new() -> Result<Self> {
        let pids = tool::run("pidof", ["systemd-udevd"])?;
        let stopped = Self(pids.split_whitespace().map(str::to_owned).collect());
        stopped.signal("-STOP")?;
        Ok(stopped)
    }

    fn signal(&self, signal: &str) -> Result<()> {
        ensure!(Command::new("kill").arg(signal).args(&self.0).status()?.success());
        Ok(())
    }
}

impl Drop for StoppedUdev {
    fn drop(&mut self) {
        if let Err(error) = self.signal("-CONT") {
            eprintln!("{error:#}");
        }
    }
}

#[test]
fn who_gives_up_waiting_finds_the_group_busy_and_later_what_was_made_in_order() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let killer = Killer::new(1, Bytes::mib(300))?;
    let group = killer.group();
    let udev = StoppedUdev::new()?;
    let hasty = group.lvm().with_deadline(Duration::from_secs(5)).group_by_uuid(group.uuid())?;
    let new = NewVolume::new(lv("x"), mib(16));
    let start = Instant::now();
    let error = hasty.create_volume(&new).expect_err("udev is stopped");
    assert_eq!((error.kind(), error.effect()), (Kind::TimedOut, Effect::Unknown), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let error = hasty.create_volume(&NewVolume::new(lv("y"), mib(16))).expect_err("the first one still runs");
    assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
    drop(udev);
    let end = Instant::now() + Duration::from_secs(60);
    let made = loop {
        match group.create_volume(&new) {
            Ok(made) => break made,
            Err(error) if error.kind() == Kind::Busy && Instant::now() < end => {
                thread::sleep(Duration::from_millis(300));
            }
            Err(error) => return Err(error.into()),
        }
    };
    assert!(made.is_made(), "what nobody completed is made anew");
    in_order(group)
}
