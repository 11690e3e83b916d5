//! `lvcreate` for thick volumes and classic snapshots, `lvextend`, `lvremove`, `lvrename`.

use std::fmt;
use std::ops::Range;

use super::{Command, Target, Words, raid};
use crate::ops::{Content, Integrity, Layout};
use crate::{DevicePath, Extents, LvName, Tag, VgName};

/// Makes a thick volume.
#[derive(Debug)]
pub(crate) struct LvCreate<'a> {
    pub(crate) vg: &'a VgName,
    pub(crate) name: &'a LvName,
    pub(crate) extents: Extents,
    pub(crate) layout: Layout,
    pub(crate) integrity: Integrity,
    pub(crate) content: Content,
    pub(crate) tags: &'a [Tag],
    pub(crate) devices: &'a [DevicePath],
}

impl Command for LvCreate<'_> {
    fn words(&self) -> Words {
        let words = Words::yes("lvcreate");
        let words = raid::layout(words, self.layout, self.integrity).extents(self.extents);
        let words = match self.content {
            // Only an active volume can be wiped.
            Content::Wiped => {
                words.option("--activate", "y").option("--wipesignatures", "y").option("--zero", "y")
            }
            Content::Untouched => {
                words.option("--activate", "n").option("--wipesignatures", "n").option("--zero", "n")
            }
        };
        words.each("--addtag", self.tags).option("--name", self.name).operand(self.vg).operands(self.devices)
    }
}

/// Makes a classic snapshot: copy on write into space of its own.
#[derive(Debug)]
pub(crate) struct SnapshotCreate<'a> {
    pub(crate) origin: Target<'a>,
    pub(crate) name: &'a LvName,
    pub(crate) extents: Extents,
    pub(crate) tags: &'a [Tag],
    pub(crate) devices: &'a [DevicePath],
}

impl Command for SnapshotCreate<'_> {
    fn words(&self) -> Words {
        Words::yes("lvcreate")
            .option("--type", "snapshot")
            .extents(self.extents)
            .each("--addtag", self.tags)
            .option("--name", self.name)
            .operand(&self.origin)
            .operands(self.devices)
    }
}

/// Where new extents may be: on a device, or in one run of extents there (`DEVICE:FIRST-LAST`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: DevicePath,
    pub(crate) run: Option<Range<Extents>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some(run) => write!(f, "{}:{}-{}", self.device, run.start.get(), run.end.get().saturating_sub(1)),
            None => self.device.fmt(f),
        }
    }
}

/// Sets the size of a volume, upwards, in extents.
#[derive(Debug)]
pub(crate) struct LvExtend<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) extents: Extents,
    pub(crate) places: &'a [Place],
}

impl Command for LvExtend<'_> {
    fn words(&self) -> Words {
        Words::yes("lvextend").extents(self.extents).operand(&self.target).operands(self.places)
    }
}

/// Deactivates and removes one volume. An open one is refused by LVM.
#[derive(Debug)]
pub(crate) struct LvRemove<'a> {
    pub(crate) target: Target<'a>,
}

impl Command for LvRemove<'_> {
    fn words(&self) -> Words {
        Words::yes("lvremove").operand(&self.target)
    }
}

/// Gives a volume another name.
#[derive(Debug)]
pub(crate) struct LvRename<'a> {
    pub(crate) vg: &'a VgName,
    pub(crate) from: &'a LvName,
    pub(crate) to: &'a LvName,
}

impl Command for LvRename<'_> {
    fn words(&self) -> Words {
        Words::yes("lvrename").operand(self.vg).operand(self.from).operand(self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;
    use devices::Bytes;

    fn vg() -> VgName {
        VgName::new("data").unwrap()
    }

    fn lv(name: &str) -> LvName {
        LvName::existing(name).unwrap()
    }

    fn creating() -> [Tag; 1] {
        [Tag::new("gabion.dev/creating").unwrap()]
    }

    #[test]
    fn a_thick_volume_is_made_in_extents_wiped_and_tagged() {
        let (vg, name, tags) = (vg(), lv("db"), creating());
        let devices = [DevicePath::new("/dev/sda").unwrap()];
        let create = LvCreate {
            vg: &vg,
            name: &name,
            extents: Extents::new(51),
            layout: Layout::Linear,
            integrity: Integrity::None,
            content: Content::Wiped,
            tags: &tags,
            devices: &devices,
        };
        assert_eq!(
            line(&create),
            "lvcreate --yes --type linear --extents 51 --activate y --wipesignatures y --zero y \
             --addtag gabion.dev/creating --name db data /dev/sda"
        );
        let striped = LvCreate {
            layout: Layout::Striped { stripes: 3, stripe_size: Bytes::kib(64) },
            content: Content::Untouched,
            devices: &[],
            tags: &[],
            ..create
        };
        assert_eq!(
            line(&striped),
            "lvcreate --yes --type striped --stripes 3 --stripesize 128s --extents 51 --activate n \
             --wipesignatures n --zero n --name db data"
        );
    }

    #[test]
    fn a_classic_snapshot_names_its_type() {
        let (vg, origin, name, tags) = (vg(), lv("db"), lv("cut"), creating());
        let create = SnapshotCreate {
            origin: Target { vg: &vg, lv: &origin },
            name: &name,
            extents: Extents::new(9),
            tags: &tags,
            devices: &[],
        };
        assert_eq!(
            line(&create),
            "lvcreate --yes --type snapshot --extents 9 --addtag gabion.dev/creating --name cut data/db"
        );
    }

    #[test]
    fn volumes_are_extended_removed_and_renamed_by_full_name() {
        let (vg, name, other) = (vg(), lv("pool_tmeta"), lv("b"));
        let target = Target { vg: &vg, lv: &name };
        let extend = LvExtend { target: target.clone(), extents: Extents::new(7), places: &[] };
        assert_eq!(line(&extend), "lvextend --yes --extents 7 data/pool_tmeta");
        assert_eq!(line(&LvRemove { target }), "lvremove --yes data/pool_tmeta");
        assert_eq!(line(&LvRename { vg: &vg, from: &name, to: &other }), "lvrename --yes data pool_tmeta b");
    }
}
