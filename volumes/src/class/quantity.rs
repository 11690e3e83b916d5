//! Sizes and shares as Kubernetes and people write them.

use std::fmt;

use devices::Bytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A size in bytes, written as a Kubernetes quantity: `10Gi`, `1.5G`, `1e9`, `512`. What is no whole number of bytes is
/// rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub Bytes);

/// Part of a whole, or a size: `10%`, `5Gi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reserve {
    /// So many bytes.
    Bytes(Bytes),
    /// So many percent, 0 to 99.
    Percent(u8),
}

impl Default for Reserve {
    fn default() -> Self {
        Self::Bytes(Bytes::ZERO)
    }
}

impl Reserve {
    /// What that is of a total, rounded up to whole bytes.
    #[must_use]
    pub fn of(self, total: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let part = (u128::from(total.get()) * u128::from(percent)).div_ceil(100);
                Bytes::new(u64::try_from(part).unwrap_or(u64::MAX))
            }
        }
    }
}

/// A number or a text, as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Number(u64),
    Text(String),
}

/// Reads a quantity (`k8s.io/apimachinery/pkg/api/resource`): a decimal number, then a binary suffix, a decimal suffix,
/// or an exponent.
///
/// # Errors
///
/// What is wrong with it, in words.
pub(crate) fn parse_quantity(text: &str) -> Result<Bytes, String> {
    let shown: String = text.chars().take(40).collect();
    let wrong = || format!("{shown:?} is no size; write for example 10Gi, 1.5G or 1073741824");
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(if text.starts_with('-') { format!("{shown:?} is negative") } else { wrong() });
    }
    let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
    let scale = u32::try_from(fraction.trim_end_matches('0').len()).map_err(|_| wrong())?;
    let too_large = || format!("{shown:?} is more than 2^64 bytes");
    let mantissa: u128 = match digits.trim_start_matches('0') {
        "" => return factor(suffix).map(|_| Bytes::ZERO).ok_or_else(wrong),
        // 10^28 with any fraction of it still fits into 128 bits with a factor of 2^60 taken apart below.
        digits if digits.len() <= 20 => digits.parse().map_err(|_| wrong())?,
        _ => return Err(too_large()),
    };
    let (multiplier, divisor) = factor(suffix).ok_or_else(wrong)?;
    let below = 10_u128.checked_pow(scale).and_then(|below| below.checked_mul(divisor)).ok_or_else(wrong)?;
    let bytes = mantissa.checked_mul(multiplier).ok_or_else(too_large)?.div_ceil(below);
    u64::try_from(bytes).map(Bytes::new).map_err(|_| too_large())
}

/// What a suffix multiplies and divides by.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = binary.iter().position(|known| *known == suffix) {
        return Some((1 << (10 * (power + 1)), 1));
    }
    let tens = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok().filter(|tens| (-18..=18).contains(tens))?,
    };
    let power = 10_u128.checked_pow(tens.unsigned_abs())?;
    Some(if tens < 0 { (1, power) } else { (power, 1) })
}

impl std::str::FromStr for Size {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, crate::Error> {
        parse_quantity(text).map(Self).map_err(|why| crate::Error::invalid("a size", why))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantity;
        impl Visitor<'_> for Quantity {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 10Gi")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(Bytes::new(bytes)))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes)
                    .map(|bytes| Size(Bytes::new(bytes)))
                    .map_err(|_| E::custom(format!("{bytes} is negative")))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                parse_quantity(text).map(Size).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Quantity)
    }
}

impl<'de> Deserialize<'de> for Reserve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Share;
        impl Visitor<'_> for Share {
            type Value = Reserve;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 10Gi, or a share such as 5%")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Reserve, E> {
                Ok(Reserve::Bytes(Bytes::new(bytes)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Reserve, E> {
                let Some(percent) = text.strip_suffix('%') else {
                    return parse_quantity(text).map(Reserve::Bytes).map_err(E::custom);
                };
                match percent.parse() {
                    Ok(percent @ 0..=99) => Ok(Reserve::Percent(percent)),
                    _ => Err(E::custom(format!("{text:?} is no share; write 0% to 99%"))),
                }
            }
        }
        deserializer.deserialize_any(Share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_mean_what_kubernetes_means() {
        for (text, bytes) in [
            ("0", 0),
            ("10Gi", 10 << 30),
            ("1.5Gi", 3 << 29),
            ("1G", 1_000_000_000),
            ("1e9", 1_000_000_000),
            ("1E9", 1_000_000_000),
            ("2E", 2_000_000_000_000_000_000),
            ("500m", 1),
            ("1500m", 2),
            ("0.1Ki", 103),
            (".5k", 500),
            ("5.", 5),
            ("+7", 7),
            ("15Ei", 15 << 60),
            ("000000000000000000000000000001", 1),
        ] {
            assert_eq!(parse_quantity(text), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        for text in [
            "",
            ".",
            "Gi",
            "-1",
            "1 Gi",
            "10GiB",
            "10gi",
            "1e99",
            "16Ei",
            "1..2",
            "0x10",
            "1e",
            "99999999999999999999E",
        ] {
            assert!(parse_quantity(text).is_err(), "{text}");
        }
        assert!(parse_quantity("-1Gi").unwrap_err().contains("negative"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_quantity(&text);
        }

        #[test]
        fn bytes_and_binary_units_are_exact(count in 0_u64..1 << 24) {
            prop_assert_eq!(parse_quantity(&count.to_string()), Ok(Bytes::new(count)));
            prop_assert_eq!(parse_quantity(&format!("{count}Mi")), Ok(Bytes::mib(count)));
        }

        #[test]
        fn shares_are_never_below_what_they_are_of(total: u64, percent in 0_u8..100) {
            let part = Reserve::Percent(percent).of(Bytes::new(total));
            prop_assert!(u128::from(part.get()) * 100 >= u128::from(total) * u128::from(percent));
            prop_assert!(part <= Bytes::new(total));
        }
    }
}
