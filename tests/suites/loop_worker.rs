//! The worker processes over loop devices, with metadata-only LVM: what a caller gets when commands succeed, crash,
//! hang, are given up, or lose their worker.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lvm::run::{Request, ReturnCode, Runner, Scope};
use lvm::worker::conf::{Activation, Conf, Locks};
use lvm::worker::frame::{Hello, Job, JobRequest, REPLY_MAX, REQUEST_MAX, read_frame, write_frame};
use lvm::worker::{Recover, StillClosed};
use lvm::{Effect, Error, Kind};
use rig::workers::{Bench, PATIENCE, ask, ask_in, create, must};
use rig::{Workers, skip_unless_loop};

/// What a recovery did, and whether it shall succeed.
#[derive(Debug, Default)]
struct Recovery {
    calls: AtomicUsize,
    failures: usize,
    pause: Duration,
}

impl Recover for Recovery {
    fn recover(&self, scope: &Scope, runner: &dyn Runner) -> Result<Vec<StillClosed>, Error> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        thread::sleep(self.pause);
        // A recovery runs commands of the closed group; nobody else can.
        let reply = ask_in(runner, scope.clone(), &["vgs", "vg"], PATIENCE)?;
        assert_eq!(reply.code, ReturnCode::Succeeded);
        if call < self.failures {
            return Err(Error::new(Kind::Io, "recover").with_answer("not this time"));
        }
        Ok(Vec::new())
    }
}

#[test]
fn a_command_runs_through_a_worker_and_its_messages_come_back() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    let reply = bench.run(&create("one"))?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    assert!(reply.records.iter().any(|record| record.message.contains("Logical volume \"one\" created")));
    assert!(!reply.truncated && reply.elapsed > Duration::ZERO);
    assert!(bench.pool.lvm_version().is_some_and(|version| version.starts_with("2.03.")));
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.join("").trim(), "one");
    Ok(())
}

#[test]
fn a_lock_held_elsewhere_is_waited_for_until_the_deadline_and_then_busy() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    let held = bench.hold_lock()?;
    let start = Instant::now();
    let error = ask_in(&bench.pool, bench.scope.clone(), &create("one"), Duration::from_secs(5)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(error.advice().is_some());
    let freed = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        drop(held);
    });
    let reply = bench.run(&create("one"))?;
    assert_eq!(reply.code, ReturnCode::Succeeded);
    freed.join().unwrap();
    Ok(())
}

#[test]
fn a_crash_is_told_and_closes_the_group_until_it_is_recovered() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let recovery = Arc::new(Recovery { failures: 1, ..Recovery::default() });
    let hook: Arc<dyn Recover> = Arc::clone(&recovery) as _;
    let bench = Bench::with(|pool| pool.recover(hook))?;
    // The second command with this option on one handle crashes the library.
    let crash = ["lvs", "--devices", &bench.disk(0), "vg"];
    let mut outcome = bench.run(&crash);
    for _ in 0..3 {
        if outcome.is_err() {
            break;
        }
        outcome = bench.run(&crash);
    }
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Crashed, Effect::Unknown), "{error:?}");
    assert!(error.answer().is_some_and(|answer| answer.contains("signal 11")), "{error:?}");
    // The other worker has run one such command too, and may crash at its next; a change of the configuration ends it.
    bench.pool.reconfigure(&Conf { backup_dir: None, ..bench.conf() })?;
    let closed = bench.pool.quarantined();
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0].scope, bench.scope);

    let error = bench.run(&create("one")).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
    assert!(error.answer().is_some_and(|answer| answer.contains("not this time")), "{error:?}");
    assert_eq!(bench.run(&create("one"))?.code, ReturnCode::Succeeded);
    assert_eq!(recovery.calls.load(Ordering::SeqCst), 2);
    assert!(bench.pool.quarantined().is_empty());
    Ok(())
}

#[test]
fn a_group_that_nothing_recovers_stays_closed_until_it_is_opened_by_hand() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.quarantine(&bench.scope, "left by an earlier run");
    for scope in [bench.scope.clone(), Scope::Alone] {
        let error = ask_in(&bench.pool, scope, &["vgs", "vg"], PATIENCE).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        assert!(error.answer().is_some_and(|answer| answer.contains("left by an earlier run")), "{error:?}");
    }
    bench.pool.lift_quarantine(&bench.scope);
    assert_eq!(bench.run(&["vgs", "vg"])?.code, ReturnCode::Succeeded);
    Ok(())
}

#[test]
fn a_closed_group_keeps_out_what_touches_it_and_nothing_else() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.quarantine(&bench.scope, "beyond help");
    let Scope::Vg { name, uuid } = bench.scope.clone() else { panic!("no group") };
    for scope in [bench.scope.clone(), Scope::Whole { name: name.clone(), uuid }, Scope::Alone] {
        let error = ask_in(&bench.pool, scope.clone(), &["vgs"], PATIENCE).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{scope:?}: {error:?}");
    }
    let uuid: lvm::Uuid = "000000-0000-0000-0000-0000-0000-000001".parse()?;
    for scope in [Scope::Free, Scope::Vg { name: name.clone(), uuid }, Scope::Whole { name, uuid }] {
        assert_eq!(ask_in(&bench.pool, scope, &["pvs"], PATIENCE)?.code, ReturnCode::Succeeded);
    }
    Ok(())
}

/// A recovery that brings everything in order but for one group.
#[derive(Debug, Default)]
struct AllButOne(OnceLock<Scope>);

impl Recover for AllButOne {
    fn recover(&self, scope: &Scope, _: &dyn Runner) -> Result<Vec<StillClosed>, Error> {
        let error = Error::new(Kind::Inconsistent, "recover").with_answer("a person must see to it");
        match (scope, self.0.get()) {
            (Scope::Alone, Some(scope)) => Ok(vec![StillClosed { scope: scope.clone(), error }]),
            _ => Err(error),
        }
    }
}

#[test]
fn a_recovery_of_everything_leaves_only_those_groups_closed_that_it_could_not_recover() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let recovery = Arc::new(AllButOne::default());
    let hook: Arc<dyn Recover> = Arc::clone(&recovery) as _;
    let bench = Bench::with(|pool| pool.recover(hook))?;
    recovery.0.set(bench.scope.clone()).unwrap();
    // What a dead worker that made a PV leaves.
    bench.pool.quarantine(&Scope::Free, "killed");
    assert_eq!(ask_in(&bench.pool, Scope::Free, &["pvs"], PATIENCE)?.code, ReturnCode::Succeeded);
    let closed = bench.pool.quarantined();
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!(closed[0].scope, bench.scope);
    assert!(closed[0].failure.as_ref().is_some_and(|failure| failure.contains("a person")), "{closed:?}");
    assert_eq!(bench.run(&["vgs"]).unwrap_err().kind(), Kind::Busy);
    Ok(())
}

#[test]
fn callers_meet_in_one_recovery_and_leave_it_at_their_deadlines() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let recovery = Arc::new(Recovery { pause: Duration::from_secs(2), ..Recovery::default() });
    let hook: Arc<dyn Recover> = Arc::clone(&recovery) as _;
    let bench = Bench::with(|pool| pool.recover(hook))?;
    bench.pool.quarantine(&bench.scope, "a test");
    let start = Instant::now();
    let error =
        ask_in(&bench.pool, bench.scope.clone(), &["vgs", "vg"], Duration::from_millis(200)).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy);
    assert!(start.elapsed() < Duration::from_millis(1500));
    thread::scope(|threads| {
        let calls: Vec<_> = (0..4).map(|_| threads.spawn(|| bench.run(&["vgs", "vg"]))).collect();
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap().code, ReturnCode::Succeeded);
        }
    });
    assert_eq!(recovery.calls.load(Ordering::SeqCst), 1);
    Ok(())
}

#[test]
fn a_command_that_hangs_times_out_and_its_group_is_busy_until_it_ends() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    let start = Instant::now();
    let error = ask_in(&bench.pool, bench.scope.clone(), &create("one"), Duration::from_secs(1)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::TimedOut, Effect::Unknown), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(4));
    // At once, not after a deadline of its own.
    let start = Instant::now();
    let error = bench.run(&create("two")).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(1));
    drop(held);
    let end = Instant::now() + PATIENCE;
    loop {
        match bench.run(&create("two")) {
            Ok(reply) => {
                assert_eq!(reply.code, ReturnCode::Succeeded);
                break;
            }
            Err(error) if error.kind() == Kind::Busy && Instant::now() < end => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error.into()),
        }
    }
    // The command that its caller gave up was carried out.
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.len(), 2);
    assert!(bench.pool.quarantined().is_empty());
    Ok(())
}

#[test]
fn a_command_that_will_never_end_is_killed_and_its_group_recovered() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let recovery: Arc<dyn Recover> = Arc::new(Recovery::default());
    let bench = Bench::with(|pool| pool.recover(recovery).kill_after(Duration::from_secs(2)))?;
    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    let error = bench.run(&create("one")).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Crashed, Effect::Unknown), "{error:?}");
    assert!(error.answer().is_some_and(|answer| answer.contains("without an end")), "{error:?}");
    assert_eq!(bench.pool.quarantined().len(), 1);
    drop(held);
    assert_eq!(bench.run(&create("one"))?.code, ReturnCode::Succeeded);
    Ok(())
}

#[test]
fn who_waits_behind_another_command_and_gives_up_has_done_nothing() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    thread::scope(|threads| {
        let first = threads.spawn(|| bench.run(&create("one")));
        thread::sleep(Duration::from_millis(500));
        let words = create("two");
        let error = ask_in(&bench.pool, bench.scope.clone(), &words, Duration::from_millis(500)).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
        drop(held);
        assert_eq!(first.join().unwrap().unwrap().code, ReturnCode::Succeeded);
    });
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.join("").trim(), "one");
    Ok(())
}

#[test]
fn a_worker_killed_at_work_is_a_crash_and_one_killed_at_rest_is_replaced() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let recovery: Arc<dyn Recover> = Arc::new(Recovery::default());
    let bench = Bench::with(|pool| pool.recover(recovery))?;
    for pid in bench.worker_pids()? {
        kill(pid);
    }
    assert_eq!(bench.run(&create("one"))?.code, ReturnCode::Succeeded);
    assert!(bench.pool.quarantined().is_empty());

    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    thread::scope(|threads| -> Result<()> {
        let call = threads.spawn(|| bench.run(&create("two")));
        thread::sleep(Duration::from_secs(1));
        for pid in bench.worker_pids()? {
            kill(pid);
        }
        let error = call.join().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Crashed, Effect::Unknown), "{error:?}");
        assert!(error.answer().is_some_and(|answer| answer.contains("signal 9")), "{error:?}");
        Ok(())
    })?;
    drop(held);
    assert_eq!(bench.run(&create("two"))?.code, ReturnCode::Succeeded);
    Ok(())
}

/// Kills a process and waits until it can take nothing any more.
fn kill(pid: u32) {
    let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
    let dead = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
    };
    let end = Instant::now() + PATIENCE;
    while !dead() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn workers_are_at_most_two_are_replaced_after_so_many_commands_and_do_not_rest() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::with(|pool| pool.recycle_after(5).rest(Duration::from_secs(1)))?;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        assert_eq!(bench.run(&["vgs", "vg"])?.code, ReturnCode::Succeeded);
        let pids = bench.worker_pids()?;
        assert!(pids.len() <= 2, "{pids:?}");
        seen.extend(pids);
    }
    assert!((4..=6).contains(&seen.len()), "20 commands by {} workers of 5 commands", seen.len());
    let end = Instant::now() + Duration::from_secs(10);
    while bench.pool.processes() > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(bench.pool.processes(), 0);
    assert!(bench.worker_pids()?.is_empty());
    assert_eq!(bench.run(&["vgs", "vg"])?.code, ReturnCode::Succeeded);
    Ok(())
}

#[test]
fn commands_of_one_group_keep_their_order_and_all_succeed_from_many_threads() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    thread::scope(|threads| {
        for index in 0..8 {
            let bench = &bench;
            threads.spawn(move || {
                let name = format!("lv{index}");
                assert_eq!(bench.run(&create(&name)).unwrap().code, ReturnCode::Succeeded);
                assert!(bench.worker_pids().unwrap().len() <= 2);
            });
        }
    });
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.len(), 8);
    Ok(())
}

/// LVM-13: LVM's chatter about descriptors that leaked is neither heard nor taken for a failure.
#[test]
fn a_worker_holds_no_descriptor_that_is_not_its_own() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    // What a C library of the program would leave open for every child.
    let leak = fs::File::open("/proc/self/status")?;
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty())?;
    let bench = Bench::new()?;
    let reply = bench.run(&["vgs", "vg"])?;
    assert!(!reply.records.iter().any(|record| record.message.contains("leaked")), "{:?}", reply.records);
    let disks: Vec<PathBuf> = bench.disks.iter().map(|disk| disk.path().to_owned()).collect();
    for pid in bench.worker_pids()? {
        let mut sockets = 0;
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let entry = entry?;
            let target = fs::read_link(entry.path())?;
            let text = target.display().to_string();
            let number: u32 = entry.file_name().to_string_lossy().parse()?;
            match number {
                0 | 1 => assert_eq!(text, "/dev/null"),
                2 => assert!(text.starts_with("/memfd:stderr"), "{text}"),
                _ if text.starts_with("socket:") => sockets += 1,
                _ if text.starts_with("/memfd:stderr") => {}
                _ => assert!(
                    disks.contains(&target) || text.starts_with("/dev/mapper/control"),
                    "{number}: {text}"
                ),
            }
        }
        assert_eq!(sockets, 1);
    }
    Ok(())
}

#[test]
fn no_archive_grows_and_no_devices_file_appears() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    let listing = |bench: &Bench| -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for name in ["conf", "backup"] {
            for entry in walk(&bench.workers.path(name))? {
                files.push(entry);
            }
        }
        files.sort();
        Ok(files)
    };
    let host = |path: &str| fs::metadata(path).and_then(|data| data.modified()).ok();
    let host_before =
        (host("/etc/lvm/devices/system.devices"), host("/etc/lvm/archive"), host("/etc/lvm/backup"));
    bench.run(&create("one"))?;
    let before = listing(&bench)?;
    for index in 0..10 {
        bench.run(&["lvchange", "--addtag", &format!("t{index}"), "vg/one"])?;
    }
    bench.run(&["vgreduce", "vg", &bench.disk(1)])?;
    bench.run(&["vgextend", "vg", &bench.disk(1)])?;
    assert_eq!(listing(&bench)?, before);
    assert!(before.iter().any(|path| path.ends_with("backup/vg")), "{before:?}");
    assert!(!before.iter().any(|path| path.display().to_string().contains("devices")), "{before:?}");
    let host_after =
        (host("/etc/lvm/devices/system.devices"), host("/etc/lvm/archive"), host("/etc/lvm/backup"));
    assert_eq!(host_before, host_after);
    Ok(())
}

fn walk(path: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(walk(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[test]
fn draining_waits_for_what_runs_and_takes_nothing_new() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    thread::scope(|threads| {
        let call = threads.spawn(|| bench.run(&create("one")));
        thread::sleep(Duration::from_millis(500));
        assert!(!bench.pool.drain(Duration::from_millis(300)));
        let error = ask(&bench.pool, &["vgs"]).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
        drop(held);
        assert!(bench.pool.drain(PATIENCE));
        assert_eq!(call.join().unwrap().unwrap().code, ReturnCode::Succeeded);
    });
    assert_eq!(bench.pool.processes(), 0);
    assert!(bench.worker_pids()?.is_empty());
    Ok(())
}

#[test]
fn a_command_goes_on_when_its_program_dies() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.pool.reconfigure(&Conf { locks: Locks::Wait, ..bench.conf() })?;
    let held = bench.hold_lock()?;
    // What a program leaves behind that dies with a command under way: a request in a socket that has ended.
    let (ours, theirs) = UnixStream::pair()?;
    let job = Job::Lvm { line: create("orphan").join(" "), flush: Vec::new() };
    write_frame(&mut &ours, &JobRequest { seq: 1, job }, REQUEST_MAX)?;
    let mut worker = Command::new(rig::workers::worker_binary()?)
        .env("LVM_SYSTEM_DIR", bench.pool.conf_dir())
        .env("LC_ALL", "C")
        .stdin(OwnedFd::from(theirs))
        .spawn()?;
    read_frame::<Hello>(&mut &ours, REPLY_MAX)?;
    drop(ours);
    thread::sleep(Duration::from_secs(1));
    assert!(worker.try_wait()?.is_none(), "the worker waits for the lock");
    drop(held);
    let end = Instant::now() + PATIENCE;
    while worker.try_wait()?.is_none() {
        assert!(Instant::now() < end, "the worker does not end with its socket");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.join("").trim(), "orphan");
    Ok(())
}

#[test]
fn a_long_command_waits_for_locks_apart_from_the_queue_and_there_is_one_in_a_group() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    let held = bench.hold_lock()?;
    let request = |name: &str| Request {
        scope: bench.scope.clone(),
        tried: format!("create {name}"),
        argv: create(name).iter().map(|word| (*word).to_owned()).collect(),
        deadline: PATIENCE,
        flush: Vec::new(),
    };
    let (sender, receiver) = mpsc::channel();
    bench.pool.run_long(&request("long"), move |result| sender.send(result).unwrap())?;
    let error = bench.pool.run_long(&request("second"), |_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy, "{error:?}");
    assert!(receiver.recv_timeout(Duration::from_secs(1)).is_err(), "it waits for the lock");
    drop(held);
    assert_eq!(receiver.recv_timeout(PATIENCE)?.unwrap().code, ReturnCode::Succeeded);
    assert_eq!(bench.run(&["lvs", "vg/long"])?.code, ReturnCode::Succeeded);
    let alone = Request { scope: Scope::Alone, ..request("x") };
    assert_eq!(bench.pool.run_long(&alone, |_| ()).unwrap_err().kind(), Kind::InvalidArgument);
    Ok(())
}

#[test]
fn a_worker_that_cannot_start_is_told_with_nothing_done() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let workers = Workers::new()?;
    let conf = workers.conf(Activation::MetadataOnly, &[]);
    let pool = workers.pool(conf.clone())?.binary("/nonexistent/worker").build()?;
    let error = ask(&pool, &["vgs"]).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Io, Effect::None), "{error:?}");
    let pool = workers.pool(conf)?.binary("/bin/true").build()?;
    let error = ask(&pool, &["vgs"]).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Crashed, Effect::None), "{error:?}");
    assert!(pool.quarantined().is_empty());
    Ok(())
}
