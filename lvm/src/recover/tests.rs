//! The comparison and the order, on metadata texts and tables as LVM 2.03.16 and Linux 6.1 write them.

use std::any::Any;
use std::cell::RefCell;

use devices::DeviceNumber;

use super::live::LiveDevice;
use super::order::{Act, Order, World};
use super::{Difference, Recovered, Step, compare};
use crate::dm::{Activity, DmName, DmUuid, Info, Table, Target, TargetLine};
use crate::metadata::{PvDevice, Vg};
use crate::worker::table::TableLine;
use crate::{Error, Kind, LvName, Tag, Uuid, VgName};
use devices::{Bytes, Sectors};

/// Volumes of the text below, by the letter that fills their uuids.
const VG: &str = "gggggggggggggggggggggggggggggggg";

fn uuid(letter: char) -> String {
    let run = |count| letter.to_string().repeat(count);
    format!("{}-{}-{}-{}-{}-{}-{}", run(6), run(4), run(4), run(4), run(4), run(4), run(6))
}

/// One PV of 100 extents of 4 MiB behind 253:100, extents from sector 2048 on.
fn vg(seqno: u64, volumes: &[String]) -> Vg {
    let text = format!(
        "v {{\nid = \"{}\"\nseqno = {seqno}\nformat = \"lvm2\"\nstatus = [\"RESIZEABLE\", \"READ\", \"WRITE\"]\nflags = []\n\
         extent_size = 8192\nmax_lv = 0\nmax_pv = 0\nmetadata_copies = 0\nphysical_volumes {{\npv0 {{\nid = \"{}\"\n\
         device = \"/dev/sdb\"\nstatus = [\"ALLOCATABLE\"]\nflags = []\ndev_size = 821248\npe_start = 2048\n\
         pe_count = 100\n}}\n}}\nlogical_volumes {{\n{}\n}}\n}}\ncontents = \"Text Format Volume Group\"\nversion = 1\n",
        uuid('g'),
        uuid('p'),
        volumes.join("\n")
    );
    let mut vg = Vg::from_text(&text).unwrap();
    vg.pvs[0].device = Some(PvDevice {
        path: "/dev/sdb".into(),
        number: Some(DeviceNumber { major: 253, minor: 100 }),
        size: Bytes::mib(401),
        label_size: Bytes::mib(401),
        areas: Vec::new(),
    });
    vg
}

fn lv(name: &str, letter: char, visible: bool, tags: &str, segment: &str) -> String {
    let visible = if visible { ", \"VISIBLE\"" } else { "" };
    format!(
        "{name} {{\nid = \"{}\"\nstatus = [\"READ\", \"WRITE\"{visible}]\nflags = []\ntags = [{tags}]\nsegment_count = 1\n\
         segment1 {{\nstart_extent = 0\n{segment}\n}}\n}}",
        uuid(letter)
    )
}

fn linear(extents: u64, at: u64) -> String {
    format!("extent_count = {extents}\ntype = \"striped\"\nstripe_count = 1\nstripes = [\"pv0\", {at}]")
}

/// A pool of 10 extents at 2 with metadata at 0, and its thin volumes: name, letter, device id, tags.
fn pool(transaction: u64, message: &str, thins: &[(&str, char, u32, &str)]) -> Vec<String> {
    let segment = format!(
        "extent_count = 10\ntype = \"thin-pool\"\nmetadata = \"pool_tmeta\"\npool = \"pool_tdata\"\n\
         transaction_id = {transaction}\nchunk_size = 128\ndiscards = \"passdown\"\nzero_new_blocks = 1\n{message}"
    );
    let mut volumes = vec![
        lv("pool", 'q', true, "", &segment),
        lv("pool_tmeta", 'm', false, "", &linear(2, 0)),
        lv("pool_tdata", 'd', false, "", &linear(10, 2)),
    ];
    for (name, letter, id, tags) in thins {
        let segment = format!(
            "extent_count = 25\ntype = \"thin\"\nthin_pool = \"pool\"\ntransaction_id = 0\ndevice_id = {id}"
        );
        volumes.push(lv(name, *letter, true, tags, &segment));
    }
    volumes
}

/// A device of volume `letter`: name, layer, minor number, open count, lines `start length target parameters`.
fn device(
    letter: char,
    name: &str,
    layer: Option<&str>,
    minor: u32,
    open: u32,
    lines: &[&str],
) -> LiveDevice {
    let uuid = letter.to_string().repeat(32).parse().unwrap();
    let dm_uuid = DmUuid::of_lvm(&VG.parse().unwrap(), &uuid, layer);
    let line = |line: &&str| {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let number = |index: usize| Sectors::new(words[index].parse().unwrap());
        let target = Target::parse(words[2], words.get(3).copied().unwrap_or_default()).unwrap();
        TargetLine { start: number(0), len: number(1), target }
    };
    LiveDevice {
        serves: dm_uuid.lvm().unwrap(),
        info: Info {
            number: DeviceNumber { major: 253, minor },
            name: name.parse::<DmName>().unwrap(),
            uuid: Some(dm_uuid),
            event_nr: 0,
            open_count: open,
            targets: u32::try_from(lines.len()).unwrap(),
            activity: Activity::Running,
            has_live_table: !lines.is_empty(),
            has_inactive_table: false,
            read_only: false,
            removed_on_close: false,
        },
        table: Table { segments: lines.iter().map(line).collect() },
        transaction_id: None,
        holds_metadata: false,
    }
}

fn live_pool(transaction: u64) -> Vec<LiveDevice> {
    let mut tpool =
        device('q', "v-pool-tpool", Some("tpool"), 2, 1, &["0 81920 thin-pool 253:0 253:1 128 0 0"]);
    tpool.transaction_id = Some(transaction);
    vec![
        device('m', "v-pool_tmeta", Some("tmeta"), 0, 1, &["0 16384 linear 253:100 2048"]),
        device('d', "v-pool_tdata", Some("tdata"), 1, 1, &["0 81920 linear 253:100 18432"]),
        tpool,
        device('t', "v-t", None, 3, 1, &["0 204800 thin 253:2 1"]),
    ]
}

#[test]
fn tables_as_lvm_makes_them_show_no_difference() {
    let vg = vg(5, &pool(1, "", &[("t", 't', 1, "")]));
    assert_eq!(compare(&vg, &live_pool(1)), []);
    assert_eq!(compare(&vg, &[]), []);
}

#[test]
fn a_pool_under_its_own_name_is_linear_on_the_pool() {
    let vg = vg(5, &pool(1, "", &[("t", 't', 1, "")]));
    let mut live = live_pool(1);
    live.push(device('q', "v-pool", Some("pool"), 4, 0, &["0 81920 linear 253:2 0"]));
    assert_eq!(compare(&vg, &live), []);
}

#[test]
fn classic_snapshots_have_three_devices_more() {
    let tie = "extent_count = 4\ntype = \"snapshot\"\nchunk_size = 8\norigin = \"o\"\ncow_store = \"s\"";
    let vg = vg(
        5,
        &[
            lv("o", 'o', true, "", &linear(4, 0)),
            lv("s", 's', true, "", &linear(2, 4)),
            lv("snapshot0", 'z', false, "", tie),
        ],
    );
    let live = [
        device('o', "v-o-real", Some("real"), 0, 2, &["0 32768 linear 253:100 2048"]),
        device('s', "v-s-cow", Some("cow"), 1, 1, &["0 16384 linear 253:100 34816"]),
        device('o', "v-o", None, 2, 0, &["0 32768 snapshot-origin 253:0"]),
        device('s', "v-s", None, 3, 0, &["0 32768 snapshot 253:0 253:1 P 8"]),
    ];
    assert_eq!(compare(&vg, &live), []);
    assert_eq!(compare(&vg, &live[..2]).len(), 0, "both are open by what is not in this list");
}

#[test]
fn each_kind_of_wreck_is_told_apart() {
    let vg = vg(5, &pool(2, "", &[("t", 't', 1, "")]));
    let mut live = live_pool(1);
    live[1].table.segments[0].len = Sectors::new(90_112);
    live[3].info.activity = Activity::Suspended;
    live[3].info.has_inactive_table = true;
    live.push(device('x', "v-gone", None, 9, 0, &["0 8192 linear 253:100 500000"]));
    live.push(device('t', "v-t-real", Some("real"), 10, 0, &["0 8192 linear 253:100 500000"]));
    let found = compare(&vg, &live);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "device v-pool_tdata of volume pool_tdata has 90112 at 0: linear on 253:100 at 18432 where the metadata \
             say 81920 at 0: linear on 253:100 at 18432",
            "thin pool pool has transaction id 1 in the kernel and 2 in the group's metadata",
            "device v-t is suspended",
            "device v-t has a table loaded that is not committed",
            "device v-gone belongs to no volume of the group",
            "device v-t-real serves a volume that is not active",
            "device v-t-real is none that its volume has",
        ]
    );
    let closing: Vec<bool> = found.iter().map(Difference::closes_group).collect();
    assert_eq!(closing, [true, false, true, true, true, true, true]);
}

#[test]
fn another_thin_device_under_the_same_name_is_a_difference() {
    let vg = vg(5, &pool(1, "", &[("t", 't', 1, "")]));
    let mut live = live_pool(1);
    live[3] = device('t', "v-t", None, 3, 1, &["0 204800 thin 253:2 7"]);
    assert!(matches!(compare(&vg, &live)[..], [Difference::Table { .. }]));
}

#[test]
fn a_missing_pv_may_be_stood_in_for() {
    let mut vg = vg(5, &[lv("x", 'x', true, "", &linear(2, 0))]);
    vg.pvs[0].device = None;
    let live = [
        device('x', "v-x-missing_0_0", Some("missing_0_0"), 0, 1, &["0 16384 error"]),
        device('x', "v-x", None, 1, 0, &["0 16384 linear 253:0 0"]),
    ];
    assert_eq!(compare(&vg, &live), []);
}

/// A world in memory: acts and commands change it as the kernel and LVM would.
struct Fake {
    vg: RefCell<Option<Vg>>,
    live: RefCell<Vec<LiveDevice>>,
    log: RefCell<Vec<String>>,
    /// What a command does to the world; an error text if LVM refuses.
    lvm: fn(&Fake, &[&str]) -> Result<(), String>,
}

impl Fake {
    fn new(vg: Vg, live: Vec<LiveDevice>, lvm: fn(&Fake, &[&str]) -> Result<(), String>) -> Self {
        Self { vg: RefCell::new(Some(vg)), live: RefCell::new(live), log: RefCell::default(), lvm }
    }

    fn recover(&self) -> Recovered {
        Order::carry_out(self, VG.parse().unwrap(), &VgName::new("v").unwrap()).unwrap()
    }

    fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }
}

impl World for Fake {
    fn committed(&self, _: Uuid) -> Result<Option<Vg>, Error> {
        Ok(self.vg.borrow().clone())
    }

    fn live(&self, _: Uuid) -> Result<Vec<LiveDevice>, Error> {
        Ok(self.live.borrow().clone())
    }

    fn lock(&self, _: &VgName) -> Result<Box<dyn Any>, Error> {
        self.log.borrow_mut().push("lock".to_owned());
        Ok(Box::new(()))
    }

    fn change(&self, tried: &str, acts: &[Act]) -> Result<(), Error> {
        for act in acts {
            self.log.borrow_mut().push(format!("{act:?}"));
            let mut live = self.live.borrow_mut();
            let named =
                |name: &str, live: &[LiveDevice]| live.iter().position(|device| device.name() == name);
            match act {
                Act::Clear(name) => {
                    let index = named(name, &live).unwrap();
                    live[index].info.has_inactive_table = false;
                }
                Act::Load { device, table } => {
                    let index = named(device, &live).unwrap();
                    let parse = |line: &TableLine| TargetLine {
                        start: line.start,
                        len: line.length,
                        target: Target::parse(&line.target, &line.parameters).unwrap(),
                    };
                    live[index].table = Table { segments: table.iter().map(parse).collect() };
                }
                Act::Resume(name) => {
                    let index = named(name, &live).unwrap();
                    assert!(!live[index].info.has_inactive_table, "an uncommitted table became live");
                    live[index].info.activity = Activity::Running;
                }
                Act::Remove(name) => {
                    let index = named(name, &live).unwrap();
                    assert_eq!(live.remove(index).info.open_count, 0);
                }
                Act::Message { text, .. } if text == "delete 2" => {}
                Act::Message { .. } => return Err(Error::new(Kind::Other, tried)),
            }
        }
        Ok(())
    }

    fn flush(&self, _: &str, vg: &Vg) -> Result<(), Error> {
        self.log.borrow_mut().push(format!("flush {}", vg.seqno));
        Ok(())
    }

    fn command(&self, tried: &str, words: &[&str]) -> Result<(), Error> {
        self.log.borrow_mut().push(words.join(" "));
        (self.lvm)(self, words).map_err(|answer| Error::new(Kind::Other, tried).with_answer(answer))
    }

    fn claim(&self, _: Uuid, lv: &LvName) -> Result<Option<Box<dyn Any>>, Error> {
        Ok((lv.as_str() != "held").then(|| Box::new(()) as Box<dyn Any>))
    }

    fn owner(&self) -> Option<&Tag> {
        None
    }
}

fn nothing_to_do(_: &Fake, words: &[&str]) -> Result<(), String> {
    panic!("no command was expected: {words:?}")
}

#[test]
fn a_group_in_order_is_only_looked_at_and_flushed() {
    let world = Fake::new(vg(5, &pool(1, "", &[("t", 't', 1, "")])), live_pool(1), nothing_to_do);
    assert_eq!(world.recover(), Recovered::default());
    assert!(world.log().iter().all(|entry| entry == "lock" || entry.starts_with("flush")));
}

#[test]
fn inactive_tables_go_before_anything_is_resumed_and_what_lies_below_runs_first() {
    let mut live = live_pool(1);
    for device in &mut live[1..] {
        device.info.activity = Activity::Suspended;
    }
    live.reverse();
    live[0].info.has_inactive_table = true;
    let world = Fake::new(vg(5, &pool(1, "", &[("t", 't', 1, "")])), live, nothing_to_do);
    let report = world.recover();
    let log = world.log();
    assert_eq!(
        log[1..5],
        [r#"Clear("v-t")"#, r#"Resume("v-pool_tdata")"#, r#"Resume("v-pool-tpool")"#, r#"Resume("v-t")"#]
    );
    assert!(report.is_open() && report.steps.len() == 4, "{report}");
}

#[test]
fn a_pending_thin_device_is_forgotten_and_made_anew_by_a_refresh() {
    let message = "message1 {\ncreate = \"cut\"\n}";
    let thins = [("t", 't', 1, ""), ("cut", 'c', 2, "\"gabion.dev/creating\"")];
    let world = Fake::new(vg(5, &pool(2, message, &thins)), live_pool(1), |world, words| {
        match words {
            ["lvchange", "--yes", "--refresh", "v/t"] => {
                for device in world.live.borrow_mut().iter_mut() {
                    device.transaction_id = device.transaction_id.map(|id| id + 1);
                }
            }
            ["lvremove", "--yes", "v/cut"] => {
                let mut vg = world.vg.borrow_mut();
                vg.as_mut().unwrap().lvs.retain(|lv| lv.name.as_str() != "cut");
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    let report = world.recover();
    let volume = |name: &str| LvName::new(name).unwrap();
    assert_eq!(
        report.steps,
        [
            Step::ForgotThinDevice { pool: volume("pool"), id: 2 },
            Step::Refreshed { volume: volume("t") },
            Step::RemovedVolume { volume: volume("cut") },
        ]
    );
    assert!(report.is_open() && report.remaining.is_empty());
}

#[test]
fn a_pool_that_does_not_run_is_started_to_forget_what_is_pending_and_stopped_again() {
    let message = "message1 {\ncreate = \"cut\"\n}";
    let thins = [("t", 't', 1, ""), ("cut", 'c', 2, "\"gabion.dev/creating\"")];
    let world = Fake::new(vg(5, &pool(2, message, &thins)), Vec::new(), |world, words| {
        match words {
            ["lvchange", "--yes", "--activate", "y", "v/pool"] => {
                let mut live = live_pool(1);
                live.truncate(3);
                live[2].info.open_count = 0;
                *world.live.borrow_mut() = live;
            }
            ["lvchange", "--yes", "--activate", "n", "v/pool"] => world.live.borrow_mut().clear(),
            ["lvremove", "--yes", "v/cut"] => {
                assert!(world.live.borrow().is_empty());
                *world.vg.borrow_mut() = Some(vg(6, &pool(2, "", &[("t", 't', 1, "")])));
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    let report = world.recover();
    let volume = |name: &str| LvName::new(name).unwrap();
    assert_eq!(
        report.steps,
        [
            Step::ForgotThinDevice { pool: volume("pool"), id: 2 },
            Step::RemovedVolume { volume: volume("cut") },
        ]
    );
    assert!(report.is_open() && report.failures.is_empty(), "{report}");
}

#[test]
fn a_thin_device_that_somebody_has_is_never_deleted() {
    let message = "message1 {\ncreate = \"cut\"\n}";
    // Another volume has the same number; and the device itself is in use.
    for thins in [
        vec![("t", 't', 1, ""), ("cut", 'c', 2, ""), ("other", 'h', 2, "")],
        vec![("t", 't', 1, ""), ("cut", 'c', 1, "")],
    ] {
        let world =
            Fake::new(vg(5, &pool(2, message, &thins)), live_pool(1), |_, _| Err("refused".to_owned()));
        let report = world.recover();
        assert!(!world.log().iter().any(|entry| entry.contains("delete")), "{:?}", world.log());
        assert!(matches!(report.remaining[..], [Difference::Transaction { committed: 2, live: 1, .. }]));
    }
}

#[test]
fn transaction_ids_that_are_not_one_apart_are_left_to_a_person() {
    for live_id in [4, 0] {
        let world = Fake::new(vg(5, &pool(2, "", &[("t", 't', 1, "")])), live_pool(live_id), nothing_to_do);
        let report = world.recover();
        assert_eq!(report.steps, []);
        assert!(
            matches!(report.remaining[..], [Difference::Transaction { committed: 2, live, .. }] if live == live_id)
        );
        assert!(report.is_open(), "the other volumes of the group go on");
    }
}

#[test]
fn devices_that_nobody_needs_go_from_above() {
    let mut live = live_pool(1);
    live[3].info.open_count = 0;
    live[3].table.segments.clear();
    live[3].info.has_live_table = false;
    let world = Fake::new(vg(5, &pool(1, "", &[("t", 't', 1, "")])), live, nothing_to_do);
    world.live.borrow_mut()[2].info.open_count = 0;
    let report = world.recover();
    // The pool's parts are still open in this world: only the kernel would count them down.
    let removed = |device: &str| Step::RemovedDevice { device: device.to_owned() };
    assert_eq!(report.steps, [removed("v-pool-tpool"), removed("v-t")]);
}

#[test]
fn a_table_that_stays_wrong_keeps_the_group_closed_and_nothing_is_removed() {
    let mut live = live_pool(1);
    live[1].table.segments[0].len = Sectors::new(90_112);
    let thins = [("t", 't', 1, ""), ("half", 'h', 2, "\"gabion.dev/creating\"")];
    let world = Fake::new(vg(5, &pool(1, "", &thins)), live, |_, words| match words {
        ["lvchange", ..] => Ok(()),
        other => panic!("{other:?}"),
    });
    let report = world.recover();
    assert!(!report.is_open());
    let error = super::order::still_closed(&VgName::new("v").unwrap(), &report);
    assert_eq!((error.kind(), error.effect()), (Kind::Inconsistent, crate::Effect::Unknown));
    assert!(error.to_string().contains("v-pool_tdata"));
}

#[test]
fn unfinished_volumes_go_unless_somebody_is_making_them() {
    let creating = "\"gabion.dev/creating\"";
    let volumes = [
        lv("a", 'a', true, creating, &linear(2, 0)),
        lv("held", 'h', true, creating, &linear(2, 2)),
        lv("done", 'e', true, "", &linear(2, 4)),
        lv("part_tmeta", 'm', false, creating, &linear(2, 6)),
    ];
    let world = Fake::new(vg(5, &volumes), Vec::new(), |world, words| {
        let name = words[2].strip_prefix("v/").unwrap();
        world.vg.borrow_mut().as_mut().unwrap().lvs.retain(|lv| lv.name.as_str() != name);
        Ok(())
    });
    let report = world.recover();
    assert_eq!(report.steps, [Step::RemovedVolume { volume: LvName::new("a").unwrap() }]);
}

#[test]
fn of_a_group_that_is_gone_no_device_stays() {
    let world = Fake::new(
        vg(5, &[]),
        vec![device('x', "v-x", None, 1, 0, &["0 16384 linear 253:100 2048"])],
        nothing_to_do,
    );
    *world.vg.borrow_mut() = None;
    let report = world.recover();
    assert_eq!(report.steps, [Step::RemovedDevice { device: "v-x".to_owned() }]);
    assert!(report.remaining.is_empty());
}

#[test]
fn a_pool_without_volumes_is_active_under_its_own_name() {
    let vg = vg(5, &pool(0, "", &[]));
    let mut live = live_pool(0);
    live.truncate(2);
    let mut only = device('q', "v-pool", Some("tpool"), 2, 0, &["0 81920 thin-pool 253:0 253:1 128 0 0"]);
    only.transaction_id = Some(0);
    live.push(only);
    assert_eq!(compare(&vg, &live), []);
}

/// The group after `command` made `volumes`, as its newest commit tells.
fn written_by(command: &str, volumes: &[String]) -> Vg {
    let mut vg = vg(5, volumes);
    let now = std::time::SystemTime::now();
    vg.written.description = Some(format!("Write from {command}.").into());
    vg.written.time = Some(now);
    for lv in &mut vg.lvs {
        lv.creation_time = Some(now - std::time::Duration::from_secs(3));
    }
    vg
}

#[test]
fn only_a_half_made_spare_goes_without_a_tag() {
    let create = "lvcreate --yes --type thin-pool --poolmetadataspare y --addtag gabion.dev/creating v";
    let nameless = lv("lvol0", 'a', true, "", &linear(1, 0));
    let goes = |vg: Vg| {
        let world = Fake::new(vg, Vec::new(), |world, words| {
            let name = words[2].strip_prefix("v/").unwrap();
            world.vg.borrow_mut().as_mut().unwrap().lvs.retain(|lv| lv.name.as_str() != name);
            Ok(())
        });
        !world.recover().steps.is_empty()
    };
    assert!(goes(written_by(create, std::slice::from_ref(&nameless))));
    assert!(goes(written_by("lvextend --poolmetadatasize 16384s v/pool", std::slice::from_ref(&nameless))));
    // Another command made it; it is old; it has a tag or a name; there is a spare; there are two of its kind.
    assert!(!goes(written_by("lvcreate -L 4M v", std::slice::from_ref(&nameless))));
    let mut old = written_by(create, std::slice::from_ref(&nameless));
    old.lvs[0].creation_time = Some(std::time::UNIX_EPOCH);
    assert!(!goes(old));
    for other in [
        vec![lv("lvol0", 'a', true, "\"mine\"", &linear(1, 0))],
        vec![lv("lvolx", 'a', true, "", &linear(1, 0))],
        vec![nameless.clone(), lv("lvol1_pmspare", 'b', false, "", &linear(1, 1))],
        vec![nameless.clone(), lv("lvol1", 'b', true, "", &linear(1, 1))],
    ] {
        assert!(!goes(written_by(create, &other)), "{other:?}");
    }
}

/// A pool suspended over metadata that a dead command enlarged: the kernel's lines of the metadata device.
fn over_grown_metadata(lines: &[&str]) -> Vec<LiveDevice> {
    let mut live = live_pool(1);
    live[0] = device('m', "v-pool_tmeta", Some("tmeta"), 0, 1, lines);
    for device in &mut live[2..] {
        device.info.activity = Activity::Suspended;
    }
    live
}

#[test]
fn a_pool_runs_again_only_over_metadata_of_the_committed_size() {
    let committed = vg(5, &pool(1, "", &[("t", 't', 1, "")]));
    for lines in [
        &["0 16384 linear 253:100 2048", "16384 8192 linear 253:100 100352"][..],
        &["0 24576 linear 253:100 2048"][..],
    ] {
        let world = Fake::new(committed.clone(), over_grown_metadata(lines), nothing_to_do);
        let report = world.recover();
        assert!(report.is_open(), "{report}");
        let log = world.log();
        let at = |wanted: &str| log.iter().position(|entry| entry.contains(wanted)).unwrap();
        assert!(at("Load { device: \"v-pool_tmeta\"") < at("Resume(\"v-pool_tmeta\")"), "{log:?}");
        assert!(at("Resume(\"v-pool_tmeta\")") < at("Resume(\"v-pool-tpool\")"), "{log:?}");
    }
}

#[test]
fn a_pool_whose_metadata_cannot_be_cut_back_waits_for_a_refresh() {
    let lines = ["0 24576 mirror core 1 1024 2 253:100 2048 253:101 2048"];
    let committed = vg(5, &pool(1, "", &[("t", 't', 1, "")]));
    let world = Fake::new(committed, over_grown_metadata(&lines), |world, words| {
        assert_eq!(words, ["lvchange", "--yes", "--refresh", "v/t"]);
        *world.live.borrow_mut() = live_pool(1);
        Ok(())
    });
    assert!(world.recover().is_open());
    let log = world.log();
    assert!(!log.iter().any(|entry| entry == "Resume(\"v-pool-tpool\")"), "{log:?}");
}
