//! Classic snapshots (Documentation/admin-guide/device-mapper/snapshot.rst).

use devices::Sectors;

use super::Words;

/// How a classic snapshot, or the merge of one, fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotStatus {
    /// It works.
    Valid {
        /// How much of the exception store is used, its metadata included.
        used: Sectors,
        /// The size of the exception store.
        total: Sectors,
        /// The used part that is metadata; when it is all, nothing differs from the origin (a merge is done).
        metadata: Sectors,
    },
    /// The exception store ran full, or could not be written: the snapshot is lost.
    Invalid,
    /// The exception store ran full, as told by stores that can tell; the snapshot is lost.
    Overflow,
    /// The merge stopped at an error; the exceptions are still there.
    MergeFailed,
    /// The store does not say.
    Unknown,
}

/// `<used>/<total> <metadata>` in sectors, or one of the words.
pub(super) fn snapshot(text: &str) -> Option<SnapshotStatus> {
    match text.trim() {
        "Invalid" => return Some(SnapshotStatus::Invalid),
        "Overflow" => return Some(SnapshotStatus::Overflow),
        "Merge failed" => return Some(SnapshotStatus::MergeFailed),
        "Unknown" => return Some(SnapshotStatus::Unknown),
        _ => {}
    }
    let words = &mut Words::new(text);
    let (used, total) = words.ratio()?;
    let metadata = words.sectors()?;
    Some(SnapshotStatus::Valid { used: Sectors::new(used), total: Sectors::new(total), metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_tell_their_fill_or_their_end() {
        let valid = SnapshotStatus::Valid {
            used: Sectors::new(32),
            total: Sectors::new(8192),
            metadata: Sectors::new(16),
        };
        assert_eq!(snapshot("32/8192 16"), Some(valid));
        assert_eq!(snapshot("Invalid"), Some(SnapshotStatus::Invalid));
        assert_eq!(snapshot("Overflow"), Some(SnapshotStatus::Overflow));
        assert_eq!(snapshot("Merge failed"), Some(SnapshotStatus::MergeFailed));
        assert_eq!(snapshot("32/8192"), None);
        assert_eq!(snapshot(""), None);
    }
}
