//! A machine that is killed while it writes through bcache in write-back mode, and starts again.
//!
//! A kill loses nothing that the guest has sent to its disks, so this shows recovery: what of ours, the kernel's and udev's
//! brings a set back after any moment. That flushes and their order are right is shown by `fault_power_cut_bcache`.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bcache::{Backing, Bcache, CacheMode, Kind, Knob, Outcome, Percent, State, Superblock, Uuid, Writeback};
use rig::Ledger;
use rig::caching::{Clear, check, fill, format_backing, format_cache, skip_unless_bcache, stop_all};
use rig::power_cut::{Acknowledged, Blocks, Random, read_blocks};
use rig::{eventually, virtual_disks};

const AREA: u64 = 0;
const BLOCKS: usize = 2048;
/// How long adopting may take; emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The disk on SCSI, which can be pulled.
const SCSI: usize = 6;

/// Has everything registered, whoever is quicker, and waits for the cached device.
fn running(paths: &[&Path]) -> Result<(Backing, PathBuf)> {
    for adopted in Bcache::new().adopt(paths, PATIENCE) {
        match adopted.outcome {
            Outcome::Running { backing, device } => return Ok((backing, device)),
            Outcome::Cache(_) => {}
            other => bail!("{}: {other:?}", adopted.path.display()),
        }
    }
    bail!("no backing device")
}

/// Writes until the machine is killed, within three seconds.
fn write_until_killed(device: &Path, ledger: &mut Ledger, phase: u64) -> Result<()> {
    let mut random = Random::new(Random::seed() ^ phase);
    let mut blocks = Blocks::found_on(device, AREA, BLOCKS)?;
    let pause = Duration::from_millis(500 + random.below(2500));
    thread::spawn(move || {
        thread::sleep(pause);
        println!("\nRIG: cut power");
    });
    loop {
        let count = 1 + usize::try_from(random.below(8))?;
        let mark = blocks.write_some(&mut random, count)?;
        ledger.add(&mark)?;
    }
}

/// What is dirty is written back all the time, so that kills hit that, too.
fn write_back_at_once(backing: &Backing) -> Result<()> {
    backing.turn(&Knob::WritebackPercent(Percent::new(0).context("0 percent")?))?;
    Ok(backing.turn(&Knob::WritebackDelay(Duration::from_secs(1)))?)
}

fn kills(times: u64) -> Result<()> {
    if skip_unless_bcache() {
        return Ok(());
    }
    let disks = virtual_disks();
    let [cache, backing, ledger, ..] = &disks[..] else { bail!("three disks are needed") };
    let paths = [cache.as_path(), backing.as_path()];
    let phase: u64 = std::env::var("GABION_PHASE").context("no phase")?.parse()?;
    if phase == 0 {
        let made = format_cache(cache)?;
        format_backing(backing, &made, CacheMode::WriteBack)?;
    }
    let (running, device) = running(&paths)?;
    let status = running.status()?;
    ensure!(status.mode == CacheMode::WriteBack, "{status:?}");
    let (mut ledger, marks) = Ledger::open(ledger)?;
    let known = Acknowledged::of(&marks)?;
    known.check(AREA, &read_blocks(&device, BLOCKS)?).with_context(|| format!("after kill {phase}"))?;
    println!("\nafter kill {phase}: {} syncs are all there, {:?}", marks.len(), status.state);
    if phase < times {
        write_back_at_once(&running)?;
        return write_until_killed(&device, &mut ledger, phase);
    }
    ensure!(known.blocks(AREA) > BLOCKS / 4, "only {} blocks were written", known.blocks(AREA));
    println!(
        "FIGURES: {times} kills, {} syncs acknowledged on {} blocks, none lost",
        marks.len(),
        known.blocks(AREA)
    );
    let set = running.set()?.context("no cache set")?.uuid();
    stop_all(&[running.uuid()], set)
}

/// The cache device of a set, wherever it is now: a disk that comes back may have another name.
fn cache_on_scsi(set: Option<Uuid>) -> Option<PathBuf> {
    let names = fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.file_name());
    let scsi = names.filter(|name| name.to_string_lossy().starts_with("sd"));
    scsi.map(|name| Path::new("/dev").join(name)).find(|path| {
        let superblock = Superblock::read(path).ok().flatten();
        superblock.is_some_and(|superblock| superblock.cache().is_some() && superblock.set == set)
    })
}

mod minutes_20 {
    use super::*;

    #[test]
    fn what_was_acknowledged_is_there_after_each_of_ten_kills() -> Result<()> {
        kills(10)
    }
}

mod smoke {
    use super::*;

    #[test]
    fn a_dirty_device_whose_cache_disk_was_pulled_is_refused_and_comes_back_with_it() {
        if skip_unless_bcache() {
            return;
        }
        let _clear = Clear;
        let disks = virtual_disks();
        let (cache, backing) = (disks[SCSI].as_path(), disks[0].as_path());
        let made = format_cache(cache).unwrap();
        let uuid = format_backing(backing, &made, CacheMode::WriteBack).unwrap().uuid;
        let (found, device) = running(&[cache, backing]).unwrap();
        found.turn(&Knob::Writeback(Writeback::Paused)).unwrap();
        fill(&device, 1, 8).unwrap();
        stop_all(&[uuid], made.set.unwrap()).unwrap();
        println!("\nRIG: unplug {SCSI}");
        eventually("the disk is gone", PATIENCE, || !cache.exists());
        let adopted = Bcache::new().adopt(&[backing], Duration::from_secs(3)).remove(0);
        let Outcome::Waiting { backing: waiting, set, state } = adopted.outcome else {
            panic!("{adopted:?}")
        };
        assert_eq!((set, state, waiting.device().unwrap()), (made.set, State::Dirty, None));
        let error = waiting.run_without_cache().unwrap_err();
        assert_eq!(error.kind(), Kind::Dirty, "{error}");
        assert!(error.to_string().contains(&made.set.unwrap().to_string()), "{error}");
        assert_eq!(Bcache::new().retire(backing, uuid, &[backing]).unwrap_err().kind(), Kind::InUse);
        assert_eq!(waiting.device().unwrap(), None);
        println!("\nRIG: plug {SCSI}");
        eventually("the disk is back", PATIENCE, || cache_on_scsi(made.set).is_some());
        let cache = cache_on_scsi(made.set).unwrap();
        let (_, device) = running(&[&cache, backing]).unwrap();
        check(&device, 0, 1, 8).unwrap();
        stop_all(&[uuid], made.set.unwrap()).unwrap();
    }
}
