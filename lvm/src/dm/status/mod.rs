//! How a device fares: its status, line by line.

mod cache;
mod raid;
mod snapshot;
mod thin;

use std::fmt;

use devices::Sectors;

use super::line::{LineError, Words};

pub use cache::{CacheMode, CacheStatus, CacheUse, IntegrityStatus, WritecacheStatus};
pub use raid::{LegHealth, MirrorStatus, RaidStatus, StripedStatus, SyncAction};
pub use snapshot::SnapshotStatus;
pub use thin::{Discards, PoolMode, ThinPoolStatus, ThinPoolUse, ThinStatus, WhenFull};

/// One line of a status: how a range of the device fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusLine {
    /// Where the range begins in the device.
    pub start: Sectors,
    /// How long it is.
    pub len: Sectors,
    /// How it fares.
    pub status: Status,
}

/// How a target fares, in the forms of the kernel's Documentation/admin-guide/device-mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// `linear`.
    Linear,
    /// `striped`.
    Striped(StripedStatus),
    /// `snapshot-origin`.
    SnapshotOrigin,
    /// `snapshot`.
    Snapshot(SnapshotStatus),
    /// `snapshot-merge`; the fill falls while the merge proceeds.
    SnapshotMerge(SnapshotStatus),
    /// `thin-pool`.
    ThinPool(ThinPoolStatus),
    /// `thin`.
    Thin(ThinStatus),
    /// `raid`.
    Raid(RaidStatus),
    /// `mirror`.
    Mirror(MirrorStatus),
    /// `cache`.
    Cache(CacheStatus),
    /// `writecache`.
    Writecache(WritecacheStatus),
    /// `integrity`.
    Integrity(IntegrityStatus),
    /// `error`: every access fails.
    Error,
    /// `zero`.
    Zero,
    /// Anything else, in the kernel's words.
    Other {
        /// The target's name.
        kind: String,
        /// What it says.
        text: String,
    },
}

impl Status {
    /// Reads the status `text` of a target named `kind`.
    ///
    /// # Errors
    ///
    /// [`LineError`] if a known target's status does not have its form. Words after the known ones are ignored.
    pub fn parse(kind: &str, text: &str) -> Result<Self, LineError> {
        let words = &mut Words::new(text);
        let status = match kind {
            "linear" => Some(Self::Linear),
            "striped" => raid::striped(words).map(Self::Striped),
            "snapshot-origin" => Some(Self::SnapshotOrigin),
            "snapshot" => snapshot::snapshot(text).map(Self::Snapshot),
            "snapshot-merge" => snapshot::snapshot(text).map(Self::SnapshotMerge),
            "thin-pool" => thin::thin_pool(text).map(Self::ThinPool),
            "thin" => thin::thin(text).map(Self::Thin),
            "raid" => raid::raid(words).map(Self::Raid),
            "mirror" => raid::mirror(words).map(Self::Mirror),
            "cache" => cache::cache(text).map(Self::Cache),
            "writecache" => cache::writecache(words).map(Self::Writecache),
            "integrity" => cache::integrity(words).map(Self::Integrity),
            "error" => Some(Self::Error),
            "zero" => Some(Self::Zero),
            _ => Some(Self::Other { kind: kind.to_owned(), text: text.to_owned() }),
        };
        status.ok_or_else(|| LineError::new("status", kind, text))
    }
}

/// How many of a fixed number of blocks are used. What a block is, the field says that holds this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    used: u64,
    total: u64,
}

impl Fill {
    /// `used` blocks of `total`.
    #[must_use]
    pub const fn new(used: u64, total: u64) -> Self {
        Self { used, total }
    }

    /// How many blocks are used.
    #[must_use]
    pub const fn used(self) -> u64 {
        self.used
    }

    /// How many blocks there are.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.total
    }

    /// How many blocks are free.
    #[must_use]
    pub const fn free(self) -> u64 {
        self.total.saturating_sub(self.used)
    }

    /// The used part in percent; 0 of 0 is 0.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn percent(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.used as f64 * 100.0 / self.total as f64 }
    }

    /// Whether at least `percent` of the blocks are used; exact, unlike a comparison of [`Self::percent`].
    #[must_use]
    pub fn reaches(self, percent: u8) -> bool {
        u128::from(self.used) * 100 >= u128::from(self.total) * u128::from(percent)
    }
}

/// `used/total (percent)`.
impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({:.2} %)", self.used, self.total, self.percent())
    }
}

impl From<(u64, u64)> for Fill {
    fn from((used, total): (u64, u64)) -> Self {
        Self { used, total }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fill_is_exact_at_its_thresholds() {
        assert!(Fill::new(80, 100).reaches(80) && !Fill::new(799, 1000).reaches(80));
        assert!(Fill::new(u64::MAX, u64::MAX).reaches(100));
        assert_eq!(Fill::new(1, 3).to_string(), "1/3 (33.33 %)");
        assert_eq!(Fill::new(5, 4).free(), 0);
    }

    #[test]
    fn unknown_targets_keep_their_words() {
        let status = Status::parse("flakey", "what ever").unwrap();
        assert_eq!(status, Status::Other { kind: "flakey".to_owned(), text: "what ever".to_owned() });
    }

    proptest! {
        #[test]
        fn no_line_makes_us_panic(
            kind in prop::sample::select(vec![
                "striped", "snapshot", "thin-pool", "thin", "raid", "mirror", "cache", "writecache", "integrity",
            ]),
            text in "([0-9]{1,20}|[0-9]{1,4}/[0-9]{1,4}|253:[0-9]{1,3}|-|[AaD-]{1,3}|rw|Fail|\\PC{0,4}| ){0,30}",
        ) {
            if let Err(error) = Status::parse(kind, &text) {
                prop_assert!(error.to_string().contains(kind));
            }
        }
    }
}
