//! `lvconvert` for pools out of volumes, for merging snapshots and for repair.

use devices::Sectors;

use super::{Command, Target, Words, thin};
use crate::metadata::Discards;
use crate::{DevicePath, LvName};

/// Makes a thin pool out of two volumes, whose content is lost; each may be RAID.
#[derive(Debug)]
pub(crate) struct PoolFromVolumes<'a> {
    pub(crate) data: Target<'a>,
    pub(crate) metadata: &'a LvName,
    pub(crate) chunk: Sectors,
    pub(crate) discards: Discards,
}

impl Command for PoolFromVolumes<'_> {
    fn words(&self) -> Words {
        let words = Words::yes("lvconvert")
            .option("--type", "thin-pool")
            .option("--poolmetadata", self.metadata)
            .sectors("--chunksize", self.chunk);
        thin::pool_options(words, self.discards).operand(&self.data)
    }
}

/// Puts a snapshot's content back into its origin; the snapshot is gone afterwards.
#[derive(Debug)]
pub(crate) struct Merge<'a> {
    pub(crate) snapshot: Target<'a>,
}

impl Command for Merge<'_> {
    fn words(&self) -> Words {
        Words::yes("lvconvert").flag("--merge").operand(&self.snapshot)
    }
}

/// Replaces failed RAID legs, or rewrites a thin pool's metadata into the spare.
#[derive(Debug)]
pub(crate) struct Repair<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) devices: &'a [DevicePath],
}

impl Command for Repair<'_> {
    fn words(&self) -> Words {
        Words::yes("lvconvert").flag("--repair").operand(&self.target).operands(self.devices)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;
    use crate::VgName;

    #[test]
    fn conversions() {
        let vg = VgName::new("data").unwrap();
        let (data, metadata) = (LvName::new("pool").unwrap(), LvName::new("meta").unwrap());
        let data = Target { vg: &vg, lv: &data };
        let pool = PoolFromVolumes {
            data: data.clone(),
            metadata: &metadata,
            chunk: Sectors::new(128),
            discards: Discards::NoPassdown,
        };
        assert_eq!(
            line(&pool),
            "lvconvert --yes --type thin-pool --poolmetadata meta --chunksize 128s --poolmetadataspare y \
             --zero y --discards nopassdown data/pool"
        );
        assert_eq!(line(&Merge { snapshot: data.clone() }), "lvconvert --yes --merge data/pool");
        let spare = [DevicePath::new("/dev/sdc").unwrap()];
        assert_eq!(
            line(&Repair { target: data, devices: &spare }),
            "lvconvert --yes --repair data/pool /dev/sdc"
        );
    }
}
