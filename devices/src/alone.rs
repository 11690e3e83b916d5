//! Opening a device that only one holder can have, with `O_EXCL`.

use std::fs::File;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// How long somebody else's hold may be one that ends by itself.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether it has.
const PAUSE: Duration = Duration::from_millis(10);

/// Repeats an exclusive open that says `EBUSY` for a moment.
///
/// A program that any thread of this process is just starting has every descriptor of ours until it calls `execve`, also
/// one that is closed here meanwhile. Only what stays held is in use.
pub(crate) fn open_alone(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match open() {
            Err(cause) if Errno::from_io_error(&cause) == Some(Errno::BUSY) && Instant::now() < deadline => {
                sleep(PAUSE);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_a_hold_that_lasts_is_a_refusal() {
        let tries = Cell::new(0);
        let busy_once = || {
            tries.set(tries.get() + 1);
            if tries.get() == 1 { Err(Errno::BUSY.into()) } else { tempfile::tempfile() }
        };
        assert!(open_alone(busy_once).is_ok());
        assert_eq!(tries.get(), 2);
        let begun = Instant::now();
        let error = open_alone(|| Err(Errno::BUSY.into())).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
        assert!(begun.elapsed() >= PATIENCE);
        // Anything else is told at once.
        tries.set(0);
        let absent = || {
            tries.set(tries.get() + 1);
            Err(Errno::NOENT.into())
        };
        assert!(open_alone(absent).is_err());
        assert_eq!(tries.get(), 1);
    }
}
