//! Which udev cookie a worker waits for.
//!
//! A cookie is a System V semaphore whose key begins with libdevmapper's magic number. Of a process that waits in
//! `semop`, `/proc/PID/syscall` names the semaphore, and `/proc/sysvipc/sem` gives its key.

use std::fs;

/// The upper half of the key of every cookie (`DM_COOKIE_MAGIC`).
const MAGIC: u32 = 0x0D4D;
/// `semop` and `semtimedop` of this architecture.
#[cfg(target_arch = "x86_64")]
const WAITING_CALLS: [u64; 2] = [65, 220];
/// `semop` and `semtimedop` of this architecture.
#[cfg(target_arch = "aarch64")]
const WAITING_CALLS: [u64; 2] = [193, 192];
/// Other architectures wait until the worker is killed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const WAITING_CALLS: [u64; 0] = [];

/// The cookie that this process waits for right now.
pub(super) fn awaited_by(pid: u32) -> Option<u32> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let semaphore = awaited_semaphore(&call)?;
    cookie_of(&fs::read_to_string("/proc/sysvipc/sem").ok()?, semaphore)
}

/// The semaphore's number in a line such as `65 0x8000 0x7ffd… 0x1 …`.
fn awaited_semaphore(call: &str) -> Option<u32> {
    let mut words = call.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let first = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    WAITING_CALLS.contains(&number).then(|| u32::try_from(first).ok())?
}

/// The key of a semaphore in the kernel's table (columns `key semid …`, keys in decimal and signed), if it is a
/// cookie's.
fn cookie_of(table: &str, semaphore: u32) -> Option<u32> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let key: i64 = words.next()?.parse().ok()?;
        let number: u32 = words.next()?.parse().ok()?;
        (number == semaphore).then_some(key)
    };
    let key = u32::try_from(table.lines().find_map(row)? & i64::from(u32::MAX)).ok()?;
    (key >> 16 == MAGIC).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n \
         223173428      32770   600          1     0     0     0     0 1700000000 1700000000\n \
         17      32771   600          1     0     0     0     0 1700000000 1700000000\n";

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_wait_for_a_cookie_is_told_from_other_waits() {
        let waiting = "65 0x8002 0x7ffc0 0x1 0x0 0x0 0x0 0x7ffc1 0x7f001\n";
        assert_eq!(awaited_semaphore(waiting), Some(32770));
        assert_eq!(awaited_semaphore("0 0x3 0x7ffc0 0x1"), None);
        assert_eq!(awaited_semaphore("running\n"), None);
        assert_eq!(awaited_semaphore(""), None);
    }

    #[test]
    fn only_keys_with_the_magic_number_are_cookies() {
        assert_eq!(cookie_of(TABLE, 32770), Some(223_173_428));
        assert_eq!(223_173_428 >> 16, MAGIC);
        assert_eq!(cookie_of(TABLE, 32771), None);
        assert_eq!(cookie_of(TABLE, 1), None);
        assert_eq!(cookie_of("", 1), None);
    }
}
