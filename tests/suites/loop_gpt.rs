//! Partition tables on loop devices, with sgdisk and libblkid as judges, and the kernel's own view of them.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Result, ensure};
use devices::gpt::{
    Condition, Damage, Disk as Table, DiskFile, Gpt, Owner, Partition, PartitionNumber, State, TYPE,
    VolumeId, inspect,
};
use devices::{Bytes, Error, Kind};
use rig::filesystem::{format, signatures};
use rig::{Disk, Mounted, skip_unless_installed, skip_unless_loop, tool};

fn skip() -> bool {
    skip_unless_loop() || skip_unless_installed(&["sgdisk", "blkid", "wipefs", "mkfs.ext4"])
}

fn owner() -> Owner {
    "9f1de4b1-9b3a-4e6c-a9ee-6cbf4b3b6d57".parse().unwrap()
}

fn id(text: &str) -> VolumeId {
    text.parse().unwrap()
}

fn disk(mib: u64, sector: u64) -> Result<Disk> {
    Disk::partitioned(Bytes::mib(mib), Bytes::new(sector))
}

fn run(program: &str, arguments: &[&str], device: &Path) -> Result<String> {
    tool::run(program, arguments.iter().copied().chain([device.to_str().unwrap()]))
}

/// What `blkid -p` says of a device, without its cache.
fn probe(device: &Path) -> Result<BTreeMap<String, String>> {
    let said = run("blkid", &["-p", "-o", "export"], device)?;
    Ok(said.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect())
}

fn condition(device: &Path) -> Result<Condition, Error> {
    Ok(inspect(&DiskFile::open_to_read(device)?)?.condition().clone())
}

/// Says whether sgdisk, libblkid, the kernel and the table are of one mind.
fn agree(table: &Table, device: &Path) -> Result<()> {
    let said = run("sgdisk", &["--verify"], device)?;
    ensure!(said.contains("No problems found"), "{said}");
    let whole = probe(device)?;
    ensure!(whole.get("PTTYPE").is_some_and(|kind| kind == "gpt"), "{whole:?}");
    ensure!(whole["PTUUID"] == table.table().disk_guid().to_string(), "{whole:?}");
    let partitions = table.table().partitions();
    for partition in &partitions {
        let node = table.node(partition.number)?;
        let seen = probe(&node)?;
        let sectors = |bytes: Bytes| (bytes.get() / 512).to_string();
        let entry = |name: &str| seen.get(&format!("PART_ENTRY_{name}")).cloned().unwrap_or_default();
        let expected = [
            ("SCHEME", "gpt".to_owned()),
            ("UUID", partition.guid.to_string()),
            ("TYPE", TYPE.to_string()),
            ("NAME", partition.name.replace('#', "\\#")),
            ("NUMBER", partition.number.to_string()),
            ("OFFSET", sectors(partition.start)),
            ("SIZE", sectors(partition.size)),
            ("FLAGS", format!("{:#x}", partition.attributes)),
        ];
        for (name, value) in expected {
            ensure!(entry(name).replace('\\', "") == value.replace('\\', ""), "{name} of {node:?}: {seen:?}");
        }
    }
    let name = device.file_name().unwrap().to_str().unwrap();
    let known = std::fs::read_dir(format!("/sys/block/{name}"))?
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().join("partition").exists()))
        .count();
    ensure!(known == partitions.len(), "the kernel has {known} partitions of {}", partitions.len());
    Ok(())
}

#[test]
fn sgdisk_and_libblkid_and_the_kernel_agree_after_every_step() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for sector in [512, 4096] {
        let mut disk = disk(96, sector)?;
        let device = disk.path().to_owned();
        let mut table = Table::create(&device, &owner())?;
        agree(&table, &device)?;
        for (volume, mib) in [("a", 8), ("pvc-0b0bd4f9-7a2c-4d5e-9d58-3e2a2f1c9b10", 4), ("b", 16)] {
            table.add(&id(volume), Bytes::mib(mib), State::Creating)?;
            agree(&table, &device)?;
        }
        let long = id(&"x".repeat(63));
        let last = table.add(&long, Bytes::mib(5), State::New)?.number;
        agree(&table, &device)?;
        table.grow(last, Bytes::mib(9))?;
        agree(&table, &device)?;
        let second = PartitionNumber::new(2).unwrap();
        table.remove(second)?;
        agree(&table, &device)?;
        for state in [State::New, State::Formatting, State::Ext4, State::Block, State::Removing] {
            table.set_state(last, state)?;
            agree(&table, &device)?;
        }
        table.add(&id("again"), Bytes::mib(3), State::New)?;
        agree(&table, &device)?;
        drop(table);

        disk.grow(Bytes::mib(128))?;
        ensure!(condition(&device)? == Condition::Grown);
        let mut table = Table::open(&device, &owner())?;
        let before = table.table().largest();
        table.use_grown_disk()?;
        agree(&table, &device)?;
        ensure!(table.table().largest().get() == before.get() + (32 << 20));
        let largest = table.table().largest();
        table.add(&id("rest"), largest, State::New)?;
        agree(&table, &device)?;
    }
    Ok(())
}

#[test]
fn a_disk_with_a_mounted_partition_is_changed_around_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for sector in [512, 4096] {
        let disk = disk(128, sector)?;
        let mut table = Table::create(disk.path(), &owner())?;
        let first = table.add(&id("a"), Bytes::mib(32), State::New)?.number;
        let second = table.add(&id("b"), Bytes::mib(8), State::New)?.number;
        let node = table.node(first)?;
        format("ext4", &node)?;
        let mounted = Mounted::new("ext4", &node)?;
        mounted.write("content", 4)?;

        let third = table.add(&id("c"), Bytes::mib(8), State::New)?.number;
        agree(&table, disk.path())?;
        let error = table.remove(first).unwrap_err();
        ensure!(error.kind() == Kind::InUse && error.effect() == devices::Effect::None, "{error}");
        agree(&table, disk.path())?;
        table.remove(second)?;
        agree(&table, disk.path())?;
        table.grow(first, Bytes::mib(40))?;
        agree(&table, disk.path())?;
        mounted.write("more", 4)?;
        mounted.check("content", 4)?;
        table.grow(third, Bytes::mib(16))?;
        drop(table);
        // Another program, while it is mounted.
        let error = Table::create(disk.path(), &owner()).unwrap_err();
        ensure!(error.kind() == Kind::InUse, "{error}");
        let mut table = Table::open(disk.path(), &owner())?;
        mounted.unmount()?;
        let gone = table.remove(first)?;
        ensure!(gone.size == Bytes::mib(40));
        agree(&table, disk.path())?;
        ensure!(table.table().partitions().len() == 1);
    }
    Ok(())
}

#[test]
fn the_kernel_is_told_what_a_killed_program_left_untold() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = disk(64, 512)?;
    let mut table = Table::create(disk.path(), &owner())?;
    for (volume, mib) in [("a", 4), ("b", 4), ("c", 4)] {
        table.add(&id(volume), Bytes::mib(mib), State::New)?;
    }
    drop(table);
    // The table alone, as when the program dies before it tells the kernel.
    let mut alone = Gpt::open(DiskFile::open_to_write(disk.path())?, &owner())?;
    let number = |number| PartitionNumber::new(number).unwrap();
    alone.remove(number(2))?;
    alone.grow(number(1), Bytes::mib(6))?;
    alone.add(&id("d"), Bytes::mib(1), State::New)?;
    alone.add(&id("e"), Bytes::mib(10), State::New)?;
    drop(alone);
    let table = Table::open(disk.path(), &owner())?;
    agree(&table, disk.path())?;
    ensure!(table.table().partitions().len() == 4);
    Ok(())
}

/// Says that a disk is refused for this reason, in every way, and that not one byte of it changed.
fn refused(disk: &Disk, kind: Kind, why: &str) -> Result<()> {
    let before = std::fs::read(disk.image())?;
    let error = Table::open(disk.path(), &owner()).unwrap_err();
    ensure!(error.kind() == kind && error.to_string().contains(why), "{error}");
    let create = Table::create(disk.path(), &owner()).unwrap_err();
    ensure!(create.kind() != Kind::Io, "{create}");
    if kind == Kind::Foreign {
        let repair = Table::repair(disk.path(), &owner()).unwrap_err();
        ensure!(repair.kind() == Kind::Foreign, "{repair}");
    }
    ensure!(std::fs::read(disk.image())? == before, "a refused disk was changed");
    Ok(())
}

#[test]
fn what_other_tools_made_is_refused_with_the_reason_and_not_changed() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // PART-01: a label without partitions.
    let empty = disk(32, 512)?;
    run("sgdisk", &["--clear"], empty.path())?;
    ensure!(condition(empty.path())? == Condition::Sound);
    refused(&empty, Kind::Foreign, "its table was not made for the owner")?;

    let linux = disk(32, 512)?;
    run("sgdisk", &["--new=1:0:+8M", "--typecode=1:8300", "--change-name=1:root"], linux.path())?;
    refused(&linux, Kind::Foreign, "partition 1 (\"root\") was made by another program")?;

    // Our type alone proves nothing.
    let typed = disk(32, 512)?;
    run("sgdisk", &["--new=1:0:+8M", &format!("--typecode=1:{TYPE}"), "--change-name=1:a"], typed.path())?;
    refused(&typed, Kind::Foreign, "was made by Gabion for another owner")?;

    let mbr = disk(32, 512)?;
    // Linux (0x83), from sector 2048 on, 16384 sectors.
    let entry = [0, 0x20, 0x21, 0, 0x83, 0x26, 0x25, 1, 0, 8, 0, 0, 0, 0x40, 0, 0];
    overwrite(mbr.path(), 446, &entry)?;
    overwrite(mbr.path(), 510, &[0x55, 0xaa])?;
    ensure!(probe(mbr.path())?["PTTYPE"] == "dos");
    ensure!(condition(mbr.path())? == Condition::Mbr);
    refused(&mbr, Kind::Foreign, "it has an MBR partition table")?;

    for fs_type in ["ext4", "btrfs"] {
        let plain = disk(128, 512)?;
        tool::run(&format!("mkfs.{fs_type}"), ["-q", plain.path().to_str().unwrap()])?;
        ensure!(condition(plain.path())? == Condition::Content);
        refused(&plain, Kind::Foreign, "it is not blank")?;
    }
    Ok(())
}

#[test]
fn a_partition_that_another_tool_adds_to_ours_closes_the_disk() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = disk(64, 512)?;
    let mut table = Table::create(disk.path(), &owner())?;
    table.add(&id("a"), Bytes::mib(8), State::New)?;
    run("sgdisk", &["--new=5:0:+8M", "--change-name=5:intruder"], disk.path())?;
    let error = table.add(&id("b"), Bytes::mib(8), State::New).unwrap_err();
    ensure!(
        error.kind() == Kind::Foreign && error.to_string().contains("partition 5 (\"intruder\")"),
        "{error}"
    );
    drop(table);
    refused(&disk, Kind::Foreign, "partition 5 (\"intruder\") was made by another program")?;
    run("sgdisk", &["--delete=5"], disk.path())?;
    agree(&Table::open(disk.path(), &owner())?, disk.path())
}

fn overwrite(device: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(device)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)?;
    Ok(file.sync_all()?)
}

#[test]
fn a_damaged_table_is_mended_on_request_only_and_sgdisk_is_content_afterwards() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for sector in [512_u64, 4096] {
        let disk = disk(32, sector)?;
        let mut table = Table::create(disk.path(), &owner())?;
        let first: Partition = table.add(&id("a"), Bytes::mib(8), State::Ext4)?;
        drop(table);
        let end = 32 << 20;
        let wounds = [
            (sector, sector, "the first header"),
            (2 * sector, 128, "the first array"),
            (end - sector, sector, "the last header"),
            (end - sector - 16384, 128, "the last array"),
            (0, sector, "the protective MBR"),
            (0, 34 * sector, "all at the beginning"),
        ];
        for (at, length, what) in wounds {
            overwrite(disk.path(), at, &vec![0; usize::try_from(length)?])?;
            refused(&disk, Kind::Inconsistent, "ask for a repair")?;
            let (table, damages) = Table::repair(disk.path(), &owner())?;
            ensure!(!damages.is_empty() && !damages.contains(&Damage::Differ), "{what}: {damages:?}");
            agree(&table, disk.path())?;
            ensure!(table.table().partition(first.number) == Some(first.clone()), "{what}");
        }
        for at in [sector + 20, end - sector + 20] {
            overwrite(disk.path(), at, &[0xff])?;
        }
        refused(&disk, Kind::Inconsistent, "no copy can be used")?;
    }
    Ok(())
}

/// PART-03: a partition made again at the same place must not show the old filesystem, nor may another tool's.
#[test]
fn a_partition_made_again_in_the_same_place_is_empty() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = disk(160, 512)?;
    let mut table = Table::create(disk.path(), &owner())?;
    for fs_type in ["ext4", "btrfs"] {
        let made = table.add(&id("a"), Bytes::mib(120), State::New)?;
        let node = table.node(made.number)?;
        ensure!(signatures(&node)?.is_empty());
        run(&format!("mkfs.{fs_type}"), &["-q"], &node)?;
        ensure!(signatures(&node)? == [fs_type]);
        table.remove(made.number)?;
        // Another tool's partition there shows nothing either: the removal took the signatures away.
        run("sgdisk", &["--new=1:2048:+120M"], disk.path())?;
        drop(table);
        let found = signatures_at(&disk, made.start)?;
        ensure!(found.is_empty(), "{fs_type}: {found:?}");
        run("sgdisk", &["--delete=1"], disk.path())?;
        // And what somebody wrote there meanwhile is not shown by ours.
        let stale = Disk::new(Bytes::mib(120))?;
        format("ext4", stale.path())?;
        let image = std::fs::read(stale.image())?;
        overwrite(disk.path(), made.start.get(), &image[..8 << 20])?;
        ensure!(!signatures_at(&disk, made.start)?.is_empty());
        table = Table::open(disk.path(), &owner())?;
        let again = table.add(&id("b"), Bytes::mib(120), State::New)?;
        ensure!((again.start, again.number) == (made.start, made.number));
        ensure!(signatures(&table.node(again.number)?)?.is_empty());
        table.remove(again.number)?;
    }
    Ok(())
}

/// What libblkid would find in a partition that begins there.
fn signatures_at(disk: &Disk, start: Bytes) -> Result<Vec<String>> {
    let device = disk.path().to_str().unwrap();
    let offset = start.get().to_string();
    let found =
        tool::run("sh", ["-c", &format!("blkid -p -O {offset} -o value -s TYPE {device} || [ $? = 2 ]")])?;
    Ok(found.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn only_a_whole_disk_with_partitions_is_taken() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let disk = disk(32, 512)?;
    let mut table = Table::create(disk.path(), &owner())?;
    let number = table.add(&id("a"), Bytes::mib(8), State::New)?.number;
    let error = Table::create(&table.node(number)?, &owner()).unwrap_err();
    ensure!(error.to_string().contains("it is a partition itself"), "{error}");
    let error = Table::open(disk.image(), &owner()).unwrap_err();
    ensure!(error.to_string().contains("it is no block device"), "{error}");
    let error = Table::open(Path::new("/dev/no-such-disk"), &owner()).unwrap_err();
    ensure!(error.kind() == Kind::NotFound, "{error}");
    Ok(())
}
