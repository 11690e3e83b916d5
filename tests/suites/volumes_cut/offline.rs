//! What the disks must hold at a point, read without starting anything.

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use devices::gpt::{Condition, DiskFile, Owner, Ownership, Partition, State, inspect};
use lvm::ops::{CREATING, PART};
use rig::power_cut::{Acknowledged, BLOCK, Images, OfflineGroup};

use super::directories::directories;
use super::record::{BLOCKS, DB, FIRST};
use super::site::{Backend, OURS};

/// What the marks before a point say.
pub(crate) struct Known<'a> {
    pub(crate) marks: &'a [String],
}

impl Known<'_> {
    fn begun(&self, step: &str) -> bool {
        self.marks.iter().any(|mark| mark.strip_prefix("begin:") == Some(step))
    }

    pub(crate) fn done(&self, step: &str) -> bool {
        self.marks.iter().any(|mark| mark.strip_prefix("done:") == Some(step))
    }

    fn made(&self, letter: char) -> Vec<&str> {
        let made = self.marks.iter().filter_map(|mark| mark.strip_prefix("done:"));
        made.filter(|name| {
            let rest = name.strip_prefix(letter);
            rest.is_some_and(|rest| rest == "b" || rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .filter(|name| !self.begun(&format!("remove-{name}")))
        .collect()
    }

    /// The volumes that are there for certain.
    pub(crate) fn volumes(&self) -> Vec<&str> {
        self.made('d').into_iter().chain(self.made('x')).collect()
    }

    /// The snapshots that are there for certain.
    pub(crate) fn snapshots(&self) -> Vec<&str> {
        self.made('s')
    }

    /// Whether a snapshot's content is its own.
    pub(crate) fn is_ready(&self, name: &str) -> bool {
        self.marks.iter().any(|mark| mark.strip_prefix("ready:") == Some(name))
    }

    /// Whether nothing is certain of a volume or snapshot: it is being made or removed.
    pub(crate) fn is_changing(&self, name: &str) -> bool {
        let remove = format!("remove-{name}");
        (self.begun(name) && !self.done(name)) || (self.begun(&remove) && !self.done(&remove))
    }

    /// Least and greatest size of `db`.
    pub(crate) fn sizes(&self) -> (Bytes, Bytes) {
        let size = |prefix: &str| {
            let mut sizes = self.marks.iter().filter_map(|mark| mark.strip_prefix(prefix)?.parse().ok());
            Bytes::mib(sizes.next_back().unwrap_or(FIRST))
        };
        (size("done:size"), size("begin:size"))
    }

    pub(crate) fn acknowledged(&self) -> Result<Acknowledged> {
        Acknowledged::of(self.marks)
    }

    pub(crate) fn at_snapshot(&self, name: &str) -> Result<Acknowledged> {
        let begin = format!("begin:{name}");
        let at = self.marks.iter().position(|mark| *mark == begin).context("no such snapshot")?;
        Acknowledged::of(&self.marks[..at])
    }

    pub(crate) fn is_size(&self, size: Bytes) -> Result<()> {
        let (least, greatest) = self.sizes();
        ensure!(size >= least && size <= greatest, "db has {size}, and should have {least} to {greatest}");
        Ok(())
    }
}

/// Fails unless all that was acknowledged is there.
pub(crate) fn audit(backend: Backend, images: &Images, marks: &[String]) -> Result<()> {
    let known = Known { marks };
    if !known.done("pools") {
        return Ok(());
    }
    match backend {
        Backend::Partition => partitions(images, &known),
        Backend::Thick | Backend::Thin => group(backend, images, &known),
        Backend::Directory(fs) => directories(fs, images, &known),
    }
}

fn group(backend: Backend, images: &Images, known: &Known<'_>) -> Result<()> {
    let group = OfflineGroup::read_on(images, &OURS)?.context("the group is gone")?;
    let length = Bytes::new((BLOCKS * BLOCK) as u64);
    let read = |name: &str| match backend {
        Backend::Thin => group.read_thin(name, length),
        _ => group.read_linear(name, Bytes::ZERO, length),
    };
    let half_made =
        |lv: &lvm::metadata::Lv| [CREATING, PART, "gabion.dev/filling"].iter().any(|tag| lv.has_tag(tag));
    let (volumes, snapshots) = (known.volumes(), known.snapshots());
    for lv in group.vg().visible_lvs() {
        let name = lv.name.as_str();
        let expected = match name.split_once('.') {
            Some(("v", id)) => volumes.contains(&id) || known.is_changing(id),
            Some(("s", id)) => snapshots.contains(&id) || known.is_changing(id),
            // A temporary snapshot, whose maker may not have come to remove it.
            Some(("t", id)) => known.begun(id),
            _ => lv.as_thin_pool().is_some(),
        };
        ensure!(expected || half_made(lv), "{name} should not be there: {:?}", lv.tags);
    }
    for id in volumes {
        let name = format!("v.{id}");
        let lv = group.vg().lv(&name).with_context(|| format!("volume {id} is gone"))?;
        ensure!(!half_made(lv), "volume {id} is said to be unfinished: {:?}", lv.tags);
        if id == "db" {
            known.is_size(group.size(&name)?)?;
            known.acknowledged()?.check(DB, &read(&name)?).context("db")?;
        }
    }
    for id in snapshots {
        let name = format!("s.{id}");
        let lv = group.vg().lv(&name).with_context(|| format!("snapshot {id} is gone"))?;
        ensure!(!half_made(lv), "snapshot {id} is said to be unfinished: {:?}", lv.tags);
        if known.is_ready(id) {
            ensure!(!lv.has_tag("gabion.dev/copying"), "snapshot {id} is said to be copied");
            known.at_snapshot(id)?.check_exactly(DB, &read(&name)?).with_context(|| id.to_owned())?;
        }
    }
    Ok(())
}

fn partitions(images: &Images, known: &Known<'_>) -> Result<()> {
    let owner: Owner = "the-lab".parse()?;
    let mut found: Vec<(usize, String, Partition)> = Vec::new();
    for slice in OURS {
        let seen = inspect(&DiskFile::open_to_read(images.path(slice))?)?;
        match seen.condition() {
            Condition::Sound | Condition::Damaged(_) => {}
            other => bail!("disk {slice}: {other}"),
        }
        let table = seen.table().with_context(|| format!("disk {slice} has no table"))?;
        for partition in table.partitions() {
            let Some(Ownership::Ours(Some(id))) = table.ownership(&owner, partition.number) else {
                bail!("a partition that is not ours: {partition:?}");
            };
            found.push((slice, id.as_str().to_owned(), partition));
        }
    }
    let volumes = known.volumes();
    for (_, id, partition) in &found {
        let half_made = matches!(partition.state(), State::Creating | State::Removing);
        let expected = volumes.contains(&id.as_str()) || known.is_changing(id);
        ensure!(expected || half_made, "partition {id} should not be there");
    }
    for id in volumes {
        let mut of_id = found.iter().filter(|(_, name, _)| name == id);
        let (slice, _, partition) = of_id.next().with_context(|| format!("volume {id} is gone"))?;
        ensure!(of_id.next().is_none(), "volume {id} is there twice");
        ensure!(!matches!(partition.state(), State::Creating | State::Removing), "{id}: {partition:?}");
        if id == "db" {
            known.is_size(partition.size)?;
            let bytes = images.read(*slice, partition.start, Bytes::new((BLOCKS * BLOCK) as u64))?;
            known.acknowledged()?.check(DB, &bytes).context("db")?;
        }
    }
    Ok(())
}
