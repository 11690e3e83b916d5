//! Mount tables, and mount options.

#![no_main]

use std::path::Path;

use devices::mount::{MountOptions, MountTable};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(table) = MountTable::parse(data) {
        assert!(table.len() <= data.len() / 12 + 1, "{} mounts of {} bytes", table.len(), data.len());
        for mount in table.iter().take(4) {
            assert!(mount.mount_point.is_absolute());
            let stack = table.stack_at(&mount.mount_point);
            assert!(stack.iter().any(|there| there.id == mount.id));
            let _ = (mount.access(), table.below(&mount.mount_point).count(), table.of_source(&mount.source).count());
        }
        let _ = table.at(Path::new("/"));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(options) = MountOptions::parse([text])
    {
        let _ = options.to_string();
    }
});
