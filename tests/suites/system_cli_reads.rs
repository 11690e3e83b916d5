//! Verbs of the `gabion` command that only tell change nothing: no disk, no table of device-mapper's, no lock.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use devices::Bytes;
use rig::{Disk, skip_unless_dm, tool};
use serde_json::Value;

/// What of each disk is compared byte by byte, beside what the kernel counted: what LVM and partition tables lie in.
const BEGINNING: u64 = 24 << 20;

/// The verbs that only tell.
const VERBS: [&[&str]; 3] = [&["classes"], &["volumes", "--classes"], &["snapshots"]];

/// A person at a host with two disks, on which no agent runs.
struct Person {
    directory: tempfile::TempDir,
    disks: [Disk; 2],
}

impl Person {
    fn new() -> Option<Self> {
        if skip_unless_dm() {
            return None;
        }
        let disks = [(); 2].map(|()| Disk::partitioned(Bytes::gib(2), Bytes::new(512)).unwrap());
        Some(Self { directory: tempfile::tempdir().unwrap(), disks })
    }

    /// A class on one of the disks.
    fn class(&self, name: &str, disk: usize, pool: &str) -> String {
        format!(
            "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: {name}}}\n\
             spec: {{devices: {{paths: [{}], wipe: OnceDestroyingData}}, pool: {pool}}}\n",
            self.disks[disk].path().display()
        )
    }

    fn has_classes(&self, classes: &[String]) {
        fs::write(self.directory.path().join("classes.yaml"), classes.join("---\n")).unwrap();
    }

    /// What a command answers to programs; it must succeed.
    fn gabion(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(std::env::var_os("GABION_BIN").unwrap());
        command.args(arguments).args(["-o", "json"]).env("GABION_OWNER", "rig");
        command.env("GABION_CONFIG", self.directory.path().join("classes.yaml"));
        command.env("CSI_ENDPOINT", format!("unix://{}/none", self.directory.path().display()));
        let output = command.output().unwrap();
        println!("{arguments:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Everything that a change of the disks, of device-mapper's tables or of locks would show in.
    fn state(&self) -> Vec<(String, Vec<u8>)> {
        tool::run("udevadm", ["settle"]).unwrap();
        let mut state = Vec::new();
        for disk in &self.disks {
            let mut beginning = Vec::new();
            fs::File::open(disk.path()).unwrap().take(BEGINNING).read_to_end(&mut beginning).unwrap();
            state.push((format!("the content of {}", disk.path().display()), beginning));
            state
                .push((format!("the writes to {}", disk.path().display()), writes(disk.path()).into_bytes()));
        }
        let table = tool::run("dmsetup", ["table"]).unwrap();
        state.push(("the tables of device-mapper".to_owned(), table.into_bytes()));
        for kept in ["/run/lock/gabion", "/run/lock/lvm", "/var/lib/gabion", "/run/gabion"] {
            state.push((format!("what is in {kept}"), below(Path::new(kept)).join("\n").into_bytes()));
        }
        state
    }

    /// Nothing is another than before.
    fn must_be(&self, before: &[(String, Vec<u8>)]) {
        for ((what, before), (_, now)) in before.iter().zip(self.state()) {
            let both = format!("{}\n{}", String::from_utf8_lossy(before), String::from_utf8_lossy(&now));
            assert!(*before == now, "{what} changed: {}", both.get(..400).unwrap_or(&both));
        }
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

/// How often a disk was written to, discarded and flushed, and how much, as the kernel counted it.
fn writes(disk: &Path) -> String {
    let name = disk.file_name().unwrap().to_str().unwrap();
    let said = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    let fields: Vec<&str> = said.split_whitespace().collect();
    // Documentation/block/stat.rst: 4 to 6 of writes, 11 to 13 of discards, 15 of flushes.
    [4, 6, 11, 13, 15].map(|field| *fields.get(field).unwrap_or(&"")).join(" ")
}

/// The names of everything below a directory.
fn below(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        names.push(path.display().to_string());
        names.extend(below(&path));
    }
    names.sort();
    names
}

#[test]
fn blank_disks_that_classes_select_stay_blank_while_somebody_looks() {
    let Some(person) = Person::new() else { return };
    for pool in ["{thin: {}}", "{lvm: {}}", "{partition: {}}"] {
        person.has_classes(&[person.class("first", 0, pool), person.class("second", 1, pool)]);
        let before = person.state();
        for verb in VERBS {
            let told = person.gabion(verb);
            if verb[0] == "classes" {
                let why = told["classes"][0]["problem"].as_str().unwrap();
                assert!(why.contains("not made yet"), "{why}");
            } else {
                assert_eq!(told[verb[0]].as_array().unwrap().len(), 0, "{told}");
            }
        }
        person.must_be(&before);
    }
}

#[test]
fn a_half_made_volume_in_a_group_that_is_not_active_stays_while_somebody_looks() {
    let Some(person) = Person::new() else { return };
    person.has_classes(&[person.class("thin", 0, "{thin: {}}"), person.class("thick", 1, "{lvm: {}}")]);
    for class in ["thin", "thick"] {
        for name in ["whole", "half"] {
            person.gabion(&[
                "volume",
                "create",
                &format!("{class}-{name}"),
                "--size=64MiB",
                "--class",
                class,
            ]);
        }
    }
    // Only now, since each of these commands brings in order what it finds.
    for class in ["thin", "thick"] {
        let half = format!("gabion-{class}/v.{class}-half");
        tool::run("lvchange", ["--addtag", "gabion.dev/creating", &half]).unwrap();
        tool::run("vgchange", ["--activate", "n", &format!("gabion-{class}")]).unwrap();
    }
    let before = person.state();
    for verb in VERBS {
        let told = person.gabion(verb);
        match verb[0] {
            "volumes" => {
                let all = told["volumes"].as_array().unwrap();
                let ids: Vec<&str> = all.iter().map(|volume| volume["id"].as_str().unwrap()).collect();
                assert_eq!(ids, ["thick-whole", "thin-whole"]);
            }
            "classes" => {
                // Room of thick volumes is in the metadata; of thin ones it is the kernel's to tell.
                let of = |at: usize| &told["classes"][at];
                assert!(of(0)["problem"].as_str().unwrap().contains("is not active"), "{told}");
                assert!(of(1)["largest_bytes"].as_u64().unwrap() > 1 << 30, "{told}");
            }
            _ => assert_eq!(told["snapshots"].as_array().unwrap().len(), 0),
        }
    }
    person.must_be(&before);
    // What a change does is seen: this one activates, and removes what is half-made.
    person.gabion(&["volume", "delete", "thin-whole"]);
    let now = person.state();
    for what in ["the content", "the writes", "the tables"] {
        let differs =
            before.iter().zip(&now).any(|(before, now)| before.0.starts_with(what) && before != now);
        assert!(differs, "{what} did not change");
    }
    let left = tool::run("lvs", ["--noheadings", "-o", "lv_name", "gabion-thin", "gabion-thick"]).unwrap();
    assert!(!left.contains("half"), "{left}");
}
