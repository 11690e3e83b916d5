//! The `gabion` command on real volumes: what it makes, shows, refuses and finds wrong.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rig::disk::virtual_disks;
use rig::{Mounted, eventually, filesystem, tool};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// The place of the first SCSI disk among the spare ones; SCSI disks can be pulled out.
const SCSI: usize = 6;

/// The disks of one test; what is on them is taken out of the kernel when it ends.
struct Disks(Vec<String>);

impl Deref for Disks {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        // A volume that is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = tool::run("vgchange", ["--activate", "n"]);
    }
}

/// The spare disks, or nothing (and a line that says so) outside of the machine.
fn disks() -> Option<Disks> {
    let disks: Vec<String> = virtual_disks().iter().map(|disk| disk.display().to_string()).collect();
    if disks.is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return None;
    }
    Some(Disks(disks))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("GABION_BIN").unwrap());
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs a command that must succeed, and gives its document.
fn done(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["-o", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
    assert!(said.is_empty(), "{arguments:?} wrote to standard error: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a command that must fail with that code, and gives its error.
fn refused(code: i32, arguments: &[&str]) -> String {
    let output = run(&[arguments, &["-o", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["error"]["code"], code);
    document["error"]["message"].as_str().unwrap().to_owned()
}

/// The findings of the doctor as `code subject`, and its exit code.
fn doctor() -> (Vec<String>, Option<i32>) {
    let output = run(&["doctor", "-o", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap().iter();
    let line = |finding: &Value| {
        format!("{} {}", finding["code"].as_str().unwrap(), finding["subject"].as_str().unwrap())
    };
    (findings.map(line).collect(), output.status.code())
}

fn listed(list: &str, name: &str) -> Value {
    let document = done(&[list]);
    let found = document[list].as_array().unwrap().iter().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {document}")).clone()
}

/// The device of a volume.
fn device(volume: &str) -> PathBuf {
    Path::new("/dev").join(volume)
}

/// Many commands, one after the other: long on a busy machine.
mod seconds_240 {
    use super::*;

    #[test]
    fn volumes_of_every_type_are_made_and_shown_as_lvm_has_them_and_deleted() {
        let Some(disks) = disks() else { return };
        let group: Vec<&str> =
            ["group", "create", "cli"].into_iter().chain(disks[..4].iter().map(String::as_str)).collect();
        assert_eq!(done(&group)["pool"]["devices"].as_array().unwrap().len(), 4);
        done(&["pool", "create", "cli/pool", "--size", "200MiB"]);
        done(&["pool", "create", "cli/safe", "--size", "100MiB", "--type", "raid1", "--wait"]);
        for (name, options, kind) in [
            ("plain", &[][..], "linear"),
            ("wide", &["--type", "striped", "--stripes", "3"], "striped"),
            ("mirror", &["--type", "raid1", "--mirrors", "2"], "raid1"),
            ("five", &["--type", "raid5"], "raid5"),
            ("ten", &["--type", "raid10"], "raid10"),
            ("thin", &["--pool", "pool"], "thin"),
            ("kept", &["--pool", "safe"], "thin"),
        ] {
            let volume = format!("cli/{name}");
            let create = [&["volume", "create", &volume, "--size", "96MiB"], options].concat();
            let made = done(&create);
            assert_eq!(made["volume"]["type"], kind);
            assert_eq!(made["volume"]["ours"], true);
            assert!(device(&volume).exists(), "{volume} has no device");
            assert_eq!(refused(4, &create).matches("--if-absent").count(), 1);
            assert_eq!(done(&[&create[..], &["--if-absent"]].concat())["changed"], false);
        }
        let sizes = tool::run(
            "lvs",
            [
                "--noheadings",
                "--units",
                "b",
                "--nosuffix",
                "--separator",
                "=",
                "-o",
                "lv_name,lv_size",
                "cli",
            ],
        );
        for line in sizes.unwrap().lines() {
            let (name, size) = line.trim().split_once('=').unwrap();
            if !["pool", "safe"].contains(&name) {
                assert_eq!(
                    listed("volumes", &format!("cli/{name}"))["size_bytes"].to_string(),
                    size,
                    "{name}"
                );
            }
        }
        assert!(refused(6, &["pool", "delete", "cli/pool"]).contains("thin"));
        assert!(refused(6, &["group", "delete", "cli"]).contains("cli"));
        for name in ["plain", "wide", "mirror", "five", "ten", "thin", "kept"] {
            assert_eq!(done(&["volume", "delete", &format!("cli/{name}")])["changed"], true);
            refused(3, &["volume", "delete", &format!("cli/{name}")]);
        }
        done(&["pool", "delete", "cli/pool"]);
        done(&["pool", "delete", "cli/safe"]);
        done(&["group", "delete", "cli"]);
        assert_eq!(done(&["volumes"])["volumes"], serde_json::json!([]));
    }
}

#[test]
fn what_does_not_fit_or_is_in_use_is_refused_with_its_code() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    assert!(refused(5, &["volume", "create", "cli/huge", "--size", "1TiB"]).contains("cli/huge"));
    assert!(
        refused(5, &["volume", "create", "cli/mirror", "--size", "1GiB", "--type", "raid1"])
            .contains("mirror")
    );
    done(&["volume", "create", "cli/db", "--size", "64MiB"]);
    filesystem::format("ext4", &device("cli/db")).unwrap();
    let mounted = Mounted::new("ext4", &device("cli/db")).unwrap();
    assert!(refused(6, &["volume", "delete", "cli/db"]).contains("cli/db"));
    assert_eq!(done(&["volume", "grow", "cli/db", "--by", "64MiB"])["volume"]["size_bytes"], 128 << 20);
    tool::run("resize2fs", ["/dev/cli/db"]).unwrap();
    assert_eq!(done(&["volume", "grow", "cli/db", "--size", "100MiB"])["changed"], false);
    drop(mounted);
    done(&["volume", "delete", "cli/db"]);
    assert!(refused(6, &["group", "create", "other", &disks[0]]).contains(&disks[0]));
    assert!(refused(4, &["group", "create", "cli", &disks[1]]).contains("cli"));
}

#[test]
fn what_is_not_ours_is_shown_and_never_changed_until_it_is_adopted() {
    let Some(disks) = disks() else { return };
    tool::run("vgcreate", ["theirs", &disks[0]]).unwrap();
    tool::run("lvcreate", ["--yes", "--size", "64m", "--name", "data", "theirs"]).unwrap();
    assert_eq!(listed("volumes", "theirs/data")["ours"], false);
    assert_eq!(listed("pools", "theirs")["ours"], false);
    for arguments in [
        &["volume", "create", "theirs/x", "--size", "64MiB"][..],
        &["volume", "grow", "theirs/data", "--by", "64MiB"],
        &["volume", "delete", "theirs/data"],
        &["volume", "adopt", "theirs/data"],
        &["pool", "create", "theirs/pool", "--size", "64MiB"],
        &["group", "extend", "theirs", &disks[1]],
        &["group", "delete", "theirs"],
        &["group", "recover", "theirs"],
    ] {
        assert!(refused(7, arguments).contains("theirs"), "{arguments:?}");
    }
    assert_eq!(done(&["group", "adopt", "theirs"])["changed"], true);
    done(&["volume", "create", "theirs/ours", "--size", "64MiB"]);
    refused(7, &["volume", "delete", "theirs/data"]);
    assert_eq!(done(&["volume", "adopt", "theirs/data"])["volume"]["ours"], true);
    done(&["volume", "delete", "theirs/data"]);
}

#[test]
fn snapshots_bring_old_content_back_thin_and_thick() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["pool", "create", "cli/pool", "--size", "200MiB"]);
    for (volume, create, cut) in
        [("cli/thin", &["--pool", "pool"][..], &[][..]), ("cli/thick", &[], &["--size", "32MiB"])]
    {
        done(&[&["volume", "create", volume, "--size", "100MiB"], create].concat());
        filesystem::format("ext4", &device(volume)).unwrap();
        let mounted = Mounted::new("ext4", &device(volume)).unwrap();
        fs::write(mounted.path().join("file"), "old").unwrap();
        let name = format!("{}-cut", volume.trim_start_matches("cli/"));
        let snapshot = done(&[&["volume", "snapshot", volume, &name], cut].concat());
        assert_eq!(snapshot["volume"]["origin"], volume);
        assert_eq!(snapshot["volume"]["size_bytes"], 100 << 20);
        fs::write(mounted.path().join("file"), "new").unwrap();
        let snapshot = format!("cli/{name}");
        assert!(refused(6, &["volume", "restore", &snapshot]).contains("open"));
        drop(mounted);
        done(&["volume", "restore", &snapshot]);
        run(&["volume", "activate", volume]);
        let mounted = Mounted::new("ext4", &device(volume)).unwrap();
        assert_eq!(fs::read_to_string(mounted.path().join("file")).unwrap(), "old", "{volume}");
        refused(3, &["volume", "restore", &snapshot]);
    }
    refused(2, &["volume", "snapshot", "cli/thick", "x"]);
    refused(2, &["volume", "snapshot", "cli/thin", "x", "--size", "32MiB"]);
}

#[test]
fn a_pool_is_repaired_while_nothing_uses_it_and_comes_back_with_its_data() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["pool", "create", "cli/pool", "--size", "100MiB"]);
    done(&["volume", "create", "cli/thin", "--pool", "pool", "--size", "64MiB"]);
    filesystem::format("ext4", &device("cli/thin")).unwrap();
    let mounted = Mounted::new("ext4", &device("cli/thin")).unwrap();
    fs::write(mounted.path().join("file"), "kept").unwrap();
    refused(6, &["pool", "repair", "cli/pool"]);
    drop(mounted);
    refused(3, &["pool", "repair", "cli/thin"]);
    assert_eq!(done(&["pool", "repair", "cli/pool"])["changed"], true);
    assert_eq!(listed("volumes", "cli/thin")["state"], "active");
    let mounted = Mounted::new("ext4", &device("cli/thin")).unwrap();
    assert_eq!(fs::read_to_string(mounted.path().join("file")).unwrap(), "kept");
}

#[test]
fn copies_that_differ_are_found_and_made_good() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0], &disks[1]]);
    done(&["volume", "create", "cli/mirror", "--size", "32MiB", "--type", "raid1", "--wait"]);
    refused(2, &["volume", "scrub", "cli/none/x"]);
    done(&["volume", "scrub", "cli/mirror"]);
    assert_eq!(doctor(), (Vec::new(), Some(0)));
    // One leg is written behind the mirror's back.
    let leg = Path::new("/dev/mapper/cli-mirror_rimage_1");
    fs::File::options().write(true).open(leg).unwrap().write_all_at(&[7; 4096], 1 << 20).unwrap();
    tool::run("blockdev", ["--flushbufs", &leg.display().to_string()]).unwrap();
    done(&["volume", "scrub", "cli/mirror"]);
    assert_eq!(doctor(), (vec!["raid-mismatches volume cli/mirror".to_owned()], Some(0)));
    done(&["volume", "scrub", "cli/mirror", "--repair"]);
    done(&["volume", "scrub", "cli/mirror"]);
    assert_eq!(doctor(), (Vec::new(), Some(0)));
    done(&["volume", "create", "cli/plain", "--size", "32MiB"]);
    refused(2, &["volume", "scrub", "cli/plain"]);
}

#[test]
fn a_snapshot_that_fills_gets_more_room_as_the_doctor_says() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["volume", "create", "cli/db", "--size", "64MiB"]);
    done(&["volume", "snapshot", "cli/db", "cut", "--size", "16MiB"]);
    fs::File::options().write(true).open(device("cli/db")).unwrap().write_all_at(&[7; 14 << 20], 0).unwrap();
    tool::run("blockdev", ["--flushbufs", "/dev/cli/db"]).unwrap();
    assert_eq!(doctor().0, ["snapshot-nearly-full volume cli/cut"]);
    done(&["volume", "grow", "cli/cut", "--by", "16MiB"]);
    assert_eq!(doctor(), (Vec::new(), Some(0)));
    refused(6, &["volume", "grow", "cli/db", "--by", "16MiB"]);
}

/// Starts a watch over a pool, which ends by itself.
fn watch(pool: &str) -> Child {
    command(&["pool", "watch", pool, "--once", "--limit", "120", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_watched_pool_grows_before_it_is_full() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["pool", "create", "cli/pool", "--size", "100MiB"]);
    done(&["volume", "create", "cli/thin", "--pool", "pool", "--size", "1GiB"]);
    let watching = watch("cli/pool");
    fs::write(device("cli/thin"), vec![7; 85 << 20]).unwrap();
    tool::run("blockdev", ["--flushbufs", "/dev/cli/thin"]).unwrap();
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let grown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&grown["part"], &grown["from_bytes"], &grown["to_bytes"]),
        (&"data".into(), &(100 << 20).into(), &(120 << 20).into())
    );
    let pool = listed("pools", "cli/pool");
    assert_eq!((&pool["size_bytes"], &pool["state"]), (&(120 << 20).into(), &"active".into()));
    let used = pool["used_bytes"].as_u64().unwrap();
    assert!((85 << 20..=86 << 20).contains(&used), "{pool}");
}

#[test]
fn a_pool_that_cannot_grow_says_so_and_the_doctor_says_how_full_it_is() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["pool", "create", "cli/pool", "--size", "100MiB"]);
    done(&["volume", "create", "cli/thin", "--pool", "pool", "--size", "1GiB"]);
    let free = listed("pools", "cli")["free_bytes"].to_string();
    done(&["volume", "create", "cli/rest", "--size", &free]);
    fs::write(device("cli/thin"), vec![7; 97 << 20]).unwrap();
    tool::run("blockdev", ["--flushbufs", "/dev/cli/thin"]).unwrap();
    let output = watch("cli/pool").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let (findings, code) = doctor();
    assert_eq!((findings, code), (vec!["pool-data thin pool cli/pool".to_owned()], Some(8)));
    refused(5, &["volume", "create", "cli/more", "--pool", "pool", "--size", "64MiB"]);
}

#[test]
fn a_suspended_device_is_found_and_recovered() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0]]);
    done(&["volume", "create", "cli/db", "--size", "64MiB"]);
    assert_eq!(doctor(), (Vec::new(), Some(0)));
    tool::run("dmsetup", ["suspend", "cli-db"]).unwrap();
    assert_eq!(listed("volumes", "cli/db")["state"], "suspended");
    assert_eq!(doctor(), (vec!["device-suspended group cli".to_owned()], Some(8)));
    assert_eq!(done(&["group", "recover", "cli"])["changed"], true);
    assert_eq!(listed("volumes", "cli/db")["state"], "active");
    assert_eq!(doctor(), (Vec::new(), Some(0)));
    assert_eq!(done(&["group", "recover", "cli"])["changed"], false);
}

#[test]
fn a_pulled_disk_degrades_its_mirror_and_comes_back_into_step() {
    let Some(disks) = disks() else { return };
    done(&["group", "create", "cli", &disks[0], &disks[SCSI]]);
    done(&["volume", "create", "cli/mirror", "--size", "64MiB", "--type", "raid1", "--wait"]);
    done(&["volume", "create", "cli/plain", "--size", "64MiB", "--on", &disks[SCSI]]);
    filesystem::format("ext4", &device("cli/mirror")).unwrap();
    let mounted = Mounted::new("ext4", &device("cli/mirror")).unwrap();
    println!("\nRIG: unplug {SCSI}");
    eventually("the disk is gone", PATIENCE, || !Path::new(&disks[SCSI]).exists());
    fs::write(mounted.path().join("file"), "written to one leg").unwrap();
    tool::run("sync", ["--file-system", &mounted.path().display().to_string()]).unwrap();
    let (findings, code) = doctor();
    assert_eq!(code, Some(8));
    for finding in
        ["pv-missing group cli", "raid-degraded volume cli/mirror", "volume-partial volume cli/plain"]
    {
        assert!(findings.iter().any(|found| found == finding), "{finding} is not in {findings:?}");
    }
    assert_eq!(listed("volumes", "cli/mirror")["state"], "degraded");
    assert_eq!(listed("pools", "cli")["state"], "partial");
    refused(8, &["volume", "create", "cli/new", "--size", "64MiB"]);
    println!("\nRIG: plug {SCSI}");
    eventually("the disk is back", PATIENCE, || listed("pools", "cli")["state"] == "ok");
    done(&["volume", "deactivate", "cli/plain"]);
    done(&["group", "restore", "cli", "--wait"]);
    assert_eq!(listed("volumes", "cli/mirror")["state"], "active");
    assert_eq!(fs::read_to_string(mounted.path().join("file")).unwrap(), "written to one leg");
    assert_eq!(doctor(), (Vec::new(), Some(0)));
}
