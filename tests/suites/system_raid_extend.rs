//! RAID volumes that grow where a PV is full: each leg stays on PVs of its own, or it is refused.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::metadata::Vg;
use lvm::ops::{Content, Group, Layout, NewGroup, NewPool, NewVolume, PoolSize, SizeRange};
use lvm::{DevicePath, Kind, LvName, Space, VgName};
use rig::{Disk, Handle, device_paths, skip_unless_dm, skip_unless_installed};

fn lv(name: &str) -> LvName {
    LvName::new(name).unwrap()
}

fn mib(size: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(size))
}

fn filler(name: &str, size: u64, on: &DevicePath) -> NewVolume {
    NewVolume::new(lv(name), mib(size)).content(Content::Untouched).on(on.clone())
}

fn apart(vg: &Vg, name: &str) -> Result<()> {
    let lv = vg.lv(name).context("no such volume")?;
    let shared = vg.pv_of_several_legs(lv);
    ensure!(shared.is_none(), "several legs of {name} are on PV {shared:?}: {:#?}", vg.lvs);
    Ok(())
}

#[test]
fn a_leg_whose_pv_is_full_goes_on_where_no_other_leg_is_or_is_refused() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["dmsetup", "thin_check"]) {
        return Ok(());
    }
    let disks = (0..3).map(|_| Disk::new(Bytes::mib(128))).collect::<Result<Vec<_>>>()?;
    let all: Vec<&Disk> = disks.iter().collect();
    let handle = Handle::active(&all)?;
    let paths = device_paths(&all)?;
    let two = NewGroup::new(VgName::new("v")?, paths[..2].to_vec());
    let group = handle.lvm.create_group(&two)?.into_inner();
    let checked = full_pv(&group, &paths);
    group.deactivate()?;
    checked
}

fn full_pv(group: &Group, paths: &[DevicePath]) -> Result<()> {
    let raid1 = Layout::Raid1 { copies: 2 };
    let pool = NewPool::new(lv("pool"), PoolSize::Data(mib(16))).layout(raid1);
    let _ = group.create_pool(&pool)?;
    let _ =
        group.create_volume(&NewVolume::new(lv("x"), mib(8)).layout(raid1).content(Content::Untouched))?;
    // The first PV is full; the second one has room, and LVM alone would let both legs grow on it.
    let free = group.look()?.free_on(group.look()?.pvs[0].uuid).get();
    let _ = group.create_volume(&filler("f", free * 4, &paths[0]))?;
    let refused = |result: lvm::Error| ensure_kind(&result, Kind::NoSpace(Space::Legs));
    refused(group.extend_volume(&lv("x"), mib(12), &[]).unwrap_err())?;
    refused(group.extend_pool(&lv("pool"), PoolSize::Data(mib(20)), &[]).unwrap_err())?;
    refused(group.extend_pool_metadata(&lv("pool"), Bytes::mib(8)).unwrap_err())?;
    let _ = group.extend(&paths[2..], lvm::ops::OldContent::Refuse)?;
    let _ = group.extend_volume(&lv("x"), mib(24), &[])?;
    let _ = group.extend_pool(&lv("pool"), PoolSize::Data(mib(32)), &[])?;
    let _ = group.extend_pool_metadata(&lv("pool"), Bytes::mib(8))?;
    let vg = group.look()?;
    for name in ["x", "pool_tdata", "pool_tmeta"] {
        apart(&vg, name)?;
    }
    ensure!(
        vg.lv("x").context("x")?.extents().get() == 6 && vg.lv("pool").context("pool")?.extents().get() == 8
    );
    Ok(())
}

fn ensure_kind(error: &lvm::Error, kind: Kind) -> Result<()> {
    ensure!((error.kind(), error.effect()) == (kind, lvm::Effect::None), "{error:?}");
    Ok(())
}
