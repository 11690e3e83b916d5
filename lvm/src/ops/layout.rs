//! How a volume lies on PVs.

use devices::Bytes;

use crate::{Error, ExtentSize, Kind};

/// Most copies that LVM makes of a RAID 1 volume.
const COPIES_MAX: u32 = 10;
/// Most stripes of a striped volume.
const STRIPES_MAX: u32 = 128;
/// Most legs of a RAID volume.
const LEGS_MAX: u32 = 64;
/// Smallest chunk of a stripe: a page.
const STRIPE_SIZE_MIN: Bytes = Bytes::kib(4);

/// How a thick volume lies on PVs. Legs and stripes each take a PV of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Extents one after the other.
    #[default]
    Linear,
    /// Chunks in turn over several PVs; no redundancy.
    Striped {
        /// How many PVs, 2 to 128.
        stripes: u32,
        /// Size of a chunk: a power of two from 4 KiB to the group's extent size.
        stripe_size: Bytes,
    },
    /// Copies; all but one may fail.
    Raid1 {
        /// How many copies in all, 2 to 10.
        copies: u32,
    },
    /// Stripes and one leg of parity; one leg may fail.
    Raid4 {
        /// Legs with data, 2 to 63.
        stripes: u32,
        /// Size of a chunk: a power of two from 4 KiB to the group's extent size.
        stripe_size: Bytes,
    },
    /// Stripes with rotating parity; one leg may fail.
    Raid5 {
        /// Legs' worth of data, 2 to 63.
        stripes: u32,
        /// Size of a chunk: a power of two from 4 KiB to the group's extent size.
        stripe_size: Bytes,
    },
    /// Stripes with two rotating parities; two legs may fail.
    Raid6 {
        /// Legs' worth of data, 3 to 62.
        stripes: u32,
        /// Size of a chunk: a power of two from 4 KiB to the group's extent size.
        stripe_size: Bytes,
    },
    /// Stripes of copies.
    Raid10 {
        /// Copies of each chunk, 2 to 10.
        copies: u32,
        /// Legs' worth of data, 2 to 32.
        stripes: u32,
        /// Size of a chunk: a power of two from 4 KiB to the group's extent size.
        stripe_size: Bytes,
    },
}

/// Whether the legs of a RAID volume carry checksums of their blocks (dm-integrity), which turn silent corruption
/// into an error that the other legs repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Integrity {
    /// No checksums.
    #[default]
    None,
    /// Checksums, with a bitmap of what may be out of step after a crash.
    Bitmap,
    /// Checksums in a journal: nothing is ever out of step, and every write is done twice.
    Journal,
}

impl Layout {
    /// Stripes that hold data: sizes are multiples of so many extents.
    #[must_use]
    pub const fn data_stripes(self) -> u32 {
        match self {
            Self::Linear | Self::Raid1 { .. } => 1,
            Self::Striped { stripes, .. }
            | Self::Raid4 { stripes, .. }
            | Self::Raid5 { stripes, .. }
            | Self::Raid6 { stripes, .. }
            | Self::Raid10 { stripes, .. } => stripes,
        }
    }

    /// PVs that the layout needs at least.
    #[must_use]
    pub const fn legs(self) -> u32 {
        match self {
            Self::Linear => 1,
            Self::Raid1 { copies } => copies,
            Self::Striped { stripes, .. } => stripes,
            Self::Raid4 { stripes, .. } | Self::Raid5 { stripes, .. } => stripes.saturating_add(1),
            Self::Raid6 { stripes, .. } => stripes.saturating_add(2),
            Self::Raid10 { copies, stripes, .. } => copies.saturating_mul(stripes),
        }
    }

    /// Legs' worth of parity.
    pub(crate) const fn parity_legs(self) -> u32 {
        match self {
            Self::Linear | Self::Striped { .. } | Self::Raid1 { .. } | Self::Raid10 { .. } => 0,
            Self::Raid4 { .. } | Self::Raid5 { .. } => 1,
            Self::Raid6 { .. } => 2,
        }
    }

    /// Whether the kernel keeps redundancy (and a metadata extent on each leg).
    #[must_use]
    pub const fn is_raid(self) -> bool {
        !matches!(self, Self::Linear | Self::Striped { .. })
    }

    const fn stripe_size(self) -> Option<Bytes> {
        match self {
            Self::Linear | Self::Raid1 { .. } => None,
            Self::Striped { stripe_size, .. }
            | Self::Raid4 { stripe_size, .. }
            | Self::Raid5 { stripe_size, .. }
            | Self::Raid6 { stripe_size, .. }
            | Self::Raid10 { stripe_size, .. } => Some(stripe_size),
        }
    }

    /// Checks numbers and sizes against what LVM takes.
    pub(crate) fn check(self, integrity: Integrity, extent: ExtentSize, tried: &str) -> Result<(), Error> {
        let refuse = |answer: String| Err(Error::new(Kind::InvalidArgument, tried).with_answer(answer));
        let (least, most) = match self {
            Self::Linear | Self::Raid1 { .. } => (1, 1),
            Self::Striped { .. } => (2, STRIPES_MAX),
            Self::Raid4 { .. } | Self::Raid5 { .. } => (2, LEGS_MAX - 1),
            Self::Raid6 { .. } => (3, LEGS_MAX - 2),
            Self::Raid10 { .. } => (2, LEGS_MAX / 2),
        };
        let stripes = self.data_stripes();
        if stripes < least || stripes > most {
            return refuse(format!("{stripes} stripes were asked for; {least} to {most} can be had"));
        }
        if let Self::Raid1 { copies } | Self::Raid10 { copies, .. } = self
            && !(2..=COPIES_MAX).contains(&copies)
        {
            return refuse(format!("{copies} copies were asked for; 2 to {COPIES_MAX} can be had"));
        }
        if self.is_raid() && self.legs() > LEGS_MAX {
            return refuse(format!("the layout has {} legs; LVM takes {LEGS_MAX}", self.legs()));
        }
        if let Some(size) = self.stripe_size()
            && (!size.get().is_power_of_two() || size < STRIPE_SIZE_MIN || size > extent.bytes())
        {
            return refuse(format!(
                "a stripe size of {size} was asked for; it is a power of two from {STRIPE_SIZE_MIN} to {}",
                extent.bytes()
            ));
        }
        if integrity != Integrity::None && !self.is_raid() {
            return refuse("checksums of blocks are for RAID volumes only".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(layout: Layout, integrity: Integrity) -> Option<Kind> {
        layout.check(integrity, ExtentSize::DEFAULT, "create volume v/x").err().map(|error| error.kind())
    }

    #[test]
    fn layouts_know_their_legs() {
        let stripe_size = Bytes::kib(64);
        for (layout, stripes, legs) in [
            (Layout::Linear, 1, 1),
            (Layout::Striped { stripes: 4, stripe_size }, 4, 4),
            (Layout::Raid1 { copies: 3 }, 1, 3),
            (Layout::Raid4 { stripes: 2, stripe_size }, 2, 3),
            (Layout::Raid5 { stripes: 3, stripe_size }, 3, 4),
            (Layout::Raid6 { stripes: 3, stripe_size }, 3, 5),
            (Layout::Raid10 { copies: 2, stripes: 2, stripe_size }, 2, 4),
        ] {
            assert_eq!((layout.data_stripes(), layout.legs()), (stripes, legs), "{layout:?}");
            assert_eq!(kind(layout, Integrity::None), None, "{layout:?}");
            let refused = (!layout.is_raid()).then_some(Kind::InvalidArgument);
            assert_eq!(kind(layout, Integrity::Bitmap), refused, "{layout:?}");
        }
    }

    #[test]
    fn layouts_that_lvm_would_not_take() {
        let stripe_size = Bytes::kib(64);
        for layout in [
            Layout::Striped { stripes: 1, stripe_size },
            Layout::Striped { stripes: 129, stripe_size },
            Layout::Striped { stripes: 2, stripe_size: Bytes::kib(2) },
            Layout::Striped { stripes: 2, stripe_size: Bytes::kib(65) },
            Layout::Striped { stripes: 2, stripe_size: Bytes::mib(8) },
            Layout::Striped { stripes: 2, stripe_size: Bytes::ZERO },
            Layout::Raid1 { copies: 0 },
            Layout::Raid1 { copies: 1 },
            Layout::Raid1 { copies: 11 },
            Layout::Raid5 { stripes: 1, stripe_size },
            Layout::Raid5 { stripes: u32::MAX, stripe_size },
            Layout::Raid6 { stripes: 2, stripe_size },
            Layout::Raid10 { copies: 1, stripes: 2, stripe_size },
            Layout::Raid10 { copies: 3, stripes: 32, stripe_size },
        ] {
            assert_eq!(kind(layout, Integrity::None), Some(Kind::InvalidArgument), "{layout:?}");
        }
    }
}
