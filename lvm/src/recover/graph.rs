//! What stands on what: orders and choices that the recovery makes.

use std::collections::BTreeSet;
use std::time::Duration;

use devices::DeviceNumber;

use super::live::LiveDevice;
use super::made::{Made, Spot};
use crate::dm::{Activity, Target};
use crate::metadata::{Lv, SegmentKind, ThinMessage, Vg};
use crate::ops::{is_marked, is_unfinished};
use crate::{LvName, Tag};

/// How long one command may take between making a volume and its last commit.
const COMMAND_LASTS: Duration = Duration::from_secs(600);
/// Devices that stand on each other at most.
const HEIGHT: usize = 8;

/// The suspended devices that have a table, those that others stand on first.
pub(super) fn suspended_from_below(live: &[LiveDevice]) -> Vec<&LiveDevice> {
    let mut suspended: Vec<(usize, &LiveDevice)> = live
        .iter()
        .filter(|device| device.info.activity == Activity::Suspended && device.info.has_live_table)
        .map(|device| (height(live, device, HEIGHT), device))
        .collect();
    suspended.sort_by_key(|(height, device)| (*height, device.info.number));
    suspended.into_iter().map(|(_, device)| device).collect()
}

/// How many devices of the group lie below a device, at most `limit`.
fn height(live: &[LiveDevice], device: &LiveDevice, limit: usize) -> usize {
    if limit == 0 {
        return 0;
    }
    let places = device.table.segments.iter().flat_map(|line| Made::from(&line.target).places());
    let below: BTreeSet<DeviceNumber> = places.map(|spot: Spot| spot.device).collect();
    let heights = live.iter().filter(|other| below.contains(&other.info.number));
    heights.map(|other| 1 + height(live, other, limit - 1)).max().unwrap_or(0)
}

/// The kernel's device of a pool, if it works.
pub(super) fn pool_device<'l>(live: &'l [LiveDevice], pool: &Lv) -> Option<&'l LiveDevice> {
    live.iter().find(|device| device.serves.lv == pool.uuid && device.transaction_id.is_some())
}

/// Thin devices that the pools one transaction behind are still to make, as far as nobody can have used them.
pub(super) fn pending_devices<'v>(vg: &'v Vg, live: &[LiveDevice]) -> Vec<(&'v Lv, u32)> {
    let mut pending = Vec::new();
    for lv in vg.thin_pools() {
        let (Some(pool), Some(device)) = (lv.as_thin_pool(), pool_device(live, lv)) else { continue };
        if device.transaction_id.and_then(|id| id.checked_add(1)) != Some(pool.transaction_id) {
            continue;
        }
        for message in &pool.messages {
            let ThinMessage::Create(name) = message else { continue };
            let Some(thin) = vg.lv(name.as_str()).and_then(Lv::as_thin) else { continue };
            if !is_used(vg, live, lv, device, name, thin.device_id) {
                pending.push((lv, thin.device_id));
            }
        }
    }
    pending
}

/// Pools that the kernel does not have, and that are still to make a device as far as the metadata know.
pub(super) fn stopped_pools_with_pending_devices<'v>(vg: &'v Vg, live: &[LiveDevice]) -> Vec<&'v Lv> {
    let creates = |message: &ThinMessage| matches!(message, ThinMessage::Create(_));
    let is_pending = |lv: &&Lv| lv.as_thin_pool().is_some_and(|pool| pool.messages.iter().any(creates));
    let is_live = |lv: &Lv| live.iter().any(|device| device.serves.lv == lv.uuid);
    vg.thin_pools().filter(is_pending).filter(|lv| !is_live(lv)).collect()
}

/// Whether another volume than `name` has the thin device, or anything in the kernel stands on it.
fn is_used(vg: &Vg, live: &[LiveDevice], pool: &Lv, device: &LiveDevice, name: &LvName, id: u32) -> bool {
    let other = |lv: &Lv| lv.name != *name && lv.as_thin().is_some_and(|thin| thin.device_id == id);
    let active = |target: &Target| match target {
        Target::Thin { pool, id: active, .. } => *active == id && *pool == device.info.number,
        _ => false,
    };
    let mut lines = live.iter().flat_map(|device| &device.table.segments);
    vg.thins_of(&pool.name).any(other) || lines.any(|line| active(&line.target))
}

/// The active volumes that users see and that stand on `lv`, and `lv` itself if it is one, which comes last: loading the
/// tables of a pool under its own name leaves the pool beneath as it is (tried).
pub(super) fn active_tops<'v>(vg: &'v Vg, live: &[LiveDevice], lv: &'v Lv) -> Vec<&'v LvName> {
    let is_active = |lv: &Lv| {
        let own_name = vg.dm_name(lv, None).unwrap_or_default();
        live.iter().any(|device| {
            device.serves.lv == lv.uuid && device.info.has_live_table && device.name() == own_name
        })
    };
    let mut seen: Vec<&LvName> = Vec::new();
    let mut next = vec![lv];
    let mut tops = Vec::new();
    while let Some(part) = next.pop() {
        if seen.contains(&&part.name) {
            continue;
        }
        seen.push(&part.name);
        if vg.is_visible(part) && is_active(part) {
            tops.push(&part.name);
        }
        next.extend(vg.users_of(&part.name));
        // The tie of a classic snapshot leads from its store to its origin.
        next.extend(part.as_snapshot().and_then(|tie| vg.lv(tie.origin.as_str())));
    }
    tops.sort_by_key(|name| **name == lv.name);
    tops
}

/// What LVM calls a volume that was given no name.
const NAMELESS: &str = "lvol";
/// How the text of a commit begins that a command of LVM made.
const WRITTEN_BY: &str = "Write from lv";
/// Options of the commands that make a pool's metadata spare when the group has none.
const MAKES_SPARE: [&str; 2] = [" --poolmetadataspare y", " --poolmetadatasize "];

/// The spare for a pool's metadata that a killed command was making: until it is finished, it is a visible volume
/// without a name of its own and without any tag. Known by the newest commit being that command's.
pub(super) fn stray_spare(vg: &Vg) -> Option<&Lv> {
    let written = vg.written.description.as_deref()?;
    let makes_spare =
        written.starts_with(WRITTEN_BY) && MAKES_SPARE.iter().any(|option| written.contains(option));
    if !makes_spare || vg.pool_metadata_spare().is_some() {
        return None;
    }
    let nameless = |lv: &&Lv| {
        let number = lv.name.as_str().strip_prefix(NAMELESS);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let made_by_it = |lv: &&Lv| match (lv.creation_time, vg.written.time) {
        (Some(made), Some(written)) => written.duration_since(made).is_ok_and(|age| age < COMMAND_LASTS),
        _ => false,
    };
    let mut strays = vg
        .visible_lvs()
        .filter(|lv| lv.tags.is_empty() && matches!(lv.kind(), Some(SegmentKind::Striped(_))))
        .filter(nameless)
        .filter(made_by_it);
    let stray = strays.next()?;
    strays.next().is_none().then_some(stray)
}

/// The next volume to remove: ours, tagged as unfinished, and nothing unfinished is built on it.
pub(super) fn next_unfinished<'v>(
    vg: &'v Vg,
    owner: Option<&Tag>,
    skipped: &BTreeSet<LvName>,
) -> Option<&'v Lv> {
    let ours = |lv: &&Lv| owner.is_none_or(|owner| is_marked(vg, lv, owner.as_str()));
    vg.visible_lvs()
        .filter(|lv| is_unfinished(vg, lv))
        .filter(ours)
        .filter(|lv| !skipped.contains(&lv.name))
        .find(|lv| !vg.users_of(&lv.name).any(|user| is_unfinished(vg, user)))
}
