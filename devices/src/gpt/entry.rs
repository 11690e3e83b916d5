//! One entry of the array: 128 bytes (UEFI specification 2.10, section 5.3.3).

use uuid::Uuid;

/// Bytes of an entry in the tables that we make.
pub(super) const SIZE: u64 = 128;
/// Entries in the tables that we make, the least that the specification allows.
pub(super) const COUNT: u64 = 128;
/// UTF-16 units of a name.
pub(super) const NAME_UNITS: usize = 36;

/// The used fields of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) type_guid: Uuid,
    pub(super) guid: Uuid,
    pub(super) first: u64,
    /// Inclusive.
    pub(super) last: u64,
    pub(super) attributes: u64,
    pub(super) name: [u16; NAME_UNITS],
}

impl Entry {
    /// `None` for an unused entry, whose type is zero, and for fewer than 128 bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let guid = |at: usize| Some(Uuid::from_bytes_le(bytes.get(at..at + 16)?.try_into().ok()?));
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let type_guid = guid(0)?;
        if type_guid.is_nil() {
            return None;
        }
        let mut name = [0; NAME_UNITS];
        let units = bytes.get(56..56 + 2 * NAME_UNITS)?.chunks_exact(2);
        for (unit, pair) in name.iter_mut().zip(units) {
            *unit = u16::from_le_bytes(pair.try_into().ok()?);
        }
        Some(Self {
            type_guid,
            guid: guid(16)?,
            first: number(32)?,
            last: number(40)?,
            attributes: number(48)?,
            name,
        })
    }

    pub(super) fn encode(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        bytes[..16].copy_from_slice(&self.type_guid.to_bytes_le());
        bytes[16..32].copy_from_slice(&self.guid.to_bytes_le());
        bytes[32..40].copy_from_slice(&self.first.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.last.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.attributes.to_le_bytes());
        for (pair, unit) in bytes[56..].chunks_exact_mut(2).zip(self.name) {
            pair.copy_from_slice(&unit.to_le_bytes());
        }
        bytes
    }

    /// The name up to its first zero.
    pub(super) fn name(&self) -> String {
        let end = self.name.iter().position(|unit| *unit == 0).unwrap_or(NAME_UNITS);
        String::from_utf16_lossy(&self.name[..end])
    }
}

/// A name as it is stored; what is too long is cut.
pub(super) fn encode_name(name: &str) -> [u16; NAME_UNITS] {
    let mut units = [0; NAME_UNITS];
    for (to, from) in units.iter_mut().zip(name.encode_utf16()) {
        *to = from;
    }
    units
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_entry_survives_being_written_and_read(
            type_guid in 1_u128.., guid: u128, first: u64, last: u64, attributes: u64, name in "\\PC{0,18}",
        ) {
            let entry = Entry {
                type_guid: Uuid::from_u128(type_guid),
                guid: Uuid::from_u128(guid),
                first,
                last,
                attributes,
                name: encode_name(&name),
            };
            prop_assert_eq!(Entry::parse(&entry.encode()), Some(entry.clone()));
            prop_assert_eq!(entry.name(), name.split('\0').next().unwrap_or_default());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let read = Entry::parse(&bytes);
            prop_assert_eq!(read.is_some(), bytes.len() >= 128 && bytes[..16] != [0; 16]);
        }
    }

    #[test]
    fn an_entry_of_zeroes_is_unused() {
        assert_eq!(Entry::parse(&[0; 128]), None);
    }
}
