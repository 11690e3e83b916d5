//! The machine's spare disks: sparse files on the host, real devices in the guest.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use guest::disks::SERIAL_PREFIX;
use serde_json::{Value, json};

/// How the guest reaches a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// virtio-blk: the fastest here; `/dev/vda`.
    Virtio,
    /// virtio-scsi: unplugged at once, without asking the guest; `/dev/sda`.
    Scsi,
    /// NVMe; `/dev/nvme0n1`.
    Nvme,
}

/// A number of equal disks: `N`, `N:SIZE`, `N:SIZE:BUS`, such as `3:20G:scsi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpec {
    /// How many.
    pub count: usize,
    /// The size of each.
    pub bytes: u64,
    /// How the guest reaches them.
    pub bus: Bus,
}

impl DiskSpec {
    /// `count` virtio-blk disks of 20 GiB.
    pub const fn plain(count: usize) -> Self {
        DiskSpec { count, bytes: 20 << 30, bus: Bus::Virtio }
    }
}

impl FromStr for DiskSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(':');
        let count = parts.next().unwrap_or_default();
        let count = count.parse().with_context(|| format!("`{count}` is no number of disks"))?;
        let mut spec = DiskSpec::plain(count);
        if let Some(size) = parts.next() {
            spec.bytes = size_in_bytes(size)?;
        }
        spec.bus = match parts.next() {
            None | Some("virtio") => Bus::Virtio,
            Some("scsi") => Bus::Scsi,
            Some("nvme") => Bus::Nvme,
            Some(other) => bail!("`{other}` is no bus; there are virtio, scsi and nvme"),
        };
        match parts.next() {
            None => Ok(spec),
            Some(_) => bail!("`{text}` has more parts than N:SIZE:BUS"),
        }
    }
}

fn size_in_bytes(text: &str) -> Result<u64> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => bail!("`{text}` is no size; write it like 512M, 20G or 1T"),
    };
    let number: u64 = number.parse().with_context(|| format!("`{text}` is no size"))?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).with_context(|| format!("`{text}` is no size"))
}

/// One disk of a machine, by its place among them.
#[derive(Debug, Clone)]
pub struct VirtualDisk {
    /// Its place.
    pub index: usize,
    /// How the guest reaches it.
    pub bus: Bus,
    file: PathBuf,
    /// Sectors of 512 bytes whose reading fails.
    pub bad_sectors: Vec<u64>,
    /// Whether it is in the machine.
    pub plugged: bool,
}

impl VirtualDisk {
    /// Makes the sparse files of all disks.
    pub fn create_all(specs: &[DiskSpec], directory: &Path) -> Result<Vec<Self>> {
        let wanted = specs.iter().flat_map(|spec| std::iter::repeat_n(*spec, spec.count));
        wanted
            .enumerate()
            .map(|(index, spec)| {
                let file = directory.join(format!("disk-{index}"));
                let made = File::create(&file).and_then(|disk| disk.set_len(spec.bytes));
                made.with_context(|| format!("making the disk {} of {} bytes", file.display(), spec.bytes))?;
                Ok(VirtualDisk { index, bus: spec.bus, file, bad_sectors: Vec::new(), plugged: true })
            })
            .collect()
    }

    /// Makes the disk blank and whole again, while no machine uses it.
    ///
    /// # Errors
    /// When its file cannot be truncated.
    pub fn blank(&mut self) -> Result<()> {
        self.bad_sectors.clear();
        let blanked = File::options().write(true).open(&self.file).and_then(|file| {
            let bytes = file.metadata()?.len();
            file.set_len(0)?;
            file.set_len(bytes)
        });
        blanked.with_context(|| format!("blanking {}", self.file.display()))
    }

    /// The file that it is stored in.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The serial number that the guest sees.
    pub fn serial(&self) -> String {
        format!("{SERIAL_PREFIX}{:02}", self.index)
    }

    /// The name of the emulated device.
    pub fn device(&self) -> String {
        format!("device{}", self.index)
    }

    /// The name of the block backend.
    pub fn node(&self) -> String {
        format!("disk{}", self.index)
    }

    /// The emulator's description of what the disk is stored in.
    pub fn backend(&self) -> Value {
        // Nothing here has to survive the host, so flushes are not passed on; the guest's own order of writes stays.
        let cache = json!({"direct": false, "no-flush": true});
        let file = json!({
            "driver": "file", "filename": self.file, "aio": "threads", "discard": "unmap", "cache": cache,
        });
        let file = if self.bad_sectors.is_empty() {
            file
        } else {
            let errors: Vec<Value> = self
                .bad_sectors
                .iter()
                .map(|sector| json!({"event": "read_aio", "sector": sector, "errno": 5, "once": false}))
                .collect();
            json!({"driver": "blkdebug", "image": file, "inject-error": errors, "discard": "unmap"})
        };
        json!({"driver": "raw", "node-name": self.node(), "discard": "unmap", "cache": cache, "file": file})
    }

    /// The emulator's description of the device.
    pub fn frontend(&self) -> Value {
        let mut device = json!({"id": self.device(), "drive": self.node(), "serial": self.serial()});
        let (driver, bus) = match self.bus {
            Bus::Virtio => ("virtio-blk-pci", None),
            Bus::Scsi => ("scsi-hd", Some("scsi.0")),
            Bus::Nvme => ("nvme", None),
        };
        device["driver"] = json!(driver);
        if let Some(bus) = bus {
            device["bus"] = json!(bus);
        }
        device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_means_virtio_disks_of_20_gib() {
        assert_eq!("3".parse::<DiskSpec>().unwrap(), DiskSpec::plain(3));
    }

    #[test]
    fn size_and_bus_can_be_given() {
        let spec = DiskSpec { count: 2, bytes: 512 << 20, bus: Bus::Scsi };
        assert_eq!("2:512M:scsi".parse::<DiskSpec>().unwrap(), spec);
        assert_eq!("1:1T:nvme".parse::<DiskSpec>().unwrap().bytes, 1 << 40);
    }

    #[test]
    fn what_is_no_description_of_disks_is_refused() {
        for text in ["", "x", "1:", "1:5", "1:0G", "1:99999999999T", "1:1G:ide", "1:1G:scsi:9", "-1", "1:é"]
        {
            assert!(text.parse::<DiskSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_bad_sector_puts_an_error_injector_between_disk_and_file() {
        let file = PathBuf::from("/disk");
        let mut disk = VirtualDisk { index: 4, bus: Bus::Nvme, file, bad_sectors: vec![], plugged: true };
        assert_eq!(disk.backend()["file"]["driver"], "file");
        disk.bad_sectors.push(2048);
        assert_eq!(disk.backend()["file"]["driver"], "blkdebug");
        assert_eq!(disk.backend()["file"]["inject-error"][0]["sector"], 2048);
        assert_eq!(disk.serial(), "rig-04");
    }
}
