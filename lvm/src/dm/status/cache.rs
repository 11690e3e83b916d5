//! Caches (Documentation/admin-guide/device-mapper/{cache,writecache}.rst) and integrity (dm-integrity.rst).

use devices::Sectors;

use super::{Fill, Words};

/// How a dm-cache fares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheStatus {
    /// It works.
    Working(Box<CacheUse>),
    /// It has failed: nothing can be read or written.
    Failed,
    /// Its state could not be found out.
    Unreadable,
}

/// What a working dm-cache says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The unit of [`Self::metadata`].
    pub metadata_block: Sectors,
    /// Blocks of the metadata volume.
    pub metadata: Fill,
    /// The unit of [`Self::cache`] and of [`Self::dirty`].
    pub block: Sectors,
    /// Blocks of the fast device.
    pub cache: Fill,
    /// Reads served by the fast device.
    pub read_hits: u64,
    /// Reads that went to the slow device.
    pub read_misses: u64,
    /// Writes served by the fast device.
    pub write_hits: u64,
    /// Writes that went to the slow device.
    pub write_misses: u64,
    /// Blocks moved out of the cache.
    pub demotions: u64,
    /// Blocks moved into the cache.
    pub promotions: u64,
    /// Blocks that are newer in the cache than on the slow device.
    pub dirty: u64,
    /// How writes are treated.
    pub mode: CacheMode,
    /// Further features in the kernel's words.
    pub features: Vec<String>,
    /// The policy's name.
    pub policy: String,
    /// The policy's settings, key and value in turn.
    pub policy_settings: Vec<String>,
    /// The metadata cannot be changed any more.
    pub read_only: bool,
    /// The cache found its metadata damaged and wants a check.
    pub needs_check: bool,
}

/// How a cache treats writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// To the cache and the slow device at once.
    Writethrough,
    /// To the cache, later to the slow device.
    Writeback,
    /// Past the cache.
    Passthrough,
    /// The kernel named none of these.
    Unknown,
}

impl CacheMode {
    fn of(features: &[String]) -> Self {
        let has = |name: &str| features.iter().any(|feature| feature == name);
        match () {
            () if has("writethrough") => Self::Writethrough,
            () if has("writeback") => Self::Writeback,
            () if has("passthrough") => Self::Passthrough,
            () => Self::Unknown,
        }
    }
}

/// `<metadata block> <used>/<total> <block> <used>/<total> <read hits> <read misses> <write hits> <write misses>
/// <demotions> <promotions> <dirty> <#features> … <#core> … <policy> <#settings> … <ro|rw> <needs_check|->`
pub(super) fn cache(text: &str) -> Option<CacheStatus> {
    match text.trim() {
        "Fail" => return Some(CacheStatus::Failed),
        "Error" => return Some(CacheStatus::Unreadable),
        _ => {}
    }
    let words = &mut Words::new(text);
    let metadata_block = words.sectors()?;
    let metadata = words.ratio()?.into();
    let block = words.sectors()?;
    let cache = words.ratio()?.into();
    let read_hits = words.number()?;
    let read_misses = words.number()?;
    let write_hits = words.number()?;
    let write_misses = words.number()?;
    let demotions = words.number()?;
    let promotions = words.number()?;
    let dirty = words.number()?;
    let features = words.counted()?;
    words.counted()?;
    let policy = words.owned()?;
    let policy_settings = words.counted()?;
    let read_only = words.word()? == "ro";
    let needs_check = words.word() == Some("needs_check");
    Some(CacheStatus::Working(Box::new(CacheUse {
        metadata_block,
        metadata,
        block,
        cache,
        read_hits,
        read_misses,
        write_hits,
        write_misses,
        demotions,
        promotions,
        dirty,
        mode: CacheMode::of(&features),
        features,
        policy,
        policy_settings,
        read_only,
        needs_check,
    })))
}

/// How a dm-writecache fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritecacheStatus {
    /// Zero while all is well, else the error that stopped it.
    pub error: i64,
    /// Blocks of the cache, used and in all.
    pub cache: Fill,
    /// Blocks on their way to the slow device.
    pub writing_back: u64,
}

/// `<error> <blocks> <free> <writing back> …`
pub(super) fn writecache(words: &mut Words<'_>) -> Option<WritecacheStatus> {
    let error = words.number()?;
    let total: u64 = words.number()?;
    let free = words.number()?;
    let writing_back = words.number()?;
    Some(WritecacheStatus { error, cache: Fill::new(total.saturating_sub(free), total), writing_back })
}

/// How a dm-integrity device fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegrityStatus {
    /// Checksums that did not fit since activation.
    pub mismatches: u64,
    /// The size that the device offers.
    pub provided: Sectors,
    /// How far the first computing of checksums has come; `None` when it is done.
    pub recalculated: Option<Sectors>,
}

/// `<mismatches> <provided sectors> <recalculated sectors|->`
pub(super) fn integrity(words: &mut Words<'_>) -> Option<IntegrityStatus> {
    let mismatches = words.number()?;
    let provided = words.sectors()?;
    let recalculated = match words.word() {
        Some("-") | None => None,
        Some(sectors) => Some(Sectors::new(sectors.parse().ok()?)),
    };
    Some(IntegrityStatus { mismatches, provided, recalculated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_tells_its_hits_and_its_dirt() {
        let line = "8 72/2048 128 5/480 11 12 13 14 1 2 3 2 metadata2 writeback 2 migration_threshold 2048 smq 0 rw - ";
        let Some(CacheStatus::Working(used)) = cache(line) else { panic!() };
        assert_eq!((used.read_hits, used.read_misses, used.write_hits, used.write_misses), (11, 12, 13, 14));
        assert_eq!((used.demotions, used.promotions, used.dirty), (1, 2, 3));
        assert_eq!((used.mode, used.policy.as_str()), (CacheMode::Writeback, "smq"));
        assert_eq!((used.read_only, used.needs_check), (false, false));
        assert_eq!(used.cache, Fill::new(5, 480));
        let ill = line.replace("rw -", "ro needs_check");
        let Some(CacheStatus::Working(used)) = cache(&ill) else { panic!() };
        assert!(used.read_only && used.needs_check);
        assert_eq!(cache("Fail"), Some(CacheStatus::Failed));
        assert_eq!(cache("8 72/2048 128"), None);
    }

    #[test]
    fn writecaches_and_integrity_are_understood() {
        let status = writecache(&mut Words::new("0 1000 900 4 1 2 3")).unwrap();
        assert_eq!((status.cache, status.writing_back), (Fill::new(100, 1000), 4));
        let status = integrity(&mut Words::new("7 8192 -")).unwrap();
        assert_eq!((status.mismatches, status.recalculated), (7, None));
        let status = integrity(&mut Words::new("0 8192 100")).unwrap();
        assert_eq!(status.recalculated, Some(Sectors::new(100)));
    }
}
