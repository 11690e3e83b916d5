//! What the disks must hold at a point, read without starting anything.

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use devices::gpt::{Condition, DiskFile, Owner, Ownership, Partition, State, inspect};
use rig::power_cut::{Acknowledged, BLOCK, Images};

use super::record::{BLOCKS, DB, FIRST, OURS};

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

    /// Whether nothing is certain of a volume: it is being made or removed.
    fn is_changing(&self, name: &str) -> bool {
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

    fn is_size(&self, size: Bytes) -> Result<()> {
        let (least, greatest) = self.sizes();
        ensure!(size >= least && size <= greatest, "db has {size}, and should have {least} to {greatest}");
        Ok(())
    }
}

/// Fails unless all that was acknowledged is there.
pub(crate) fn audit(images: &Images, marks: &[String]) -> Result<()> {
    let known = Known { marks };
    if known.done("pools") { partitions(images, &known) } else { Ok(()) }
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
