//! Wiping images of disks: no root and no device is needed.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use super::*;
use crate::Kind;
use crate::gpt::{Condition, Gpt, State, inspect};

fn image(mebibytes: u64) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(mebibytes << 20).unwrap();
    file
}

/// Makes a filesystem, or says that its program is missing.
fn made(program: &str, path: &Path) -> bool {
    match Command::new(program).arg("-q").arg(path).status() {
        Ok(status) => status.success(),
        Err(_) => {
            println!("SKIPPED: {program} is not installed");
            false
        }
    }
}

#[test]
fn a_wiped_image_is_blank_and_what_was_on_it_is_told() {
    let file = image(32);
    if !made("mkfs.ext4", file.path()) {
        return;
    }
    let wiped = wipe_image(file.path()).unwrap();
    assert!(wiped.iter().any(|wiped| wiped.signature.kind == "ext4"), "{wiped:?}");
    assert_eq!(wipe_image(file.path()).unwrap(), []);
}

#[test]
fn both_copies_of_a_partition_table_are_wiped() {
    let file = image(16);
    let owner = "wiped".parse().unwrap();
    let mut gpt = Gpt::create(DiskFile::open_to_write(file.path()).unwrap(), &owner).unwrap();
    gpt.add(&"a".parse().unwrap(), Bytes::mib(4), State::New).unwrap();
    let wiped = wipe_image(file.path()).unwrap();
    assert!(wiped.iter().any(|wiped| wiped.signature.kind == "gpt"), "{wiped:?}");
    let found = inspect(&DiskFile::open_to_read(file.path()).unwrap()).unwrap();
    assert_eq!(*found.condition(), Condition::Blank);
}

#[test]
fn overwriting_reaches_every_byte_and_tells_how_far_it_is() {
    let file = image(3);
    file.as_file().write_all(&[0xa5; 4096]).unwrap();
    let mut told = Vec::new();
    let cancel = Cancel::new();
    overwrite_image(file.path(), &cancel, &mut |progress| told.push(progress.done)).unwrap();
    assert_eq!(told, [Bytes::mib(1), Bytes::mib(2), Bytes::mib(3)]);
    let bytes = fs::read(file.path()).unwrap();
    // A block of 4 KiB of random bytes that is all zeroes does not happen.
    assert!(bytes.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
    assert!(!bytes.starts_with(&[0xa5; 64]));
}

#[test]
fn a_cancelled_erasure_stops_at_its_next_block() {
    let file = image(3);
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let mut calls = 0;
    let error = overwrite_image(file.path(), &cancel, &mut |_| {
        calls += 1;
        stop.cancel();
    })
    .unwrap_err();
    assert_eq!((error.kind(), calls), (Kind::Cancelled, 1));
    assert!(error.to_string().contains("1 MiB of 3 MiB"), "{error}");
    let bytes = fs::read(file.path()).unwrap();
    assert!(bytes[1 << 20..].iter().all(|byte| *byte == 0));
}

fn wipe_image(path: &Path) -> Result<Vec<Wiped>, Error> {
    wiped(&mut DiskFile::open_to_write(path)?)
}

fn overwrite_image(path: &Path, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
    blocks::erase(&mut DiskFile::open_to_write(path)?, Method::Overwrite, cancel, progress)
}

#[test]
fn a_file_is_never_wiped_or_erased() {
    let file = image(1);
    file.as_file().write_all(b"a file of somebody").unwrap();
    let before = fs::read(file.path()).unwrap();
    let link = file.path().with_extension("link");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    for path in [file.path(), &link, Path::new("/dev/null"), Path::new("/tmp")] {
        assert_eq!(wipe(path).unwrap_err().kind(), Kind::InvalidArgument);
        for method in [Method::Discard, Method::ZeroOut, Method::Overwrite] {
            let error = erase(path, method, &Cancel::new(), &mut |_| {}).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
        }
    }
    fs::remove_file(link).unwrap();
    assert!(fs::read(file.path()).unwrap() == before);
}

/// A loop device with one partition that holds ext4.
#[cfg(feature = "loop")]
fn partitioned(file: &tempfile::NamedTempFile) -> Option<(crate::loopdev::LoopDevice, PathBuf)> {
    if fs::OpenOptions::new().write(true).open("/dev/loop-control").is_err() {
        println!("SKIPPED: /dev/loop-control cannot be opened");
        return None;
    }
    let device = crate::loopdev::Attach::new().scan_partitions().file(file.path()).unwrap();
    let mut disk = crate::gpt::Disk::create(device.path(), &"wiped".parse().unwrap()).unwrap();
    let partition = disk.add(&"a".parse().unwrap(), Bytes::mib(16), State::New).unwrap();
    let node = disk.node(partition.number).unwrap();
    made("mkfs.ext4", &node).then_some((device, node))
}

#[cfg(feature = "loop")]
#[test]
fn a_disk_is_wiped_with_its_partitions_and_not_while_one_is_held() {
    let file = image(32);
    let Some((device, node)) = partitioned(&file) else { return };
    let held = DiskFile::claim(&node).unwrap();
    let before = fs::read(file.path()).unwrap();
    assert_eq!(wipe(device.path()).unwrap_err().kind(), Kind::InUse);
    assert!(fs::read(file.path()).unwrap() == before, "a disk in use was changed");
    drop(held);
    let wiped = wipe(device.path()).unwrap();
    let kinds: Vec<_> = wiped.iter().map(|wiped| (&*wiped.device, &*wiped.signature.kind)).collect();
    assert!(kinds.contains(&(device.path(), "gpt")) && kinds.contains(&(&*node, "ext4")), "{kinds:?}");
    assert!(!node.exists());
    assert_eq!(wipe(device.path()).unwrap(), []);
    let again = crate::gpt::Disk::create(device.path(), &"wiped".parse().unwrap()).unwrap();
    assert_eq!(again.table().partitions(), []);
    drop(again);
    device.detach().unwrap();
}

#[cfg(feature = "loop")]
#[test]
fn zeroing_out_reaches_every_byte_and_discarding_is_done_or_refused() {
    let file = image(32);
    let Some((device, node)) = partitioned(&file) else { return };
    let middle = 8 << 20;
    let mut partition = DiskFile::open_to_write(&node).unwrap();
    crate::gpt::Medium::write_at(&mut partition, Bytes::new(middle), &[0xa5; 4096]).unwrap();
    drop(partition);
    erase(device.path(), Method::ZeroOut, &Cancel::new(), &mut |_| {}).unwrap();
    assert!(fs::read(file.path()).unwrap().iter().all(|byte| *byte == 0));
    if let Err(error) = erase(device.path(), Method::Discard, &Cancel::new(), &mut |_| {}) {
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    }
    device.detach().unwrap();
}
