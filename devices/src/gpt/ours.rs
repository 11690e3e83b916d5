//! How a table and a partition prove that they are ours.
//!
//! | what | proof |
//! |---|---|
//! | a disk | its GUID: eight bytes by chance, the rest is UUIDv5(owner, those eight) |
//! | a partition | the type [`TYPE`]; its GUID is UUIDv5(owner, volume id); its name is the volume id, or what stands for it |
//! | what a partition is for | [`State`], in the attribute bits 48 to 63, which belong to the type |

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::entry::{Entry, NAME_UNITS};
use crate::{Error, Kind};

/// The type GUID of every partition that Gabion makes.
pub const TYPE: Uuid = Uuid::from_u128(0xa869fbfb05d4424c90996da68e782080);

/// The namespace of owners that are no UUID themselves.
const OWNERS: Uuid = Uuid::from_u128(0x42956ccde0544aad8cb2da57876287f8);
/// The first of the sixteen attribute bits that belong to the type.
const STATE_SHIFT: u32 = 48;

/// Whose volumes these are: a cluster, or a machine.
///
/// An owner that is written as a UUID (a cluster's id, a machine id) is the namespace of its volumes' GUIDs; any
/// other text is hashed into one.
///
/// ```
/// use devices::gpt::{Owner, VolumeId};
///
/// let owner: Owner = "6fe0bd3c-5df5-4f35-8a41-f85c4a2a0f4e".parse()?;
/// let volume: VolumeId = "db".parse()?;
/// assert_eq!(owner.partition_guid(&volume).get_version_num(), 5);
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    text: String,
    namespace: Uuid,
}

impl Owner {
    /// The GUID of the partition of a volume: UUIDv5(owner, id).
    #[must_use]
    pub fn partition_guid(&self, volume: &VolumeId) -> Uuid {
        Uuid::new_v5(&self.namespace, volume.0.as_bytes())
    }

    /// Whether a disk's GUID was made for this owner's tables.
    #[must_use]
    pub fn owns_disk(&self, guid: Uuid) -> bool {
        let mut chance = [0; 8];
        chance.copy_from_slice(&guid.as_bytes()[..8]);
        self.disk_guid(chance) == guid
    }

    /// A GUID for a new table.
    pub(super) fn new_disk_guid(&self) -> Uuid {
        let mut chance = [0; 8];
        chance.copy_from_slice(&Uuid::new_v4().as_bytes()[..8]);
        self.disk_guid(chance)
    }

    fn disk_guid(&self, mut chance: [u8; 8]) -> Uuid {
        // Version 8: made in a way of one's own (RFC 9562, section 5.8). The proof brings the variant's bits.
        chance[6] = chance[6] & 0x0f | 0x80;
        let mut bytes = *Uuid::new_v5(&self.namespace, &chance).as_bytes();
        bytes[..8].copy_from_slice(&chance);
        Uuid::from_bytes(bytes)
    }

    /// What a partition is called: the id where it fits; where it ends with a UUID, that one without its dashes
    /// (`pvc-` and a UUID just fit so); else a hash of its GUID.
    pub(super) fn name_of(&self, volume: &VolumeId) -> String {
        if volume.0.len() <= NAME_UNITS {
            return volume.0.clone();
        }
        volume.shortened().unwrap_or_else(|| self.stand_in(self.partition_guid(volume)))
    }

    /// A volume id never begins with a number sign, so this is never taken for one.
    fn stand_in(&self, guid: Uuid) -> String {
        format!("#{}", Uuid::new_v5(&self.namespace, guid.as_bytes()).simple())
    }

    pub(super) fn ownership(&self, entry: &Entry) -> Ownership {
        if entry.type_guid != TYPE {
            return Ownership::OtherType;
        }
        let name = entry.name();
        let candidates = [VolumeId::from_str(&name).ok(), VolumeId::lengthened(&name)];
        for volume in candidates.into_iter().flatten() {
            if self.partition_guid(&volume) == entry.guid && self.name_of(&volume) == name {
                return Ownership::Ours(Some(volume));
            }
        }
        if self.stand_in(entry.guid) == name { Ownership::Ours(None) } else { Ownership::OtherOwner }
    }
}

impl FromStr for Owner {
    type Err = Error;

    /// Takes 1 to 63 visible ASCII characters.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() || text.len() > 63 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::new(Kind::InvalidArgument, format!("take {text:?} for an owner"))
                .with_answer("an owner is 1 to 63 visible ASCII characters"));
        }
        let namespace = Uuid::try_parse(text).unwrap_or_else(|_| Uuid::new_v5(&OWNERS, text.as_bytes()));
        Ok(Self { text: text.to_owned(), namespace })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The id of a volume: a DNS label of at most 63 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(String);

impl VolumeId {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id with the dashes of the UUID at its end left out, if that makes it a name.
    fn shortened(&self) -> Option<String> {
        let (head, tail) = self.0.split_at_checked(self.0.len().checked_sub(36)?)?;
        let uuid = Uuid::try_parse(tail).ok().filter(|uuid| uuid.hyphenated().to_string() == tail)?;
        let short = format!("{head}{}", uuid.simple());
        (short.len() <= NAME_UNITS).then_some(short)
    }

    /// The id whose shortened form `name` may be.
    fn lengthened(name: &str) -> Option<Self> {
        let (head, tail) = name.split_at_checked(name.len().checked_sub(32)?)?;
        let uuid = Uuid::try_parse(tail).ok()?;
        format!("{head}{}", uuid.hyphenated()).parse().ok()
    }
}

impl FromStr for VolumeId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
        let bytes = text.as_bytes();
        if bytes.len() > 63 || !edge(bytes.first()) || !edge(bytes.last()) || !bytes.iter().all(|b| inner(*b))
        {
            return Err(Error::new(Kind::InvalidArgument, format!("take {text:?} for a volume id"))
                .with_answer("an id is 1 to 63 of a-z, 0-9 and -, and neither begins nor ends with -"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a partition is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It is. Its volume's id, unless that is too long for a name: then only who knows the id can find it.
    Ours(Option<VolumeId>),
    /// It is of another type, so another tool made it.
    OtherType,
    /// It is of our type, but neither its GUID nor its name was made for this owner.
    OtherOwner,
}

impl Ownership {
    /// Whether it is ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }
}

/// How far a partition is: what must be done with it when it is found after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Being made, and never handed out: it is removed when found.
    Creating,
    /// Handed out, and no filesystem was made yet.
    New,
    /// A filesystem is being made: it may be made again.
    Formatting,
    /// It holds ext4, which is never made again.
    Ext4,
    /// It holds XFS, which is never made again.
    Xfs,
    /// It holds btrfs, which is never made again.
    Btrfs,
    /// It is used as a block device: what is in it is not ours to know.
    Block,
    /// Being removed: the removal is to be finished.
    Removing,
    /// Written by a later version; such a partition is not changed.
    Unknown(u16),
}

impl State {
    const KNOWN: [(Self, u16); 8] = [
        (Self::Creating, 1),
        (Self::New, 2),
        (Self::Formatting, 3),
        (Self::Ext4, 4),
        (Self::Xfs, 5),
        (Self::Btrfs, 6),
        (Self::Block, 7),
        (Self::Removing, 8),
    ];

    pub(super) fn of(attributes: u64) -> Self {
        let code = u16::try_from(attributes >> STATE_SHIFT).unwrap_or(u16::MAX);
        Self::KNOWN.iter().find(|(_, known)| *known == code).map_or(Self::Unknown(code), |(state, _)| *state)
    }

    /// The attributes with this state in them; the other bits stay.
    pub(super) fn within(self, attributes: u64) -> u64 {
        let code = match self {
            Self::Unknown(code) => code,
            known => Self::KNOWN.iter().find(|(state, _)| *state == known).map_or(0, |(_, code)| *code),
        };
        attributes & ((1 << STATE_SHIFT) - 1) | u64::from(code) << STATE_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::entry::encode_name;
    use super::*;

    fn entry(owner: &Owner, volume: &VolumeId) -> Entry {
        Entry {
            type_guid: TYPE,
            guid: owner.partition_guid(volume),
            first: 0,
            last: 0,
            attributes: 0,
            name: encode_name(&owner.name_of(volume)),
        }
    }

    fn owners() -> [Owner; 3] {
        ["6fe0bd3c-5df5-4f35-8a41-f85c4a2a0f4e", "0123456789abcdef0123456789abcdef", "my-cluster"]
            .map(|text| text.parse().unwrap())
    }

    #[test]
    fn the_guid_of_a_partition_is_what_any_tool_computes() {
        // python3 -c 'import uuid; print(uuid.uuid5(uuid.UUID("6fe0bd3c-5df5-4f35-8a41-f85c4a2a0f4e"), "db"))'
        let guid = owners()[0].partition_guid(&"db".parse().unwrap());
        assert_eq!(guid.to_string(), "fe47ae84-b7be-545d-8e1e-512935dd4dca");
    }

    #[test]
    fn names_that_fit_and_usual_claims_give_their_id_back() {
        let usual = "pvc-0b0bd4f9-7a2c-4d5e-9d58-3e2a2f1c9b10";
        for owner in owners() {
            for id in ["db", "a23456789-123456789-123456789-123456", usual] {
                let volume: VolumeId = id.parse().unwrap();
                let entry = entry(&owner, &volume);
                assert_eq!(owner.ownership(&entry), Ownership::Ours(Some(volume)), "{id}");
            }
        }
        let shortened = owners()[0].name_of(&usual.parse().unwrap());
        assert_eq!(shortened, "pvc-0b0bd4f97a2c4d5e9d583e2a2f1c9b10");
        // The same text may also be an id of its own.
        let volume: VolumeId = shortened.parse().unwrap();
        let found = owners()[0].ownership(&entry(&owners()[0], &volume));
        assert_eq!(found, Ownership::Ours(Some(volume)));
    }

    #[test]
    fn our_type_with_another_owner_or_name_is_foreign() {
        let [first, second, third] = owners();
        for id in ["db".to_owned(), "x".repeat(63)] {
            let volume: VolumeId = id.parse().unwrap();
            let good = entry(&first, &volume);
            assert!(first.ownership(&good).is_ours());
            assert_eq!(second.ownership(&good), Ownership::OtherOwner);
            assert_eq!(third.ownership(&good), Ownership::OtherOwner);
            let renamed = Entry { name: encode_name("other"), ..good.clone() };
            assert_eq!(first.ownership(&renamed), Ownership::OtherOwner);
            let copied = Entry { guid: Uuid::from_u128(1), ..good.clone() };
            assert_eq!(first.ownership(&copied), Ownership::OtherOwner);
            let typed = Entry { type_guid: Uuid::from_u128(1), ..good };
            assert_eq!(first.ownership(&typed), Ownership::OtherType);
        }
    }

    #[test]
    fn the_guid_of_a_disk_names_its_owner() {
        let [first, second, third] = owners();
        for _ in 0..64 {
            let guid = first.new_disk_guid();
            assert!(first.owns_disk(guid) && !second.owns_disk(guid) && !third.owns_disk(guid), "{guid}");
            assert_eq!((guid.get_version_num(), guid.get_variant()), (8, uuid::Variant::RFC4122));
        }
        assert!(!first.owns_disk(Uuid::new_v4()));
    }

    proptest! {
        #[test]
        fn every_id_is_found_again_by_who_knows_it(id in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?") {
            let volume: VolumeId = id.parse().unwrap();
            for owner in owners() {
                let entry = entry(&owner, &volume);
                prop_assert_eq!(entry.name(), owner.name_of(&volume));
                match owner.ownership(&entry) {
                    Ownership::Ours(Some(found)) => prop_assert_eq!(found, volume.clone()),
                    other => prop_assert!(other.is_ours() && id.len() > NAME_UNITS),
                }
            }
        }

        #[test]
        fn states_round_trip_and_leave_the_other_attributes_alone(attributes: u64) {
            let state = State::of(attributes);
            prop_assert_eq!(state.within(attributes), attributes);
            for (state, _) in State::KNOWN {
                let changed = state.within(attributes);
                prop_assert_eq!(State::of(changed), state);
                prop_assert_eq!(changed << 16, attributes << 16);
            }
        }

        #[test]
        fn texts_that_are_no_label_are_no_id(text in "\\PC{0,70}") {
            let label = !text.is_empty() && text.len() <= 63
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !text.starts_with('-') && !text.ends_with('-');
            prop_assert_eq!(text.parse::<VolumeId>().is_ok(), label);
        }
    }
}
