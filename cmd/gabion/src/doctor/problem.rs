//! What the reader of the metadata found.

use lvm::Uuid;
use lvm::metadata::{Problem, Vg};

use super::{Finding, Severity};
use crate::host::Host;
use crate::state::is_lost;

/// The finding of a problem.
pub(super) fn explain(host: &Host, problem: &Problem) -> Finding {
    match problem {
        Problem::MissingPv { .. } | Problem::FlaggedMissing { .. } => pv_away(host, problem),
        Problem::DeviceGrew { .. } | Problem::DeviceShrank { .. } => size_changed(host, problem),
        Problem::DuplicatePv { .. } | Problem::SameName { .. } | Problem::ClaimedTwice { .. } => {
            ambiguous(problem)
        }
        Problem::Unreadable { device, .. } => Finding::new(
            Severity::Error,
            "device-unreadable",
            device.display().to_string(),
            problem.to_string(),
        )
        .meaning("A PV on it counts as missing.")
        .step(format!("look for the cause: dmesg | grep {}", file_name(device))),
        Problem::Suspended { device } => Finding::new(
            Severity::Error,
            "device-suspended",
            device.display().to_string(),
            problem.to_string(),
        )
        .meaning("Whoever reads or writes it waits until it is resumed. A PV on it counts as missing.")
        .step(format!("when no command is working on it: dmsetup resume {}", device.display())),
        _ => metadata_damaged(host, problem),
    }
}

fn file_name(device: &std::path::Path) -> String {
    device.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn group_name(host: &Host, vg: Uuid) -> String {
    host.view.vg_by_uuid(vg).map_or_else(|| vg.to_string(), |vg| vg.name.to_string())
}

fn pv_away(host: &Host, problem: &Problem) -> Finding {
    match problem {
        Problem::FlaggedMissing { vg, pv, device } => {
            let name = group_name(host, *vg);
            let text = format!("PV {pv} is back on {}, and the group does not use it yet", device.display());
            Finding::new(Severity::Error, "pv-not-restored", format!("group {name}"), text)
                .meaning("Nothing is read from it or written to it, so copies on it fall behind.")
                .step(format!("gabion group restore {name}"))
        }
        Problem::MissingPv { vg, pv, hint } => {
            let name = group_name(host, *vg);
            let seen = hint.as_ref().map(|hint| format!(", last seen on {hint}")).unwrap_or_default();
            let text = format!("PV {pv} is missing{seen}");
            let meaning = host.view.vg_by_uuid(*vg).map(|vg| loss(vg, *pv)).unwrap_or_default();
            Finding::new(Severity::Error, "pv-missing", format!("group {name}"), text)
                .meaning(meaning)
                .step("bring the disk back if it can be had; then run `gabion doctor` again")
        }
        other => Finding::new(Severity::Error, "pv-missing", "a group", other.to_string()),
    }
}

/// What the absence of a PV costs.
fn loss(vg: &Vg, pv: Uuid) -> String {
    let on_it: Vec<_> = vg.visible_lvs().filter(|lv| vg.pvs_below(lv).contains(&pv)).collect();
    let (lost, kept): (Vec<_>, Vec<_>) = on_it.into_iter().partition(|lv| is_lost(vg, lv, 0));
    let names =
        |lvs: Vec<&lvm::metadata::Lv>| lvs.iter().map(|lv| lv.name.as_str()).collect::<Vec<_>>().join(", ");
    match (lost.is_empty(), kept.is_empty()) {
        (true, true) => "No volume lies on it.".to_owned(),
        (true, false) => format!("All data are there; without a spare copy now: {}.", names(kept)),
        (false, true) => format!("Cannot be read without it: {}.", names(lost)),
        (false, false) => {
            format!("Cannot be read without it: {}. Without a spare copy now: {}.", names(lost), names(kept))
        }
    }
}

fn size_changed(host: &Host, problem: &Problem) -> Finding {
    match problem {
        Problem::DeviceGrew { pv, device, .. } => {
            let group = host.view.pv(*pv).map(|(vg, _)| vg.name.to_string());
            let finding = Finding::new(
                Severity::Note,
                "device-grew",
                device.display().to_string(),
                problem.to_string(),
            )
            .meaning("The new space is not used.");
            match group {
                Some(group) => finding.step(format!("gabion group resize {group}")),
                None => finding.step(format!("pvresize {}", device.display())),
            }
        }
        Problem::DeviceShrank { device, .. } => {
            Finding::new(Severity::Error, "device-shrank", device.display().to_string(), problem.to_string())
                .meaning("Volumes that lie on the cut end have lost data.")
                .step("give the device its former size back before anything writes to it")
        }
        other => Finding::new(Severity::Warning, "device-size", "a device", other.to_string()),
    }
}

fn ambiguous(problem: &Problem) -> Finding {
    match problem {
        Problem::DuplicatePv { used, other, .. } => Finding::new(
            Severity::Error,
            "pv-duplicate",
            other.display().to_string(),
            problem.to_string(),
        )
        .meaning(
            "One is a copy of the other, or both are paths to one disk; a write to the wrong one loses data.",
        )
        .step(format!(
            "find out which is which: lsblk -o NAME,SERIAL,WWN {} {}",
            used.display(),
            other.display()
        ))
        .step("take the copy away, or set up multipath for the two paths"),
        Problem::SameName { name, vgs } => {
            let mut finding = Finding::new(
                Severity::Error,
                "group-name-twice",
                format!("group {name}"),
                problem.to_string(),
            )
            .meaning("Commands by name are refused for all of them.");
            for vg in vgs {
                finding = finding.step(format!("to rename one of them: vgrename {vg} NEW-NAME"));
            }
            finding
        }
        other => Finding::new(Severity::Error, "pv-claimed-twice", "a PV", other.to_string())
            .meaning("One of the groups was restored from an old copy of its metadata."),
    }
}

fn metadata_damaged(host: &Host, problem: &Problem) -> Finding {
    let (severity, code, device) = match problem {
        Problem::BadLabel { device, .. } => (Severity::Error, "label-damaged", device),
        Problem::BadHeader { device, .. } => (Severity::Error, "metadata-header-damaged", device),
        Problem::BadText { device, .. } => (Severity::Error, "metadata-damaged", device),
        Problem::OutdatedCopy { device, .. } => (Severity::Warning, "metadata-outdated", device),
        Problem::DifferingCopies { device, .. } => (Severity::Error, "metadata-differs", device),
        Problem::IgnoredArea { device, .. } => (Severity::Note, "metadata-ignored", device),
        Problem::GroupNotFound { device, .. } => (Severity::Error, "group-not-found", device),
        other => return Finding::new(Severity::Warning, "metadata", "this host", other.to_string()),
    };
    let finding = Finding::new(severity, code, device.display().to_string(), problem.to_string());
    match problem {
        Problem::IgnoredArea { .. } => finding.meaning("One copy of the group's metadata fewer."),
        Problem::OutdatedCopy { vg, .. } => finding
            .meaning("The newest copy is used; the next change of the group writes all copies anew.")
            .step(format!("vgck --updatemetadata {}", group_name(host, *vg))),
        Problem::GroupNotFound { .. } => finding
            .meaning("The disks with that group's metadata are not here.")
            .step("bring the group's other disks back"),
        _ => finding
            .meaning("This copy of the metadata is not used; other PVs of the group may hold a good one.")
            .step(format!("look at it before anything is changed: pvck --dump headers {}", device.display())),
    }
}
