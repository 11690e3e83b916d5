//! From a new device's superblock to bytes, exactly as `make-bcache` of bcache-tools 1.0.8 writes them.

use devices::Sectors;

use super::decode::{FIRST_DATA, MAGIC, SECTOR, version};
use super::{BackingRole, CacheRole, Role, Superblock};
use crate::checksum;

/// The bucket size that the tools write into a backing device's superblock, where nothing reads it: 512 KiB in sectors.
const BACKING_BUCKET: u64 = 1024;

impl Superblock {
    /// The 4,096 bytes of a new device's superblock. What the kernel adds later (features, the journal) is not written.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = Bytes([0; Self::LENGTH]);
        bytes.put(8, &SECTOR.to_le_bytes());
        bytes.put(16, &self.version_of_new().to_le_bytes());
        bytes.put(24, &MAGIC);
        bytes.put(40, self.uuid.as_bytes());
        bytes.put(56, self.set.as_ref().map_or(&[0; 16], |set| set.as_bytes()));
        bytes.put(72, self.label.as_ref().map_or("", |label| label.as_str()).as_bytes());
        bytes.put(112, &self.sequence.to_le_bytes());
        bytes.put16(192, self.block_size.get() / Sectors::SIZE);
        match &self.role {
            Role::Backing(role) => bytes.backing(role),
            Role::Cache(role) => bytes.cache(role),
        }
        let sum = checksum(&bytes.0[8..208]);
        bytes.put(0, &sum.to_le_bytes());
        bytes.0
    }

    /// The version that the tools choose.
    fn version_of_new(&self) -> u64 {
        match &self.role {
            Role::Backing(role) if role.data_offset.get() == FIRST_DATA => version::BACKING,
            Role::Backing(_) => version::BACKING_WITH_OFFSET,
            Role::Cache(_) => version::CACHE,
        }
    }
}

struct Bytes([u8; Superblock::LENGTH]);

impl Bytes {
    fn put(&mut self, at: usize, what: &[u8]) {
        self.0[at..at + what.len()].copy_from_slice(what);
    }

    fn put16(&mut self, at: usize, what: u64) {
        self.put(at, &u16::try_from(what).unwrap_or(0).to_le_bytes());
    }

    fn backing(&mut self, role: &BackingRole) {
        self.put(104, &role.mode.bits().to_le_bytes());
        if role.data_offset.get() != FIRST_DATA {
            self.put(184, &role.data_offset.get().to_le_bytes());
        }
        self.put16(194, BACKING_BUCKET);
    }

    fn cache(&mut self, role: &CacheRole) {
        let flags = u64::from(role.discard) << 1 | role.replacement.bits() << 2;
        self.put(104, &flags.to_le_bytes());
        self.put(184, &role.buckets.to_le_bytes());
        self.put16(194, role.bucket_size.get());
        self.put16(196, role.devices_in_set.into());
        self.put16(198, role.place_in_set.into());
        self.put16(204, role.first_bucket.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CacheMode, Replacement, State, Uuid};
    use proptest::prelude::*;

    fn uuid() -> impl Strategy<Value = Uuid> {
        any::<[u8; 16]>()
            .prop_filter("a uuid is not all zeroes", |b| *b != [0; 16])
            .prop_map(Uuid::from_bytes)
    }

    fn backing() -> impl Strategy<Value = (u64, Role)> {
        (FIRST_DATA..1 << 40, proptest::sample::select(CacheMode::ALL)).prop_map(|(offset, mode)| {
            let version = if offset == FIRST_DATA { version::BACKING } else { version::BACKING_WITH_OFFSET };
            let data_offset = Sectors::new(offset);
            (version, Role::Backing(BackingRole { data_offset, mode, state: State::NoCache }))
        })
    }

    fn cache() -> impl Strategy<Value = (u64, Role)> {
        let replacement = proptest::sample::select(Replacement::ALL);
        (1 << 7..=1_u64 << 40, 3..=15_u32, replacement, any::<bool>()).prop_map(
            |(buckets, power, replacement, discard)| {
                let role = CacheRole {
                    buckets,
                    bucket_size: Sectors::new(1 << power),
                    devices_in_set: 1,
                    place_in_set: 0,
                    first_bucket: u16::try_from((23 >> power) + 1).unwrap(),
                    journal_buckets: 0,
                    in_use: false,
                    discard,
                    replacement,
                };
                (version::CACHE, Role::Cache(role))
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            uuid in uuid(),
            set in uuid(),
            (version, role) in prop_oneof![backing(), cache()],
            label in proptest::option::of("[a-z]{1,31}"),
            power in 0..=3_u32,
        ) {
            let superblock = Superblock {
                version,
                uuid,
                set: Some(set),
                label: label.map(|label| label.parse().unwrap()),
                sequence: 0,
                block_size: devices::Bytes::new(512 << power),
                role,
            };
            prop_assert_eq!(Superblock::decode(&superblock.encode()), Ok(Some(superblock)));
        }
    }
}
