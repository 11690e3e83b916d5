//! The label: any bytes, and the same bytes with checksums put right, so that the fields behind them are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lvm::metadata::{Label, checksum};

const SECTOR: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    let mut bytes = bytes.to_vec();
    for (number, sector) in (0_u64..).zip(bytes.chunks_exact_mut(SECTOR).take(4)) {
        sector[..8].copy_from_slice(b"LABELONE");
        sector[8..16].copy_from_slice(&number.to_le_bytes());
        sector[24..32].copy_from_slice(b"LVM2 001");
        let sum = checksum(&sector[20..]);
        sector[16..20].copy_from_slice(&sum.to_le_bytes());
    }
    look(&bytes);
});

fn look(bytes: &[u8]) {
    if let Ok(Some(label)) = Label::find(bytes) {
        assert!(label.metadata_areas.len() <= 2);
    }
}
