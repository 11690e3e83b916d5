//! Which extents of the PVs are free.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::{Area, Pv, Vg};
use crate::{Extents, Uuid};

/// The free extents of every PV of a group.
#[derive(Clone, Debug)]
pub struct Usage {
    pvs: Vec<PvUsage>,
}

#[derive(Clone, Debug)]
struct PvUsage {
    uuid: Uuid,
    /// In order.
    free: Vec<Range<Extents>>,
    count: u64,
}

impl Usage {
    /// Gathers what the volumes of `vg` leave free.
    #[must_use]
    pub fn of(vg: &Vg) -> Self {
        let mut taken: HashMap<Uuid, Vec<Range<u64>>> = HashMap::new();
        for segment in vg.lvs.iter().flat_map(|lv| &lv.segments) {
            let Some(len) = segment.area_len() else { continue };
            for area in segment.areas() {
                if let Area::Pv { pv, start } = area {
                    let range = start.get()..start.get().saturating_add(len.get());
                    taken.entry(*pv).or_default().push(range);
                }
            }
        }
        let of_pv = |pv: &Pv| {
            let free = gaps(taken.remove(&pv.uuid).unwrap_or_default(), pv.pe_count.get());
            let length = |range: &Range<Extents>| range.end.get() - range.start.get();
            PvUsage { uuid: pv.uuid, count: free.iter().map(length).sum(), free }
        };
        Self { pvs: vg.pvs.iter().map(of_pv).collect() }
    }

    fn pv(&self, uuid: Uuid) -> Option<&PvUsage> {
        self.pvs.iter().find(|pv| pv.uuid == uuid)
    }

    /// The free stretches of a PV, in order; empty for a PV that is not in the group.
    #[must_use]
    pub fn free_ranges(&self, pv: Uuid) -> &[Range<Extents>] {
        self.pv(pv).map(|pv| pv.free.as_slice()).unwrap_or_default()
    }

    /// How many extents of a PV are free; zero for a PV that is not in the group.
    #[must_use]
    pub fn free_on(&self, pv: Uuid) -> Extents {
        Extents::new(self.pv(pv).map_or(0, |pv| pv.count))
    }

    /// How many extents of all PVs are free, missing ones among them, as LVM's `vg_free_count` has it.
    #[must_use]
    pub fn free(&self) -> Extents {
        Extents::new(self.pvs.iter().fold(0, |sum, pv| sum.saturating_add(pv.count)))
    }
}

/// What the taken ranges leave of the extents below `count`.
fn gaps(mut taken: Vec<Range<u64>>, count: u64) -> Vec<Range<Extents>> {
    taken.sort_unstable_by_key(|range| range.start);
    let mut free = Vec::new();
    let mut next = 0;
    for range in taken.into_iter().chain(std::iter::once(count..count)) {
        if range.start > next {
            free.push(Extents::new(next)..Extents::new(range.start.min(count)));
        }
        next = next.max(range.end);
    }
    free
}

/// A usage that is gathered at the first question and kept as long as its group, which is read only.
///
/// A copy of the group, which may be changed, has none at first; two groups do not differ by it.
#[derive(Debug, Default)]
pub(super) struct Kept(OnceLock<Usage>);

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Vg {
    /// Which extents are free, as the volumes have it when this is asked first.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        self.usage.0.get_or_init(|| Usage::of(self))
    }

    /// How many extents of all PVs are free, missing ones among them, as LVM's `vg_free_count` has it.
    #[must_use]
    pub fn free_extents(&self) -> Extents {
        self.usage().free()
    }

    /// How many extents of one PV are free; zero for a PV that is not in the group.
    #[must_use]
    pub fn free_on(&self, pv: Uuid) -> Extents {
        self.usage().free_on(pv)
    }
}
