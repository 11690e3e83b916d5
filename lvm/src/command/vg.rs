//! `vgcreate`, `vgextend`, `vgreduce`, `vgrename`, `vgremove`.

use super::{Command, Words};
use crate::{DevicePath, ExtentSize, Tag, VgName};

/// Makes a group that only we activate.
#[derive(Debug)]
pub(crate) struct VgCreate<'a> {
    pub(crate) name: &'a VgName,
    pub(crate) extent_size: ExtentSize,
    pub(crate) tags: &'a [Tag],
    pub(crate) devices: &'a [DevicePath],
}

impl Command for VgCreate<'_> {
    fn words(&self) -> Words {
        Words::yes("vgcreate")
            .option("--setautoactivation", "n")
            .sectors("--physicalextentsize", self.extent_size.sectors())
            .each("--addtag", self.tags)
            .operand(self.name)
            .operands(self.devices)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        self.devices.iter().collect()
    }
}

/// Adds PVs that exist already.
#[derive(Debug)]
pub(crate) struct VgExtend<'a> {
    pub(crate) name: &'a VgName,
    pub(crate) devices: &'a [DevicePath],
}

impl Command for VgExtend<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgextend").operand(self.name).operands(self.devices)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        self.devices.iter().collect()
    }
}

/// Takes a PV that came back into service again.
#[derive(Debug)]
pub(crate) struct VgRestoreMissing<'a> {
    pub(crate) name: &'a VgName,
    pub(crate) devices: &'a [DevicePath],
}

impl Command for VgRestoreMissing<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgextend").flag("--restoremissing").operand(self.name).operands(self.devices)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        self.devices.iter().collect()
    }
}

/// Takes an empty PV out of the group.
#[derive(Debug)]
pub(crate) struct VgReduce<'a> {
    pub(crate) name: &'a VgName,
    pub(crate) device: &'a DevicePath,
}

impl Command for VgReduce<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgreduce").operand(self.name).operand(self.device)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        vec![self.device]
    }
}

/// Forgets missing PVs that no volume uses. Never with `--force`, which would drop volumes.
#[derive(Debug)]
pub(crate) struct VgReduceMissing<'a> {
    pub(crate) name: &'a VgName,
}

impl Command for VgReduceMissing<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgreduce").flag("--removemissing").operand(self.name)
    }
}

/// Gives a group another name.
#[derive(Debug)]
pub(crate) struct VgRename<'a> {
    pub(crate) from: &'a VgName,
    pub(crate) to: &'a VgName,
}

impl Command for VgRename<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgrename").operand(self.from).operand(self.to)
    }
}

/// Removes a group without volumes: `--yes` would remove volumes with it.
#[derive(Debug)]
pub(crate) struct VgRemove<'a> {
    pub(crate) name: &'a VgName,
}

impl Command for VgRemove<'_> {
    fn words(&self) -> Words {
        Words::cautious("vgremove").operand(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;

    #[test]
    fn groups_are_made_without_autoactivation_and_never_removed_with_their_volumes() {
        let (name, other) = (VgName::new("data").unwrap(), VgName::new("old").unwrap());
        let devices = [DevicePath::new("/dev/sda").unwrap(), DevicePath::new("/dev/sdb").unwrap()];
        let tags = [Tag::new("gabion").unwrap(), Tag::new("gabion.dev/owner=x").unwrap()];
        let create =
            VgCreate { name: &name, extent_size: ExtentSize::DEFAULT, tags: &tags, devices: &devices };
        assert_eq!(
            line(&create),
            "vgcreate --yes --setautoactivation n --physicalextentsize 8192s --addtag gabion \
             --addtag gabion.dev/owner=x data /dev/sda /dev/sdb"
        );
        assert_eq!(line(&VgExtend { name: &name, devices: &devices }), "vgextend data /dev/sda /dev/sdb");
        assert_eq!(
            line(&VgRestoreMissing { name: &name, devices: &devices[..1] }),
            "vgextend --restoremissing data /dev/sda"
        );
        assert_eq!(line(&VgReduce { name: &name, device: &devices[0] }), "vgreduce data /dev/sda");
        assert_eq!(line(&VgReduceMissing { name: &name }), "vgreduce --removemissing data");
        assert_eq!(line(&VgRename { from: &other, to: &name }), "vgrename old data");
        assert_eq!(line(&VgRemove { name: &name }), "vgremove data");
    }
}
