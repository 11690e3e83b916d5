//! Killing a worker at each of its kernel calls, and what must hold after the recovery.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use lvm::dm::{Activity, Dm, ThinPoolStatus};
use lvm::ops::{CREATING, Group, PART};
use lvm::recover::{Recovered, Step};
use lvm::{Error, ExtentSize};

use crate::killer::{Calls, Ended, Killer};
use crate::tool;

/// What is written into the old filesystem.
const SECRET: &[u8] = b"secret of an earlier tenant";
/// The old filesystem's label, of 16 bytes at most.
const LABEL: &str = "earlier-tenant";
/// Where ext4 has its label (`s_volume_name` in its superblock at 1 KiB).
const LABEL_AT: usize = 1024 + 120;
/// Extents at the beginning of each PV's free space that hold the old filesystem, each a copy of its own.
const COPIES: u64 = 12;

/// Which points of a sweep are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// All of them.
    All,
    /// So many, spread evenly.
    Some(usize),
    /// Those before which the worker changed anything: the others find the same state as the one before them.
    Distinct,
    /// Of those, the ones between two places in their list, counted from 1, both included.
    DistinctBetween(usize, usize),
    /// Those between two ioctls of the worker, counted from its start, both included.
    Between(usize, usize),
    /// The messages to the group's devices: what came before each of them has reached a pool, and the message has not.
    Messages,
}

/// One operation under the sweep.
#[expect(missing_debug_implementations, reason = "closures have none")]
pub struct Sweep<'a> {
    /// The group.
    pub killer: &'a Killer,
    /// What it is called in the report.
    pub name: &'a str,
    /// Brings the group into the state in which the operation begins, whatever the last point left.
    pub prepare: &'a dyn Fn(&Group) -> Result<()>,
    /// The operation.
    pub act: &'a dyn Fn(&Group) -> Result<(), Error>,
    /// What must hold besides after the recovery and after the operation was repeated.
    pub check: &'a dyn Fn(&Group) -> Result<()>,
}

impl Sweep<'_> {
    /// Kills the operation's worker at the chosen points of its ioctls; after each, recovers and checks that nothing is
    /// left of it and that the operation works.
    ///
    /// # Errors
    ///
    /// At the first point after which anything is not as it must be.
    pub fn run(&self, points: Points) -> Result<()> {
        self.run_with(points, &|| Ok(()))
    }

    /// The same where the machine ends after each kill, and the recovery comes with the next start: no volume may be in use.
    ///
    /// # Errors
    ///
    /// As [`Sweep::run`].
    pub fn run_with_restarts(&self, points: Points) -> Result<()> {
        self.run_with(points, &|| self.killer.stop_everything())
    }

    fn run_with(&self, points: Points, meanwhile: &dyn Fn() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        let before = self.killer.start_calls()?.ioctls;
        // The first one of its kind may do more than all that follow: a pool's first volume changes the pool.
        (self.prepare)(self.killer.group())?;
        (self.act)(self.killer.group())?;
        (self.prepare)(self.killer.group())?;
        let calls = self.killer.calls(|group| (self.act)(group).map_err(Into::into))?;
        let all = calls.ioctls;
        ensure!(all > before, "{} sends no ioctl: {all} in all, {before} at the start", self.name);
        let chosen = choose(before + 1, &calls, points);
        let mut steps: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut killed = 0;
        let mut slowest = Duration::ZERO;
        for (done, k) in chosen.iter().enumerate() {
            if done % 20 == 10 {
                println!(
                    "FIGURES: {}: {done} of {} points after {:.0?}",
                    self.name,
                    chosen.len(),
                    start.elapsed()
                );
            }
            let begun = Instant::now();
            let report = self
                .point(*k, meanwhile)
                .with_context(|| format!("{}, killed at ioctl {k} of {all}", self.name))?;
            killed += usize::from(report.is_some());
            for step in report.into_iter().flat_map(|report| report.steps) {
                *steps.entry(kind_of(&step)).or_default() += 1;
            }
            slowest = slowest.max(begun.elapsed());
        }
        println!(
            "FIGURES: {}: {} of {} points, {killed} killed, in {:.0} s (slowest {:.1} s); recovery {steps:?}",
            self.name,
            chosen.len(),
            all - before,
            start.elapsed().as_secs_f64(),
            slowest.as_secs_f64(),
        );
        ensure!(killed > 0, "{}: no point killed the worker", self.name);
        Ok(())
    }

    fn point(&self, k: usize, meanwhile: &dyn Fn() -> Result<()>) -> Result<Option<Recovered>> {
        (self.prepare)(self.killer.group()).context("prepare")?;
        let (victim, ended) = self.killer.kill_at(k, self.act)?;
        let report = match ended {
            Ended::Finished => None,
            Ended::Killed => {
                meanwhile().context("between kill and recovery")?;
                let report = victim.lvm().recover(victim.uuid(), victim.label());
                let report =
                    report.map_err(|error| anyhow::anyhow!("{error:?}\nafter: {}", wreck(&victim)))?;
                Some(report)
            }
        };
        let told = || report.as_ref().map(ToString::to_string).unwrap_or_default();
        self.in_order(&victim).with_context(told)?;
        (self.act)(&victim).with_context(|| format!("the next command of the kind; {}", told()))?;
        self.in_order(&victim).with_context(|| format!("after the next command of the kind; {}", told()))?;
        Ok(report)
    }

    fn in_order(&self, group: &Group) -> Result<()> {
        in_order(group)?;
        no_old_content(group)?;
        no_cookies()?;
        (self.check)(group)
    }
}

/// The points from `first` on.
fn choose(first: usize, calls: &Calls, points: Points) -> Vec<usize> {
    let last = calls.ioctls;
    match points {
        // What came before the first one was a worker's start, which changes nothing.
        Points::Distinct => calls.distinct.iter().copied().filter(|point| *point >= first).collect(),
        Points::DistinctBetween(from, to) => {
            let all = choose(first, calls, Points::Distinct);
            all.into_iter().take(to).skip(from.saturating_sub(1)).collect()
        }
        Points::All => (first..=last).collect(),
        Points::Messages => calls.messages.iter().copied().filter(|point| *point >= first).collect(),
        Points::Between(from, to) => (first.max(from)..=last.min(to)).collect(),
        Points::Some(count) => {
            let span = last - first;
            let mut chosen: Vec<usize> =
                (1..=count).map(|index| first + span * index / (count + 1)).collect();
            chosen.dedup();
            chosen
        }
    }
}

fn kind_of(step: &Step) -> &'static str {
    match step {
        Step::Cleared { .. } => "cleared",
        Step::Resumed { .. } => "resumed",
        Step::RemovedDevice { .. } => "removed device",
        Step::ForgotThinDevice { .. } => "forgot thin id",
        Step::Refreshed { .. } => "refreshed",
        Step::RemovedVolume { .. } => "removed volume",
        Step::ReleasedMetadata { .. } => "released metadata",
        Step::DroppedCookie { .. } => "dropped cookie",
        _ => "other",
    }
}

/// What the kernel and LVM's metadata look like, for a failed test.
fn wreck(group: &Group) -> String {
    let volumes = group.look().map(|vg| {
        let name = |lv: &lvm::metadata::Lv| format!("{} {:?}", lv.name, lv.tags);
        vg.lvs.iter().map(name).collect::<Vec<_>>().join("; ")
    });
    let devices = tool::run("dmsetup", ["info", "-c", "--noheadings", "-o", "name,attr,open"]);
    let tables = tool::run("dmsetup", ["table"]);
    format!("{volumes:?}\n{devices:?}\n{tables:?}")
}

/// Nothing of the group is suspended or half-loaded, live is what is committed, pools agree, nothing is unfinished.
///
/// # Errors
///
/// That tell what is not in order.
pub fn in_order(group: &Group) -> Result<()> {
    let vg = group.look()?;
    let dm = Dm::open()?;
    for device in dm.vg_devices(&vg.uuid)? {
        let info = dm.info(device.device.number)?;
        ensure!(info.activity == Activity::Running, "{} is suspended\n{}", info.name, wreck(group));
        ensure!(!info.has_inactive_table, "{} has an inactive table\n{}", info.name, wreck(group));
        ensure!(info.has_live_table, "{} has no table\n{}", info.name, wreck(group));
    }
    let differences = group.lvm().differences(vg.uuid)?;
    ensure!(differences.is_empty(), "{differences:?}\n{}", wreck(group));
    for pool in vg.thin_pools() {
        let committed = pool.as_thin_pool().context("no pool")?.transaction_id;
        if let Some(ThinPoolStatus::Working(used)) = dm.pool_status(&vg.uuid, &pool.uuid)? {
            ensure!(
                used.transaction_id == committed,
                "pool {}: {} and {committed}",
                pool.name,
                used.transaction_id
            );
        }
    }
    let unfinished: Vec<_> =
        vg.visible_lvs().filter(|lv| lv.has_tag(CREATING) || lv.has_tag(PART)).map(|lv| &lv.name).collect();
    ensure!(unfinished.is_empty(), "unfinished: {unfinished:?}\n{}", wreck(group));
    let stray: Vec<_> = vg.visible_lvs().filter(|lv| lv.tags.is_empty()).map(|lv| &lv.name).collect();
    ensure!(
        stray.is_empty(),
        "without any tag, so made by a command that was killed: {stray:?}\n{}",
        wreck(group)
    );
    Ok(())
}

/// No udev cookie is left.
fn no_cookies() -> Result<()> {
    let cookies = tool::run("dmsetup", ["udevcookies"])?;
    let left: Vec<&str> = cookies.lines().filter(|line| line.starts_with("0x")).collect();
    ensure!(left.is_empty(), "cookies: {left:?}");
    Ok(())
}

/// No blank volume shows what was on its extents before.
fn no_old_content(group: &Group) -> Result<()> {
    let vg = group.look()?;
    for lv in vg.visible_lvs().filter(|lv| lv.has_tag(lvm::ops::FS_NEW)) {
        let volume = group.volume(&lv.name)?;
        if !volume.device.exists() {
            let _ = group.activate_volume(&lv.name)?;
        }
        if shows_old_content(&volume.device)? {
            bail!("{} shows what an earlier tenant wrote\n{}", lv.name, wreck(group));
        }
    }
    Ok(())
}

/// Whether the old filesystem or its secret is in the first 4 MiB of a device.
fn shows_old_content(device: &std::path::Path) -> Result<bool> {
    let file = fs::File::open(device).with_context(|| format!("open {}", device.display()))?;
    let mut head = vec![0; 4 << 20];
    file.read_exact_at(&mut head, 0)?;
    let secret = head.windows(SECRET.len()).any(|window| window == SECRET);
    Ok(secret || head.get(LABEL_AT..).is_some_and(|rest| rest.starts_with(LABEL.as_bytes())))
}

/// Writes a filesystem with a secret over the beginning of each PV's free space, a copy in each extent.
///
/// # Errors
///
/// If the filesystem cannot be made or written.
pub fn plant(killer: &Killer) -> Result<()> {
    let image = old_filesystem(killer)?;
    let vg = killer.look()?;
    let usage = vg.usage();
    let extent = vg.extent_size;
    ensure!(extent == ExtentSize::DEFAULT, "copies are made for extents of 4 MiB");
    for pv in &vg.pvs {
        let device = pv.device.as_ref().context("a PV without device")?;
        let file = fs::File::options().write(true).open(&device.path)?;
        let free = usage.free_ranges(pv.uuid);
        let Some(first) = free.first() else { continue };
        let start = pv.pe_start.to_bytes().context("pe_start")?.get();
        for index in first.start.get()..first.end.get().min(first.start.get() + COPIES) {
            file.write_all_at(&image, start + index * extent.bytes().get())?;
        }
        file.sync_all()?;
    }
    Ok(())
}

/// One extent with an ext4 filesystem whose one file is the secret.
fn old_filesystem(killer: &Killer) -> Result<Vec<u8>> {
    let image = killer.path("old.img");
    if !image.exists() {
        let directory = killer.path("old");
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("file"), SECRET)?;
        fs::File::create(&image)?.set_len(ExtentSize::DEFAULT.bytes().get())?;
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-F", "-L", LABEL, "-O", "^has_journal", "-d"]).arg(&directory).arg(&image);
        ensure!(mkfs.status()?.success(), "mkfs.ext4 failed");
    }
    Ok(fs::read(&image)?)
}

/// Shows that the planted filesystem does come up in a volume that is not wiped: else its absence proves nothing.
///
/// # Errors
///
/// If it does not show.
pub fn plant_shows(killer: &Killer) -> Result<()> {
    use lvm::ops::{Content, NewVolume, OnRemove, SizeRange};
    plant(killer)?;
    let name = lvm::LvName::new("control")?;
    let new = NewVolume::new(name.clone(), SizeRange::at_least(Bytes::mib(8))).content(Content::Untouched);
    let volume = killer.group().create_volume(&new)?.into_inner();
    let _ = killer.group().activate_volume(&name)?;
    let shows = shows_old_content(&volume.device)?;
    let _ = killer.group().remove_volume(&name, OnRemove::Keep)?;
    ensure!(shows, "the planted filesystem does not show through an unwiped volume");
    Ok(())
}
