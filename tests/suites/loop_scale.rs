//! PERF-01: what hundreds of volumes cost. Reading an unchanged group costs the same however many it has, a reader at rest
//! nothing. A change grows with them, since LVM parses and writes the whole text in each command; `cargo xtask bench`
//! measures that.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::time::Duration;

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::metadata::{Cost, Reader};
use lvm::ops::NewGroup;
use rig::{Disk, Handle, Sandbox, device_paths, fleet, skip_unless_loop};

/// A group with so many volumes on two disks, and both ways to it.
struct Full {
    disks: [Disk; 2],
    sandbox: Sandbox,
    handle: Handle,
}

impl Full {
    fn with(volumes: usize) -> Result<Self> {
        let disks = [Disk::new(Bytes::gib(10))?, Disk::new(Bytes::gib(10))?];
        let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
        let handle = Handle::metadata_only(&[&disks[0], &disks[1]])?;
        let new = NewGroup::new("v".parse()?, device_paths(&[&disks[0], &disks[1]])?);
        ensure!(handle.lvm.create_group(&new)?.is_made());
        fleet::fill(|words| sandbox.lvm(words[0], &words[1..]), sandbox.system_dir(), "v", 2, volumes)?;
        Ok(Self { disks, sandbox, handle })
    }

    /// What one read of the unchanged group costs.
    fn unchanged(&self) -> Cost {
        let reader = Reader::new(self.disks.iter().map(Disk::path), self.sandbox.reader_options());
        let _ = reader.read();
        let before = reader.cost();
        let _ = reader.read();
        let after = reader.cost();
        let mut cost = Cost::default();
        cost.reads = after.reads - before.reads;
        cost.bytes = after.bytes - before.bytes;
        cost.system_calls = after.system_calls - before.system_calls;
        cost.texts = after.texts - before.texts;
        cost
    }
}

#[test]
fn an_unchanged_group_costs_the_same_with_ten_volumes_and_with_a_thousand() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (few, many) = (Full::with(10)?, Full::with(1000)?);
    let cost = many.unchanged();
    ensure!(few.unchanged() == cost, "{:?} with 10 volumes, {cost:?} with 1,000", few.unchanged());
    ensure!(cost.texts == 0 && cost.reads == 2 && cost.bytes <= 2 * 8192, "{cost:?}");
    Ok(())
}

#[test]
fn neither_descriptors_nor_memory_grow_with_reading_and_a_reader_at_rest_does_nothing() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let full = Full::with(1000)?;
    let reader = Reader::new(full.disks.iter().map(Disk::path), full.sandbox.reader_options());
    let rounds = |count: u32| -> Result<()> {
        for number in 0..count {
            // Every hundredth time something has changed.
            if number % 100 == 0 {
                full.sandbox.run(&format!("vgchange --addtag t{number} v"))?;
                full.sandbox.run(&format!("vgchange --deltag t{number} v"))?;
            }
            let view = reader.read();
            ensure!(view.vgs[0].lvs.len() == 1000 && view.vgs[0].free_extents().get() > 0);
        }
        Ok(())
    };
    rounds(1000)?;
    let (descriptors, memory) = (descriptors()?, resident()?);
    rounds(2000)?;
    ensure!(self::descriptors()? <= descriptors, "{descriptors} descriptors became {}", self::descriptors()?);
    let grown = resident()?.saturating_sub(memory);
    ensure!(grown < Bytes::mib(4), "{grown} more memory after 2,000 reads");
    let before = processor_ticks()?;
    std::thread::sleep(Duration::from_secs(3));
    let ticks = processor_ticks()? - before;
    // A tick is a hundredth of a second: 2 % of three seconds are six.
    ensure!(ticks <= 6, "{ticks} ticks of a processor in three seconds of rest");
    drop(full.handle);
    Ok(())
}

fn descriptors() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

/// Memory that this process has now.
fn resident() -> Result<Bytes> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")?.split(' ').nth(1).unwrap().parse()?;
    Ok(Bytes::new(pages * 4096))
}

/// Time of the processors that this process has used, in ticks (the 14th and 15th field of proc_pid_stat(5)).
fn processor_ticks() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}
