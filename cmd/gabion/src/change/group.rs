//! Groups.

use anyhow::Result;
use lvm::metadata::{Lv, Vg};
use lvm::ops::{Group, NewGroup, OldContent};
use lvm::{DevicePath, Error, Kind, VgName};

use super::{Done, Repeat, Settings, devices_of, group, handle, made, pool_now, tell, wait_for_sync};
use crate::cli::GroupCommand;
use crate::host::{Host, OWNER};
use crate::output::Output;

/// Does what is asked to a group.
pub(crate) fn run(command: &GroupCommand, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let of = |name: &VgName, more: &[DevicePath], verb: &str| {
        group(&Host::read()?, name, more, settings, &format!("{verb} group {name}"))
    };
    match command {
        GroupCommand::Create { group, devices, wipe, if_absent } => {
            create(group, devices, old_content(*wipe), Repeat::allowed_if(*if_absent), settings, output)
        }
        GroupCommand::Extend { group, devices, wipe } => {
            let held = of(group, devices, "extend")?;
            let changed = held.extend(devices, old_content(*wipe))?.is_made();
            finish(&held, changed, "extended", "has these disks already", output)
        }
        GroupCommand::Reduce { group, device } => {
            let held = of(group, std::slice::from_ref(device), "reduce")?;
            let changed = held.reduce(device)?.is_made();
            finish(&held, changed, "reduced", "does not have that disk", output)
        }
        GroupCommand::Delete { group, if_exists } => delete(group, *if_exists, settings, output),
        GroupCommand::Adopt { group } => {
            let held = of(group, &[], "adopt")?;
            let changed = held.adopt()?.is_made();
            finish(&held, changed, "adopted", "is Gabion's already", output)
        }
        GroupCommand::Activate { group } => {
            let held = of(group, &[], "activate")?;
            held.activate()?;
            finish(&held, true, "activated", "", output)
        }
        GroupCommand::Deactivate { group } => {
            let held = of(group, &[], "deactivate")?;
            held.deactivate()?;
            finish(&held, true, "deactivated", "", output)
        }
        GroupCommand::Restore { group, wait } => restore(&of(group, &[], "restore")?, *wait, output),
        GroupCommand::Resize { group } => {
            let held = of(group, &[], "resize")?;
            let changed = held.resize_pvs()?.is_made();
            finish(&held, changed, "resized", "uses all of its disks already", output)
        }
        GroupCommand::Recover { group } => recover(&of(group, &[], "recover")?, output),
    }
}

const fn old_content(wipe: bool) -> OldContent {
    if wipe { OldContent::Wipe } else { OldContent::Refuse }
}

fn finish(group: &Group, changed: bool, done: &str, already: &str, output: &mut Output<'_>) -> Result<()> {
    let name = group.label();
    let text = if changed { format!("{done} group {name}") } else { format!("group {name} {already}") };
    tell(output, &text, &Done { changed, pool: pool_now(group, None)?, volume: None })
}

fn create(
    name: &VgName,
    devices: &[DevicePath],
    old_content: OldContent,
    repeat: Repeat,
    settings: Settings,
    output: &mut Output<'_>,
) -> Result<()> {
    let tried = format!("create group {name}");
    let host = Host::read()?;
    // A group of that name anywhere on this host is in the way, so LVM must see it.
    let mut all: Vec<DevicePath> = devices.to_vec();
    for vg in host.view.vgs_named(name.as_str()) {
        all.extend(devices_of(vg)?);
    }
    all.sort_unstable();
    all.dedup();
    let new = NewGroup::new(name.clone(), devices.iter().cloned()).old_content(old_content);
    let (changed, held) = made(handle(all, settings)?.create_group(&new)?, repeat, &tried)?;
    finish(&held, changed, "created", "is there already", output)
}

fn delete(name: &VgName, if_exists: bool, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let host = Host::read()?;
    if if_exists && host.view.vgs_named(name.as_str()).next().is_none() {
        return tell(output, &format!("group {name} is not there"), &Done::default());
    }
    let held = group(&host, name, &[], settings, &format!("delete group {name}"))?;
    let changed = held.remove()?.is_made();
    tell(output, &format!("deleted group {name}"), &Done { changed, ..Done::default() })
}

/// Takes disks back, then loads the tables of the RAID volumes that lie on several disks anew.
fn restore(held: &Group, wait: bool, output: &mut Output<'_>) -> Result<()> {
    let changed = held.restore_missing()?.is_made();
    let vg = held.look()?;
    for lv in refreshable(&vg) {
        held.refresh_volume(&lv.name)?;
    }
    if wait {
        wait_for_sync(held, None)?;
    }
    finish(held, changed, "restored", "misses no disk", output)
}

fn recover(held: &Group, output: &mut Output<'_>) -> Result<()> {
    let name = held.label();
    let tried = format!("recover group {name}");
    // Recovery changes tables of the whole group, so the group must be ours.
    if !held.look()?.has_tag(OWNER) {
        return Err(Error::new(Kind::Foreign, tried)
            .with_answer(format!("group {name} is not Gabion's"))
            .with_advice(format!("first: gabion group adopt {name}"))
            .into());
    }
    let report = held.lvm().recover(held.uuid(), name)?;
    let lines = report.steps.iter().map(ToString::to_string);
    let left = report.remaining.iter().map(|difference| format!("still: {difference}"));
    let lines: Vec<String> = lines.chain(left).chain(report.failures.iter().cloned()).collect();
    let text = match lines.is_empty() {
        true => format!("group {name} is in order"),
        false => format!("group {name}:\n  {}", lines.join("\n  ")),
    };
    let done = Done { changed: !report.steps.is_empty(), pool: pool_now(held, None)?, volume: None };
    tell(output, &text, &done)?;
    if report.is_open() {
        Ok(())
    } else {
        Err(Error::new(Kind::Inconsistent, tried)
            .with_answer("not all of it could be brought in order")
            .into())
    }
}

/// Our volumes with RAID in them, at whatever depth.
fn refreshable(vg: &Vg) -> impl Iterator<Item = &Lv> {
    vg.visible_lvs().filter(|lv| lv.has_tag(OWNER)).filter(|lv| {
        lv.as_raid().is_some()
            || crate::state::parts_below(vg, lv).iter().any(|part| part.as_raid().is_some())
    })
}
