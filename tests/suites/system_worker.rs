//! The worker processes on a kernel with device-mapper and a running udevd.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use devices::{Bytes, Sectors};
use lvm::run::{Reply, ReturnCode, Runner, Scope};
use lvm::worker::conf::{Activation, Conf};
use lvm::worker::table::{Access, Flush, Freeze, TableChange, TableLine, TableStep};
use lvm::worker::{Pool, PoolBuilder};
use lvm::{Effect, Error, Kind, Space};
use rig::workers::{PATIENCE, ask, ask_in, must, scope_of};
use rig::{Disk, Workers, skip_unless_dm};

/// Two disks, and a pool that makes devices on them.
struct Stand {
    pool: Pool,
    disks: Vec<Disk>,
    workers: Workers,
}

impl Stand {
    fn new() -> Result<Self> {
        Self::with(|pool| pool)
    }

    fn with(settings: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Result<Self> {
        let disks = vec![Disk::new(Bytes::gib(1))?, Disk::new(Bytes::gib(1))?];
        let workers = Workers::new()?;
        let conf = Self::conf_of(&workers, &disks);
        let pool = settings(workers.pool(conf)?).build()?;
        Ok(Self { pool, disks, workers })
    }

    fn conf_of(workers: &Workers, disks: &[Disk]) -> Conf {
        // Activation looks into the host's lock directory for other hosts' commands; one machine, one directory.
        workers.conf(Activation::Udev, &disks.iter().collect::<Vec<_>>())
    }

    /// Makes a group on both disks.
    fn group(&self, name: &str) -> Result<Scope> {
        let disks: Vec<String> = self.disks.iter().map(|disk| disk.path().display().to_string()).collect();
        must(&self.pool, &["vgcreate", "--setautoactivation", "n", name, &disks[0], &disks[1]])?;
        scope_of(&self.pool, name)
    }

    fn change(&self, steps: Vec<TableStep>) -> Result<Reply, Error> {
        self.pool.change_tables(&TableChange {
            scope: Scope::Alone,
            tried: "change tables".to_owned(),
            steps,
            deadline: PATIENCE,
        })
    }

    fn changed(&self, steps: Vec<TableStep>) -> Result<()> {
        let reply = self.change(steps)?;
        if reply.code == ReturnCode::Succeeded {
            return Ok(());
        }
        bail!("{:?}: {:?}", reply.code, reply.records)
    }

    fn linear(&self, disk: usize, length: u64, offset: u64) -> Vec<TableLine> {
        vec![TableLine {
            start: Sectors::new(0),
            length: Sectors::new(length),
            target: "linear".to_owned(),
            parameters: format!("{} {offset}", self.disks[disk].path().display()),
        }]
    }

    fn create(&self, device: &str) -> TableStep {
        TableStep::Create {
            device: device.to_owned(),
            uuid: Some(format!("GABION-TEST-{device}")),
            table: self.linear(0, 2048, 0),
            access: Access::ReadWrite,
        }
    }
}

fn load(device: &str, table: Vec<TableLine>) -> TableStep {
    TableStep::Load { device: device.to_owned(), table, access: Access::ReadWrite }
}

fn suspend(device: &str) -> TableStep {
    TableStep::Suspend { device: device.to_owned(), flush: Flush::Flush, freeze: Freeze::Freeze }
}

fn resume(device: &str) -> TableStep {
    TableStep::Resume { device: device.to_owned() }
}

fn remove(device: &str) -> TableStep {
    TableStep::Remove { device: device.to_owned() }
}

/// What a tool prints.
fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {said}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn node(device: &str) -> PathBuf {
    Path::new("/dev/mapper").join(device)
}

/// The udev cookies that exist, by the magic number in their keys.
fn cookies() -> Vec<u32> {
    let table = fs::read_to_string("/proc/sysvipc/sem").unwrap();
    let keys = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<i64>().ok());
    let keys = keys.map(|key| u32::try_from(key & 0xffff_ffff).unwrap());
    keys.filter(|key| key >> 16 == 0x0d4d).collect()
}

fn error_of(pool: &Pool, words: &[&str]) -> Error {
    let reply = ask(pool, words).unwrap();
    assert_ne!(reply.code, ReturnCode::Succeeded, "{words:?}");
    lvm::classify::failure(&words.join(" "), &reply)
}

#[test]
fn a_device_is_made_changed_and_removed_with_its_node_at_each_return() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.changed(vec![stand.create("gabion-t1")])?;
    assert!(fs::metadata(node("gabion-t1"))?.file_type().is_block_device());
    assert_eq!(
        tool("dmsetup", &["info", "-c", "--noheadings", "-o", "uuid", "gabion-t1"]),
        "GABION-TEST-gabion-t1"
    );
    stand.changed(vec![
        suspend("gabion-t1"),
        load("gabion-t1", stand.linear(1, 4096, 8)),
        resume("gabion-t1"),
    ])?;
    assert_eq!(tool("blockdev", &["--getsz", "/dev/mapper/gabion-t1"]), "4096");
    assert!(tool("dmsetup", &["table", "gabion-t1"]).ends_with(" 8"));
    stand.changed(vec![
        load("gabion-t1", stand.linear(0, 2048, 0)),
        TableStep::Clear { device: "gabion-t1".to_owned() },
    ])?;
    assert_eq!(tool("dmsetup", &["info", "-c", "--noheadings", "-o", "tables_loaded", "gabion-t1"]), "Live");
    stand.changed(vec![remove("gabion-t1")])?;
    assert!(!node("gabion-t1").exists());
    assert_eq!(cookies(), Vec::<u32>::new());
    Ok(())
}

#[test]
fn a_job_that_fails_leaves_what_it_suspended_running_with_its_old_table() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.changed(vec![stand.create("gabion-t2"), stand.create("gabion-t3")])?;
    let before = tool("dmsetup", &["table", "gabion-t2"]);
    let bad =
        vec![TableLine { parameters: "/dev/nonexistent 0".to_owned(), ..stand.linear(0, 8, 0).remove(0) }];
    let reply = stand.change(vec![
        suspend("gabion-t2"),
        load("gabion-t2", stand.linear(1, 8, 0)),
        suspend("gabion-t3"),
        load("gabion-t3", bad),
        resume("gabion-t3"),
        resume("gabion-t2"),
    ])?;
    assert_eq!(reply.code, ReturnCode::Failed);
    let said: Vec<String> = reply.records.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|line| line.contains("load a table into device gabion-t3")), "{said:?}");
    for device in ["gabion-t2", "gabion-t3"] {
        let state = tool("dmsetup", &["info", "-c", "--noheadings", "-o", "suspended,tables_loaded", device]);
        assert_eq!(state, "Active:Live", "{device}");
    }
    assert_eq!(tool("dmsetup", &["table", "gabion-t2"]), before);
    stand.changed(vec![remove("gabion-t2"), remove("gabion-t3")])?;
    assert_eq!(cookies(), Vec::<u32>::new());
    Ok(())
}

#[test]
fn a_gate_holds_writes_back_from_one_job_to_another() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.changed(vec![stand.create("gabion-t4")])?;
    let file = File::options().write(true).open(node("gabion-t4"))?;
    stand.changed(vec![suspend("gabion-t4")])?;
    let written = AtomicBool::new(false);
    thread::scope(|threads| -> Result<()> {
        let writer = threads.spawn(|| {
            file.write_all_at(&[7; 4096], 0).and_then(|()| file.sync_all()).unwrap();
            written.store(true, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_secs(1));
        assert!(!written.load(Ordering::SeqCst));
        stand.changed(vec![resume("gabion-t4")])?;
        writer.join().unwrap();
        Ok(())
    })?;
    assert!(written.load(Ordering::SeqCst));
    drop(file);
    stand.changed(vec![remove("gabion-t4")])
}

#[test]
fn a_message_reaches_a_thin_pool() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.group("vgm")?;
    must(&stand.pool, &["lvcreate", "-L", "64m", "-T", "vgm/pool"])?;
    // The layer `-tpool` gets a device of its own only once the pool has a volume.
    let message = |text: &str| TableStep::Message {
        device: "vgm-pool".to_owned(),
        sector: Sectors::new(0),
        text: text.to_owned(),
    };
    stand.changed(vec![message("create_thin 77")])?;
    stand.changed(vec![message("delete 77")])?;
    let reply = stand.change(vec![message("delete 77")])?;
    assert_eq!(reply.code, ReturnCode::Failed);
    must(&stand.pool, &["vgremove", "-y", "vgm"])?;
    Ok(())
}

#[test]
fn a_volume_has_its_node_when_the_command_returns_and_no_cookie_stays() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    let scope = stand.group("vga")?;
    for index in 0..5 {
        let name = format!("lv{index}");
        let words = ["lvcreate", "-y", "-Wy", "-Zy", "-L", "8m", "-n", &name, "vga"];
        assert_eq!(ask_in(&stand.pool, scope.clone(), &words, PATIENCE)?.code, ReturnCode::Succeeded);
        assert!(Path::new("/dev/vga").join(&name).exists());
        assert_eq!(cookies(), Vec::<u32>::new());
    }
    must(&stand.pool, &["vgremove", "-y", "vga"])?;
    assert!(!Path::new("/dev/vga/lv0").exists());
    Ok(())
}

#[test]
fn refusals_of_the_kernel_are_typed_errors() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.group("vge")?;
    let pool = &stand.pool;
    must(pool, &["lvcreate", "-y", "-L", "8m", "-n", "open", "vge"])?;
    let open = File::open("/dev/vge/open")?;
    for words in [["lvremove", "-y", "vge/open"], ["lvchange", "-an", "vge/open"]] {
        let error = error_of(pool, &words);
        assert_eq!((error.kind(), error.effect()), (Kind::InUse, Effect::None), "{error:?}");
    }
    drop(open);
    let filler = ["lvcreate", "-an", "-y", "-Zn", "-Wn", "-L", "980m", "-n", "filler", "vge"];
    must(pool, &[filler.as_slice(), &[&stand.disks[0].path().display().to_string()]].concat())?;
    let error =
        error_of(pool, &["lvcreate", "-y", "--type", "raid1", "-m", "1", "-L", "100m", "-n", "legs", "vge"]);
    assert_eq!((error.kind(), error.effect()), (Kind::NoSpace(Space::Legs), Effect::None), "{error:?}");
    must(pool, &["vgremove", "-y", "vge"])?;
    Ok(())
}

#[test]
fn a_pool_of_another_time_is_inconsistent() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.group("vgt")?;
    let pool = &stand.pool;
    must(pool, &["lvcreate", "-L", "64m", "-T", "vgt/pool"])?;
    must(pool, &["lvcreate", "-V", "8m", "-T", "vgt/pool", "-n", "one"])?;
    stand.changed(vec![TableStep::Message {
        device: "vgt-pool-tpool".to_owned(),
        sector: Sectors::new(0),
        text: "set_transaction_id 1 9".to_owned(),
    }])?;
    let error = error_of(pool, &["lvcreate", "-V", "8m", "-T", "vgt/pool", "-n", "two"]);
    assert_eq!(error.kind(), Kind::Inconsistent, "{error:?}");
    stand.changed(vec![TableStep::Message {
        device: "vgt-pool-tpool".to_owned(),
        sector: Sectors::new(0),
        text: "set_transaction_id 9 1".to_owned(),
    }])?;
    must(pool, &["vgremove", "-y", "vgt"])?;
    Ok(())
}

#[test]
fn a_full_thin_pool_refuses_new_volumes_for_lack_of_space() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    let mut conf = Stand::conf_of(&stand.workers, &stand.disks);
    conf.auto_extend.threshold = 70;
    stand.pool.reconfigure(&conf)?;
    stand.group("vgf")?;
    let pool = &stand.pool;
    must(pool, &["lvcreate", "-L", "32m", "-T", "vgf/pool"])?;
    must(pool, &["lvcreate", "-V", "64m", "-T", "vgf/pool", "-n", "one"])?;
    let file = File::options().write(true).open("/dev/vgf/one")?;
    file.write_all_at(&vec![1; 28 << 20], 0)?;
    file.sync_all()?;
    drop(file);
    let error = error_of(pool, &["lvcreate", "-V", "8m", "-T", "vgf/pool", "-n", "two"]);
    assert!(matches!(error.kind(), Kind::NoSpace(_)), "{error:?}");
    must(pool, &["vgremove", "-y", "vgf"])?;
    Ok(())
}

#[test]
fn a_cookie_that_udev_never_completes_is_completed_for_it_and_the_command_ends() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    if let Err(error) = std::fs::read("/proc/self/syscall") {
        println!("SKIPPED: the kernel does not tell what a process waits for: /proc/self/syscall: {error}");
        return Ok(());
    }
    let stand = Stand::with(|pool| pool.cookie_patience(Duration::from_secs(2)))?;
    let scope = stand.group("vgc")?;
    tool("udevadm", &["settle"]);
    tool("udevadm", &["control", "--stop-exec-queue"]);
    let start = Instant::now();
    let words = ["lvcreate", "-y", "-Wn", "-Zn", "-L", "8m", "-n", "stuck", "vgc"];
    let outcome = ask_in(&stand.pool, scope, &words, Duration::from_secs(90));
    tool("udevadm", &["control", "--start-exec-queue"]);
    let reply = outcome?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert!(stand.pool.quarantined().is_empty());
    tool("udevadm", &["settle"]);
    assert_eq!(cookies(), Vec::<u32>::new());
    must(&stand.pool, &["vgremove", "-y", "vgc"])?;
    Ok(())
}

#[test]
fn a_suspended_device_among_the_pvs_hangs_no_command() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    let whole = TableStep::Create {
        device: "gabion-t5".to_owned(),
        uuid: None,
        table: stand.linear(1, 1 << 20, 0),
        access: Access::ReadWrite,
    };
    stand.changed(vec![whole])?;
    let disk = stand.disks[0].path().to_owned();
    let conf = Conf { devices: vec![disk, node("gabion-t5")], ..Stand::conf_of(&stand.workers, &[]) };
    stand.pool.reconfigure(&conf)?;
    let first = stand.disks[0].path().display().to_string();
    must(&stand.pool, &["vgcreate", "vgs1", &first])?;
    must(&stand.pool, &["vgcreate", "vgs2", "/dev/mapper/gabion-t5"])?;
    stand.changed(vec![suspend("gabion-t5")])?;
    let start = Instant::now();
    let outcome = ask(&stand.pool, &["lvcreate", "-y", "-an", "-Zn", "-Wn", "-L", "4m", "-n", "one", "vgs1"]);
    let elapsed = start.elapsed();
    stand.changed(vec![resume("gabion-t5")])?;
    let reply = outcome?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    assert!(elapsed < Duration::from_secs(30), "{elapsed:?}");
    must(&stand.pool, &["vgs", "vgs2"])?;
    must(&stand.pool, &["vgremove", "-y", "vgs1", "vgs2"])?;
    stand.changed(vec![remove("gabion-t5")])
}

#[test]
fn a_suspended_device_is_not_opened_to_be_flushed_but_waited_for_and_then_told() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let stand = Stand::new()?;
    stand.changed(vec![stand.create("gabion-t6"), suspend("gabion-t6")])?;
    let flush = |scope| {
        let devices = vec![node("gabion-t6"), stand.disks[1].path().to_owned()];
        let flush = lvm::run::Flush { scope, tried: "flush".to_owned(), devices, deadline: PATIENCE };
        stand.pool.flush(&flush)
    };
    let begun = Instant::now();
    let reply = flush(Scope::Free)?;
    assert_eq!(reply.code, ReturnCode::Unflushed, "{:?}", reply.records);
    assert!(
        reply.records.iter().any(|record| record.message.contains("it is suspended")),
        "{:?}",
        reply.records
    );
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    stand.pool.lift_quarantine(&Scope::Alone);
    // One that is suspended for a moment only is waited for.
    let reply = thread::scope(|threads| {
        let flushed = threads.spawn(|| flush(Scope::Free));
        thread::sleep(Duration::from_secs(1));
        tool("dmsetup", &["resume", "gabion-t6"]);
        flushed.join().unwrap()
    })?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    stand.changed(vec![remove("gabion-t6")])
}
