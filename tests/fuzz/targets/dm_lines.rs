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
    let parsed = Target::parse(kind, line);
    // The key is the second word of a crypt table, and must not be shown; what stands elsewhere is no key.
    let mut words = line.split_whitespace();
    if kind == "crypt" && words.nth(1).is_some_and(|key| key.contains("SECRET")) {
        let elsewhere = line.matches("SECRET").count() > 1;
        assert!(elsewhere || !format!("{parsed:?}").contains("SECRET"));
    }
    let _ = Status::parse(kind, line);
});
