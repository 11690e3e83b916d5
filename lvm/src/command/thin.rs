//! `lvcreate` for thin pools, thin volumes and thin snapshots; growing a pool's metadata.

use devices::Sectors;

use super::{Command, Place, Target, Words};
use crate::metadata::Discards;
use crate::ops::ActivationSkip;
use crate::{DevicePath, Extents, LvName, Tag, VgName};

/// Makes a thin pool on linear data and metadata.
#[derive(Debug)]
pub(crate) struct PoolCreate<'a> {
    pub(crate) vg: &'a VgName,
    pub(crate) name: &'a LvName,
    pub(crate) data: Extents,
    pub(crate) metadata: Sectors,
    pub(crate) chunk: Sectors,
    pub(crate) discards: Discards,
    pub(crate) tags: &'a [Tag],
    pub(crate) devices: &'a [DevicePath],
}

impl Command for PoolCreate<'_> {
    fn words(&self) -> Words {
        let words = Words::yes("lvcreate")
            .option("--type", "thin-pool")
            .extents(self.data)
            .sectors("--poolmetadatasize", self.metadata)
            .sectors("--chunksize", self.chunk);
        pool_options(words, self.discards)
            .each("--addtag", self.tags)
            .option("--name", self.name)
            .operand(self.vg)
            .operands(self.devices)
    }
}

/// What every pool of ours is made with: zeroed new chunks, and a spare for repairing its metadata.
pub(super) fn pool_options(words: Words, discards: Discards) -> Words {
    words.option("--poolmetadataspare", "y").option("--zero", "y").option(
        "--discards",
        match discards {
            Discards::Passdown => "passdown",
            Discards::NoPassdown => "nopassdown",
            Discards::Ignore => "ignore",
        },
    )
}

/// Makes a thin volume; its size is virtual.
#[derive(Debug)]
pub(crate) struct ThinCreate<'a> {
    pub(crate) vg: &'a VgName,
    pub(crate) pool: &'a LvName,
    pub(crate) name: &'a LvName,
    pub(crate) size: Sectors,
    pub(crate) tags: &'a [Tag],
}

impl Command for ThinCreate<'_> {
    fn words(&self) -> Words {
        Words::yes("lvcreate")
            .option("--type", "thin")
            .sectors("--virtualsize", self.size)
            .option("--thinpool", self.pool)
            .each("--addtag", self.tags)
            .option("--name", self.name)
            .operand(self.vg)
    }
}

/// Makes a thin snapshot, which shares the origin's blocks.
#[derive(Debug)]
pub(crate) struct ThinSnapshotCreate<'a> {
    pub(crate) origin: Target<'a>,
    pub(crate) name: &'a LvName,
    pub(crate) skip: ActivationSkip,
    pub(crate) tags: &'a [Tag],
}

impl Command for ThinSnapshotCreate<'_> {
    fn words(&self) -> Words {
        // Without a size, a snapshot of a thin volume is a thin one.
        Words::yes("lvcreate")
            .flag("--snapshot")
            .option(
                "--setactivationskip",
                match self.skip {
                    ActivationSkip::Skipped => "y",
                    ActivationSkip::Never => "n",
                },
            )
            .each("--addtag", self.tags)
            .option("--name", self.name)
            .operand(&self.origin)
    }
}

/// Sets the size of a pool's metadata volume, upwards. LVM makes or grows the group's spare with it.
#[derive(Debug)]
pub(crate) struct PoolMetadataExtend<'a> {
    pub(crate) pool: Target<'a>,
    pub(crate) size: Sectors,
    pub(crate) places: &'a [Place],
}

impl Command for PoolMetadataExtend<'_> {
    fn words(&self) -> Words {
        Words::yes("lvextend")
            .sectors("--poolmetadatasize", self.size)
            .operand(&self.pool)
            .operands(self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;

    #[test]
    fn pools_thin_volumes_and_thin_snapshots() {
        let vg = VgName::new("data").unwrap();
        let (pool, name, cut) =
            (LvName::new("pool").unwrap(), LvName::new("db").unwrap(), LvName::new("cut").unwrap());
        let tags = [Tag::new("gabion.dev/creating").unwrap()];
        let create = PoolCreate {
            vg: &vg,
            name: &pool,
            data: Extents::new(100),
            metadata: Sectors::new(16_384),
            chunk: Sectors::new(128),
            discards: Discards::Passdown,
            tags: &tags,
            devices: &[],
        };
        assert_eq!(
            line(&create),
            "lvcreate --yes --type thin-pool --extents 100 --poolmetadatasize 16384s --chunksize 128s \
             --poolmetadataspare y --zero y --discards passdown \
             --addtag gabion.dev/creating --name pool data"
        );
        let thin = ThinCreate { vg: &vg, pool: &pool, name: &name, size: Sectors::new(8_192), tags: &tags };
        assert_eq!(
            line(&thin),
            "lvcreate --yes --type thin --virtualsize 8192s --thinpool pool --addtag gabion.dev/creating \
             --name db data"
        );
        let snapshot = ThinSnapshotCreate {
            origin: Target { vg: &vg, lv: &name },
            name: &cut,
            skip: ActivationSkip::Skipped,
            tags: &tags,
        };
        assert_eq!(
            line(&snapshot),
            "lvcreate --yes --snapshot --setactivationskip y --addtag gabion.dev/creating --name cut data/db"
        );
        let grow = PoolMetadataExtend {
            pool: Target { vg: &vg, lv: &pool },
            size: Sectors::new(32_768),
            places: &[],
        };
        assert_eq!(line(&grow), "lvextend --yes --poolmetadatasize 32768s data/pool");
    }
}
