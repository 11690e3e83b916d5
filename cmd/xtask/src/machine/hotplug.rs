//! Pulling disks out of the running machine, putting them back, and resizing them.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{Machine, Watch};
use crate::qmp::Qmp;
use crate::virtual_disk::VirtualDisk;

impl Machine {
    pub(super) fn fulfil(&mut self, wish: &Watch) -> Result<()> {
        match wish {
            Watch::GoOn => Ok(()),
            Watch::CutPower => {
                self.cut_power();
                Ok(())
            }
            Watch::Unplug(index) => self.unplug(*index),
            Watch::Plug(index, bad_sectors) => self.plug(*index, bad_sectors),
            Watch::Resize(index, bytes) => self.resize(*index, *bytes),
        }
    }

    /// Pulls a disk out, by its place among the disks.
    pub fn unplug(&mut self, index: usize) -> Result<()> {
        let asked = Instant::now();
        let disk = self.disk(index)?;
        let mut qmp = Qmp::connect(&self.run.qmp_socket())?;
        self.note_delay(asked)?;
        qmp.execute("device_del", &json!({"id": disk.device()}))?;
        qmp.wait_deleted(&disk.device())?;
        qmp.execute("blockdev-del", &json!({"node-name": disk.node()}))?;
        if let Some(kept) = self.virtual_disks.get_mut(index) {
            kept.plugged = false;
        }
        Ok(())
    }

    /// Puts a pulled disk back; reading the given sectors (of 512 bytes) fails from now on.
    pub fn plug(&mut self, index: usize, bad_sectors: &[u64]) -> Result<()> {
        let asked = Instant::now();
        let mut disk = self.disk(index)?;
        disk.bad_sectors = bad_sectors.to_vec();
        disk.plugged = true;
        let mut qmp = Qmp::connect(&self.run.qmp_socket())?;
        qmp.execute("blockdev-add", &disk.backend())?;
        self.note_delay(asked)?;
        qmp.execute("device_add", &disk.frontend())?;
        if let Some(kept) = self.virtual_disks.get_mut(index) {
            *kept = disk;
        }
        Ok(())
    }

    /// Gives a disk another size while the guest uses it.
    pub fn resize(&mut self, index: usize, bytes: u64) -> Result<()> {
        let asked = Instant::now();
        let disk = self.disk(index)?;
        let mut qmp = Qmp::connect(&self.run.qmp_socket())?;
        self.note_delay(asked)?;
        qmp.execute("block_resize", &json!({"node-name": disk.node(), "size": bytes})).map(drop)
    }

    /// Writes for the guest (`/run/out/delay`, in microseconds) how long this host took from the wish to the command that
    /// fulfils it, which is not the guest's latency.
    fn note_delay(&self, asked: Instant) -> Result<()> {
        let path = self.run.out().join("delay");
        fs::write(&path, asked.elapsed().as_micros().to_string())
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Puts every disk back that was pulled, and replaces those whose sectors fail.
    ///
    /// # Errors
    /// When the emulator refuses, or the guest does not let go of a disk.
    pub fn plug_all(&mut self) -> Result<()> {
        for disk in self.virtual_disks.clone() {
            if disk.plugged && disk.bad_sectors.is_empty() {
                continue;
            }
            if disk.plugged {
                self.unplug(disk.index)?;
            }
            self.plug(disk.index, &[])?;
            self.wait_for_disk(&disk.serial())?;
        }
        Ok(())
    }

    fn wait_for_disk(&mut self, serial: &str) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if self.blank_disks()?.iter().any(|disk| disk.serial == serial) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        bail!("the guest did not find the disk {serial} within 30 s of its plugging")
    }

    fn disk(&self, index: usize) -> Result<VirtualDisk> {
        let count = self.virtual_disks.len();
        let disk = self.virtual_disks.get(index);
        disk.cloned().with_context(|| format!("there is no disk {index}: the machine has {count}"))
    }
}
