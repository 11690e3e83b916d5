//! What is wrong with logical volumes: read from the metadata and the kernel, never from the volumes themselves, since a
//! suspended one would hang its reader.

use std::thread;
use std::time::{Duration, Instant};

use lvm::dm::{Activity, Dm};
use lvm::metadata::{Lv, Pv, Vg};

use super::lv::LvPool;
use super::{lv_raid, tags};
use crate::health::{HealthIssue, Severity};
use crate::{Error, Volume};

/// How long a volume may be suspended while nothing is wrong: LVM suspends for a moment what it changes.
const CHANGING: Duration = Duration::from_secs(2);

/// Where a thin pool takes nothing new already.
pub(super) const NEARLY_FULL: &str = "ThinPoolNearlyFull";

/// What is wrong with a volume itself.
pub(super) fn of_volume(pool: &LvPool, volume: &Volume) -> Result<Vec<HealthIssue>, Error> {
    let look = pool.look()?;
    let vg = look.vg();
    let tag = format!("{}{}", tags::VOLUME, volume.id);
    let Some(lv) = vg.lvs_by_tag(&tag).find(|lv| vg.is_visible(lv)) else { return Ok(Vec::new()) };
    let below = lv_raid::pvs_below_without_raid(vg, lv);
    let mut issues = missing(vg, Severity::Inaccessible, |pv| below.contains(&pv.uuid));
    issues.extend(lv_raid::issues(vg, &lv_raid::raids_below(vg, lv))?);
    if stays_suspended(vg, lv)? {
        let message =
            format!("its device {}/{} is suspended: whoever reads or writes it waits", vg.name, lv.name);
        issues.push(HealthIssue::new(Severity::Inaccessible, "DeviceSuspended", message));
    }
    Ok(issues)
}

/// What is wrong with its group.
pub(super) fn of_group(pool: &LvPool) -> Result<Vec<HealthIssue>, Error> {
    let look = pool.look()?;
    let vg = look.vg();
    let mut issues = missing(vg, Severity::Degraded, |_| true);
    let raids: Vec<&Lv> = vg.lvs.iter().filter(|lv| lv.as_raid().is_some()).collect();
    issues.extend(lv_raid::issues(vg, &raids)?);
    Ok(issues)
}

fn missing(vg: &Vg, severity: Severity, counts: impl Fn(&Pv) -> bool) -> Vec<HealthIssue> {
    let missing: Vec<String> =
        vg.missing_pvs().filter(|pv| counts(pv)).map(|pv| pv.uuid.to_string()).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let message = format!("volume group {} misses the PV {}", vg.name, missing.join(", "));
    vec![HealthIssue::new(severity, "PhysicalVolumeMissing", message)]
}

fn stays_suspended(vg: &Vg, lv: &Lv) -> Result<bool, Error> {
    let (dm, start) = (Dm::open()?, Instant::now());
    loop {
        let info = dm.lv_info(&vg.uuid, &lv.uuid)?;
        if info.is_none_or(|info| info.activity == Activity::Running) {
            return Ok(false);
        }
        if start.elapsed() > CHANGING {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
