//! Thin metadata whose checksums and block numbers fit, whatever else the blocks hold.
//!
//! Checksums would stop the fuzzer at the first block, so they are put right first: what gets past them is what
//! a damaged or hostile pool could hold.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lvm::thin_meta::{BLOCK, Image, Root, ThinId, ThinMetadata};

fuzz_target!(|data: &[u8]| {
    // Each block is given by its first bytes only, so that small inputs make several blocks.
    const GIVEN: usize = 512;
    let blocks = data.len().div_ceil(GIVEN).min(64);
    let mut image = vec![0; blocks * BLOCK];
    for (number, part) in data.chunks(GIVEN).take(blocks).enumerate() {
        let block = &mut image[number * BLOCK..][..BLOCK];
        block[..part.len()].copy_from_slice(part);
        block[8..16].copy_from_slice(&(number as u64).to_le_bytes());
        let is_superblock = block[32..40] == 27_022_010_u64.to_le_bytes();
        let salt = if is_superblock { 160_774 } else { 121_107 };
        let sum = checksum(&block[4..]) ^ salt;
        block[..4].copy_from_slice(&sum.to_le_bytes());
    }
    for root in [Root::Current, Root::Held] {
        let Ok(metadata) = ThinMetadata::read(Image(image.clone()), root) else { continue };
        let ids: Vec<ThinId> = metadata.devices().map_while(Result::ok).take(4).map(|thin| thin.id).collect();
        for id in &ids {
            if let Ok(ranges) = metadata.mapped(*id) {
                let _ = ranges.take(10_000).count();
            }
            for other in &ids {
                if let Ok(changes) = metadata.changes(*id, *other) {
                    let _ = changes.take(10_000).count();
                }
            }
        }
    }
});

/// CRC-32C without the final inversion, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}
