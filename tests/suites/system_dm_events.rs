//! What the kernel tells as a device-mapper event and what it does not: the ground on which sampling rests.

#![allow(clippy::unwrap_used)] // a test suite

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use lvm::dm::{Dm, Events, Woken};
use rig::lab::{Lab, Under};
use rig::{skip_unless_dm, tool};

/// How long an event may take to arrive before it counts as none.
const PATIENCE: Duration = Duration::from_millis(1500);

const NOTHING: [&str; 0] = [];

fn write(device: &Path, seek: u64, mib: u64) {
    let to = format!("of={}", device.display());
    let (seek, count) = (format!("seek={seek}"), format!("count={mib}"));
    tool::run("dd", ["if=/dev/zero", &to, "bs=1M", &seek, &count, "oflag=direct", "conv=fsync,notrunc"])
        .unwrap();
}

/// The names of the devices that had events while `act` ran, or shortly after.
fn told(events: &mut Events, act: impl FnOnce()) -> Vec<String> {
    // What came before belongs to nobody.
    while events.wait(Some(Duration::ZERO)).unwrap() != Woken::TimedOut {}
    act();
    let end = Instant::now() + PATIENCE;
    let mut names = Vec::new();
    while let Woken::Changed(changed) =
        events.wait(Some(end.saturating_duration_since(Instant::now()))).unwrap()
    {
        names.extend(changed.into_iter().map(|change| change.device.name.to_string()));
    }
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_pool_tells_its_low_water_mark_its_end_and_its_extension_and_nothing_between() {
    if skip_unless_dm() {
        return;
    }
    let mut lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.configure("activation/thin_pool_autoextend_threshold = 70").unwrap();
    lab.lvm("lvcreate -L 100M -c 64k -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 200M -T VG/pool -n thin").unwrap();
    let (vg, pool) = (lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    let table = Dm::open().unwrap().pool_table(&vg, &pool).unwrap().unwrap();
    assert_eq!(table.low_water, 480, "30 % of 1,600 chunks");
    let tpool = [lab.dm_name("pool-tpool")];
    let mut events = Events::open().unwrap();
    let node = lab.node("thin");
    assert_eq!(told(&mut events, || {}), NOTHING, "idle");
    assert_eq!(told(&mut events, || write(&node, 0, 50)), NOTHING, "0 to 50 %");
    assert_eq!(told(&mut events, || write(&node, 50, 19)), NOTHING, "50 to 69 %");
    assert_eq!(told(&mut events, || write(&node, 69, 3)), tpool, "over the mark at 70 %");
    assert_eq!(told(&mut events, || write(&node, 72, 23)), NOTHING, "72 to 95 %");
    thread::scope(|scope| {
        // A full pool queues: the write ends when the pool has grown.
        let names = told(&mut events, || {
            scope.spawn(|| write(&node, 95, 20));
            thread::sleep(Duration::from_secs(1));
        });
        assert_eq!(names, tpool, "full");
        let names = told(&mut events, || drop(lab.lvm("lvextend -L +50M VG/pool").unwrap()));
        assert!(names.contains(&tpool[0]), "extended: {names:?}");
    });
}

#[test]
fn a_pool_with_the_default_threshold_has_no_mark_and_tells_nothing_before_it_is_full() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 64M -c 64k -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 100M -T VG/pool -n thin").unwrap();
    let (vg, pool) = (lab.vg_uuid().unwrap(), lab.uuid("pool").unwrap());
    let table = Dm::open().unwrap().pool_table(&vg, &pool).unwrap().unwrap();
    assert_eq!(table.low_water, 0);
    let mut events = Events::open().unwrap();
    assert_eq!(told(&mut events, || write(&lab.node("thin"), 0, 62)), NOTHING, "97 % full");
}

#[test]
fn creating_suspending_loading_opening_and_removing_tell_nothing() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.lvm("lvcreate -L 16M -n one VG").unwrap();
    let mut events = Events::open().unwrap();
    let name = lab.dm_name("one");
    let dmsetup = |verb: &str| drop(tool::run("dmsetup", [verb, &name]).unwrap());
    let lvm = |line: &str| drop(lab.lvm(line).unwrap());
    assert_eq!(told(&mut events, || lvm("lvcreate -L 16M -n two VG")), NOTHING, "create");
    assert_eq!(told(&mut events, || dmsetup("suspend")), NOTHING, "suspend");
    let table = tool::run("dmsetup", ["table", &name]).unwrap();
    let load = || drop(tool::run("dmsetup", ["load", &name, "--table", table.trim()]).unwrap());
    assert_eq!(told(&mut events, load), NOTHING, "load");
    assert_eq!(told(&mut events, || dmsetup("resume")), NOTHING, "resume with another table");
    assert_eq!(told(&mut events, || drop(std::fs::File::open(lab.node("one")).unwrap())), NOTHING, "open");
    assert_eq!(told(&mut events, || lvm("lvremove VG/two")), NOTHING, "remove");
}

#[test]
fn the_death_of_a_raid_leg_is_told() {
    if skip_unless_dm() {
        return;
    }
    let lab = Lab::new(2, Bytes::mib(512), Under::Linear).unwrap();
    lab.lvm("lvcreate -L 32M --type raid1 -m1 -n raid VG").unwrap();
    let (dm, vg, raid) = (Dm::open().unwrap(), lab.vg_uuid().unwrap(), lab.uuid("raid").unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    while !dm.raid_health(&vg, &raid).unwrap().unwrap().is_healthy() {
        assert!(Instant::now() < end, "the legs do not come into sync");
        thread::sleep(Duration::from_millis(50));
    }
    let mut events = Events::open().unwrap();
    lab.break_disk(1).unwrap();
    let names = told(&mut events, || write(&lab.node("raid"), 0, 1));
    assert_eq!(names, [lab.dm_name("raid")]);
}

#[test]
fn no_event_is_lost_between_two_waits() {
    if skip_unless_dm() {
        return;
    }
    const ROUNDS: u32 = 12;
    let mut lab = Lab::new(1, Bytes::gib(1), Under::Loop).unwrap();
    lab.configure("activation/thin_pool_autoextend_threshold = 50").unwrap();
    lab.lvm("lvcreate -L 64M -c 64k -T VG/pool").unwrap();
    lab.lvm("lvcreate -V 100M -T VG/pool -n thin").unwrap();
    write(&lab.node("thin"), 0, 40);
    let name = lab.dm_name("pool-tpool");
    let mut events = Events::open().unwrap();
    let mine = |listed: &lvm::dm::Listed| listed.name.to_string() == name;
    let dm = Dm::open().unwrap();
    let number = || dm.list().unwrap().iter().find(|listed| mine(listed)).map(|listed| listed.event_nr);
    let before = number().unwrap();
    let waker = events.waker();
    let actor = {
        let (name, node) = (name.clone(), lab.node("thin"));
        // Below its mark, a pool tells so once after each resume.
        thread::spawn(move || {
            for round in 0..ROUNDS {
                tool::run("dmsetup", ["suspend", &name]).unwrap();
                tool::run("dmsetup", ["resume", &name]).unwrap();
                write(&node, 50 + u64::from(round), 1);
            }
            waker.wake();
        })
    };
    let mut counted = 0;
    let mut ended = false;
    loop {
        match events.wait(ended.then_some(PATIENCE)).unwrap() {
            Woken::Changed(changed) => {
                counted += changed.iter().filter(|c| mine(&c.device)).map(|c| c.events).sum::<u32>();
            }
            Woken::ByWaker => ended = true,
            Woken::TimedOut => break,
        }
    }
    actor.join().unwrap();
    let after = number().unwrap();
    assert_eq!(counted, after - before);
    assert!(counted >= ROUNDS, "{counted}");
}

#[test]
fn a_waker_and_a_limit_end_a_wait() {
    if skip_unless_dm() {
        return;
    }
    let mut events = Events::open().unwrap();
    let start = Instant::now();
    assert_eq!(events.wait(Some(Duration::from_millis(200))).unwrap(), Woken::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(200));
    let waker = events.waker();
    waker.wake();
    assert_eq!(events.wait(None).unwrap(), Woken::ByWaker);
    let sleeper = thread::spawn(move || events.wait(None).unwrap());
    thread::sleep(Duration::from_millis(100));
    waker.wake();
    assert_eq!(sleeper.join().unwrap(), Woken::ByWaker);
}
