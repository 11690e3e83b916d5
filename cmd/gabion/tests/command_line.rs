//! The binary as a shell sees it: what it takes, what it refuses before anything is asked, and its exit codes.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output, Stdio};

/// A group that no host has.
const NOWHERE: &str = "gabion-test-nowhere";

fn gabion(arguments: &[&str]) -> Output {
    // A worker that cannot be started: what gets that far would end with 9, and not with what is asserted.
    Command::new(env!("CARGO_BIN_EXE_gabion"))
        .args(arguments)
        .env("GABION_LVM_WORKER", "/no/such/worker")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn code(arguments: &[&str]) -> i32 {
    let output = gabion(arguments);
    output.status.code().unwrap_or_else(|| panic!("{arguments:?}: {output:?}"))
}

fn errors(arguments: &[&str]) -> String {
    String::from_utf8(gabion(arguments).stderr).unwrap()
}

#[test]
fn names_that_lvm_would_not_take_are_refused_before_anything_is_asked() {
    let long = "x".repeat(128);
    for name in [
        "",
        "-x",
        "snapshot-1",
        "pvmove0",
        "a_tdata",
        "a_rimage_0",
        "a b",
        "'a'",
        "\"a\"",
        "a\\b",
        "a;reboot",
        "a\nb",
        "ä",
        "$(reboot)",
        "`reboot`",
        "a|b",
        "a&b",
        "a*",
        ".",
        "..",
        "a/b",
        &long,
    ] {
        let volume = format!("{NOWHERE}/{name}");
        for arguments in [
            &["volume", "create", &volume, "--size", "1GiB"][..],
            &["volume", "grow", &volume, "--by", "1GiB"],
            &["volume", "delete", &volume],
            &["volume", "restore", &volume],
            &["volume", "snapshot", &volume, "good"],
            &["volume", "snapshot", "data/good", name],
            &["pool", "create", &volume, "--size", "1GiB"],
        ] {
            assert_eq!(code(arguments), 2, "{arguments:?}: {}", errors(arguments));
        }
    }
    for group in ["", "-x", "a b", "a;b", "ü", "a\nb", &long] {
        assert_eq!(code(&["group", "create", group, "/dev/sda"]), 2, "{group:?}");
    }
}

#[test]
fn a_name_of_127_bytes_is_looked_for() {
    let volume = format!("{NOWHERE}/{}", "x".repeat(127));
    assert_eq!(code(&["volume", "create", &volume, "--size", "1GiB"]), 3);
}

#[test]
fn sizes_that_no_volume_can_have_are_refused_before_anything_is_asked() {
    let volume = format!("{NOWHERE}/db");
    for size in
        ["0", "-1", "-1GiB", "9223372036854775808", "16EiB", "1000", "513", "ten", "", "1 2", "1e9", "0x10"]
    {
        for arguments in [
            &["volume", "create", &volume, "--size", size][..],
            &["volume", "grow", &volume, "--size", size],
            &["volume", "grow", &volume, "--by", size],
            &["pool", "create", &volume, "--size", size],
            &["pool", "grow", &volume, "--by", size],
        ] {
            assert_eq!(code(arguments), 2, "{arguments:?}: {}", errors(arguments));
        }
    }
    let text = errors(&["volume", "create", &volume, "--size", "-1GiB"]);
    assert!(text.contains("negative"), "{text}");
}

#[test]
fn devices_are_paths_below_dev_without_anything_a_command_could_take_for_more() {
    for device in
        ["sda", "/etc/passwd", "/dev/../etc/passwd", "/dev/a b", "/dev/a;b", "/dev/a\nb", "--yes", ""]
    {
        assert_eq!(code(&["group", "create", NOWHERE, device]), 2, "{device:?}");
    }
}

#[test]
fn options_that_contradict_each_other_are_a_matter_of_usage() {
    let volume = format!("{NOWHERE}/db");
    for arguments in [
        &["volume", "create", &volume][..],
        &["volume", "grow", &volume],
        &["volume", "grow", &volume, "--size", "1GiB", "--by", "1GiB"],
        &["volume", "create", &volume, "--size", "1GiB", "--type", "thin"],
        &["volume", "create", &volume, "--size", "1GiB", "--type", "raid1", "--pool", "pool"],
        &["volume", "create", &volume, "--size", "1GiB", "--pool", "pool", "--stripes", "2"],
        &["volume", "create", &volume, "--size", "1GiB", "--stripes", "2"],
        &["volume", "create", &volume, "--size", "1GiB", "--type", "raid99"],
        &["volume", "delete", &volume, "--zero", "--discard"],
        &["pool", "grow", &volume],
        &["pool", "watch", &volume, "--at", "101"],
        &["group", "create", NOWHERE],
        &["volumes", "--frobnicate"],
        &["frobnicate"],
        &[],
    ] {
        assert_eq!(code(arguments), 2, "{arguments:?}: {}", errors(arguments));
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let volume = format!("{NOWHERE}/db");
    for arguments in [
        &["pools", NOWHERE][..],
        &["volumes", NOWHERE],
        &["volume", "create", &volume, "--size", "1GiB"],
        &["volume", "grow", &volume, "--by", "1GiB"],
        &["volume", "snapshot", &volume, "cut"],
        &["volume", "restore", &volume],
        &["volume", "delete", &volume],
        &["volume", "activate", &volume],
        &["pool", "create", &volume, "--size", "1GiB"],
        &["pool", "watch", &volume],
        &["group", "extend", NOWHERE, "/dev/sda"],
        &["group", "delete", NOWHERE],
        &["group", "adopt", NOWHERE],
    ] {
        assert_eq!(code(arguments), 3, "{arguments:?}: {}", errors(arguments));
    }
    assert_eq!(code(&["volume", "delete", &volume, "--if-exists"]), 0);
    assert_eq!(code(&["group", "delete", NOWHERE, "--if-exists"]), 0);
}

#[test]
fn errors_for_programs_are_one_document_on_standard_error() {
    for (arguments, code, kind) in [
        (&["pools", NOWHERE, "-o", "json"][..], 3, "not-found"),
        (&["volume", "create", "x/a b", "--size", "1GiB", "--output=json"], 2, "usage"),
        (&["volume", "create", "x/a", "--size", "1GiB", "--type", "thin", "-ojson"], 2, "invalid-argument"),
    ] {
        let output = gabion(arguments);
        assert!(output.stdout.is_empty());
        let document: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(document["schema"], "gabion.dev/cli/v1");
        assert_eq!(document["error"]["code"].as_i64(), output.status.code().map(i64::from));
        assert_eq!(
            (document["error"]["code"].as_i64(), document["error"]["kind"].as_str()),
            (Some(code), Some(kind))
        );
        assert!(document["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
}

#[test]
fn people_read_an_error_once_with_what_to_do() {
    let text = errors(&["pools", NOWHERE]);
    assert_eq!(
        text,
        format!(
            "error: could not show the pools of group {NOWHERE}: there is no group {NOWHERE} here; `gabion pools` \
             lists what there is\n"
        )
    );
}

#[test]
fn volumes_of_classes_are_named_without_a_group_and_need_classes() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("classes.yaml");
    let config = config.to_str().unwrap();
    // Nobody serves there, and there are no classes.
    let place = ["--config", config, "--owner", "test", "--csi-endpoint", "unix:///no/such/socket"];
    let with = |words: &[&str]| gabion(&[words, &place].concat());
    for words in [
        &["volume", "create", "Db", "--size", "1GiB"][..],
        &["volume", "create", "db", "--size", "1GiB", "--pool", "pool"],
        &["volume", "create", "data/db", "--size", "1GiB", "--class", "fast"],
        &["volume", "snapshot", "db", "a_b"],
        &["volume", "snapshot", "db", "cut", "--size", "1GiB"],
        &["volume", "grow", "db", "--by", "1GiB", "--zero-added"],
        &["volume", "delete", "db", "--zero"],
        &["volume", "mount", "data/db", "/x"],
    ] {
        let output = with(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    }
    let output = with(&["classes"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("reading the device classes from"), "{said}");
}

#[test]
fn classes_are_checked_and_compared_before_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, config) = (path("new.yaml"), path("classes.yaml"));
    let apply = |spec: &str, more: &[&str]| {
        let text = format!(
            "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: fast}}\nspec: {spec}\n"
        );
        std::fs::write(&file, text).unwrap();
        let output = gabion(&[&["class", "apply", "-f", &file, "--config", &config], more].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let base = "{devices: {paths: [/dev/a]}}";
    let told = |text: &str| (Some(0), format!("class fast: {text}\n"));
    assert_eq!(apply(base, &["--dry-run"]), told("added"));
    assert!(!std::path::Path::new(&config).exists());
    assert_eq!(apply(base, &[]), told("added"));
    assert_eq!(apply(base, &[]), told("same"));
    assert_eq!(apply("{devices: {paths: [/dev/a]}, reserve: 5%}", &[]), told("changed"));
    let before = std::fs::read(&config).unwrap();
    for (bad, why) in [
        ("{devices: {paths: [/dev/a]}, pool: {lvm: {}}}", "spec.pool cannot change"),
        ("{devices: {paths: [a]}}", "spec.devices"),
    ] {
        let (code, said) = apply(bad, &[]);
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
    assert_eq!(std::fs::read(&config).unwrap(), before);
}

#[test]
fn help_and_version_are_no_errors_and_tell_the_exit_codes() {
    let help = gabion(&["--help"]);
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.contains("7 refused or foreign") && text.contains("doctor"), "{text}");
    assert_eq!(code(&["--version"]), 0);
    for command in ["volume", "pool", "group"] {
        assert_eq!(code(&[command, "--help"]), 0);
    }
}

#[test]
fn a_closed_pipe_is_no_panic() {
    for arguments in [&["pools"][..], &["volumes", "-o", "json"], &["doctor"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gabion"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{arguments:?}: {text}");
        // Doctor may have found something wrong with this host.
        assert!(matches!(output.status.code(), Some(0 | 8)), "{arguments:?}: {output:?}");
    }
}

#[test]
fn lists_for_programs_are_documents_of_one_schema() {
    for (command, key) in [("pools", "pools"), ("volumes", "volumes"), ("doctor", "findings")] {
        let output = gabion(&[command, "-o", "json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["schema"], "gabion.dev/cli/v1");
        assert!(document[key].is_array(), "{document}");
    }
}
