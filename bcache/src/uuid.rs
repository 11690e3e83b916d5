//! Identities of devices and cache sets.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use crate::error::{Error, system};

/// The identity of a backing device, a cache device or a cache set: 16 bytes, written in the usual way.
///
/// ```
/// let uuid: bcache::Uuid = "11111111-2222-3333-4444-555555555555".parse()?;
/// assert_eq!(uuid.to_string(), "11111111-2222-3333-4444-555555555555");
/// # Ok::<(), bcache::ParseUuidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The uuid with these bytes, in the order in which they are written.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A new random one (RFC 9562, version 4).
    ///
    /// # Errors
    ///
    /// [`Kind::Io`](crate::Kind::Io) when the kernel gives no random bytes.
    pub fn random() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut bytes))
            .map_err(system("read /dev/urandom for a uuid"))?;
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Ok(Self(bytes))
    }

    /// `None` for all zeroes, which is how bcache writes that there is none.
    pub(crate) fn unless_zero(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no uuid of the form `8-4-4-4-12` in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a uuid")]
pub struct ParseUuidError(String);

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let parse = || {
            let mut bytes = [0; 16];
            let mut groups = text.split('-');
            let mut filled = 0;
            for length in [8, 4, 4, 4, 12] {
                let group = groups.next().filter(|group| group.len() == length && group.is_ascii())?;
                for pair in group.as_bytes().chunks_exact(2) {
                    let digit = |at: usize| char::from(pair[at]).to_digit(16);
                    bytes[filled] = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
                    filled += 1;
                }
            }
            groups.next().is_none().then_some(Self(bytes))
        };
        parse().ok_or_else(|| ParseUuidError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn random_ones_differ_and_say_their_version() {
        let (one, other) = (Uuid::random().unwrap(), Uuid::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().as_bytes()[14], b'4');
    }

    #[test]
    fn what_is_no_uuid_is_refused() {
        for bad in [
            "",
            "11111111-2222-3333-4444-55555555555",
            "11111111-2222-3333-4444-555555555555-",
            "1111111122223333-4444-5555-555555555555",
            "g1111111-2222-3333-4444-555555555555",
            "+1111111-2222-3333-4444-555555555555",
            "11111111222233334444555555555555",
        ] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(bytes: [u8; 16]) {
            let uuid = Uuid::from_bytes(bytes);
            prop_assert_eq!(uuid.to_string().parse(), Ok(uuid));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Uuid>();
        }
    }
}
