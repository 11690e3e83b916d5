//! `pvcreate`, `pvresize`, `pvremove`, `pvchange`, `pvmove`.

use devices::Sectors;

use super::{Command, Words};
use crate::ops::{Allocation, OldContent};
use crate::{DevicePath, LvName, Tag, Uuid};

/// Makes a PV. Never forced: LVM itself refuses a PV that is in a group.
#[derive(Debug)]
pub(crate) struct PvCreate<'a> {
    pub(crate) device: &'a DevicePath,
    pub(crate) metadata_size: Sectors,
    pub(crate) old_content: OldContent,
    /// Its identity, chosen by LVM where none is given.
    pub(crate) uuid: Option<Uuid>,
}

impl Command for PvCreate<'_> {
    fn words(&self) -> Words {
        // Without `--yes` the question whether to wipe a signature is answered no, and the command fails.
        let words = match self.old_content {
            OldContent::Refuse => Words::cautious("pvcreate"),
            OldContent::Wipe => Words::yes("pvcreate"),
        };
        let words = match self.uuid {
            // Without the flag LVM wants the backup of a group that had this PV.
            Some(uuid) => words.option("--uuid", uuid).flag("--norestorefile"),
            None => words,
        };
        words.sectors("--metadatasize", self.metadata_size).operand(self.device)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        vec![self.device]
    }
}

/// Takes the size of the device over into the PV.
#[derive(Debug)]
pub(crate) struct PvResize<'a> {
    pub(crate) device: &'a DevicePath,
}

impl Command for PvResize<'_> {
    fn words(&self) -> Words {
        Words::cautious("pvresize").operand(self.device)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        vec![self.device]
    }
}

/// Removes the label of a PV that is in no group.
#[derive(Debug)]
pub(crate) struct PvRemove<'a> {
    pub(crate) device: &'a DevicePath,
}

impl Command for PvRemove<'_> {
    fn words(&self) -> Words {
        Words::cautious("pvremove").operand(self.device)
    }

    fn devices(&self) -> Vec<&DevicePath> {
        vec![self.device]
    }
}

/// Changes what may be allocated on a PV, and its tags.
#[derive(Debug, Default)]
pub(crate) struct PvChange<'a> {
    pub(crate) allocation: Option<Allocation>,
    pub(crate) add: &'a [Tag],
    pub(crate) remove: &'a [Tag],
}

/// A change together with the PV that it applies to.
impl Command for (PvChange<'_>, &DevicePath) {
    fn words(&self) -> Words {
        let (change, device) = self;
        let words = Words::yes("pvchange");
        let words = match change.allocation {
            None => words,
            Some(Allocation::Allowed) => words.option("--allocatable", "y"),
            Some(Allocation::Forbidden) => words.option("--allocatable", "n"),
        };
        words.each("--deltag", change.remove).each("--addtag", change.add).operand(device)
    }
}

/// Moves extents off a PV, or resumes every interrupted move of the group when nothing is named.
#[derive(Debug, Default)]
pub(crate) struct PvMove<'a> {
    pub(crate) source: Option<&'a DevicePath>,
    pub(crate) targets: &'a [DevicePath],
    pub(crate) only: Option<&'a LvName>,
}

impl Command for PvMove<'_> {
    fn words(&self) -> Words {
        // All extents switch over together at the end, so that an abort leaves everything where it was.
        let words = Words::yes("pvmove").option("--interval", 1);
        let words = if self.source.is_some() { words.flag("--atomic") } else { words };
        let words = self.only.into_iter().fold(words, |words, lv| words.option("--name", lv));
        words.operands(self.source).operands(self.targets)
    }
}

/// Gives up a move, or every move when nothing is named.
#[derive(Debug)]
pub(crate) struct PvMoveAbort<'a> {
    pub(crate) source: Option<&'a DevicePath>,
}

impl Command for PvMoveAbort<'_> {
    fn words(&self) -> Words {
        Words::yes("pvmove").flag("--abort").operands(self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;

    fn device(path: &str) -> DevicePath {
        DevicePath::new(path).unwrap()
    }

    #[test]
    fn a_pv_is_made_without_force_and_without_a_yes_to_wiping() {
        let device = device("/dev/sda");
        let mut command = PvCreate {
            device: &device,
            metadata_size: Sectors::new(32_768),
            old_content: OldContent::Refuse,
            uuid: None,
        };
        assert_eq!(line(&command), "pvcreate --metadatasize 32768s /dev/sda");
        command.old_content = OldContent::Wipe;
        assert_eq!(line(&command), "pvcreate --yes --metadatasize 32768s /dev/sda");
        command.uuid = Some("a".repeat(32).parse().unwrap());
        assert_eq!(
            line(&command),
            "pvcreate --yes --uuid aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaaaa --norestorefile \
             --metadatasize 32768s /dev/sda"
        );
    }

    #[test]
    fn pvs_are_resized_removed_and_changed() {
        let device = device("/dev/sda");
        assert_eq!(line(&PvResize { device: &device }), "pvresize /dev/sda");
        assert_eq!(line(&PvRemove { device: &device }), "pvremove /dev/sda");
        let change = |allocation| PvChange { allocation: Some(allocation), ..PvChange::default() };
        let forbid = (change(Allocation::Forbidden), &device);
        assert_eq!(line(&forbid), "pvchange --yes --allocatable n /dev/sda");
        assert_eq!(line(&(change(Allocation::Allowed), &device)), "pvchange --yes --allocatable y /dev/sda");
        let (a, b) = ([Tag::new("a").unwrap()], [Tag::new("b").unwrap()]);
        let tags = PvChange { allocation: None, add: &a, remove: &b };
        assert_eq!(line(&(tags, &device)), "pvchange --yes --deltag b --addtag a /dev/sda");
    }

    #[test]
    fn moves_are_atomic_and_in_the_foreground() {
        let (source, targets) = (device("/dev/sda"), [device("/dev/sdb"), device("/dev/sdc")]);
        let command = PvMove { source: Some(&source), targets: &targets, only: None };
        assert_eq!(line(&command), "pvmove --yes --interval 1 --atomic /dev/sda /dev/sdb /dev/sdc");
        let name = LvName::new("db").unwrap();
        let command = PvMove { only: Some(&name), targets: &[], ..command };
        assert_eq!(line(&command), "pvmove --yes --interval 1 --atomic --name db /dev/sda");
        assert_eq!(line(&PvMove::default()), "pvmove --yes --interval 1");
        assert_eq!(line(&PvMoveAbort { source: Some(&source) }), "pvmove --yes --abort /dev/sda");
        assert_eq!(line(&PvMoveAbort { source: None }), "pvmove --yes --abort");
    }
}
