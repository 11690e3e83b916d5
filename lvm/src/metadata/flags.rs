//! The flags of groups, PVs and volumes, as the words that the metadata text has for them.

use std::fmt;

/// Declares a flag type: known words become variants, all others are kept as text.
macro_rules! flags {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)+
            /// A word that this version of the library does not know.
            Other(Box<str>),
        }

        impl $type {
            /// The flag that the metadata text calls `word`.
            #[must_use]
            pub fn from_word(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.into()),
                }
            }

            /// The word in the metadata text.
            #[must_use]
            pub fn as_word(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_word())
            }
        }
    };
}

flags! {
    /// A flag of a volume group.
    VgFlag {
        /// Exported: no command but an import may use the group.
        Exported = "EXPORTED",
        /// PVs may be added and removed.
        Resizeable = "RESIZEABLE",
        /// A move of extents is under way somewhere in the group.
        PvMove = "PVMOVE",
        /// Its metadata may be read.
        Read = "READ",
        /// Its metadata may be written.
        Write = "WRITE",
        /// Kept by the old clustered locking.
        Clustered = "CLUSTERED",
        /// Shared between hosts under lvmlockd.
        Shared = "SHARED",
        /// Written while a PV was missing.
        Partial = "PARTIAL",
        /// `vgchange --setautoactivation n`: the host does not activate it by itself.
        NoAutoactivate = "NOAUTOACTIVATE",
    }
}

flags! {
    /// A flag of a physical volume.
    PvFlag {
        /// New extents may be taken from it.
        Allocatable = "ALLOCATABLE",
        /// Belongs to an exported group.
        Exported = "EXPORTED",
        /// The group was changed while the PV was away; it stays unused until it is restored.
        Missing = "MISSING",
    }
}

flags! {
    /// A flag of a logical volume.
    LvFlag {
        /// May be read.
        Read = "READ",
        /// May be written.
        Write = "WRITE",
        /// Has a device number of its own choosing.
        FixedMinor = "FIXED_MINOR",
        /// Shown to users; internal volumes lack it.
        Visible = "VISIBLE",
        /// The volume through which a move of extents runs.
        PvMove = "PVMOVE",
        /// Locked by a move of extents.
        Locked = "LOCKED",
        /// Created without initial synchronisation.
        NotSynced = "NOTSYNCED",
        /// A RAID leg to be rebuilt at the next activation.
        Rebuild = "REBUILD",
        /// A RAID 1 leg that is read only in need.
        WriteMostly = "WRITEMOSTLY",
        /// Merges into its origin.
        Merging = "MERGING",
        /// A mirror that is being converted.
        Converting = "CONVERTING",
        /// Not activated without `-K`.
        ActivationSkip = "ACTIVATION_SKIP",
        /// A thin pool that fails writes at once when it is full.
        ErrorWhenFull = "ERROR_WHEN_FULL",
        /// Dm-cache metadata of format 2.
        MetadataFormat = "METADATA_FORMAT",
        /// A volume used as the cache of another one.
        CacheVol = "CACHE_VOL",
        /// A cached volume whose cache is a volume, not a pool.
        CacheUsesCacheVol = "CACHE_USES_CACHEVOL",
        /// Thin metadata cropped to 15.81 GiB.
        CropMetadata = "CROP_METADATA",
        /// `lvchange --setautoactivation n`.
        NoAutoactivate = "NOAUTOACTIVATE",
        /// A RAID volume that is being reshaped.
        Reshape = "RESHAPE",
        /// A RAID leg added by a reshape.
        ReshapeDeltaDisksPlus = "RESHAPE_DELTA_DISKS_PLUS",
        /// A RAID leg that a reshape removes.
        ReshapeDeltaDisksMinus = "RESHAPE_DELTA_DISKS_MINUS",
        /// A leg that a reshape has freed.
        ReshapeRemoved = "RESHAPE_REMOVED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_kept() {
        assert_eq!(LvFlag::from_word("VISIBLE"), LvFlag::Visible);
        let new = LvFlag::from_word("SOMETHING_NEW");
        assert_eq!(new, LvFlag::Other("SOMETHING_NEW".into()));
        assert_eq!(new.to_string(), "SOMETHING_NEW");
    }
}
