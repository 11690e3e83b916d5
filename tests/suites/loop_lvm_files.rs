//! What our use of LVM leaves on a host besides the metadata on its disks: no archive, and no devices file.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::ops::{Group, NewGroup, OnRemove};
use rig::ask::{lv, volume};
use rig::cycles::{files, leave_no_file_behind};
use rig::{Disk, Handle, Sandbox, device_paths, skip_unless_loop};

/// LVM-11, the short run; `soak_lvm_files` has all 5,000.
#[test]
fn volumes_come_and_go_and_no_file_is_left_of_them() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    leave_no_file_behind(25).map(drop)
}

/// The host's own LVM, which goes by a devices file where there is one, with a group `system` on a disk of its own.
struct Host {
    sandbox: Sandbox,
    disks: [Disk; 2],
}

impl Host {
    fn new() -> Result<Self> {
        let disks = [Disk::new(Bytes::mib(200))?, Disk::new(Bytes::mib(200))?];
        let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
        sandbox.lvm("vgcreate", [Path::new("system"), disks[0].path()])?;
        Ok(Self { sandbox, disks })
    }

    fn lvm(&self, name: &str, words: &[&str]) -> Result<String> {
        self.sandbox.lvm(name, [&["--config", "devices/use_devicesfile=1"], words].concat())
    }

    fn groups(&self) -> Result<BTreeSet<String>> {
        let told = self.lvm("vgs", &["--noheadings", "-o", "vg_name"])?;
        Ok(told.split_whitespace().map(str::to_owned).collect())
    }

    fn devices_file(&self) -> PathBuf {
        self.sandbox.system_dir().join("devices/system.devices")
    }

    /// Has LVM note a disk in the devices file, which it makes for the first.
    fn note(&self, disk: usize) -> Result<()> {
        let path = self.disks[disk].path().display().to_string();
        self.lvm("lvmdevices", &["--adddev", &path]).map(drop)
    }
}

/// Our group on the host's second disk, with a volume in it.
fn ours(handle: &Handle, disk: &Disk) -> Result<Group> {
    let group = handle.lvm.create_group(&NewGroup::new("v".parse()?, device_paths(&[disk])?))?.into_inner();
    ensure!(group.create_volume(&volume("db", Bytes::mib(8)))?.is_made());
    Ok(group)
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// LVM-27: the file would list the new disk only, and hide the host's own group from then on.
#[test]
fn a_group_of_ours_makes_no_devices_file_that_would_hide_the_hosts_own() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let host = Host::new()?;
    assert_eq!(host.groups()?, names(&["system"]));
    let handle = Handle::metadata_only(&[&host.disks[1]])?;
    let group = ours(&handle, &host.disks[1])?;
    assert_eq!(host.groups()?, names(&["system", "v"]));
    let left = |dir: &Path| -> Result<Vec<PathBuf>> {
        Ok(files(dir)?.into_iter().filter(|file| file.display().to_string().contains("devices")).collect())
    };
    for dir in [host.sandbox.system_dir(), &handle.workers().path(""), Path::new("/etc/lvm/devices")] {
        assert_eq!(left(dir)?, Vec::<PathBuf>::new());
    }
    let _ = group.remove_volume(&lv("db"), OnRemove::Keep)?;
    assert!(group.remove()?.is_made());
    assert_eq!(host.groups()?, names(&["system"]));
    Ok(())
}

/// LVM-27, the other way round: the host has such a file, and our disk is not in it.
#[test]
fn a_devices_file_of_the_host_hides_nothing_from_us_and_keeps_its_entries() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let host = Host::new()?;
    host.note(0)?;
    let before = std::fs::read_to_string(host.devices_file())?;
    let handle = Handle::metadata_only(&[&host.disks[1]])?;
    let group = ours(&handle, &host.disks[1])?;
    assert_eq!(host.groups()?, names(&["system"]), "the file hides our group from the host's own commands");
    assert_eq!(group.look()?.lvs.len(), 1);
    let again = Handle::metadata_only(&[&host.disks[1]])?;
    assert_eq!(again.lvm.group(&"v".parse()?)?.uuid(), group.uuid());
    assert_eq!(std::fs::read_to_string(host.devices_file())?, before);

    // Whoever runs the host may take our disk in; it is one of the host's own then, too.
    host.note(1)?;
    let both = std::fs::read_to_string(host.devices_file())?;
    assert_eq!(host.groups()?, names(&["system", "v"]));
    let _ = group.remove_volume(&lv("db"), OnRemove::Keep)?;
    assert!(group.remove()?.is_made());
    assert_eq!(host.groups()?, names(&["system"]));
    assert_eq!(std::fs::read_to_string(host.devices_file())?, both, "the file is the host's, not ours");
    Ok(())
}
