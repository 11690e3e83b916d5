//! csi-sanity against `gabion node`, for each kind of class: none of its tests fails, and csi/CONFORMANCE.md has a reason
//! for each that it skips.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::time::Instant;

use devices::Bytes;
use devices::filesystem::FsType;
use rig::agent::Agent;
use rig::csi_sanity::{self, AccessType, Outcome, Report};
use rig::projects::{Place, usable};
use rig::{skip_unless_installed, tool, virtual_disks};

/// The table of results, and the reasons for what is skipped.
const DOCUMENT: &str = include_str!("../../csi/CONFORMANCE.md");

/// Bytes of most volumes.
const SIZE: u64 = 512 << 20;

/// A class on two of the spare disks.
fn class(pool: &str, disks: &[String]) -> String {
    format!(
        "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec:\n  default: true\n  \
         devices: {{paths: [{}]}}\n  pool: {pool}\n",
        disks.join(", ")
    )
}

/// Runs csi-sanity on a class of spare disks, and compares with the document.
fn conform(column: &str, pool: &str, access: AccessType) {
    let disks: Vec<String> = virtual_disks().iter().take(2).map(|disk| disk.display().to_string()).collect();
    if disks.is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return;
    }
    conform_class(column, &class(pool, &disks), access);
}

/// Runs csi-sanity on a class, and compares with the document.
fn conform_class(column: &str, class: &str, access: AccessType) {
    if skip_unless_installed(&["csi-sanity"]) {
        return;
    }
    let mut agent = Agent::start(class, &["--csi-alpha"]).unwrap();
    let start = Instant::now();
    let report = csi_sanity::run(&agent.socket(), agent.directory(), access, SIZE).unwrap();
    let took = start.elapsed();
    let ended = agent.stop().unwrap();
    let _ = tool::run("vgchange", ["--activate", "n"]);
    let count = |outcome| report.named(outcome).count();
    println!(
        "FIGURES: {} passed, {} failed, {} skipped in {:.0} s",
        count(Outcome::Passed),
        count(Outcome::Failed),
        count(Outcome::Skipped),
        took.as_secs_f64()
    );
    assert!(ended.success(), "the agent ended with {ended}: {}", agent.log());
    assert!(!agent.socket().exists(), "the socket stays");
    assert_eq!(count(Outcome::Failed), 0, "{}\n{}", report.output, agent.log());
    assert_eq!(
        unexplained(column, &report),
        Vec::<&str>::new(),
        "skipped, and csi/CONFORMANCE.md has no reason"
    );
    for row in report.by_call().iter().map(|(call, cell)| format!("| {column} | {call} | {cell} |")) {
        if !DOCUMENT.lines().any(|line| line == row) {
            println!("FIGURES: csi/CONFORMANCE.md lacks the row {row}");
        }
    }
}

/// Tests that were skipped without a reason: a line `| `WORDS` | CLASSES | why |`, where CLASSES is `all` or the
/// beginning of a column's name.
fn unexplained<'a>(column: &str, report: &'a Report) -> Vec<&'a str> {
    let reason = |line: &'static str| {
        let (words, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (classes, _) = rest.split_once(" |")?;
        (classes == "all" || column.starts_with(classes)).then_some(words)
    };
    let reasons: Vec<&str> = DOCUMENT.lines().filter_map(reason).collect();
    report.named(Outcome::Skipped).filter(|name| !reasons.iter().any(|words| name.contains(words))).collect()
}

const THICK: &str = "{lvm: {}}";
const THIN: &str = "{thin: {}}";

mod smoke {
    use super::*;

    #[test]
    fn thin_volumes_with_filesystems() {
        conform("thin, mount", THIN, AccessType::Mount);
    }

    #[test]
    fn thick_volumes_as_block_devices() {
        conform("thick, block", THICK, AccessType::Block);
    }
}

#[test]
fn thin_volumes_as_block_devices() {
    conform("thin, block", THIN, AccessType::Block);
}

#[test]
fn thick_volumes_with_filesystems() {
    conform("thick, mount", THICK, AccessType::Mount);
}

#[test]
fn directories_with_filesystems() {
    if !usable().contains(&FsType::Xfs) {
        println!("SKIPPED: this machine has no project quotas on XFS");
        return;
    }
    let place = Place::sized(FsType::Xfs, Bytes::gib(8), &["prjquota"]).unwrap();
    conform_class(
        "directory, mount",
        &class(&format!("{{directory: {{path: {}}}}}", place.root().display()), &[]),
        AccessType::Mount,
    );
}
