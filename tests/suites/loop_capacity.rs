//! What the library says still fits into a group, against what LVM can really make.

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::metadata::{Problem, Vg};
use lvm::ops::Layout;
use rig::{Disk, Sandbox, skip_unless_loop};

/// Small numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's multiplier for 64 bits; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn view(sandbox: &Sandbox) -> Result<Vg> {
    let view = sandbox.view();
    ensure!(view.problems.is_empty(), "{:?}", view.problems);
    view.vg("data").cloned().ok_or_else(|| anyhow::anyhow!("group data is not there"))
}

/// Whether LVM would make a volume of so many extents, without making it.
fn can_make(sandbox: &Sandbox, stripes: u32, extents: u64) -> bool {
    let line = format!("lvcreate --test -an -Zn -Wn -y -n probe -i {stripes} -l {extents} data");
    sandbox.run(&line).is_ok()
}

fn layout(stripes: u32) -> Layout {
    if stripes == 1 { Layout::Linear } else { Layout::Striped { stripes, stripe_size: Bytes::kib(64) } }
}

/// Says whether the largest volume can be made, and one that is a step larger cannot.
fn check(sandbox: &Sandbox, stripes: u32) -> Result<()> {
    let vg = view(sandbox)?;
    let largest = vg.largest(layout(stripes)).get();
    let free: Vec<_> = vg.pvs.iter().map(|pv| vg.usage().free_ranges(pv.uuid)).collect();
    ensure!(
        largest == 0 || can_make(sandbox, stripes, largest),
        "{stripes} x: {largest} of {free:?} is too much"
    );
    let more = largest + u64::from(stripes);
    ensure!(!can_make(sandbox, stripes, more), "{stripes} x: {largest} of {free:?} is too little");
    Ok(())
}

#[test]
fn the_largest_volume_can_be_made_and_one_extent_more_cannot() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let mut dice = Dice(7);
    for policy in ["normal", "contiguous", "cling"] {
        for round in 0..6 {
            let disks =
                (0..5).map(|_| Disk::new(Bytes::mib(8 + dice.roll(40)))).collect::<Result<Vec<_>>>()?;
            let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
            let devices: Vec<_> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
            sandbox.run(&format!("vgcreate -s 1m data {}", devices.join(" ")))?;
            // Holes: volumes here and there, every second of them removed again.
            for number in 0..round * 3 {
                let device = &devices[usize::try_from(dice.roll(5))?];
                let extents = 1 + dice.roll(5);
                // A disk may be full by now.
                let line = format!("lvcreate -an -Zn -Wn -y -n v{number} -l {extents} data {device}");
                let made = sandbox.run(&line).is_ok();
                if made && number % 2 == 1 {
                    sandbox.run(&format!("lvremove -y data/v{}", dice.roll(number + 1))).ok();
                }
            }
            if policy != "normal" {
                sandbox.run(&format!("vgchange --alloc {policy} data"))?;
            }
            for stripes in 1..=5 {
                check(&sandbox, stripes)?;
            }
        }
    }
    Ok(())
}

#[test]
fn two_disks_of_a_gibibyte_hold_what_is_said_and_not_two_gibibytes() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disks = [Disk::new(Bytes::gib(1))?, Disk::new(Bytes::gib(1))?];
    let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
    let devices: Vec<_> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    sandbox.run(&format!("vgcreate data {}", devices.join(" ")))?;
    let vg = view(&sandbox)?;
    let largest = vg.extent_size.span(vg.largest(Layout::Linear)).unwrap_or_default();
    ensure!(largest < Bytes::gib(2) && largest == Bytes::mib(2 * 1020), "{largest}");
    sandbox.fails(&format!("lvcreate -an -Zn -Wn -y -n a -L {}b data", Bytes::gib(2).get()))?;
    sandbox.fails(&format!("lvcreate -an -Zn -Wn -y -n a -L {}b data", largest.get() + 512))?;
    sandbox.run(&format!("lvcreate -an -Zn -Wn -y -n a -L {}b data", largest.get()))?;
    let vg = view(&sandbox)?;
    ensure!(vg.lvs.len() == 1 && vg.largest(Layout::Linear).get() == 0 && vg.free_extents().get() == 0);
    Ok(())
}

#[test]
fn a_group_that_lvm_would_not_change_has_no_room() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let mut disks = [Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(64))?];
    let mut sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
    let devices: Vec<_> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    sandbox.run(&format!("vgcreate data {}", devices.join(" ")))?;
    check(&sandbox, 2)?;
    for (spoil, mend) in [
        ("pvchange -x n DEVICE".to_owned(), "pvchange -x y DEVICE".to_owned()),
        ("vgchange -l 1 data".to_owned(), "vgchange -l 0 data".to_owned()),
        ("vgexport data".to_owned(), "vgimport data".to_owned()),
    ] {
        if spoil.contains("-l 1") {
            sandbox.run("lvcreate -an -Zn -Wn -y -n one -l 1 data")?;
        }
        sandbox.run(&spoil.replace("DEVICE", &devices[1]))?;
        check(&sandbox, 1)?;
        check(&sandbox, 2)?;
        ensure!(view(&sandbox)?.largest(layout(2)).get() == 0, "{spoil}");
        sandbox.run(&mend.replace("DEVICE", &devices[1]))?;
        ensure!(view(&sandbox)?.largest(layout(2)).get() > 0, "{mend}");
    }
    disks[1].detach()?;
    sandbox.set_devices([disks[0].path()])?;
    let view = sandbox.view();
    ensure!(view.vgs[0].largest(Layout::Linear).get() == 0 && !can_make(&sandbox, 1, 1));
    Ok(())
}

/// A group on disks with metadata areas of the sizes given, one volume, and a text of 480 KB.
fn nearly_full(sizes: [&str; 2]) -> Result<([Disk; 2], Sandbox)> {
    let disks = [Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(64))?];
    let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
    for (disk, size) in disks.iter().zip(sizes) {
        sandbox.run(&format!("pvcreate --metadatasize {size} {}", disk.path().display()))?;
    }
    sandbox.run(&format!("vgcreate data {} {}", disks[0].path().display(), disks[1].path().display()))?;
    sandbox.run("lvcreate -an -Zn -Wn -y -n a -l 1 data")?;
    // A command takes 64 words, and each tag here has 1,000 bytes.
    for round in 0..8 {
        let tags: String =
            (0..60).map(|number| format!(" --addtag {:x>1000}", round * 60 + number)).collect();
        sandbox.run(&format!("lvchange{tags} data/a"))?;
    }
    Ok((disks, sandbox))
}

#[test]
fn room_for_metadata_ends_where_lvm_says_so() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = nearly_full(["1020k", "1020k"])?;
    let room = || -> Result<_> {
        let room = view(&sandbox)?.metadata_room();
        room.ok_or_else(|| anyhow::anyhow!("there is no area"))
    };
    ensure!(room()?.max == Bytes::new((1_044_480 - 512) / 2 - 512));
    let mut fitted = 0;
    loop {
        let line = format!("lvchange --addtag {:y>1000} data/a", fitted);
        // What the text grows by: the tag with its quotes and comma, and a description of the command with that tag.
        let before = room()?.free();
        if sandbox.run(&line).is_err() {
            let lines = sandbox.fails(&line)?;
            ensure!(lines.contains("exceeds maximum metadata size"), "{lines}");
            ensure!(before < Bytes::new(1100), "{before} were left");
            break;
        }
        fitted += 1;
    }
    ensure!((20..40).contains(&fitted), "{fitted} tags of 1,000 bytes fitted");
    ensure!(sandbox.view().problems.is_empty());
    Ok(())
}

#[test]
fn of_unequal_metadata_areas_the_smallest_counts_since_lvm_goes_on_without_it() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (disks, sandbox) = nearly_full(["1020k", "8m"])?;
    let room = view(&sandbox)?.metadata_room().unwrap_or_else(|| unreachable!("two areas"));
    ensure!(room.max == Bytes::new((1_044_480 - 512) / 2 - 512));
    for number in 0..room.free().get() / 1000 + 2 {
        sandbox.run(&format!("lvchange --addtag {number:z>1000} data/a"))?;
    }
    let view = sandbox.view();
    let told = |problem: &Problem| matches!(problem, Problem::OutdatedCopy { device, .. } if device == disks[0].path());
    ensure!(view.problems.iter().any(told), "{:?}", view.problems);
    ensure!(view.vgs[0].lvs[0].tags.len() as u64 == 480 + room.free().get() / 1000 + 2);
    Ok(())
}

#[test]
fn the_number_of_further_volumes_is_about_right() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(512))?;
    let sandbox = Sandbox::metadata_only([disk.path()])?;
    sandbox.run(&format!("vgcreate -s 64k data {}", disk.path().display()))?;
    for number in 0..20 {
        let tags = format!("--addtag gabion --addtag gabion.dev/volume=pvc-{number:036}");
        sandbox.run(&format!("lvcreate -an -Zn -Wn -y -n pvc-{number:036} -l 1 {tags} data"))?;
    }
    let more = view(&sandbox)?.metadata_room().map_or(0, |room| room.more_volumes());
    // 1,376 volumes like these were counted in an area of this size until LVM refused the next.
    ensure!((1_000..1_400).contains(&more), "{more}");
    Ok(())
}
