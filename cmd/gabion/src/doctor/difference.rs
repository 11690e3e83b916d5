//! Where the kernel does not do what the committed metadata say.

use lvm::metadata::Vg;
use lvm::recover::Difference;

use super::{Finding, Severity};
use crate::host::OWNER;

/// The finding of a difference.
pub(super) fn explain(vg: &Vg, difference: &Difference) -> Finding {
    let (severity, code, meaning) = judge(difference);
    let finding = Finding::new(severity, code, format!("group {}", vg.name), difference.to_string());
    let finding = finding.meaning(meaning);
    if vg.has_tag(OWNER) {
        finding.step(format!("if no command is running on the group: gabion group recover {}", vg.name))
    } else {
        finding.step(format!(
            "the group is not Gabion's, so its maker must see to it; to let Gabion: gabion group adopt {}",
            vg.name
        ))
    }
}

fn judge(difference: &Difference) -> (Severity, &'static str, &'static str) {
    const CUT_OFF: &str = "A command is at work on the group, or was cut off.";
    match difference {
        Difference::Suspended { .. } => (
            Severity::Error,
            "device-suspended",
            "Reads and writes wait. A command is at work on it, or was cut off.",
        ),
        Difference::InactiveTable { .. } => (
            Severity::Warning,
            "inactive-table",
            "A command was cut off; a resume or refresh would put a table in use that was never committed.",
        ),
        Difference::Transaction { .. } => (
            Severity::Error,
            "pool-transaction",
            "A command was cut off, or one side was restored from an old copy; the pool takes no changes.",
        ),
        Difference::Table { .. } | Difference::Orphan { .. } => (
            Severity::Error,
            "live-not-committed",
            "The kernel leads reads and writes elsewhere than the metadata say.",
        ),
        _ => (Severity::Warning, "live-not-committed", CUT_OFF),
    }
}
