//! The state of a volume or a pool in one word, the worst first.

use lvm::dm::{
    LegHealth, PoolMode, RaidStatus, SnapshotStatus, Status, SyncAction, ThinPoolStatus, ThinStatus,
};
use lvm::metadata::{Lv, LvFlag, Vg};

use crate::live::Live;

/// The tag of what is not complete yet.
pub(crate) const CREATING: &str = "gabion.dev/creating";

/// How a volume or a pool is. The first that fits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// The kernel has given it up: nothing can be read or written.
    Failed,
    /// A classic snapshot that ran full and is lost.
    Invalid,
    /// A part lies on a missing PV, and no copy makes up for it.
    Partial,
    /// A device of it is suspended: requests wait.
    Suspended,
    /// A thin pool that takes no writes until it is checked.
    NeedsCheck,
    /// A thin pool that takes no changes.
    ReadOnly,
    /// A thin pool that has no free blocks.
    OutOfSpace,
    /// A copy is missing or dead; the data are all there.
    Degraded,
    /// Half-made; the next recovery removes it.
    Unfinished,
    /// A snapshot is being merged into it.
    Merging,
    /// Its extents are being moved.
    Moving,
    /// Its copies are being brought in step.
    Syncing,
    /// In the kernel, and well.
    Active,
    /// Not in the kernel.
    Inactive,
    /// The kernel could not be asked.
    Unknown,
}

impl State {
    /// The word, as in JSON.
    pub(crate) const fn as_word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Partial => "partial",
            Self::Suspended => "suspended",
            Self::NeedsCheck => "needs-check",
            Self::ReadOnly => "read-only",
            Self::OutOfSpace => "out-of-space",
            Self::Degraded => "degraded",
            Self::Unfinished => "unfinished",
            Self::Merging => "merging",
            Self::Moving => "moving",
            Self::Syncing => "syncing",
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Unknown => "unknown",
        }
    }

    /// The state of a volume: its own, and that of the hidden volumes below it.
    pub(crate) fn of(vg: &Vg, lv: &Lv, live: &Live) -> Self {
        let below = parts_below(vg, lv);
        let any = |test: &dyn Fn(&Lv) -> bool| test(lv) || below.iter().any(|part| test(part));
        let has = |wanted: fn(&Status) -> bool| {
            any(&|lv| live.status(vg, lv, |s| wanted(s).then_some(())).is_some())
        };
        let tests: [(Self, bool); 12] = [
            (Self::Failed, has(is_failed)),
            (Self::Invalid, has(is_invalid)),
            (Self::Partial, is_lost(vg, lv, 0)),
            (Self::Suspended, any(&|lv| live.of(vg, lv).iter().any(|device| device.suspended))),
            (Self::NeedsCheck, has(needs_check)),
            (Self::ReadOnly, has(|status| pool_mode(status) == Some(PoolMode::ReadOnly))),
            (Self::OutOfSpace, has(|status| pool_mode(status) == Some(PoolMode::OutOfDataSpace))),
            (Self::Degraded, has(is_degraded) || any(&|lv| lv.as_raid().is_some() && vg.is_partial(lv))),
            (Self::Unfinished, lv.has_tag(CREATING)),
            (Self::Merging, has(|status| matches!(status, Status::SnapshotMerge(_))) || is_merging(vg, lv)),
            (Self::Moving, any(&|lv| lv.has(&LvFlag::Locked))),
            (Self::Syncing, has(is_syncing)),
        ];
        match tests.into_iter().find(|(_, holds)| *holds) {
            Some((state, _)) => state,
            None => match live.is_active(vg, lv) {
                Some(true) => Self::Active,
                Some(false) => Self::Inactive,
                None => Self::Unknown,
            },
        }
    }
}

/// The hidden volumes that a volume is built on, at any depth; a thin volume's pool and origins do not count.
pub(crate) fn parts_below<'a>(vg: &'a Vg, lv: &'a Lv) -> Vec<&'a Lv> {
    let mut found: Vec<&Lv> = Vec::new();
    let mut stack = vec![lv];
    while let Some(lv) = stack.pop() {
        if lv.as_thin().is_some() {
            continue;
        }
        for part in lv.parts().into_iter().filter_map(|name| vg.lv(name.as_str())) {
            if part.is_internal() && !found.iter().any(|seen| seen.uuid == part.uuid) {
                found.push(part);
                stack.push(part);
            }
        }
    }
    found
}

/// Whether data of the volume cannot be read: extents on a missing PV that no other leg makes up for.
pub(crate) fn is_lost(vg: &Vg, lv: &Lv, depth: u32) -> bool {
    // Nesting in metadata is a handful of layers; more would be a loop in damaged ones.
    if depth > 16 || !vg.is_partial(lv) {
        return false;
    }
    if let Some(raid) = lv.as_raid() {
        let lost = |name: &lvm::LvName| vg.lv(name.as_str()).is_none_or(|part| is_lost(vg, part, depth + 1));
        let gone = raid.legs.iter().filter(|leg| lost(&leg.data)).count();
        return gone > spare_legs(raid);
    }
    let on_missing = lv.segments.iter().flat_map(lvm::metadata::Segment::areas).any(|area| match area {
        lvm::metadata::Area::Pv { pv, .. } => vg.pv(*pv).is_none_or(lvm::metadata::Pv::is_missing),
        lvm::metadata::Area::Lv { .. } => false,
    });
    on_missing
        || lv
            .parts()
            .into_iter()
            .filter_map(|name| vg.lv(name.as_str()))
            .any(|part| is_lost(vg, part, depth + 1))
}

/// How many legs of a RAID may be lost, whichever they are.
fn spare_legs(raid: &lvm::metadata::Raid) -> usize {
    match raid.level {
        lvm::metadata::RaidLevel::Raid1 => raid.legs.len().saturating_sub(1),
        lvm::metadata::RaidLevel::Raid10(_) => {
            usize::try_from(raid.data_copies.unwrap_or(2).saturating_sub(1)).unwrap_or(1)
        }
        _ => usize::try_from(raid.level.parity_legs()).unwrap_or(0),
    }
}

fn is_failed(status: &Status) -> bool {
    matches!(status, Status::ThinPool(ThinPoolStatus::Failed) | Status::Thin(ThinStatus::Failed))
        || matches!(status, Status::Cache(lvm::dm::CacheStatus::Failed))
}

fn is_invalid(status: &Status) -> bool {
    matches!(
        status,
        Status::Snapshot(SnapshotStatus::Invalid | SnapshotStatus::Overflow | SnapshotStatus::MergeFailed)
            | Status::SnapshotMerge(SnapshotStatus::MergeFailed)
    )
}

fn needs_check(status: &Status) -> bool {
    matches!(status, Status::ThinPool(ThinPoolStatus::Working(pool)) if pool.needs_check)
        || matches!(status, Status::Cache(lvm::dm::CacheStatus::Working(cache)) if cache.needs_check)
}

fn pool_mode(status: &Status) -> Option<PoolMode> {
    match status {
        Status::ThinPool(ThinPoolStatus::Working(pool)) => Some(pool.mode),
        _ => None,
    }
}

fn is_degraded(status: &Status) -> bool {
    matches!(status, Status::Raid(raid) if !raid.failed_legs().is_empty())
}

fn is_syncing(status: &Status) -> bool {
    matches!(status, Status::Raid(raid) if is_out_of_step(raid))
}

/// Whether legs are being brought in step.
pub(crate) fn is_out_of_step(raid: &RaidStatus) -> bool {
    raid.legs.contains(&LegHealth::OutOfSync)
        || matches!(raid.action, Some(SyncAction::Resync | SyncAction::Recover | SyncAction::Reshape))
}

fn is_merging(vg: &Vg, lv: &Lv) -> bool {
    lv.has(&LvFlag::Merging)
        || vg.snapshots_of(&lv.name).any(|tie| tie.merging)
        || vg.lvs.iter().filter_map(Lv::as_thin).any(|thin| thin.merge.as_ref() == Some(&lv.name))
}
