//! The devices that LVM makes of a group's committed metadata, had everything been activated.
//!
//! Names, layers and lines are those of LVM's `lib/activate/dev_manager.c`, tried against what 2.03.16 makes.

use std::fmt;

use devices::{DeviceNumber, Sectors};

use super::made::{Leg, Made, plain_level};
use crate::dm::LvmDevice;
use crate::metadata::{
    Area, Cache, Lv, LvFlag, Raid, RaidLevel, Segment, SegmentKind, Snapshot, Striped, Thin, Vg,
};
use crate::{Extents, LvName, Uuid};

/// Which of a volume's devices is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Role {
    /// The device that carries the volume's name; for most volumes the only one.
    Volume,
    /// The device under it with the volume's own extents, where LVM puts another one on top: `real`, `cow`, `tpool`.
    Beneath,
    /// The part of a volume used as a cache that holds cached blocks.
    CachedBlocks,
    /// The part of a volume used as a cache that holds the cache's metadata.
    CacheMetadata,
}

/// A device of the group, active or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) lv: Uuid,
    pub(super) role: Role,
}

/// Where data lie, in the metadata's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a PV; `device` is none for one that is missing.
    Pv { pv: Uuid, device: Option<DeviceNumber>, start: Sectors },
    /// In another device of the group, which may be any device where part of it lies on a missing PV.
    Device { key: Key, name: String, start: Sectors, replaceable: bool },
}

/// One line of an expected table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) start: Sectors,
    pub(super) len: Sectors,
    /// Any of these is right.
    pub(super) any_of: Vec<Made<Place>>,
}

/// A device that LVM makes when the volume is active.
#[derive(Clone, Debug)]
pub(super) struct ExpectedDevice {
    pub(super) key: Key,
    pub(super) name: String,
    /// Another name that it may have.
    pub(super) other_name: Option<String>,
    /// The table; `None` for layouts that are not compared.
    pub(super) lines: Option<Vec<Line>>,
}

/// All devices of a group.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    vg: &'a Vg,
    pub(super) devices: Vec<ExpectedDevice>,
}

/// Layers that only tell scanners to keep off a volume's one device.
const MARKS: [&str; 7] = ["pool", "tdata", "tmeta", "cdata", "cmeta", "cvol", "vdata"];
/// How the layer of a device begins that stands in for a missing PV.
const STAND_IN: &str = "missing_";

/// What a live device is to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This one.
    Device(Key),
    /// Stands in for a missing PV.
    StandIn,
    /// The group has no such volume.
    NoVolume,
    /// The volume is there, but has no such device.
    NoDevice,
}

impl<'a> Expected<'a> {
    pub(super) fn of(vg: &'a Vg) -> Self {
        let mut expected = Self { vg, devices: Vec::new() };
        for lv in vg.lvs.iter().filter(|lv| lv.as_snapshot().is_none()) {
            expected.add(lv);
        }
        expected
    }

    fn add(&mut self, lv: &Lv) {
        let beneath = beneath(self.vg, lv);
        let own = own_lines(self.vg, lv);
        if let Some(layer) = beneath {
            self.push(lv, Role::Volume, None, top_lines(self.vg, lv));
            self.push(lv, Role::Beneath, Some(layer), own);
        } else {
            self.push(lv, Role::Volume, None, own);
        }
        for (role, layer, place) in cache_parts(self.vg, lv) {
            let line = Line { start: Sectors::ZERO, len: place.1, any_of: vec![Made::Linear(place.0)] };
            self.push(lv, role, Some(layer), Some(vec![line]));
        }
    }

    fn push(&mut self, lv: &Lv, role: Role, layer: Option<&str>, lines: Option<Vec<Line>>) {
        // A name above device-mapper's limit cannot be active.
        if let Ok(name) = self.vg.dm_name(lv, layer) {
            // Until its first volume is made, a pool has one device, with the layer in its uuid but not in its name.
            let other_name = if layer == Some("tpool") { self.vg.dm_name(lv, None).ok() } else { None };
            self.devices.push(ExpectedDevice { key: Key { lv: lv.uuid, role }, name, other_name, lines });
        }
    }

    pub(super) fn device(&self, key: Key) -> Option<&ExpectedDevice> {
        self.devices.iter().find(|device| device.key == key)
    }

    /// What a device with LVM's uuid is to this group.
    pub(super) fn identify(&self, serves: &LvmDevice) -> Found {
        let layer = serves.layer.as_deref();
        if layer.is_some_and(|layer| layer.starts_with(STAND_IN)) {
            return Found::StandIn;
        }
        let Some(lv) = self.vg.lv_by_uuid(serves.lv) else {
            return self.cache_part(serves.lv, layer).map_or(Found::NoVolume, Found::Device);
        };
        let role = match (layer, beneath(self.vg, lv)) {
            (None | Some("pool"), Some(_)) => Some(Role::Volume),
            (Some(layer), Some(beneath)) => (layer == beneath).then_some(Role::Beneath),
            (Some("cdata"), None) if lv.has(&LvFlag::CacheVol) => Some(Role::CachedBlocks),
            (Some("cmeta"), None) if lv.has(&LvFlag::CacheVol) => Some(Role::CacheMetadata),
            // The hidden origin of a cache.
            (Some("real"), None) => (!self.vg.is_visible(lv)).then_some(Role::Volume),
            (Some(layer), None) => MARKS.contains(&layer).then_some(Role::Volume),
            (None, None) => Some(Role::Volume),
        };
        role.map(|role| Key { lv: lv.uuid, role })
            .filter(|key| self.device(*key).is_some())
            .map_or(Found::NoDevice, Found::Device)
    }

    /// The part of a cache volume that has an identity of its own.
    fn cache_part(&self, uuid: Uuid, layer: Option<&str>) -> Option<Key> {
        let (cache, layout) = self.vg.lvs.iter().find_map(|lv| {
            let SegmentKind::Cache(cache) = lv.kind()? else { return None };
            let layout = cache.cache_vol.as_ref()?;
            (layout.data_id == Some(uuid) || layout.metadata_id == Some(uuid)).then_some((cache, layout))
        })?;
        let role = match layer? {
            "cdata" if layout.data_id == Some(uuid) => Role::CachedBlocks,
            "cmeta" if layout.metadata_id == Some(uuid) => Role::CacheMetadata,
            _ => return None,
        };
        Some(Key { lv: self.vg.lv(cache.cache.as_str())?.uuid, role })
    }
}

/// The layer of the device with a volume's own extents, where another one lies on it.
fn beneath(vg: &Vg, lv: &Lv) -> Option<&'static str> {
    let is_external_origin = || {
        let shows =
            |other: &Lv| other.as_thin().is_some_and(|t| t.external_origin.as_ref() == Some(&lv.name));
        vg.lvs.iter().any(shows)
    };
    if lv.as_thin_pool().is_some() {
        Some("tpool")
    } else if vg.snapshot_with_store(&lv.name).is_some() {
        Some("cow")
    } else if vg.snapshots_of(&lv.name).next().is_some() || is_external_origin() {
        Some("real")
    } else {
        None
    }
}

fn span(vg: &Vg, extents: Extents) -> Sectors {
    Sectors::new(vg.extent_size.sectors().get().saturating_mul(extents.get()))
}

/// The place of another volume's own extents, or of the volume as users see it.
fn device(vg: &Vg, name: &LvName, role: Role, start: Sectors) -> Option<Place> {
    let lv = vg.lv(name.as_str())?;
    let layer = match role {
        Role::Volume => None,
        Role::Beneath => beneath(vg, lv),
        Role::CachedBlocks => Some("cdata"),
        Role::CacheMetadata => Some("cmeta"),
    };
    let key = Key { lv: lv.uuid, role };
    Some(Place::Device { key, name: vg.dm_name(lv, layer).ok()?, start, replaceable: vg.is_partial(lv) })
}

fn whole(vg: &Vg, name: &LvName) -> Option<Place> {
    device(vg, name, Role::Volume, Sectors::ZERO)
}

fn base(vg: &Vg, name: &LvName) -> Option<Place> {
    device(vg, name, Role::Beneath, Sectors::ZERO)
}

fn area(vg: &Vg, area: &Area) -> Option<Place> {
    match area {
        Area::Pv { pv, start } => {
            let pv = vg.pv(*pv)?;
            let number = pv.device.as_ref().filter(|_| !pv.is_missing()).and_then(|device| device.number);
            let start = pv.pe_start.checked_add(span(vg, *start))?;
            Some(Place::Pv { pv: pv.uuid, device: number, start })
        }
        Area::Lv { lv, start } => device(vg, lv, Role::Volume, span(vg, *start)),
    }
}

/// The table of the device with the volume's own extents.
fn own_lines(vg: &Vg, lv: &Lv) -> Option<Vec<Line>> {
    let line = |segment: &Segment| {
        Some(Line {
            start: span(vg, segment.start),
            len: span(vg, segment.len),
            any_of: own_made(vg, lv, segment)?,
        })
    };
    lv.segments.iter().map(line).collect()
}

fn own_made(vg: &Vg, lv: &Lv, segment: &Segment) -> Option<Vec<Made<Place>>> {
    if segment.reshape_len != Extents::ZERO {
        return None;
    }
    let one = |made| Some(vec![made]);
    match &segment.kind {
        SegmentKind::Striped(striped) => one(striped_made(vg, striped)?),
        SegmentKind::Mirror(mirror) => {
            let legs: Vec<Place> = mirror.areas.iter().map(|leg| area(vg, leg)).collect::<Option<_>>()?;
            // A move runs through one stretch after the other: those before are linear on the new place, those
            // behind on the old one.
            let plain = legs.iter().filter(|_| lv.has(&LvFlag::PvMove)).cloned().map(Made::Linear);
            let plain: Vec<_> = plain.collect();
            Some([Made::Mirror(legs)].into_iter().chain(plain).collect())
        }
        SegmentKind::Raid(raid) => one(raid_made(vg, raid)?),
        SegmentKind::ThinPool(pool) => one(Made::ThinPool {
            metadata: whole(vg, &pool.metadata)?,
            data: whole(vg, &pool.data)?,
            chunk: pool.chunk_size,
        }),
        SegmentKind::Thin(thin) => thin_made(vg, lv, thin),
        SegmentKind::Cache(cache) => one(cache_made(vg, cache)?),
        SegmentKind::Writecache(cache) => {
            one(Made::Writecache { origin: whole(vg, &cache.origin)?, cache: whole(vg, &cache.cache)? })
        }
        SegmentKind::Integrity(integrity) => one(Made::Integrity {
            data: whole(vg, &integrity.origin)?,
            checksums: match &integrity.metadata {
                Some(metadata) => Some(whole(vg, metadata)?),
                None => None,
            },
        }),
        SegmentKind::Error => one(Made::Error),
        SegmentKind::Zero => one(Made::Zero),
        SegmentKind::Snapshot(_) | SegmentKind::CachePool(_) | SegmentKind::Unknown { .. } => None,
    }
}

fn striped_made(vg: &Vg, striped: &Striped) -> Option<Made<Place>> {
    let mut stripes: Vec<Place> = striped.areas.iter().map(|part| area(vg, part)).collect::<Option<_>>()?;
    match striped.stripe_size {
        Some(chunk) if stripes.len() > 1 => Some(Made::Striped { chunk, stripes }),
        _ => stripes.pop().map(Made::Linear),
    }
}

fn raid_made(vg: &Vg, raid: &Raid) -> Option<Made<Place>> {
    let leg = |leg: &crate::metadata::RaidLeg| {
        // A leg that was split off to come back later is left out of the table.
        let split_off = vg
            .lv(leg.data.as_str())
            .is_some_and(|data| data.has(&LvFlag::Visible) && !data.has(&LvFlag::Write));
        let place = |name: &LvName| {
            let mut place = whole(vg, name)?;
            if let Place::Device { replaceable, .. } = &mut place {
                *replaceable |= split_off;
            }
            Some(place)
        };
        Some(Leg {
            data: Some(place(&leg.data)?),
            metadata: match &leg.meta {
                Some(meta) => Some(place(meta)?),
                None => None,
            },
        })
    };
    let chunk = match raid.level {
        RaidLevel::Raid1 => Sectors::ZERO,
        _ => raid.stripe_size.unwrap_or(Sectors::ZERO),
    };
    Some(Made::Raid {
        level: plain_level(&raid.level.to_string()).to_owned(),
        chunk,
        legs: raid.legs.iter().map(leg).collect::<Option<_>>()?,
    })
}

fn thin_made(vg: &Vg, lv: &Lv, thin: &Thin) -> Option<Vec<Made<Place>>> {
    let pool = base(vg, &thin.pool)?;
    let external_origin = match &thin.external_origin {
        Some(origin) => Some(base(vg, origin)?),
        None => None,
    };
    // Once a merge into this volume has begun, the snapshot's content is served under its name.
    let merging =
        vg.lvs.iter().filter_map(Lv::as_thin).filter(|other| other.merge.as_ref() == Some(&lv.name));
    let ids = std::iter::once(thin.device_id).chain(merging.map(|other| other.device_id));
    let made = |id| Made::Thin { pool: pool.clone(), id, external_origin: external_origin.clone() };
    Some(ids.map(made).collect())
}

fn cache_made(vg: &Vg, cache: &Cache) -> Option<Made<Place>> {
    let origin = whole(vg, &cache.origin)?;
    let part = vg.lv(cache.cache.as_str())?;
    if cache.cache_vol.is_some() {
        return Some(Made::Cache {
            metadata: device(vg, &part.name, Role::CacheMetadata, Sectors::ZERO)?,
            cache: device(vg, &part.name, Role::CachedBlocks, Sectors::ZERO)?,
            origin,
            chunk: cache.settings.chunk_size?,
        });
    }
    let Some(SegmentKind::CachePool(pool)) = part.kind() else { return None };
    Some(Made::Cache {
        metadata: whole(vg, &pool.metadata)?,
        cache: whole(vg, &pool.data)?,
        origin,
        chunk: pool.settings.chunk_size.or(cache.settings.chunk_size)?,
    })
}

/// The devices that divide a volume used as a cache: role, layer, and where in the volume they lie for how long.
fn cache_parts(vg: &Vg, lv: &Lv) -> Vec<(Role, &'static str, (Place, Sectors))> {
    let user = vg.lvs.iter().find_map(|user| match user.kind() {
        Some(SegmentKind::Cache(cache)) if cache.cache == lv.name => cache.cache_vol.as_ref(),
        _ => None,
    });
    let Some(layout) = user else { return Vec::new() };
    let parts = [
        (Role::CachedBlocks, "cdata", layout.data_start, layout.data_len),
        (Role::CacheMetadata, "cmeta", layout.metadata_start, layout.metadata_len),
    ];
    let part =
        |(role, layer, start, len)| Some((role, layer, (device(vg, &lv.name, Role::Volume, start)?, len)));
    parts.into_iter().filter_map(part).collect()
}

/// The table of the device that users see, where another one holds the extents.
fn top_lines(vg: &Vg, lv: &Lv) -> Option<Vec<Line>> {
    let all = |len, any_of| Some(vec![Line { start: Sectors::ZERO, len, any_of }]);
    let own_len = span(vg, lv.extents());
    if let Some((tie, len)) = tie_of_store(vg, &lv.name) {
        let snapshot = Made::Snapshot {
            origin: base(vg, &tie.origin)?,
            store: base(vg, &lv.name)?,
            chunk: tie.chunk_size,
        };
        // While it is merged, nobody may read the snapshot.
        let any_of = if tie.merging { vec![snapshot, Made::Error] } else { vec![snapshot] };
        return all(len, any_of);
    }
    let beneath = base(vg, &lv.name)?;
    let merging = vg.snapshots_of(&lv.name).find(|tie| tie.merging);
    if let Some(tie) = merging {
        let merge = Made::SnapshotMerge {
            origin: beneath.clone(),
            store: base(vg, &tie.cow_store)?,
            chunk: tie.chunk_size,
        };
        return all(own_len, vec![merge, Made::SnapshotOrigin(beneath)]);
    }
    if vg.snapshots_of(&lv.name).next().is_some() {
        return all(own_len, vec![Made::SnapshotOrigin(beneath)]);
    }
    // A thin pool or an external origin under its own name.
    all(own_len, vec![Made::Linear(beneath)])
}

/// The tie of a snapshot by its store, and how long the snapshot is.
fn tie_of_store<'a>(vg: &'a Vg, store: &LvName) -> Option<(&'a Snapshot, Sectors)> {
    let ties = vg.lvs.iter().filter_map(|lv| Some((lv.as_snapshot()?, lv.extents())));
    let (tie, extents) = ties.into_iter().find(|(tie, _)| tie.cow_store == *store)?;
    Some((tie, span(vg, extents)))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = match self {
            Self::Pv { device: Some(device), start, .. } => write!(f, "{device}").map(|()| start)?,
            Self::Pv { pv, start, .. } => write!(f, "missing PV {pv}").map(|()| start)?,
            Self::Device { name, start, .. } => f.write_str(name).map(|()| start)?,
        };
        if *start == Sectors::ZERO { Ok(()) } else { write!(f, " at {}", start.get()) }
    }
}
