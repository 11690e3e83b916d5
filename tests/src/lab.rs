//! A volume group of one test on disks of its own, live in the kernel: for the suites that watch devices.
//!
//! ```no_run
//! use devices::Bytes;
//! use rig::lab::{Lab, Under};
//!
//! let lab = Lab::new(2, Bytes::gib(1), Under::Linear)?;
//! lab.lvm("lvcreate --type raid1 -m1 -L 32M -n mirrored VG")?;
//! lab.break_disk(1)?;
//! println!("{}", lab.uuid("mirrored")?);
//! # Ok::<(), anyhow::Error>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use devices::{Bytes, Sectors};
use lvm::Uuid;

use crate::{Disk, Sandbox, tool};

/// What the PVs of a lab are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// Loop devices.
    Loop,
    /// dm-linear devices over loop devices, which can be broken and mended while in use.
    Linear,
}

/// A volume group, its disks and its LVM; gone when dropped.
// The order of the fields is the order of their end: deactivate, unmap, unplug.
#[derive(Debug)]
pub struct Lab {
    sandbox: Sandbox,
    linear: Vec<Linear>,
    disks: Vec<Disk>,
    vg: String,
}

impl Lab {
    /// A group on `count` disks of the size `size`.
    ///
    /// # Errors
    ///
    /// If the disks or the group cannot be made.
    pub fn new(count: usize, size: Bytes, under: Under) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let vg = format!("t{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let disks: Vec<Disk> = (0..count).map(|_| Disk::new(size)).collect::<Result<_>>()?;
        let linear: Vec<Linear> = match under {
            Under::Loop => Vec::new(),
            Under::Linear => {
                let make = |(index, disk)| Linear::new(format!("{vg}pv{index}"), disk);
                disks.iter().enumerate().map(make).collect::<Result<_>>()?
            }
        };
        let paths: Vec<PathBuf> = match under {
            Under::Loop => disks.iter().map(|disk| disk.path().to_owned()).collect(),
            Under::Linear => linear.iter().map(|linear| linear.path.clone()).collect(),
        };
        let sandbox = Sandbox::live(&paths)?;
        let lab = Self { sandbox, linear, disks, vg };
        // Otherwise udev's rules activate what is just being made, under locks other than ours.
        let options = ["--setautoactivation", "n", &lab.vg].map(Path::new);
        let arguments = options.into_iter().chain(paths.iter().map(PathBuf::as_path));
        lab.sandbox.lvm("vgcreate", arguments)?;
        Ok(lab)
    }

    /// The LVM of the lab.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Adds lines to LVM's configuration, see [`Sandbox::configure`].
    ///
    /// # Errors
    ///
    /// If the configuration cannot be written.
    pub fn configure(&mut self, lines: &str) -> Result<()> {
        self.sandbox.configure(lines)
    }

    /// The disks below.
    #[must_use]
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// The PVs in order.
    #[must_use]
    pub fn pvs(&self) -> &[PathBuf] {
        self.sandbox.devices()
    }

    /// The group's name.
    #[must_use]
    pub fn vg(&self) -> &str {
        &self.vg
    }

    /// Runs an LVM command line without questions, in which `VG` stands for the group and `PV0`, `PV1`, … for
    /// the PVs.
    ///
    /// # Errors
    ///
    /// If LVM refuses.
    pub fn lvm(&self, line: &str) -> Result<String> {
        let mut line = line.replace("VG", &self.vg);
        for (index, pv) in self.pvs().iter().enumerate() {
            line = line.replace(&format!("PV{index}"), &pv.display().to_string());
        }
        let (command, rest) = line.split_once(' ').context("a command line has words")?;
        self.sandbox.run(&format!("{command} -y -q {rest}"))
    }

    /// One field of a volume as `lvs` prints it.
    ///
    /// # Errors
    ///
    /// If LVM refuses.
    pub fn field(&self, lv: &str, field: &str) -> Result<String> {
        let name = format!("{}/{lv}", self.vg);
        let text = self.sandbox.lvm("lvs", ["-a", "--noheadings", "-o", field, &name])?;
        Ok(text.trim().trim_matches(['[', ']']).to_owned())
    }

    /// A volume's uuid; hidden volumes have one too.
    ///
    /// # Errors
    ///
    /// If there is no such volume.
    pub fn uuid(&self, lv: &str) -> Result<Uuid> {
        Ok(self.field(lv, "lv_uuid")?.parse()?)
    }

    /// The group's uuid.
    ///
    /// # Errors
    ///
    /// If the group has gone.
    pub fn vg_uuid(&self) -> Result<Uuid> {
        let text = self.sandbox.lvm("vgs", ["--noheadings", "-o", "vg_uuid", &self.vg])?;
        Ok(text.trim().parse()?)
    }

    /// The device-mapper name of a volume or a layer of one, such as `pool-tpool`; nothing is doubled, so the
    /// name must have no hyphen of its own.
    #[must_use]
    pub fn dm_name(&self, device: &str) -> String {
        format!("{}-{device}", self.vg)
    }

    /// The node of a volume or a layer of one, as [`Self::dm_name`].
    #[must_use]
    pub fn node(&self, device: &str) -> PathBuf {
        PathBuf::from(format!("/dev/mapper/{}", self.dm_name(device)))
    }

    /// Makes every access to disk `index` fail from now on.
    ///
    /// # Errors
    ///
    /// If the lab has no [`Under::Linear`] disks, or device-mapper refuses.
    pub fn break_disk(&self, index: usize) -> Result<()> {
        let linear = self.linear.get(index).context("the lab has no dm-linear disks")?;
        linear.load(&format!("0 {} error", linear.len.get()))
    }

    /// Undoes [`Self::break_disk`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn mend_disk(&self, index: usize) -> Result<()> {
        let linear = self.linear.get(index).context("the lab has no dm-linear disks")?;
        linear.load(&linear.table)
    }
}

/// A dm-linear device over a whole disk.
#[derive(Debug)]
struct Linear {
    name: String,
    path: PathBuf,
    table: String,
    len: Sectors,
}

impl Linear {
    fn new(name: String, disk: &Disk) -> Result<Self> {
        let len = Sectors::try_from(disk.size()?)?;
        let table = format!("0 {} linear {} 0", len.get(), disk.path().display());
        tool::run("dmsetup", ["create", &name, "--table", &table])?;
        let path = PathBuf::from(format!("/dev/mapper/{name}"));
        Ok(Self { name, path, table, len })
    }

    /// Replaces the table without waiting for what is under way.
    fn load(&self, table: &str) -> Result<()> {
        tool::run("dmsetup", ["load", &self.name, "--table", table])?;
        tool::run("dmsetup", ["suspend", "--noflush", "--nolockfs", &self.name])?;
        tool::run("dmsetup", ["resume", &self.name])?;
        Ok(())
    }
}

impl Drop for Linear {
    fn drop(&mut self) {
        if let Err(error) = tool::run("dmsetup", ["remove", "--retry", &self.name]) {
            println!("left behind: {error}");
        }
    }
}
