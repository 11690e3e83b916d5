//! The native metadata reader against LVM's own word, for every layout that needs device-mapper to be made.

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use lvm::metadata::{LvFlag, Problem, RaidLevel, SegmentKind, Vg};
use lvm::ops::Layout;
use rig::crawl::Crawl;
use rig::{Disk, Sandbox, oracle, skip_unless_dm};

/// A group `v` on so many disks of the size given in MiB.
fn group(disks: usize, size: u64) -> Result<(Vec<Disk>, Sandbox)> {
    let disks = (0..disks).map(|_| Disk::new(Bytes::mib(size))).collect::<Result<Vec<_>>>()?;
    let sandbox = Sandbox::live(disks.iter().map(Disk::path))?;
    let devices: Vec<_> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    sandbox.run(&format!("vgcreate -s 1m v {}", devices.join(" ")))?;
    Ok((disks, sandbox))
}

fn view(sandbox: &Sandbox) -> Result<Vg> {
    sandbox.view().vg("v").cloned().context("group v is not there")
}

/// Reads as LVM reports it, after all of the commands. (Asking LVM takes as long as they do.)
fn agrees_after(sandbox: &Sandbox, commands: &[&str]) -> Result<()> {
    commands.iter().try_for_each(|command| sandbox.run(command).map(drop))?;
    oracle::agree(sandbox)
}

#[test]
fn raid_0_1_and_10_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(6, 128)?;
    let commands = [
        "lvcreate -y --type raid0 -i 2 -l 4 -n r0 v",
        "lvcreate -y --type raid0_meta -i 2 -I 32k -l 4 -n r0m v",
        "lvcreate -y --type raid1 -m 2 -l 4 -n r1 v",
        "lvcreate -y --type raid10 -i 2 -m 1 -l 4 -n r10 v",
    ];
    agrees_after(&sandbox, &commands)?;
    let vg = view(&sandbox)?;
    let level = |name: &str| vg.lv(name).and_then(|lv| lv.as_raid()).map(|raid| raid.level.clone());
    ensure!(level("r0m") == Some(RaidLevel::Raid0) && level("r1") == Some(RaidLevel::Raid1));
    let r1 = vg.lv("r1").context("r1")?;
    ensure!(vg.pvs_below(r1).len() == 3 && r1.as_raid().is_some_and(|raid| raid.legs.len() == 3));
    Ok(())
}

#[test]
fn raid_with_parity_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(5, 128)?;
    let commands = [
        "lvcreate -y --type raid4 -i 2 -l 4 -n r4 v",
        "lvcreate -y --type raid5_n -i 2 -l 4 -n r5n v",
        "lvcreate -y --type raid6 -i 3 -l 6 -R 512k -n r6 v",
        "lvcreate -y --type raid5 -i 3 -l 6 -n r5 v",
        "lvchange --minrecoveryrate 100 --maxrecoveryrate 2000 v/r5",
        "lvextend -l +6 v/r5",
    ];
    agrees_after(&sandbox, &commands)?;
    let vg = view(&sandbox)?;
    let level = |name: &str| vg.lv(name).and_then(|lv| lv.as_raid()).map(|raid| raid.level.clone());
    ensure!(matches!(level("r5n"), Some(RaidLevel::Raid5(variant)) if &*variant == "n"));
    Ok(())
}

#[test]
fn write_mostly_legs_conversions_and_splits_of_a_mirror_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (disks, sandbox) = group(3, 128)?;
    sandbox.run("lvcreate -y --type raid1 -m 1 -l 4 -n r v")?;
    let leg = view(&sandbox)?.pvs[0].device.clone().context("a device")?.path.display().to_string();
    agrees_after(
        &sandbox,
        &[
            &format!("lvchange --writemostly {leg}:y --writebehind 256 v/r"),
            "lvconvert -y -m 2 v/r",
            "lvconvert -y --splitmirrors 1 --trackchanges v/r",
            "lvconvert -y --merge v/r_rimage_2",
            "lvcreate -y --type mirror -m 1 --mirrorlog core -l 2 -n old v",
        ],
    )?;
    ensure!(view(&sandbox)?.lvs.iter().any(|lv| lv.has(&LvFlag::WriteMostly)));
    drop(disks);
    Ok(())
}

#[test]
fn thin_pools_volumes_and_snapshots_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(3, 256)?;
    let commands = [
        "lvcreate -y --type thin-pool -l 64 -c 128k --poolmetadatasize 4m -n pool v",
        "lvcreate -y -V 100m --thinpool pool -n a v",
        "lvcreate -y -s -n a-snap v/a",
        "lvcreate -y -s -n a-snap-snap v/a-snap",
        "lvcreate -y -V 1g --thinpool pool -n big --addtag gabion.dev/volume=x v",
        "lvremove -y v/a",
        "lvextend -l +20 v/pool",
        "lvextend --poolmetadatasize +2m v/pool",
        "lvchange --discards nopassdown v/pool",
        "lvchange -Z n v/pool",
        "lvchange --errorwhenfull y v/pool",
    ];
    agrees_after(&sandbox, &commands)?;
    let vg = view(&sandbox)?;
    let pool = vg.lv("pool").context("the pool")?;
    let ids: Vec<_> =
        vg.thins_of(&pool.name).filter_map(|lv| Some((lv.name.as_str(), lv.as_thin()?.device_id))).collect();
    ensure!(ids.iter().map(|(name, _)| *name).eq(["a-snap", "a-snap-snap", "big"]), "{ids:?}");
    let transaction = pool.as_thin_pool().map(|pool| pool.transaction_id);
    ensure!(transaction.is_some_and(|id| id >= 5), "{transaction:?}");
    ensure!(vg.pool_metadata_spare().is_some());
    Ok(())
}

#[test]
fn a_pool_on_raid_legs_and_a_clone_of_an_outside_volume_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(2, 256)?;
    let commands = [
        "lvcreate -y -an -l 8 -n ext v",
        "lvchange -pr v/ext",
        "lvcreate -y --type raid1 -m 1 -l 32 --nosync -n pool v",
        "lvcreate -y --type raid1 -m 1 -l 4 --nosync -n meta v",
        "lvconvert -y --type thin-pool --poolmetadata v/meta v/pool",
        "lvcreate -y -V 64m --thinpool pool -n on-raid v",
        "lvcreate -y -s --thinpool v/pool -n clone v/ext",
    ];
    agrees_after(&sandbox, &commands)?;
    let vg = view(&sandbox)?;
    let clone = vg.lv("clone").and_then(|lv| lv.as_thin()).and_then(|thin| thin.external_origin.as_ref());
    ensure!(clone.is_some_and(|origin| origin.as_str() == "ext"));
    ensure!(vg.pvs_below(vg.lv("on-raid").context("on-raid")?).len() == 2);
    Ok(())
}

#[test]
fn classic_snapshots_and_their_merge_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(2, 128)?;
    agrees_after(
        &sandbox,
        &[
            "lvcreate -y -l 16 -n o v",
            "lvcreate -y -s -l 4 -c 16k -n s1 v/o",
            "lvcreate -y -s -l 8 -n s2 v/o",
        ],
    )?;
    let vg = view(&sandbox)?;
    let origin = &vg.lv("o").context("the origin")?.name;
    let stores: Vec<_> = vg.snapshots_of(origin).map(|tie| tie.cow_store.as_str()).collect();
    ensure!(stores == ["s1", "s2"], "{stores:?}");
    ensure!(vg.visible_lvs().count() == 3);
    // The origin is open, so the merge waits for the next activation and stays visible in the text.
    let device = std::fs::File::open("/dev/mapper/v-o")?;
    sandbox.run("lvconvert --merge v/s1")?;
    ensure!(view(&sandbox)?.snapshots_of(origin).any(|tie| tie.merging));
    oracle::agree(&sandbox)?;
    drop(device);
    Ok(())
}

#[test]
fn cache_pools_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(3, 256)?;
    let commands = [
        "lvcreate -y -l 40 -n slow v",
        "lvcreate -y --type cache-pool -l 16 --poolmetadatasize 4m -c 64k -n cpool v",
        "lvconvert -y --type cache --cachepool v/cpool --cachemode writeback v/slow",
        "lvchange --cachesettings migration_threshold=4096 v/slow",
    ];
    agrees_after(&sandbox, &commands)?;
    sandbox.run("lvconvert -y --splitcache v/slow")?;
    oracle::agree(&sandbox)?;
    let vg = view(&sandbox)?;
    ensure!(matches!(vg.lv("cpool").and_then(|lv| lv.kind()), Some(SegmentKind::CachePool(_))));
    Ok(())
}

#[test]
fn volumes_as_caches_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(2, 256)?;
    let commands = [
        "lvcreate -y -l 40 -n slow2 v",
        "lvcreate -y -l 16 -n fast2 v",
        "lvconvert -y --type cache --cachevol v/fast2 v/slow2",
        "lvcreate -y -an -l 40 -n slow3 v",
        "lvcreate -y -an -l 16 -n fast3 v",
        "lvconvert -y --type writecache --cachevol v/fast3 --cachesettings high_watermark=60 v/slow3",
    ];
    agrees_after(&sandbox, &commands)?;
    let vg = view(&sandbox)?;
    let kind = |name: &str| vg.lv(name).and_then(|lv| lv.kind()).context("no segment");
    ensure!(matches!(kind("slow2")?, SegmentKind::Cache(cache) if cache.cache_vol.is_some()));
    ensure!(matches!(kind("slow3")?, SegmentKind::Writecache(_)));
    Ok(())
}

#[test]
fn raid_with_integrity_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, sandbox) = group(3, 256)?;
    agrees_after(
        &sandbox,
        &[
            "lvcreate -y --type raid1 -m 1 --raidintegrity y -l 16 -n safe v",
            "lvcreate -y --type raid1 -m 1 -l 16 -n later v",
        ],
    )?;
    let vg = view(&sandbox)?;
    let leg = vg.lv("safe_rimage_0").and_then(|lv| lv.kind()).context("the leg")?;
    let SegmentKind::Integrity(integrity) = leg else { bail!("{leg:?}") };
    ensure!(integrity.metadata.is_some() && integrity.mode.as_deref() == Some("J"));
    Ok(())
}

#[test]
fn a_move_under_way_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (disks, sandbox) = group(3, 256)?;
    let [from, to, _] = &disks[..] else { unreachable!() };
    sandbox.run(&format!("lvcreate -y -Wn -Zn -l 100 -n a v {}", from.path().display()))?;
    let crawl = Crawl::begin()?;
    // In the background the command returns as soon as the move has been committed.
    sandbox.run(&format!("pvmove -b -i 60 {} {}", from.path().display(), to.path().display()))?;
    let agreed = oracle::agree(&sandbox);
    let vg = view(&sandbox)?;
    drop(crawl);
    sandbox.run("pvmove --abort")?;
    agreed?;
    let mover = vg.lvs.iter().find(|lv| lv.has(&LvFlag::PvMove)).context("there is no volume that moves")?;
    ensure!(
        matches!(mover.kind(), Some(SegmentKind::Mirror(mirror)) if mirror.areas.len() == 2),
        "{mover:?}"
    );
    ensure!(vg.lv("a").is_some_and(|lv| lv.has(&LvFlag::Locked)));
    oracle::agree(&sandbox)
}

#[test]
fn a_raid_volume_on_a_missing_pv_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (mut disks, mut sandbox) = group(3, 128)?;
    sandbox.run("lvcreate -y --type raid1 -m 1 -l 8 -n r v")?;
    sandbox.run("lvchange -an v/r")?;
    disks[0].detach()?;
    sandbox.set_devices(disks[1..].iter().map(Disk::path))?;
    oracle::agree(&sandbox)?;
    let seen = sandbox.view();
    ensure!(matches!(&seen.problems[..], [Problem::MissingPv { .. }]), "{:?}", seen.problems);
    ensure!(seen.vgs[0].lv("r").is_some_and(|lv| seen.vgs[0].is_partial(lv)));
    sandbox.run("lvchange -ay --activationmode degraded v/r")?;
    sandbox.run("lvconvert -y --repair v/r")?;
    sandbox.run("vgreduce --removemissing v")?;
    let seen = sandbox.view();
    ensure!(seen.problems.is_empty() && seen.vgs[0].is_complete(), "{:?}", seen.problems);
    oracle::agree(&sandbox)
}

#[test]
fn a_suspended_device_is_told_and_not_opened() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(64))?;
    let sandbox = Sandbox::live([disk.path()])?;
    sandbox.run(&format!("vgcreate -s 1m v {}", disk.path().display()))?;
    sandbox.run("lvcreate -y -l 40 -n inner v")?;
    let inner = std::path::Path::new("/dev/mapper/v-inner");
    let dmsetup = |verb: &str| -> Result<()> {
        let status = std::process::Command::new("dmsetup").args([verb, "v-inner"]).status()?;
        ensure!(status.success(), "dmsetup {verb}: {status}");
        Ok(())
    };
    dmsetup("suspend")?;
    let view = lvm::metadata::read([inner], sandbox.reader_options());
    dmsetup("resume")?;
    let [Problem::Suspended { device }] = &view.problems[..] else { bail!("{:?}", view.problems) };
    ensure!(device == inner);
    ensure!(lvm::metadata::read([inner], sandbox.reader_options()).problems.is_empty());
    Ok(())
}

#[test]
fn the_largest_raid_volume_can_be_made_and_one_step_more_cannot_or_not_with_its_legs_apart() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let sizes = [130, 90, 70, 60, 50];
    let disks = sizes.iter().map(|size| Disk::new(Bytes::mib(*size))).collect::<Result<Vec<_>>>()?;
    let sandbox = Sandbox::live(disks.iter().map(Disk::path))?;
    let devices: Vec<_> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    sandbox.run(&format!("vgcreate -s 1m v {}", devices.join(" ")))?;
    // A hole in the first disk.
    sandbox.run(&format!("lvcreate -y -an -Zn -Wn -l 10 -n gap v {}", devices[0]))?;
    sandbox.run(&format!("lvcreate -y -an -Zn -Wn -l 7 -n stays v {}", devices[0]))?;
    sandbox.run("lvremove -y v/gap")?;
    let stripe_size = Bytes::kib(64);
    let layouts = [
        (Layout::Raid1 { copies: 2 }, "--type raid1 -m 1"),
        (Layout::Raid1 { copies: 3 }, "--type raid1 -m 2"),
        (Layout::Raid4 { stripes: 2, stripe_size }, "--type raid4 -i 2"),
        (Layout::Raid5 { stripes: 2, stripe_size }, "--type raid5 -i 2"),
        (Layout::Raid6 { stripes: 3, stripe_size }, "--type raid6 -i 3"),
        (Layout::Raid10 { copies: 2, stripes: 2, stripe_size }, "--type raid10 -m 1 -i 2"),
    ];
    let vg = view(&sandbox)?;
    let mut wrong = Vec::new();
    for (layout, words) in layouts {
        let largest = vg.largest(layout).get();
        let more = largest + u64::from(layout.data_stripes());
        let can = |extents: u64| legs_apart(&sandbox, words, extents);
        if !can(largest)? || can(more)? {
            wrong.push(format!("{words}: told {largest}, of which LVM makes it {}", can(largest)?));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Whether LVM would make such a RAID volume, and each of its legs on PVs of its own.
fn legs_apart(sandbox: &Sandbox, words: &str, extents: u64) -> Result<bool> {
    let line = format!("--test -vvvv -y {words} -l {extents} -n probe v");
    let output = sandbox.command("lvcreate").args(line.split_whitespace()).output()?;
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    // Such as: Allocating parallel area 1 on /dev/vdb start PE 0 length 59.
    let places = said.lines().filter_map(|line| line.split_once("Allocating parallel area "));
    let places = places.filter_map(|(_, rest)| {
        let mut words = rest.split(' ');
        Some((words.nth(1).and(words.next())?, rest.split(' ').next()?))
    });
    let mut legs = std::collections::HashMap::new();
    let apart = places.fold(true, |apart, (pv, leg)| *legs.entry(pv).or_insert(leg) == leg && apart);
    ensure!(!output.status.success() || legs.len() > 1, "LVM did not say where it puts the legs:\n{said}");
    Ok(output.status.success() && apart)
}
