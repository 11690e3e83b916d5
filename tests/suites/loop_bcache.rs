//! bcache superblocks against bcache-tools, and what may be formatted.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bcache::{Blank, CacheMode, Kind, NewBacking, NewCache, Replacement, Superblock};
use devices::{Bytes, Sectors};
use rig::{Disk, skip_unless_installed, skip_unless_loop, tool};

fn skip() -> bool {
    skip_unless_loop() || skip_unless_installed(&["make-bcache", "bcache-super-show"])
}

/// The first 8 KiB of the file behind a disk: the zeroes before the superblock, and all of it.
fn head(disk: &Disk) -> Vec<u8> {
    tool::run("blockdev", ["--flushbufs", disk.path().to_str().unwrap()]).unwrap();
    let mut bytes = vec![0; 8192];
    File::open(disk.image()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn make_bcache(disk: &Disk, options: &str) -> Superblock {
    let words = options.split_whitespace().map(str::to_owned);
    tool::run("make-bcache", words.chain([disk.path().display().to_string()])).unwrap();
    Superblock::read(disk.path()).unwrap().unwrap()
}

/// What the tools print for a device whose superblock we wrote; they check its checksum.
fn shown(disk: &Disk) -> String {
    let text = tool::run("bcache-super-show", [disk.path()]).unwrap();
    assert!(text.contains("sb.csum\t\t\t") && text.matches("[match]").count() == 2, "{text}");
    text
}

#[test]
fn backing_devices_are_byte_for_byte_what_the_tools_make() {
    if skip() {
        return;
    }
    for sector in [512, 4096] {
        for (options, offset, mode) in [
            ("-B", 16, CacheMode::WriteThrough),
            ("-B --writeback", 16, CacheMode::WriteBack),
            ("-B --data-offset 2048", 2048, CacheMode::WriteThrough),
            ("-B --data-offset 24 --writeback", 24, CacheMode::WriteBack),
            ("-B --cset-uuid 11111111-2222-3333-4444-555555555555", 16, CacheMode::WriteThrough),
        ] {
            let make = || Disk::with_sector(Bytes::mib(16), Bytes::new(sector)).unwrap();
            let (theirs, ours) = (make(), make());
            let made = make_bcache(&theirs, options);
            let new = NewBacking::new().uuid(made.uuid).in_set(made.set.unwrap()).mode(mode);
            let written =
                new.data_offset(Sectors::new(offset)).format(Blank::claim(ours.path()).unwrap()).unwrap();
            assert_eq!(written, made, "{options} on sectors of {sector}");
            assert_eq!(head(&ours), head(&theirs), "{options} on sectors of {sector}");
        }
    }
}

#[test]
fn cache_devices_are_byte_for_byte_what_the_tools_make() {
    if skip() {
        return;
    }
    for (options, sector, block, bucket, replacement) in [
        ("-C", 512, 512, 512 << 10, Replacement::Lru),
        ("-C", 4096, 4096, 512 << 10, Replacement::Lru),
        ("-C --block 4k --bucket 4k", 512, 4096, 4 << 10, Replacement::Lru),
        ("-C --block 2k --bucket 8k --cache_replacement_policy=fifo", 512, 2048, 8 << 10, Replacement::Fifo),
        ("-C --bucket 1M --cache_replacement_policy=random", 512, 512, 1 << 20, Replacement::Random),
        ("-C --bucket 16M", 512, 512, 16 << 20, Replacement::Lru),
        ("-C --cset-uuid 11111111-2222-3333-4444-555555555555", 512, 512, 512 << 10, Replacement::Lru),
    ] {
        // An odd size: what does not fill a bucket is left over.
        let size = Bytes::new(700 * bucket + bucket.min(8192) / 2);
        let make = || Disk::with_sector(size, Bytes::new(sector)).unwrap();
        let (theirs, ours) = (make(), make());
        let made = make_bcache(&theirs, options);
        let new = NewCache::new().uuid(made.uuid).set(made.set.unwrap()).replacement(replacement);
        let new = new.block_size(Bytes::new(block)).bucket_size(Bytes::new(bucket));
        let written = new.format(Blank::claim(ours.path()).unwrap()).unwrap();
        assert_eq!(written, made, "{options} on sectors of {sector}");
        assert_eq!(head(&ours), head(&theirs), "{options} on sectors of {sector}");
        assert_eq!(written.cache().unwrap().buckets, 700);
    }
}

#[test]
fn the_tools_read_our_labels_and_everything_else() {
    if skip() {
        return;
    }
    let disk = Disk::new(Bytes::mib(16)).unwrap();
    let new = NewBacking::new().label("orders".parse().unwrap()).mode(CacheMode::WriteBack);
    let made = new.data_offset(Sectors::new(2048)).format(Blank::claim(disk.path()).unwrap()).unwrap();
    let text = shown(&disk);
    for line in [
        "dev.label\t\torders".to_owned(),
        format!("dev.uuid\t\t{}", made.uuid),
        format!("cset.uuid\t\t{}", made.set.unwrap()),
        "dev.data.first_sector\t2048".to_owned(),
        "dev.data.cache_mode\t1 [writeback]".to_owned(),
        "dev.data.cache_state\t0 [detached]".to_owned(),
    ] {
        assert!(text.contains(&line), "no {line:?} in {text}");
    }
    assert_eq!(Superblock::read(disk.path()).unwrap(), Some(made));
}

#[test]
fn libblkid_knows_a_backing_device_that_we_made() {
    if skip() {
        return;
    }
    let disk = Disk::new(Bytes::mib(16)).unwrap();
    let made = NewBacking::new().format(Blank::claim(disk.path()).unwrap()).unwrap();
    let said = tool::run("blkid", ["-p", "-o", "export", disk.path().to_str().unwrap()]).unwrap();
    assert!(said.contains("TYPE=bcache") && said.contains(&format!("UUID={}", made.uuid)), "{said}");
}

/// Bytes at one place of a disk, down to its file.
fn put(disk: &Disk, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(disk.path()).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_device_that_holds_anything_is_refused_and_not_touched() {
    if skip() {
        return;
    }
    let formats: [(&str, &[&str]); 5] = [
        ("mkfs.ext4", &["-q", "-F"]),
        ("mkfs.xfs", &["-q", "-f"]),
        ("mkfs.btrfs", &["-q", "-f"]),
        ("mkswap", &[]),
        ("pvcreate", &["-q", "-y", "--config", "global/activation=0 devices/use_devicesfile=0"]),
    ];
    for (program, options) in formats {
        let disk = Disk::new(Bytes::mib(320)).unwrap();
        let path = disk.path().to_str().unwrap();
        tool::run(program, options.iter().copied().chain([path])).unwrap();
        let before = head(&disk);
        let error = Blank::claim(disk.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::Foreign, "{program}: {error}");
        assert_eq!(head(&disk), before, "{program}");
    }
    // A backup of a GPT, a RAID superblock and the like lie in the last MiB only.
    for at in [0, 511, 5 * (1 << 20) - 1, 319 << 20, (320 << 20) - 1] {
        let disk = Disk::new(Bytes::mib(320)).unwrap();
        put(&disk, at, b"x");
        let error = Blank::claim(disk.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::Foreign);
        assert!(error.to_string().contains(&format!("at byte {at}")), "{error}");
    }
}

#[test]
fn a_bcache_device_is_never_formatted_again_whatever_the_caller_says() {
    if skip() {
        return;
    }
    let cache = Disk::new(Bytes::mib(300)).unwrap();
    let backing = Disk::new(Bytes::mib(16)).unwrap();
    let made = NewBacking::new().format(Blank::claim(backing.path()).unwrap()).unwrap();
    let _ = NewCache::new().bucket_size(Bytes::kib(64)).format(Blank::claim(cache.path()).unwrap()).unwrap();
    for disk in [&backing, &cache] {
        let before = head(disk);
        for error in [
            Blank::claim(disk.path()).unwrap_err(),
            Blank::claim_probed(disk.path(), |_| Ok(())).unwrap_err(),
        ] {
            assert_eq!(error.kind(), Kind::AlreadyExists);
            assert!(error.to_string().contains("never formatted again"), "{error}");
        }
        assert_eq!(head(disk), before);
    }
    // Neither is a damaged one: its data may well be there.
    put(&backing, 4096 + 72, b"damaged");
    for error in [
        Blank::claim(backing.path()).unwrap_err(),
        Blank::claim_probed(backing.path(), |_| Ok(())).unwrap_err(),
    ] {
        assert_eq!(error.kind(), Kind::Inconsistent, "{error}");
    }
    assert_eq!(Superblock::read(backing.path()).unwrap_err().kind(), Kind::Inconsistent);
    assert_eq!(made.backing().unwrap().data_offset, bcache::DEFAULT_DATA_OFFSET);
}

#[test]
fn a_probe_decides_about_old_space_and_old_content_does_not_show_through_the_cache() {
    if skip() {
        return;
    }
    let disk = Disk::new(Bytes::mib(64)).unwrap();
    // What an old bcache device left: a filesystem behind the data offset, its own superblock wiped.
    tool::run("mkfs.ext4", ["-q", "-F", "-E", "offset=8192", disk.path().to_str().unwrap(), "40M"]).unwrap();
    let reason = "it has an old filesystem";
    let error = Blank::claim_probed(disk.path(), |_| Err(reason.to_owned())).unwrap_err();
    assert_eq!((error.kind(), error.answer()), (Kind::Foreign, Some(reason)));
    let blank = Blank::claim_probed(disk.path(), |_| Ok(())).unwrap();
    let _ = NewBacking::new().format(blank).unwrap();
    let mut data = vec![0; 4 << 20];
    File::open(disk.path()).unwrap().read_exact_at(&mut data, 8192).unwrap();
    assert!(data.iter().all(|byte| *byte == 0), "the old filesystem would show on the cached device");
}

#[test]
fn a_claim_keeps_everyone_else_out_and_fails_while_others_hold_the_device() {
    if skip() {
        return;
    }
    let disk = Disk::new(Bytes::mib(64)).unwrap();
    let blank = Blank::claim(disk.path()).unwrap();
    assert_eq!(Blank::claim(disk.path()).unwrap_err().kind(), Kind::InUse);
    assert!(tool::run("mkfs.ext4", ["-q", disk.path().to_str().unwrap()]).is_err());
    drop(blank);
    rig::filesystem::format("ext4", disk.path()).unwrap();
    let mounted = rig::Mounted::new("ext4", disk.path()).unwrap();
    let error = Blank::claim_probed(disk.path(), |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), Kind::InUse);
    assert!(error.to_string().contains("unmount"), "{error}");
    mounted.unmount().unwrap();
}

#[test]
fn what_the_kernel_would_not_take_is_not_made() {
    if skip() {
        return;
    }
    let disk = Disk::with_sector(Bytes::mib(256), Bytes::new(4096)).unwrap();
    let claim = || Blank::claim(disk.path()).unwrap();
    // As small as the one of which make-bcache says that it is good, and that never appears.
    let error = NewCache::new().format(claim()).unwrap_err();
    assert_eq!(error.kind(), Kind::NoSpace);
    assert!(error.to_string().contains("has 512 buckets"), "{error}");
    for bucket in [0, 2048, 6144, 32 << 20] {
        let error = NewCache::new().bucket_size(Bytes::new(bucket)).format(claim()).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument, "{error}");
    }
    for block in [512, 3000, 8192] {
        let error = NewBacking::new().block_size(Bytes::new(block)).format(claim()).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument, "{error}");
    }
    for (offset, kind) in [(8, Kind::InvalidArgument), (17, Kind::InvalidArgument), (524_288, Kind::NoSpace)]
    {
        let error = NewBacking::new().data_offset(Sectors::new(offset)).format(claim()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(head(&disk), vec![0; 8192]);
    assert_eq!(Superblock::read(disk.path()).unwrap(), None);
    assert_eq!(Superblock::read(Path::new("/dev/null")).unwrap_err().kind(), Kind::InvalidArgument);
}
