//! What a test left behind in the kernel: mounts, device-mapper and loop devices, bcache, udev cookies.

use std::collections::BTreeSet;
use std::fs;

use crate::disks::tool;

/// Rounds of removal: each can free what the next one needs (a pool under its volumes).
const ROUNDS: usize = 6;

/// The mounts that belong to the machine itself.
#[derive(Debug)]
pub struct Baseline {
    mounts: BTreeSet<String>,
}

/// A thing that is there and should not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Leftover {
    Mount(String),
    Mapped(String),
    Loop(String),
    Bcache(String),
    BcacheSet(String),
    Cookie(String),
}

impl Baseline {
    /// Takes what is mounted now as the machine's own.
    #[must_use]
    pub fn take() -> Self {
        Baseline { mounts: mounts().into_iter().collect() }
    }

    /// Names everything left behind and removes it; the second list is what is still there afterwards.
    #[must_use]
    pub fn sweep(&self) -> (Vec<String>, Vec<String>) {
        let found = self.look();
        let mut left = found.clone();
        let mut stuck = Vec::new();
        for _ in 0..ROUNDS {
            if left.is_empty() {
                break;
            }
            stuck = left.iter().filter_map(|thing| thing.remove().err()).collect();
            left = self.look();
        }
        let found = found.iter().map(Leftover::describe).collect();
        if left.is_empty() {
            return (found, Vec::new());
        }
        stuck.extend(left.iter().map(Leftover::describe));
        (found, stuck)
    }

    fn look(&self) -> Vec<Leftover> {
        // The newest mount first: it may lie on an older one.
        let mounts = mounts().into_iter().rev().filter(|at| !self.mounts.contains(at)).map(Leftover::Mount);
        let cookies = tool("dmsetup", &["udevcookies"]).unwrap_or_default();
        let cookies: Vec<Leftover> = cookies
            .lines()
            .filter_map(|line| line.split_whitespace().next().filter(|word| word.starts_with("0x")))
            .map(|cookie| Leftover::Cookie(cookie.to_owned()))
            .collect();
        mounts
            .chain(cookies)
            .chain(block("dm-", "dm/name").into_iter().map(|(_, name)| Leftover::Mapped(name)))
            .chain(block("bcache", "bcache/state").into_iter().map(|(name, _)| Leftover::Bcache(name)))
            .chain(cache_sets().into_iter().map(Leftover::BcacheSet))
            .chain(block("loop", "loop/backing_file").into_iter().map(|(name, _)| Leftover::Loop(name)))
            .collect()
    }
}

impl Leftover {
    fn describe(&self) -> String {
        match self {
            Leftover::Mount(at) => format!("a mount at {at}"),
            Leftover::Mapped(name) => format!("the device-mapper device {name}"),
            Leftover::Loop(name) => format!("the loop device {name}"),
            Leftover::Bcache(name) => format!("the bcache device {name}"),
            Leftover::BcacheSet(uuid) => format!("the bcache cache set {uuid}"),
            Leftover::Cookie(cookie) => format!("the udev cookie {cookie}"),
        }
    }

    fn remove(&self) -> Result<(), String> {
        let stop = |path: String| fs::write(&path, "1").map_err(|error| format!("writing {path}: {error}"));
        match self {
            Leftover::Mount(at) => tool("umount", &[at]).map(drop),
            Leftover::Mapped(name) => tool("dmsetup", &["remove", "--force", "--noudevsync", name]).map(drop),
            Leftover::Loop(name) => tool("losetup", &["-d", &format!("/dev/{name}")]).map(drop),
            Leftover::Bcache(name) => stop(format!("/sys/block/{name}/bcache/stop")),
            Leftover::BcacheSet(uuid) => stop(format!("/sys/fs/bcache/{uuid}/stop")),
            Leftover::Cookie(cookie) => tool("dmsetup", &["udevcomplete", cookie]).map(drop),
        }
    }
}

/// Mount points in the order of mounting, with the kernel's octal escapes undone for blanks.
fn mounts() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    table.lines().filter_map(|line| line.split(' ').nth(1)).map(|at| at.replace("\\040", " ")).collect()
}

/// Block devices whose name starts so, with the content of one of their attributes.
fn block(prefix: &str, attribute: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut found: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(prefix))?;
            let value = fs::read_to_string(entry.path().join(attribute)).ok()?;
            Some((name, value.trim().to_owned()))
        })
        .collect();
    found.sort();
    found
}

fn cache_sets() -> Vec<String> {
    let entries = fs::read_dir("/sys/fs/bcache").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join("stop").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
