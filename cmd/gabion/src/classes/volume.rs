//! `gabion volume …` of what is in a class.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use devices::Bytes;
use serde::Serialize;
use volumes::{CreateSnapshot, CreateVolume, Error, Kind, SizeRange, SnapshotId, Source, VolumeId};

use super::storage::{Cut, InClass, Storage};
use crate::cli::{Clone, Create, Delete, Grow, Mount, Snapshot, Unmount};
use crate::output::Output;

/// What a change gave, for programs.
#[derive(Debug, Default, Serialize)]
struct Done {
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<InClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<Cut>,
}

fn tell(output: &mut Output<'_>, text: &str, done: &Done) -> Result<()> {
    output.show(done, |_, _| format!("{text}\n"))
}

/// Options that are about logical volumes mean nothing here.
fn refuse(given: &[(bool, &str)], tried: &str) -> Result<()> {
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(Error::new(Kind::InvalidArgument, tried)
            .with_answer(format!("{option} means nothing for a volume in a class"))
            .with_advice("name it as GROUP/NAME if a volume of LVM is meant")
            .into()),
        None => Ok(()),
    }
}

fn exists(tried: &str) -> Error {
    Error::new(Kind::Exists, tried)
        .with_answer("it is there already")
        .with_advice("add --if-absent where that is a success")
}

/// Makes a volume in a class.
pub(crate) fn create(id: &VolumeId, create: &Create, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("create volume {id}");
    let given = [
        (create.kind.is_some(), "--type"),
        (create.pool.is_some(), "--pool"),
        (create.details.is_given(), "how it lies on disks"),
        (create.wait, "--wait"),
    ];
    refuse(&given, &tried)?;
    let mut new = CreateVolume::new(id.clone(), SizeRange::at_least(create.size));
    new.class.clone_from(&create.class);
    new.fs_type = create.fs_type;
    let storage = Storage::open(&create.place)?;
    let there = storage.volume(id)?;
    if there.is_some() && !create.if_absent {
        return Err(exists(&tried).into());
    }
    made(&storage.create(&new)?, there.is_none(), output)
}

fn made(volume: &InClass, changed: bool, output: &mut Output<'_>) -> Result<()> {
    let size = Bytes::new(volume.size_bytes);
    let text = match changed {
        true => format!("created volume {}: {size}", volume.id),
        false => format!("volume {} is there already: {size}", volume.id),
    };
    tell(output, &text, &Done { changed, volume: Some(volume.clone()), ..Done::default() })
}

/// Makes a volume with the content of another one or of a snapshot.
pub(crate) fn clone(clone: &Clone, output: &mut Output<'_>) -> Result<()> {
    let id = &clone.volume;
    let tried = format!("create volume {id}");
    let source = match clone.snapshot {
        true => Source::Snapshot(clone.source.parse()?),
        false => Source::Volume(clone.source.parse()?),
    };
    let storage = Storage::open(&clone.place)?;
    if storage.volume(id)?.is_some() {
        return Err(exists(&tried).into());
    }
    let missing = |what: &str| {
        Error::new(Kind::NotFound, tried.clone()).with_answer(format!("there is no {what} {}", clone.source))
    };
    let (has, class) = match &source {
        Source::Snapshot(id) => {
            let all = storage.snapshots()?.into_iter();
            let found = all.into_iter().find(|cut| cut.id == id.as_str());
            (found.ok_or_else(|| missing("snapshot"))?.size_bytes, None)
        }
        Source::Volume(id) => {
            let found = storage.volume(id)?.ok_or_else(|| missing("volume"))?;
            (found.size_bytes, found.class)
        }
    };
    let mut new = CreateVolume::new(id.clone(), SizeRange::at_least(clone.size.unwrap_or(Bytes::new(has))));
    new.class = match &clone.class {
        Some(class) => Some(class.clone()),
        None => class.map(|class| class.parse()).transpose()?,
    };
    made(&storage.create(&new.source(source))?, true, output)
}

/// Makes a volume of a class larger, and its filesystem where it is mounted by `gabion volume mount`.
pub(crate) fn grow(id: &VolumeId, grow: &Grow, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("grow volume {id}");
    refuse(&[(grow.zero_added, "--zero-added"), (!grow.on.is_empty(), "--on")], &tried)?;
    let storage = Storage::open(&grow.place)?;
    let before = storage.volume(id)?.ok_or_else(|| not_there(&tried, "volume", id))?;
    let before = Bytes::new(before.size_bytes);
    let to = grow.to.from(before, &tried)?.required();
    let volume = storage.grow(id, to)?;
    let now = Bytes::new(volume.size_bytes);
    let changed = now > before;
    let text = match changed {
        true => format!("grew volume {id} from {before} to {now}"),
        false => format!("volume {id} is that large already: {now}"),
    };
    tell(output, &text, &Done { changed, volume: Some(volume), ..Done::default() })
}

/// Cuts a snapshot of a volume of a class.
pub(crate) fn snapshot(id: &VolumeId, snapshot: &Snapshot, output: &mut Output<'_>) -> Result<()> {
    let name: SnapshotId = snapshot.name.parse()?;
    let tried = format!("snapshot volume {id} as {name}");
    refuse(&[(snapshot.size.is_some(), "--size"), (snapshot.active, "--active")], &tried)?;
    let storage = Storage::open(&snapshot.place)?;
    let there = storage.snapshots()?.iter().any(|cut| cut.id == name.as_str());
    if there && !snapshot.if_absent {
        return Err(exists(&tried).into());
    }
    let cut = storage.cut(&CreateSnapshot::new(name.clone(), id.clone()))?;
    let text = match (there, cut.state) {
        (true, state) => format!("snapshot {name} is there already: {state}"),
        (false, "ready") => format!("cut snapshot {name} of volume {id}"),
        (false, state) => format!("cut snapshot {name} of volume {id}: {state}"),
    };
    tell(output, &text, &Done { changed: !there, snapshot: Some(cut), ..Done::default() })
}

/// Deletes a volume or a snapshot of a class.
pub(crate) fn delete(id: &VolumeId, delete: &Delete, output: &mut Output<'_>) -> Result<()> {
    let what = if delete.snapshot { "snapshot" } else { "volume" };
    let tried = format!("delete {what} {id}");
    refuse(&[(delete.discard, "--discard"), (delete.zero, "--zero")], &tried)?;
    let storage = Storage::open(&delete.place)?;
    let there = match delete.snapshot {
        true => storage.snapshots()?.iter().any(|cut| cut.id == id.as_str()),
        false => storage.volume(id)?.is_some(),
    };
    match (there, delete.snapshot) {
        (false, _) if delete.if_exists => {
            return tell(output, &format!("{what} {id} is not there"), &Done::default());
        }
        (false, _) => return Err(not_there(&tried, what, id).into()),
        (true, true) => storage.delete_snapshot(&id.as_str().parse()?)?,
        (true, false) => storage.delete(id)?,
    }
    tell(output, &format!("deleted {what} {id}"), &Done { changed: true, ..Done::default() })
}

fn not_there(tried: &str, what: &str, id: &VolumeId) -> Error {
    Error::new(Kind::NotFound, tried).with_answer(format!("there is no {what} {id} on this node"))
}

/// Mounts a volume of a class.
pub(crate) fn mount(mount: &Mount, output: &mut Output<'_>) -> Result<()> {
    let directory = absolute(&mount.directory)?;
    Storage::open(&mount.place)?.mount(&mount.volume, &directory, mount.fs_type)?;
    let text = format!("volume {} is mounted at {}", mount.volume, directory.display());
    tell(output, &text, &Done { changed: true, ..Done::default() })
}

/// Takes a volume of a class off a directory.
pub(crate) fn unmount(unmount: &Unmount, output: &mut Output<'_>) -> Result<()> {
    let directory = absolute(&unmount.directory)?;
    Storage::open(&unmount.place)?.unmount(&unmount.volume, &directory)?;
    let text = format!("volume {} is not mounted at {}", unmount.volume, directory.display());
    tell(output, &text, &Done { changed: true, ..Done::default() })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("finding where {} is", path.display()))
}
