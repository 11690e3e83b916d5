//! RAID volumes that grow on PVs full of holes: the real allocator keeps each leg on PVs of its own, or it is refused.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use anyhow::{Context, Result, ensure};
use devices::{Bytes, Sectors};
use lvm::metadata::Vg;
use lvm::ops::{Content, Group, Layout, NewVolume, OnRemove};
use lvm::{DevicePath, ExtentSize, Kind, Space};
use rig::ask::{at_least, lv};
use rig::fixture::Fixture;
use rig::{skip_unless_dm, skip_unless_installed};

const STRIPE: Bytes = Bytes::kib(64);

/// Small numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's multiplier for 64 bits; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn untouched(name: &str, mib: u64) -> NewVolume {
    NewVolume::new(lv(name), at_least(Bytes::mib(mib))).content(Content::Untouched)
}

/// Takes extents of each PV away, so that what is free on it lies in pieces of chance.
fn make_holes(group: &Group, paths: &[DevicePath], dice: &mut Dice) -> Result<()> {
    for (index, path) in paths.iter().enumerate() {
        let (filler, gap) = (format!("f{index}"), format!("g{index}"));
        if group.create_volume(&untouched(&gap, 1 + dice.roll(12)).on(path.clone())).is_err() {
            continue;
        }
        let filled = group.create_volume(&untouched(&filler, 2 + dice.roll(14)).on(path.clone()));
        ensure!(filled.is_ok() || filled.is_err_and(|error| matches!(error.kind(), Kind::NoSpace(_))));
        let _ = group.remove_volume(&lv(&gap), OnRemove::Keep)?;
    }
    Ok(())
}

fn apart(vg: &Vg) -> Result<()> {
    let shared = vg.pv_of_several_legs(vg.lv("x").context("no such volume")?);
    ensure!(shared.is_none(), "several legs are on PV {shared:?}: {:#?}", vg.lvs);
    Ok(())
}

/// Grows `x` until it is refused, and tells how often it grew and by how many extents.
fn grow(group: &Group, dice: &mut Dice) -> Result<(usize, u64)> {
    let extents = |vg: &Vg| vg.lv("x").map_or(0, |lv| lv.extents().get());
    let before = extents(&group.look()?);
    let mut grown = 0;
    loop {
        let seen = group.look()?;
        let has = extents(&seen);
        apart(&seen)?;
        match group.extend_volume(&lv("x"), at_least(Bytes::mib(has + 4 + dice.roll(30))), &[]) {
            Ok(_) => grown += 1,
            Err(error) => {
                ensure!(matches!(error.kind(), Kind::NoSpace(Space::Legs | Space::Data)), "{error:?}");
                ensure!(error.effect() == lvm::Effect::None, "{error:?}");
                ensure!(group.look()?.lvs == seen.lvs, "the refused extension changed something");
                return Ok((grown, has - before));
            }
        }
    }
}

/// Groups of chance with a volume of that layout that grows; as many as `GABION_SWEEP_ROUNDS` says, else `rounds`.
fn groups_of_chance(layout: Layout, rounds: u64) -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["dmsetup"]) {
        return Ok(());
    }
    let rounds = std::env::var("GABION_SWEEP_ROUNDS").map_or(Ok(rounds), |rounds| rounds.parse())?;
    let extent = ExtentSize::new(Sectors::new(2048)).context("an extent size")?;
    let (mut times, mut won) = (0, 0);
    for round in 0..rounds {
        let mut dice = Dice(round * 100 + u64::from(layout.legs()));
        let count = u64::from(layout.legs()) + 1 + dice.roll(2);
        let sizes: Vec<Bytes> = (0..count).map(|_| Bytes::mib(40 + dice.roll(40))).collect();
        let fixture = Fixture::on(&sizes, |new| new.extent_size(extent))?;
        let paths = (0..sizes.len()).map(|at| fixture.device(at)).collect::<Result<Vec<_>>>()?;
        let _ = fixture.group.create_volume(&untouched("x", 12).layout(layout))?;
        make_holes(&fixture.group, &paths, &mut dice)?;
        let grown = grow(&fixture.group, &mut dice).with_context(|| format!("round {round}, {layout:?}"));
        let (grown, extents) = grown?;
        times += grown;
        won += extents;
    }
    println!("FIGURES: {rounds} groups, {times} extensions by {won} extents in all, legs apart");
    ensure!(times > 0, "nothing ever grew");
    Ok(())
}

/// What continuous integration runs of this suite.
mod smoke {
    use super::*;

    #[test]
    fn the_legs_of_raid_10_stay_apart_when_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid10 { copies: 2, stripes: 2, stripe_size: STRIPE }, 1)
    }
}

/// By hand: as many groups as there is patience.
mod minutes_20 {
    use super::*;

    #[test]
    fn the_legs_of_raid_1_stay_apart_however_often_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid1 { copies: 2 }, 20)
    }

    #[test]
    fn the_legs_of_raid_4_stay_apart_however_often_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid4 { stripes: 2, stripe_size: STRIPE }, 20)
    }

    #[test]
    fn the_legs_of_raid_5_stay_apart_however_often_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid5 { stripes: 2, stripe_size: STRIPE }, 20)
    }

    #[test]
    fn the_legs_of_raid_6_stay_apart_however_often_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid6 { stripes: 3, stripe_size: STRIPE }, 20)
    }

    #[test]
    fn the_legs_of_raid_10_stay_apart_however_often_it_grows() -> Result<()> {
        groups_of_chance(Layout::Raid10 { copies: 2, stripes: 2, stripe_size: STRIPE }, 20)
    }
}
