//! Names and tags, checked once when they are made.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of a group or a volume, in bytes (`NAME_LEN` of LVM less the terminating zero).
const NAME_MAX: usize = 127;
/// Longest device-mapper name, in bytes (`DM_NAME_LEN` less the terminating zero).
const DM_NAME_MAX: usize = 127;
/// Longest tag, in bytes.
const TAG_MAX: usize = 1024;

/// Words that LVM keeps for the volumes it makes itself (`apply_lvname_restrictions`), wherever they stand.
const RESERVED_PARTS: [&str; 17] = [
    "_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_wcorig", "_mimage", "_mlog", "_rimage", "_rmeta",
    "_tdata", "_tmeta", "_vdata", "_imeta", "_iorig", "_pmspare", "_vorigin",
];
/// Beginnings that LVM keeps for itself.
const RESERVED_PREFIXES: [&str; 2] = ["snapshot", "pvmove"];

/// Why a text is no name or no tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No characters at all.
    #[error("the {what} is empty")]
    Empty {
        /// What was to be named.
        what: &'static str,
    },
    /// More bytes than LVM takes.
    #[error("the {what} has {length} bytes; LVM takes at most {max}")]
    TooLong {
        /// What was to be named.
        what: &'static str,
        /// Bytes given.
        length: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A character outside LVM's set.
    #[error("{name:?} is no {what}: it may not hold {character:?}")]
    Character {
        /// What was to be named.
        what: &'static str,
        /// The text given.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
    /// `.`, `..`, or a leading hyphen, which a command would read as an option.
    #[error("{name:?} is no {what}: LVM does not take it")]
    Form {
        /// What was to be named.
        what: &'static str,
        /// The text given.
        name: String,
    },
    /// A word that LVM keeps for volumes it makes itself.
    #[error("{name:?} cannot be used: LVM keeps {reserved:?} for itself")]
    Reserved {
        /// The text given.
        name: String,
        /// The reserved part.
        reserved: &'static str,
    },
}

fn check_syntax(what: &'static str, name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > NAME_MAX {
        return Err(NameError::TooLong { what, length: name.len(), max: NAME_MAX });
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'_' | b'.' | b'-');
    check_characters(what, name, allowed)?;
    if name.starts_with('-') || name == "." || name == ".." {
        return Err(NameError::Form { what, name: name.to_owned() });
    }
    Ok(())
}

/// Refuses the first character that is not among the bytes allowed, all of them ASCII.
fn check_characters(what: &'static str, name: &str, allowed: impl Fn(u8) -> bool) -> Result<(), NameError> {
    // All bytes at once, as the processor can: a reader checks thousands of names, and nearly all are good.
    if name.bytes().fold(true, |good, byte| good & allowed(byte)) {
        return Ok(());
    }
    let at = name.bytes().position(|byte| !allowed(byte)).unwrap_or_default();
    // Everything before it is ASCII, so a character begins here.
    let character = name.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
    Err(NameError::Character { what, name: name.to_owned(), character })
}

macro_rules! text_newtype {
    ($type:ident) => {
        impl $type {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
    };
}

/// The name of a volume group: 1 to 127 bytes of `[A-Za-z0-9+_.-]`, no leading hyphen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VgName(String);

impl VgName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError`], which says what LVM would not take.
    pub fn new(name: &str) -> Result<Self, NameError> {
        check_syntax("volume group name", name)?;
        Ok(Self(name.to_owned()))
    }
}

text_newtype!(VgName);

/// The name of a logical volume within its group: 1 to 127 bytes of `[A-Za-z0-9+_.-]`, no leading hyphen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LvName(Box<str>);

impl LvName {
    /// Checks a name that a caller may give to a volume.
    ///
    /// # Errors
    ///
    /// [`NameError`], also for the words that LVM keeps for itself ([`NameError::Reserved`]).
    pub fn new(name: &str) -> Result<Self, NameError> {
        let name = Self::existing(name)?;
        let prefix = RESERVED_PREFIXES.into_iter().find(|prefix| name.0.starts_with(prefix));
        let part = || RESERVED_PARTS.into_iter().find(|part| name.0.contains(part));
        match prefix.or_else(part) {
            Some(reserved) => Err(NameError::Reserved { name: name.0.into(), reserved }),
            None => Ok(name),
        }
    }

    /// Checks a name that was read from a disk, LVM's own internal names (`pool_tdata`) among them.
    ///
    /// # Errors
    ///
    /// [`NameError`] where LVM itself would not have written it.
    pub fn existing(name: &str) -> Result<Self, NameError> {
        check_syntax("logical volume name", name)?;
        Ok(Self(name.into()))
    }

    /// The device-mapper name of this volume: group and volume with hyphens doubled, joined by one hyphen,
    /// then `layer` (such as `tpool` or `real`) where LVM adds one.
    ///
    /// # Errors
    ///
    /// [`NameError::TooLong`] above the 127 bytes that device-mapper takes; LVM finds that out only when it
    /// activates the volume.
    pub fn dm_name(&self, vg: &VgName, layer: Option<&str>) -> Result<String, NameError> {
        let doubled = |text: &str| text.replace('-', "--");
        let mut name = format!("{}-{}", doubled(&vg.0), doubled(&self.0));
        if let Some(layer) = layer {
            name.push('-');
            name.push_str(layer);
        }
        if name.len() > DM_NAME_MAX {
            return Err(NameError::TooLong {
                what: "device-mapper name",
                length: name.len(),
                max: DM_NAME_MAX,
            });
        }
        Ok(name)
    }
}

text_newtype!(LvName);

/// A tag of a PV, group or volume: 1 to 1,024 bytes of `[A-Za-z0-9_+.-/=!:#&]`, no leading hyphen.
///
/// Copies share its text: thousands of volumes bear the same few.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Arc<str>);

impl Tag {
    /// Checks a tag.
    ///
    /// # Errors
    ///
    /// [`NameError`], which says what LVM would not take.
    pub fn new(tag: &str) -> Result<Self, NameError> {
        const WHAT: &str = "tag";
        if tag.is_empty() {
            return Err(NameError::Empty { what: WHAT });
        }
        if tag.len() > TAG_MAX {
            return Err(NameError::TooLong { what: WHAT, length: tag.len(), max: TAG_MAX });
        }
        let allowed = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'+' | b'.' | b'-' | b'/' | b'=' | b'!' | b':' | b'#' | b'&')
        };
        check_characters(WHAT, tag, allowed)?;
        if tag.starts_with('-') {
            return Err(NameError::Form { what: WHAT, name: tag.to_owned() });
        }
        Ok(Self(tag.into()))
    }

    /// A tag that this library writes itself.
    pub(crate) fn literal(tag: &'static str) -> Self {
        debug_assert!(Self::new(tag).is_ok(), "{tag} is no tag");
        Self(tag.into())
    }
}

text_newtype!(Tag);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_lvm_takes() {
        for name in ["a", "A+b_c.d-e", "lvol0", "0", "mysnapshot", &"a".repeat(127), "x_tdat", "..a"] {
            assert_eq!(LvName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_are_an_option_an_injection_or_no_name() {
        for name in
            ["", ".", "..", "-x", "--", "a b", "a/b", "a;b", "a\nb", "a\"b", "a'b", "a\\b", "ü", "a\0b"]
        {
            assert!(LvName::new(name).is_err(), "{name:?}");
            assert!(VgName::new(name).is_err(), "{name:?}");
        }
        assert!(matches!(
            LvName::new(&"a".repeat(128)),
            Err(NameError::TooLong { length: 128, max: 127, .. })
        ));
    }

    #[test]
    fn reserved_words_are_refused_for_new_names_only() {
        for name in
            ["snapshot", "snapshot-1", "pvmove0", "a_tdata", "x_rimage_0", "lvol0_pmspare", "a_tmetab"]
        {
            assert!(matches!(LvName::new(name), Err(NameError::Reserved { .. })), "{name}");
            assert!(LvName::existing(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn dm_names_double_hyphens_and_keep_the_limit() {
        let vg = VgName::new("a-b").unwrap();
        let lv = LvName::new("c--d").unwrap();
        assert_eq!(lv.dm_name(&vg, None).unwrap(), "a--b-c----d");
        assert_eq!(lv.dm_name(&vg, Some("tpool")).unwrap(), "a--b-c----d-tpool");
        assert!(LvName::new(&"-".repeat(63).replacen('-', "a", 1)).unwrap().dm_name(&vg, None).is_err());
    }

    #[test]
    fn tags() {
        for tag in ["gabion", "gabion.dev/owner=1-2", "a:b#c&d!e", &"t".repeat(64)] {
            assert_eq!(Tag::new(tag).unwrap().as_str(), tag);
        }
        for tag in ["", "-a", "a b", "a,b", "a@b", "a\"b", "a\nb", "ü", "a;b", "a\\b", &"t".repeat(1025)] {
            assert!(Tag::new(tag).is_err(), "{tag:?}");
        }
    }

    proptest! {
        #[test]
        fn no_accepted_name_needs_quoting(name in "\\PC{0,140}") {
            if let Ok(name) = LvName::new(&name) {
                prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\;$`|&<>()*?".contains(&b)));
            }
        }
    }
}
