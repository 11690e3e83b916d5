//! `lvchange` and `vgchange`.

use super::{Command, Target, Words, cache};
use crate::dm::WhenFull;
use crate::ops::{CacheMode, Scrub};
use crate::{Tag, VgName};

/// One change of a volume; several kinds of change are several commands.
#[derive(Clone, Debug)]
pub(crate) enum LvChange<'a> {
    /// Removes and adds tags in one commit.
    Tags { add: &'a [Tag], remove: &'a [Tag] },
    /// Activates, also a volume marked to be skipped, also with RAID legs missing, never with holes.
    Activate,
    /// Takes the volume out of the kernel. LVM refuses an open one.
    Deactivate,
    /// Loads the tables anew from the metadata.
    Refresh,
    /// Starts a check or a repair of RAID legs against each other.
    Scrub(Scrub),
    /// Changes dm-cache's mode.
    CacheMode(CacheMode),
    /// Says what becomes of writes to a full pool; `lvcreate` does not take that for pools.
    WhenFull(WhenFull),
}

impl LvChange<'_> {
    /// Whether it is written down, and not only done in the kernel.
    fn commits(&self) -> bool {
        !matches!(self, Self::Activate | Self::Deactivate | Self::Refresh | Self::Scrub(_))
    }

    fn of<'a>(&self, targets: impl IntoIterator<Item = &'a Target<'a>>) -> Words {
        let words = Words::yes("lvchange");
        let words = match self {
            Self::Tags { add, remove } => words.each("--deltag", *remove).each("--addtag", *add),
            Self::Activate => activate(words),
            Self::Deactivate => words.option("--activate", "n"),
            Self::Refresh => words.flag("--refresh"),
            Self::Scrub(Scrub::Check) => words.option("--syncaction", "check"),
            Self::Scrub(Scrub::Repair) => words.option("--syncaction", "repair"),
            Self::WhenFull(WhenFull::Queue) => words.option("--errorwhenfull", "n"),
            Self::WhenFull(WhenFull::Error) => words.option("--errorwhenfull", "y"),
            Self::CacheMode(mode) => words.option("--cachemode", cache::mode_word(*mode)),
        };
        words.operands(targets)
    }
}

fn activate(words: Words) -> Words {
    words.option("--activate", "y").flag("--ignoreactivationskip").option("--activationmode", "degraded")
}

/// One change of a group.
#[derive(Clone, Debug)]
pub(crate) enum VgChange<'a> {
    /// Removes and adds tags in one commit.
    Tags { add: &'a [Tag], remove: &'a [Tag] },
}

impl VgChange<'_> {
    fn of(&self, group: &VgName) -> Words {
        let words = Words::yes("vgchange");
        let words = match self {
            Self::Tags { add, remove } => words.each("--deltag", *remove).each("--addtag", *add),
        };
        words.operand(group)
    }
}

/// A change together with what it applies to.
impl Command for (LvChange<'_>, Target<'_>) {
    fn words(&self) -> Words {
        self.0.of([&self.1])
    }

    fn commits(&self) -> bool {
        self.0.commits()
    }
}

/// A change together with the volumes that it applies to.
impl Command for (LvChange<'_>, &[Target<'_>]) {
    fn words(&self) -> Words {
        self.0.of(self.1)
    }

    fn commits(&self) -> bool {
        self.0.commits()
    }
}

/// A change together with what it applies to.
impl Command for (VgChange<'_>, &VgName) {
    fn words(&self) -> Words {
        self.0.of(self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;
    use crate::LvName;

    #[test]
    fn changes_of_a_volume() {
        let vg = VgName::new("data").unwrap();
        let lv = LvName::new("db").unwrap();
        let (new, creating) =
            ([Tag::new("gabion.dev/fs=new").unwrap()], [Tag::new("gabion.dev/creating").unwrap()]);
        for (change, options) in [
            (
                LvChange::Tags { add: &new, remove: &creating },
                "--deltag gabion.dev/creating --addtag gabion.dev/fs=new",
            ),
            (LvChange::Activate, "--activate y --ignoreactivationskip --activationmode degraded"),
            (LvChange::Deactivate, "--activate n"),
            (LvChange::Refresh, "--refresh"),
            (LvChange::Scrub(Scrub::Check), "--syncaction check"),
            (LvChange::Scrub(Scrub::Repair), "--syncaction repair"),
            (LvChange::CacheMode(CacheMode::WriteThrough), "--cachemode writethrough"),
            (LvChange::WhenFull(WhenFull::Queue), "--errorwhenfull n"),
            (LvChange::WhenFull(WhenFull::Error), "--errorwhenfull y"),
        ] {
            let command = (change, Target { vg: &vg, lv: &lv });
            assert_eq!(line(&command), format!("lvchange --yes {options} data/db"));
        }
    }

    #[test]
    fn several_volumes_are_activated_by_one_command() {
        let vg = VgName::new("data").unwrap();
        let (a, b) = (LvName::new("a").unwrap(), LvName::new("b").unwrap());
        let targets = [Target { vg: &vg, lv: &a }, Target { vg: &vg, lv: &b }];
        let line = line(&(LvChange::Deactivate, &targets[..]));
        assert_eq!(line, "lvchange --yes --activate n data/a data/b");
    }

    #[test]
    fn changes_of_a_group() {
        let vg = VgName::new("data").unwrap();
        let tag = [Tag::new("a").unwrap()];
        for (change, options) in [
            (VgChange::Tags { add: &tag, remove: &[] }, "--addtag a"),
            (VgChange::Tags { add: &[], remove: &tag }, "--deltag a"),
        ] {
            assert_eq!(line(&(change, &vg)), format!("vgchange --yes {options} data"));
        }
    }
}
