//! Claiming devices on a real kernel: every name of one disk, whoever holds it, and races for it.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use devices::discovery::Discovery;
use devices::eligibility::{Chosen, Policy};
use devices::{Claim, Error, Kind};
use rig::disk::virtual_disks;
use rig::{eventually, tool};

fn skip() -> bool {
    let skip = virtual_disks().is_empty();
    if skip {
        println!("SKIPPED: there are no virtual disks outside of the machine");
    }
    skip
}

fn claim(path: &Path) -> Result<Claim, Error> {
    Claim::take(&Discovery::host(), path, Chosen::ByName, &Policy::default())
}

fn refused(path: &Path) -> (Kind, String) {
    let error = claim(path).unwrap_err();
    println!("{error}");
    (error.kind(), error.to_string())
}

fn sectors(disk: &Path) -> u64 {
    tool::run("blockdev", ["--getsz".as_ref(), disk.as_os_str()]).unwrap().trim().parse().unwrap()
}

/// A device of device-mapper, removed when the test ends.
struct Mapping(&'static str);

impl Mapping {
    fn new(name: &'static str, table: &str) -> Self {
        tool::run("dmsetup", ["create", name, "--table", table]).unwrap();
        Self(name)
    }

    fn path(&self) -> PathBuf {
        Path::new("/dev/mapper").join(self.0)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        for arguments in [["resume", self.0].as_slice(), &["remove", "--retry", self.0]] {
            if let Err(error) = tool::run("dmsetup", arguments) {
                eprintln!("{error:#}");
            }
        }
    }
}

/// Another process, which holds something until it is dropped.
struct Holder(Child);

impl Holder {
    /// The program says a line when it holds what it is to hold.
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_name_of_a_disk_leads_to_the_one_that_is_claimed() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let table = format!("0 {} linear {} 0", sectors(&disks[0]), disks[0].display());
    let mapping = Mapping::new("alias", &table);
    let scratch = tempfile::tempdir().unwrap();
    let by_hand = scratch.path().join("link");
    symlink(mapping.path(), &by_hand).unwrap();
    let inventory = Discovery::host().inventory().unwrap();
    let mapped = inventory.at(&mapping.path()).unwrap();
    let node = scratch.path().join("node");
    let (major, minor) = (mapped.number.major.to_string(), mapped.number.minor.to_string());
    tool::run("mknod", [node.to_str().unwrap(), "b", &major, &minor]).unwrap();
    let names = [mapping.path(), mapped.path.clone(), by_hand, node];
    let held = claim(&mapping.path()).unwrap();
    assert_eq!(held.disk().number, mapped.number);
    for name in &names {
        let (kind, text) = refused(name);
        assert_eq!(kind, Kind::InUse, "{}", name.display());
        assert!(text.contains("claimed by another"), "{text}");
    }
    drop(held);
    for name in &names {
        assert_eq!(claim(name).unwrap().disk().number, mapped.number, "{}", name.display());
    }
    // And of a disk with links of udevd's.
    let disk = inventory.at(&disks[6]).unwrap();
    assert!(!disk.links.is_empty());
    let held = claim(&disks[6]).unwrap();
    for link in &disk.links {
        assert_eq!(refused(link).0, Kind::InUse, "{}", link.display());
    }
    drop(held);
}

#[test]
fn what_is_claimed_is_kept_from_programs_too() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let (disk, path) = (disks[0].as_path(), disks[0].to_str().unwrap());
    let table = format!("0 2048 linear {path} 0");
    let held = claim(disk).unwrap();
    assert!(tool::run("dmsetup", ["create", "over", "--table", &table]).is_err());
    assert!(tool::run("mkswap", [path]).and_then(|_| tool::run("swapon", [path])).is_err());
    assert!(tool::run("pvcreate", ["-qq", path]).is_err());
    assert!(tool::run("mkfs.xfs", ["-q", path]).is_err());
    drop(held);
    tool::run("wipefs", ["-aq", path]).unwrap();
    claim(disk).unwrap();
}

#[test]
fn what_others_hold_is_refused_in_whatever_mount_namespace_they_live() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let path = |place: usize| disks[place].to_str().unwrap();
    // Exclusively open in another process, of which sysfs shows nothing.
    let script = "use Fcntl; sysopen(my $f, $ARGV[0], O_RDWR | O_EXCL) or die $!; $| = 1; print \"held\\n\"; sleep 600";
    let holder = Holder::start("perl", &["-e", script, path(0)]);
    assert_eq!(refused(&disks[0]).0, Kind::InUse);
    drop(holder);
    claim(&disks[0]).unwrap();
    // Mounted where this process cannot see it.
    tool::run("mkfs.ext4", ["-qF", path(1)]).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let script = format!("mount {} {} && echo held && exec sleep 600", path(1), scratch.path().display());
    let holder = Holder::start("unshare", &["-m", "--propagation", "private", "sh", "-c", &script]);
    let (kind, text) = refused(&disks[1]);
    assert!(kind == Kind::InUse && text.contains("mounted at"), "{text}");
    drop(holder);
    // The namespace ends a moment after its last process.
    eventually("it is not mounted any more", Duration::from_secs(20), || {
        claim(&disks[1]).unwrap_err().kind() == Kind::Foreign
    });
    // Swap, and a mapping over it.
    tool::run("mkswap", ["-q", path(2)]).unwrap();
    tool::run("swapon", [path(2)]).unwrap();
    assert_eq!(refused(&disks[2]).0, Kind::InUse);
    tool::run("swapoff", [path(2)]).unwrap();
    let mapping = Mapping::new("over", &format!("0 2048 linear {} 0", path(3)));
    assert_eq!(refused(&disks[3]).0, Kind::InUse);
    drop(mapping);
    claim(&disks[3]).unwrap();
}

/// Of many that want a blank disk at the same time one gets it, writes, and lets go: nobody may get it after that.
#[test]
fn a_race_for_a_blank_disk_has_one_winner_and_the_others_see_what_he_wrote() {
    if skip() {
        return;
    }
    let disk = &virtual_disks()[0];
    for round in 0..3 {
        let winners = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let end = Instant::now() + Duration::from_secs(60);
                    loop {
                        match claim(disk) {
                            Ok(claim) => {
                                winners.fetch_add(1, Ordering::SeqCst);
                                // The label of a PV, in the second sector (LVM2's on-disk format).
                                let label = b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001";
                                claim.file().write_all_at(label, 512).unwrap();
                                claim.file().write_all_at(b"SWAPSPACE2", 4086).unwrap();
                                claim.file().sync_all().unwrap();
                                return;
                            }
                            Err(error) if error.kind() == Kind::InUse => {}
                            Err(error) => {
                                assert_eq!(error.kind(), Kind::Foreign, "{error}");
                                return;
                            }
                        }
                        assert!(Instant::now() < end, "it was in use for a minute");
                    }
                });
            }
        });
        assert_eq!(winners.load(Ordering::SeqCst), 1, "round {round}");
        tool::run("wipefs", ["-aq".as_ref(), disk.as_os_str()]).unwrap();
    }
}

#[test]
fn a_claimed_partition_and_its_disk_keep_each_other() {
    if skip() {
        return;
    }
    let disk = &virtual_disks()[0];
    let path = disk.to_str().unwrap();
    tool::run("sgdisk", ["-n", "1:0:+2G", "-n", "2:0:+2G", path]).unwrap();
    tool::run("udevadm", ["settle"]).unwrap();
    let (first, second) = (PathBuf::from(format!("{path}1")), PathBuf::from(format!("{path}2")));
    let held = claim(&first).unwrap();
    assert_eq!(refused(&first).0, Kind::InUse);
    // Another part of the disk is free; the whole disk is not.
    drop(claim(&second).unwrap());
    assert!(refused(disk).1.contains("partition table"));
    drop(held);
    tool::run("sgdisk", ["-Z", path]).unwrap();
    tool::run("blockdev", ["--rereadpt", path]).unwrap();
}

#[test]
fn a_device_that_is_suspended_below_is_refused_at_once_and_never_opened() {
    if skip() {
        return;
    }
    let disk = &virtual_disks()[0];
    let low = Mapping::new("low", &format!("0 8388608 linear {} 0", disk.display()));
    let middle = Mapping::new("middle", "0 8388608 linear /dev/mapper/low 0");
    let top = Mapping::new("top", "0 8388608 linear /dev/mapper/middle 0");
    tool::run("udevadm", ["settle"]).unwrap();
    tool::run("dmsetup", ["suspend", "low"]).unwrap();
    let opened = |mapping: &Mapping| {
        tool::run("dmsetup", ["info", "-c", "--noheadings", "-o", "open", mapping.0])
            .unwrap()
            .trim()
            .to_owned()
    };
    for (mapping, opens) in [(&low, "1"), (&middle, "1"), (&top, "0")] {
        let start = Instant::now();
        let (kind, text) = refused(&mapping.path());
        assert!(kind == Kind::Io && text.contains("suspended"), "{text}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert_eq!(opened(mapping), opens, "{}", mapping.0);
    }
    tool::run("dmsetup", ["resume", "low"]).unwrap();
    assert_eq!(claim(&top.path()).unwrap().disk().below.len(), 1);
    drop(top);
    drop(middle);
    drop(low);
}

#[test]
fn a_device_that_cannot_be_read_or_contradicts_itself_is_refused() {
    if skip() {
        return;
    }
    let disks = virtual_disks();
    let dead = Mapping::new("dead", "0 8388608 error");
    let (kind, text) = refused(&dead.path());
    assert!(kind == Kind::Io && text.contains("cannot be looked at"), "{text}");
    let ill = Mapping::new("ill", &format!("0 8388608 flakey {} 0 0 60", disks[0].display()));
    assert_eq!(refused(&ill.path()).0, Kind::Io);
    drop((dead, ill));
    tool::run("mkfs.btrfs", ["-qf".as_ref(), disks[1].as_os_str()]).unwrap();
    tool::run("mkfs.ext4", ["-qF".as_ref(), disks[0].as_os_str()]).unwrap();
    let (from, to) = (format!("if={}", disks[1].display()), format!("of={}", disks[0].display()));
    tool::run("dd", [&from, &to, "bs=64K", "skip=1", "seek=1", "count=1", "conv=fsync", "status=none"])
        .unwrap();
    let (kind, text) = refused(&disks[0]);
    assert!(kind == Kind::Foreign && text.contains("contradicting"), "{text}");
}
