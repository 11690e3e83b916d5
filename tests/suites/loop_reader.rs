//! The native metadata reader against LVM's own word, on loop devices and without device-mapper.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use devices::Bytes;
use lvm::Extents;
use lvm::metadata::{Defect, Lv, Problem, Reader};
use rig::{Disk, Sandbox, oracle, skip_unless_loop};

/// Disks of the sizes given in MiB, and an LVM that sees them.
fn disks(sizes: &[u64]) -> Result<(Vec<Disk>, Sandbox)> {
    let disks = sizes.iter().map(|size| Disk::new(Bytes::mib(*size))).collect::<Result<Vec<_>>>()?;
    let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
    Ok((disks, sandbox))
}

/// A group on all disks.
fn group(sandbox: &Sandbox, name: &str) -> Result<()> {
    let devices: Vec<_> = sandbox.devices().iter().map(|path| path.display().to_string()).collect();
    sandbox.run(&format!("vgcreate {name} {}", devices.join(" ")))?;
    Ok(())
}

/// Makes a volume without a live device: `words` say its size and layout.
fn volume(sandbox: &Sandbox, words: &str) -> Result<()> {
    sandbox.run(&format!("lvcreate -an -Zn -Wn -y {words}")).map(drop)
}

#[test]
fn an_empty_group_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[64, 64])?;
    group(&sandbox, "empty")?;
    oracle::agree(&sandbox)?;
    ensure!(sandbox.view().problems.is_empty());
    Ok(())
}

#[test]
fn linear_striped_and_scattered_volumes_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[128, 128, 64])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n linear -l 5 data")?;
    volume(&sandbox, "-n striped -i 3 -I 16k -l 9 data")?;
    volume(&sandbox, "-n gap -l 4 data")?;
    volume(&sandbox, "-n read-only -p r -l 2 data")?;
    sandbox.run("lvextend -l +4 data/linear")?;
    sandbox.run("lvextend -l +3 data/striped")?;
    sandbox.run("lvremove -y data/gap")?;
    sandbox.run("lvextend -l +30 data/linear")?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    let vg = view.vg("data").expect("the group");
    ensure!(vg.lv("linear").is_some_and(|lv| lv.segments.len() > 2), "the volume is in one piece");
    Ok(())
}

#[test]
fn names_with_dashes_tags_and_settings_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[128])?;
    sandbox.run(&format!(
        "vgcreate --setautoactivation n --addtag gabion -s 1m -l 50 -p 7 --alloc cling my--odd-vg {}",
        sandbox.devices()[0].display()
    ))?;
    let long = |end: char| format!("gabion.dev/volume={}{end}", "x".repeat(45));
    assert_eq!(long('0').len(), 64);
    let tags: String = ('0'..='7').map(|end| format!(" --addtag {}", long(end))).collect();
    volume(&sandbox, &format!("-n a-b--c -l 3{tags} my--odd-vg"))?;
    volume(&sandbox, "-n .x+Y_z -l 1 -r none --addtag a!b:c#d&e=f my--odd-vg")?;
    volume(&sandbox, "-n ahead -l 1 -r 512 --alloc contiguous --setautoactivation n -ky my--odd-vg")?;
    volume(&sandbox, "-n fixed -l 1 -M y --minor 77 my--odd-vg")?;
    sandbox.run(&format!("pvchange --addtag tray=3 {}", sandbox.devices()[0].display()))?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    let vg = view.vg("my--odd-vg").expect("the group");
    let lv = vg.lv("a-b--c").expect("the volume");
    ensure!(vg.dm_name(lv, None)? == "my----odd--vg-a--b----c");
    ensure!(lv.tags.len() == 8 && lv.tag_value("gabion.dev/volume=").is_some_and(|id| id.len() == 46));
    Ok(())
}

#[test]
fn two_metadata_copies_a_boot_loader_area_and_an_ignored_area_are_read() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = disks(&[128, 128, 64])?;
    let [first, second, third] = sandbox.devices() else { unreachable!() };
    sandbox.run(&format!("pvcreate --pvmetadatacopies 2 {}", first.display()))?;
    sandbox.run(&format!("pvcreate --bootloaderareasize 2m {}", second.display()))?;
    sandbox.run(&format!("pvcreate --pvmetadatacopies 0 {}", third.display()))?;
    oracle::agree(&sandbox)?;
    group(&sandbox, "copies")?;
    sandbox.run(&format!("pvchange --metadataignore y {}", second.display()))?;
    volume(&sandbox, "-n a -l 3 copies")?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    ensure!(
        matches!(&view.problems[..], [Problem::IgnoredArea { device, .. }] if device == second),
        "{:?}",
        view.problems
    );
    let areas: usize = view.vgs[0].pvs.iter().map(|pv| pv.device.as_ref().map_or(0, |d| d.areas.len())).sum();
    ensure!(areas == 3);
    // The copy at the end alone serves as well: the head of the first area is wiped.
    write_at(disks[0].path(), 4096, &[0; 512])?;
    let view = sandbox.view();
    ensure!(view.vg("copies").is_some_and(|vg| vg.lv("a").is_some() && vg.is_complete()));
    ensure!(view.problems.iter().any(|p| matches!(p, Problem::BadHeader { device, .. } if device == first)));
    Ok(())
}

#[test]
fn metadata_areas_of_one_and_of_sixteen_mebibytes_are_read_also_when_the_ring_wraps() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    for size in ["1m", "16m"] {
        let (_disks, sandbox) = disks(&[256])?;
        let device = sandbox.devices()[0].display().to_string();
        // LVM fills its area up to the next mebibyte, so 1m would become almost two.
        let asked = if size == "1m" { "1020k" } else { size };
        sandbox.run(&format!("pvcreate --metadatasize {asked} {device}"))?;
        group(&sandbox, "ring")?;
        // Long tags make the text long, so that few commits go round the ring.
        let tag = |n: u32| format!("t{n}-{}", "x".repeat(1000));
        let tags: String = (0..40).map(|n| format!(" --addtag {}", tag(n))).collect();
        volume(&sandbox, &format!("-n a -l 1{tags} ring"))?;
        let turns = if size == "1m" { 60 } else { 4 };
        let (mut over, mut wrapped, mut before) = (0, 0, 0);
        for turn in 0..turns {
            sandbox.run(&format!("lvchange --addtag turn{turn} ring/a"))?;
            let offset = text_offset(&sandbox.devices()[0])?;
            wrapped += u32::from(offset.0 < before);
            over += u32::from(offset.1);
            before = offset.0;
            if offset.1 || turn + 1 == turns {
                oracle::agree(&sandbox)?;
            }
        }
        ensure!(size != "1m" || (wrapped > 0 && over > 0), "{wrapped} rounds, {over} texts over the end");
        let view = sandbox.view();
        let area = &view.vgs[0].pvs[0].device.as_ref().expect("a device").areas[0];
        let exact = if size == "1m" { Bytes::kib(1020) } else { Bytes::kib(17 * 1024 - 4) };
        ensure!(area.size == exact, "{}", area.size);
    }
    Ok(())
}

/// Where the committed text begins in the first area, and whether it runs over the ring's end; read without the
/// library.
fn text_offset(device: &Path) -> Result<(u64, bool)> {
    let mut header = [0; 512];
    File::open(device)?.read_exact_at(&mut header, 4096)?;
    let number = |at: usize| header[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let (size, offset, length) = (number(32), number(40), number(48));
    Ok((offset, offset + length > size))
}

fn write_at(device: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let file = OpenOptions::new().write(true).open(device)?;
    file.write_all_at(bytes, at)?;
    Ok(file.sync_all()?)
}

fn read_at(device: &Path, at: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    File::open(device)?.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

#[test]
fn a_missing_pv_is_reported_and_so_is_one_that_came_back() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (mut disks, mut sandbox) = disks(&[128, 128])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -i 2 -l 4 data")?;
    let uuid = {
        let view = sandbox.view();
        let second =
            view.vgs[0].pvs.iter().find(|pv| pv.device.as_ref().is_some_and(|d| d.path == disks[1].path()));
        second.expect("the second PV").uuid
    };
    disks[1].detach()?;
    sandbox.set_devices([disks[0].path()])?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    ensure!(
        matches!(&view.problems[..], [Problem::MissingPv { pv, .. }] if *pv == uuid),
        "{:?}",
        view.problems
    );
    ensure!(view.vgs[0].lv("a").is_some_and(|lv| view.vgs[0].is_partial(lv)));

    // LVM refuses the reduction, but writes down that the PV is missing.
    sandbox.fails("vgreduce --removemissing data")?;
    disks[1].reattach()?;
    sandbox.set_devices(disks.iter().map(Disk::path))?;
    let view = sandbox.view();
    let flagged = |problem: &Problem| matches!(problem, Problem::FlaggedMissing { pv, .. } if *pv == uuid);
    ensure!(view.problems.iter().any(flagged), "{:?}", view.problems);
    let outdated = |problem: &Problem| matches!(problem, Problem::OutdatedCopy { .. });
    ensure!(view.problems.iter().any(outdated), "{:?}", view.problems);
    let lines = oracle::backup_differences(&sandbox, &view.vgs[0])?;
    ensure!(lines.is_empty(), "{lines:?}");

    sandbox.run(&format!("vgextend --restoremissing data {}", disks[1].path().display()))?;
    let view = sandbox.view();
    ensure!(view.problems.is_empty(), "{:?}", view.problems);
    ensure!(view.vgs[0].is_complete());
    oracle::agree(&sandbox)
}

#[test]
fn a_copied_disk_is_a_duplicate_and_the_device_with_the_newest_metadata_is_used() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, mut sandbox) = disks(&[128])?;
    group(&sandbox, "data")?;
    let copy = disks[0].copy()?;
    volume(&sandbox, "-n a -l 3 data")?;
    sandbox.set_devices([copy.path(), disks[0].path()])?;
    let view = sandbox.view();
    let [Problem::DuplicatePv { used, other, .. }] = &view.problems[..] else { bail!("{:?}", view.problems) };
    ensure!(used == disks[0].path() && other == copy.path());
    ensure!(view.vgs.len() == 1 && view.vgs[0].lv("a").is_some());
    ensure!(sandbox.run("pvs --all")?.lines().count() > 0);
    Ok(())
}

#[test]
fn disks_with_sectors_of_four_kibibytes_are_read() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let sector = Bytes::kib(4);
    let disk = Disk::with_sector(Bytes::mib(128), sector)?;
    let sandbox = Sandbox::metadata_only([disk.path()])?;
    sandbox.run(&format!("pvcreate --pvmetadatacopies 2 {}", disk.path().display()))?;
    group(&sandbox, "big-sectors")?;
    volume(&sandbox, "-n a -l 3 big-sectors")?;
    oracle::agree(&sandbox)?;
    ensure!(sandbox.view().problems.is_empty());
    Ok(())
}

#[test]
fn two_groups_of_one_name_are_both_seen_and_told_apart_by_uuid() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, mut sandbox) = disks(&[128, 128])?;
    for (disk, extents) in disks.iter().zip([3, 5]) {
        sandbox.set_devices([disk.path()])?;
        group(&sandbox, "dup")?;
        volume(&sandbox, &format!("-n thin-data -l {extents} dup"))?;
    }
    sandbox.set_devices(disks.iter().map(Disk::path))?;
    let view = sandbox.view();
    ensure!(view.vg("dup").is_none(), "a name that two groups have names neither");
    let sizes: Vec<_> = view.vgs_named("dup").filter_map(|vg| vg.lv("thin-data")).map(Lv::extents).collect();
    ensure!(sizes.len() == 2 && sizes.contains(&Extents::new(3)) && sizes.contains(&Extents::new(5)));
    ensure!(matches!(&view.problems[..], [Problem::SameName { vgs, .. }] if vgs.len() == 2));
    let lines = oracle::report_differences(&sandbox, &view)?;
    ensure!(lines.is_empty(), "{lines:?}");
    Ok(())
}

#[test]
fn damaged_labels_headers_and_texts_are_told_and_the_good_copies_used() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = disks(&[128, 128])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -l 3 data")?;
    let device = disks[0].path();
    let start = 4096 + text_offset(device)?.0;
    // A byte of the text, one of the header, a torn header (half of it zeroes), and one of the label.
    let flips: [(u64, usize, &str); 4] =
        [(start + 30, 1, "text"), (4096 + 45, 1, "header"), (4352, 256, "torn"), (700, 1, "label")];
    for (at, length, what) in flips {
        let before = read_at(device, at, length)?;
        let damaged: Vec<u8> = before.iter().map(|byte| byte ^ 0x55).collect();
        write_at(device, at, &damaged)?;
        let view = sandbox.view();
        let told = view.problems.iter().any(|problem| match problem {
            Problem::BadText { device: told, reason: Defect::Checksum { .. }, .. } => {
                what == "text" && told == device
            }
            Problem::BadHeader { device: told, reason: Defect::Checksum { .. }, .. } => {
                matches!(what, "header" | "torn") && told == device
            }
            Problem::BadLabel { device: told, reason: Defect::Checksum { .. } } => {
                what == "label" && told == device
            }
            _ => false,
        });
        ensure!(told, "{what}: {:?}", view.problems);
        let vg = view.vg("data").expect("the group");
        ensure!(vg.lv("a").is_some());
        ensure!(vg.is_complete() == (what != "label"), "{what}");
        write_at(device, at, &before)?;
        ensure!(sandbox.view().problems.is_empty(), "{what}");
    }
    Ok(())
}

/// Rewrites the committed text on a device as LVM would commit it: with all checksums right.
fn recommit(device: &Path, change: impl Fn(&str) -> String) -> Result<()> {
    const AREA: u64 = 4096;
    let (offset, _) = text_offset(device)?;
    let mut header = read_at(device, AREA, 512)?;
    let size = u64::from_le_bytes(header[48..56].try_into()?);
    let text = String::from_utf8(read_at(device, AREA + offset, usize::try_from(size)?)?)?;
    let changed = change(&text);
    ensure!(changed != text && changed.len() == text.len(), "the text has to change and to keep its length");
    write_at(device, AREA + offset, changed.as_bytes())?;
    header[56..60].copy_from_slice(&lvm::metadata::checksum(changed.as_bytes()).to_le_bytes());
    let sum = lvm::metadata::checksum(&header[4..]);
    header[..4].copy_from_slice(&sum.to_le_bytes());
    write_at(device, AREA, &header)
}

#[test]
fn a_newest_text_that_cannot_be_understood_is_told_and_the_one_before_it_is_used() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = disks(&[128, 128])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -l 3 data")?;
    let device = disks[1].path();
    let number = sandbox.view().vgs[0].seqno;
    let next = |text: &str| text.replace(&format!("seqno = {number}"), &format!("seqno = {}", number + 1));
    recommit(device, |text| next(text).replace("extent_size", "extent_sizx"))?;
    let reader = Reader::new(disks.iter().map(Disk::path), sandbox.reader_options());
    let view = reader.read();
    let [Problem::BadText { device: told, reason: Defect::Meaning { .. }, .. }] = &view.problems[..] else {
        bail!("{:?}", view.problems)
    };
    ensure!(told == device && view.vgs[0].seqno == number && view.vgs[0].is_complete());
    // Once it can be understood it is the newest, and the other copy is old.
    recommit(device, |text| text.replace("extent_sizx", "extent_size"))?;
    let view = reader.read();
    ensure!(
        matches!(&view.problems[..], [Problem::OutdatedCopy { device, .. }] if device == disks[0].path()),
        "{:?}",
        view.problems
    );
    ensure!(view.vgs[0].seqno == number + 1 && view.vgs[0].lv("a").is_some());
    Ok(())
}

#[test]
fn a_newer_text_on_a_disk_that_it_does_not_name_is_no_word_about_the_group() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, mut sandbox) = disks(&[128, 128])?;
    let (own, foreign) = (disks[0].path().to_owned(), disks[1].path().to_owned());
    sandbox.run(&format!("pvcreate {}", foreign.display()))?;
    sandbox.set_devices([&own])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -l 3 data")?;
    let number = sandbox.view().vgs[0].seqno;
    // The area, as LVM makes it by default.
    const AREA: u64 = 4096;
    write_at(&foreign, AREA, &read_at(&own, AREA, 1020 << 10)?)?;
    recommit(&foreign, |text| {
        text.replace(&format!("seqno = {number}"), &format!("seqno = {}", number + 1))
    })?;
    for order in [[&foreign, &own], [&own, &foreign]] {
        let view = Reader::new(order, sandbox.reader_options()).read();
        let [Problem::BadText { device, reason: Defect::Meaning { .. }, .. }] = &view.problems[..] else {
            bail!("{:?}", view.problems)
        };
        ensure!(*device == foreign && view.vgs.len() == 1 && view.vgs[0].seqno == number);
        ensure!(view.orphans.len() == 1 && view.orphans[0].device.path == foreign);
    }
    Ok(())
}

#[test]
fn a_group_that_did_not_change_is_shared_by_the_views_before_and_after() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, mut sandbox) = disks(&[128, 128])?;
    for (disk, name) in disks.iter().zip(["one", "two"]) {
        sandbox.set_devices([disk.path()])?;
        group(&sandbox, name)?;
    }
    let reader = Reader::new(disks.iter().map(Disk::path), sandbox.reader_options());
    let before = reader.read();
    volume(&sandbox, "-n a -l 3 two")?;
    let after = reader.read();
    ensure!(Arc::ptr_eq(&before.vgs[0], &after.vgs[0]), "group one was decoded or copied again");
    ensure!(before.vgs[1].lvs.is_empty() && after.vgs[1].lvs.len() == 1);
    Ok(())
}

#[test]
fn a_disk_that_grew_is_told_and_its_pv_keeps_its_size_until_it_is_resized() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (mut disks, sandbox) = disks(&[200])?;
    group(&sandbox, "data")?;
    disks[0].grow(Bytes::mib(400))?;
    let view = sandbox.view();
    let [Problem::DeviceGrew { recorded, actual, .. }] = &view.problems[..] else {
        bail!("{:?}", view.problems)
    };
    ensure!((*recorded, *actual) == (Bytes::mib(200), Bytes::mib(400)));
    oracle::agree(&sandbox)?;
    sandbox.run(&format!("pvresize {}", disks[0].path().display()))?;
    ensure!(sandbox.view().problems.is_empty());
    oracle::agree(&sandbox)
}

#[test]
fn pvs_without_a_group_are_orphans_and_a_used_one_without_its_group_is_told() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, mut sandbox) = disks(&[64, 64, 64])?;
    let device = |index: usize| disks[index].path().display().to_string();
    sandbox.run(&format!("pvcreate {}", device(0)))?;
    sandbox.run(&format!("pvcreate --pvmetadatacopies 0 {}", device(1)))?;
    sandbox.run(&format!("vgcreate data {} {}", device(1), device(2)))?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    ensure!(view.orphans.len() == 1 && !view.orphans[0].in_use_elsewhere && view.problems.is_empty());

    sandbox.set_devices([disks[0].path(), disks[1].path()])?;
    let view = sandbox.view();
    ensure!(view.orphans.iter().filter(|orphan| orphan.in_use_elsewhere).count() == 1);
    ensure!(
        matches!(&view.problems[..], [Problem::GroupNotFound { device, .. }] if device == disks[1].path())
    );

    sandbox.set_devices(disks.iter().map(Disk::path))?;
    sandbox.run("vgremove data")?;
    let view = sandbox.view();
    ensure!(view.vgs.is_empty() && view.orphans.len() == 3 && view.problems.is_empty());
    oracle::agree(&sandbox)?;
    sandbox.run(&format!("pvremove {} {} {}", device(0), device(1), device(2)))?;
    ensure!(sandbox.view().orphans.is_empty());
    Ok(())
}

#[test]
fn exported_foreign_and_changed_groups_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[64, 64])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -l 3 data")?;
    sandbox.run(&format!("pvchange -x n {}", sandbox.devices()[1].display()))?;
    sandbox.run("vgchange --vgmetadatacopies 1 data")?;
    sandbox.run("vgchange -l 9 data")?;
    oracle::agree(&sandbox)?;
    sandbox.run("vgchange -x n data")?;
    oracle::agree(&sandbox)?;
    sandbox.run("vgexport data")?;
    oracle::agree(&sandbox)?;
    ensure!(sandbox.view().vgs[0].has(&lvm::metadata::VgFlag::Exported));
    sandbox.run("vgimport data")?;
    sandbox.run("vgrename data other-name")?;
    oracle::agree(&sandbox)
}

#[test]
fn an_unchanged_set_costs_one_small_read_a_device_and_a_change_is_seen() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = disks(&[128, 128])?;
    group(&sandbox, "data")?;
    for number in 0..20 {
        volume(&sandbox, &format!("-n a{number} -l 1 data"))?;
    }
    let reader = Reader::new(sandbox.devices().iter().cloned(), sandbox.reader_options());
    let first = reader.read();
    let before = reader.cost();
    ensure!(before.texts == 1, "the two copies of one text were parsed {} times", before.texts);
    let second = reader.read();
    let after = reader.cost();
    ensure!(Arc::ptr_eq(&first, &second));
    ensure!(
        (after.reads - before.reads, after.bytes - before.bytes, after.texts - before.texts)
            == (2, 16_384, 0)
    );

    volume(&sandbox, "-n b -l 1 data")?;
    let third = reader.read();
    ensure!(third.vgs[0].lv("b").is_some() && third.vgs[0].seqno == first.vgs[0].seqno + 1);

    // The same disk behind another path or a fewer disks is another view.
    reader.set_devices([disks[0].path()]);
    ensure!(matches!(&reader.read().problems[..], [Problem::MissingPv { .. }]));
    Ok(())
}

#[test]
fn a_device_that_is_not_there_is_told_and_the_others_are_read() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[64])?;
    group(&sandbox, "data")?;
    let gone = Path::new("/dev/gabion-no-such-disk");
    let view = lvm::metadata::read([gone, &sandbox.devices()[0]], sandbox.reader_options());
    let [Problem::Unreadable { device, error }] = &view.problems[..] else { bail!("{:?}", view.problems) };
    ensure!(device == gone && error.kind() == lvm::Kind::NotFound);
    ensure!(view.vg("data").is_some());
    Ok(())
}

#[test]
fn a_text_that_stays_wrong_is_read_once_more_under_the_lock_of_its_group() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = disks(&[64])?;
    group(&sandbox, "data")?;
    let device = disks[0].path().to_owned();
    let at = 4096 + text_offset(&device)?.0 + 30;
    let good = read_at(&device, at, 1)?;
    write_at(&device, at, &[good[0] ^ 1])?;
    // As an LVM command in the middle of a commit would: it holds the lock, and gives it back with good metadata.
    let lock = File::create(sandbox.locking_dir().join("V_data"))?;
    lock.lock()?;
    let options = sandbox.reader_options();
    let started = Instant::now();
    let reading = std::thread::spawn({
        let device = device.clone();
        move || lvm::metadata::read([device], options)
    });
    std::thread::sleep(Duration::from_millis(400));
    write_at(&device, at, &good)?;
    lock.unlock()?;
    let view = reading.join().expect("the reading thread");
    ensure!(view.problems.is_empty() && view.vg("data").is_some(), "{:?}", view.problems);
    ensure!(started.elapsed() >= Duration::from_millis(400), "it did not wait for the lock");
    Ok(())
}

#[test]
fn reading_beside_a_busy_writer_never_shows_a_broken_group() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[128, 128, 128])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n a -l 1 data")?;
    let reader = Reader::new(sandbox.devices().iter().cloned(), sandbox.reader_options());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| -> Result<()> {
            let result = (0..25)
                .try_for_each(|turn| sandbox.run(&format!("lvchange --addtag t{turn} data/a")).map(drop));
            done.store(true, Ordering::Relaxed);
            result
        });
        let (mut seqno, mut views) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            let view = reader.read();
            let vg = view.vg("data").expect("the group");
            ensure!(vg.seqno >= seqno && vg.is_complete() && vg.lvs.len() == 1);
            ensure!(view.problems.is_empty(), "{:?}", view.problems);
            seqno = vg.seqno;
            views += 1;
        }
        ensure!(views > 25, "{views} views only");
        writer.join().expect("the writing thread")
    })?;
    oracle::agree(&sandbox)
}
