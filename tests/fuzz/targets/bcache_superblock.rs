//! bcache superblocks: any bytes, and the same bytes with the magic and the checksum put right, so that the fields behind
//! them are reached.
#![no_main]

use bcache::{Role, Superblock, checksum};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 16] =
    [0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];

fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    let mut block = [0; Superblock::LENGTH];
    let length = bytes.len().min(block.len());
    block[..length].copy_from_slice(&bytes[..length]);
    block[8..16].copy_from_slice(&8_u64.to_le_bytes());
    block[24..40].copy_from_slice(&MAGIC);
    let journal = usize::from(u16::from_le_bytes([block[206], block[207]]));
    let sum = checksum(&block[8..208 + journal.min(256) * 8]);
    block[..8].copy_from_slice(&sum.to_le_bytes());
    look(&block);
});

fn look(bytes: &[u8]) {
    let Ok(Some(superblock)) = Superblock::decode(bytes) else { return };
    let block = superblock.block_size.get();
    assert!(block.is_power_of_two() && (512..=4096).contains(&block));
    match &superblock.role {
        Role::Backing(role) => assert!(role.data_offset.get() >= 16),
        Role::Cache(role) => {
            assert!(superblock.set.is_some() && role.bucket_size.get().is_power_of_two());
            assert!(u64::from(role.first_bucket) + u64::from(role.journal_buckets) <= role.buckets);
        }
    }
    // What a new device of the same kind would get is understood again.
    if superblock.version <= 4
        && let Ok(again) = Superblock::decode(&superblock.encode())
    {
        assert_eq!(again.map(|again| again.uuid), Some(superblock.uuid));
    }
}
