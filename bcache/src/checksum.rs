//! The checksum of bcache's superblocks.

/// CRC-64 with the polynomial of ECMA-182, most significant bit first, beginning with all ones and inverted at the end
/// (`bch_crc64` of the kernel).
///
/// ```
/// assert_eq!(bcache::checksum(b"123456789"), 0x62ec_59e3_f1a4_f00a);
/// ```
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    let step = |crc: u64, byte: &u8| TABLE[usize::from((crc >> 56) as u8 ^ byte)] ^ (crc << 8);
    !bytes.iter().fold(!0, step)
}

const POLYNOMIAL: u64 = 0x42f0_e1eb_a9ea_3693;

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u64) << 56;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 63 == 1 { (crc << 1) ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};
