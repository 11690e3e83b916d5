//! The rig itself: what every suite in the machine relies on.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rig::disk::virtual_disks;
use rig::eventually;

const PATIENCE: Duration = Duration::from_secs(30);

/// The place of the first SCSI disk among the spare ones.
const SCSI: usize = 6;

/// The disks, or nothing (and a line that says so) outside of the machine.
fn disks() -> Option<Vec<PathBuf>> {
    let disks = virtual_disks();
    if disks.is_empty() {
        println!("SKIPPED: there are no virtual disks outside of the machine");
        return None;
    }
    Some(disks)
}

fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {text}{said}", output.status);
    text
}

/// Says on a line of its own what the host shall do with the machine.
fn ask_host(wish: &str) {
    println!("\nRIG: {wish}");
    io::stdout().flush().unwrap();
}

#[test]
fn there_are_nine_disks_of_at_least_16_gib_two_of_them_scsi_and_one_nvme() {
    let Some(disks) = disks() else { return };
    assert_eq!(disks.len(), 9);
    for disk in &disks {
        let bytes = tool("blockdev", &["--getsize64", disk.to_str().unwrap()]);
        assert!(bytes.trim().parse::<u64>().unwrap() >= 16 << 30, "{} has {bytes} bytes", disk.display());
    }
    if std::env::var("GABION_MACHINE").is_ok_and(|machine| machine == "uml") {
        println!("SKIPPED: user-mode Linux has neither SCSI nor NVMe disks");
        return;
    }
    for disk in &disks[SCSI..SCSI + 2] {
        assert!(disk.starts_with("/dev") && disk.to_str().unwrap().contains("/sd"), "{}", disk.display());
    }
    assert!(disks[SCSI + 2].to_str().unwrap().contains("/nvme"), "{}", disks[SCSI + 2].display());
}

/// Two tests of the same content: whichever runs second finds what the first one wrote, unless it was wiped.
fn writes_all_disks_and_found_them_blank() {
    let Some(disks) = disks() else { return };
    for disk in disks {
        let file = OpenOptions::new().read(true).write(true).open(&disk).unwrap();
        let length = 20 << 30;
        for at in [0, 4096, 1 << 20, length - 4096] {
            let mut content = [1; 4096];
            file.read_exact_at(&mut content, at).unwrap();
            assert!(content.iter().all(|byte| *byte == 0), "{} is not blank at {at}", disk.display());
            file.write_all_at(&[0xa5; 4096], at).unwrap();
        }
        file.sync_all().unwrap();
    }
}

#[test]
fn disks_are_blank_for_a_first_test_that_writes_them() {
    writes_all_disks_and_found_them_blank();
}

#[test]
fn disks_are_blank_again_for_a_second_test_that_writes_them() {
    writes_all_disks_and_found_them_blank();
}

#[test]
fn the_root_is_read_only_and_scratch_space_is_not() {
    if disks().is_none() {
        return;
    }
    for path in ["/etc/gabion-was-here", "/usr/gabion-was-here", "/root/gabion-was-here"] {
        let error = File::create(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{path}");
    }
    for path in
        ["/tmp/file", "/var/lib/file", "/mnt/file", "/etc/lvm/file", "/run/lock/file", "/run/out/file"]
    {
        fs::write(path, "content").unwrap_or_else(|error| panic!("{path}: {error}"));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn every_device_mapper_target_that_the_suites_use_loads() {
    if disks().is_none() {
        return;
    }
    let modules = "dm-thin-pool dm-raid dm-snapshot dm-cache dm-cache-smq dm-writecache dm-integrity dm-mirror \
                   dm-log-writes dm-delay dm-flakey dm-zero brd bcache scsi_debug";
    for module in modules.split_whitespace() {
        // These two make devices at once, which is for their tests to do.
        let dry = if ["brd", "scsi_debug"].contains(&module) { "--dry-run" } else { "--verbose" };
        tool("modprobe", &[dry, module]);
    }
    let targets = tool("dmsetup", &["targets"]);
    let names = "linear striped error thin-pool thin raid snapshot snapshot-origin snapshot-merge cache writecache \
                 integrity mirror log-writes delay flakey zero";
    for name in names.split_whitespace() {
        assert!(targets.lines().any(|line| line.split(' ').next() == Some(name)), "no {name} in {targets}");
    }
    assert!(Path::new("/sys/fs/bcache/register").exists());
}

#[test]
fn udev_links_the_volumes_that_lvm_makes_and_settles_its_cookies() {
    let Some(disks) = disks() else { return };
    let disk = disks[0].to_str().unwrap();
    tool("vgcreate", &["rig", disk]);
    tool("lvcreate", &["-y", "-L", "64M", "-n", "one", "rig"]);
    assert!(fs::symlink_metadata("/dev/rig/one").unwrap().is_symlink());
    assert!(
        !tool("udevadm", &["info", "--query=property", "--property=DM_LV_NAME", "/dev/rig/one"]).is_empty()
    );
    tool("mkfs.ext4", &["-q", "/dev/rig/one"]);
    eventually("udev knows the file system", PATIENCE, || Path::new("/dev/disk/by-uuid").exists());
    tool("vgremove", &["-y", "rig"]);
    assert!(!Path::new("/dev/rig/one").exists());
}

#[test]
fn a_pulled_disk_vanishes_and_comes_back_with_its_content() {
    let Some(disks) = disks() else { return };
    let disk = &disks[SCSI];
    fs::write(disk, "here").unwrap();
    tool("blockdev", &["--flushbufs", disk.to_str().unwrap()]);
    ask_host(&format!("unplug {SCSI}"));
    eventually("the disk is gone", PATIENCE, || !disk.exists());
    ask_host(&format!("plug {SCSI}"));
    eventually("the disk is back", PATIENCE, || File::open(by_serial("rig-06")).is_ok());
    let mut content = [0; 4];
    File::open(by_serial("rig-06")).unwrap().read_exact(&mut content).unwrap();
    assert_eq!(&content, b"here");
}

#[test]
fn a_disk_can_come_back_with_a_sector_that_cannot_be_read() {
    if disks().is_none() {
        return;
    }
    ask_host(&format!("unplug {SCSI}"));
    eventually("the disk is gone", PATIENCE, || !serial_exists("rig-06"));
    ask_host(&format!("plug {SCSI} 2048"));
    eventually("the disk is back", PATIENCE, || File::open(by_serial("rig-06")).is_ok());
    let disk = File::open(by_serial("rig-06")).unwrap();
    let mut sectors = [0; 4096];
    disk.read_exact_at(&mut sectors, 4 << 20).unwrap();
    assert!(disk.read_exact_at(&mut sectors, 1 << 20).is_err());
}

/// The device nodes by the serial numbers that SCSI disks report in page 0x80.
fn by_serial(serial: &str) -> PathBuf {
    let blocks = fs::read_dir("/sys/block").unwrap().flatten();
    let found = blocks.filter(|block| {
        let page = fs::read(block.path().join("device/vpd_pg80")).unwrap_or_default();
        String::from_utf8_lossy(&page).contains(serial)
    });
    found.map(|block| Path::new("/dev").join(block.file_name())).next().unwrap_or_default()
}

/// A disk that comes is there a moment before it can be opened; one that goes is there a moment longer.
fn serial_exists(serial: &str) -> bool {
    by_serial(serial).exists()
}

#[test]
fn a_power_cut_runs_the_test_again_on_the_same_disks() {
    let Some(disks) = disks() else { return };
    let phase = std::env::var("GABION_PHASE").unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&disks[1]).unwrap();
    let mut content = [0; 2];
    file.read_exact_at(&mut content, 0).unwrap();
    match phase.as_str() {
        "0" => {
            assert_eq!(content, [0, 0]);
            file.write_all_at(b"ok", 0).unwrap();
            file.sync_all().unwrap();
            File::create("/tmp/does-not-survive").unwrap();
            ask_host("cut power");
            sleep(Duration::from_secs(60));
            panic!("the power was not cut");
        }
        _ => {
            assert_eq!(&content, b"ok");
            assert!(!Path::new("/tmp/does-not-survive").exists());
        }
    }
}

/// Each of these is wrong on purpose: the rig must fail it in the way that its module names, and go on.
mod must_fail {
    mod left_behind {
        use super::super::{disks, tool};

        #[test]
        fn a_mapped_device_is_found_and_removed() {
            let Some(disks) = disks() else { return };
            let table = format!("0 2048 linear {} 0", disks[2].display());
            tool("dmsetup", &["create", "left", "--table", &table]);
        }

        #[test]
        fn a_mount_over_a_loop_device_is_found_and_removed() {
            if disks().is_none() {
                return;
            }
            tool("truncate", &["-s", "64M", "/var/tmp/image"]);
            tool("mkfs.ext4", &["-q", "/var/tmp/image"]);
            tool("mount", &["-o", "loop", "/var/tmp/image", "/mnt"]);
        }

        #[test]
        fn a_suspended_device_that_somebody_waits_for_is_found_and_removed() {
            let Some(disks) = disks() else { return };
            let table = format!("0 2048 linear {} 0", disks[3].display());
            tool("dmsetup", &["create", "left", "--table", &table]);
            tool("dmsetup", &["suspend", "left"]);
        }
    }

    mod time_limit {
        mod seconds_3 {
            #[test]
            fn a_test_that_sleeps_is_ended_with_its_children() {
                std::process::Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap().wait().unwrap();
            }
        }
    }

    mod stuck_in_the_kernel {
        mod seconds_10 {
            use std::fs;

            use super::super::super::{disks, tool};

            #[test]
            fn a_write_to_a_suspended_device_costs_only_a_new_start() {
                let Some(disks) = disks() else { return };
                let table = format!("0 2048 linear {} 0", disks[3].display());
                tool("dmsetup", &["create", "stuck", "--table", &table]);
                tool("dmsetup", &["suspend", "stuck"]);
                fs::write("/dev/mapper/stuck", "never arrives").unwrap();
            }
        }
    }

    mod machine_was_lost {
        #[test]
        fn a_kernel_panic_costs_only_a_new_start() {
            if super::super::disks().is_some() {
                std::fs::write("/proc/sysrq-trigger", "c").unwrap();
            }
        }
    }
}
