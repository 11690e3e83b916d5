//! A worker that cannot die: its disk does not answer, and the kernel keeps the killed process until it does.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::run::{Reply, ReturnCode, Runner, Scope};
use lvm::worker::conf::{Activation, Conf};
use lvm::worker::table::{TableChange, TableStep};
use lvm::worker::{Recover, StillClosed};
use lvm::{Effect, Error, Kind, Uuid, VgName};
use rig::workers::{PATIENCE, ask_in, must, scope_of};
use rig::{Disk, Faulty, Workers, skip_unless_dm, tool};

/// A recovery that finds everything in order.
#[derive(Debug)]
struct InOrder;

impl Recover for InOrder {
    fn recover(&self, _: &Scope, _: &dyn Runner) -> Result<Vec<StillClosed>, Error> {
        Ok(Vec::new())
    }
}

/// A device that answers nothing for ten minutes, until this is dropped.
struct Mute<'a> {
    device: &'a str,
    before: String,
}

impl<'a> Mute<'a> {
    fn begin(device: &'a str) -> Result<Self> {
        let before = tool::run("dmsetup", ["table", device])?.trim().to_owned();
        let slow = before.replace("linear", "delay") + " 600000";
        let mute = Self { device, before };
        mute.load(&slow)?;
        Ok(mute)
    }

    /// Without waiting for udev, whose own look at the device gets no answer either. What a delay holds back goes on when
    /// its table is taken away.
    fn load(&self, table: &str) -> Result<()> {
        tool::run("dmsetup", ["load", self.device, "--table", table])?;
        tool::run("dmsetup", ["suspend", "--noflush", "--nolockfs", self.device])?;
        tool::run("dmsetup", ["resume", "--noudevsync", self.device]).map(drop)
    }
}

impl Drop for Mute<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.load(&self.before) {
            eprintln!("{}: {error:#}", self.device);
        }
    }
}

/// A job that needs no disk: it removes a cookie that nobody has.
fn without_a_disk(runner: &dyn Runner, scope: Scope) -> Result<Reply, Error> {
    runner.change_tables(&TableChange {
        scope,
        tried: "remove a cookie".to_owned(),
        steps: vec![TableStep::DropCookie { cookie: 0x0d4d_7e57 }],
        deadline: PATIENCE,
    })
}

#[test]
fn a_worker_that_the_kernel_keeps_holds_its_own_group_and_no_other() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let disk = Faulty::over(Disk::new(Bytes::mib(256))?)?;
    let workers = Workers::new()?;
    let conf = Conf { host: workers.conf(Activation::Udev, &[]).host, ..Conf::new([disk.path()]) };
    let pool = workers.pool(conf)?.recover(Arc::new(InOrder)).kill_after(Duration::from_secs(2)).build()?;
    let path = disk.path().display().to_string();
    must(&pool, &["vgcreate", "--setautoactivation", "n", "vg", &path])?;
    let scope = scope_of(&pool, "vg")?;

    let name = disk.path().file_name().and_then(|name| name.to_str()).unwrap();
    let mute = Mute::begin(name)?;
    let error = ask_in(&pool, scope.clone(), &["vgs", "vg"], PATIENCE).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::TimedOut, Effect::Unknown), "{error:?}");
    ensure!(error.answer().is_some_and(|answer| answer.contains("does not let go")), "{error:?}");
    let busy = ask_in(&pool, scope.clone(), &["vgs", "vg"], PATIENCE).unwrap_err();
    assert_eq!((busy.kind(), busy.effect()), (Kind::Busy, Effect::None), "{busy:?}");
    // Another group, and what touches no group, go on.
    let other: Uuid = "000000-0000-0000-0000-0000-0000-000001".parse()?;
    for scope in [Scope::Vg { name: VgName::new("other")?, uuid: other }, Scope::Free] {
        let start = Instant::now();
        let _ = without_a_disk(&pool, scope)?;
        ensure!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }

    // The disk answers again: the process goes, the group is recovered and works.
    drop(mute);
    let start = Instant::now();
    loop {
        match ask_in(&pool, scope.clone(), &["vgs", "vg"], PATIENCE) {
            Ok(reply) => {
                assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
                break;
            }
            Err(error) => ensure!(
                error.kind() == Kind::Busy && start.elapsed() < Duration::from_secs(60),
                "after {:?}: {error:?}",
                start.elapsed()
            ),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    must(&pool, &["vgremove", "vg"]).map(drop)
}
