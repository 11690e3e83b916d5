//! Command lines for LVM, built from typed parts only: one file per family of commands.
//!
//! Nothing here takes free text. Names and tags are newtypes that were checked when they were made, sizes are
//! extents or sectors, devices are [`DevicePath`]s, and every option is a literal in this module.

mod cache;
mod change;
mod convert;
mod lv;
mod pv;
mod raid;
mod thin;
mod vg;

use std::fmt::Display;

pub(crate) use cache::{AttachCache, AttachWriteCache, DetachCache};
pub(crate) use change::{LvChange, VgChange};
pub(crate) use convert::{Merge, PoolFromVolumes, Repair};
pub(crate) use lv::{LvCreate, LvExtend, LvRemove, LvRename, Place, SnapshotCreate};
pub(crate) use pv::{PvChange, PvCreate, PvMove, PvMoveAbort, PvRemove, PvResize};
pub(crate) use thin::{PoolCreate, PoolMetadataExtend, ThinCreate, ThinSnapshotCreate};
pub(crate) use vg::{VgCreate, VgExtend, VgReduce, VgReduceMissing, VgRemove, VgRename, VgRestoreMissing};

use crate::{DevicePath, Error, Extents, Kind, LvName, VgName};
use devices::Sectors;

/// Words that liblvm2cmd takes in one command line.
const WORDS_MAX: usize = crate::worker::line::WORDS_MAX;

/// A volume as a command line calls it: `group/volume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) vg: &'a VgName,
    pub(crate) lv: &'a LvName,
}

impl Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.vg, self.lv)
    }
}

/// The words of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words(Vec<String>);

impl Words {
    /// A command that may ask a question, and is answered yes.
    fn yes(verb: &'static str) -> Self {
        Self::cautious(verb).flag("--yes")
    }

    /// A command whose questions are answered no, because the worker's standard input is empty.
    fn cautious(verb: &'static str) -> Self {
        Self(vec![verb.to_owned()])
    }

    fn flag(mut self, flag: &'static str) -> Self {
        self.0.push(flag.to_owned());
        self
    }

    fn option(mut self, name: &'static str, value: impl Display) -> Self {
        self.0.push(name.to_owned());
        self.0.push(value.to_string());
        self
    }

    fn extents(self, count: Extents) -> Self {
        self.option("--extents", count.get())
    }

    /// A size in sectors, which LVM writes with the unit `s`.
    fn sectors(self, name: &'static str, size: Sectors) -> Self {
        self.option(name, format_args!("{}s", size.get()))
    }

    fn each(self, name: &'static str, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, |words, value| words.option(name, value))
    }

    fn operand(mut self, value: impl Display) -> Self {
        self.0.push(value.to_string());
        self
    }

    fn operands(self, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, Self::operand)
    }

    /// The finished command line.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] above the words that liblvm2cmd takes.
    pub(crate) fn into_argv(self, tried: &str) -> Result<Vec<String>, Error> {
        if self.0.len() > WORDS_MAX {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!(
                    "the command needs {} words, and liblvm2cmd takes {WORDS_MAX}",
                    self.0.len()
                ))
                .with_advice("give fewer devices or tags at once"));
        }
        Ok(self.0)
    }
}

/// A command that knows its words.
pub(crate) trait Command {
    /// The words, verb first.
    fn words(&self) -> Words;

    /// Whether it writes metadata: all but those that only change what the kernel has.
    fn commits(&self) -> bool {
        true
    }

    /// Devices that it writes to besides the PVs of its group.
    fn devices(&self) -> Vec<&DevicePath> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words as one line, for tests that state a command line exactly.
    pub(super) fn line(command: &impl Command) -> String {
        command.words().into_argv("test").unwrap().join(" ")
    }

    #[test]
    fn more_words_than_the_library_takes_are_refused() {
        let words = Words::cautious("vgextend").operands(0..62);
        assert_eq!(words.clone().into_argv("extend a group").unwrap().len(), 63);
        let error = words.operand("x").into_argv("extend group v").unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert!(error.to_string().starts_with("could not extend group v: the command needs 64 words"));
    }
}
