//! Patterns that match a whole text.

use std::fmt;
use std::str::FromStr;

use regex_lite::Regex;

use crate::{Error, Kind};

/// A regular expression that must match the whole text.
///
/// ```
/// use devices::selector::Pattern;
///
/// let disks: Pattern = "sd[b-z]".parse()?;
/// assert!(disks.matches("sdc"));
/// assert!(!disks.matches("sdc1") && !disks.matches("xsdc"));
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    whole: Regex,
}

impl Pattern {
    /// Whether the whole text fits.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether everything that fits begins with this word, because the expression does: `loop2+` with `loop`.
    #[must_use]
    pub fn begins_with(&self, word: &str) -> bool {
        let Some(rest) = self.text.strip_prefix(word) else { return false };
        // `loop?2` need not begin with `loop`, and neither need `loop0|sdb`.
        !rest.starts_with(['?', '*', '{']) && !self.text.contains('|')
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let failed = |answer: String| {
            Error::new(Kind::InvalidArgument, format!("read the pattern {text:?}")).with_answer(answer)
        };
        if text.is_empty() {
            return Err(failed("it is empty and would match nothing".to_owned()));
        }
        // Alone first, so that `a)(b` is not made whole by what is put around it.
        Regex::new(text).map_err(|cause| failed(cause.to_string()))?;
        let whole = Regex::new(&format!("^(?:{text})$")).map_err(|cause| failed(cause.to_string()))?;
        Ok(Self { text: text.to_owned(), whole })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn alternatives_and_anchors_match_the_whole_text_too() {
        for text in ["sda|sdb", "^sda$|^sdb$"] {
            assert!(pattern(text).matches("sda") && pattern(text).matches("sdb"), "{text}");
            assert!(!pattern(text).matches("sda1") && !pattern(text).matches("xsdb"), "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "a)(b", "[", "*", "sd[z-b]"] {
            assert_eq!(text.parse::<Pattern>().unwrap_err().kind(), Kind::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn a_pattern_is_for_a_kind_only_when_all_of_it_is() {
        assert!(pattern("loop2+").begins_with("loop"));
        for text in ["loop?2", "loop*", "loop{0}", "loop0|sdb", "lo+p", ".*"] {
            assert!(!pattern(text).begins_with("loop"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_hang(text in "[a-c\\[\\](){}|*+?.^$\\\\0-9,-]{0,16}", name in "[a-c0-9]{0,12}") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                let _ = pattern.matches(&name);
            }
        }

        #[test]
        fn a_plain_name_matches_itself_alone(name in "[a-z]{1,6}[0-9]{0,3}", other in "[a-z]{1,6}[0-9]{0,3}") {
            prop_assert_eq!(pattern(&name).matches(&other), name == other);
        }
    }
}
