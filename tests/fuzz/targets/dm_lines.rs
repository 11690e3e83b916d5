//! Table and status lines: the first byte chooses the target, the rest is its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lvm::dm::{Status, Target};

const KINDS: [&str; 17] = [
    "linear",
    "striped",
    "snapshot",
    "snapshot-origin",
    "snapshot-merge",
    "thin-pool",
    "thin",
    "raid",
    "mirror",
    "cache",
    "writecache",
    "integrity",
    "crypt",
    "error",
    "zero",
    "delay",
    "",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, line)) = data.split_first() else { return };
    let Ok(line) = std::str::from_utf8(line) else { return };
    let kind = KINDS[usize::from(*first) % KINDS.len()];
    if let Ok(target) = Target::parse(kind, line) {
        assert!(kind != "crypt" || !format!("{target:?}").contains("SECRET"));
    }
    let _ = Status::parse(kind, line);
});
