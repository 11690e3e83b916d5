//! Selecting among real disks by what they are, keys that outlive names, and what `gabion devices` tells of both.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use devices::discovery::{Discovery, Inventory, Transport};
use devices::selector::{Class, Match, Pattern, Selector, divide};
use rig::disk::virtual_disks;
use rig::{eventually, tool};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn skip() -> bool {
    if virtual_disks().is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return true;
    }
    if std::env::var("GABION_MACHINE").is_ok_and(|machine| machine == "uml") {
        println!("SKIPPED: user-mode Linux has neither SCSI nor NVMe disks");
        return true;
    }
    false
}

fn inventory() -> Inventory {
    Discovery::host().inventory().unwrap()
}

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

/// The names that a match alone gets.
fn taken(inventory: &Inventory, wanted: Match) -> Vec<String> {
    let selector = Selector::new().matching(wanted);
    let class = [Class { name: "c", selector: &selector }];
    divide(&class, inventory)[0].disks.iter().map(|selected| selected.disk.name.clone()).collect()
}

/// A module that is loaded for one test, and gone after it.
struct Module(&'static str);

impl Module {
    fn load(name: &'static str, options: &[&str]) -> Self {
        tool::run("modprobe", [&[name][..], options].concat()).unwrap();
        tool::run("udevadm", ["settle"]).unwrap();
        Self(name)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Whoever looks at its devices now is soon done.
        eventually("the module is gone", PATIENCE, || tool::run("rmmod", [self.0]).is_ok());
    }
}

#[test]
fn each_property_of_real_disks_selects_those_that_have_it_and_no_virtual_ones() {
    if skip() {
        return;
    }
    let _zram = Module::load("zram", &[]);
    std::fs::write("/sys/block/zram0/disksize", "20G").unwrap();
    let _nbd = Module::load("nbd", &["nbds_max=1"]);
    let _ram = Module::load("brd", &["rd_nr=1", "rd_size=20971520"]);
    let file = rig::Disk::new(Bytes::gib(20)).unwrap();
    let inventory = inventory();
    let all: Vec<String> =
        virtual_disks().iter().map(|disk| inventory.at(disk).unwrap().name.clone()).collect();
    let (virtio, scsi, nvme) = (&all[..6], &all[6..8], &all[8..]);
    let same = |wanted: Match, names: &[&[String]]| {
        let mut expected = names.concat();
        expected.sort();
        let text = format!("{wanted:?}");
        let mut got = taken(&inventory, wanted);
        got.sort();
        assert_eq!(got, expected, "{text}");
    };
    same(Match::new().transport(Transport::Virtio), &[virtio]);
    same(Match::new().transport(Transport::Nvme), &[nvme]);
    same(Match::new().serial(pattern("rig-0[67]")), &[scsi]);
    same(Match::new().serial(pattern("rig-0")), &[]);
    same(Match::new().serial(pattern("rig-.*")), &[&all]);
    same(Match::new().name(pattern("nvme[0-9]+n[0-9]+")), &[nvme]);
    same(Match::new().name(pattern("vd[a-f]")).max_size(Bytes::gib(19)), &[]);
    same(Match::new().model(pattern("QEMU HARDDISK")), &[scsi]);
    same(Match::new().wwn(pattern("nvme\\..*|eui\\..*|uuid\\..*")), &[nvme]);
    // Whatever is large enough: whole disks, and never the file, the memory or the other machine's disk.
    same(Match::new().min_size(Bytes::gib(20)).rotational(true), &[&turning(&inventory, &all)]);
    let large = taken(&inventory, Match::new().min_size(Bytes::gib(20)).max_size(Bytes::gib(20)));
    let file = inventory.at(file.path()).unwrap().name.clone();
    for name in &large {
        let disk = inventory.by_name(name).unwrap();
        let usable = devices::eligibility::Assessor::default().assess(&inventory, disk);
        let is_spare = all.contains(name);
        assert_eq!(usable.reasons().is_empty(), is_spare, "{name}: {usable}");
    }
    let class = Selector::new().matching(Match::new().name(pattern("loop[0-9]+")).min_size(Bytes::gib(1)));
    let named = divide(&[Class { name: "c", selector: &class }], &inventory);
    assert_eq!(named[0].disks.iter().map(|selected| selected.disk.name.as_str()).collect::<Vec<_>>(), [file]);
}

/// Which of the disks the kernel calls rotational.
fn turning(inventory: &Inventory, names: &[String]) -> Vec<String> {
    names.iter().filter(|name| inventory.by_name(name).unwrap().rotational).cloned().collect()
}

#[test]
fn two_classes_get_neither_a_disk_nor_a_part_nor_a_path_that_both_want() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let table = format!("0 8388608 linear {} 0", disks[0].display());
    tool::run("dmsetup", ["create", "top", "--table", &table]).unwrap();
    tool::run("sgdisk", ["-n", "1:0:+2G", disks[1].to_str().unwrap()]).unwrap();
    tool::run("udevadm", ["settle"]).unwrap();
    let inventory = inventory();
    let link = inventory.at(&disks[6]).unwrap().links[0].clone();
    let part = PathBuf::from(format!("{}1", disks[1].display()));
    let selectors = [
        Selector::new().path(&link).path("/dev/mapper/top").path(&part),
        Selector::new().matching(Match::new().serial(pattern("rig-0[067]"))).path(&disks[1]),
    ];
    let classes =
        [Class { name: "one", selector: &selectors[0] }, Class { name: "two", selector: &selectors[1] }];
    let divided = divide(&classes, &inventory);
    let names = |disks: Vec<&devices::discovery::Disk>| -> Vec<String> {
        disks.iter().map(|disk| disk.path.display().to_string()).collect()
    };
    let got = names(divided[1].disks.iter().map(|selected| selected.disk).collect());
    assert_eq!(divided[0].disks.len(), 0, "{:?}", divided[0].disks);
    assert_eq!(got, [disks[7].display().to_string()], "only what the other class does not want");
    let contested: BTreeMap<String, String> = divided[0]
        .contested
        .iter()
        .map(|disk| (disk.disk.path.display().to_string(), disk.with[0].1.path.display().to_string()))
        .collect();
    let top = inventory.at(Path::new("/dev/mapper/top")).unwrap().path.display().to_string();
    let text = |path: &Path| path.display().to_string();
    let expected =
        [(text(&disks[6]), text(&disks[6])), (top, text(&disks[0])), (text(&part), text(&disks[1]))];
    assert_eq!(contested, BTreeMap::from(expected));
    tool::run("dmsetup", ["remove", "--retry", "top"]).unwrap();
    tool::run("sgdisk", ["-Z", disks[1].to_str().unwrap()]).unwrap();
    tool::run("blockdev", ["--rereadpt", disks[1].to_str().unwrap()]).unwrap();
}

#[test]
fn two_paths_to_one_disk_overlap_and_neither_is_taken() {
    if skip() {
        return;
    }
    let options = ["add_host=2", "vpd_use_hostno=0", "virtual_gb=2", "dev_size_mb=8"];
    let _paths = Module::load("scsi_debug", &options);
    let inventory = inventory();
    let found: Vec<_> =
        inventory.iter().filter(|disk| disk.identity.model.as_deref() == Some("scsi_debug")).collect();
    assert_eq!(found.len(), 2);
    assert!(found[0].key().is_some() && found[0].key() == found[1].key(), "{found:?}");
    assert!(inventory.overlap(found[0], found[1]));
    let selectors = [Selector::new().path(&found[0].path), Selector::new().path(&found[1].path)];
    let classes =
        [Class { name: "one", selector: &selectors[0] }, Class { name: "two", selector: &selectors[1] }];
    for class in divide(&classes, &inventory) {
        assert_eq!((class.disks.len(), class.contested.len()), (0, 1), "{}", class.name);
    }
}

fn ask_host(wish: &str) {
    println!("\nRIG: {wish}");
    stdout().flush().unwrap();
}

/// Each disk's serial number with its key and its kernel's name.
fn keys() -> BTreeMap<String, (String, String)> {
    let inventory = inventory();
    let known = inventory.iter().filter_map(|disk| {
        let serial = disk.identity.serial.clone().filter(|serial| serial.starts_with("rig-"))?;
        Some((serial, (disk.key()?.to_string(), disk.name.clone())))
    });
    known.collect()
}

#[test]
fn disks_that_change_their_names_keep_their_keys() {
    if skip() {
        return;
    }
    let before = keys();
    assert_eq!(before.len(), 9);
    let count = before.values().map(|(key, _)| key).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(count, 9, "a key of its own for each: {before:?}");
    let is_there = |serial: &str| keys().contains_key(serial);
    for place in [6, 7] {
        ask_host(&format!("unplug {place}"));
        eventually("the disk is gone", PATIENCE, || !is_there(&format!("rig-0{place}")));
    }
    // The one with the later name comes back first, and gets the earlier.
    let mut places = [6, 7];
    places.sort_by_key(|place| Reverse(before[&format!("rig-0{place}")].1.clone()));
    for place in places {
        ask_host(&format!("plug {place}"));
        eventually("the disk is back", PATIENCE, || is_there(&format!("rig-0{place}")));
    }
    let after = keys();
    let (six, seven) = (&after["rig-06"], &after["rig-07"]);
    assert_eq!((&six.0, &seven.0), (&before["rig-06"].0, &before["rig-07"].0));
    assert_eq!((&six.1, &seven.1), (&before["rig-07"].1, &before["rig-06"].1), "the names are swapped");
    let selector = Selector::new().matching(Match::new().serial(pattern("rig-06")));
    let inventory = inventory();
    assert_eq!(divide(&[Class { name: "c", selector: &selector }], &inventory)[0].disks[0].disk.name, six.1);
}

fn gabion(arguments: &[&str]) -> Value {
    let text = tool::run(&std::env::var("GABION_BIN").unwrap(), arguments).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_pv_of_no_group_is_told_from_one_of_a_group_none_of_whose_volumes_runs() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let path = |place: usize| disks[place].to_str().unwrap();
    tool::run("pvcreate", ["-q", path(0)]).unwrap();
    tool::run("vgcreate", ["-q", "foreign", path(1)]).unwrap();
    let shown = gabion(&["devices", "-o", "json", path(0), path(1)]);
    let reason = |at: usize| shown["devices"][at]["reasons"][0].clone();
    assert_eq!((reason(0)["reason"].as_str(), reason(0)["text"].as_str()), (Some("lvm-pv"), Some("LVM PV")));
    assert_eq!(reason(1)["text"].as_str(), Some("LVM PV of group foreign"));
    for at in [0, 1] {
        assert_eq!(shown["devices"][at]["usable"], "no");
    }
    tool::run("vgremove", ["-qy", "foreign"]).unwrap();
}

/// `gabion devices watch -o json`, and what it says.
struct Watching {
    child: Child,
    lines: Receiver<Value>,
}

impl Watching {
    fn start() -> Self {
        let mut command = Command::new(std::env::var("GABION_BIN").unwrap());
        let mut child =
            command.args(["devices", "watch", "-o", "json"]).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if told.send(serde_json::from_str(&line).unwrap()).is_err() {
                    break;
                }
            }
        });
        let watching = Self { child, lines };
        watching.until("ready", |_| true);
        watching
    }

    /// The next line about such an event.
    fn until(&self, event: &str, is: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).unwrap();
            if line["event"] == event && is(&line) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_command_tells_what_happens_to_disks_one_document_a_line() {
    if skip() {
        return;
    }
    let watching = Watching::start();
    let of = |line: &Value| line["device"]["serial"] == "rig-07";
    ask_host("unplug 7");
    watching.until("removed", of);
    ask_host("plug 7");
    let added = watching.until("added", of);
    assert_eq!(added["device"]["size_bytes"], 20_u64 << 30);
    let linked =
        watching.until("changed", |line| of(line) && line["device"]["links"] != added["device"]["links"]);
    assert!(linked["what"].as_array().unwrap().contains(&"links".into()), "{linked}");
    ask_host(&format!("resize 7 {}", 22_u64 << 30));
    let resized = watching.until("resized", of);
    assert_eq!(
        (&resized["from_bytes"], &resized["device"]["size_bytes"]),
        (&(20_u64 << 30).into(), &(22_u64 << 30).into())
    );
    ask_host(&format!("resize 7 {}", 20_u64 << 30));
    watching.until("resized", of);
    let disk = virtual_disks()[0].clone();
    let table = format!("0 2048 linear {} 0", disk.display());
    tool::run("dmsetup", ["create", "seen", "--table", &table]).unwrap();
    let name = disk.file_name().unwrap().to_str().unwrap();
    let held = watching.until("changed", |line| {
        line["device"]["name"] == name && line["what"].as_array().unwrap().contains(&"stack".into())
    });
    assert_eq!(held["device"]["type"], "disk");
    tool::run("dmsetup", ["remove", "--retry", "seen"]).unwrap();
}
