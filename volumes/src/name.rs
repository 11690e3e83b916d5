//! Names: of volumes, snapshots, classes, and of whom they belong to.

use std::fmt;
use std::str::FromStr;

use devices::gpt;
use sha2::{Digest, Sha256};

use crate::Error;

/// Longest DNS label.
const LABEL_MAX: usize = 63;
/// Longest name that CSI lets a caller give.
const GIVEN_MAX: usize = 128;
/// Characters of base32 that stand for a name that cannot be an id itself: 130 bits.
const HASH_LENGTH: usize = 26;

/// Whether a text is a DNS label: 1 to 63 of `a-z`, `0-9` and `-`, neither beginning nor ending with `-`.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LABEL_MAX).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The name itself where it is a DNS label, else `prefix` and a hash.
fn label_for(prefix: &str, field: &str, name: &str) -> Result<String, Error> {
    if name.is_empty() || name.len() > GIVEN_MAX {
        return Err(Error::invalid(
            field,
            format!("it has {} bytes; 1 to {GIVEN_MAX} are taken", name.len()),
        ));
    }
    if let Some(character) = name.chars().find(|character| character.is_control()) {
        return Err(Error::invalid(field, format!("it holds the control character {character:?}")));
    }
    if is_label(name) {
        return Ok(name.to_owned());
    }
    Ok(format!("{prefix}{}", hashed(name)))
}

/// What stands for a text that is too long for a name: 26 base32 characters of its SHA-256.
pub(crate) fn hashed(text: &str) -> String {
    base32(&Sha256::digest(text.as_bytes()))
}

/// The first characters of the hash in lower-case base32 (RFC 4648, section 6).
fn base32(hash: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bits = 0_u32;
    let mut held = 0;
    let mut text = String::with_capacity(HASH_LENGTH);
    for byte in hash {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 && text.len() < HASH_LENGTH {
            held -= 5;
            text.push(char::from(ALPHABET[(bits >> held & 31) as usize]));
        }
    }
    text
}

macro_rules! label {
    ($type:ident, $what:literal) => {
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

        impl FromStr for $type {
            type Err = Error;

            /// Takes a DNS label of at most 63 bytes.
            fn from_str(text: &str) -> Result<Self, Error> {
                if is_label(text) {
                    return Ok(Self(text.to_owned()));
                }
                let shown: String = text.chars().take(80).collect();
                Err(Error::invalid(
                    format!("{shown:?} for {}", $what),
                    "it is 1 to 63 of a-z, 0-9 and -, and neither begins nor ends with -",
                ))
            }
        }
    };
}

/// The id of a volume: a DNS label, the same on every node, and all that is needed to find the volume.
///
/// ```
/// use volumes::VolumeId;
///
/// let id = VolumeId::for_name("pvc-0b0bd4f9-7a2c-4d5e-9d58-3e2a2f1c9b10")?;
/// assert_eq!(id.as_str(), "pvc-0b0bd4f9-7a2c-4d5e-9d58-3e2a2f1c9b10");
/// assert!(VolumeId::for_name("My Data")?.as_str().starts_with("gv-"));
/// # Ok::<(), volumes::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(String);

label!(VolumeId, "a volume id");

impl VolumeId {
    /// The id for a name that a caller gave: the name itself where it is a DNS label of at most 63 bytes, else `gv-`
    /// and 26 base32 characters of its SHA-256.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) for an empty name, one above 128 bytes, or control
    /// characters.
    pub fn for_name(name: &str) -> Result<Self, Error> {
        label_for("gv-", "name", name).map(Self)
    }

    /// The same id for partition tables, which have the same rule.
    pub(crate) fn to_gpt(&self) -> Result<gpt::VolumeId, Error> {
        Ok(self.0.parse()?)
    }
}

/// The id of a snapshot: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

label!(SnapshotId, "a snapshot id");

impl SnapshotId {
    /// The id for a name that a caller gave, as [`VolumeId::for_name`] with `gs-`.
    ///
    /// # Errors
    ///
    /// As [`VolumeId::for_name`].
    pub fn for_name(name: &str) -> Result<Self, Error> {
        label_for("gs-", "name", name).map(Self)
    }
}

/// The name of a device class: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassName(String);

label!(ClassName, "the name of a class");

/// Whose volumes these are: the id of a cluster or of a machine. What bears another owner is never changed.
///
/// ```
/// use volumes::Owner;
///
/// let owner: Owner = "6fe0bd3c-5df5-4f35-8a41-f85c4a2a0f4e".parse()?;
/// assert!("my cluster".parse::<Owner>().is_err());
/// # Ok::<(), volumes::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    text: String,
    gpt: gpt::Owner,
}

impl Owner {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same owner for partition tables.
    pub(crate) const fn gpt(&self) -> &gpt::Owner {
        &self.gpt
    }

    /// The uuid of a volume's filesystem, which follows from its id: so an unfinished one is known again, and a copy
    /// never keeps its original's.
    pub(crate) fn filesystem_uuid(&self, volume: &VolumeId) -> Result<devices::filesystem::Uuid, Error> {
        Ok(self.gpt.partition_guid(&volume.to_gpt()?))
    }
}

impl FromStr for Owner {
    type Err = Error;

    /// Takes 1 to 43 of `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`: what fits into a tag of 64 bytes.
    fn from_str(text: &str) -> Result<Self, Error> {
        let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if text.is_empty() || text.len() > 43 || !fits {
            let shown: String = text.chars().take(80).collect();
            return Err(Error::invalid(
                format!("{shown:?} for an owner"),
                "an owner is 1 to 43 letters, digits, full stops, _ and -",
            ));
        }
        Ok(Self { text: text.to_owned(), gpt: text.parse()? })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_is_no_label_is_hashed_as_any_tool_would() {
        // printf %s 'My Data' | sha256sum | xxd -r -p | base32 | head -c 26 | tr A-Z a-z
        assert_eq!(VolumeId::for_name("My Data").unwrap().as_str(), "gv-phstxhzy2he54tmezgtygoooxa");
        let long = "x".repeat(128);
        let id = SnapshotId::for_name(&long).unwrap();
        assert!(id.as_str().starts_with("gs-") && id.as_str().len() == 29, "{id}");
    }

    #[test]
    fn names_that_nobody_may_give() {
        for bad in ["", "a\nb", "a\0", &"x".repeat(129)] {
            assert!(VolumeId::for_name(bad).is_err(), "{bad:?}");
        }
        for hostile in ["../../etc", "-rf", "a/b", "snapshot", "A"] {
            let id = VolumeId::for_name(hostile).unwrap();
            assert!(is_label(id.as_str()), "{hostile}");
        }
    }

    proptest! {
        #[test]
        fn every_id_is_a_label_and_its_own_id(name in "\\PC{1,60}") {
            if let Ok(id) = VolumeId::for_name(&name) {
                prop_assert!(is_label(id.as_str()));
                prop_assert_eq!(VolumeId::for_name(id.as_str()).unwrap(), id.clone());
                prop_assert!(id.to_gpt().is_ok());
            }
        }
    }
}
