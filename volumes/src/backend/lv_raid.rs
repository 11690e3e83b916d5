//! How the RAID legs below logical volumes fare: by the metadata and by the kernel, of which neither alone knows it all.

use std::collections::BTreeSet;

use lvm::dm::{Dm, RaidStatus, SyncAction};
use lvm::metadata::{Area, Lv, Raid, RaidLevel, Vg};
use lvm::{LvName, Uuid};

use crate::Error;
use crate::health::{HealthIssue, Severity};

/// The RAID volumes that a volume is or is built on, its thin pool's among them.
pub(super) fn raids_below<'a>(vg: &'a Vg, lv: &'a Lv) -> Vec<&'a Lv> {
    walk(vg, lv).into_iter().filter(|lv| lv.as_raid().is_some()).collect()
}

/// The PVs without which a volume cannot be used: all below it but those of RAID legs.
pub(super) fn pvs_below_without_raid(vg: &Vg, lv: &Lv) -> Vec<Uuid> {
    let areas = walk(vg, lv).into_iter().flat_map(|lv| &lv.segments).flat_map(|segment| segment.areas());
    let pv = |area: &Area| match area {
        Area::Pv { pv, .. } => Some(*pv),
        Area::Lv { .. } => None,
    };
    areas.filter_map(pv).collect()
}

/// A volume and what it is built on, down to RAID volumes, whose legs are left out.
fn walk<'a>(vg: &'a Vg, lv: &'a Lv) -> Vec<&'a Lv> {
    let mut found: Vec<&Lv> = vec![lv];
    let mut at = 0;
    while let Some(lv) = found.get(at).copied() {
        at += 1;
        if lv.as_raid().is_some() {
            continue;
        }
        for part in lv.parts().into_iter().filter_map(|part| vg.lv(part.as_str())) {
            if !found.iter().any(|other| other.uuid == part.uuid) {
                found.push(part);
            }
        }
    }
    found
}

/// What is wrong with these RAID volumes, each reason once.
pub(super) fn issues(vg: &Vg, raids: &[&Lv]) -> Result<Vec<HealthIssue>, Error> {
    if raids.is_empty() {
        return Ok(Vec::new());
    }
    let dm = Dm::open()?;
    let mut all: Vec<HealthIssue> = Vec::new();
    for lv in raids {
        let Some(raid) = lv.as_raid() else { continue };
        let status = dm.raid_health(&vg.uuid, &lv.uuid)?;
        for issue in of_raid(&lv.name, raid, &missing_legs(vg, raid), status.as_ref()) {
            match all.iter_mut().find(|other| other.reason == issue.reason) {
                Some(other) => other.message = format!("{}; {}", other.message, issue.message),
                None => all.push(issue),
            }
        }
    }
    Ok(all)
}

/// The legs that are on PVs that are not there.
pub(super) fn missing_legs(vg: &Vg, raid: &Raid) -> BTreeSet<usize> {
    let missing: Vec<Uuid> = vg.missing_pvs().map(|pv| pv.uuid).collect();
    let is_missing = |part: &LvName| {
        vg.lv(part.as_str()).is_some_and(|part| vg.pvs_below(part).iter().any(|pv| missing.contains(pv)))
    };
    let legs = raid.legs.iter().enumerate();
    legs.filter(|(_, leg)| is_missing(&leg.data) || leg.meta.as_ref().is_some_and(is_missing))
        .map(|(index, _)| index)
        .collect()
}

fn of_raid(
    name: &LvName,
    raid: &Raid,
    missing: &BTreeSet<usize>,
    status: Option<&RaidStatus>,
) -> Vec<HealthIssue> {
    let mut failed = missing.clone();
    failed.extend(status.into_iter().flat_map(RaidStatus::failed_legs));
    let (count, legs) = (failed.len(), raid.legs.len());
    let mut issues = Vec::new();
    if !bears(&raid.level, legs, raid.data_copies, &failed) {
        let message = format!(
            "{count} of the {legs} legs of {name} have failed, more than it bears: bring the disks back"
        );
        issues.push(HealthIssue::new(Severity::Inaccessible, "RaidFailed", message));
    } else if count > 0 {
        let message = format!(
            "{count} of the {legs} legs of {name} have failed; the others have everything: bring the disk back, or add one to the \
             class and have the legs made anew (gabion volume repair)"
        );
        issues.push(HealthIssue::new(Severity::Degraded, "RaidDegraded", message));
    }
    let Some(status) = status else { return issues };
    if status.action == Some(SyncAction::Recover) {
        let percent = status.synced.get().saturating_mul(100) / status.sync_end.get().max(1);
        let message =
            format!("a leg of {name} is being filled, {percent} percent of it are: nothing is to be done");
        issues.push(HealthIssue::new(Severity::Degraded, "RaidRebuilding", message));
    }
    if let Some(sectors) = status.mismatches.filter(|sectors| *sectors > 0) {
        let message = format!(
            "the last check found {sectors} sectors of {name} that differ between its legs: look which disk reports errors, then have \
             them made equal (lvchange --syncaction repair)"
        );
        issues.push(HealthIssue::new(Severity::Degraded, "RaidMismatch", message));
    }
    issues
}

/// Whether everything can still be read without these legs.
fn bears(level: &RaidLevel, legs: usize, copies: Option<u32>, failed: &BTreeSet<usize>) -> bool {
    match level {
        RaidLevel::Raid0 => failed.is_empty(),
        RaidLevel::Raid1 => failed.len() < legs,
        // Copies lie beside each other.
        RaidLevel::Raid10(_) => {
            let copies = usize::try_from(copies.unwrap_or(2)).unwrap_or(2).max(1);
            (0..legs)
                .step_by(copies)
                .all(|first| (first..(first + copies).min(legs)).any(|leg| !failed.contains(&leg)))
        }
        level => failed.len() <= usize::try_from(level.parity_legs()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_bears_the_loss_of_as_many_legs_as_it_promises() {
        let (raid5, raid6, raid10) =
            (RaidLevel::Raid5("ls".into()), RaidLevel::Raid6("zr".into()), RaidLevel::Raid10("".into()));
        for (level, legs, failed, usable) in [
            (&RaidLevel::Raid0, 2, &[0][..], false),
            (&RaidLevel::Raid1, 3, &[0, 2], true),
            (&RaidLevel::Raid1, 2, &[0, 1], false),
            (&RaidLevel::Raid4, 3, &[2], true),
            (&raid5, 3, &[1], true),
            (&raid5, 3, &[0, 1], false),
            (&raid6, 5, &[0, 4], true),
            (&raid6, 5, &[0, 1, 4], false),
            // Two mirrors of two: one leg of each may go, both of one may not.
            (&raid10, 4, &[0, 3], true),
            (&raid10, 4, &[2, 3], false),
        ] {
            let failed = failed.iter().copied().collect();
            assert_eq!(bears(level, legs, Some(2), &failed), usable, "{level:?} {failed:?}");
        }
    }
}
