//! What a volume is, in one word.

use lvm::metadata::{Lv, SegmentKind, Vg};

/// The word for what a volume is made of: `linear`, `raid1`, `thin`, `snapshot`, …; `mixed` where its stretches
/// differ.
pub(crate) fn kind_of(vg: &Vg, lv: &Lv) -> String {
    if vg.snapshot_with_store(&lv.name).is_some() {
        return "snapshot".to_owned();
    }
    let mut words = lv.segments.iter().map(|segment| word(&segment.kind));
    let Some(first) = words.next() else { return "empty".to_owned() };
    if words.all(|word| word == first) { first } else { "mixed".to_owned() }
}

fn word(kind: &SegmentKind) -> String {
    match kind {
        SegmentKind::Striped(striped) if striped.areas.len() > 1 => "striped",
        SegmentKind::Striped(_) => "linear",
        SegmentKind::Mirror(_) => "mirror",
        SegmentKind::Raid(raid) => {
            // `raid5_ls`: how parity rotates matters to nobody who reads a list.
            let name = raid.level.to_string();
            return name.split('_').next().unwrap_or(&name).to_owned();
        }
        SegmentKind::ThinPool(_) => "thin-pool",
        SegmentKind::Thin(_) => "thin",
        SegmentKind::Snapshot(_) => "snapshot",
        SegmentKind::Cache(_) => "cache",
        SegmentKind::CachePool(_) => "cache-pool",
        SegmentKind::Writecache(_) => "writecache",
        SegmentKind::Integrity(_) => "integrity",
        SegmentKind::Error => "error",
        SegmentKind::Zero => "zero",
        SegmentKind::Unknown { name, .. } => return name.to_string(),
        _ => "unknown",
    }
    .to_owned()
}
