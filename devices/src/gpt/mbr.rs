//! Sector 0: the protective MBR, which keeps tools that know no GPT away (UEFI specification 2.10, section 5.2).

use super::medium::Geometry;

const SIGNATURE: [u8; 2] = [0x55, 0xaa];
const PROTECTIVE: u8 = 0xee;
const ENTRIES: std::ops::Range<usize> = 446..510;

/// What sector 0 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mbr {
    /// Zeroes.
    Blank,
    /// One protective entry and nothing else, as it belongs before a GPT.
    Protective,
    /// Entries of real partitions, perhaps beside a protective one ("hybrid").
    Partitions,
    /// Something else: a boot sector, a filesystem, anything.
    Other,
}

/// Says what sector 0 holds.
pub(super) fn look(sector: &[u8]) -> Mbr {
    if sector.iter().all(|byte| *byte == 0) {
        return Mbr::Blank;
    }
    let (Some(entries), Some(signature)) = (sector.get(ENTRIES), sector.get(510..512)) else {
        return Mbr::Other;
    };
    if signature != SIGNATURE {
        return Mbr::Other;
    }
    // Byte 4 of an entry is its type; zero is an unused one.
    let mut types = entries.chunks_exact(16).filter_map(|entry| entry.get(4)).filter(|kind| **kind != 0);
    match (types.next(), types.next()) {
        (Some(&PROTECTIVE), None) => Mbr::Protective,
        (Some(_), _) => Mbr::Partitions,
        (None, _) => Mbr::Other,
    }
}

/// The protective MBR of a disk. Of the sector that was there only the code before the entries stays.
pub(super) fn protective(mut bytes: Vec<u8>, geometry: Geometry) -> Vec<u8> {
    bytes.resize(bytes.len().max(512), 0);
    bytes[ENTRIES].fill(0);
    let length = u32::try_from(geometry.last()).unwrap_or(u32::MAX);
    let entry = &mut bytes[ENTRIES.start..ENTRIES.start + 16];
    // The first sector as cylinder, head and sector: 0/0/2; the last: as far as that can tell.
    entry[1..4].copy_from_slice(&[0, 2, 0]);
    entry[4] = PROTECTIVE;
    entry[5..8].copy_from_slice(&[0xff; 3]);
    entry[8..12].copy_from_slice(&1_u32.to_le_bytes());
    entry[12..16].copy_from_slice(&length.to_le_bytes());
    bytes[510..512].copy_from_slice(&SIGNATURE);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_is_protective_whatever_the_size() {
        for (sector, sectors) in [(512, 2048), (4096, 1 << 20), (512, 1 << 40)] {
            let blank = vec![0; usize::try_from(sector).unwrap()];
            let bytes = protective(blank, Geometry { sector, sectors });
            assert_eq!((bytes.len() as u64, look(&bytes)), (sector, Mbr::Protective));
        }
    }

    #[test]
    fn other_sectors_are_told_apart() {
        assert_eq!(look(&[0; 512]), Mbr::Blank);
        assert_eq!(look(&[]), Mbr::Blank);
        assert_eq!(look(&[1; 100]), Mbr::Other);
        let geometry = Geometry { sector: 512, sectors: 2048 };
        let mut boot = protective(vec![0; 512], geometry);
        boot[0] = 0xeb;
        assert_eq!((look(&boot), protective(boot.clone(), geometry)), (Mbr::Protective, boot.clone()));
        let mut hybrid = boot.clone();
        hybrid[446 + 16 + 4] = 0x83;
        assert_eq!(look(&hybrid), Mbr::Partitions);
        let mut plain = boot.clone();
        plain[446 + 4] = 0x83;
        assert_eq!(look(&plain), Mbr::Partitions);
        let mut empty = boot.clone();
        empty[446 + 4] = 0;
        assert_eq!(look(&empty), Mbr::Other);
        boot[510] = 0;
        assert_eq!(look(&boot), Mbr::Other);
    }
}
