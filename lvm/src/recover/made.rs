//! What a range of a device is made of, as far as that says where its data lie.
//!
//! Tuning (regions, policies, water marks) is left out: a table that differs only there serves the same data.

use std::fmt;

use devices::{DeviceNumber, Sectors};

use crate::dm::{Place, SnapshotTable, Target};

/// What a range is made of; `D` tells devices and places in them, in metadata's terms or in the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made<D> {
    Linear(D),
    Striped {
        chunk: Sectors,
        stripes: Vec<D>,
    },
    Mirror(Vec<D>),
    Raid {
        level: String,
        chunk: Sectors,
        legs: Vec<Leg<D>>,
    },
    ThinPool {
        metadata: D,
        data: D,
        chunk: Sectors,
    },
    Thin {
        pool: D,
        id: u32,
        external_origin: Option<D>,
    },
    SnapshotOrigin(D),
    Snapshot {
        origin: D,
        store: D,
        chunk: Sectors,
    },
    SnapshotMerge {
        origin: D,
        store: D,
        chunk: Sectors,
    },
    Cache {
        metadata: D,
        cache: D,
        origin: D,
        chunk: Sectors,
    },
    Writecache {
        origin: D,
        cache: D,
    },
    Integrity {
        data: D,
        checksums: Option<D>,
    },
    Error,
    Zero,
    /// A target that is never expected, by its name.
    Other(String),
}

/// A leg of a RAID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leg<D> {
    pub(super) metadata: Option<D>,
    pub(super) data: Option<D>,
}

/// A place in the kernel's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) device: DeviceNumber,
    pub(super) start: Sectors,
}

impl<D> Made<D> {
    /// The same with each place replaced, always in the same order.
    pub(super) fn map<E>(&self, mut to: impl FnMut(&D) -> E) -> Made<E> {
        match self {
            Self::Linear(place) => Made::Linear(to(place)),
            Self::Striped { chunk, stripes } => {
                Made::Striped { chunk: *chunk, stripes: stripes.iter().map(to).collect() }
            }
            Self::Mirror(legs) => Made::Mirror(legs.iter().map(to).collect()),
            Self::Raid { level, chunk, legs } => {
                let leg = |leg: &Leg<D>| Leg {
                    metadata: leg.metadata.as_ref().map(&mut to),
                    data: leg.data.as_ref().map(&mut to),
                };
                Made::Raid { level: level.clone(), chunk: *chunk, legs: legs.iter().map(leg).collect() }
            }
            Self::ThinPool { metadata, data, chunk } => {
                Made::ThinPool { metadata: to(metadata), data: to(data), chunk: *chunk }
            }
            Self::Thin { pool, id, external_origin } => {
                Made::Thin { pool: to(pool), id: *id, external_origin: external_origin.as_ref().map(to) }
            }
            Self::SnapshotOrigin(device) => Made::SnapshotOrigin(to(device)),
            Self::Snapshot { origin, store, chunk } => {
                Made::Snapshot { origin: to(origin), store: to(store), chunk: *chunk }
            }
            Self::SnapshotMerge { origin, store, chunk } => {
                Made::SnapshotMerge { origin: to(origin), store: to(store), chunk: *chunk }
            }
            Self::Cache { metadata, cache, origin, chunk } => {
                Made::Cache { metadata: to(metadata), cache: to(cache), origin: to(origin), chunk: *chunk }
            }
            Self::Writecache { origin, cache } => Made::Writecache { origin: to(origin), cache: to(cache) },
            Self::Integrity { data, checksums } => {
                Made::Integrity { data: to(data), checksums: checksums.as_ref().map(to) }
            }
            Self::Error => Made::Error,
            Self::Zero => Made::Zero,
            Self::Other(kind) => Made::Other(kind.clone()),
        }
    }

    /// Every place, in the order of [`Made::map`].
    pub(super) fn places(&self) -> Vec<D>
    where
        D: Clone,
    {
        let mut places = Vec::new();
        self.map(|place| places.push(place.clone()));
        places
    }
}

impl Made<Option<Spot>> {
    /// Whether the kernel's `live` serves the same data; a place that is `None` stands for any.
    pub(super) fn fits(&self, live: &Made<Spot>) -> bool {
        let same = |want: &Option<Spot>, have: &Spot| want.is_none_or(|want| want == *have);
        if let (
            Self::Raid { level, chunk, legs },
            Made::Raid { level: live_level, chunk: live_chunk, legs: live_legs },
        ) = (self, live)
        {
            // A leg that may be anything may also be left out of the table.
            let device = |want: &Option<Option<Spot>>, have: &Option<Spot>| match (want, have) {
                (Some(want), Some(have)) => same(want, have),
                (Some(want), None) => want.is_none(),
                (None, have) => have.is_none(),
            };
            let leg = |(want, have): (&Leg<Option<Spot>>, &Leg<Spot>)| {
                device(&want.metadata, &have.metadata) && device(&want.data, &have.data)
            };
            return level == live_level
                && chunk == live_chunk
                && legs.len() == live_legs.len()
                && legs.iter().zip(live_legs).all(leg);
        }
        let alike = self.map(|_| ()) == live.map(|_| ());
        alike && self.places().iter().zip(live.places()).all(|(want, have)| same(want, &have))
    }
}

impl From<&Target> for Made<Spot> {
    fn from(target: &Target) -> Self {
        match target {
            Target::Linear(place) => Self::Linear(spot(place)),
            Target::Striped { chunk, stripes } => {
                Self::Striped { chunk: *chunk, stripes: stripes.iter().map(spot).collect() }
            }
            Target::Mirror { legs, .. } => Self::Mirror(legs.iter().map(spot).collect()),
            Target::Raid { level, parameters, legs } => Self::Raid {
                level: plain_level(level).to_owned(),
                chunk: Sectors::new(parameters.first().and_then(|chunk| chunk.parse().ok()).unwrap_or(0)),
                legs: legs
                    .iter()
                    .map(|leg| Leg { metadata: leg.metadata.map(whole), data: leg.data.map(whole) })
                    .collect(),
            },
            Target::ThinPool(pool) => {
                Self::ThinPool { metadata: whole(pool.metadata), data: whole(pool.data), chunk: pool.block }
            }
            Target::Thin { pool, id, external_origin } => {
                Self::Thin { pool: whole(*pool), id: *id, external_origin: external_origin.map(whole) }
            }
            Target::SnapshotOrigin { device } => Self::SnapshotOrigin(whole(*device)),
            Target::Snapshot(SnapshotTable { origin, cow, chunk, .. }) => {
                Self::Snapshot { origin: whole(*origin), store: whole(*cow), chunk: *chunk }
            }
            Target::SnapshotMerge(SnapshotTable { origin, cow, chunk, .. }) => {
                Self::SnapshotMerge { origin: whole(*origin), store: whole(*cow), chunk: *chunk }
            }
            Target::Cache(cache) => Self::Cache {
                metadata: whole(cache.metadata),
                cache: whole(cache.cache),
                origin: whole(cache.origin),
                chunk: cache.block,
            },
            Target::Writecache { origin, cache, .. } => {
                Self::Writecache { origin: whole(*origin), cache: whole(*cache) }
            }
            Target::Error => Self::Error,
            Target::Zero => Self::Zero,
            Target::Other { kind, text } => {
                integrity(kind, text).unwrap_or_else(|| Self::Other(kind.clone()))
            }
            Target::Crypt { .. } => Self::Other("crypt".to_owned()),
        }
    }
}

fn spot(place: &Place) -> Spot {
    Spot { device: place.device, start: place.start }
}

fn whole(device: DeviceNumber) -> Spot {
    Spot { device, start: Sectors::ZERO }
}

/// `<device> <start> <tag size> <mode> <count> …`, with `meta_device:<device>` among the counted words where the
/// checksums lie apart (Documentation/admin-guide/device-mapper/dm-integrity.rst).
fn integrity(kind: &str, text: &str) -> Option<Made<Spot>> {
    if kind != "integrity" {
        return None;
    }
    let mut words = text.split_whitespace();
    let data = Spot { device: words.next()?.parse().ok()?, start: Sectors::new(words.next()?.parse().ok()?) };
    let apart = words.find_map(|word| word.strip_prefix("meta_device:"));
    let checksums = match apart {
        Some(device) => Some(whole(device.parse().ok()?)),
        None => None,
    };
    Some(Made::Integrity { data, checksums })
}

/// A level that has two names under one of them.
pub(super) fn plain_level(level: &str) -> &str {
    match level {
        "raid0_meta" => "raid0",
        "raid5" => "raid5_ls",
        "raid6" => "raid6_zr",
        "raid10_near" => "raid10",
        other => other,
    }
}

/// For people: the target, its places, and what else is compared.
impl<D: fmt::Display + Clone> fmt::Display for Made<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear(_) => f.write_str("linear")?,
            Self::Striped { chunk, .. } => write!(f, "striped with chunks of {chunk}")?,
            Self::Mirror(_) => f.write_str("mirror")?,
            Self::Raid { level, .. } => f.write_str(level)?,
            Self::ThinPool { chunk, .. } => write!(f, "thin-pool with chunks of {chunk}")?,
            Self::Thin { id, .. } => write!(f, "thin {id}")?,
            Self::SnapshotOrigin(_) => f.write_str("snapshot-origin")?,
            Self::Snapshot { chunk, .. } => write!(f, "snapshot with chunks of {chunk}")?,
            Self::SnapshotMerge { chunk, .. } => write!(f, "snapshot-merge with chunks of {chunk}")?,
            Self::Cache { chunk, .. } => write!(f, "cache with chunks of {chunk}")?,
            Self::Writecache { .. } => f.write_str("writecache")?,
            Self::Integrity { .. } => f.write_str("integrity")?,
            Self::Error => f.write_str("error")?,
            Self::Zero => f.write_str("zero")?,
            Self::Other(kind) => f.write_str(kind)?,
        }
        let places: Vec<String> = self.places().iter().map(D::to_string).collect();
        if places.is_empty() { Ok(()) } else { write!(f, " on {}", places.join(", ")) }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device.fmt(f)?;
        if self.start == Sectors::ZERO { Ok(()) } else { write!(f, " at {}", self.start.get()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(kind: &str, text: &str) -> Made<Spot> {
        Made::from(&Target::parse(kind, text).unwrap())
    }

    fn wanted(kind: &str, text: &str) -> Made<Option<Spot>> {
        live(kind, text).map(|spot| Some(*spot))
    }

    #[test]
    fn tuning_does_not_count_and_places_do() {
        for (kind, text, alike, other) in [
            ("linear", "8:0 2048", "8:0 2048", "8:0 2056"),
            ("striped", "2 128 8:0 2048 8:16 0", "2 128 8:0 2048 8:16 0", "2 128 8:16 0 8:0 2048"),
            (
                "thin-pool",
                "253:1 253:2 128 0 0",
                "253:1 253:2 128 99 1 error_if_no_space",
                "253:1 253:2 256 0 0",
            ),
            ("thin", "253:1 7", "253:1 7", "253:1 8"),
            ("snapshot", "253:1 253:2 P 8", "253:1 253:2 PO 8", "253:2 253:1 P 8"),
            (
                "raid",
                "raid1 3 0 region_size 1024 2 253:1 253:2 253:3 253:4",
                "raid1 5 0 region_size 4096 rebuild 1 2 253:1 253:2 253:3 253:4",
                "raid1 3 0 region_size 1024 2 253:1 253:2 - -",
            ),
            (
                "cache",
                "253:1 253:2 253:3 128 1 writethrough smq 0",
                "253:1 253:2 253:3 128 1 writeback mq 0",
                "253:1 253:3 253:2 128 1 writethrough smq 0",
            ),
            (
                "integrity",
                "253:1 0 4 B 3 block_size:512 internal_hash:crc32c meta_device:253:2",
                "253:1 0 4 J 2 internal_hash:crc32c meta_device:253:2",
                "253:1 0 4 B 1 internal_hash:crc32c",
            ),
        ] {
            let want = wanted(kind, text);
            assert!(want.fits(&live(kind, alike)), "{kind} {alike}");
            assert!(!want.fits(&live(kind, other)), "{kind} {other}");
            assert!(!want.fits(&Made::Error), "{kind}");
        }
    }

    #[test]
    fn what_is_missing_may_be_anything() {
        let line = "raid1 3 0 region_size 1024 2 253:1 253:2 253:3 253:4";
        let Made::Raid { level, chunk, mut legs } = wanted("raid", line) else { panic!() };
        legs[1] = Leg { metadata: Some(None), data: Some(None) };
        let want = Made::Raid { level, chunk, legs };
        assert!(want.fits(&live("raid", line)));
        assert!(want.fits(&live("raid", "raid1 3 0 region_size 1024 2 253:1 253:2 - -")));
        assert!(!want.fits(&live("raid", "raid1 3 0 region_size 1024 2 - - 253:3 253:4")));
        assert!(Made::Linear(None).fits(&live("linear", "253:9 0")));
    }
}
