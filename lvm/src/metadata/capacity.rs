//! What still fits into a group: the largest volume of a layout, and room for metadata.

use devices::Bytes;

use super::area::text_max;
use super::{AllocationPolicy, MetadataArea, Usage, Vg, VgFlag};
use crate::ops::Layout;
use crate::{ExtentSize, Extents};

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

    /// The largest volume of this layout that LVM can make now: its data, without parity, copies and RAID metadata.
    ///
    /// Zero where the group [takes no volumes](Vg::takes_volumes) or has fewer PVs with free extents than the layout has legs. The
    /// number is exact for the allocation policies `normal`, `contiguous` and `cling` (by following LVM's own choices), and
    /// a multiple of the layout's stripes. For RAID 1 it is an upper bound where a leg would have to span several PVs: LVM
    /// then makes less, and says so when it is asked.
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
}

impl Usage {
    /// As [`Vg::largest`], for a usage that is at hand.
    #[must_use]
    pub fn largest(&self, vg: &Vg, layout: Layout) -> Extents {
        if !vg.takes_volumes() {
            return Extents::ZERO;
        }
        let allocatable = vg.pvs.iter().filter(|pv| pv.is_allocatable());
        let free = allocatable.map(|pv| {
            let mut runs: Vec<u64> =
                self.free_ranges(pv.uuid).iter().map(|range| range.end.get() - range.start.get()).collect();
            runs.sort_unstable();
            runs
        });
        let rows = rows(free.collect(), layout.legs() as usize, &vg.allocation_policy);
        let metadata = if layout.is_raid() { rmeta_extents(rows, vg.extent_size) } else { 0 };
        Extents::new(rows.saturating_sub(metadata).saturating_mul(u64::from(layout.data_stripes())))
    }
}

/// Extents of the metadata volume of a RAID leg of so many extents (LVM's `raid_rmeta_extents`).
fn rmeta_extents(leg: u64, extent_size: ExtentSize) -> u64 {
    let extent = extent_size.bytes().get();
    let regions = (leg.saturating_mul(extent) / REGION_SIZE).min(REGIONS_MAX);
    let bytes = 2 * 4096 + regions.div_ceil(8);
    bytes.div_ceil(extent)
}

/// How long `legs` parallel legs can become, each extent of them on a PV of its own, as LVM allocates them: in each
/// step the longest free run of each PV, and of these the `legs` longest, to the length of the shortest.
///
/// `free` holds the free runs of each PV, ascending.
fn rows(mut free: Vec<Vec<u64>>, legs: usize, policy: &AllocationPolicy) -> u64 {
    let mut rows = 0;
    loop {
        let longest = |pv: &usize| free.get(*pv).and_then(|runs| runs.last()).copied().unwrap_or(0);
        let mut order: Vec<usize> = (0..free.len()).collect();
        order.sort_by_key(|pv| std::cmp::Reverse(longest(pv)));
        order.truncate(legs);
        let length = order.iter().map(longest).min().unwrap_or(0);
        if order.len() < legs || length == 0 {
            return rows;
        }
        rows += length;
        match policy {
            AllocationPolicy::Contiguous => return rows,
            // What follows must lie on the PVs of the first step.
            AllocationPolicy::Cling | AllocationPolicy::ClingByTags => {
                for (pv, runs) in free.iter_mut().enumerate() {
                    if !order.contains(&pv) {
                        runs.clear();
                    }
                }
            }
            _ => {}
        }
        for pv in order {
            if let Some(runs) = free.get_mut(pv)
                && let Some(run) = runs.pop()
                && run > length
            {
                let rest = run - length;
                let at = runs.partition_point(|other| *other < rest);
                runs.insert(at, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_longest_runs() {
        let normal = &AllocationPolicy::Normal;
        assert_eq!(rows(vec![vec![3, 5], vec![2]], 1, normal), 10);
        assert_eq!(rows(vec![vec![3, 5], vec![2]], 1, &AllocationPolicy::Contiguous), 5);
        assert_eq!(rows(vec![vec![10], vec![5], vec![5]], 2, normal), 10);
        assert_eq!(rows(vec![vec![10], vec![5]], 3, normal), 0);
        assert_eq!(rows(vec![], 1, normal), 0);
    }

    #[test]
    fn raid_metadata_is_one_extent_unless_extents_are_small() {
        let size = |kib: u64| ExtentSize::new(devices::Sectors::new(kib * 2)).unwrap();
        assert_eq!(rmeta_extents(1, size(4096)), 1);
        assert_eq!(rmeta_extents(1 << 30, size(4096)), 1);
        // 64 GiB in regions of 2 MiB: 32,768 bits are 4 KiB, and the superblocks 8.
        assert_eq!(rmeta_extents(64 << 20, size(1)), 12);
    }
}
