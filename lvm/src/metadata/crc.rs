//! The checksum of LVM's labels, headers and texts.

/// What LVM starts with, instead of all ones (`INITIAL_CRC`).
const SEED: u32 = 0xf597_a6cf;

/// The checksum that LVM has in labels, headers and texts: CRC-32 (reflected polynomial 0xedb88320) from a seed of its own and without
/// a final inversion (`lib/misc/crc.c` of LVM2).
///
/// ```
/// assert_eq!(lvm::metadata::checksum(b""), 0xf597_a6cf);
/// ```
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    checksum_more(SEED, bytes)
}

/// Continues a checksum over further bytes.
pub(super) fn checksum_more(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!seed);
    hasher.update(bytes);
    !hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One bit at a time, straight from the polynomial.
    fn bit_by_bit(seed: u32, bytes: &[u8]) -> u32 {
        let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        bytes.iter().fold(seed, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
    }

    #[test]
    fn the_plain_crc_has_its_known_check_value() {
        assert_eq!(!checksum_more(!0, b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn many_bytes_at_once_give_what_single_bits_give(bytes: Vec<u8>, cut: prop::sample::Index) {
            prop_assert_eq!(checksum(&bytes), bit_by_bit(SEED, &bytes));
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(checksum_more(checksum(head), tail), checksum(&bytes));
        }
    }
}
