//! The words that bcache chooses from.

use std::fmt;

/// An enumeration whose members the kernel writes as words, in the order of their numbers on the disk.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The kernel's word for it.
            #[must_use]
            pub const fn as_word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one of the kernel's word.
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_word() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_word())
            }
        }
    };
}

words! {
    /// What a cache does with writes. It is kept in the backing device's superblock.
    CacheMode {
        /// A write goes to both devices and is done when both have it: the cache can be lost at any time.
        WriteThrough = "writethrough",
        /// A write is done when the cache has it: what is dirty exists only there. Use a cache device without a volatile
        /// write cache ([`WriteCache`](crate::WriteCache)): with one the kernel itself can lose acknowledged writes in a
        /// power cut.
        WriteBack = "writeback",
        /// Writes go past the cache.
        WriteAround = "writearound",
        /// Reads and writes go past the cache.
        None = "none",
    }
}

words! {
    /// How a backing device stands to a cache set, as its superblock tells.
    State {
        /// No cache set has anything of it.
        NoCache = "no cache",
        /// A cache set has copies, none of them newer.
        Clean = "clean",
        /// A cache set has blocks that the backing device has not.
        Dirty = "dirty",
        /// The device ran without its cache set: what that set still has of it is out of date.
        Inconsistent = "inconsistent",
    }
}

words! {
    /// Which blocks of a full cache are given up.
    Replacement {
        /// What was not used for the longest time.
        Lru = "lru",
        /// What came in first.
        Fifo = "fifo",
        /// Any.
        Random = "random",
    }
}

words! {
    /// Whether a device has a write cache of its own that loses its content with the power, as the kernel knows it.
    ///
    /// The kernel writes the leaves of a set's tree without a flush before (drivers/md/bcache/btree.c,
    /// `do_btree_node_write`). A leaf can so be on the medium before the block that it points to, in place of the key of an
    /// older block that was acknowledged; a power cut before the next journal entry loses that block. Found by the power cut
    /// test on Linux 6.1: started from such a state, the kernel itself lacked the block.
    WriteCache {
        /// It has one: the kernel sends flushes.
        Volatile = "write back",
        /// It has none, or one that outlives the power.
        None = "write through",
    }
}

words! {
    /// Whether blocks that were only read ahead are kept in the cache.
    ReadaheadPolicy {
        /// All of them.
        All = "all",
        /// Only a filesystem's metadata.
        MetaOnly = "meta-only",
    }
}

words! {
    /// What happens to a cached device when its cache set fails.
    StopPolicy {
        /// It is stopped if it is dirty, and goes on without the cache if it is clean.
        Auto = "auto",
        /// It is stopped.
        Always = "always",
    }
}

words! {
    /// What a cache set does after too many errors of its devices.
    OnError {
        /// It shuts itself down.
        Unregister = "unregister",
        /// The whole machine stops.
        Panic = "panic",
    }
}

impl CacheMode {
    /// The four bits in a backing device's superblock.
    pub(crate) const fn bits(self) -> u64 {
        self as u64
    }
}

impl Replacement {
    /// The three bits in a cache device's superblock.
    pub(crate) const fn bits(self) -> u64 {
        self as u64
    }
}
