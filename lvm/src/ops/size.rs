//! Sizes that callers ask for, checked and rounded before LVM is asked.

use devices::{Bytes, Sectors};

use crate::{Error, ExtentSize, Extents, Kind};

/// Largest size that LVM and the kernel can express, in bytes: a signed 64-bit offset.
const SIZE_MAX: u64 = i64::MAX.unsigned_abs();

/// How large a volume must be at least and may be at most, in bytes.
///
/// The volume gets the smallest size that the group's extents (and the layout's stripes) allow and that is not
/// below the first; if that is above the second, nothing is made.
///
/// ```
/// use devices::Bytes;
/// use lvm::ops::SizeRange;
///
/// let exactly_a_gibibyte = SizeRange::at_least(Bytes::gib(1)).up_to(Bytes::gib(1));
/// let a_gibibyte_or_a_little_more = SizeRange::at_least(Bytes::gib(1));
/// # let _ = (exactly_a_gibibyte, a_gibibyte_or_a_little_more);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizeRange {
    required: Bytes,
    limit: Option<Bytes>,
}

impl SizeRange {
    /// At least `required`, however far that is rounded up.
    #[must_use]
    pub const fn at_least(required: Bytes) -> Self {
        Self { required, limit: None }
    }

    /// And at most `limit`, after rounding.
    #[must_use]
    pub const fn up_to(self, limit: Bytes) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The size required.
    #[must_use]
    pub const fn required(&self) -> Bytes {
        self.required
    }

    /// The largest size allowed.
    #[must_use]
    pub const fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The smallest number of extents, a multiple of `stripes`, that holds the size.
    pub(crate) fn extents(&self, extent: ExtentSize, stripes: u32, tried: &str) -> Result<Extents, Error> {
        check(self.required, tried)?;
        let count = extent.holding(self.required).get();
        let size = count
            .checked_next_multiple_of(u64::from(stripes))
            .map(Extents::new)
            .and_then(|extents| Some((extents, extent.span(extents)?)));
        match size {
            Some((extents, size)) if size.get() <= SIZE_MAX => {
                self.within_limit(size, tried)?;
                Ok(extents)
            }
            _ => Err(refuse(tried, format!("{:#} is more than LVM can express", self.required))),
        }
    }

    fn within_limit(&self, size: Bytes, tried: &str) -> Result<(), Error> {
        match self.limit {
            Some(limit) if size > limit => Err(refuse(
                tried,
                format!(
                    "the smallest size that is not below {:#} is {size:#}, and the limit is {limit:#}",
                    self.required
                ),
            )
            .with_advice("allow a limit that is a multiple of the group's extent size")),
            _ => Ok(()),
        }
    }
}

/// Checks a size that is not rounded to extents.
pub(crate) fn check(size: Bytes, tried: &str) -> Result<Sectors, Error> {
    if size == Bytes::ZERO {
        return Err(refuse(tried, "a size of zero bytes was asked for"));
    }
    if size.get() > SIZE_MAX {
        return Err(refuse(tried, format!("{size:#} is more than 2^63 - 1 bytes")));
    }
    Sectors::try_from(size).map_err(|cause| {
        refuse(tried, cause.to_string()).with_advice("round the size up to 512 bytes").with_source(cause)
    })
}

fn refuse(tried: &str, answer: impl Into<String>) -> Error {
    Error::new(Kind::InvalidArgument, tried).with_answer(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extents(range: SizeRange, stripes: u32) -> Result<u64, Kind> {
        range
            .extents(ExtentSize::DEFAULT, stripes, "create volume v/x")
            .map(Extents::get)
            .map_err(|e| e.kind())
    }

    #[test]
    fn sizes_round_up_to_extents_and_stripes() {
        assert_eq!(extents(SizeRange::at_least(Bytes::mib(203)), 1), Ok(51));
        assert_eq!(extents(SizeRange::at_least(Bytes::new(512)), 1), Ok(1));
        assert_eq!(extents(SizeRange::at_least(Bytes::mib(10)), 4), Ok(4));
        assert_eq!(extents(SizeRange::at_least(Bytes::mib(18)), 4), Ok(8));
    }

    #[test]
    fn sizes_never_pass_the_callers_limit() {
        let range = |limit| SizeRange::at_least(Bytes::mib(203)).up_to(Bytes::mib(limit));
        assert_eq!(extents(range(204), 1), Ok(51));
        assert_eq!(extents(range(203), 1), Err(Kind::InvalidArgument));
        assert_eq!(extents(range(100), 1), Err(Kind::InvalidArgument));
        assert_eq!(extents(range(204), 2), Err(Kind::InvalidArgument));
    }

    #[test]
    fn sizes_that_no_volume_can_have() {
        for size in [0, 1, 511, 513, 1 << 63, (1 << 63) - 1, u64::MAX, (1 << 63) - 512 + 1] {
            let range = SizeRange::at_least(Bytes::new(size));
            assert_eq!(extents(range, 1), Err(Kind::InvalidArgument), "{size}");
        }
        // In sectors, below 2^63, but not after rounding to extents.
        let range = SizeRange::at_least(Bytes::new((1 << 63) - 512));
        assert_eq!(extents(range, 1), Err(Kind::InvalidArgument));
    }

    proptest! {
        #[test]
        fn rounding_is_smallest_and_within_the_limit(size: u64, limit: u64, stripes in 1_u32..64) {
            let range = SizeRange::at_least(Bytes::new(size)).up_to(Bytes::new(limit));
            if let Ok(count) = extents(range, stripes) {
                let bytes = count * ExtentSize::DEFAULT.bytes().get();
                prop_assert!(bytes >= size && bytes <= limit && count % u64::from(stripes) == 0);
                prop_assert!(bytes - size < ExtentSize::DEFAULT.bytes().get() * u64::from(stripes));
            }
        }
    }
}
