//! Logical volumes as the metadata text has them.

use std::sync::Arc;
use std::time::SystemTime;

use devices::Sectors;

use super::{LvFlag, Segment, SegmentKind};
use crate::{Extents, LvName, Tag, Uuid};

/// Where LVM looks for the extents of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllocationPolicy {
    /// New extents adjacent to the old ones.
    Contiguous,
    /// New extents on the same PVs.
    Cling,
    /// New extents on PVs with the same tags.
    ClingByTags,
    /// Common sense: parallel stripes on distinct PVs.
    Normal,
    /// Anything, also two stripes on one PV.
    Anywhere,
    /// As the group says.
    Inherit,
    /// A policy that this version of the library does not know.
    Other(Box<str>),
}

/// How far the kernel reads ahead on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadAhead {
    /// The kernel chooses.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// This far.
    Fixed(Sectors),
}

/// A logical volume, internal ones (`pool_tdata`, `db_rimage_0`) among them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lv {
    /// Its name within the group.
    pub name: LvName,
    /// Its identity within the group.
    pub uuid: Uuid,
    /// Its flags, those of the text's `status` before those of its `flags`; volumes share them.
    pub flags: Arc<[LvFlag]>,
    /// Its tags in the order of the text.
    pub tags: Vec<Tag>,
    /// When it was made.
    pub creation_time: Option<SystemTime>,
    /// Where it was made; volumes share the text.
    pub creation_host: Option<Arc<str>>,
    /// Where its extents come from.
    pub allocation_policy: AllocationPolicy,
    /// How far the kernel reads ahead.
    pub read_ahead: ReadAhead,
    /// The profile of lvm.conf that it is bound to.
    pub profile: Option<Box<str>>,
    /// What lvmlockd keeps about it.
    pub lock_args: Option<Box<str>>,
    /// The device number that it asks for, as far as it does.
    pub fixed_major: Option<u32>,
    /// The device number that it asks for, as far as it does.
    pub fixed_minor: Option<u32>,
    /// Its stretches, in order and without gaps.
    pub segments: Vec<Segment>,
}

impl Lv {
    /// Its length; [`ExtentSize::span`](crate::ExtentSize::span) of the group makes bytes of it.
    #[must_use]
    pub fn extents(&self) -> Extents {
        self.segments.last().map_or(Extents::ZERO, Segment::end)
    }

    /// Whether it has `flag`.
    #[must_use]
    pub fn has(&self, flag: &LvFlag) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it has a tag of exactly this text.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.as_str() == tag)
    }

    /// The rest of the first tag that begins with `prefix`: `gabion.dev/volume=` gives the volume's id.
    #[must_use]
    pub fn tag_value(&self, prefix: &str) -> Option<&str> {
        self.tags.iter().find_map(|tag| tag.as_str().strip_prefix(prefix))
    }

    /// Whether the text calls it visible. Internal volumes are not; see also
    /// [`Vg::is_visible`](super::Vg::is_visible), which knows the classic snapshots.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        !self.has(&LvFlag::Visible)
    }

    /// What its first segment is made of; `None` for a volume of no length.
    #[must_use]
    pub fn kind(&self) -> Option<&SegmentKind> {
        self.segments.first().map(|segment| &segment.kind)
    }

    /// The thin pool that it is.
    #[must_use]
    pub fn as_thin_pool(&self) -> Option<&super::ThinPool> {
        match self.kind() {
            Some(SegmentKind::ThinPool(pool)) => Some(pool),
            _ => None,
        }
    }

    /// The thin volume that it is.
    #[must_use]
    pub fn as_thin(&self) -> Option<&super::Thin> {
        match self.kind() {
            Some(SegmentKind::Thin(thin)) => Some(thin),
            _ => None,
        }
    }

    /// The RAID volume that it is.
    #[must_use]
    pub fn as_raid(&self) -> Option<&super::Raid> {
        match self.kind() {
            Some(SegmentKind::Raid(raid)) => Some(raid),
            _ => None,
        }
    }

    /// The tie of a classic snapshot that it is (LVM's hidden `snapshotN`).
    #[must_use]
    pub fn as_snapshot(&self) -> Option<&super::Snapshot> {
        match self.kind() {
            Some(SegmentKind::Snapshot(snapshot)) => Some(snapshot),
            _ => None,
        }
    }

    /// Every volume that it is built on, directly.
    #[must_use]
    pub fn parts(&self) -> Vec<&LvName> {
        let mut parts: Vec<&LvName> = self.segments.iter().flat_map(Segment::parts).collect();
        parts.dedup();
        parts
    }
}
