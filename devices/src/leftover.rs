//! Headers of a GPT that libblkid keeps silent about: without the protective MBR it takes neither copy for one (util-linux
//! 2.38), yet the copy at the end of a disk brings the whole table back (`sgdisk -e`, firmware, a partitioning program).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::Bytes;
use crate::probe::{Signature, Usage};

/// What a header begins with (UEFI specification 2.10, table 5.5).
const MAGIC: &[u8; 8] = b"EFI PART";
/// The sizes of sectors that disks have: one header is in the second sector, the other in the last.
const SECTORS: [u64; 2] = [512, 4096];

/// A header of a GPT in either of its places, for any size of sectors.
pub(crate) fn gpt_header(file: &File, size: u64) -> io::Result<Option<Signature>> {
    let places = SECTORS.into_iter().flat_map(|sector| [Some(sector), size.checked_sub(sector)]);
    for at in places.flatten() {
        let mut magic = [0; MAGIC.len()];
        if at + 512 <= size && file.read_at(&mut magic, at)? == MAGIC.len() && magic == *MAGIC {
            let (kind, usage) = ("gpt".to_owned(), Usage::PartitionTable);
            return Ok(Some(Signature {
                kind,
                usage,
                label: None,
                uuid: None,
                offset: Some(Bytes::new(at)),
            }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Probed, probe};

    fn image(size: u64, at: Option<u64>) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        if let Some(at) = at {
            file.write_all_at(MAGIC, at).unwrap();
        }
        file
    }

    #[test]
    fn a_header_at_either_end_is_a_partition_table_for_both_sizes_of_sectors() {
        for at in [512, 4096, (64 << 20) - 512, (64 << 20) - 4096] {
            let probed = probe(&image(64 << 20, Some(at))).unwrap();
            let Probed::Found(signatures) = probed else { panic!("{at}: {probed:?}") };
            assert_eq!(signatures.len(), 1, "{at}");
            assert_eq!((signatures[0].kind.as_str(), signatures[0].offset), ("gpt", Some(Bytes::new(at))));
        }
        assert_eq!(probe(&image(64 << 20, None)).unwrap(), Probed::Blank);
    }

    #[test]
    fn the_smallest_devices_are_looked_at_as_far_as_they_reach() {
        for size in [0, 1, 511, 512, 1024, 4095, 4096] {
            assert_eq!(gpt_header(&image(size, None), size).unwrap(), None, "{size}");
        }
        assert!(gpt_header(&image(1024, Some(512)), 1024).unwrap().is_some());
    }
}
