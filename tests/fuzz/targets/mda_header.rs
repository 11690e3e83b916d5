//! The header of a metadata area: any bytes, and the same bytes with magic and checksum put right.
#![no_main]

use devices::Bytes;
use libfuzzer_sys::fuzz_target;
use lvm::metadata::{AreaHeader, Stretch, checksum};

const HEADER: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    let mut bytes = bytes.to_vec();
    if let Some(header) = bytes.get_mut(..HEADER) {
        header[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
        header[20..24].copy_from_slice(&1_u32.to_le_bytes());
        let sum = checksum(&header[4..]);
        header[..4].copy_from_slice(&sum.to_le_bytes());
    }
    look(&bytes);
});

fn look(bytes: &[u8]) {
    let start = bytes.get(24..32).and_then(|start| start.try_into().ok()).map_or(4096, u64::from_le_bytes);
    let area = Stretch { start: Bytes::new(start), size: Bytes::mib(1) };
    let Ok(header) = AreaHeader::parse(bytes, area) else { return };
    let Some(text) = header.text else { return };
    let pieces = header.pieces(&text);
    let end = header.area.start.get() + header.area.size.get();
    assert_eq!(pieces[0].size.get() + pieces[1].size.get(), text.size.get());
    for piece in pieces.iter().filter(|piece| piece.size > Bytes::ZERO) {
        let last = piece.start.get() + piece.size.get();
        assert!(piece.start.get() >= header.area.start.get() + 512 && last <= end, "{header:?}");
    }
}
