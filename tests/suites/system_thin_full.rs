//! Metadata of a thin pool that are really full: what the kernel does, what the library says, and the way back.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use devices::{Bytes, Sectors};
use lvm::dm::{Dm, PoolMode, ThinPoolStatus, ThinPoolUse};
use lvm::ops::{Group, NewPool, NewThin, NewThinSnapshot, PoolSize};
use lvm::run::{ReturnCode, Runner, Scope};
use lvm::worker::table::{TableChange, TableStep};
use lvm::{Effect, Error, ExtentSize, Kind, Space};
use rig::ask::{at_least, lv};
use rig::fixture::{FaultyFixture, Fixture, fill};
use rig::{skip_unless_dm, skip_unless_installed, workers};

/// Numbers of thin devices far from those that LVM gives.
const FIRST: u32 = 100_000;

fn used(group: &Group) -> Result<ThinPoolUse> {
    let vg = group.look()?;
    let pool = vg.lv("pool").context("the pool")?;
    match Dm::open()?.pool_status(&vg.uuid, &pool.uuid)? {
        Some(ThinPoolStatus::Working(used)) => Ok(used),
        other => bail!("the pool is {other:?}"),
    }
}

/// Makes thin devices that LVM knows nothing of, each of which takes a block of the metadata; whether the pool took them.
fn take_blocks(group: &Group, numbers: std::ops::Range<u32>) -> Result<bool> {
    let create = |number| TableStep::Message {
        device: "v-pool-tpool".to_owned(),
        sector: Sectors::new(0),
        text: format!("create_thin {number}"),
    };
    let change = TableChange {
        scope: Scope::Alone,
        tried: "make thin devices".to_owned(),
        steps: numbers.map(create).collect(),
        deadline: workers::PATIENCE,
    };
    let reply = group.lvm().workers().context("no workers")?.change_tables(&change)?;
    Ok(reply.code == ReturnCode::Succeeded)
}

/// Whether the first MiBs of a volume hold what [`fill`] wrote.
fn holds(device: &Path, mib: u64) -> Result<bool> {
    let file = File::open(device)?;
    let mut block = vec![0; 1 << 20];
    for at in 0..mib {
        file.read_exact_at(&mut block, at << 20)
            .with_context(|| format!("{} at {at} MiB", device.display()))?;
        if block.iter().any(|byte| *byte != 0xa5) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A refusal for lack of metadata that says what to do and has changed nothing.
fn refused(group: &Group, act: impl FnOnce() -> Result<(), Error>) -> Result<()> {
    let before = group.look()?;
    let Err(error) = act() else { bail!("the full pool took it") };
    println!("{error}");
    ensure!((error.kind(), error.effect()) == (Kind::NoSpace(Space::Metadata), Effect::None), "{error:?}");
    ensure!(error.advice().is_some_and(|advice| advice.contains("extend")), "{error:?}");
    ensure!(group.look()?.seqno == before.seqno, "something was changed");
    Ok(())
}

/// The kernel keeps a tenth of the metadata in reserve, and stops before it touches that: nothing is damaged.
#[test]
fn a_pool_whose_metadata_are_full_refuses_what_is_new_until_they_have_grown() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check"]) {
        return Ok(());
    }
    // Of such extents the metadata are 2 MiB, and of the usual ones twice as many to fill.
    let extent = ExtentSize::new(Sectors::new(2048)).context("an extent size")?;
    let fixture = Fixture::on(&[Bytes::gib(1)], |new| new.extent_size(extent))?;
    let group = &fixture.group;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).metadata(Bytes::mib(2));
    let _ = group.create_pool(&pool)?;
    let thin = |name| NewThin::new(lv("pool"), lv(name), at_least(Bytes::mib(32)));
    let made = group.create_thin(&thin("t"))?.into_inner();
    ensure!(fill(&made.device, 8) == 8, "the new pool takes no writes");
    let mut next = FIRST;
    while take_blocks(group, next..next + 50)? {
        next += 50;
        ensure!(next < FIRST + 3_000, "they never filled");
    }
    let full = used(group)?;
    println!("FIGURES: metadata full with {} to {} devices: {full:?}", next - FIRST, next + 50 - FIRST);
    ensure!(
        full.mode == PoolMode::ReadOnly && !full.needs_check && full.metadata.percent() > 74.0,
        "{full:?}"
    );
    refused(group, || group.create_thin(&thin("u")).map(drop))?;
    refused(group, || group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("s"))).map(drop))?;
    // What has its block can be read and written; what needs one cannot.
    ensure!(holds(&made.device, 8)? && fill(&made.device, 32) == 8, "a full pool is to keep what it has");
    ensure!(group.extend_pool_metadata(&lv("pool"), Bytes::mib(16))?.is_made());
    let grown = used(group)?;
    ensure!(grown.mode == PoolMode::ReadWrite && !grown.needs_check, "{grown:?}");
    ensure!(group.create_thin(&thin("u"))?.is_made());
    ensure!(group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("s")))?.is_made());
    ensure!(fill(&made.device, 32) == 32, "the pool takes no writes again");
    // Activation checks the metadata.
    group.deactivate()?;
    group.activate()?;
    ensure!(holds(&made.device, 32)?, "acknowledged data are lost");
    ensure!(used(group)?.mode == PoolMode::ReadWrite);
    Ok(())
}

/// Metadata that cannot be written are thrown back to what was committed, and the kernel wants them checked: neither growing nor
/// activating the pool anew is enough then.
#[test]
fn a_pool_whose_metadata_could_not_be_written_is_refused_until_it_is_repaired() -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["thin_check", "thin_repair"]) {
        return Ok(());
    }
    let fixture = FaultyFixture::new(2, Bytes::mib(300))?;
    let group = &fixture.group;
    let pool = NewPool::new(lv("pool"), PoolSize::Data(at_least(Bytes::mib(64)))).metadata(Bytes::mib(2));
    let _ = group.create_pool(&pool)?;
    let thin = |name| NewThin::new(lv("pool"), lv(name), at_least(Bytes::mib(32)));
    let made = group.create_thin(&thin("t"))?.into_inner();
    ensure!(fill(&made.device, 8) == 8, "the new pool takes no writes");
    let seen = group.look()?;
    let below = |name: &str| Ok::<_, anyhow::Error>(seen.pvs_below(seen.lv(name).context("no part")?));
    let metadata = below("pool_tmeta")?;
    ensure!(metadata.len() == 1 && below("pool_tdata")? != metadata, "LVM put data and metadata on one disk");
    let at = seen.pvs.iter().position(|pv| metadata.contains(&pv.uuid)).context("the metadata's disk")?;
    let device = seen.pvs[at].device.as_ref().context("its device")?.path.clone();
    let disk = fixture.disks.iter().find(|disk| disk.path() == device).context("its fault")?;
    disk.fail_writes()?;
    let lost = fill(&made.device, 32);
    disk.recover()?;
    ensure!(lost < 32, "the pool acknowledged what it could not note down");
    let stopped = used(group)?;
    println!("FIGURES: {lost} MiB of 32 were acknowledged, then {stopped:?}");
    ensure!(stopped.mode == PoolMode::ReadOnly && stopped.needs_check, "{stopped:?}");
    needs_repair(group, || group.create_thin(&thin("u")).map(drop))?;
    needs_repair(group, || group.snapshot_thin(&NewThinSnapshot::new(lv("t"), lv("s"))).map(drop))?;
    // LVM would say that it had done so, and the kernel would not.
    needs_repair(group, || group.extend_pool_metadata(&lv("pool"), Bytes::mib(16)).map(drop))?;
    let larger = PoolSize::Data(at_least(Bytes::mib(128)));
    needs_repair(group, || group.extend_pool(&lv("pool"), larger, &[]).map(drop))?;
    ensure!(holds(&made.device, 8)?, "acknowledged data cannot be read");
    group.deactivate()?;
    group.repair_pool(&lv("pool"))?;
    group.activate()?;
    let repaired = used(group)?;
    ensure!(repaired.mode == PoolMode::ReadWrite && !repaired.needs_check, "{repaired:?}");
    // What came after the disk had failed is the kernel's: a flush that comes behind a commit that it made by itself, once a
    // second, and could not make is acknowledged, since that commit had taken the volume's mark of changes away.
    ensure!(holds(&made.device, 8)?, "acknowledged data are lost");
    ensure!(group.extend_pool_metadata(&lv("pool"), Bytes::mib(16))?.is_made());
    ensure!(group.create_thin(&thin("u"))?.is_made());
    ensure!(fill(&made.device, 32) == 32, "the pool takes no writes again");
    Ok(())
}

/// A refusal that says that the pool needs repair, and has changed nothing.
fn needs_repair(group: &Group, act: impl FnOnce() -> Result<(), Error>) -> Result<()> {
    let before = group.look()?;
    let Err(error) = act() else { bail!("the pool took it") };
    println!("{error}");
    ensure!((error.kind(), error.effect()) == (Kind::Inconsistent, Effect::None), "{error:?}");
    ensure!(error.advice().is_some_and(|advice| advice.contains("repair")), "{error:?}");
    ensure!(group.look()?.seqno == before.seqno, "something was changed");
    Ok(())
}
