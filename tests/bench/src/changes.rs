//! Making and removing volumes: by the library's own operations, by single commands in its worker, and by spawning
//! the same commands.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use lvm::LvName;

use crate::count;
use crate::profile;
use crate::report::{Report, Side};
use crate::rounds::{Sample, Samples, by_turns, timed};
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
    Remove,
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
        let line = match (step, self) {
            (Step::Create, Self::Linear) => format!(
                "lvcreate --yes --type linear --extents {extents} --activate y --wipesignatures y --zero y \
                 --addtag gabion.dev/creating --name {name} {vg}"
            ),
            (Step::Create, Self::Thin) => format!(
                "lvcreate --yes --type thin --virtualsize {sectors}s --thinpool {POOL} \
                 --addtag gabion.dev/creating --name {name} {vg}"
            ),
            (Step::Tag, _) => {
                format!("lvchange --addtag gabion.dev/fs=new --deltag gabion.dev/creating {vg}/{name}")
            }
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

/// Compares making and removing both kinds.
pub(crate) fn run(report: &mut Report, site: &Site, budget: Duration) -> Result<()> {
    for kind in [Kind::Linear, Kind::Thin] {
        let samples = measure(site, kind, budget * 5)?;
        let [whole, worker, spawned] = samples.as_slice() else { continue };
        let kind_name = kind.name();
        for step in [Step::Create, Step::Tag, Step::Remove] {
            let (name, verb) = (step.name(), step.verb());
            report.compare(
                &format!("{name} a {kind_name} volume, in the worker"),
                verb,
                Side::new(worker.get(name), None),
                Side::new(spawned.get(name), None),
            );
        }
        report.compare(
            &format!("create a {kind_name} volume, whole"),
            "lvcreate, lvchange",
            Side::new(whole.get("create"), None),
            Side::new(Some(&both(spawned)), None),
        );
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
    Ok(())
}

/// What a program takes that spawns one command to make a volume and another to mark it complete.
fn both(spawned: &Samples) -> Vec<Duration> {
    let of = |step: Step| spawned.get(step.name()).map_or(&[][..], Vec::as_slice);
    of(Step::Create).iter().zip(of(Step::Tag)).map(|(create, tag)| *create + *tag).collect()
}

fn measure(site: &Site, kind: Kind, budget: Duration) -> Result<Vec<Samples>> {
    let library = Library::start(site)?;
    let name = volume(0)?;
    let words = |step| kind.words(site, step, &name);
    let whole = || steps(&[Step::Create, Step::Remove], |step| library.safely(kind, step, &name));
    let all = [Step::Create, Step::Tag, Step::Remove];
    let worker = || steps(&all, |step| library.command(&words(step)));
    let spawned = || steps(&all, |step| spawn(site.command("lvm")?.args(words(step))).map(drop));
    by_turns(budget, &mut [Box::new(whole), Box::new(worker), Box::new(spawned)])
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
            Self::Remove => "remove",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Create => "lvcreate",
            Self::Tag => "lvchange",
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
