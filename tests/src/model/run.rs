//! A whole run: rounds of calls under fire, an audit after each, and the end of everything.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::mount::MountTable;
use tonic::Code;

use super::audit::{Backing, audit};
use super::belief::{Op, Rules, TARGETS};
use super::call::Calls;
use super::caller::{Caller, World};
use crate::agent::Agent;
use crate::power_cut::Random;
use crate::tool;

/// Callers at once.
const CALLERS: u64 = 8;
/// Volumes that they fight over.
const VOLUMES: usize = 20;
/// Snapshots that they fight over.
const SNAPSHOTS: usize = 10;
/// Lines of the driver's log that are told with a fault.
const LOG: usize = 60;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The text of the classes, one of which is the default.
    pub classes: String,
    /// Where the volumes of the default class lie.
    pub backing: Backing,
    /// What sizes are multiples of.
    pub unit: Bytes,
    /// Whether volumes are copied, and snapshots cut.
    pub copies: bool,
    /// How volumes are used.
    pub uses: Uses,
    /// Operations in all.
    pub operations: u64,
    /// After so many an audit.
    pub round: u64,
}

/// How the volumes of a run are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Every second one with a filesystem, the others as block devices.
    Both,
    /// As block devices alone.
    Blocks,
    /// With filesystems alone.
    Filesystems,
}

/// Runs a plan and prints its figures.
///
/// # Errors
///
/// With every answer that cannot be true, and all that the audits found.
pub fn run(plan: &Plan) -> Result<()> {
    let seed = Random::seed();
    let agent = Agent::start(&plan.classes, &[])?;
    let mut scene = Scene { agent, plan };
    let result = scene.run(seed);
    if result.is_err() {
        let log = scene.agent.log();
        let lines: Vec<&str> = log.lines().collect();
        println!("the driver's log ends with:\n{}", lines[lines.len().saturating_sub(LOG)..].join("\n"));
    }
    result
}

struct Scene<'a> {
    agent: Agent,
    plan: &'a Plan,
}

impl Scene<'_> {
    fn run(&mut self, seed: u64) -> Result<()> {
        let Plan { unit, copies, .. } = *self.plan;
        let crowded = matches!(self.plan.backing, Backing::Disks(_));
        let rules = Rules { unit, too_much: Bytes::gib(64 << 10), copies, crowded };
        let world = World::new(rules, self.plan.uses, self.agent.directory(), VOLUMES, SNAPSHOTS);
        let mut random = Random::new(seed);
        let before = self.calls()?.capacity()?;
        let start = Instant::now();
        let mut left = self.plan.operations;
        while left > 0 {
            let of_round = left.min(self.plan.round);
            left -= of_round;
            world.left.store(of_round, Ordering::SeqCst);
            self.round(&world, &mut random)?;
            // A connection that a kill broke says so once more.
            audit(&world, &self.calls()?, &self.plan.backing).context("an audit between rounds")?;
        }
        // What a crash leaves half-made is removed by the next start, and nothing else is.
        self.agent.crash()?;
        let calls = self.calls()?;
        audit(&world, &calls, &self.plan.backing).context("the audit after a last crash")?;
        let volumes = calls.volumes()?.len();
        clear(&world, &calls)?;
        audit(&world, &calls, &self.plan.backing).context("the audit when all is gone")?;
        let slack = match self.plan.backing {
            // A filesystem keeps some blocks for the directories that were in it.
            Backing::Directory(_) => Bytes::mib(1),
            _ => Bytes::ZERO,
        };
        let is_back =
            |(was, is): (Bytes, Bytes)| was.saturating_sub(is) <= slack && is.saturating_sub(was) <= slack;
        let after = calls.capacity()?;
        ensure!(
            is_back((before.0, after.0)) && is_back((before.1, after.1)),
            "the room was {before:?}, and is {after:?}"
        );
        let (drivers, workers) = world.turmoil.kills();
        println!(
            "FIGURES: {} operations in {:.0} s, {drivers} drivers and {workers} workers killed, {} answers lost, {} \
             refused as busy, {volumes} volumes at the end",
            world.done.load(Ordering::SeqCst),
            start.elapsed().as_secs_f64(),
            world.lost.load(Ordering::SeqCst),
            world.refused.load(Ordering::SeqCst),
        );
        Ok(())
    }

    fn calls(&self) -> Result<Calls> {
        Calls::new(&self.agent.socket(), self.agent.directory(), &Arc::default())
    }

    /// Callers work and the driver dies until the operations of the round are used up.
    fn round(&mut self, world: &World, random: &mut Random) -> Result<()> {
        let socket = self.agent.socket();
        let callers: Vec<Caller<'_>> = (0..CALLERS)
            .map(|_| {
                let connect = || Calls::new(&socket, &world.directory, &world.turmoil.driver);
                let calls = [connect()?, connect()?];
                Ok(Caller { world, calls, random: Random::new(random.number()) })
            })
            .collect::<Result<_>>()?;
        let mut of_killer = Random::new(random.number());
        let stop = AtomicBool::new(false);
        let raged = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                let done = || world.done.load(Ordering::SeqCst);
                world.turmoil.rage(&mut self.agent, &mut of_killer, &stop, done)
            });
            let callers: Vec<_> =
                callers.into_iter().map(|mut caller| scope.spawn(move || caller.work())).collect();
            let panicked = callers.into_iter().map(|caller| caller.join()).filter(Result::is_err).count();
            stop.store(true, Ordering::SeqCst);
            (killer.join(), panicked)
        });
        let (killer, panicked) = raged;
        killer.map_err(|_| anyhow::anyhow!("the killer panicked"))??;
        ensure!(panicked == 0, "{panicked} callers panicked");
        let faults = world.faults.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        Ok(())
    }
}

/// Puts away and removes every volume and snapshot.
fn clear(world: &World, calls: &Calls) -> Result<()> {
    for slot in &world.volumes {
        for op in (0..TARGETS).map(Op::Unpublish).chain([Op::Unstage, Op::Delete]) {
            let answer = calls.perform(&slot.id, slot.mode, &op);
            ensure!(answer.code == Code::Ok, "{}: {op:?}: {answer:?}", slot.id);
        }
        slot.inner.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?.beliefs = vec![None];
    }
    for (id, cut) in &world.snapshots {
        calls.delete_snapshot(id)?;
        *cut.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))? = None;
    }
    Ok(())
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        // After a fault things are left; the runner tells of what this cannot take away.
        let _ = self.agent.stop();
        let base = self.agent.directory().to_owned();
        let mounts = |table: MountTable| -> Vec<PathBuf> {
            let places = table.iter().map(|mount| mount.mount_point.clone());
            places.filter(|place| place.starts_with(&base)).collect()
        };
        for place in MountTable::read().map(mounts).unwrap_or_default().iter().rev() {
            let _ = tool::run("umount", [place]);
        }
        let _ = tool::run("vgchange", ["--activate", "n"]);
        let _ = fs::remove_dir_all(base.join("pods"));
    }
}
