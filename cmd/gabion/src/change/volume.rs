//! Volumes and snapshots.

use anyhow::Result;
use devices::Bytes;
use lvm::dm::{Dm, SnapshotStatus, SyncAction};
use lvm::metadata::Vg;
use lvm::ops::{
    Added, Change, Extension, NewSnapshot, NewThin, NewThinSnapshot, NewVolume, OnRemove, Scrub, SizeRange,
};
use lvm::{Error, Kind, LvName};

use super::{Done, Repeat, Settings, group, made, tell, volume_now, wait_for_sync};
use crate::classes;
use crate::cli::{Create, Delete, Grow, NewSize, Snapshot, VolumeCommand, VolumeKind, VolumePath, VolumeRef};
use crate::host::Host;
use crate::output::Output;
use crate::progress;

/// Does what is asked to a volume.
pub(crate) fn run(command: &VolumeCommand, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    match command {
        VolumeCommand::Create(create) => match &create.volume {
            VolumeRef::InGroup(volume) => self::create(volume, create, settings, output),
            VolumeRef::InClass(id) => classes::create(id, create, output),
        },
        VolumeCommand::Grow(grow) => match &grow.volume {
            VolumeRef::InGroup(volume) => self::grow(volume, grow, settings, output),
            VolumeRef::InClass(id) => classes::grow(id, grow, output),
        },
        VolumeCommand::Snapshot(snapshot) => match &snapshot.origin {
            VolumeRef::InGroup(origin) => self::snapshot(origin, snapshot, settings, output),
            VolumeRef::InClass(id) => classes::snapshot(id, snapshot, output),
        },
        VolumeCommand::Clone(clone) => classes::clone(clone, output),
        VolumeCommand::Mount(mount) => classes::mount(mount, output),
        VolumeCommand::Unmount(unmount) => classes::unmount(unmount, output),
        VolumeCommand::Restore { snapshot } => restore(snapshot, settings, output),
        VolumeCommand::Delete(delete) => match &delete.volume {
            VolumeRef::InGroup(volume) => self::delete(volume, delete, settings, output),
            VolumeRef::InClass(id) => classes::delete(id, delete, output),
        },
        VolumeCommand::Activate { volume } => activation(volume, Wanted::Active, settings, output),
        VolumeCommand::Deactivate { volume } => activation(volume, Wanted::Inactive, settings, output),
        VolumeCommand::Refresh { volume, wait } => {
            let group =
                group(&Host::read()?, &volume.group, &[], settings, &format!("refresh volume {volume}"))?;
            group.refresh_volume(&volume.name)?;
            if *wait {
                wait_for_sync(&group, Some(&volume.name))?;
            }
            let done = Done { changed: true, volume: volume_now(&group, &volume.name)?, pool: None };
            tell(output, &format!("refreshed volume {volume}"), &done)
        }
        VolumeCommand::Repair { volume, on, wait } => {
            let group =
                group(&Host::read()?, &volume.group, &[], settings, &format!("repair volume {volume}"))?;
            let changed = group.repair_volume(&volume.name, on)?.is_made();
            if *wait {
                wait_for_sync(&group, Some(&volume.name))?;
            }
            let done = Done { changed, volume: volume_now(&group, &volume.name)?, pool: None };
            let text = if changed { "new legs are being filled" } else { "no leg has failed" };
            tell(output, &format!("volume {volume}: {text}"), &done)
        }
        VolumeCommand::Scrub { volume, repair } => scrub(volume, *repair, settings, output),
        VolumeCommand::Adopt { volume } => adopt(volume, settings, output),
    }
}

fn create(volume: &VolumePath, create: &Create, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("create volume {volume}");
    let refuse = |answer: &str| Error::new(Kind::InvalidArgument, &tried).with_answer(answer);
    if create.class.is_some() || create.fs_type.is_some() {
        return Err(refuse("--class and --fs-type mean nothing for a volume of LVM")
            .with_advice("name it without a group if a volume in a class is meant")
            .into());
    }
    let size = SizeRange::at_least(create.size);
    let kind =
        create.kind.unwrap_or(if create.pool.is_some() { VolumeKind::Thin } else { VolumeKind::Linear });
    let layout = kind.layout().map(|kind| create.details.layout(kind, &tried)).transpose()?;
    let repeat = Repeat::allowed_if(create.if_absent);
    let change = match (layout, &create.pool) {
        (Some(_), Some(_)) => return Err(refuse("only a thin volume is in a pool").into()),
        (None, None) => {
            return Err(refuse("a thin volume needs a pool").with_advice("name it with --pool").into());
        }
        (None, Some(_)) if create.details.is_given() => {
            return Err(refuse("a thin volume lies where its pool does").into());
        }
        (Some(layout), None) => {
            let group = group(&Host::read()?, &volume.group, &[], settings, &tried)?;
            let new = NewVolume::new(volume.name.clone(), size).layout(layout);
            let new = create.details.on.iter().cloned().fold(new, NewVolume::on);
            (group.create_volume(&new)?, group)
        }
        (None, Some(pool)) => {
            let group = group(&Host::read()?, &volume.group, &[], settings, &tried)?;
            (group.create_thin(&NewThin::new(pool.clone(), volume.name.clone(), size))?, group)
        }
    };
    let (change, group) = change;
    let (changed, now) = made(change, repeat, &tried)?;
    if create.wait {
        wait_for_sync(&group, Some(&volume.name))?;
    }
    let text = match changed {
        true => format!("created volume {volume}: {} on {}", now.size, now.device.display()),
        false => format!("volume {volume} is there already: {}", now.size),
    };
    tell(output, &text, &Done { changed, volume: volume_now(&group, &volume.name)?, pool: None })
}

impl NewSize {
    /// The size asked for, given the present one.
    pub(crate) fn from(self, now: Bytes, tried: &str) -> Result<SizeRange, Error> {
        let size = match (self.size, self.by) {
            (Some(size), _) => Some(size),
            (None, by) => now.checked_add(by.unwrap_or_default()),
        };
        size.map(SizeRange::at_least).ok_or_else(|| {
            Error::new(Kind::InvalidArgument, tried).with_answer("the new size is more than 64 bits can say")
        })
    }
}

fn grow(volume: &VolumePath, grow: &Grow, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("grow volume {volume}");
    let group = group(&Host::read()?, &volume.group, &[], settings, &tried)?;
    let before = group.volume(&volume.name)?.size;
    let added = if grow.zero_added { Added::Zeroed } else { Added::Untouched };
    let extension = Extension::to(grow.to.from(before, &tried)?).added(added).on(grow.on.iter().cloned());
    let change = group.extend_volume_by(&volume.name, &extension)?;
    let (changed, now) = (change.is_made(), change.into_inner());
    let text = match changed {
        true => format!("grew volume {volume} from {before} to {}", now.size),
        false => format!("volume {volume} is that large already: {before}"),
    };
    tell(output, &text, &Done { changed, volume: volume_now(&group, &volume.name)?, pool: None })
}

fn snapshot(
    origin: &VolumePath,
    snapshot: &Snapshot,
    settings: Settings,
    output: &mut Output<'_>,
) -> Result<()> {
    let tried = format!("snapshot volume {origin} as {}", snapshot.name);
    let name = &LvName::new(&snapshot.name)
        .map_err(|error| Error::new(Kind::InvalidArgument, &tried).with_answer(error.to_string()))?;
    let host = Host::read()?;
    let group = group(&host, &origin.group, &[], settings, &tried)?;
    let vg = host.vg(origin.group.as_str(), &tried)?;
    let thin = vg.lv(origin.name.as_str()).is_some_and(|lv| lv.as_thin().is_some());
    let refuse = |answer: &str, advice: &str| {
        Error::new(Kind::InvalidArgument, &tried).with_answer(answer).with_advice(advice)
    };
    let change = match (thin, snapshot.size) {
        (true, None) => {
            let new = match snapshot.active {
                true => {
                    NewThinSnapshot::clone_of(origin.name.clone(), name.clone(), size_of(vg, &origin.name))
                }
                false => NewThinSnapshot::new(origin.name.clone(), name.clone()),
            };
            group.snapshot_thin(&new)?
        }
        (true, Some(_)) => {
            return Err(refuse("a thin snapshot takes its space from its pool", "leave --size out").into());
        }
        (false, Some(space)) => group.snapshot(&NewSnapshot::new(
            origin.name.clone(),
            name.clone(),
            SizeRange::at_least(space),
        ))?,
        (false, None) => {
            // A volume that does not exist is told as such, not as a missing option.
            group.volume(&origin.name)?;
            let advice = "give it with --size; what changes must fit, or the snapshot is lost";
            return Err(refuse("a snapshot of a thick volume needs space of its own", advice).into());
        }
    };
    let (changed, _) = made(change, Repeat::allowed_if(snapshot.if_absent), &tried)?;
    let text = match changed {
        true => format!("cut snapshot {}/{name} of volume {origin}", origin.group),
        false => format!("snapshot {}/{name} is there already", origin.group),
    };
    tell(output, &text, &Done { changed, volume: volume_now(&group, name)?, pool: None })
}

fn size_of(vg: &Vg, name: &LvName) -> SizeRange {
    let extents = vg.lv(name.as_str()).map(lvm::metadata::Lv::extents).unwrap_or_default();
    SizeRange::at_least(crate::pools::bytes(vg, extents))
}

fn restore(snapshot: &VolumePath, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("restore snapshot {snapshot}");
    let host = Host::read()?;
    let group = group(&host, &snapshot.group, &[], settings, &tried)?;
    let vg = host.vg(snapshot.group.as_str(), &tried)?;
    let origin = vg.snapshot_with_store(&snapshot.name).and_then(|tie| vg.lv(tie.origin.as_str()));
    let merge = || {
        let status = Dm::open().ok()?.merge_status(&vg.uuid, &origin?.uuid).ok()??;
        let SnapshotStatus::Valid { used, metadata, .. } = status else { return None };
        let left = used.checked_sub(metadata)?;
        Some(format!("{snapshot}: {left} left to copy back"))
    };
    let now = progress::during(|| group.restore_snapshot(&snapshot.name), merge)?;
    let text = format!("restored volume {}/{} from snapshot {snapshot}", snapshot.group, now.name);
    tell(output, &text, &Done { changed: true, volume: volume_now(&group, &now.name)?, pool: None })
}

fn delete(volume: &VolumePath, delete: &Delete, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    if delete.snapshot {
        return Err(Error::new(Kind::InvalidArgument, format!("delete volume {volume}"))
            .with_answer("--snapshot means nothing in a group, where one name is one volume")
            .into());
    }
    let content = match (delete.discard, delete.zero) {
        (true, _) => OnRemove::Discard,
        (_, true) => OnRemove::Zero,
        _ => OnRemove::Keep,
    };
    remove(volume, "volume", content, delete.if_exists, settings, output)
}

/// Removes a volume or a thin pool.
pub(super) fn remove(
    path: &VolumePath,
    what: &str,
    content: OnRemove,
    if_exists: bool,
    settings: Settings,
    output: &mut Output<'_>,
) -> Result<()> {
    let tried = format!("delete {what} {path}");
    let host = Host::read()?;
    let absent = host.view.vgs_named(path.group.as_str()).next().is_none();
    if absent && if_exists {
        return tell(output, &format!("{what} {path} is not there"), &Done::default());
    }
    let group = group(&host, &path.group, &[], settings, &tried)?;
    match group.remove_volume(&path.name, content)? {
        Change::Made(()) => {
            tell(output, &format!("deleted {what} {path}"), &Done { changed: true, ..Done::default() })
        }
        Change::Already(()) if if_exists => {
            tell(output, &format!("{what} {path} is not there"), &Done::default())
        }
        Change::Already(()) => Err(Error::new(Kind::NotFound, tried)
            .with_answer(format!("group {} has no volume {}", path.group, path.name))
            .with_advice("add --if-exists where that is a success")
            .into()),
    }
}

/// Whether a volume is to be in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Active,
    Inactive,
}

fn activation(
    volume: &VolumePath,
    wanted: Wanted,
    settings: Settings,
    output: &mut Output<'_>,
) -> Result<()> {
    let verb = if wanted == Wanted::Active { "activate" } else { "deactivate" };
    let group = group(&Host::read()?, &volume.group, &[], settings, &format!("{verb} volume {volume}"))?;
    let changed = match wanted {
        Wanted::Active => group.activate_volume(&volume.name)?.is_made(),
        Wanted::Inactive => group.deactivate_volume(&volume.name)?.is_made(),
    };
    let text = match (changed, wanted) {
        (true, _) => format!("{verb}d volume {volume}"),
        (false, Wanted::Active) => format!("volume {volume} is active already"),
        (false, Wanted::Inactive) => format!("volume {volume} is inactive already"),
    };
    tell(output, &text, &Done { changed, volume: volume_now(&group, &volume.name)?, pool: None })
}

fn scrub(volume: &VolumePath, repair: bool, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("scrub volume {volume}");
    let group = group(&Host::read()?, &volume.group, &[], settings, &tried)?;
    group.scrub_volume(&volume.name, if repair { Scrub::Repair } else { Scrub::Check })?;
    let status = || -> Result<_, Error> {
        let seen = group.look()?;
        let Some(lv) = seen.lv(volume.name.as_str()) else { return Ok(None) };
        Dm::open()?.raid_health(&seen.uuid, &lv.uuid)
    };
    progress::until_done(|| {
        let running =
            status()?.filter(|raid| matches!(raid.action, Some(SyncAction::Check | SyncAction::Repair)));
        let left = running.map(|raid| format!("{volume}: {} of {} compared", raid.synced, raid.sync_end));
        Ok::<_, Error>(left)
    })?;
    let found = status()?.and_then(|raid| raid.mismatches);
    let text = match (found, repair) {
        (Some(0), _) => format!("the copies of volume {volume} agree"),
        (Some(count), false) => format!("{count} sectors of volume {volume} differ between its copies"),
        (Some(count), true) => format!("made good {count} sectors of volume {volume}"),
        (None, _) => format!("compared the copies of volume {volume}"),
    };
    tell(output, &text, &Done { changed: repair, volume: volume_now(&group, &volume.name)?, pool: None })
}

fn adopt(volume: &VolumePath, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("adopt volume {volume}");
    let host = Host::read()?;
    let vg = host.vg(volume.group.as_str(), &tried)?;
    // The handle knows no owner: the volume does not carry the tag yet.
    let lvm = super::handle_of_anybody(super::devices_of(vg)?, settings)?;
    let ours = vg.has_tag(crate::host::OWNER);
    if !ours {
        return Err(Error::new(Kind::Foreign, tried)
            .with_answer(format!("group {} is not Gabion's", volume.group))
            .with_advice(format!("first: gabion group adopt {}", volume.group))
            .into());
    }
    super::unambiguous(&host, vg, &tried)?;
    let group = lvm.group_by_uuid(vg.uuid)?;
    let changed = group.tag_volume(&volume.name, &[super::owner()?], &[])?.is_made();
    let text = if changed {
        format!("adopted volume {volume}")
    } else {
        format!("volume {volume} is Gabion's already")
    };
    tell(output, &text, &Done { changed, volume: volume_now(&group, &volume.name)?, pool: None })
}
