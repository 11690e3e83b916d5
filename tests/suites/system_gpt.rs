//! Partition tables beside a real udevd: what we make, grow and remove is what `/dev/disk` shows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::discovery::Discovery;
use devices::erase::{Consent, Records};
use devices::gpt::{Disk as Table, Owner, Partition, State, VolumeId};
use devices::{Bytes, Kind};
use rig::filesystem::format;
use rig::{Disk, Mounted, kind, skip_unless_installed, skip_unless_loop, tool, virtual_disks};

fn skip() -> bool {
    if !Path::new("/run/udev/control").exists() {
        println!("SKIPPED: no udevd runs here");
        return true;
    }
    skip_unless_loop() || skip_unless_installed(&["sgdisk", "blkid", "udevadm", "mkfs.ext4"])
}

fn owner() -> Result<Owner> {
    Ok("system-gpt".parse()?)
}

fn id(text: &str) -> Result<VolumeId> {
    Ok(text.parse()?)
}

fn settle() -> Result<()> {
    tool::run("udevadm", ["settle", "--timeout=20"]).map(drop)
}

/// What udevd knows of a device.
fn udev(node: &Path) -> Result<BTreeMap<String, String>> {
    let node = node.display().to_string();
    let said = tool::run("udevadm", ["info", "--query=property", "--name", &node])?;
    Ok(said
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect())
}

/// The links in a directory of `/dev/disk` that lead to partitions of a disk, and where they lead.
fn links(directory: &str, disk: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let directory = Path::new("/dev/disk").join(directory);
    if !directory.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // A link whose device has just gone leads nowhere.
        let Ok(node) = entry.path().canonicalize() else { continue };
        if node.to_string_lossy().starts_with(&*disk.to_string_lossy()) && node != disk {
            found.insert(entry.file_name().to_string_lossy().into_owned(), node);
        }
    }
    Ok(found)
}

/// Fails unless udevd, the kernel, sgdisk and libblkid have exactly the partitions of the table. While somebody has the
/// table open udevd waits, so each look and each change opens it anew.
fn agree(disk: &Path) -> Result<()> {
    settle()?;
    let table = Table::open(disk, &owner()?)?;
    let partitions = table.table().partitions();
    let by_uuid = links("by-partuuid", disk)?;
    let by_label = links("by-partlabel", disk)?;
    ensure!(
        by_uuid.len() == partitions.len() && by_label.len() == partitions.len(),
        "{by_uuid:?} {by_label:?}"
    );
    for partition in &partitions {
        let node = table.node(partition.number)?.canonicalize()?;
        ensure!(by_uuid.get(&partition.guid.to_string()) == Some(&node), "{partition:?}: {by_uuid:?}");
        ensure!(by_label.get(&partition.name) == Some(&node), "{partition:?}: {by_label:?}");
        let size = File::open(&node)?.seek(SeekFrom::End(0))?;
        ensure!(size == partition.size.get(), "{}: {size}", node.display());
        let known = udev(&node)?;
        let expected = [
            ("ID_PART_ENTRY_UUID", partition.guid.to_string()),
            ("ID_PART_ENTRY_NAME", partition.name.clone()),
            ("ID_PART_ENTRY_NUMBER", partition.number.to_string()),
            ("ID_PART_ENTRY_OFFSET", (partition.start.get() / 512).to_string()),
            ("ID_PART_ENTRY_SIZE", (partition.size.get() / 512).to_string()),
        ];
        for (key, value) in expected {
            ensure!(known.get(key) == Some(&value), "{key} of {} is {:?}", node.display(), known.get(key));
        }
    }
    let device = disk.to_str().context("no text")?;
    let said = tool::run("sgdisk", ["--verify", device])?;
    ensure!(said.contains("No problems found"), "{said}");
    let said = tool::run("blkid", ["-p", "-s", "PTUUID", "-o", "value", device])?;
    ensure!(said.trim() == table.table().disk_guid().to_string(), "{said}");
    Ok(())
}

fn add(table: &mut Table, name: &str, size: Bytes) -> Result<Partition> {
    Ok(table.add(&id(name)?, size, State::New)?)
}

/// One change of the table, after which everybody agrees; what it gave.
fn changed<T>(disk: &Path, change: impl FnOnce(&mut Table) -> Result<T>) -> Result<T> {
    let done = change(&mut Table::open(disk, &owner()?)?)?;
    agree(disk)?;
    Ok(done)
}

/// Each kind of change, while a partition is mounted all the time.
fn changed_while_mounted(disk: &Path) -> Result<()> {
    drop(Table::create(disk, &owner()?)?);
    agree(disk)?;
    let used = changed(disk, |table| add(table, "used", Bytes::mib(64)))?;
    let node = Table::open(disk, &owner()?)?.node(used.number)?;
    format("ext4", &node)?;
    let mounted = Mounted::new("ext4", &node)?;
    mounted.write("file", 4)?;
    let second = changed(disk, |table| add(table, "second", Bytes::mib(16)))?;
    let third = changed(disk, |table| add(table, "third", Bytes::mib(16)))?;
    changed(disk, |table| Ok(table.grow(third.number, Bytes::mib(48)).map(drop)?))?;
    let refusal = changed(disk, |table| kind(table.remove(used.number)))?;
    ensure!(refusal == Kind::InUse, "{refusal:?}");
    changed(disk, |table| Ok(table.remove(second.number).map(drop)?))?;
    // The mounted one grows into the gap, under its filesystem.
    changed(disk, |table| Ok(table.grow(used.number, Bytes::mib(72)).map(drop)?))?;
    changed(disk, |table| Ok(table.set_state(third.number, State::Formatting).map(drop)?))?;
    mounted.check("file", 4)?;
    mounted.unmount()?;
    for number in [used.number, third.number] {
        settle()?;
        changed(disk, |table| Ok(table.remove(number).map(drop)?))?;
    }
    Ok(())
}

#[test]
fn udevd_shows_each_change_of_a_disk_that_is_in_use() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disks = virtual_disks();
    let Some(disk) = disks.first() else {
        println!("SKIPPED: no disk to overwrite");
        return Ok(());
    };
    changed_while_mounted(&disk.canonicalize()?)
}

#[test]
fn udevd_shows_each_change_of_a_disk_with_large_sectors() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = Disk::partitioned(Bytes::mib(256), Bytes::kib(4))?;
    changed_while_mounted(disk.path())
}

#[test]
fn a_partition_uuid_that_a_copied_disk_bears_as_well_names_nothing() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = Disk::partitioned(Bytes::mib(64), Bytes::new(512))?;
    let mut table = Table::create(disk.path(), &owner()?)?;
    let partition = add(&mut table, "db", Bytes::mib(32))?;
    let node = table.node(partition.number)?;
    drop(table);
    settle()?;
    let link = Path::new("/dev/disk/by-partuuid").join(partition.guid.to_string());
    let host = Discovery::host();
    let inventory = host.inventory()?;
    let found = inventory.at(&link)?.clone();
    ensure!(found.path == node && inventory.namesakes(&found).is_empty());
    let key = found.key().context("no key")?;
    let mut copy = disk.copy()?;
    settle()?;
    let inventory = host.inventory()?;
    ensure!(inventory.namesakes(&found).len() == 1, "udevd did not see the copy");
    // Which of both the link leads to is chance; by its own name each can be had.
    ensure!(kind(inventory.at(&link))? == Kind::Inconsistent);
    ensure!(inventory.at(&node)?.number == found.number);
    let directory = tempfile::tempdir()?;
    let records = Records::in_directory(directory.path())?;
    let consent = Consent::to_destroy(key);
    ensure!(kind(records.wipe_once(&host, &found, &consent))? == Kind::Inconsistent);
    copy.detach()?;
    settle()?;
    ensure!(records.wipe_once(&host, &found, &consent)?.is_made());
    Ok(())
}
