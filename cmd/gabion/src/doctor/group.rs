//! What is wrong with a group as such.

use lvm::metadata::{Vg, VgFlag};

use super::{Finding, Severity};
use crate::host::OWNER;
use crate::pools::{metadata_of, percent};
use crate::state::CREATING;

/// Parts of the metadata area, in percent of what a text may take.
const METADATA_WARNING: u64 = 80;
const METADATA_ERROR: u64 = 95;

/// Everything about one group.
pub(super) fn examine(vg: &Vg) -> Vec<Finding> {
    let subject = format!("group {}", vg.name);
    let mut findings = Vec::new();
    findings.extend(metadata_fill(vg, &subject));
    findings.extend(unfinished(vg, &subject));
    if vg.has(&VgFlag::PvMove) {
        findings.push(
            Finding::new(Severity::Note, "move-under-way", subject.clone(), "extents are being moved")
                .meaning("A move that was interrupted goes on when it is resumed; nothing is lost.")
                .step("to resume it: pvmove"),
        );
    }
    if vg.has(&VgFlag::Exported) {
        findings.push(
            Finding::new(Severity::Warning, "group-exported", subject, "the group is exported")
                .meaning("No volume of it can be used.")
                .step(format!("vgimport {}", vg.name)),
        );
    }
    findings
}

fn metadata_fill(vg: &Vg, subject: &str) -> Option<Finding> {
    let (used, usable) = metadata_of(vg)?;
    let reaches = |part: u64| u128::from(used.get()) * 100 >= u128::from(usable.get()) * u128::from(part);
    let severity = match () {
        () if reaches(METADATA_ERROR) => Severity::Error,
        () if reaches(METADATA_WARNING) => Severity::Warning,
        () => return None,
    };
    let problem = format!("its metadata take {used} of {usable} ({})", percent(used.get(), usable.get()));
    Some(
        Finding::new(severity, "metadata-nearly-full", subject, problem)
            .meaning(
                "When they are full, nothing can be created, grown or snapshot; even a deletion can fail.",
            )
            .step("delete volumes or snapshots that are not needed: gabion volumes")
            .step("put new volumes into another group; a metadata area cannot grow"),
    )
}

fn unfinished(vg: &Vg, subject: &str) -> Option<Finding> {
    // The legs' metadata of a RAID volume keep the tag for good: LVM copies it there and does not take it off.
    let names: Vec<&str> =
        vg.lvs_by_tag(CREATING).filter(|lv| vg.is_visible(lv)).map(|lv| lv.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let problem = format!("half-made volumes are left: {}", names.join(", "));
    let finding = Finding::new(Severity::Warning, "unfinished-volumes", subject, problem)
        .meaning("They are being made at this moment, or their making was cut off; they hold nobody's data.");
    Some(match vg.has_tag(OWNER) {
        true => finding.step(format!("if nothing is being made now: gabion group recover {}", vg.name)),
        false => finding,
    })
}
