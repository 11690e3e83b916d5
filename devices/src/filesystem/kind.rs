//! The filesystems that volumes may carry.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Error, Kind};

/// A type of filesystem that this library can make, check, grow and give another uuid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsType {
    /// ext4, by e2fsprogs.
    Ext4,
    /// XFS, by xfsprogs.
    Xfs,
    /// btrfs, by btrfs-progs.
    Btrfs,
}

impl FsType {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// The name that the kernel, libblkid and Kubernetes have for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The smallest device on which it is made here.
    ///
    /// xfsprogs refuses less than 300 MiB since 5.19; btrfs wants 109 MiB with doubled metadata; ext4 would do with
    /// less, but a journal of 4 MiB has to fit beside some data.
    #[must_use]
    pub const fn minimum_size(self) -> Bytes {
        match self {
            Self::Ext4 => Bytes::mib(16),
            Self::Xfs => Bytes::mib(300),
            Self::Btrfs => Bytes::mib(128),
        }
    }

    /// The Debian package with its programs.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }
}

impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FsType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|fs| fs.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            Error::new(Kind::InvalidArgument, format!("take {shown:?} as a filesystem type"))
                .with_answer("volumes carry ext4, xfs or btrfs")
        })
    }
}
