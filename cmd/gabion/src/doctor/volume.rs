//! What is wrong with a volume.

use lvm::dm::{RaidStatus, SnapshotStatus, Status};
use lvm::metadata::{Lv, Vg};

use super::{Finding, Severity};
use crate::host::{Host, OWNER};
use crate::state::{is_lost, is_out_of_step};

/// Fill of a classic snapshot's store, in percent.
const SNAPSHOT_WARNING: u64 = 80;
const SNAPSHOT_ERROR: u64 = 95;

/// Everything about one volume, hidden ones among them.
pub(super) fn examine(host: &Host, vg: &Vg, lv: &Lv) -> Vec<Finding> {
    let subject = format!("volume {}/{}", vg.name, lv.name);
    let mut findings = Vec::new();
    if vg.is_visible(lv) && is_lost(vg, lv, 0) {
        findings.push(
            Finding::new(
                Severity::Error,
                "volume-partial",
                subject.clone(),
                "a part of it lies on a missing PV",
            )
            .meaning("It is not activated with a hole in it; its data need that disk.")
            .step("bring the disk back, or restore the volume from a backup"),
        );
    }
    findings.extend(raid(host, vg, lv, &subject));
    findings.extend(snapshot(host, vg, lv, &subject));
    findings
}

fn raid(host: &Host, vg: &Vg, lv: &Lv, subject: &str) -> Option<Finding> {
    let metadata = lv.as_raid()?;
    let status = host.live.status(vg, lv, |status| match status {
        Status::Raid(raid) => Some(raid),
        _ => None,
    });
    let (failed, committed) = (status.map(RaidStatus::failed_legs).unwrap_or_default(), vg.is_partial(lv));
    if !failed.is_empty() {
        return Some(raid_degraded(vg, lv, subject, metadata.legs.len(), &failed));
    }
    if committed && !is_lost(vg, lv, 0) {
        return Some(
            Finding::new(Severity::Error, "raid-degraded", subject, "a leg lies on a missing PV")
                .meaning("All data are there, with fewer copies than the volume was made with.")
                .step("bring the disk back, or replace it (see `raid` in lvmraid(7))"),
        );
    }
    let status = status?;
    if is_out_of_step(status) {
        let problem =
            format!("its copies are being brought in step: {} of {}", status.synced, status.sync_end);
        return Some(
            Finding::new(Severity::Note, "raid-syncing", subject, problem)
                .meaning("Until it has ended, a failing disk can cost data."),
        );
    }
    let mismatches = status.mismatches.filter(|count| *count > 0)?;
    Some(
        Finding::new(
            Severity::Warning,
            "raid-mismatches",
            subject,
            format!("the last check found {mismatches} sectors that differ"),
        )
        .meaning("The copies do not agree on these sectors.")
        .step(match vg.is_visible(lv) && lv.has_tag(OWNER) {
            true => format!("gabion volume scrub {}/{} --repair", vg.name, lv.name),
            false => format!("lvchange --syncaction repair {}/{}", vg.name, lv.name),
        }),
    )
}

fn raid_degraded(vg: &Vg, lv: &Lv, subject: &str, legs: usize, failed: &[usize]) -> Finding {
    let list = failed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let verb = if failed.len() == 1 { "does" } else { "do" };
    let finding = Finding::new(
        Severity::Error,
        "raid-degraded",
        subject,
        format!("{} of its {legs} legs {verb} not work any more (leg {list})", failed.len()),
    )
    .meaning("The data are served from the other legs; another failing disk can cost them.");
    let top = visible_above(vg, lv);
    let (path, ours) = (format!("{}/{}", vg.name, top.name), top.has_tag(OWNER));
    // With all PVs there, the disk was only away for a moment, and a refresh takes it in again.
    match (vg.is_partial(lv), ours) {
        (true, true) => finding
            .step("bring the disk back; `gabion doctor` then says how to take it in again")
            .step(format!("or rebuild on another disk of the group: gabion volume repair {path}")),
        (true, false) => finding
            .step("bring the disk back; `gabion doctor` then says how to take it in again")
            .step(format!(
                "or rebuild on another disk of the group: lvconvert --repair {}/{}",
                vg.name, lv.name
            )),
        (false, true) => finding.step(format!("gabion volume refresh {path}")),
        (false, false) => finding.step(format!("lvchange --refresh {path}")),
    }
}

/// The volume that users know a hidden part by; the part itself where there is none.
fn visible_above<'a>(vg: &'a Vg, lv: &'a Lv) -> &'a Lv {
    let mut top = lv;
    // Nesting in metadata is a handful of layers; more would be a loop in damaged ones.
    for _ in 0..16 {
        match vg.users_of(&top.name).next() {
            Some(user) if !vg.is_visible(top) => top = user,
            _ => break,
        }
    }
    top
}

fn snapshot(host: &Host, vg: &Vg, lv: &Lv, subject: &str) -> Option<Finding> {
    vg.snapshot_with_store(&lv.name)?;
    let status = host.live.status(vg, lv, |status| match status {
        Status::Snapshot(snapshot) => Some(*snapshot),
        _ => None,
    })?;
    let SnapshotStatus::Valid { used, total, .. } = status else {
        return Some(
            Finding::new(Severity::Error, "snapshot-lost", subject, "the snapshot ran full, so it is lost")
                .meaning("Its origin is not affected. The snapshot cannot be read or restored any more.")
                .step(format!("gabion volume delete {}/{}", vg.name, lv.name)),
        );
    };
    let reaches = |part: u64| u128::from(used.get()) * 100 >= u128::from(total.get()) * u128::from(part);
    let severity = match () {
        () if reaches(SNAPSHOT_ERROR) => Severity::Error,
        () if reaches(SNAPSHOT_WARNING) => Severity::Warning,
        () => return None,
    };
    Some(
        Finding::new(severity, "snapshot-nearly-full", subject, format!("{used} of {total} are used"))
            .meaning("When its store is full, the snapshot is lost; its origin is not.")
            .step(match lv.has_tag(OWNER) {
                true => format!("gabion volume grow {}/{} --by SIZE", vg.name, lv.name),
                false => format!("lvextend --extents +25%LV {}/{}", vg.name, lv.name),
            }),
    )
}
