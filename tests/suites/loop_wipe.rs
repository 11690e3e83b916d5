//! Wiping disks: each kind of signature wherever it lies, once, and whatever happens in between.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use devices::discovery::{Discovery, Disk as Found};
use devices::erase::{Consent, Records, Wiped, wipe};
use devices::gpt::{Disk as Table, State};
use devices::{Bytes, Change, DeviceNumber, Error, Kind};
use rig::filesystem::{format, signatures};
use rig::{Disk, kind, skip_unless_installed, skip_unless_loop, tool};
use tempfile::TempDir;

fn skip() -> bool {
    skip_unless_loop()
        || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkswap", "wipefs", "strace"])
}

fn write_at(device: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let file = fs::OpenOptions::new().write(true).open(device)?;
    file.write_all_at(bytes, at)?;
    Ok(file.sync_all()?)
}

/// A second header of LUKS2 whose first is lost (cryptsetup's on-disk format, 2.1).
fn luks2(at: u64) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..6].copy_from_slice(b"SKUL\xba\xbe");
    header[6..8].copy_from_slice(&2_u16.to_be_bytes());
    header[8..16].copy_from_slice(&at.to_be_bytes());
    header[168..204].copy_from_slice(b"7b1c3bd4-5bc0-4d67-9d38-1ad3a3c42c4f");
    header[256..264].copy_from_slice(&at.to_be_bytes());
    header
}

/// A superblock of md, version 0.90, at its place 64 KiB before the end (linux/raid/md_p.h).
fn md() -> Vec<u8> {
    let words: [u32; 10] = [0xa92b_4efc, 0, 90, 0, 0, 1, 2, 3, 1, 64];
    words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 64]).collect()
}

type Put = fn(&Path, u64) -> Result<()>;

/// What puts a signature on a device of a size, and what libblkid calls it.
const KINDS: [(&str, Put); 12] = [
    ("ext4", |device, _| format("ext4", device)),
    ("xfs", |device, _| format("xfs", device)),
    ("btrfs", |device, _| format("btrfs", device)),
    ("swap", |device, _| tool::run("mkswap", [device]).map(drop)),
    ("gpt", |device, _| {
        Table::create(device, &"wipe".parse()?)?;
        Ok(())
    }),
    ("LVM2_member", |device, _| {
        // struct label_header and struct pv_header of LVM2, lib/format_text/layout.h.
        let mut label = b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001".to_vec();
        label.extend_from_slice(b"abcdefghijklmnopqrstuvwxyz012345");
        label.resize(512, 0);
        write_at(device, 512, &label)
    }),
    ("VMFS_volume_member", |device, _| write_at(device, 1 << 20, b"\x0d\xd0\x01\xc0")),
    ("VMFS", |device, _| write_at(device, 2 << 20, b"\x5e\xf1\xab\x2f")),
    ("crypto_LUKS", |device, _| write_at(device, 4 << 20, &luks2(4 << 20))),
    ("linux_raid_member", |device, size| write_at(device, (size & !0xffff) - 0x1_0000, &md())),
    // pdc_ident of drivers/ide/pdcraid.h, at the farthest of its places.
    ("promise_fasttrack_raid_member", |device, size| {
        write_at(device, (size / 512 - 3087) * 512, b"Promise Technology, Inc.")
    }),
    ("jmicron_raid_member", |device, size| write_at(device, size - 512, b"JM")),
];

#[test]
fn every_kind_of_signature_is_wiped_at_whichever_end_it_lies() -> Result<()> {
    if skip() {
        return Ok(());
    }
    // The last sector is no whole block of 4 KiB.
    let size = Bytes::new((320 << 20) + 512);
    let mut untold = Vec::new();
    for (name, put) in KINDS {
        let disk = Disk::partitioned(size, Bytes::new(512))?;
        put(disk.path(), size.get())?;
        // An older libblkid may not know all of them there; what it does not find is zeroed all the same.
        let known = signatures(disk.path())?.iter().any(|found| found == name);
        let wiped = wipe(disk.path())?;
        ensure!(!known || wiped.iter().any(|wiped| wiped.signature.kind == name), "{name}: {wiped:?}");
        ensure!(signatures(disk.path())?.is_empty(), "{name} is still there");
        ensure!(wipe(disk.path())?.is_empty());
        for end in devices::signature_ends(size) {
            let mut bytes = vec![0; usize::try_from(end.end.get() - end.start.get())?];
            fs::File::open(disk.image())?.read_exact_at(&mut bytes, end.start.get())?;
            ensure!(bytes.iter().all(|byte| *byte == 0), "{name}: something is left in {end:?}");
        }
        if !known {
            untold.push(name);
        }
    }
    println!("libblkid did not tell: {untold:?}");
    ensure!(untold.len() < 3, "most cases tested nothing: {untold:?}");
    Ok(())
}

/// Disks that can be known again: partitions of loop devices, whose uuids a made-up udev tells.
struct Host {
    root: TempDir,
    records: Records,
}

impl Host {
    fn new() -> Result<Self> {
        let root = tempfile::tempdir()?;
        for directory in ["sys", "dev", "proc"] {
            symlink(Path::new("/").join(directory), root.path().join(directory))?;
        }
        fs::create_dir_all(root.path().join("run/udev/data"))?;
        let records = Records::in_directory(root.path().join("records"))?;
        Ok(Self { root, records })
    }

    fn discovery(&self) -> Discovery {
        Discovery::below(self.root.path()).with_dev("/dev")
    }

    /// Has udev say that a device is the partition of this uuid.
    fn name(&self, device: &Path, uuid: &str) -> Result<Found> {
        let number = DeviceNumber::from_rdev(device.metadata()?.rdev());
        let data = self.root.path().join(format!("run/udev/data/b{number}"));
        fs::write(data, format!("I:1\nE:ID_PART_ENTRY_UUID={uuid}\n"))?;
        Ok(self.discovery().inventory()?.at(device)?.clone())
    }

    fn wipe(&self, disk: &Found, consent: &Consent) -> Result<Change<Vec<Wiped>>, Error> {
        self.records.wipe_once(&self.discovery(), disk, consent)
    }
}

/// A disk with one partition, and the partition's node.
fn partitioned() -> Result<(Disk, PathBuf)> {
    let disk = Disk::partitioned(Bytes::mib(64), Bytes::new(512))?;
    let mut table = Table::create(disk.path(), &"wipe".parse()?)?;
    let partition = table.add(&"a".parse()?, Bytes::mib(48), State::New)?;
    let node = table.node(partition.number)?;
    Ok((disk, node))
}

fn consent(disk: &Found) -> Result<Consent> {
    Ok(Consent::to_destroy(disk.key().context("it has no key")?))
}

const UUID: &str = "5c6a7c52-3b39-4f6c-8f2c-3e1ab3ed4a01";

#[test]
fn a_disk_is_wiped_once_and_what_is_made_on_it_afterwards_stays() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let (_disk, node) = partitioned()?;
    let host = Host::new()?;
    let found = host.name(&node, UUID)?;
    format("ext4", &node)?;
    let wiped = host.wipe(&found, &consent(&found)?)?;
    ensure!(wiped.is_made() && wiped.get().iter().any(|wiped| wiped.signature.kind == "ext4"), "{wiped:?}");
    ensure!(signatures(&node)?.is_empty());
    format("xfs", &node).or_else(|_| format("ext4", &node))?;
    let there = signatures(&node)?;
    for _ in 0..2 {
        ensure!(!host.wipe(&found, &consent(&found)?)?.is_made());
        ensure!(signatures(&node)? == there && !there.is_empty(), "it was wiped twice");
    }
    // Another record book knows nothing of it: then it is a first time.
    ensure!(!Host::new()?.records.is_wiped(&found.key().context("no key")?)?);
    Ok(())
}

#[test]
fn consent_is_for_the_disk_that_was_looked_at_and_for_no_other_of_its_name_number_or_key() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let (_disk, node) = partitioned()?;
    format("ext4", &node)?;
    let before = signatures(&node)?;
    let host = Host::new()?;
    let found = host.name(&node, UUID)?;
    let agreed = consent(&found)?;
    let refused = |disk: &Found, expected: Kind| -> Result<()> {
        ensure!(kind(host.wipe(disk, &agreed))? == expected);
        ensure!(signatures(&node)? == before, "it was wiped");
        Ok(())
    };
    // A later device of the same name and number.
    let mut stale = found.clone();
    stale.sequence = found.sequence.map(|sequence| sequence - 1);
    if stale.sequence.is_some() {
        refused(&stale, Kind::Inconsistent)?;
    }
    // A disk with another serial number in the same place.
    let mut stale = found.clone();
    stale.identity.serial = Some("another".to_owned());
    refused(&stale, Kind::Inconsistent)?;
    // A number that another device has by now, and a name that leads to another device.
    let (_other_disk, other) = partitioned()?;
    let mut stale = found.clone();
    stale.number = host.name(&other, "0a3c3a24-5a5c-4f0e-9f0f-2a2b7a0d5e11")?.number;
    refused(&stale, Kind::Inconsistent)?;
    let mut stale = found.clone();
    stale.path.clone_from(&other);
    refused(&stale, Kind::Inconsistent)?;
    // The key is of another partition by now: the consent was for what had it before.
    host.name(&node, "f0a6c4f0-55b0-4a8a-8c0c-0a4b1c3c7b22")?;
    refused(&found, Kind::InvalidArgument)?;
    // A copy of the disk has the same key: nobody can say which was meant.
    host.name(&node, UUID)?;
    host.name(&other, UUID)?;
    refused(&found, Kind::Inconsistent)?;
    ensure!(signatures(&other)?.is_empty());
    host.name(&other, "0a3c3a24-5a5c-4f0e-9f0f-2a2b7a0d5e11")?;
    ensure!(host.wipe(&found, &agreed)?.is_made());
    Ok(())
}

#[test]
fn a_wipe_killed_at_any_write_is_finished_later_and_not_done_to_what_came_since() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let test = "a_wipe_killed_at_any_write_is_finished_later_and_not_done_to_what_came_since";
    if let Some(node) = std::env::var_os("GABION_WORK_ON") {
        let root = PathBuf::from(std::env::var_os("GABION_WORK_IN").context("no directory")?);
        let discovery = Discovery::below(&root).with_dev("/dev");
        let disk = discovery.inventory()?.at(Path::new(&node))?.clone();
        let records = Records::in_directory(root.join("records"))?;
        let _ = records.wipe_once(&discovery, &disk, &consent(&disk)?)?;
        return Ok(());
    }
    let (_disk, node) = partitioned()?;
    let mut points = 0;
    for call in ["rename", "pwrite64", "fsync"] {
        for nth in 1.. {
            let host = Host::new()?;
            let found = host.name(&node, UUID)?;
            format("ext4", &node)?;
            let status = Command::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e"])
                .arg(format!("inject={call}:signal=SIGKILL:when={nth}"))
                .arg(std::env::current_exe()?)
                .args(["--exact", test, "--nocapture"])
                .env("GABION_WORK_ON", &node)
                .env("GABION_WORK_IN", host.root.path())
                .output()?
                .status;
            if status.success() {
                ensure!(nth > 1, "{call} was never called");
                break;
            }
            points += 1;
            let was_finished = host.records.is_wiped(&found.key().context("no key")?)?;
            if points % 2 == 0 && !was_finished {
                // Somebody made something of his own on the disk meanwhile.
                format("ext4", &node)?;
                let began = host.root.path().join("records").read_dir()?.next().is_some();
                let result = host.wipe(&found, &consent(&found)?);
                match result {
                    // Nothing had been begun, or written down: the consent covers what is there.
                    Ok(change) => {
                        ensure!(change.is_made() && !began_with_a_record(&host)?.contains("started"));
                    }
                    Err(error) => ensure!(
                        began && error.kind() == Kind::Foreign && !signatures(&node)?.is_empty(),
                        "{error}"
                    ),
                }
                continue;
            }
            let change = host.wipe(&found, &consent(&found)?)?;
            ensure!(change.is_made() != was_finished, "{call} {nth}: {change:?}");
            ensure!(signatures(&node)?.is_empty(), "{call} {nth}: something is left");
        }
    }
    println!("killed at {points} points");
    ensure!(points > 10);
    Ok(())
}

/// What the only record says, once all is over.
fn began_with_a_record(host: &Host) -> Result<String> {
    let mut text = String::new();
    for entry in host.root.path().join("records").read_dir()? {
        text.push_str(&fs::read_to_string(entry?.path())?);
    }
    Ok(text)
}
