//! Having disks confirm that they keep what was written.
//!
//! LVM writes its metadata past the page cache and sends no flush (tried on 2.03.16, by counting what reaches the disk), so
//! a change that was reported could be undone by a loss of power.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lvm::metadata::Device;
use lvm::run::ReturnCode;

use crate::log;

/// How long a device may be suspended: whoever changes its table needs it so for a moment.
const SUSPENDED: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Flushes every device, also after one that failed.
pub(crate) fn all(devices: &[PathBuf]) -> ReturnCode {
    let mut code = ReturnCode::Succeeded;
    for device in devices {
        if let Err(error) = flush(device) {
            log::say(&format!("flush {}: {error}", device.display()));
            code = ReturnCode::Unflushed;
        }
    }
    code
}

fn flush(path: &Path) -> io::Result<()> {
    let end = Instant::now() + SUSPENDED;
    loop {
        // Opened for reading only: the end of a writer makes udev look at the device again.
        match Device::open(path)? {
            Some(device) => return device.sync(),
            None if Instant::now() < end => thread::sleep(BETWEEN_LOOKS),
            None => return Err(io::Error::other("it is suspended")),
        }
    }
}
