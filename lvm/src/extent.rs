//! Extents, the pieces in which LVM gives space out.

use devices::{Bytes, Sectors};
use std::fmt;

/// A number of extents; what they hold depends on the group's [`ExtentSize`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extents(u64);

impl Extents {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// `count` extents.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or `None` above 2^64 - 1.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or `None` below zero.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }

    /// The product, or `None` above 2^64 - 1.
    #[must_use]
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} extents", self.0)
    }
}

/// The size of one extent of a group: never zero, a whole number of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentSize(Sectors);

impl ExtentSize {
    /// LVM's own default.
    pub const DEFAULT: Self = Self(Sectors::new(8192));

    /// An extent of `size`; `None` for zero and for sizes whose bytes do not fit into 64 bits.
    #[must_use]
    pub const fn new(size: Sectors) -> Option<Self> {
        if size.get() == 0 || size.to_bytes().is_none() { None } else { Some(Self(size)) }
    }

    /// The size in sectors.
    #[must_use]
    pub const fn sectors(self) -> Sectors {
        self.0
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0.get() * Sectors::SIZE)
    }

    /// What `extents` hold, or `None` above 2^64 - 1 bytes.
    #[must_use]
    pub const fn span(self, extents: Extents) -> Option<Bytes> {
        self.bytes().checked_mul(extents.get())
    }

    /// The smallest number of extents that hold `size`: how LVM rounds a volume.
    #[must_use]
    pub const fn holding(self, size: Bytes) -> Extents {
        Extents(size.get().div_ceil(self.bytes().get()))
    }

    /// The largest number of whole extents within `size`: how capacity is rounded.
    #[must_use]
    pub const fn within(self, size: Bytes) -> Extents {
        Extents(size.get() / self.bytes().get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_round_up_and_capacity_rounds_down() {
        let size = ExtentSize::DEFAULT;
        assert_eq!(size.bytes(), Bytes::mib(4));
        assert_eq!(size.holding(Bytes::mib(203)), Extents::new(51));
        assert_eq!(size.span(size.holding(Bytes::mib(203))), Some(Bytes::new(213_909_504)));
        assert_eq!(size.within(Bytes::mib(203)), Extents::new(50));
        assert_eq!(size.holding(Bytes::ZERO), Extents::ZERO);
        assert_eq!(size.span(Extents::new(u64::MAX)), None);
        assert_eq!(ExtentSize::new(Sectors::ZERO), None);
        assert_eq!(ExtentSize::new(Sectors::new(u64::MAX)), None);
    }
}
