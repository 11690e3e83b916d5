//! Opening a node on copies of the disks, as the first start after the cut does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rig::life::{id, new};
use rig::node::settings_on;
use rig::power_cut::{BLOCK, Images};
use rig::tool;
use volumes::{Mode, Node, Publish, Stage};

use super::offline::Known;
use super::record::{BLOCKS, Backend, DB, OURS, attach, deactivate};

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
    let (loops, disks) = attach(&copies)?;
    let used = used(backend, dir.path(), &disks, &known);
    deactivate(&disks)?;
    used?;
    for device in loops {
        device.detach()?;
    }
    Ok(true)
}

fn used(backend: Backend, dir: &Path, disks: &[PathBuf], known: &Known<'_>) -> Result<()> {
    let (node, repairs) = Node::open(settings_on(dir, disks.to_vec(), backend.class(disks)?)?)?;
    ensure!(repairs.problems.is_empty() && repairs.orphans.is_empty(), "{repairs}");
    let there = node.volumes()?;
    for certain in known.volumes() {
        ensure!(there.iter().any(|volume| volume.id.as_str() == certain), "{certain} is gone: {there:?}");
    }
    let snapshots = node.snapshots()?;
    for certain in known.snapshots() {
        ensure!(snapshots.iter().any(|cut| cut.id.as_str() == certain), "{certain} is gone: {snapshots:?}");
    }
    if known.volumes().contains(&"db") && known.acknowledged()?.blocks(DB) > 0 {
        let (staging, target) = (dir.join("staging"), dir.join("target"));
        node.stage(&Stage::new(id("db"), &staging, Mode::Block))?;
        node.publish(&Publish::new(id("db"), &staging, &target, Mode::Block))?;
        let mut bytes = vec![0; BLOCKS * BLOCK];
        let read = std::fs::File::open(&target)
            .and_then(|device| std::os::unix::fs::FileExt::read_exact_at(&device, &mut bytes, 0));
        node.unpublish(&id("db"), &target)?;
        node.unstage(&id("db"), &staging)?;
        read.context("read db")?;
        known.acknowledged()?.check(DB, &bytes)?;
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
