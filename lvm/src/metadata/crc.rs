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
    let mut crc = seed;
    let mut blocks = bytes.chunks_exact(8);
    for block in &mut blocks {
        if let &[a, b, c, d, e, f, g, h] = block {
            let low = crc ^ u32::from_le_bytes([a, b, c, d]);
            let [a, b, c, d] = low.to_le_bytes();
            crc = TABLES[7][a as usize]
                ^ TABLES[6][b as usize]
                ^ TABLES[5][c as usize]
                ^ TABLES[4][d as usize]
                ^ TABLES[3][e as usize]
                ^ TABLES[2][f as usize]
                ^ TABLES[1][g as usize]
                ^ TABLES[0][h as usize];
        }
    }
    for byte in blocks.remainder() {
        let [low, ..] = crc.to_le_bytes();
        crc = (crc >> 8) ^ TABLES[0][(low ^ byte) as usize];
    }
    crc
}

/// For each byte value its remainder, followed by 0 to 7 zero bytes: eight bytes are then folded at once.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    let mut value: u32 = 0;
    while byte < 256 {
        let mut crc = value;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
        value += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
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
        fn eight_bytes_at_once_give_what_single_bits_give(bytes: Vec<u8>, cut: prop::sample::Index) {
            prop_assert_eq!(checksum(&bytes), bit_by_bit(SEED, &bytes));
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(checksum_more(checksum(head), tail), checksum(&bytes));
        }
    }
}
