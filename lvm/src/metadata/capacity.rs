//! What still fits into a group: the largest volume of a layout, and room for metadata.

use std::collections::HashSet;
use std::ops::Range;

use devices::{Bytes, Sectors};

use super::allocate::{Allocator, Legs, Wish};
use super::area::text_max;
use super::{AllocationPolicy, MetadataArea, Pv, Usage, Vg, VgFlag};
use crate::ops::Layout;
use crate::{ExtentSize, Extents, Uuid};

/// How much a bit of a RAID bitmap covers where LVM is not told (`activation/raid_region_size`).
const REGION_SIZE: u64 = 2 << 20;
/// Most bits that the kernel takes in a RAID bitmap; LVM enlarges the region for larger volumes.
const REGIONS_MAX: u64 = 1 << 21;

/// Room in the metadata areas of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataRoom {
    /// The length of the group's text.
    pub used: Bytes,
    /// The longest text that the smallest area in use takes: the old and the new text share its ring. With a longer one
    /// LVM (2.03.16) goes on without that copy and does not fail as long as another area takes it.
    pub max: Bytes,
    /// How many volumes the text describes, internal ones among them.
    volumes: usize,
}

impl MetadataRoom {
    /// What a linear volume with a few tags takes, measured on LVM 2.03.16; for groups that have no volumes yet.
    const TYPICAL: u64 = 400;

    /// How much longer the text may become. Each command also writes its own words into it.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.max.saturating_sub(self.used)
    }

    /// About how many more volumes can be described, if they are like those that the group has.
    ///
    /// A RAID or cached volume has several internal ones and counts as many.
    #[must_use]
    pub fn more_volumes(&self) -> u64 {
        let average = self.used.get().checked_div(self.volumes as u64);
        self.free().get() / average.unwrap_or(0).max(Self::TYPICAL)
    }
}

impl Vg {
    /// Room in the metadata areas; `None` when the group has no area in use on a device that was found.
    #[must_use]
    pub fn metadata_room(&self) -> Option<MetadataRoom> {
        let devices = self.pvs.iter().filter_map(|pv| pv.device.as_ref());
        let in_use = |area: &&MetadataArea| !area.ignored && area.text.is_some();
        let areas = || devices.clone().flat_map(|device| &device.areas).filter(in_use);
        Some(MetadataRoom {
            used: areas().filter_map(|area| area.text).max()?,
            max: Bytes::new(areas().map(|area| text_max(area.size.get())).min()?),
            volumes: self.lvs.len(),
        })
    }

    /// Whether LVM would change this group: it is complete, writable, not exported, and below its limit of volumes.
    #[must_use]
    pub fn takes_volumes(&self) -> bool {
        let below_limit = self.max_lv.is_none_or(|max| (self.visible_lvs().count() as u64) < u64::from(max));
        self.is_complete() && self.has(&VgFlag::Write) && !self.has(&VgFlag::Exported) && below_limit
    }

    /// The largest volume of this layout that can be made now: its data, without parity, copies and RAID metadata.
    ///
    /// Exact, by following LVM's own choices step by step: this much can be made, and a step more cannot. (With the
    /// group's policy `anywhere`, LVM may find room for more.) Zero where the group [takes no volumes](Vg::takes_volumes).
    /// A multiple of the layout's stripes.
    ///
    /// For RAID, no two legs may share a PV. LVM itself can let the end of one leg follow the beginning of another one on the
    /// same PV, and the loss of that PV then breaks both; such a volume is not made, so it is not counted either.
    ///
    /// # Examples
    ///
    /// ```
    /// use lvm::{Extents, ops::Layout, metadata::Vg};
    ///
    /// # fn check(vg: &Vg) {
    /// let linear = vg.largest(Layout::Linear);
    /// let mirrored = vg.largest(Layout::Raid1 { copies: 2 });
    /// assert!(mirrored <= linear);
    /// # }
    /// ```
    #[must_use]
    pub fn largest(&self, layout: Layout) -> Extents {
        self.usage().largest(self, layout)
    }

    /// Extents of the group that a volume of so many extents takes: its copies, parity and RAID metadata with it.
    #[must_use]
    pub fn cost(&self, layout: Layout, volume: Extents) -> Extents {
        let leg = volume.get().div_ceil(u64::from(layout.data_stripes()));
        Extents::new(cost(layout, leg, self.extent_size))
    }

    /// The largest volume that takes no more than so many extents of the group, wherever they lie; a multiple of the
    /// layout's stripes. See [`Vg::cost`].
    #[must_use]
    pub fn within(&self, layout: Layout, budget: Extents) -> Extents {
        let leg = leg_within(layout, budget.get(), self.extent_size);
        Extents::new(leg.saturating_mul(u64::from(layout.data_stripes())))
    }
}

fn cost(layout: Layout, leg: u64, extent_size: ExtentSize) -> u64 {
    let metadata = if leg == 0 { 0 } else { rmeta_extents(layout, leg, extent_size) };
    leg.saturating_add(metadata).saturating_mul(u64::from(layout.legs()))
}

fn leg_within(layout: Layout, budget: u64, extent_size: ExtentSize) -> u64 {
    let most = budget / u64::from(layout.legs());
    // The metadata of the longest leg are enough for any shorter one, or too much by less than an extent for each.
    let mut leg = most.saturating_sub(rmeta_extents(layout, most, extent_size));
    while leg < most && cost(layout, leg + 1, extent_size) <= budget {
        leg += 1;
    }
    leg
}

impl Usage {
    /// As [`Vg::largest`], for a usage that is at hand.
    #[must_use]
    pub fn largest(&self, vg: &Vg, layout: Layout) -> Extents {
        if !vg.takes_volumes() {
            return Extents::ZERO;
        }
        let room = Room::of(self, vg, vg.pvs.iter().map(|pv| pv.uuid));
        Extents::new(room.largest(layout).saturating_mul(u64::from(layout.data_stripes())))
    }

    /// Whether a volume of so many extents can be made on these PVs, as LVM chooses among them in this order.
    #[must_use]
    pub(crate) fn fits(&self, vg: &Vg, layout: Layout, extents: Extents, on: &[Uuid]) -> bool {
        let room = Room::of(self, vg, on.iter().copied());
        room.fits(layout, extents.get().div_ceil(u64::from(layout.data_stripes())))
    }
}

/// The free runs of PVs, and what decides about them.
struct Room<'a> {
    free: Vec<Vec<u64>>,
    policy: &'a AllocationPolicy,
    extent_size: ExtentSize,
}

impl<'a> Room<'a> {
    fn of(usage: &Usage, vg: &'a Vg, on: impl Iterator<Item = Uuid>) -> Self {
        // LVM counts extents in 32 bits; so the sums here cannot overflow either.
        let length = |range: &Range<Extents>| (range.end.get() - range.start.get()).min(u32::MAX.into());
        let allocatable = |uuid: &Uuid| vg.pv(*uuid).is_some_and(Pv::is_allocatable);
        let free = on.filter(allocatable).map(|pv| usage.free_ranges(pv).iter().map(length).collect());
        Self { free: free.collect(), policy: &vg.allocation_policy, extent_size: vg.extent_size }
    }

    fn total(&self) -> u64 {
        self.free.iter().flatten().sum()
    }

    /// The longest leg, in extents of data, of which LVM makes the volume and of one more not.
    fn largest(&self, layout: Layout) -> u64 {
        if matches!((layout, self.policy), (Layout::Linear, AllocationPolicy::Normal)) {
            return self.total();
        }
        let most = self.total() / u64::from(layout.legs());
        let metadata = rmeta_extents(layout, most, self.extent_size);
        let reach = Allocator::new(&self.free, wish(layout, most.saturating_sub(metadata), metadata));
        let guess = reach.reach(self.policy).saturating_sub(metadata);
        // Nearly always the guess is it. Where it is not, it still begins the search in the right place.
        let (mut fits, mut too_much) = match (self.fits(layout, guess), self.fits(layout, guess + 1)) {
            (true, false) => return guess,
            (true, true) => (guess + 1, most + 1),
            (false, _) => (0, guess),
        };
        while fits + 1 < too_much {
            let middle = fits.midpoint(too_much);
            *if self.fits(layout, middle) { &mut fits } else { &mut too_much } = middle;
        }
        fits
    }

    /// Whether LVM finds room for legs of so many extents of data, and keeps them apart.
    fn fits(&self, layout: Layout, leg: u64) -> bool {
        if leg == 0 || leg > self.total() {
            return leg == 0;
        }
        let metadata = if layout.is_raid() { rmeta_extents(layout, leg, self.extent_size) } else { 0 };
        let legs = Allocator::new(&self.free, wish(layout, leg, metadata)).legs(self.policy);
        legs.is_some_and(|legs| !layout.is_raid() || are_apart(&legs))
    }
}

fn wish(layout: Layout, leg: u64, metadata: u64) -> Wish {
    let parity_legs = layout.parity_legs() as usize;
    let data_legs = layout.legs() as usize - parity_legs;
    Wish { data_legs, parity_legs, rows: leg.saturating_add(metadata), metadata }
}

/// Whether no PV bears more than one leg.
fn are_apart(legs: &Legs) -> bool {
    let mut seen = HashSet::new();
    legs.iter().flatten().all(|pv| seen.insert(pv))
}

/// Extents of the metadata volume of a RAID leg of so many extents of data (`_raid_rmeta_extents` and
/// `raid_ensure_min_region_size` of LVM 2.03.16).
fn rmeta_extents(layout: Layout, leg: u64, extent_size: ExtentSize) -> u64 {
    if !layout.is_raid() {
        return 0;
    }
    let extent = extent_size.bytes().get();
    let volume = leg.saturating_mul(u64::from(layout.data_stripes())).saturating_mul(extent);
    let mut region = REGION_SIZE;
    while region < volume / REGIONS_MAX {
        region *= 2;
    }
    if volume > 0 && volume < region {
        region = 1 << volume.ilog2();
    }
    // LVM takes the legs of RAID 10 for as long as all copies together.
    let copies = if let Layout::Raid10 { copies, .. } = layout { copies } else { 1 };
    let regions = leg.saturating_mul(u64::from(copies)).saturating_mul(extent) / region;
    let bytes = 2 * 4096 + regions.div_ceil(8);
    bytes.div_ceil(Sectors::SIZE).div_ceil(extent_size.sectors().get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUTS: [Layout; 7] = [
        Layout::Linear,
        Layout::Striped { stripes: 2, stripe_size: Bytes::kib(64) },
        Layout::Striped { stripes: 3, stripe_size: Bytes::kib(64) },
        Layout::Raid1 { copies: 2 },
        Layout::Raid5 { stripes: 2, stripe_size: Bytes::kib(64) },
        Layout::Raid6 { stripes: 3, stripe_size: Bytes::kib(64) },
        Layout::Raid10 { copies: 2, stripes: 2, stripe_size: Bytes::kib(64) },
    ];

    fn room(free: &[Vec<u64>], policy: &'static AllocationPolicy) -> Room<'static> {
        Room { free: free.to_vec(), policy, extent_size: ExtentSize::DEFAULT }
    }

    #[test]
    fn a_mirror_is_not_told_larger_than_its_legs_stay_apart() {
        // LVM makes a mirror of 180 extents here, with both legs on the third PV (tried on 2.03.16).
        let free = [vec![10, 112], vec![89], vec![69], vec![59], vec![49]];
        let room = room(&free, &AllocationPolicy::Normal);
        let mirror = Layout::Raid1 { copies: 2 };
        assert_eq!(
            (room.largest(mirror), room.fits(mirror, 147), room.fits(mirror, 148)),
            (147, true, false)
        );
        assert!(Allocator::new(&room.free, wish(mirror, 180, 1)).legs(room.policy).is_some());
        assert!(Allocator::new(&room.free, wish(mirror, 181, 1)).legs(room.policy).is_none());
    }

    proptest! {
        #[test]
        fn the_largest_fits_and_one_more_does_not(
            free in prop::collection::vec(prop::collection::vec(1..60_u64, 0..5), 0..8),
            layout in prop::sample::select(&LAYOUTS[..]),
        ) {
            for policy in [&AllocationPolicy::Normal, &AllocationPolicy::Cling, &AllocationPolicy::Contiguous] {
                let room = room(&free, policy);
                let largest = room.largest(layout);
                prop_assert!(room.fits(layout, largest), "{largest} is too much");
                prop_assert!(!room.fits(layout, largest + 1), "{largest} is too little");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_within_a_budget_costs_no_more_and_one_step_more_does(
            budget in 0..100_000_u64,
            layout in prop::sample::select(&LAYOUTS[..]),
            extent in prop::sample::select(&[1_u64, 4, 4096][..]),
        ) {
            let size = ExtentSize::new(Sectors::new(extent * 2)).unwrap();
            let leg = leg_within(layout, budget, size);
            prop_assert!(cost(layout, leg, size) <= budget);
            prop_assert!(cost(layout, leg + 1, size) > budget);
        }
    }

    #[test]
    fn raid_metadata_is_one_extent_unless_extents_are_small() {
        let mirror = Layout::Raid1 { copies: 2 };
        let size = |kib: u64| ExtentSize::new(Sectors::new(kib * 2)).unwrap();
        assert_eq!(rmeta_extents(mirror, 1, size(4096)), 1);
        assert_eq!(rmeta_extents(mirror, 1 << 30, size(4096)), 1);
        // 64 GiB in regions of 2 MiB: 32,768 bits are 4 KiB, and the superblocks 8.
        assert_eq!(rmeta_extents(mirror, 64 << 20, size(1)), 12);
        assert_eq!(rmeta_extents(Layout::Linear, 1, size(1)), 0);
    }
}
