//! Udev cookies whose maker is dead.
//!
//! LVM waits for udev on a System V semaphore, its cookie, and removes it afterwards. A killed worker leaves its
//! cookies behind for ever, and there are only so many. Nothing in a semaphore tells who made it, except that the
//! kernel keeps the effective group of its maker: so a worker runs under an effective group that names it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};

/// The upper half of the key of every cookie (`DM_COOKIE_MAGIC` of libdevmapper).
const MAGIC: u32 = 0x0D4D;
/// The groups that name workers: a range that no distribution gives out.
const FIRST_GROUP: u32 = 0x7000_0000;
/// Bits of a process number (`PID_MAX_LIMIT` is 2^22).
const PID_BITS: u32 = 22;
/// Bits left for telling containers apart.
const NAMESPACE_BITS: u32 = 6;

/// The effective group under which process `pid` of this pid namespace makes semaphores; `None` where `/proc` is not
/// there.
#[must_use]
pub fn maker_group(pid: u32) -> Option<u32> {
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    let namespace = u32::try_from(namespace & ((1 << NAMESPACE_BITS) - 1)).ok()?;
    (pid < 1 << PID_BITS).then_some(FIRST_GROUP | namespace << PID_BITS | pid)
}

/// The cookies that workers of this pid namespace made which are dead by now.
///
/// A cookie of a living process is never among them, nor one that anybody else made.
#[must_use]
pub(super) fn left_behind() -> Vec<u32> {
    let Some(own) = maker_group(0) else { return Vec::new() };
    let table = fs::read_to_string(Path::new("/proc/sysvipc/sem")).unwrap_or_default();
    cookies_by(&table, own).into_iter().filter(|(_, pid)| !is_alive(*pid)).map(|(cookie, _)| cookie).collect()
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process of another user is one too.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Cookies and the workers that made them, from the kernel's table (columns `key semid perms nsems uid gid cuid cgid
/// otime ctime`; keys in decimal and signed).
fn cookies_by(table: &str, namespace: u32) -> Vec<(u32, u32)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let key: i64 = words.next()?.parse().ok()?;
        let key = u32::try_from(key & i64::from(u32::MAX)).ok()?;
        let group: u32 = words.nth(6)?.parse().ok()?;
        let pid = group & ((1 << PID_BITS) - 1);
        (key >> 16 == MAGIC && group & !((1 << PID_BITS) - 1) == namespace).then_some((key, pid))
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cookies_that_bear_a_workers_name_are_found() {
        let (here, there) = (FIRST_GROUP | 5 << PID_BITS, FIRST_GROUP | 6 << PID_BITS);
        let key = MAGIC << 16 | 0xbeef;
        let line = |key: u32, group: u32| {
            format!("{key:>10} 32770 600 1 0 {group} 0 {group} 1700000000 1700000000\n")
        };
        let table = format!(
            "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n{}{}{}{}",
            line(key, here | 4711),
            line(key + 1, 0),
            line(key + 2, there | 4711),
            line(17, here | 4711),
        );
        assert_eq!(cookies_by(&table, here), [(key, 4711)]);
        assert_eq!(cookies_by("", here), []);
    }

    #[test]
    fn this_process_is_alive_and_its_group_names_it() {
        let pid = std::process::id();
        assert!(is_alive(pid));
        let group = maker_group(pid).unwrap();
        assert_eq!(group & ((1 << PID_BITS) - 1), pid);
        assert_eq!(group & 0xf000_0000, FIRST_GROUP);
        assert_eq!(maker_group(1 << PID_BITS), None);
    }
}
