//! What is wrong with a thin pool.

use lvm::dm::{Fill, PoolMode, Status, ThinPoolStatus, ThinPoolUse};
use lvm::metadata::{Lv, Vg};

use super::{Finding, Severity};
use crate::host::{Host, OWNER};
use crate::pools::percent;

/// Fill from which a pool is told about, in percent.
const WARNING: u8 = 80;
const ERROR: u8 = 95;

/// Everything about one thin pool; nothing for other volumes.
pub(super) fn examine(host: &Host, vg: &Vg, lv: &Lv) -> Vec<Finding> {
    if lv.as_thin_pool().is_none() {
        return Vec::new();
    }
    let subject = format!("thin pool {}/{}", vg.name, lv.name);
    let status = host.live.status(vg, lv, |status| match status {
        Status::ThinPool(pool) => Some(pool),
        _ => None,
    });
    match status {
        None => Vec::new(),
        Some(ThinPoolStatus::Working(live)) => working(vg, lv, live, &subject),
        Some(_) => vec![
            Finding::new(Severity::Error, "pool-failed", subject, "the kernel has given the pool up")
                .meaning("No volume in it can be read or written until its metadata are repaired.")
                .steps(repair(vg, lv)),
        ],
    }
}

fn working(vg: &Vg, lv: &Lv, live: &ThinPoolUse, subject: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(fill("pool-data", "data", live.data, vg, lv, subject));
    findings.extend(fill("pool-metadata", "metadata", live.metadata, vg, lv, subject));
    if live.needs_check {
        findings.push(
            Finding::new(
                Severity::Error,
                "pool-needs-check",
                subject,
                "the pool asks for a check of its metadata",
            )
            .meaning("It takes no writes until then.")
            .steps(repair(vg, lv)),
        );
    } else if live.mode == PoolMode::ReadOnly {
        findings.push(
            Finding::new(Severity::Error, "pool-read-only", subject, "the pool takes no changes")
                .meaning("Its metadata ran full or could not be written; writes to its volumes fail.")
                .step(format!(
                    "grow its metadata: gabion pool grow {}/{} --metadata-by 1GiB",
                    vg.name, lv.name
                )),
        );
    } else if live.mode == PoolMode::OutOfDataSpace {
        findings.push(
            Finding::new(Severity::Error, "pool-out-of-space", subject, "the pool has no free blocks")
                .meaning("Writes to new places wait for a minute, then fail.")
                .step(grow(vg, lv)),
        );
    }
    if live.held_root.is_some() {
        findings.push(
            Finding::new(Severity::Note, "pool-metadata-held", subject, "a snapshot of its metadata is held")
                .meaning("A program compares volumes at this moment, or ended without releasing it; it takes space.")
                .step(format!(
                    "if no such program runs: dmsetup message {} 0 release_metadata_snap",
                    vg.dm_name(lv, Some("tpool")).unwrap_or_default()
                )),
        );
    }
    findings
}

fn repair(vg: &Vg, lv: &Lv) -> Vec<String> {
    let first = "take its volumes out of use (unmount them), then:".to_owned();
    match lv.has_tag(OWNER) {
        true => vec![first, format!("gabion pool repair {}/{}", vg.name, lv.name)],
        false => vec![
            first,
            format!("vgchange --activate n {}", vg.name),
            format!("lvconvert --repair {}/{}", vg.name, lv.name),
        ],
    }
}

fn grow(vg: &Vg, lv: &Lv) -> String {
    format!(
        "gabion pool grow {}/{} --by SIZE (`gabion pools {}` shows what is free)",
        vg.name, lv.name, vg.name
    )
}

fn fill(code: &'static str, what: &str, fill: Fill, vg: &Vg, lv: &Lv, subject: &str) -> Option<Finding> {
    let severity = match () {
        () if fill.reaches(ERROR) => Severity::Error,
        () if fill.reaches(WARNING) => Severity::Warning,
        () => return None,
    };
    let used = percent(fill.used(), fill.total());
    let finding = Finding::new(severity, code, subject, format!("its {what} are {used} full"));
    Some(if what == "data" {
        finding
            .meaning("When they are full, writes to its volumes wait for a minute and then fail.")
            .step(grow(vg, lv))
            .step("or give space back: fstrim on the mounted filesystems, or delete snapshots")
    } else {
        finding
            .meaning("When they are full, writes to new places fail at once, until they have grown.")
            .step(format!("gabion pool grow {}/{} --metadata-by SIZE", vg.name, lv.name))
    })
}
