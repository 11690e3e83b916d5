//! A whole device: any bytes, and the same bytes with every checksum on the way put right.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use lvm::metadata::{checksum, read_images};

const SECTOR: usize = 512;
const AREA: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_images(&[(Path::new("/dev/one"), bytes)]);
    let mut mended = bytes.to_vec();
    mend(&mut mended);
    let view = read_images(&[(Path::new("/dev/one"), bytes), (Path::new("/dev/two"), &mended)]);
    for problem in &view.problems {
        assert!(!problem.to_string().is_empty());
    }
    for vg in &view.vgs {
        assert!(vg.free_extents() <= vg.total_extents());
    }
});

/// Puts the checksums of the second sector's label, of the first area's header and of its text right.
fn mend(bytes: &mut [u8]) {
    let Some(label) = bytes.get_mut(SECTOR..2 * SECTOR) else { return };
    label[..8].copy_from_slice(b"LABELONE");
    label[8..16].copy_from_slice(&1_u64.to_le_bytes());
    label[24..32].copy_from_slice(b"LVM2 001");
    let sum = checksum(&label[20..]);
    label[16..20].copy_from_slice(&sum.to_le_bytes());
    let Some(header) = bytes.get(AREA..AREA + SECTOR) else { return };
    let number = |at: usize| usize::try_from(u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default()));
    let (Ok(offset), Ok(size)) = (number(40), number(48)) else { return };
    let text = offset.checked_add(AREA).and_then(|start| bytes.get(start..start.checked_add(size)?));
    let sum = checksum(text.unwrap_or_default());
    let Some(header) = bytes.get_mut(AREA..AREA + SECTOR) else { return };
    header[56..60].copy_from_slice(&sum.to_le_bytes());
    header[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
    header[20..24].copy_from_slice(&1_u32.to_le_bytes());
    header[24..32].copy_from_slice(&(AREA as u64).to_le_bytes());
    let sum = checksum(&header[4..]);
    header[..4].copy_from_slice(&sum.to_le_bytes());
}
