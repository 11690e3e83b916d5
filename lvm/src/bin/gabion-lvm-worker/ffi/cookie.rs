//! The System V semaphores that libdevmapper's cookies are.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How often a semaphore is looked at while udev still works.
const PAUSE: Duration = Duration::from_millis(50);
/// What a cookie counts: one for its maker, and one for each device that udev still works on.
const MAKER_ONLY: libc::c_int = 1;

/// Removes a cookie whose maker is dead, after udev has done its part or `patience` is over; one that is gone already
/// is removed.
pub(crate) fn remove(cookie: u32, patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    // SAFETY: looks up a semaphore by its key and makes none.
    let semaphore = unsafe { libc::semget(cookie.cast_signed(), 1, 0) };
    if semaphore < 0 {
        return gone_or(io::Error::last_os_error());
    }
    loop {
        // SAFETY: GETVAL takes no fourth argument.
        let value = unsafe { libc::semctl(semaphore, 0, libc::GETVAL) };
        if value < 0 {
            return gone_or(io::Error::last_os_error());
        }
        if value <= MAKER_ONLY || Instant::now() >= end {
            break;
        }
        thread::sleep(PAUSE);
    }
    // SAFETY: IPC_RMID takes no fourth argument; the semaphore is a dead process's, and nobody waits for it.
    if unsafe { libc::semctl(semaphore, 0, libc::IPC_RMID) } < 0 {
        return gone_or(io::Error::last_os_error());
    }
    Ok(())
}

fn gone_or(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL | libc::EIDRM) => Ok(()),
        _ => Err(error),
    }
}
