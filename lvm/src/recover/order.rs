//! The order in which a group is brought back. Each step can be repeated, and a recovery that is killed is begun anew.
//!
//! Tried by killing commands at each of their kernel calls: an inactive table of a killed command was never committed,
//! so it must go before anything is resumed, and no command may run before that.

use std::any::Any;
use std::collections::BTreeSet;

use super::compare::{Difference, compare, compare_volumes};
use super::graph::{
    active_tops, next_unfinished, pending_devices, pool_device, stopped_pools_with_pending_devices,
    stray_spare, suspended_from_below,
};
use super::grown::pools_over_grown_metadata;
use super::live::LiveDevice;
use super::report::{Recovered, Step};
use crate::metadata::{Lv, Vg};
use crate::worker::table::TableLine;
use crate::{Effect, Error, Kind, LvName, Tag, Uuid, VgName};

/// How often tables are loaded anew before the rest is left to a person.
const ROUNDS: usize = 3;
/// Rounds of removing devices; each takes the topmost of those that stand on each other.
const HEIGHT: usize = 8;

/// One change of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Clear(String),
    Load { device: String, table: Vec<TableLine> },
    Resume(String),
    Remove(String),
    Message { device: String, text: String },
}

/// What a recovery sees and does.
pub(super) trait World {
    /// The group's newest committed metadata; `None` if there is no such group.
    fn committed(&self, vg: Uuid) -> Result<Option<Vg>, Error>;
    /// The kernel's devices of the group.
    fn live(&self, vg: Uuid) -> Result<Vec<LiveDevice>, Error>;
    /// Keeps every command of LVM off the group while it is held.
    fn lock(&self, vg: &VgName) -> Result<Box<dyn Any>, Error>;
    /// Changes devices one after the other; the first failure ends it.
    fn change(&self, tried: &str, acts: &[Act]) -> Result<(), Error>;
    /// Runs a command of LVM on the group.
    fn command(&self, tried: &str, words: &[&str]) -> Result<(), Error>;
    /// Has the disks keep what is committed.
    fn flush(&self, tried: &str, vg: &Vg) -> Result<(), Error>;
    /// Holds a volume's name against those who make it right now; `None` while somebody does.
    fn claim(&self, vg: Uuid, lv: &LvName) -> Result<Option<Box<dyn Any>>, Error>;
    /// The tag without which a volume is not ours.
    fn owner(&self) -> Option<&Tag>;
}

/// A group under recovery.
pub(super) struct Order<'w> {
    world: &'w dyn World,
    vg: Uuid,
    name: VgName,
    done: Recovered,
}

impl<'w> Order<'w> {
    /// Brings group `vg`, last known as `name`, in order as far as that can be done without a person.
    ///
    /// # Errors
    ///
    /// Where the group could not even be looked at, or its lock not be had.
    pub(super) fn carry_out(world: &'w dyn World, vg: Uuid, name: &VgName) -> Result<Recovered, Error> {
        let mut order = Self { world, vg, name: name.clone(), done: Recovered::default() };
        for round in 0..ROUNDS {
            order.settle()?;
            let Some((vg, live)) = order.look()? else { break };
            let differing = compare_volumes(&vg, &live);
            if differing.is_empty() || !order.refresh(&vg, &live, &differing, round > 0) {
                break;
            }
        }
        // A refresh that failed may have left devices suspended.
        order.settle()?;
        order.note_remaining()?;
        if order.done.is_open() {
            order.forget_in_stopped_pools()?;
            order.remove_stray_spare()?;
            order.remove_unfinished()?;
            order.settle()?;
            order.note_remaining()?;
        }
        order.flush()?;
        Ok(order.done)
    }

    fn tried(&self, what: &str) -> String {
        format!("recover group {}: {what}", self.name)
    }

    /// The group and its devices; `None` once the group is gone.
    fn look(&mut self) -> Result<Option<(Vg, Vec<LiveDevice>)>, Error> {
        let Some(vg) = self.world.committed(self.vg)? else { return Ok(None) };
        self.name = vg.name.clone();
        Ok(Some((vg, self.world.live(self.vg)?)))
    }

    fn note_remaining(&mut self) -> Result<(), Error> {
        let orphan = |device: LiveDevice| Difference::Orphan {
            device: device.name(),
            open_count: device.info.open_count,
        };
        self.done.remaining = match self.look()? {
            Some((vg, live)) => compare(&vg, &live),
            None => self.world.live(self.vg)?.into_iter().map(orphan).collect(),
        };
        Ok(())
    }

    /// What the dead command committed is seen by everybody from now on, so that it must not vanish any more.
    fn flush(&mut self) -> Result<(), Error> {
        let Some(vg) = self.world.committed(self.vg)? else { return Ok(()) };
        self.world.flush(&self.tried("flush what is committed"), &vg)
    }

    /// Under the group's lock: empties inactive slots, gives the metadata of suspended pools their committed size
    /// back, only then lets devices run, removes what nobody needs, and has pools forget the device of an interrupted
    /// create.
    fn settle(&mut self) -> Result<(), Error> {
        let _lock = self.world.lock(&self.name)?;
        let live = self.world.live(self.vg)?;
        let cleared: Vec<&LiveDevice> = live.iter().filter(|device| device.info.has_inactive_table).collect();
        let committed = self.world.committed(self.vg)?;
        let grown = committed.map_or_else(Vec::new, |vg| pools_over_grown_metadata(&vg, &live));
        let mut suspended = suspended_from_below(&live);
        // Such a pool waits for a refresh, which loads what is beneath it first.
        suspended.retain(|device| {
            !grown.iter().any(|grown| grown.pool == device.info.number && grown.committed.is_none())
        });
        let mut steps: Vec<(Act, Option<Step>)> = Vec::new();
        for device in cleared.iter().map(|device| device.name()) {
            steps.push((Act::Clear(device.clone()), Some(Step::Cleared { device })));
        }
        for (device, table) in grown.into_iter().filter_map(|grown| Some((grown.metadata, grown.committed?)))
        {
            steps.push((Act::Load { device: device.clone(), table }, None));
            steps.push((Act::Resume(device.clone()), Some(Step::ShrunkBack { device })));
        }
        for device in suspended.iter().map(|device| device.name()) {
            steps.push((Act::Resume(device.clone()), Some(Step::Resumed { device })));
        }
        if !steps.is_empty() {
            let (acts, steps): (Vec<Act>, Vec<Option<Step>>) = steps.into_iter().unzip();
            self.world.change(&self.tried("drop uncommitted tables and resume devices"), &acts)?;
            self.done.steps.extend(steps.into_iter().flatten());
        }
        self.remove_devices()?;
        self.forget_pending()
    }

    /// Removes devices without a table, without a volume, or that serve nobody, the topmost first.
    fn remove_devices(&mut self) -> Result<(), Error> {
        for _ in 0..HEIGHT {
            let live = self.world.live(self.vg)?;
            let names = match self.world.committed(self.vg)? {
                Some(vg) => superfluous(&compare(&vg, &live)),
                None => live.iter().map(LiveDevice::name).collect(),
            };
            let closed = |name: &String| {
                live.iter().any(|device| device.info.open_count == 0 && device.name() == *name)
            };
            let names: Vec<String> = names.into_iter().filter(closed).collect();
            if names.is_empty() {
                break;
            }
            let acts: Vec<Act> = names.iter().cloned().map(Act::Remove).collect();
            self.world.change(&self.tried("remove devices that nobody needs"), &acts)?;
            self.done.steps.extend(names.into_iter().map(|device| Step::RemovedDevice { device }));
        }
        Ok(())
    }

    /// A create that was killed between making the thin device and counting it: the pool is one transaction behind
    /// and refuses to make the device again. Nobody has ever used it, so the pool is told to forget it.
    fn forget_pending(&mut self) -> Result<(), Error> {
        let Some((vg, live)) = self.look()? else { return Ok(()) };
        for (pool, id) in pending_devices(&vg, &live) {
            let Some(device) = pool_device(&live, pool) else { continue };
            let act = Act::Message { device: device.name(), text: format!("delete {id}") };
            // The pool has no such device if the command died before it was made. Whether all is well is seen by
            // the refresh that follows.
            if self.world.change(&self.tried("have a thin pool forget an unused device"), &[act]).is_ok() {
                self.done.steps.push(Step::ForgotThinDevice { pool: pool.name.clone(), id });
            }
        }
        Ok(())
    }

    /// Loads tables anew; false if there was nothing to load or nothing succeeded.
    fn refresh(&mut self, vg: &Vg, live: &[LiveDevice], differing: &[(Uuid, Difference)], all: bool) -> bool {
        let mut volumes: BTreeSet<&LvName> = BTreeSet::new();
        for (lv, difference) in differing {
            let mendable = match difference {
                Difference::Transaction { .. } => difference.is_behind(),
                _ => true,
            };
            let Some(lv) = vg.lv_by_uuid(*lv).filter(|_| mendable) else { continue };
            let tops = active_tops(vg, live, lv);
            volumes.extend(tops.into_iter().take(if all { usize::MAX } else { 1 }));
        }
        let mut refreshed = false;
        for volume in volumes {
            let target = format!("{}/{volume}", vg.name);
            let tried = self.tried(&format!("load the tables of {volume} anew"));
            match self.world.command(&tried, &["lvchange", "--yes", "--refresh", &target]) {
                Ok(()) => {
                    refreshed = true;
                    self.done.steps.push(Step::Refreshed { volume: volume.clone() });
                }
                Err(error) => self.done.failures.push(error.to_string()),
            }
        }
        refreshed
    }

    /// Removes the half-made spare of a pool's metadata, before any other command writes over the evidence.
    fn remove_stray_spare(&mut self) -> Result<(), Error> {
        let Some(vg) = self.world.committed(self.vg)? else { return Ok(()) };
        let ours = self.world.owner().is_none_or(|owner| vg.has_tag(owner.as_str()));
        if let Some(spare) = stray_spare(&vg).filter(|_| ours) {
            self.remove_volume(&vg.name, &spare.name)?;
        }
        Ok(())
    }

    /// Removes what was never completed, what is built on others first.
    fn remove_unfinished(&mut self) -> Result<(), Error> {
        let mut skipped: BTreeSet<LvName> = BTreeSet::new();
        while let Some(vg) = self.world.committed(self.vg)? {
            let Some(lv) = next_unfinished(&vg, self.world.owner(), &skipped) else { break };
            // Whoever holds the name right now begins by removing it.
            let claim = self.world.claim(self.vg, &lv.name)?;
            let removed = claim.is_some() && self.remove_volume(&vg.name, &lv.name)?;
            if !removed {
                skipped.insert(lv.name.clone());
            }
        }
        Ok(())
    }

    /// Removes one volume; false, with the failure noted, if LVM refused: it stays tagged, and unused.
    fn remove_volume(&mut self, vg: &VgName, volume: &LvName) -> Result<bool, Error> {
        let target = format!("{vg}/{volume}");
        let tried = self.tried(&format!("remove unfinished volume {volume}"));
        match self.world.command(&tried, &["lvremove", "--yes", &target]) {
            Ok(()) => {
                self.done.steps.push(Step::RemovedVolume { volume: volume.clone() });
                Ok(true)
            }
            Err(error) if error.effect() == Effect::Unknown => Err(error),
            Err(error) => {
                self.done.failures.push(error.to_string());
                Ok(false)
            }
        }
    }

    /// After a loss of power no pool runs that could be asked what an interrupted create left in it. When LVM next has to do
    /// with such a pool it sends once more what was to be sent, is told that a snapshot is there already, and stops, since it
    /// takes that answer for a volume but not for a snapshot (libdm-deptree.c, `dm_tree_node_add_thin_pool_message`). To start
    /// the pool sends nothing yet, so that it can be told to forget the device before.
    fn forget_in_stopped_pools(&mut self) -> Result<(), Error> {
        let Some((vg, live)) = self.look()? else { return Ok(()) };
        for pool in stopped_pools_with_pending_devices(&vg, &live) {
            if self.activate(&vg, pool, "y")? {
                let lock = self.world.lock(&self.name)?;
                let forgotten = self.forget_pending();
                drop(lock);
                self.activate(&vg, pool, "n")?;
                forgotten?;
            }
        }
        Ok(())
    }

    /// Starts or stops a pool; false, with the failure noted, if LVM refused.
    fn activate(&mut self, vg: &Vg, pool: &Lv, how: &str) -> Result<bool, Error> {
        let tried = self.tried(&format!("look into pool {}, which has not made a device yet", pool.name));
        let target = format!("{}/{}", vg.name, pool.name);
        match self.world.command(&tried, &["lvchange", "--yes", "--activate", how, &target]) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), Kind::Crashed | Kind::TimedOut) => Err(error),
            Err(error) => {
                self.done.failures.push(error.to_string());
                Ok(false)
            }
        }
    }
}

/// The devices that may go.
fn superfluous(differing: &[Difference]) -> BTreeSet<String> {
    differing
        .iter()
        .filter_map(|difference| match difference {
            Difference::NoTable { device }
            | Difference::Orphan { device, .. }
            | Difference::Unused { device } => Some(device.clone()),
            _ => None,
        })
        .collect()
}

/// The error of a group that stays closed.
pub(super) fn still_closed(name: &VgName, report: &Recovered) -> Error {
    let mut answer: Vec<String> = report.remaining.iter().map(Difference::to_string).collect();
    answer.extend(report.failures.iter().cloned());
    Error::new(Kind::Inconsistent, format!("recover group {name}"))
        .with_effect(Effect::Unknown)
        .with_answer(answer.join("; "))
        .with_advice(
            "compare `dmsetup table` with the group's metadata, mend what differs, and let the recovery run again; \
             nothing is changed in the group until then",
        )
}
