//! LVM's own kind of UUID.

use std::fmt;
use std::str::FromStr;

/// Where the hyphens stand in the printed form: 6-4-4-4-4-4-6 characters.
const GROUPS: [usize; 7] = [6, 4, 4, 4, 4, 4, 6];

/// The identity of a PV, group or volume: 32 characters of LVM's alphabet, which survives every rename.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 32]);

/// The text is no LVM UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no LVM UUID (32 letters and digits, with or without hyphens as 6-4-4-4-4-4-6)")]
pub struct UuidError(String);

impl Uuid {
    /// The 32 characters as they stand in a label on the disk.
    ///
    /// # Errors
    ///
    /// [`UuidError`] for a byte outside LVM's alphabet `[0-9A-Za-z!#]`.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, UuidError> {
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || *b == b'!' || *b == b'#';
        // All bytes at once, as the processor can.
        if bytes.iter().fold(true, |good, byte| good & allowed(byte)) {
            Ok(Self(bytes))
        } else {
            Err(UuidError(String::from_utf8_lossy(&bytes).into_owned()))
        }
    }

    /// The 32 characters without hyphens, as in a device-mapper UUID (`LVM-` group volume).
    #[must_use]
    pub fn compact(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Self, UuidError> {
        let error = || UuidError(text.to_owned());
        let mut bytes = [0; 32];
        match text.as_bytes() {
            compact if compact.len() == bytes.len() => bytes.copy_from_slice(compact),
            hyphenated if hyphenated.len() == bytes.len() + GROUPS.len() - 1 => {
                let (mut to, mut from) = (0, 0);
                for length in GROUPS {
                    if from > 0 && hyphenated[from - 1] != b'-' {
                        return Err(error());
                    }
                    bytes[to..to + length].copy_from_slice(&hyphenated[from..from + length]);
                    (to, from) = (to + length, from + length + 1);
                }
            }
            _ => return Err(error()),
        }
        Self::from_bytes(bytes).map_err(|_| error())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.compact();
        for (index, length) in GROUPS.into_iter().enumerate() {
            let (group, tail) = rest.split_at(length.min(rest.len()));
            let hyphen = if index == 0 { "" } else { "-" };
            write!(f, "{hyphen}{group}")?;
            rest = tail;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_one_uuid() {
        let text = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abc!#9";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.to_string(), text);
        assert_eq!(uuid.compact().parse::<Uuid>().unwrap(), uuid);
    }

    #[test]
    fn rubbish_is_refused() {
        for bad in ["", "a", &"a".repeat(31), &"a".repeat(33), &"-".repeat(32), &"ü".repeat(16)] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad:?}");
        }
        assert!("Kt3bSo1-tY0-bq3V-5a2D-Zzzz-0000-abc!#9".parse::<Uuid>().is_err());
    }
}
