//! Limits of reading and writing: what a volume may do in a second, whichever of its users do it.
//!
//! They are the volume's own, kept in its tags, over those of its class. The kernel holds them (`io.max` of cgroup v2) where
//! the cgroups of all pods begin, so that one line is for all pods together that use the volume.

mod cgroup;
mod held;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use crate::Error;
use crate::class::{Written, parse_quantity};

/// One limit: so much in a second, or expressly none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// So many operations or bytes in a second.
    PerSecond(NonZeroU64),
    /// None, whatever the class says; written `max`.
    Unlimited,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limited {
    /// Reads in a second.
    ReadIops,
    /// Writes in a second.
    WriteIops,
    /// Bytes read in a second.
    ReadBps,
    /// Bytes written in a second.
    WriteBps,
}

impl Limited {
    /// All there are, in the order in which they are written.
    pub const ALL: [Self; 4] = [Self::ReadIops, Self::WriteIops, Self::ReadBps, Self::WriteBps];

    /// Its name in parameters and classes: `readIops`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::ReadIops => "readIops",
            Self::WriteIops => "writeIops",
            Self::ReadBps => "readBps",
            Self::WriteBps => "writeBps",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limited| limited.as_word() == word)
    }

    /// Its key in `io.max`.
    const fn key(self) -> &'static str {
        match self {
            Self::ReadIops => "riops",
            Self::WriteIops => "wiops",
            Self::ReadBps => "rbps",
            Self::WriteBps => "wbps",
        }
    }

    /// The largest that can be asked for: the kernel counts operations in 32 bits; more bytes than 2^60 would not fit into
    /// the tag, and no disk has them.
    const fn largest(self) -> u64 {
        match self {
            Self::ReadIops | Self::WriteIops => u32::MAX as u64 - 1,
            Self::ReadBps | Self::WriteBps => (1 << 60) - 1,
        }
    }
}

/// Limits of a volume, or of the volumes of a class; what is absent is not said here.
///
/// ```
/// use volumes::{Limited, Limits};
///
/// let limits = Limits::default().with(Limited::WriteBps, "10Mi")?.with(Limited::ReadIops, "max")?;
/// assert_eq!(limits.to_string(), "readIops=max writeBps=10485760");
/// assert!(Limits::default().with(Limited::ReadIops, "0").is_err());
/// # Ok::<(), volumes::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    of: [Option<Limit>; 4],
}

impl Limits {
    /// Nothing said.
    pub const NONE: Self = Self { of: [None; 4] };

    /// With one of them as it is written: a whole number or a quantity such as `10Mi`, or `max`.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) for what is no number, 0, or more than can be had (2^32 - 2
    /// operations, 2^60 - 1 bytes).
    pub fn with(mut self, limited: Limited, text: &str) -> Result<Self, Error> {
        let refuse = |why: String| Error::invalid(limited.as_word(), why);
        let limit = if text == "max" {
            Limit::Unlimited
        } else {
            let number = parse_quantity(text).map_err(refuse)?.get();
            let most = limited.largest();
            let number = NonZeroU64::new(number).filter(|number| number.get() <= most);
            Limit::PerSecond(number.ok_or_else(|| refuse(format!("1 to {most}, or max, can be had")))?)
        };
        self.of[limited as usize] = Some(limit);
        Ok(self)
    }

    /// One of them.
    #[must_use]
    pub const fn get(&self, limited: Limited) -> Option<Limit> {
        self.of[limited as usize]
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.iter().all(Option::is_none)
    }

    /// Whether something is limited.
    #[must_use]
    pub fn limit_something(&self) -> bool {
        self.of.iter().any(|limit| matches!(limit, Some(Limit::PerSecond(_))))
    }

    /// These, and those of `below` where nothing is said.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let both = |limited: Limited| self.get(limited).or(below.get(limited));
        Self { of: Limited::ALL.map(both) }
    }

    /// The form that fits into a tag: four numbers in hexadecimal between full stops, `m` for none, nothing for what is not
    /// said. At most 49 bytes.
    pub(crate) fn to_tag(self) -> String {
        let words = self.of.map(|limit| match limit {
            None => String::new(),
            Some(Limit::Unlimited) => "m".to_owned(),
            Some(Limit::PerSecond(number)) => format!("{number:x}"),
        });
        words.join(".")
    }

    /// Reads what [`to_tag`](Self::to_tag) wrote.
    pub(crate) fn from_tag(text: &str) -> Option<Self> {
        let mut limits = Self::default();
        let mut words = text.split('.');
        for limited in Limited::ALL {
            limits.of[limited as usize] = match words.next()? {
                "" => None,
                "m" => Some(Limit::Unlimited),
                word => {
                    let number = u64::from_str_radix(word, 16).ok().and_then(NonZeroU64::new)?;
                    Some(Limit::PerSecond(number)).filter(|_| number.get() <= limited.largest())
                }
            };
        }
        words.next().is_none().then_some(limits)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = Limited::ALL.into_iter().filter_map(|limited| Some((limited, self.get(limited)?)));
        for (nth, (limited, limit)) in said.enumerate() {
            let gap = if nth == 0 { "" } else { " " };
            match limit {
                Limit::PerSecond(number) => write!(f, "{gap}{}={number}", limited.as_word())?,
                Limit::Unlimited => write!(f, "{gap}{}=max", limited.as_word())?,
            }
        }
        Ok(())
    }
}

impl FromStr for Limited {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let words = Self::ALL.map(Self::as_word).join(", ");
        Self::of_word(text)
            .ok_or_else(|| Error::invalid(format!("{text:?}"), format!("there are the limits {words}")))
    }
}

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Written>::deserialize(deserializer)?;
        written.into_iter().try_fold(Self::default(), |limits, (key, value)| {
            let text = match value {
                Written::Number(number) => number.to_string(),
                Written::Text(text) => text,
            };
            limits.with(key.parse().map_err(de::Error::custom)?, &text).map_err(de::Error::custom)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some() -> impl Strategy<Value = Limits> {
        let limit = |most: u64| {
            proptest::option::of(prop_oneof![
                Just(Limit::Unlimited),
                (1..=most).prop_map(|number| Limit::PerSecond(NonZeroU64::new(number).unwrap()))
            ])
        };
        let each = Limited::ALL.map(|limited| limit(limited.largest()));
        each.prop_map(|of| Limits { of })
    }

    proptest! {
        #[test]
        fn tags_hold_all_limits_and_fit(limits in some()) {
            let tag = format!("{}{}", crate::backend::tags::LIMITS, limits.to_tag());
            prop_assert!(tag.len() <= 64 && lvm::Tag::new(&tag).is_ok(), "{}", tag);
            prop_assert_eq!(Limits::from_tag(&limits.to_tag()), Some(limits));
        }

        #[test]
        fn what_is_said_is_read_again(limits in some(), below in some()) {
            let said: Vec<String> = limits.to_string().split_whitespace().map(str::to_owned).collect();
            let again = said.iter().try_fold(Limits::default(), |again, word| {
                let (key, value) = word.split_once('=').unwrap();
                again.with(key.parse().unwrap(), value)
            });
            prop_assert_eq!(again.unwrap(), limits);
            let over = limits.over(below);
            for limited in Limited::ALL {
                prop_assert_eq!(over.get(limited), limits.get(limited).or(below.get(limited)));
            }
        }

        #[test]
        fn rubbish_in_a_tag_is_no_limit(text in "[0-9a-fm.]{0,60}|\\PC{0,20}") {
            if let Some(limits) = Limits::from_tag(&text) {
                prop_assert_eq!(Limits::from_tag(&limits.to_tag()), Some(limits));
            }
        }
    }

    #[test]
    fn only_what_can_be_had_is_taken() {
        for bad in ["", "0", "-1", "1x", "max ", "Max", "4294967295", "99999999999999999999"] {
            assert!(Limits::default().with(Limited::ReadIops, bad).is_err(), "{bad}");
        }
        assert!(Limits::default().with(Limited::ReadBps, "2Ei").is_err());
        assert!(Limits::default().with(Limited::ReadBps, "1Pi").is_ok());
        for bad in ["...", "", "1.2.3", "1.2.3.4.5", "0...", "ffffffff...", "x..."] {
            let read = Limits::from_tag(bad);
            assert!(read.is_none_or(|limits| limits.is_empty()), "{bad}: {read:?}");
        }
    }
}
