//! What a program takes of memory, with what it shares counted in parts.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};
use devices::Bytes;

/// Proportional set sizes of a process and of its children.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// Of the process.
    pub own: Bytes,
    /// Of its children together.
    pub children: Bytes,
    /// How many children there are.
    pub count: usize,
}

impl Footprint {
    /// Of a process that runs.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn of(pid: u32) -> Result<Self> {
        let mut footprint = Self { own: proportional(pid)?, children: Bytes::ZERO, count: 0 };
        for thread in fs::read_dir(format!("/proc/{pid}/task")).context("list threads")? {
            let children = thread.context("list threads")?.path().join("children");
            for child in fs::read_to_string(&children).context("list children")?.split_whitespace() {
                // One that ends meanwhile takes nothing any more.
                let Ok(bytes) = proportional(child.parse()?) else { continue };
                footprint.children = footprint.children.checked_add(bytes).context("add")?;
                footprint.count += 1;
            }
        }
        Ok(footprint)
    }

    /// All of it.
    #[must_use]
    pub const fn total(&self) -> Bytes {
        Bytes::new(self.own.get().saturating_add(self.children.get()))
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: Bytes| bytes.get() as f64 / f64::from(1 << 20);
        write!(f, "{:.1} MiB", mib(self.own))?;
        if self.count > 0 {
            write!(f, " and {:.1} MiB in {} children", mib(self.children), self.count)?;
        }
        Ok(())
    }
}

fn proportional(pid: u32) -> Result<Bytes> {
    rollup(pid, ["Pss:"])
}

/// The sum of some lines of a process's `smaps_rollup` (proc(5)).
///
/// # Errors
///
/// If the kernel does not tell, or tells no such line.
pub fn rollup<const N: usize>(pid: u32, names: [&str; N]) -> Result<Bytes> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let mut sum = 0;
    for name in names {
        let kib = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        let kib: u64 = kib.with_context(|| format!("{path} tells no {name}"))?.trim().parse()?;
        sum += kib;
    }
    Ok(Bytes::kib(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_touches_counts_and_its_children_too() {
        let before = Footprint::of(std::process::id()).unwrap();
        let touched = vec![1_u8; 32 << 20];
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let after = Footprint::of(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(after.own.get() - before.own.get() >= 30 << 20, "{before}; {after}");
        assert!(after.count >= 1 && after.total() > after.own, "{after}");
        drop(touched);
    }
}
