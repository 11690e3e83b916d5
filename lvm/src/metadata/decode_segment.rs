//! From the tree of a metadata text to typed segments, one function for each type that LVM writes.

use devices::Bytes;

use super::decode::PvKeys;
use super::fields::Fields;
use super::text::{Item, Scalar};
use super::{
    Area, Cache, CacheMode, CachePool, CacheSettings, CacheVolLayout, Defect, Discards, Integrity, Mirror,
    Raid, RaidLeg, RaidLevel, Segment, SegmentKind, Snapshot, Striped, Thin, ThinMessage, ThinPool,
    Writecache,
};
use crate::Extents;

type F<'f, 't, 'a> = &'f Fields<'t, 'a>;

/// Entries that every segment has.
const COMMON: [&str; 5] = ["start_extent", "extent_count", "reshape_count", "type", "tags"];

/// Reads one `segmentN` section.
pub(super) fn segment(fields: F<'_, '_, '_>, keys: &PvKeys) -> Result<Segment, Defect> {
    // In the order of the text, in which each is found at once.
    let start = fields.need_extents("start_extent")?;
    let len = fields.need_extents("extent_count")?;
    let reshape_len = Extents::new(fields.number("reshape_count")?.unwrap_or(0));
    let mut words = fields.need_text("type")?.split('+');
    let name = words.next().unwrap_or_default();
    let type_flags = words.map(Into::into).collect();
    let tags = fields.words("tags")?;
    Ok(Segment { start, len, reshape_len, tags, type_flags, kind: kind(name, len, fields, keys)? })
}

fn kind(name: &str, len: Extents, fields: F<'_, '_, '_>, keys: &PvKeys) -> Result<SegmentKind, Defect> {
    Ok(match name {
        "striped" | "linear" => SegmentKind::Striped(striped(len, fields, keys)?),
        "mirror" => SegmentKind::Mirror(mirror(fields, keys)?),
        "thin-pool" => SegmentKind::ThinPool(thin_pool(fields)?),
        "thin" => SegmentKind::Thin(thin(fields)?),
        "snapshot" => SegmentKind::Snapshot(snapshot(fields)?),
        "cache" => SegmentKind::Cache(Box::new(cache(fields)?)),
        "cache-pool" => SegmentKind::CachePool(cache_pool(fields)?),
        "writecache" => SegmentKind::Writecache(writecache(fields)?),
        "integrity" => SegmentKind::Integrity(integrity(fields)?),
        "error" => SegmentKind::Error,
        "zero" => SegmentKind::Zero,
        other => match raid_level(other) {
            Some(level) => SegmentKind::Raid(Box::new(raid(level, fields)?)),
            None => SegmentKind::Unknown {
                name: other.into(),
                raw: fields.cursor.to_section(|key| !COMMON.contains(&key)),
            },
        },
    })
}

/// Pairs of a name and a first extent, as `stripes` and `mirrors` have them.
fn areas(fields: F<'_, '_, '_>, key: &str, keys: &PvKeys) -> Result<Vec<Area>, Defect> {
    let area = |pair: &[Scalar<'_>]| match pair {
        [Scalar::Text(name), Scalar::Int(start)] => {
            let start = u64::try_from(*start).map_err(|_| fields.defect("an area begins before zero"))?;
            let start = Extents::new(start);
            match keys.get(&**name) {
                Some(pv) => Ok(Area::Pv { pv: *pv, start }),
                None => fields.lv_name(name).map(|lv| Area::Lv { lv, start }),
            }
        }
        _ => Err(fields.defect(format!("{key} is not a list of names and extents"))),
    };
    let pairs = fields.list(key)?.chunks(2);
    let mut areas = Vec::with_capacity(pairs.len());
    for pair in pairs {
        areas.push(area(pair)?);
    }
    Ok(areas)
}

/// The number of areas must be the number that is told beside them.
fn counted(fields: F<'_, '_, '_>, count: &str, found: usize) -> Result<(), Defect> {
    if found > 0 && fields.need_number(count)? == found as u64 {
        Ok(())
    } else {
        Err(fields.defect(format!("{count} is not the number of areas")))
    }
}

fn striped(len: Extents, fields: F<'_, '_, '_>, keys: &PvKeys) -> Result<Striped, Defect> {
    let count = fields.number("stripe_count")?;
    let stripe_size = if count == Some(1) { None } else { Some(fields.need_sectors("stripe_size")?) };
    let areas = areas(fields, "stripes", keys)?;
    if areas.is_empty() || count != Some(areas.len() as u64) {
        return Err(fields.defect("stripe_count is not the number of areas"));
    }
    if !len.get().is_multiple_of(areas.len() as u64) {
        return Err(fields.defect("extent_count is no multiple of stripe_count"));
    }
    Ok(Striped { stripe_size, areas })
}

fn mirror(fields: F<'_, '_, '_>, keys: &PvKeys) -> Result<Mirror, Defect> {
    let areas = areas(fields, "mirrors", keys)?;
    counted(fields, "mirror_count", areas.len())?;
    Ok(Mirror {
        log: fields.lv("mirror_log")?,
        region_size: fields.some_sectors("region_size")?,
        extents_moved: fields.number("extents_moved")?.map(Extents::new),
        areas,
    })
}

fn raid_level(name: &str) -> Option<RaidLevel> {
    let (level, variant) = name.split_once('_').unwrap_or((name, ""));
    match level {
        "raid0" if matches!(variant, "" | "meta") => Some(RaidLevel::Raid0),
        "raid1" if variant.is_empty() => Some(RaidLevel::Raid1),
        "raid4" if variant.is_empty() => Some(RaidLevel::Raid4),
        "raid5" => Some(RaidLevel::Raid5(variant.into())),
        "raid6" => Some(RaidLevel::Raid6(variant.into())),
        "raid10" => Some(RaidLevel::Raid10(variant.into())),
        _ => None,
    }
}

fn raid(level: RaidLevel, fields: F<'_, '_, '_>) -> Result<Raid, Defect> {
    Ok(Raid {
        level,
        legs: raid_legs(fields)?,
        stripe_size: fields.some_sectors("stripe_size")?,
        region_size: fields.some_sectors("region_size")?,
        data_copies: fields.limit("data_copies")?,
        data_offset: fields.sectors("data_offset")?,
        write_behind: fields.limit("writebehind")?,
        min_recovery_rate: fields.limit("min_recovery_rate")?,
        max_recovery_rate: fields.limit("max_recovery_rate")?,
    })
}

/// The legs: RAID 0 has keys of its own. Metadata volumes, where there are any, stand each before its data.
fn raid_legs(fields: F<'_, '_, '_>) -> Result<Vec<RaidLeg>, Defect> {
    let count = fields.number("device_count")?.map_or_else(|| fields.need_number("stripe_count"), Ok)?;
    let raids = fields.list("raids")?;
    let names = if raids.is_empty() { fields.list("raid0_lvs")? } else { raids };
    let per_leg = (names.len() as u64).checked_div(count).unwrap_or(0);
    let leg = |names: &[Scalar<'_>]| match names {
        [Scalar::Text(data)] => Ok(RaidLeg { data: fields.lv_name(data)?, meta: None }),
        [Scalar::Text(meta), Scalar::Text(data)] => {
            Ok(RaidLeg { data: fields.lv_name(data)?, meta: Some(fields.lv_name(meta)?) })
        }
        _ => Err(fields.defect("a RAID leg is not told as its metadata and data volumes")),
    };
    let legs: Vec<RaidLeg> = match per_leg {
        1 => names.chunks(1).map(leg).collect::<Result<_, _>>()?,
        2 => names.chunks(2).map(leg).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    if legs.is_empty() || legs.len() as u64 != count {
        return Err(fields.defect("the number of RAID legs is not that of their volumes"));
    }
    Ok(legs)
}

fn thin_pool(fields: F<'_, '_, '_>) -> Result<ThinPool, Defect> {
    let discards = match fields.text("discards")? {
        None => None,
        Some("ignore") => Some(Discards::Ignore),
        Some("nopassdown") => Some(Discards::NoPassdown),
        Some("passdown") => Some(Discards::Passdown),
        Some(_) => return Err(fields.defect("discards is none of ignore, nopassdown and passdown")),
    };
    Ok(ThinPool {
        metadata: fields.need_lv("metadata")?,
        data: fields.need_lv("pool")?,
        transaction_id: fields.need_number("transaction_id")?,
        chunk_size: fields.need_sectors("chunk_size")?,
        discards,
        zero_new_blocks: fields.truth("zero_new_blocks")?.unwrap_or(false),
        crop_metadata: fields.truth("crop_metadata")?,
        messages: thin_messages(fields)?,
    })
}

fn thin_messages(fields: F<'_, '_, '_>) -> Result<Vec<ThinMessage>, Defect> {
    let sections = fields.cursor.iter().filter_map(|(key, item)| match item {
        Item::Section(section) if key.starts_with("message") => Some(Fields::new(section, "message", key)),
        _ => None,
    });
    let message = |fields: Fields<'_, '_>| match fields.lv("create")? {
        Some(name) => Ok(ThinMessage::Create(name)),
        None => fields.need_small("delete").map(ThinMessage::Delete),
    };
    sections.map(message).collect()
}

fn thin(fields: F<'_, '_, '_>) -> Result<Thin, Defect> {
    Ok(Thin {
        pool: fields.need_lv("thin_pool")?,
        device_id: fields.need_small("device_id")?,
        transaction_id: fields.need_number("transaction_id")?,
        origin: fields.lv("origin")?,
        external_origin: fields.lv("external_origin")?,
        merge: fields.lv("merge")?,
    })
}

fn snapshot(fields: F<'_, '_, '_>) -> Result<Snapshot, Defect> {
    let merging = fields.lv("merging_store")?;
    Ok(Snapshot {
        origin: fields.need_lv("origin")?,
        chunk_size: fields.need_sectors("chunk_size")?,
        merging: merging.is_some(),
        cow_store: merging.map_or_else(|| fields.need_lv("cow_store"), Ok)?,
    })
}

fn cache(fields: F<'_, '_, '_>) -> Result<Cache, Defect> {
    Ok(Cache {
        cache: fields.need_lv("cache_pool")?,
        origin: fields.need_lv("origin")?,
        cleaner: fields.truth("cleaner")?.unwrap_or(false),
        settings: cache_settings(fields)?,
        cache_vol: cache_vol(fields)?,
    })
}

fn cache_vol(fields: F<'_, '_, '_>) -> Result<Option<CacheVolLayout>, Defect> {
    if fields.number("metadata_len")?.is_none() {
        return Ok(None);
    }
    Ok(Some(CacheVolLayout {
        metadata_start: fields.need_sectors("metadata_start")?,
        metadata_len: fields.need_sectors("metadata_len")?,
        data_start: fields.need_sectors("data_start")?,
        data_len: fields.need_sectors("data_len")?,
        metadata_id: fields.uuid("metadata_id")?,
        data_id: fields.uuid("data_id")?,
    }))
}

fn cache_settings(fields: F<'_, '_, '_>) -> Result<CacheSettings, Defect> {
    let mode = fields.text("cache_mode")?.map(|mode| match mode {
        "writethrough" => CacheMode::Writethrough,
        "writeback" => CacheMode::Writeback,
        "passthrough" => CacheMode::Passthrough,
        other => CacheMode::Other(other.into()),
    });
    Ok(CacheSettings {
        chunk_size: fields.some_sectors("chunk_size")?,
        mode,
        policy: fields.some_text("policy")?,
        policy_settings: fields.cursor.section("policy_settings").map(|section| section.to_section(|_| true)),
        metadata_format: fields.limit("metadata_format")?,
    })
}

fn cache_pool(fields: F<'_, '_, '_>) -> Result<CachePool, Defect> {
    Ok(CachePool {
        data: fields.need_lv("data")?,
        metadata: fields.need_lv("metadata")?,
        settings: cache_settings(fields)?,
    })
}

fn writecache(fields: F<'_, '_, '_>) -> Result<Writecache, Defect> {
    const TYPED: [&str; 3] = ["origin", "writecache", "writecache_block_size"];
    Ok(Writecache {
        origin: fields.need_lv("origin")?,
        cache: fields.need_lv("writecache")?,
        block_size: fields.number("writecache_block_size")?.map(Bytes::new),
        settings: fields.cursor.to_section(|key| !COMMON.contains(&key) && !TYPED.contains(&key)),
    })
}

fn integrity(fields: F<'_, '_, '_>) -> Result<Integrity, Defect> {
    const TYPED: [&str; 4] = ["origin", "meta_dev", "data_sectors", "mode"];
    Ok(Integrity {
        origin: fields.need_lv("origin")?,
        metadata: fields.lv("meta_dev")?,
        data_sectors: fields.sectors("data_sectors")?,
        mode: fields.some_text("mode")?,
        settings: fields.cursor.to_section(|key| !COMMON.contains(&key) && !TYPED.contains(&key)),
    })
}
