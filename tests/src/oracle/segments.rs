//! What the report says of segments, and of the ties between volumes.

use devices::Sectors;
use lvm::LvName;
use lvm::metadata::{
    Area, Cache, CacheMode, CacheSettings, Discards, Lv, LvFlag, Node, Raid, RaidLevel, Section, Segment,
    SegmentKind, ThinPool, Value, Vg,
};

use super::Fields;
use super::report::{Row, compare};

/// Compares every segment of every volume.
pub(super) fn differences(lines: &mut Vec<String>, vg: &Vg, rows: &[Row]) {
    let mut count = 0;
    for lv in vg.lvs.iter().filter(|lv| lv.as_snapshot().is_none()) {
        let uuid = lv.uuid.to_string();
        for segment in &lv.segments {
            count += 1;
            let start = segment.start.get().to_string();
            let what = format!("{}/{}@{start}", vg.name, lv.name);
            match rows.iter().find(|row| row.is("lv_uuid", &uuid) && row.is("seg_start_pe", &start)) {
                Some(row) => compare(lines, &what, row, &segment_fields(vg, lv, segment)),
                None => lines.push(format!("{what}: LVM has no such segment")),
            }
        }
    }
    if rows.len() != count {
        lines.push(format!("{}: LVM has {} segments, the view {count}", vg.name, rows.len()));
    }
}

fn size(sectors: Option<Sectors>) -> String {
    sectors.map_or(0, |sectors| sectors.get() * 512).to_string()
}

fn segment_fields(vg: &Vg, lv: &Lv, segment: &Segment) -> Fields {
    let mut fields: Fields = vec![
        ("seg_size_pe", segment.len.get().to_string()),
        ("segtype", segment_type(segment)),
        ("seg_tags", segment.tags.join(",")),
    ];
    let first = |name: &LvName| format!("{name}(0)");
    match &segment.kind {
        SegmentKind::Striped(striped) => fields.extend([
            ("stripes", striped.areas.len().to_string()),
            ("stripe_size", size(striped.stripe_size)),
            ("devices", areas(vg, &striped.areas)),
            ("seg_pe_ranges", ranges(vg, segment)),
            // The store of a classic snapshot shows the snapshot's chunk size.
            ("chunk_size", size(vg.snapshot_with_store(&lv.name).map(|tie| tie.chunk_size))),
        ]),
        SegmentKind::Mirror(mirror) => fields.extend([
            ("stripes", mirror.areas.len().to_string()),
            ("region_size", size(mirror.region_size)),
            ("devices", areas(vg, &mirror.areas)),
        ]),
        SegmentKind::Raid(raid) => fields.extend(raid_fields(raid, segment, first)),
        SegmentKind::ThinPool(pool) => fields.extend(pool_fields(vg, lv, pool, first)),
        SegmentKind::Thin(thin) => fields.extend([
            ("thin_id", thin.device_id.to_string()),
            ("transaction_id", thin.transaction_id.to_string()),
        ]),
        SegmentKind::Cache(cache) => {
            fields.extend(cache_fields(vg, cache));
            fields.push(("devices", first(&cache.origin)));
        }
        SegmentKind::CachePool(pool) => {
            fields.extend(settings_fields(&pool.settings));
            fields.push(("devices", first(&pool.data)));
        }
        SegmentKind::Writecache(cache) => fields.push(("devices", first(&cache.origin))),
        SegmentKind::Integrity(integrity) => fields.push(("devices", first(&integrity.origin))),
        _ => {}
    }
    fields
}

fn has_metadata_legs(raid: &Raid) -> bool {
    raid.legs.iter().any(|leg| leg.meta.is_some())
}

fn segment_type(segment: &Segment) -> String {
    let name = match &segment.kind {
        SegmentKind::Striped(striped) if striped.areas.len() == 1 => "linear",
        SegmentKind::Striped(_) => "striped",
        SegmentKind::Mirror(_) => "mirror",
        SegmentKind::Raid(raid) if raid.level == RaidLevel::Raid0 && has_metadata_legs(raid) => "raid0_meta",
        SegmentKind::Raid(raid) => return raid.level.to_string(),
        SegmentKind::ThinPool(_) => "thin-pool",
        SegmentKind::Thin(_) => "thin",
        SegmentKind::Cache(_) => "cache",
        SegmentKind::CachePool(_) => "cache-pool",
        SegmentKind::Writecache(_) => "writecache",
        SegmentKind::Integrity(_) => "integrity",
        SegmentKind::Error => "error",
        SegmentKind::Zero => "zero",
        SegmentKind::Unknown { name, .. } => name,
        other => return format!("{other:?}"),
    };
    name.to_owned()
}

fn raid_fields(raid: &Raid, segment: &Segment, first: impl Fn(&LvName) -> String) -> Fields {
    let data: Vec<_> = raid.legs.iter().map(|leg| first(&leg.data)).collect();
    let meta: Vec<_> = raid.legs.iter().filter_map(|leg| leg.meta.as_ref()).map(first).collect();
    // Told for the levels that can be reshaped, also where there is no reshape space.
    let reshape = match raid.level {
        RaidLevel::Raid0 | RaidLevel::Raid1 => String::new(),
        _ => segment.reshape_len.get().to_string(),
    };
    vec![
        ("stripes", raid.legs.len().to_string()),
        ("stripe_size", size(raid.stripe_size)),
        ("region_size", size(raid.region_size)),
        ("devices", data.join(",")),
        ("metadata_devices", meta.join(",")),
        ("reshape_len_le", reshape),
    ]
}

fn pool_fields(vg: &Vg, lv: &Lv, pool: &ThinPool, first: impl Fn(&LvName) -> String) -> Fields {
    let discards = match pool.discards {
        Some(Discards::Passdown) => "passdown",
        Some(Discards::NoPassdown) => "nopassdown",
        _ => "ignore",
    };
    vec![
        ("chunk_size", size(Some(pool.chunk_size))),
        ("transaction_id", pool.transaction_id.to_string()),
        ("discards", discards.to_owned()),
        ("zero", if pool.zero_new_blocks { "zero" } else { "" }.to_owned()),
        ("thin_count", vg.thins_of(&lv.name).count().to_string()),
        ("devices", first(&pool.data)),
    ]
}

/// A volume's name, in brackets when it is hidden.
pub(super) fn marked(vg: &Vg, name: &LvName) -> String {
    let hidden = vg.lv(name.as_str()).is_some_and(|lv| !vg.is_visible(lv));
    if hidden { format!("[{name}]") } else { name.to_string() }
}

fn device(vg: &Vg, area: &Area) -> (String, u64) {
    match area {
        Area::Pv { pv, start } => {
            let device = vg.pv(*pv).and_then(|pv| pv.device.as_ref());
            let path = device.map(|device| device.path.display().to_string());
            (path.unwrap_or_else(|| "[unknown]".to_owned()), start.get())
        }
        Area::Lv { lv, start } => (lv.to_string(), start.get()),
    }
}

fn areas(vg: &Vg, areas: &[Area]) -> String {
    let printed = areas.iter().map(|area| device(vg, area)).map(|(name, start)| format!("{name}({start})"));
    printed.collect::<Vec<_>>().join(",")
}

fn ranges(vg: &Vg, segment: &Segment) -> String {
    let len = segment.area_len().map_or(0, lvm::Extents::get);
    let printed = segment.areas().iter().map(|area| device(vg, area));
    let printed = printed.map(|(name, start)| format!("{name}:{start}-{}", start + len - 1));
    printed.collect::<Vec<_>>().join(" ")
}

/// A cached volume shows what its pool sets, or what it sets itself.
fn cache_fields(vg: &Vg, cache: &Cache) -> Fields {
    match vg.lv(cache.cache.as_str()).and_then(Lv::kind) {
        Some(SegmentKind::CachePool(pool)) => settings_fields(&pool.settings),
        _ => settings_fields(&cache.settings),
    }
}

fn settings_fields(settings: &CacheSettings) -> Fields {
    let mode = match &settings.mode {
        None => "",
        Some(CacheMode::Writeback) => "writeback",
        Some(CacheMode::Passthrough) => "passthrough",
        Some(_) => "writethrough",
    };
    let word = |(key, node): (&str, &Node)| match node {
        Node::Value(Value::Int(number)) => format!("{key}={number}"),
        other => format!("{key}={other:?}"),
    };
    let policy_settings = settings.policy_settings.as_ref().map(Section::iter);
    let policy_settings = policy_settings.map(|entries| entries.map(word).collect::<Vec<_>>().join(","));
    vec![
        ("chunk_size", size(settings.chunk_size)),
        ("cache_mode", mode.to_owned()),
        ("cache_policy", settings.policy.clone().unwrap_or_default().into()),
        ("cache_settings", policy_settings.unwrap_or_default()),
        (
            "cache_metadata_format",
            settings.metadata_format.map_or(String::new(), |format| format.to_string()),
        ),
    ]
}

/// How a volume is tied to others.
pub(super) fn relations(vg: &Vg, lv: &Lv) -> Fields {
    let (mut origin, mut pool, mut data, mut metadata) = (None, None, None, None);
    match lv.kind() {
        Some(SegmentKind::Thin(thin)) => {
            origin = thin.origin.as_ref().or(thin.external_origin.as_ref());
            pool = Some(&thin.pool);
        }
        Some(SegmentKind::ThinPool(thin_pool)) => {
            data = Some(&thin_pool.data);
            metadata = Some(&thin_pool.metadata);
        }
        Some(SegmentKind::Cache(cache)) => {
            origin = Some(&cache.origin);
            pool = Some(&cache.cache);
        }
        Some(SegmentKind::CachePool(cache_pool)) => {
            data = Some(&cache_pool.data);
            metadata = Some(&cache_pool.metadata);
        }
        Some(SegmentKind::Writecache(cache)) => {
            origin = Some(&cache.origin);
            pool = Some(&cache.cache);
        }
        Some(SegmentKind::Integrity(integrity)) => origin = Some(&integrity.origin),
        _ => origin = vg.snapshot_with_store(&lv.name).map(|tie| &tie.origin),
    }
    let named = |name: Option<&LvName>| name.map(|name| marked(vg, name)).unwrap_or_default();
    let mut fields = vec![
        ("origin", named(origin)),
        ("pool_lv", named(pool)),
        ("data_lv", named(data)),
        ("metadata_lv", named(metadata)),
    ];
    if lv.as_thin_pool().is_some() {
        let full = if lv.has(&LvFlag::ErrorWhenFull) { "error" } else { "queue" };
        fields.push(("lv_when_full", full.to_owned()));
    }
    if let Some(raid) = lv.as_raid() {
        let number = |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
        fields.push(("raid_write_behind", number(raid.write_behind)));
        fields.push(("raid_min_recovery_rate", number(raid.min_recovery_rate)));
        fields.push(("raid_max_recovery_rate", number(raid.max_recovery_rate)));
    }
    fields
}
