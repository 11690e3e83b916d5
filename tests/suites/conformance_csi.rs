//! csi-sanity against `gabion node`, for each kind of class: none of its tests fails, and csi/CONFORMANCE.md has a reason
//! for each that it skips.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::time::Instant;

use devices::Bytes;
use devices::filesystem::FsType;
use rig::agent::Agent;
use rig::csi_sanity::{self, AccessType, Outcome, Report};
use rig::projects::{Place, usable};
use rig::{Disk, skip_unless_dm, skip_unless_installed, tool};

/// The results that the document tells.
const RESULTS: &str = include_str!("../../csi/conformance.json");

/// The reasons for what is skipped.
const DOCUMENT: &str = include_str!("../../csi/CONFORMANCE.md");

/// Bytes of most volumes: a snapshot of a thick one copies them all.
const SIZE: u64 = 16 << 20;

/// Bytes of each of two disks.
const DISK: Bytes = Bytes::gib(2);

/// A class on these disks.
fn class(pool: &str, disks: &[String]) -> String {
    format!(
        "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec:\n  default: true\n  \
         devices: {{paths: [{}]}}\n  pool: {pool}\n",
        disks.join(", ")
    )
}

/// Runs csi-sanity on a class on two disks of its own.
fn conform(column: &str, pool: &str, access: AccessType) {
    if skip_unless_dm() {
        return;
    }
    let disks: Vec<Disk> = (0..2).map(|_| Disk::partitioned(DISK, Bytes::new(512)).unwrap()).collect();
    let paths: Vec<String> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    conform_class(column, &class(pool, &paths), access);
}

/// What volumes of a column are changed to: the kernel limits whole devices only.
fn mutable(column: &str) -> Option<(&'static str, &'static str)> {
    let is_part = column.starts_with("partition") || column.starts_with("directory");
    (!is_part).then_some(("writeIops", "1000000"))
}

/// Runs csi-sanity on a class, and compares with the document.
fn conform_class(column: &str, class: &str, access: AccessType) {
    if skip_unless_installed(&["csi-sanity"]) {
        return;
    }
    let mut agent = Agent::start(class, &["--csi-alpha"]).unwrap();
    let start = Instant::now();
    let report = csi_sanity::run(&agent.socket(), agent.directory(), access, SIZE, mutable(column)).unwrap();
    let took = start.elapsed();
    let results = report.to_json();
    println!("CONFORMANCE: {}", serde_json::json!({ column: results }));
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
    let told: serde_json::Value = serde_json::from_str(RESULTS).unwrap();
    if told[column] != results {
        println!(
            "FIGURES: csi/conformance.json tells otherwise of {column}; `cargo xtask conformance-table` mends that"
        );
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
const RAID1: &str = "{lvm: {layout: {raid: {level: 1}}}}";
const THIN_RAID1: &str = "{thin: {layout: {raid: {level: 1}}}}";
const PARTITION: &str = "{partition: {}}";

/// Many commands of LVM on an emulated machine that may have others beside it: a limit that is too short costs the machine,
/// whose pools are then torn down while they are in use.
mod minutes_15 {
    use super::*;

    #[test]
    fn thick_volumes_with_filesystems() {
        conform("thick, mount", THICK, AccessType::Mount);
    }

    #[test]
    fn thin_volumes_as_block_devices() {
        conform("thin, block", THIN, AccessType::Block);
    }

    #[test]
    fn thick_volumes_on_raid_1_with_filesystems() {
        conform("thick RAID 1, mount", RAID1, AccessType::Mount);
    }

    #[test]
    fn thick_volumes_on_raid_1_as_block_devices() {
        conform("thick RAID 1, block", RAID1, AccessType::Block);
    }

    #[test]
    fn thin_volumes_on_raid_1_with_filesystems() {
        conform("thin RAID 1, mount", THIN_RAID1, AccessType::Mount);
    }

    #[test]
    fn thin_volumes_on_raid_1_as_block_devices() {
        conform("thin RAID 1, block", THIN_RAID1, AccessType::Block);
    }

    #[test]
    fn partitions_with_filesystems() {
        conform("partition, mount", PARTITION, AccessType::Mount);
    }

    #[test]
    fn partitions_as_block_devices() {
        conform("partition, block", PARTITION, AccessType::Block);
    }
}

mod smoke {
    mod minutes_15 {
        use super::super::*;

        #[test]
        fn thin_volumes_with_filesystems() {
            conform("thin, mount", THIN, AccessType::Mount);
        }

        #[test]
        fn thick_volumes_as_block_devices() {
            conform("thick, block", THICK, AccessType::Block);
        }
    }
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
