//! Partition tables beside a real udevd: what we make, grow and remove is what `/dev/disk` shows.

use std::collections::{BTreeMap, BTreeSet};
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

/// Where udevd has names of partitions.
const NAMES: [&str; 2] = ["/dev/disk/by-partuuid", "/dev/disk/by-partlabel"];

/// A disk all of whose partitions everybody must know.
struct Watched<'a> {
    disk: &'a Path,
    /// The names that were there before: udevd can forget one when its partition goes while it looks at it, and the name
    /// then leads to whatever gets that partition's node.
    left: BTreeSet<PathBuf>,
}

impl<'a> Watched<'a> {
    fn new(disk: &'a Path) -> Result<Self> {
        settle()?;
        let entries = NAMES.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
        let left = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        Ok(Self { disk, left })
    }

    /// The names in a directory that lead to partitions of the disk, and where they lead.
    fn names(&self, directory: &str) -> Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        let Ok(entries) = fs::read_dir(directory) else { return Ok(found) };
        for entry in entries {
            let entry = entry?;
            // One whose device has just gone leads nowhere.
            let Ok(node) = entry.path().canonicalize() else { continue };
            let is_part =
                node.to_string_lossy().starts_with(&*self.disk.to_string_lossy()) && node != self.disk;
            if is_part && !self.left.contains(&entry.path()) {
                found.insert(entry.file_name().to_string_lossy().into_owned(), node);
            }
        }
        Ok(found)
    }

    /// Fails unless udevd, the kernel, sgdisk and libblkid have exactly the partitions of the table. While somebody has
    /// the table open udevd waits, so each look and each change opens it anew.
    fn agree(&self) -> Result<()> {
        settle()?;
        let table = Table::open(self.disk, &owner()?)?;
        let partitions = table.table().partitions();
        let [by_uuid, by_label] = [self.names(NAMES[0])?, self.names(NAMES[1])?];
        ensure!(
            by_uuid.len() == partitions.len() && by_label.len() == partitions.len(),
            "{by_uuid:?} {by_label:?} beside {:?}",
            self.left
        );
        for partition in &partitions {
            let node = table.node(partition.number)?.canonicalize()?;
            ensure!(by_uuid.get(&partition.guid.to_string()) == Some(&node), "{partition:?}: {by_uuid:?}");
            ensure!(by_label.get(&partition.name) == Some(&node), "{partition:?}: {by_label:?}");
            known(partition, &node)?;
        }
        let device = self.disk.to_str().context("no text")?;
        let said = tool::run("sgdisk", ["--verify", device])?;
        ensure!(said.contains("No problems found"), "{said}");
        let said = tool::run("blkid", ["-p", "-s", "PTUUID", "-o", "value", device])?;
        ensure!(said.trim() == table.table().disk_guid().to_string(), "{said}");
        Ok(())
    }

    /// One change of the table, after which everybody agrees; what it gave.
    fn changed<T>(&self, change: impl FnOnce(&mut Table) -> Result<T>) -> Result<T> {
        let done = change(&mut Table::open(self.disk, &owner()?)?)?;
        self.agree()?;
        Ok(done)
    }
}

/// Fails unless the kernel and udevd know a partition as the table has it.
fn known(partition: &Partition, node: &Path) -> Result<()> {
    let size = File::open(node)?.seek(SeekFrom::End(0))?;
    ensure!(size == partition.size.get(), "{}: {size}", node.display());
    let known = udev(node)?;
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
    Ok(())
}

fn add(table: &mut Table, name: &str, size: Bytes) -> Result<Partition> {
    Ok(table.add(&id(name)?, size, State::New)?)
}

/// Each kind of change, while a partition is mounted all the time.
fn changed_while_mounted(disk: &Path) -> Result<()> {
    let watched = Watched::new(disk)?;
    drop(Table::create(disk, &owner()?)?);
    watched.agree()?;
    let used = watched.changed(|table| add(table, "used", Bytes::mib(64)))?;
    let node = Table::open(disk, &owner()?)?.node(used.number)?;
    format("ext4", &node)?;
    let mounted = Mounted::new("ext4", &node)?;
    mounted.write("file", 4)?;
    let second = watched.changed(|table| add(table, "second", Bytes::mib(16)))?;
    let third = watched.changed(|table| add(table, "third", Bytes::mib(16)))?;
    watched.changed(|table| Ok(table.grow(third.number, Bytes::mib(48)).map(drop)?))?;
    let refusal = watched.changed(|table| kind(table.remove(used.number)))?;
    ensure!(refusal == Kind::InUse, "{refusal:?}");
    watched.changed(|table| Ok(table.remove(second.number).map(drop)?))?;
    // The mounted one grows into the gap, under its filesystem.
    watched.changed(|table| Ok(table.grow(used.number, Bytes::mib(72)).map(drop)?))?;
    watched.changed(|table| Ok(table.set_state(third.number, State::Formatting).map(drop)?))?;
    mounted.check("file", 4)?;
    mounted.unmount()?;
    for number in [used.number, third.number] {
        settle()?;
        watched.changed(|table| Ok(table.remove(number).map(drop)?))?;
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
