//! What must be so when no call is under way: in the driver's own lists, in the mount table, and on the disks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use devices::Bytes;
use devices::filesystem::ProjectQuotas;
use devices::gpt::{self, DiskFile};
use devices::mount::MountTable;
use tonic::Code;

use super::belief::{Mode, Op, TARGETS, There, distinct};
use super::call::Calls;
use super::caller::{Known, Slot, World};
use super::content;
use crate::tool;

/// Where the volumes of a run lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// In this volume group.
    Group(String),
    /// In partitions of these disks.
    Disks(Vec<PathBuf>),
    /// In directories below this one, which counts projects.
    Directory(PathBuf),
}

/// Compares everything with the model; no call may be under way.
pub(super) fn audit(world: &World, calls: &Calls, backing: &Backing) -> Result<()> {
    let volumes = known_volumes(world, calls)?;
    let snapshots = known_snapshots(world, calls)?;
    mounts(world, &volumes)?;
    for (id, (mode, there)) in &volumes {
        for at in there.published.iter().enumerate().filter_map(|(at, published)| published.then_some(at)) {
            let target = Calls::target(&world.directory, id, at);
            content::check(&target, *mode, there.data).with_context(|| format!("look at {id}"))?;
        }
    }
    let sizes: BTreeMap<String, Bytes> =
        volumes.iter().map(|(id, (_, there))| (id.clone(), there.size)).collect();
    match backing {
        Backing::Group(name) => group(name, &sizes, &snapshots),
        Backing::Disks(disks) => partitions(disks, &sizes),
        Backing::Directory(root) => directories(root, &sizes),
    }
}

type Volumes = BTreeMap<String, (Mode, There)>;

/// The volumes as the driver lists them; each belief that this refutes goes.
fn known_volumes(world: &World, calls: &Calls) -> Result<Volumes> {
    let listed: BTreeMap<String, Bytes> = calls.volumes()?.into_iter().collect();
    let mut volumes = Volumes::new();
    let mut strange: BTreeSet<&String> = listed.keys().collect();
    for slot in &world.volumes {
        let mut known = slot.inner.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?;
        let size = listed.get(&slot.id);
        if known.beliefs.len() > 1 {
            put_away(world, calls, slot, &mut known)?;
        }
        known.beliefs.retain(|state| state.as_ref().map(|there| &there.size) == size);
        strange.remove(&slot.id);
        match known.beliefs.first().cloned() {
            None => bail!("{}: it is listed with {size:?}, which it cannot be: {known:?}", slot.id),
            Some(None) => {}
            Some(Some(there)) => drop(volumes.insert(slot.id.clone(), (slot.mode, there))),
        }
    }
    ensure!(strange.is_empty(), "volumes are listed that nobody made: {strange:?}");
    Ok(volumes)
}

/// Takes a volume off all its places, so that it is known that it is not there.
fn put_away(world: &World, calls: &Calls, slot: &Slot, known: &mut Known) -> Result<()> {
    for op in (0..TARGETS).map(Op::Unpublish).chain([Op::Unstage]) {
        let answer = calls.perform(&slot.id, slot.mode, &op);
        ensure!(answer.code == Code::Ok, "{}: {op:?}: {answer:?}", slot.id);
        let states = known.beliefs.iter().map(|state| world.rules.step(slot.mode, state, &op).1).collect();
        known.beliefs = distinct(states);
    }
    Ok(())
}

fn known_snapshots(world: &World, calls: &Calls) -> Result<BTreeMap<String, Bytes>> {
    let mut known = BTreeMap::new();
    for (id, cut) in &world.snapshots {
        let cut = cut.lock().map_err(|_| anyhow::anyhow!("a caller panicked"))?;
        known.extend(cut.as_ref().map(|cut| (id.clone(), cut.size)));
    }
    let listed = calls.snapshots()?.into_iter();
    let listed: BTreeMap<String, Bytes> = listed
        .map(|cut| (cut.snapshot_id, Bytes::new(u64::try_from(cut.size_bytes).unwrap_or_default())))
        .collect();
    ensure!(listed == known, "the snapshots listed are {listed:?}, and should be {known:?}");
    Ok(known)
}

/// No mount is missing, and none is there that nobody asked for.
fn mounts(world: &World, volumes: &Volumes) -> Result<()> {
    let mut expected = BTreeSet::new();
    for (id, (mode, there)) in volumes {
        if there.staged && *mode == Mode::Filesystem {
            expected.insert(Calls::staging(&world.directory, id));
        }
        expected.extend(
            (0..there.published.len())
                .filter(|at| there.published[*at])
                .map(|at| Calls::target(&world.directory, id, at)),
        );
    }
    let table = MountTable::read()?;
    let places = [world.directory.as_path(), Path::new("/run/gabion")];
    let found: BTreeSet<PathBuf> = table
        .iter()
        .map(|mount| mount.mount_point.clone())
        .filter(|place| places.iter().any(|base| place.starts_with(base)))
        .collect();
    ensure!(found == expected, "mounted are {found:?}, and should be {expected:?}");
    Ok(())
}

/// The logical volumes are the pool, and one for each volume and snapshot, complete.
fn group(name: &str, volumes: &BTreeMap<String, Bytes>, snapshots: &BTreeMap<String, Bytes>) -> Result<()> {
    let fields = "lv_name,lv_size,lv_tags";
    let options = ["--noheadings", "--units", "b", "--nosuffix", "--separator", "|", "-o", fields, name];
    let text = tool::run("lvs", options)?;
    let plain = |kind: char, id: &String| format!("{kind}.{id}");
    let mut expected: BTreeMap<String, Bytes> = BTreeMap::new();
    for (kind, of) in [('v', volumes), ('s', snapshots)] {
        expected.extend(of.iter().map(|(id, size)| (plain(kind, id), *size)));
    }
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.trim().split('|');
        let (name, size) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let tags = words.next().unwrap_or_default();
        if !tags.contains("gabion.dev/volume") && !tags.contains("gabion.dev/snapshot") && name == "pool" {
            continue;
        }
        for half_made in ["creating", "filling", "copying", "for-"] {
            ensure!(!tags.contains(&format!("gabion.dev/{half_made}")), "{name} is half made: {tags}");
        }
        found.insert(name.to_owned(), Bytes::new(size.parse().context(line.to_owned())?));
    }
    ensure!(found == expected, "volume group {name} has {found:?}, and should have {expected:?}");
    devices_of(name, &expected)
}

/// The kernel has no device of a volume that is gone.
fn devices_of(group: &str, expected: &BTreeMap<String, Bytes>) -> Result<()> {
    let prefix = format!("{}-", group.replace('-', "--"));
    let mut unknown = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let name = fs::read_to_string(entry?.path().join("dm/name")).unwrap_or_default();
        let Some(lv) = name.trim().strip_prefix(&prefix) else { continue };
        let lv = lv.replace("--", "-");
        if !lv.starts_with("pool") && !lv.starts_with("lvol") && !expected.contains_key(&lv) {
            unknown.push(lv);
        }
    }
    ensure!(unknown.is_empty(), "the kernel still has devices of {unknown:?}");
    Ok(())
}

/// The partitions are as many, and as large, as the volumes.
fn partitions(disks: &[PathBuf], volumes: &BTreeMap<String, Bytes>) -> Result<()> {
    let mut found = Vec::new();
    for disk in disks {
        let seen = gpt::inspect(&DiskFile::open_to_read(disk)?)?;
        let table = seen.table().with_context(|| format!("{} has no table", disk.display()))?;
        found.extend(table.partitions().into_iter().map(|partition| partition.size));
    }
    let mut expected: Vec<Bytes> = volumes.values().copied().collect();
    found.sort_unstable();
    expected.sort_unstable();
    ensure!(found == expected, "the partitions have {found:?}, and should have {expected:?}");
    Ok(())
}

/// There is a directory, a record and a limit for each volume, and none for nobody.
fn directories(root: &Path, volumes: &BTreeMap<String, Bytes>) -> Result<()> {
    let names = |place: &Path| -> Result<BTreeSet<String>> {
        let entries = fs::read_dir(place)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        entries.filter(|name| !matches!(name.as_deref(), Ok(".gabion" | "lost+found"))).collect()
    };
    let found = names(root)?;
    ensure!(found.iter().eq(volumes.keys()), "there are {found:?}, and should be {volumes:?}");
    let (records, expected) =
        (names(&root.join(".gabion"))?, volumes.keys().map(|id| format!("{id}.json")).collect());
    ensure!(records == expected, "the records are {records:?}, and should be {expected:?}");
    let used = ProjectQuotas::of(root)?.report()?;
    let mut limits: Vec<Bytes> = used.iter().filter_map(|project| project.limits.space).collect();
    let mut sizes: Vec<Bytes> = volumes.values().copied().collect();
    limits.sort_unstable();
    sizes.sort_unstable();
    ensure!(limits == sizes, "the limits are {limits:?}, and should be {sizes:?}");
    Ok(())
}
