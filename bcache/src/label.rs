//! Labels of backing and cache devices.

use std::fmt;
use std::str::FromStr;

/// A label: text of at most 31 bytes without control characters.
///
/// The superblock has room for 32 bytes, of which the kernel needs the last one for a zero when it shows the label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

impl Label {
    /// The longest label, in bytes.
    pub const MAX: usize = 31;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The text cannot be a label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be a label: 1 to 31 bytes without control characters")]
pub struct ParseLabelError(String);

impl FromStr for Label {
    type Err = ParseLabelError;

    fn from_str(text: &str) -> Result<Self, ParseLabelError> {
        // White space at the ends would not come back from sysfs.
        let good = (1..=Self::MAX).contains(&text.len())
            && !text.chars().any(char::is_control)
            && text.trim() == text;
        if good { Ok(Self(text.to_owned())) } else { Err(ParseLabelError(text.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_plain() {
        assert_eq!("db".parse::<Label>().unwrap().as_str(), "db");
        assert!("x".repeat(31).parse::<Label>().is_ok());
        for bad in ["", "a\nb", "a\0", " a", "a ", &"x".repeat(32)] {
            assert!(bad.parse::<Label>().is_err(), "{bad:?}");
        }
    }
}
