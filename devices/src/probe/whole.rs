//! What the disk of a partition says: what is written across the whole of it, and its table.

use std::fs::File;

use libblkid_rs::{BlkidErr, BlkidProbe};

use super::{Probed, failed, probe};
use crate::Error;
use std::os::fd::AsRawFd;

/// An entry of a partition table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The partition's number, from 1.
    pub(crate) number: u32,
    /// A GUID, or a number like `0x83`.
    pub(crate) type_code: String,
    /// Its name; an MBR table has none.
    pub(crate) label: String,
}

/// What is on a disk that has partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Its signatures, the table among them.
    pub(crate) probed: Probed,
    /// The partitions that the table on it names.
    pub(crate) entries: Vec<Entry>,
}

/// Looks at a disk on behalf of its partitions.
///
/// # Errors
///
/// As for [`probe`].
pub(crate) fn look(file: &File) -> Result<Whole, Error> {
    let probed = probe(file)?;
    let entries = entries(file).map_err(|cause| failed(&cause))?;
    Ok(Whole { probed, entries })
}

fn entries(file: &File) -> Result<Vec<Entry>, BlkidErr> {
    let mut probe = BlkidProbe::new()?;
    probe.set_device(file.as_raw_fd(), 0, 0)?;
    probe.enable_partitions(true)?;
    // Without a table that it knows the library has no list.
    let Ok(mut list) = probe.get_partitions() else { return Ok(Vec::new()) };
    let count = list.number_of_partitions()?;
    (0..count)
        .map(|index| {
            let partition = list.get_partition(index)?;
            // A table with numbers has no text for them.
            let type_code =
                partition.get_type_string().unwrap_or_else(|_| format!("{:#x}", partition.get_type()));
            let label = partition.get_name().ok().flatten().unwrap_or_default();
            Ok(Entry { number: partition.get_partno()?, type_code: type_code.to_lowercase(), label })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn the_types_of_an_mbr_table_are_numbers() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        // Type, first sector, sectors: of the second entry.
        file.write_all_at(&[0xef], 446 + 16 + 4).unwrap();
        file.write_all_at(&2048u32.to_le_bytes(), 446 + 16 + 8).unwrap();
        file.write_all_at(&4096u32.to_le_bytes(), 446 + 16 + 12).unwrap();
        file.write_all_at(&[0x55, 0xaa], 510).unwrap();
        let whole = look(&file).unwrap();
        let entry = Entry { number: 2, type_code: "0xef".to_owned(), label: String::new() };
        assert_eq!(whole.entries, [entry]);
    }

    #[test]
    fn a_disk_without_a_table_names_no_partitions() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        assert_eq!(look(&file).unwrap(), Whole { probed: Probed::Blank, entries: Vec::new() });
    }
}
