//! Which extents of the PVs are taken.

use std::ops::Range;

use super::{Area, Vg};
use crate::{Extents, Uuid};

/// The free and taken extents of every PV of a group, computed once from its volumes.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Per PV in the group's order: its uuid, its number of extents, and the taken ranges by their starts.
    pvs: Vec<(Uuid, u64, Vec<Range<u64>>)>,
}

impl Usage {
    /// Gathers what the volumes of `vg` take.
    #[must_use]
    pub fn of(vg: &Vg) -> Self {
        let mut pvs: Vec<_> = vg.pvs.iter().map(|pv| (pv.uuid, pv.pe_count.get(), Vec::new())).collect();
        for segment in vg.lvs.iter().flat_map(|lv| &lv.segments) {
            let Some(len) = segment.area_len() else { continue };
            for area in segment.areas() {
                let Area::Pv { pv, start } = area else { continue };
                if let Some((_, _, taken)) = pvs.iter_mut().find(|(uuid, ..)| uuid == pv) {
                    taken.push(start.get()..start.get().saturating_add(len.get()));
                }
            }
        }
        for (_, _, taken) in &mut pvs {
            taken.sort_unstable_by_key(|range| range.start);
        }
        Self { pvs }
    }

    /// The free stretches of a PV, in order; empty for a PV that is not in the group.
    #[must_use]
    pub fn free_ranges(&self, pv: Uuid) -> Vec<Range<Extents>> {
        let Some((_, count, taken)) = self.pvs.iter().find(|(uuid, ..)| *uuid == pv) else {
            return Vec::new();
        };
        let mut free = Vec::new();
        let mut next = 0;
        for range in taken.iter().cloned().chain(std::iter::once(*count..*count)) {
            if range.start > next {
                free.push(Extents::new(next)..Extents::new(range.start.min(*count)));
            }
            next = next.max(range.end);
        }
        free
    }

    /// How many extents of a PV are free; zero for a PV that is not in the group.
    #[must_use]
    pub fn free_on(&self, pv: Uuid) -> Extents {
        let length = |range: &Range<Extents>| range.end.get() - range.start.get();
        Extents::new(self.free_ranges(pv).iter().map(length).sum())
    }

    /// How many extents of all PVs are free, missing ones among them, as LVM's `vg_free_count` has it.
    #[must_use]
    pub fn free(&self) -> Extents {
        Extents::new(self.pvs.iter().map(|(uuid, ..)| self.free_on(*uuid).get()).sum())
    }
}

impl Vg {
    /// Which extents are taken; worth keeping when more than one question follows.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of(self)
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
