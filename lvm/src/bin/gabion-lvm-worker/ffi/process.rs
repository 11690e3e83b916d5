//! Descriptors and signals of the process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Closes every descriptor above standard error but one: C libraries of the program that started us may have
/// left theirs open, and LVM's children would get them too.
pub(crate) fn close_all_but(kept: &OwnedFd) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    // Collected first, so that the directory's own descriptor is closed by its owner before the loop.
    let open: Vec<RawFd> = numbers.collect();
    for number in open.into_iter().filter(|number| *number > 2 && *number != kept.as_raw_fd()) {
        // SAFETY: this runs before the program opens anything but `kept`, so no Rust value owns the number; one
        // that is closed already (the directory's) gives EBADF.
        unsafe { libc::close(number) };
    }
}

/// The program that started us drains us by closing the socket; what a terminal or a service manager sends to
/// the whole group shall not end a command half-way.
pub(crate) fn ignore_signals() {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: ignoring a signal installs no code of ours, and the numbers are valid.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
}

/// Makes every semaphore that this process creates bear `group` as its creator's, by which a cookie that it leaves
/// behind is known. Files go on to be made under the old group. Where the group does not exist for us, as in a user
/// namespace, cookies stay unsigned.
pub(crate) fn sign_semaphores(group: u32) {
    const SAME: libc::gid_t = libc::gid_t::MAX;
    // SAFETY: takes numbers; the process has one thread.
    let files = unsafe { libc::getegid() };
    // SAFETY: as above.
    if unsafe { libc::setresgid(SAME, group, SAME) } == 0 {
        // SAFETY: as above. It returns the group before, and never an error.
        let _ = unsafe { libc::setfsgid(files) };
    }
}

/// Gives memory back that is free: LVM locks all that it has when it suspends a device, what it has freed too, and that
/// would stay resident.
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: touches free memory only; the process has one thread.
    unsafe {
        libc::malloc_trim(0)
    };
}
