//! `lvconvert` to and from dm-cache and dm-writecache. The fast volume becomes a cache volume of the slow one.

use devices::Sectors;

use super::{Command, Target, Words};
use crate::LvName;
use crate::ops::{AfterDetach, CacheMode};

/// The option's word for a mode.
pub(super) fn mode_word(mode: CacheMode) -> &'static str {
    match mode {
        CacheMode::WriteThrough => "writethrough",
        CacheMode::WriteBack => "writeback",
        CacheMode::PassThrough => "passthrough",
    }
}

/// Puts dm-cache in front of a volume.
#[derive(Debug)]
pub(crate) struct AttachCache<'a> {
    pub(crate) slow: Target<'a>,
    pub(crate) fast: &'a LvName,
    pub(crate) mode: CacheMode,
    pub(crate) chunk: Option<Sectors>,
}

impl Command for AttachCache<'_> {
    fn words(&self) -> Words {
        let words = Words::yes("lvconvert")
            .option("--type", "cache")
            .option("--cachevol", self.fast)
            .option("--cachemode", mode_word(self.mode));
        let words = self.chunk.into_iter().fold(words, |words, chunk| words.sectors("--chunksize", chunk));
        words.operand(&self.slow)
    }
}

/// Puts dm-writecache in front of a volume.
#[derive(Debug)]
pub(crate) struct AttachWriteCache<'a> {
    pub(crate) slow: Target<'a>,
    pub(crate) fast: &'a LvName,
}

impl Command for AttachWriteCache<'_> {
    fn words(&self) -> Words {
        Words::yes("lvconvert")
            .option("--type", "writecache")
            .option("--cachevol", self.fast)
            .operand(&self.slow)
    }
}

/// Writes back what is dirty and takes the cache away. Never with `--force`, which would lose dirty blocks.
#[derive(Debug)]
pub(crate) struct DetachCache<'a> {
    pub(crate) slow: Target<'a>,
    pub(crate) after: AfterDetach,
}

impl Command for DetachCache<'_> {
    fn words(&self) -> Words {
        let how = match self.after {
            AfterDetach::Keep => "--splitcache",
            AfterDetach::Remove => "--uncache",
        };
        Words::yes("lvconvert").flag(how).operand(&self.slow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;
    use crate::VgName;

    #[test]
    fn caches_are_attached_and_detached_without_force() {
        let vg = VgName::new("data").unwrap();
        let (slow, fast) = (LvName::new("db").unwrap(), LvName::new("fast").unwrap());
        let slow = Target { vg: &vg, lv: &slow };
        let mut attach =
            AttachCache { slow: slow.clone(), fast: &fast, mode: CacheMode::WriteBack, chunk: None };
        assert_eq!(
            line(&attach),
            "lvconvert --yes --type cache --cachevol fast --cachemode writeback data/db"
        );
        attach.chunk = Some(Sectors::new(128));
        attach.mode = CacheMode::PassThrough;
        assert_eq!(
            line(&attach),
            "lvconvert --yes --type cache --cachevol fast --cachemode passthrough --chunksize 128s data/db"
        );
        assert_eq!(mode_word(CacheMode::WriteThrough), "writethrough");
        assert_eq!(
            line(&AttachWriteCache { slow: slow.clone(), fast: &fast }),
            "lvconvert --yes --type writecache --cachevol fast data/db"
        );
        let detach = |after| line(&DetachCache { slow: slow.clone(), after });
        assert_eq!(detach(AfterDetach::Keep), "lvconvert --yes --splitcache data/db");
        assert_eq!(detach(AfterDetach::Remove), "lvconvert --yes --uncache data/db");
    }
}
