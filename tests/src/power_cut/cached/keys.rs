//! Keys of the tree and the journal, which of them are out of date, and what they say when all are put together.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// A key: where it ends, how long it is, and where the data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) high: u64,
    pub(super) end: u64,
    pub(super) pointer: Option<u64>,
}

impl Key {
    pub(super) fn inode(&self) -> u64 {
        self.high & 0xf_ffff
    }

    fn length(&self) -> u64 {
        (self.high >> 20) & 0xffff
    }

    fn is_dirty(&self) -> bool {
        self.high >> 36 & 1 == 1
    }

    /// What it points to.
    pub(super) fn place(&self) -> Option<Place> {
        self.pointer.map(|pointer| Place {
            sector: (pointer >> 8) & ((1 << 43) - 1),
            generation: pointer.to_le_bytes()[0],
        })
    }

    /// Whether it says anything about these sectors of the backing device.
    fn touches(&self, start: u64, end: u64) -> bool {
        self.inode() == 0 && self.end > start && self.end.saturating_sub(self.length()) < end
    }
}

/// A sector of the cache, and how often its bucket had been used when the key was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) sector: u64,
    generation: u8,
}

impl Place {
    fn moved(self, by: u64) -> Self {
        Self { sector: self.sector + by, ..self }
    }
}

/// Keys one after the other: two words, then as many pointers as the first word says.
pub(super) fn keys(bytes: &[u8]) -> Result<Vec<Key>> {
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at * 8..)?.first_chunk()?));
    let mut rest = bytes;
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (high, end) = word(rest, 0).zip(word(rest, 1)).context("a key is cut short")?;
        let pointers = usize::try_from((high >> 60) & 7)?;
        let pointer = if pointers == 0 { None } else { Some(word(rest, 2).context("a key is cut short")?) };
        keys.push(Key { high, end, pointer });
        rest = rest.get((2 + pointers) * 8..).context("a key is cut short")?;
    }
    Ok(keys)
}

/// How often each bucket was used, modulo 256. A key that was made when its bucket had been used less often is out of date:
/// the bucket holds something else by now, and the kernel looks for the data on the backing device (extents.c,
/// `bch_extent_bad`). Such keys are nothing unusual: a key of data that was written back is made clean in the tree alone,
/// and a start replays the older, dirty one from the journal.
#[derive(Debug)]
pub(super) struct Generations {
    /// Sectors of a bucket.
    bucket: u64,
    of: Vec<u8>,
}

impl Generations {
    /// Those that the set has written down, for buckets of so many sectors.
    pub(super) fn new(bucket: u64, of: Vec<u8>) -> Self {
        Self { bucket, of }
    }

    fn bucket(&self, place: Place) -> usize {
        usize::try_from(place.sector / self.bucket).unwrap_or(usize::MAX)
    }

    /// A key in use may be newer than what was written down (btree.c, `bch_initial_mark_key`).
    pub(super) fn see(&mut self, place: Place) {
        let (bucket, is_stale) = (self.bucket(place), self.is_stale(place));
        if let Some(generation) = self.of.get_mut(bucket).filter(|_| !is_stale) {
            *generation = place.generation;
        }
    }

    pub(super) fn is_stale(&self, place: Place) -> bool {
        // The numbers go round: what is ahead by more than a half is behind (bcache.h, `gen_after`).
        let ahead = |generation: &u8| generation.wrapping_sub(place.generation);
        self.of.get(self.bucket(place)).map(ahead).is_some_and(|ahead| (1..=128).contains(&ahead))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) end: u64,
    pub(super) place: Option<Place>,
    pub(super) dirty: bool,
}

/// Stretches that do not overlap, by their first sector.
#[derive(Debug, Default)]
pub(super) struct Extents(pub(super) BTreeMap<u64, Extent>);

impl Extents {
    /// A newer key takes the place of what older ones say.
    pub(super) fn insert(&mut self, key: &Key) {
        let (start, end) = (key.end.saturating_sub(key.length()), key.end);
        if start == end || key.inode() != 0 {
            return;
        }
        let moved = |place: Option<Place>, by: u64| place.map(|place| place.moved(by));
        let touched: Vec<u64> =
            self.0.range(..end).rev().take_while(|(_, old)| old.end > start).map(|(at, _)| *at).collect();
        for at in touched {
            let Some(old) = self.0.remove(&at) else { continue };
            if at < start {
                self.0.insert(at, Extent { end: start, ..old });
            }
            if old.end > end {
                self.0.insert(end, Extent { place: moved(old.place, end - at), ..old });
            }
        }
        self.0.insert(start, Extent { end, place: key.place(), dirty: key.is_dirty() });
    }

    /// Lets what is out of date point nowhere; tells how many did.
    pub(super) fn drop_stale(&mut self, generations: &Generations) -> usize {
        let is_stale = |extent: &Extent| extent.place.is_some_and(|place| generations.is_stale(place));
        let stale = self.0.values_mut().filter(|extent| is_stale(extent));
        stale.map(|extent| (extent.place, extent.dirty) = (None, false)).count()
    }

    pub(super) fn dirty(&self) -> usize {
        self.0.values().filter(|extent| extent.dirty).count()
    }
}

/// All keys that were found, in the order in which they count, and where; to explain what was read.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<(String, Key)>);

impl Found {
    pub(super) fn add(&mut self, whence: &str, keys: &[Key]) {
        self.0.extend(keys.iter().map(|key| (whence.to_owned(), key.clone())));
    }

    /// What speaks of these sectors, and what else points into the same buckets.
    pub(super) fn about(&self, start: u64, end: u64, generations: &Generations) -> String {
        let places =
            self.0.iter().filter(|(_, key)| key.touches(start, end)).filter_map(|(_, key)| key.place());
        let buckets: Vec<usize> = places.map(|place| generations.bucket(place)).collect();
        let is_there =
            |key: &Key| key.place().is_some_and(|place| buckets.contains(&generations.bucket(place)));
        let told = |(whence, key): &(String, Key)| {
            let (from, length) = (key.end.saturating_sub(key.length()), key.length());
            let kind = if key.is_dirty() { "dirty" } else { "clean" };
            let to = key.place().map_or_else(
                || "nowhere".to_owned(),
                |place| {
                    let age = if generations.is_stale(place) { ", out of date" } else { "" };
                    format!(
                        "{} in bucket {} generation {}{age}",
                        place.sector,
                        generations.bucket(place),
                        place.generation
                    )
                },
            );
            format!("{whence}: inode {}, {length} sectors from {from}, {kind}, to {to}", key.inode())
        };
        let spoken = self.0.iter().filter(|(_, key)| key.touches(start, end) || is_there(key)).map(told);
        spoken.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pointer(sector: u64, generation: u8) -> u64 {
        sector << 8 | u64::from(generation)
    }

    fn key(start: u64, length: u64, pointer: Option<u64>) -> Key {
        let high = (length << 20) | (1 << 36) | (u64::from(pointer.is_some()) << 60);
        Key { high, end: start + length, pointer }
    }

    #[test]
    fn a_key_into_a_bucket_that_was_used_again_points_nowhere() {
        let mut extents = Extents::default();
        extents.insert(&key(0, 8, Some(pointer(128, 4))));
        extents.insert(&key(8, 8, Some(pointer(136, 5))));
        let mut generations = Generations::new(128, vec![0, 4]);
        assert_eq!(extents.drop_stale(&generations), 0);
        for extent in extents.0.values() {
            generations.see(extent.place.unwrap());
        }
        assert_eq!(extents.drop_stale(&generations), 1);
        assert_eq!(extents.0[&0], Extent { end: 8, place: None, dirty: false });
        assert_eq!(extents.0[&8].place, Some(Place { sector: 136, generation: 5 }));
    }

    #[test]
    fn generations_go_round() {
        let place = |generation| key(0, 1, Some(pointer(0, generation))).place().unwrap();
        let mut generations = Generations::new(128, vec![255]);
        assert!(generations.is_stale(place(254)) && !generations.is_stale(place(255)));
        generations.see(place(1));
        assert!(generations.is_stale(place(255)) && !generations.is_stale(place(1)));
        generations.see(place(254));
        assert!(!generations.is_stale(place(1)), "an older one changes nothing");
    }

    #[test]
    fn what_was_found_is_told_with_what_shares_its_bucket() {
        let mut found = Found::default();
        found.add("tree", &[key(0, 8, Some(pointer(128, 4))), key(800, 8, Some(pointer(1000, 1)))]);
        found.add("journal 7", &[key(64, 8, Some(pointer(136, 5)))]);
        let told = found.about(4, 8, &Generations::new(128, vec![0, 5, 0, 0, 0, 0, 0, 1]));
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(lines[0].starts_with("tree: ") && lines[0].ends_with("out of date"), "{told}");
        assert!(lines[1].starts_with("journal 7: ") && !lines[1].contains("out of date"), "{told}");
    }

    proptest! {
        #[test]
        fn a_newer_key_counts_wherever_it_overlaps_older_ones(
            raws in prop::collection::vec((0..60_u64, 1..20_u64, prop::option::of(100..900_u64)), 1..40),
        ) {
            let mut extents = Extents::default();
            let mut model = [None; 80];
            for (start, length, place) in raws {
                extents.insert(&key(start, length, place.map(|sector| pointer(sector, 0))));
                for sector in 0..length {
                    model[usize::try_from(start + sector).unwrap()] = place.map(|place| place + sector);
                }
            }
            let mut found = [None; 80];
            let mut last = 0;
            for (start, extent) in &extents.0 {
                prop_assert!(*start >= last && extent.end > *start);
                last = extent.end;
                for sector in *start..extent.end {
                    let place = extent.place.map(|place| place.sector + sector - start);
                    found[usize::try_from(sector).unwrap()] = place;
                }
            }
            prop_assert_eq!(found.to_vec(), model.to_vec());
        }

        #[test]
        fn any_bytes_are_keys_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = keys(&bytes);
        }
    }
}
