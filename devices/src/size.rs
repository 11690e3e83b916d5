//! Sizes that say what they count.

use std::fmt;
use std::str::FromStr;

/// A size did not parse, is out of range, or cannot be expressed in the unit asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The text is no number with an optional unit.
    #[error("{0:?} is not a size; write for example 512MiB, 1.5GiB or 10G")]
    Syntax(String),
    /// The number does not fit into 64 bits of bytes.
    #[error("{0:?} is too large for a size")]
    TooLarge(String),
    /// A negative number.
    #[error("{0:?} is negative, which no size is")]
    Negative(String),
    /// Not a whole number of 512-byte sectors.
    #[error("{0} bytes are not a whole number of 512-byte sectors")]
    NotSectors(u64),
}

/// A number of bytes.
///
/// There is no conversion from a bare integer: [`Bytes::new`] makes the caller say what the number counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes at all.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` KiB; saturates at the largest size.
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 10))
    }

    /// `count` MiB; saturates at the largest size.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 20))
    }

    /// `count` GiB; saturates at the largest size.
    #[must_use]
    pub const fn gib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 30))
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

    /// The difference, or zero below zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The next multiple of `unit` that is not smaller, or `None` if `unit` is zero or the result too large.
    #[must_use]
    pub const fn round_up(self, unit: Self) -> Option<Self> {
        match self.0.checked_next_multiple_of(unit.0) {
            Some(rounded) => Some(Self(rounded)),
            None => None,
        }
    }

    /// The last multiple of `unit` that is not larger, or `None` if `unit` is zero.
    #[must_use]
    pub const fn round_down(self, unit: Self) -> Option<Self> {
        match self.0.checked_rem(unit.0) {
            Some(rest) => Some(Self(self.0 - rest)),
            None => None,
        }
    }
}

/// For people: a binary unit with at most two decimals, exact bytes below 1 KiB; `{:#}` is always exact bytes.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if f.alternate() || self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let power = (self.0.ilog2() / 10).min(6);
        let unit = UNITS[power as usize - 1];
        let whole = self.0 >> (10 * power);
        let hundredths = (u128::from(self.0 & ((1 << (10 * power)) - 1)) * 100) >> (10 * power);
        match hundredths {
            0 => write!(f, "{whole} {unit}"),
            h if h % 10 == 0 => write!(f, "{whole}.{} {unit}", h / 10),
            h => write!(f, "{whole}.{h:02} {unit}"),
        }
    }
}

/// Accepts a decimal number with an optional unit: `B`, `Ki`/`KiB` … `Ei`/`EiB` (powers of 1,024), or
/// `k`/`K`/`kB`/`KB` … `E`/`EB` (powers of 1,000). A fraction of a byte is rounded up.
impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let syntax = || SizeError::Syntax(text.to_owned());
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(SizeError::Negative(text.to_owned()));
        }
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let factor = factor_of(unit.trim_start()).ok_or_else(syntax)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
            return Err(syntax());
        }
        let too_large = || SizeError::TooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let part = fraction_of(fraction, factor).ok_or_else(syntax)?;
        whole.checked_mul(factor).and_then(|bytes| bytes.checked_add(part)).map(Self).ok_or_else(too_large)
    }
}

fn factor_of(unit: &str) -> Option<u64> {
    let bare = unit.strip_suffix('B').unwrap_or(unit);
    let (prefix, base) = match bare.strip_suffix('i') {
        Some(prefix) => (prefix, 1024_u64),
        None => (bare, 1000_u64),
    };
    match prefix {
        "" if base == 1000 => Some(1),
        "k" if base == 1000 => Some(1000),
        _ => {
            let power = ["K", "M", "G", "T", "P", "E"].iter().position(|p| *p == prefix)?;
            base.checked_pow(u32::try_from(power).ok()? + 1)
        }
    }
}

/// `0.fraction` times `factor`, rounded up; at most 18 digits are significant for a 64-bit result.
fn fraction_of(fraction: &str, factor: u64) -> Option<u64> {
    if fraction.is_empty() {
        return Some(0);
    }
    if fraction.len() > 18 {
        return None;
    }
    let digits: u128 = fraction.parse().ok()?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    u64::try_from((digits * u128::from(factor)).div_ceil(scale)).ok()
}

/// A number of 512-byte sectors, the unit of the kernel and of device-mapper whatever the disk's own block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(u64);

impl Sectors {
    /// Bytes in a sector.
    pub const SIZE: u64 = 512;
    /// No sectors at all.
    pub const ZERO: Self = Self(0);

    /// `count` sectors of 512 bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same length in bytes, or `None` above 2^64 - 1.
    #[must_use]
    pub const fn to_bytes(self) -> Option<Bytes> {
        match self.0.checked_mul(Self::SIZE) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
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

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_bytes() {
            Some(bytes) => bytes.fmt(f),
            None => write!(f, "{} sectors", self.0),
        }
    }
}

impl TryFrom<Bytes> for Sectors {
    type Error = SizeError;

    fn try_from(bytes: Bytes) -> Result<Self, SizeError> {
        if bytes.0.is_multiple_of(Self::SIZE) {
            Ok(Self(bytes.0 / Self::SIZE))
        } else {
            Err(SizeError::NotSectors(bytes.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_parse_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("1Ki", 1024),
            ("1KiB", 1024),
            ("1.5GiB", 1_610_612_736),
            ("10G", 10_000_000_000),
            ("1kB", 1000),
            ("1 MiB", 1 << 20),
            ("0.1KiB", 103),
            ("15EiB", 15 << 60),
        ] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for bad in ["", "B", ".5G", "1.G", "1..2G", "1.2.3", "x", "1X", "1iB", "1Kib", "1 2", "0x10", "1e3"] {
            assert!(matches!(bad.parse::<Bytes>(), Err(SizeError::Syntax(_))), "{bad:?}");
        }
        assert!(matches!("-1G".parse::<Bytes>(), Err(SizeError::Negative(_))));
        for large in ["16EiB", "18446744073709551616", "99999999999999999999999"] {
            assert!(matches!(large.parse::<Bytes>(), Err(SizeError::TooLarge(_))), "{large:?}");
        }
    }

    #[test]
    fn sizes_print_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 30, "1 GiB"),
            ((1 << 30) + (1 << 24), "1.01 GiB"),
            (u64::MAX, "15.99 EiB"),
        ] {
            assert_eq!(Bytes::new(bytes).to_string(), text);
        }
        assert_eq!(format!("{:#}", Bytes::gib(1)), "1073741824 B");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn exact_bytes_round_trip(bytes: u64) {
            prop_assert_eq!(format!("{:#}", Bytes::new(bytes)).parse(), Ok(Bytes::new(bytes)));
        }

        #[test]
        fn rounding_brackets(bytes: u64, unit in 1..u64::from(u32::MAX)) {
            let (size, unit) = (Bytes::new(bytes), Bytes::new(unit));
            let down = size.round_down(unit).unwrap();
            prop_assert!(down <= size && size.get() - down.get() < unit.get());
            if let Some(up) = size.round_up(unit) {
                prop_assert!(up >= size && up.get() - size.get() < unit.get());
            }
        }
    }
}
