//! Making, growing and removing volumes: by the library's own operations, by single commands in its worker, and by spawning
//! the same commands.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use lvm::LvName;

use crate::count;
use crate::profile;
use crate::report::{Report, Side};
use crate::rounds::{self, Sample, Samples, by_turns, timed};
use crate::site::{Site, program, spawn};
use crate::work::{Library, POOL, VOLUME, Work, volume};

/// How often a change is repeated to be counted.
const COUNTED: u32 = 2;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Linear,
    Thin,
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    /// The tag that says that it is complete, which the library sets within its creation.
    Tag,
    Extend,
    Remove,
}

/// What a worker does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It flushes the disks, as the library has it do.
    Flushed,
    /// Nothing, as LVM's own command.
    AsLvmDoes,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Thin => "thin",
        }
    }

    /// The words of a step's one command, as the library has them.
    pub(crate) fn words(self, site: &Site, step: Step, name: &LvName) -> Vec<String> {
        let vg = site.vg();
        let (extents, sectors) = (VOLUME.get() >> 22, VOLUME.get() >> 9);
        let activate =
            if site.is_live() { "y --wipesignatures y --zero y" } else { "n --wipesignatures n --zero n" };
        let line = match (step, self) {
            (Step::Create, Self::Linear) => format!(
                "lvcreate --yes --type linear --extents {extents} --activate {activate} \
                 --addtag gabion.dev/creating --name {name} {vg}"
            ),
            (Step::Create, Self::Thin) => format!(
                "lvcreate --yes --type thin --virtualsize {sectors}s --thinpool {POOL} \
                 --addtag gabion.dev/creating --name {name} {vg}"
            ),
            (Step::Tag, _) => {
                format!("lvchange --addtag gabion.dev/fs=new --deltag gabion.dev/creating {vg}/{name}")
            }
            (Step::Extend, _) => format!("lvextend --yes --extents {} {vg}/{name}", 2 * extents),
            (Step::Remove, _) => format!("lvremove --yes {vg}/{name}"),
        };
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn work(self, step: Step) -> Work {
        match (self, step) {
            (Self::Linear, Step::Remove) => Work::RemoveLinear,
            (Self::Linear, _) => Work::MakeLinear,
            (Self::Thin, Step::Remove) => Work::RemoveThin,
            (Self::Thin, _) => Work::MakeThin,
        }
    }
}

/// Compares making, growing and removing both kinds.
pub(crate) fn run(report: &mut Report, site: &Site, budget: Duration) -> Result<()> {
    let mut ratios = Vec::new();
    for kind in [Kind::Linear, Kind::Thin] {
        let samples = measure(site, kind, budget * 6)?;
        let [whole, flushed, worker, spawned] = samples.as_slice() else { continue };
        let kind_name = kind.name();
        commands(report, kind_name, flushed, worker, spawned);
        ratios.push(report.compare(
            &format!("create a {kind_name} volume, whole"),
            "lvcreate, lvchange",
            Side::new(whole.get("create"), None),
            Side::new(Some(&both(spawned)), None),
        ));
        for (step, verb) in [("extend", "lvextend"), ("remove", "lvremove")] {
            let (ours, theirs) = (whole.get(step), spawned.get(step));
            let name = format!("{step} a {kind_name} volume, whole");
            ratios.push(report.compare(&name, verb, Side::new(ours, None), Side::new(theirs, None)));
        }
        let costs = Costs::count(site, kind)?;
        for (step, against) in [(Step::Create, "lvcreate alone"), (Step::Remove, "lvremove")] {
            report.compare(
                &format!("{} a {kind_name} volume, whole", step.name()),
                against,
                Side::new(whole.get(step.name()), Some(costs.of(step).0)),
                Side::new(spawned.get(step.name()), Some(costs.of(step).1)),
            );
        }
        profile::run(report, site, kind)?;
    }
    report.sum_up("whole changes, made durable", &ratios);
    Ok(())
}

/// Compares what metadata alone can show, on disks whose flushes cost something.
pub(crate) fn run_inactive(report: &mut Report, site: &Site, budget: Duration) -> Result<()> {
    let library = Library::start(site)?;
    let samples = by_turns(
        budget * 4,
        &mut [
            in_worker(&library, site, Kind::Linear, Durability::Flushed)?,
            in_worker(&library, site, Kind::Linear, Durability::AsLvmDoes)?,
            in_commands(site, Kind::Linear)?,
        ],
    )?;
    let [flushed, worker, spawned] = samples.as_slice() else { return Ok(()) };
    let ratios = commands(report, "linear", flushed, worker, spawned);
    report.sum_up("single commands in metadata, made durable", &ratios);
    Ok(())
}

/// Compares single commands, and gives the ratios of the durable ones against the spawned ones.
fn commands(
    report: &mut Report,
    kind: &str,
    flushed: &Samples,
    worker: &Samples,
    spawned: &Samples,
) -> Vec<f64> {
    let mut ratios = Vec::new();
    for step in STEPS {
        let (name, verb) = (step.name(), step.verb());
        let side = |samples: &Samples| Side::new(samples.get(name), None);
        let worked = format!("{name} a {kind} volume, in the worker");
        report.compare(&worked, verb, side(worker), side(spawned));
        let durable = format!("{name} a {kind} volume, flushed");
        ratios.push(report.compare(&durable, verb, side(flushed), side(spawned)));
        report.compare(&durable, "unflushed", side(flushed), side(worker));
    }
    ratios
}

/// What is done to a volume in its life, one command each.
const STEPS: [Step; 4] = [Step::Create, Step::Tag, Step::Extend, Step::Remove];

fn in_worker<'a>(
    library: &'a Library<'_>,
    site: &'a Site,
    kind: Kind,
    durability: Durability,
) -> Result<rounds::Side<'a>> {
    let name = volume(0)?;
    Ok(Box::new(move || steps(&STEPS, |step| library.command(&kind.words(site, step, &name), durability))))
}

fn in_commands(site: &Site, kind: Kind) -> Result<rounds::Side<'_>> {
    let name = volume(0)?;
    Ok(Box::new(move || {
        steps(&STEPS, |step| spawn(site.command("lvm")?.args(kind.words(site, step, &name))).map(drop))
    }))
}

/// What a program takes that spawns one command to make a volume and another to mark it complete.
fn both(spawned: &Samples) -> Vec<Duration> {
    let of = |step: Step| spawned.get(step.name()).map_or(&[][..], Vec::as_slice);
    of(Step::Create).iter().zip(of(Step::Tag)).map(|(create, tag)| *create + *tag).collect()
}

fn measure(site: &Site, kind: Kind, budget: Duration) -> Result<Vec<Samples>> {
    let library = Library::start(site)?;
    let name = volume(0)?;
    let whole =
        || steps(&[Step::Create, Step::Extend, Step::Remove], |step| library.safely(kind, step, &name));
    by_turns(
        budget,
        &mut [
            Box::new(whole),
            in_worker(&library, site, kind, Durability::Flushed)?,
            in_worker(&library, site, kind, Durability::AsLvmDoes)?,
            in_commands(site, kind)?,
        ],
    )
}

/// Times each step, with udev's own work for the one before done.
fn steps(steps: &[Step], mut take: impl FnMut(Step) -> Result<()>) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for step in steps {
        settle()?;
        samples.push((step.name(), timed(|| take(*step))?));
    }
    Ok(samples)
}

/// Waits until udev has nothing to do, so that no step pays for the one before it.
pub(crate) fn settle() -> Result<()> {
    spawn(Command::new(program("udevadm")?).args(["settle", "--timeout=20"])).map(drop)
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Tag => "tag",
            Self::Extend => "extend",
            Self::Remove => "remove",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Create => "lvcreate",
            Self::Tag => "lvchange",
            Self::Extend => "lvextend",
            Self::Remove => "lvremove",
        }
    }
}

/// Ours and theirs, for making and for removing.
struct Costs {
    create: (count::Cost, count::Cost),
    remove: (count::Cost, count::Cost),
}

impl Costs {
    fn count(site: &Site, kind: Kind) -> Result<Self> {
        let spawned = |step, name: &LvName| -> Result<Command> {
            let mut command = site.command("lvm")?;
            command.args(kind.words(site, step, name));
            Ok(command)
        };
        let each = |times: u32, step| -> Result<()> {
            for nth in 0..times {
                settle()?;
                spawn(&mut spawned(step, &volume(nth)?)?)?;
            }
            Ok(())
        };
        let ours_create =
            count::library(site, kind.work(Step::Create), COUNTED, &|times| each(times, Step::Remove))?;
        each(1, Step::Create)?;
        let ours_remove = count::library(site, kind.work(Step::Remove), COUNTED, &|times| {
            if times == 1 { each(COUNTED + 1, Step::Create) } else { Ok(()) }
        })?;
        let name = volume(0)?;
        let their_create = count::counted(site, &spawned(Step::Create, &name)?)?;
        settle()?;
        let their_remove = count::counted(site, &spawned(Step::Remove, &name)?)?;
        Ok(Self { create: (ours_create, their_create), remove: (ours_remove, their_remove) })
    }

    fn of(&self, step: Step) -> (count::Cost, count::Cost) {
        if step == Step::Remove { self.remove } else { self.create }
    }
}
