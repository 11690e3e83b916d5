//! Opening a node on copies of the disks, as the first start after the cut does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::filesystem::{ProjectQuotas, project_of};
use rig::life::{id, new};
use rig::power_cut::{Images, read_blocks};
use rig::tool;
use volumes::Node;

use super::offline::Known;
use super::record::{BLOCKS, DB};
use super::site::{Backend, OURS, Site};

/// Opens, reads everything, and makes and removes volumes; tells whether there was anything to open.
pub(crate) fn start(backend: Backend, images: &Images, marks: &[String]) -> Result<bool> {
    let known = Known { marks };
    if !known.done("pools") {
        return Ok(false);
    }
    let dir = tempfile::tempdir()?;
    let mut copies: Vec<PathBuf> = Vec::new();
    for slice in OURS {
        let copy = dir.path().join(format!("disk{slice}"));
        tool::run("cp", [Path::new("--sparse=always"), images.path(slice), copy.as_path()])?;
        copies.push(copy);
    }
    let site = Site::open(backend, &copies)?;
    let used = used(&site, dir.path(), &known);
    let closed = site.close();
    used?;
    closed?;
    Ok(true)
}

fn used(site: &Site, dir: &Path, known: &Known<'_>) -> Result<()> {
    let (node, repairs) = Node::open(site.settings(dir)?)?;
    ensure!(repairs.problems.is_empty() && repairs.orphans.is_empty(), "{repairs}");
    let there = node.volumes()?;
    for certain in known.volumes() {
        let found = there.iter().find(|volume| volume.id.as_str() == certain);
        let size = found.with_context(|| format!("{certain} is gone: {there:?}"))?.size;
        is_limited(site, certain, size)?;
    }
    let snapshots = node.snapshots()?;
    for certain in known.snapshots() {
        ensure!(snapshots.iter().any(|cut| cut.id.as_str() == certain), "{certain} is gone: {snapshots:?}");
    }
    if known.volumes().contains(&"db") && known.acknowledged()?.blocks(DB) > 0 {
        let read = read_blocks(&site.shown(&node, "db", dir)?, BLOCKS);
        Site::hidden(&node, "db", dir)?;
        known.acknowledged()?.check(DB, &read?)?;
    }
    node.create(&new("after", 16)).context("make a volume after the cut")?;
    node.delete(&id("after"))?;
    // As long as a snapshot is copied its volume stays.
    for cut in snapshots {
        node.delete_snapshot(&cut.id).context("remove a snapshot that was there")?;
    }
    for volume in there {
        node.delete(&volume.id).context("remove what was there")?;
    }
    let (volumes, snapshots) = (node.volumes()?, node.snapshots()?);
    ensure!(volumes.is_empty() && snapshots.is_empty(), "{volumes:?} and {snapshots:?} stayed");
    Ok(())
}

/// The start has given a directory the limit that its record tells.
pub(crate) fn is_limited(site: &Site, volume: &str, size: Bytes) -> Result<()> {
    let root = site.root();
    if root.as_os_str().is_empty() {
        return Ok(());
    }
    let project = project_of(&root.join(volume))?.with_context(|| format!("{volume} has no project"))?;
    let limits = ProjectQuotas::of(&root)?.usage(project)?.limits;
    ensure!(limits.space == Some(size), "{volume} has {size}, and may have {:?}", limits.space);
    Ok(())
}
