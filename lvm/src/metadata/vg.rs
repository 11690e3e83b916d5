//! Volume groups and physical volumes as the metadata text has them.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::SystemTime;

use devices::{Bytes, DeviceNumber, Sectors};

use super::usage::Kept;
use super::{AllocationPolicy, Area, Lv, LvFlag, PvFlag, SegmentKind, Snapshot, VgFlag};
use crate::{ExtentSize, Extents, LvName, NameError, Tag, Uuid, VgName};

/// A volume group with all its PVs and volumes, as its newest committed metadata say.
///
/// Committed is not live: what the kernel runs at this moment is told by [`dm`](crate::dm).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vg {
    /// Its name; two groups may have the same one, so only the uuid is its identity.
    pub name: VgName,
    /// Its identity.
    pub uuid: Uuid,
    /// How many times the metadata have been committed.
    pub seqno: u64,
    /// The metadata format, `lvm2` at present.
    pub format: Option<Box<str>>,
    /// Its flags.
    pub flags: Vec<VgFlag>,
    /// Its tags in the order of the text.
    pub tags: Vec<Tag>,
    /// The host that owns it; another host must not touch it.
    pub system_id: Option<Box<str>>,
    /// How hosts lock it, when it is shared (`sanlock`, `dlm`, …).
    pub lock_type: Option<Box<str>>,
    /// What lvmlockd keeps about it.
    pub lock_args: Option<Box<str>>,
    /// Size of its extents.
    pub extent_size: ExtentSize,
    /// Most volumes it may have; `None` is no limit.
    pub max_lv: Option<u32>,
    /// Most PVs it may have; `None` is no limit.
    pub max_pv: Option<u32>,
    /// Where its volumes' extents come from, unless a volume says otherwise.
    pub allocation_policy: AllocationPolicy,
    /// The profile of lvm.conf that it is bound to.
    pub profile: Option<Box<str>>,
    /// Copies of the metadata to keep; `None` is all.
    pub metadata_copies: Option<u32>,
    /// What wrote this version of the metadata.
    pub written: Written,
    /// Its PVs in the order of the text.
    pub pvs: Vec<Pv>,
    /// Its volumes in the order of the text, internal ones among them.
    pub lvs: Vec<Lv>,
    pub(super) usage: Kept,
}

/// What a metadata text says about its own making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The command, or what a backup was made before or after.
    pub description: Option<Box<str>>,
    /// The host's name, kernel and processor.
    pub host: Option<Box<str>>,
    /// When.
    pub time: Option<SystemTime>,
}

/// A physical volume of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pv {
    /// The text's own short name for it (`pv0`); not stable.
    pub key: Box<str>,
    /// Its identity.
    pub uuid: Uuid,
    /// Where LVM last saw it; a hint for people, and absent when the PV was missing at the last commit.
    pub hint: Option<Box<str>>,
    /// The lasting identity that the devices file has for it.
    pub device_id: Option<Box<str>>,
    /// What kind of identity that is (`sys_wwid`, `loop_file`, …).
    pub device_id_type: Option<Box<str>>,
    /// The size that it had when the group last looked.
    pub dev_size: Option<Sectors>,
    /// Where its first extent begins.
    pub pe_start: Sectors,
    /// How many extents it has.
    pub pe_count: Extents,
    /// Where the space kept for a boot loader begins and how long it is, when there is any.
    pub bootloader_area: Option<(Sectors, Sectors)>,
    /// Its flags.
    pub flags: Vec<PvFlag>,
    /// Its tags in the order of the text.
    pub tags: Vec<Tag>,
    /// Where it was found; `None` when it is missing.
    pub device: Option<PvDevice>,
}

/// A device on which a PV label was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PvDevice {
    /// The path that the reader was given.
    pub path: PathBuf,
    /// The kernel's number; `None` for an image in memory or in a file.
    pub number: Option<DeviceNumber>,
    /// The size of the device now.
    pub size: Bytes,
    /// The size that the label records.
    pub label_size: Bytes,
    /// Its metadata areas.
    pub areas: Vec<MetadataArea>,
}

/// A metadata area of a PV.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataArea {
    /// Where it begins on the device.
    pub start: Bytes,
    /// Its length, with the header sector at its beginning.
    pub size: Bytes,
    /// LVM was told not to use it (`pvchange --metadataignore y`).
    pub ignored: bool,
    /// The length of the committed text in it; `None` when it holds none.
    pub text: Option<Bytes>,
}

/// A PV that belongs to no group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphanPv {
    /// Its identity.
    pub uuid: Uuid,
    /// Where it was found.
    pub device: PvDevice,
    /// The label says that a group uses it, yet no group found here does: that group's metadata are on
    /// devices that were not read.
    pub in_use_elsewhere: bool,
}

impl PvDevice {
    /// A device of which only the path and the size are known: for views put together by hand, as in the tests of
    /// programs that show them.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, size: Bytes) -> Self {
        Self { path: path.into(), number: None, size, label_size: size, areas: Vec::new() }
    }
}

impl Pv {
    /// Whether it has `flag`.
    #[must_use]
    pub fn has(&self, flag: &PvFlag) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it is unusable: its device was not found, or the group has flagged it as missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.device.is_none() || self.has(&PvFlag::Missing)
    }

    /// Whether new extents may be taken from it.
    #[must_use]
    pub fn is_allocatable(&self) -> bool {
        self.has(&PvFlag::Allocatable) && !self.is_missing()
    }
}

impl Vg {
    /// Whether it has `flag`.
    #[must_use]
    pub fn has(&self, flag: &VgFlag) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it has a tag of exactly this text.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.as_str() == tag)
    }

    /// The rest of the first tag that begins with `prefix`.
    #[must_use]
    pub fn tag_value(&self, prefix: &str) -> Option<&str> {
        self.tags.iter().find_map(|tag| tag.as_str().strip_prefix(prefix))
    }

    /// The volume of this name, internal ones among them.
    #[must_use]
    pub fn lv(&self, name: &str) -> Option<&Lv> {
        self.lvs.iter().find(|lv| lv.name.as_str() == name)
    }

    /// The volume of this identity.
    #[must_use]
    pub fn lv_by_uuid(&self, uuid: Uuid) -> Option<&Lv> {
        self.lvs.iter().find(|lv| lv.uuid == uuid)
    }

    /// The volumes with a tag of exactly this text.
    pub fn lvs_by_tag<'a>(&'a self, tag: &str) -> impl Iterator<Item = &'a Lv> {
        self.lvs.iter().filter(move |lv| lv.has_tag(tag))
    }

    /// The first volume with a tag of exactly this text.
    #[must_use]
    pub fn lv_by_tag(&self, tag: &str) -> Option<&Lv> {
        self.lvs.iter().find(|lv| lv.has_tag(tag))
    }

    /// The PV of this identity.
    #[must_use]
    pub fn pv(&self, uuid: Uuid) -> Option<&Pv> {
        self.pvs.iter().find(|pv| pv.uuid == uuid)
    }

    /// The PVs that are missing, by the group's own flag or because no device was found.
    pub fn missing_pvs(&self) -> impl Iterator<Item = &Pv> {
        self.pvs.iter().filter(|pv| pv.is_missing())
    }

    /// Whether every PV is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing_pvs().next().is_none()
    }

    /// The volumes that users see, in the order of the text.
    pub fn visible_lvs(&self) -> impl Iterator<Item = &Lv> {
        // Gathered once: to search all volumes for each of them takes long in a large group.
        let ties = self.lvs.iter().filter_map(Lv::as_snapshot).map(|tie| (&tie.cow_store, tie));
        let ties: HashMap<&LvName, &Snapshot> = ties.collect();
        self.lvs.iter().filter(move |lv| self.shows(lv, ties.get(&lv.name).copied()))
    }

    /// Whether users see this volume: LVM hides internal ones, the ties of classic snapshots, and the store of a
    /// snapshot that is being merged or whose origin is hidden.
    #[must_use]
    pub fn is_visible(&self, lv: &Lv) -> bool {
        self.shows(lv, self.snapshot_with_store(&lv.name))
    }

    /// Whether users see a volume; `tie` is that of the classic snapshot whose store it is.
    fn shows(&self, lv: &Lv, tie: Option<&Snapshot>) -> bool {
        if lv.as_snapshot().is_some() {
            return false;
        }
        match tie {
            None => !lv.is_internal(),
            Some(tie) if self.is_virtual_origin(&tie.origin) => true,
            Some(tie) => {
                !tie.merging && self.lv(tie.origin.as_str()).is_some_and(|origin| !origin.is_internal())
            }
        }
    }

    /// A snapshot of nothing: its origin is a hidden volume of zeroes.
    fn is_virtual_origin(&self, origin: &LvName) -> bool {
        let zero = |lv: &Lv| matches!(lv.kind(), Some(SegmentKind::Zero));
        origin.as_str().ends_with("_vorigin") && self.lv(origin.as_str()).is_some_and(zero)
    }

    /// The tie of the classic snapshot whose store is `name`, which is the name that users know it by.
    #[must_use]
    pub fn snapshot_with_store(&self, name: &LvName) -> Option<&Snapshot> {
        self.lvs.iter().filter_map(Lv::as_snapshot).find(|tie| tie.cow_store == *name)
    }

    /// The classic snapshots of `origin`; each one's name is its `cow_store`.
    pub fn snapshots_of<'a>(&'a self, origin: &LvName) -> impl Iterator<Item = &'a Snapshot> {
        self.lvs.iter().filter_map(Lv::as_snapshot).filter(move |tie| tie.origin == *origin)
    }

    /// The thin volumes that were cut from the thin volume `origin`.
    pub fn thin_snapshots_of<'a>(&'a self, origin: &LvName) -> impl Iterator<Item = &'a Lv> {
        self.lvs
            .iter()
            .filter(move |lv| lv.as_thin().is_some_and(|thin| thin.origin.as_ref() == Some(origin)))
    }

    /// The thin pools.
    pub fn thin_pools(&self) -> impl Iterator<Item = &Lv> {
        self.lvs.iter().filter(|lv| lv.as_thin_pool().is_some())
    }

    /// The thin volumes in `pool`, thin snapshots among them.
    pub fn thins_of<'a>(&'a self, pool: &LvName) -> impl Iterator<Item = &'a Lv> {
        self.lvs.iter().filter(move |lv| lv.as_thin().is_some_and(|thin| thin.pool == *pool))
    }

    /// The volumes that are built directly on `name`.
    pub fn users_of<'a>(&'a self, name: &LvName) -> impl Iterator<Item = &'a Lv> {
        self.lvs.iter().filter(move |lv| lv.parts().contains(&name))
    }

    /// The PVs that hold extents of this volume or of any volume that it is built on, each once.
    ///
    /// The origin of a thin snapshot and the other volumes of its pool do not count; the pool does.
    #[must_use]
    pub fn pvs_below(&self, lv: &Lv) -> Vec<Uuid> {
        let mut pvs = Vec::new();
        let mut seen: Vec<&LvName> = vec![&lv.name];
        let mut stack = vec![lv];
        while let Some(lv) = stack.pop() {
            for area in lv.segments.iter().flat_map(super::Segment::areas) {
                if let Area::Pv { pv, .. } = area
                    && !pvs.contains(pv)
                {
                    pvs.push(*pv);
                }
            }
            for part in lv.parts() {
                if !seen.contains(&part)
                    && let Some(part) = self.lv(part.as_str())
                {
                    seen.push(&part.name);
                    stack.push(part);
                }
            }
        }
        pvs
    }

    /// A PV that bears parts of several legs of a RAID volume, and breaks them all when it is lost; `None` for volumes
    /// of other kinds. LVM allocates so when legs have to span PVs.
    #[must_use]
    pub fn pv_of_several_legs(&self, lv: &Lv) -> Option<Uuid> {
        let legs = lv.as_raid().map(|raid| raid.legs.as_slice()).unwrap_or_default();
        let mut bearing = legs.iter().flat_map(|leg| {
            let parts = std::iter::once(&leg.data).chain(&leg.meta).filter_map(|part| self.lv(part.as_str()));
            parts.flat_map(|part| self.pvs_below(part)).collect::<HashSet<_>>()
        });
        let mut seen = HashSet::new();
        bearing.find(|pv| !seen.insert(*pv))
    }

    /// Whether the volume, or anything that it is built on, lies on a missing PV.
    #[must_use]
    pub fn is_partial(&self, lv: &Lv) -> bool {
        self.pvs_below(lv).into_iter().any(|pv| self.pv(pv).is_none_or(Pv::is_missing))
    }

    /// The device-mapper UUID of a volume: `LVM-`, the group's and the volume's uuid without hyphens, then `layer`
    /// (`tpool`, `real`, `cow`, …) after a hyphen where LVM adds one.
    #[must_use]
    pub fn dm_uuid(&self, lv: &Lv, layer: Option<&str>) -> String {
        let base = format!("LVM-{}{}", self.uuid.compact(), lv.uuid.compact());
        match layer {
            Some(layer) => format!("{base}-{layer}"),
            None => base,
        }
    }

    /// The device-mapper name of a volume, see [`LvName::dm_name`].
    ///
    /// # Errors
    ///
    /// [`NameError::TooLong`] above the 127 bytes that device-mapper takes.
    pub fn dm_name(&self, lv: &Lv, layer: Option<&str>) -> Result<String, NameError> {
        lv.name.dm_name(&self.name, layer)
    }

    /// All extents of all PVs, missing ones among them.
    #[must_use]
    pub fn total_extents(&self) -> Extents {
        Extents::new(self.pvs.iter().fold(0, |sum, pv| sum.saturating_add(pv.pe_count.get())))
    }

    /// The pool's spare metadata volume, which is one for the whole group.
    #[must_use]
    pub fn pool_metadata_spare(&self) -> Option<&Lv> {
        self.lvs.iter().find(|lv| lv.name.as_str().ends_with("_pmspare") && !lv.has(&LvFlag::Visible))
    }
}
