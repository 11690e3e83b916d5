//! Sizes as bcache prints them: three digits and a tenth.

use std::fmt;

use devices::Bytes;

/// A size that the kernel printed as `1.2k`, `512.0k` or `3.9G`.
///
/// The kernel (`bch_hprint`) keeps one decimal of a unit of 1,024 and cuts the rest, so the true size is only known to lie in
/// a range a tenth of a unit wide. `1.2k` stands for 1,229 to 1,331 bytes. Since everything that bcache counts is whole
/// sectors of 512 bytes, `0.0k` is exactly nothing.
///
/// ```
/// use devices::Bytes;
///
/// let size: bcache::Approximate = "1.2k".parse()?;
/// assert_eq!((size.at_least(), size.at_most()), (Bytes::new(1229), Bytes::new(1331)));
/// # Ok::<(), bcache::ParseApproximateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Approximate {
    at_least: Bytes,
    at_most: Bytes,
}

impl Approximate {
    /// The smallest size that is printed so.
    #[must_use]
    pub const fn at_least(self) -> Bytes {
        self.at_least
    }

    /// The largest size that is printed so.
    #[must_use]
    pub const fn at_most(self) -> Bytes {
        self.at_most
    }

    /// Whether not even one sector is there.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.at_most.get() < devices::Sectors::SIZE
    }

    /// Whether a size would be printed so.
    #[must_use]
    pub fn is(self, size: Bytes) -> bool {
        (self.at_least..=self.at_most).contains(&size)
    }
}

/// The smallest size of the range, for people.
impl fmt::Display for Approximate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() { f.write_str("nothing") } else { write!(f, "about {}", self.at_least) }
    }
}

/// The text is no size as bcache prints it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size as bcache prints it")]
pub struct ParseApproximateError(String);

impl std::str::FromStr for Approximate {
    type Err = ParseApproximateError;

    fn from_str(text: &str) -> Result<Self, ParseApproximateError> {
        parse(text.trim()).ok_or_else(|| ParseApproximateError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Approximate> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((number, power)) =
        text.char_indices().last().and_then(|(at, unit)| Some((text.get(..at)?, "kMGTPE".find(unit)?)))
    else {
        let exact = Bytes::new(text.parse().ok().filter(|_| digits(text))?);
        return Some(Approximate { at_least: exact, at_most: exact });
    };
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    if !digits(whole) || !digits(tenth) || tenth.len() != 1 {
        return None;
    }
    let (whole, tenth): (u128, u128) = (whole.parse().ok()?, tenth.parse().ok()?);
    // The kernel prints t * 10 / 1024 of the t whole 1,024ths of the unit, and forgets what is below these.
    let below = 1_u128 << (10 * power);
    let from =
        |tenth: u128| whole.checked_mul(1024)?.checked_add((tenth * 1024).div_ceil(10))?.checked_mul(below);
    let bytes = |size: u128| u64::try_from(size).ok().map(Bytes::new);
    // Below one whole unit the number has at least the 1,000 of the smaller one that make the kernel take the larger.
    let least = if whole == 0 && power > 0 { from(tenth)?.max(1000 * below) } else { from(tenth)? };
    let (at_least, at_most) = (bytes(least)?, bytes(from(tenth + 1)? - 1)?);
    (at_least <= at_most).then_some(Approximate { at_least, at_most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel's `bch_hprint` prints.
    fn printed(size: u64) -> String {
        let (mut units, mut whole, mut rest) = ("kMGTPE".chars(), size, 0);
        let mut unit = '?';
        while unit == '?' || whole >= 1000 {
            unit = units.next().unwrap();
            rest = whole & 1023;
            whole >>= 10;
        }
        format!("{whole}.{}{unit}", rest * 10 / 1024)
    }

    #[test]
    fn sizes_are_ranges() {
        let range = |text: &str| {
            let size: Approximate = text.parse().unwrap();
            (size.at_least().get(), size.at_most().get())
        };
        assert_eq!(range("0.0k\n"), (0, 102));
        assert_eq!(range("0.5k"), (512, 614));
        assert_eq!(range("512.0k"), (524_288, 524_390));
        assert_eq!(range("4.0M"), (4 << 20, (4 << 20) + 103 * 1024 - 1));
        assert_eq!(range("16"), (16, 16));
        assert_eq!("0.0k".parse::<Approximate>().unwrap().to_string(), "nothing");
        assert_eq!("8.0M".parse::<Approximate>().unwrap().to_string(), "about 8 MiB");
    }

    #[test]
    fn what_the_kernel_never_prints_is_refused() {
        for bad in ["", "k", ".k", "1.k", ".1k", "1.22k", "1.2", "1.2x", "-1.2k", "1.2Z", "99999999999E", "é"]
        {
            assert!(bad.parse::<Approximate>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn the_range_holds_what_was_printed(size in 0..1_u64 << 62) {
            let text = printed(size);
            let range: Approximate = text.parse().unwrap();
            prop_assert!(range.is(Bytes::new(size)), "{text} of {size}: {range:?}");
            // As narrow as can be: its ends are printed so too, and their neighbours are not.
            prop_assert_eq!(printed(range.at_least().get()), text.clone());
            prop_assert_eq!(printed(range.at_most().get()), text.clone());
            prop_assert_ne!(printed(range.at_most().get() + 1), text);
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Approximate>();
        }
    }
}
