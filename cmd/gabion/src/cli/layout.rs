//! Options that say how a volume lies on disks.

use clap::{Args, ValueEnum};
use devices::Bytes;
use lvm::ops::Layout;
use lvm::{DevicePath, Error, Kind};

use super::value;

/// How data lie on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutKind {
    /// One piece after the other
    Linear,
    /// In turn over several disks; one lost disk loses all
    Striped,
    /// The same on several disks
    Raid1,
    /// In turn over several disks, with parity: one disk may fail
    Raid5,
    /// In turn over several disks, with two parities: two disks may fail
    Raid6,
    /// In turn over several disks, each with a copy
    Raid10,
}

/// What a volume is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VolumeKind {
    /// One piece after the other
    Linear,
    /// In turn over several disks; one lost disk loses all
    Striped,
    /// The same on several disks
    Raid1,
    /// In turn over several disks, with parity: one disk may fail
    Raid5,
    /// In turn over several disks, with two parities: two disks may fail
    Raid6,
    /// In turn over several disks, each with a copy
    Raid10,
    /// In a thin pool, which gives it space as it is written
    Thin,
}

impl VolumeKind {
    /// Its layout; a thin volume has its pool's.
    pub(crate) const fn layout(self) -> Option<LayoutKind> {
        Some(match self {
            Self::Linear => LayoutKind::Linear,
            Self::Striped => LayoutKind::Striped,
            Self::Raid1 => LayoutKind::Raid1,
            Self::Raid5 => LayoutKind::Raid5,
            Self::Raid6 => LayoutKind::Raid6,
            Self::Raid10 => LayoutKind::Raid10,
            Self::Thin => return None,
        })
    }
}

/// Details of a layout.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LayoutDetails {
    /// Disks that data are spread over (parity and copies come on top) [default: 2; raid6: 3]
    #[arg(long, value_name = "N")]
    pub(crate) stripes: Option<u32>,
    /// Size of one stripe's piece [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub(crate) stripe_size: Option<Bytes>,
    /// Further copies of the data; 1 makes two in all [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) mirrors: Option<u32>,
    /// Disks of the group to use; may be repeated [default: whichever have room]
    #[arg(long = "on", value_name = "DEVICE", value_parser = value::device)]
    pub(crate) on: Vec<DevicePath>,
}

/// What LVM itself takes when nothing is asked for.
const STRIPE_SIZE: Bytes = Bytes::kib(64);

impl LayoutDetails {
    /// Whether any detail is given.
    pub(crate) fn is_given(&self) -> bool {
        self.stripes.is_some() || self.stripe_size.is_some() || self.mirrors.is_some() || !self.on.is_empty()
    }

    /// The layout of a kind with these details.
    ///
    /// # Errors
    ///
    /// Details that the kind does not have.
    pub(crate) fn layout(&self, kind: LayoutKind, tried: &str) -> Result<Layout, Error> {
        let has = |detail: Option<&str>, kinds: &[LayoutKind]| match detail {
            Some(option) if !kinds.contains(&kind) => {
                let kind =
                    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                Err(Error::new(Kind::InvalidArgument, tried)
                    .with_answer(format!("{option} means nothing for the type {kind}")))
            }
            _ => Ok(()),
        };
        let striped = [LayoutKind::Striped, LayoutKind::Raid5, LayoutKind::Raid6, LayoutKind::Raid10];
        has(self.stripes.map(|_| "--stripes"), &striped)?;
        has(self.stripe_size.map(|_| "--stripe-size"), &striped)?;
        has(self.mirrors.map(|_| "--mirrors"), &[LayoutKind::Raid1, LayoutKind::Raid10])?;
        let stripe_size = self.stripe_size.unwrap_or(STRIPE_SIZE);
        let stripes = self.stripes.unwrap_or(if kind == LayoutKind::Raid6 { 3 } else { 2 });
        let copies = self.mirrors.unwrap_or(1).saturating_add(1);
        Ok(match kind {
            LayoutKind::Linear => Layout::Linear,
            LayoutKind::Striped => Layout::Striped { stripes, stripe_size },
            LayoutKind::Raid1 => Layout::Raid1 { copies },
            LayoutKind::Raid5 => Layout::Raid5 { stripes, stripe_size },
            LayoutKind::Raid6 => Layout::Raid6 { stripes, stripe_size },
            LayoutKind::Raid10 => Layout::Raid10 { copies, stripes, stripe_size },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_sensible_numbers_of_their_own() {
        let stripe_size = STRIPE_SIZE;
        let none = LayoutDetails::default();
        for (kind, layout) in [
            (LayoutKind::Linear, Layout::Linear),
            (LayoutKind::Striped, Layout::Striped { stripes: 2, stripe_size }),
            (LayoutKind::Raid1, Layout::Raid1 { copies: 2 }),
            (LayoutKind::Raid5, Layout::Raid5 { stripes: 2, stripe_size }),
            (LayoutKind::Raid6, Layout::Raid6 { stripes: 3, stripe_size }),
            (LayoutKind::Raid10, Layout::Raid10 { copies: 2, stripes: 2, stripe_size }),
        ] {
            assert_eq!(none.layout(kind, "test").unwrap(), layout);
        }
        let more = LayoutDetails { mirrors: Some(2), ..LayoutDetails::default() };
        assert_eq!(more.layout(LayoutKind::Raid1, "test").unwrap(), Layout::Raid1 { copies: 3 });
    }

    #[test]
    fn details_that_a_kind_does_not_have_are_refused_by_name() {
        let mirrors = LayoutDetails { mirrors: Some(1), ..LayoutDetails::default() };
        let error = mirrors.layout(LayoutKind::Linear, "create volume data/db").unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert!(error.to_string().contains("--mirrors means nothing for the type linear"), "{error}");
        let stripes = LayoutDetails { stripes: Some(2), ..LayoutDetails::default() };
        assert!(stripes.layout(LayoutKind::Raid1, "test").is_err());
    }
}
