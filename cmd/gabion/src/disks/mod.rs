//! `gabion devices`: every block device, what it is, and whether it may be used.

mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use devices::Bytes;
use devices::discovery::{Discovery, Disk, DiskType, Inventory};
use devices::eligibility::{Assessor, Eligibility, Policy, Reason};
use serde::Serialize;

use crate::cli::{DevicesArguments, DevicesCommand};
use crate::output::{Output, Units};
use crate::table::{Align, Table};
use view::Device;

#[derive(Serialize)]
struct Body {
    devices: Vec<Device>,
}

/// Runs `gabion devices`.
pub(crate) fn run(arguments: &DevicesArguments, output: &mut Output<'_>) -> Result<()> {
    if let Some(DevicesCommand::Watch { limit }) = arguments.command {
        return watch::watch(limit.map(Duration::from_secs), output);
    }
    let inventory = Discovery::host().inventory()?;
    let assessor = Assessor::new(Policy::default().with_minimum_size(arguments.min_size));
    let mut judged: Vec<(&Disk, Eligibility)> = if arguments.devices.is_empty() {
        let mut all = assessor.assess_all(&inventory);
        all.retain(|(disk, _)| arguments.all || is_shown(disk));
        all
    } else {
        let chosen: Result<Vec<&Disk>, devices::Error> =
            arguments.devices.iter().map(|path| find(&inventory, path)).collect();
        chosen?.into_iter().map(|disk| (disk, assessor.assess(&inventory, disk))).collect()
    };
    name_groups(&mut judged);
    let devices: Vec<Device> =
        judged.iter().map(|(disk, eligibility)| Device::new(&inventory, disk, eligibility)).collect();
    output.show(&Body { devices }, |body, units| for_people(&body.devices, units))
}

/// What a person wants to see unasked: not the loop devices that no file is behind, and not memory disks.
fn is_shown(disk: &Disk) -> bool {
    !matches!(disk.kind, DiskType::Loop(None) | DiskType::Ram)
}

/// A device by its path, any link to it, or the kernel's name.
fn find<'a>(inventory: &'a Inventory, wanted: &Path) -> Result<&'a Disk, devices::Error> {
    match wanted.to_str().and_then(|name| inventory.by_name(name)) {
        Some(disk) => Ok(disk),
        None => inventory.at(wanted),
    }
}

/// Names the groups of PVs of which no volume is active; only LVM's metadata tell them.
fn name_groups(judged: &mut [(&Disk, Eligibility)]) {
    let nameless = |eligibility: &Eligibility| eligibility.reasons().contains(&Reason::LvmPv { group: None });
    let paths: Vec<PathBuf> = judged
        .iter()
        .filter(|(_, eligibility)| nameless(eligibility))
        .map(|(disk, _)| disk.path.clone())
        .collect();
    if paths.is_empty() {
        return;
    }
    let metadata = lvm::metadata::read(paths, lvm::metadata::Options::default());
    for (disk, eligibility) in judged {
        let holds = |pv: &lvm::metadata::Pv| {
            pv.device.as_ref().is_some_and(|device| device.number == Some(disk.number))
        };
        if let Some(vg) = metadata.vgs.iter().find(|vg| vg.pvs.iter().any(holds)) {
            eligibility.name_group(vg.name.as_str());
        }
    }
}

fn for_people(devices: &[Device], units: Units) -> String {
    let mut table = Table::new(&[
        ("DEVICE", Align::Left),
        ("TYPE", Align::Left),
        ("SIZE", Align::Right),
        ("BUS", Align::Left),
        ("MODEL", Align::Left),
        ("IDENTITY", Align::Left),
        ("USABLE", Align::Left),
        ("WHY NOT", Align::Left),
    ]);
    for device in devices {
        let reasons: Vec<&str> = device.reasons.iter().map(|reason| reason.text.as_str()).collect();
        table.row([
            device.path.clone(),
            device.kind.clone(),
            units.size(Bytes::new(device.size_bytes)),
            device.transport.unwrap_or_default().to_owned(),
            device.model.clone().unwrap_or_default(),
            device.key.clone().unwrap_or_default(),
            device.usable.to_owned(),
            reasons.join("; "),
        ]);
    }
    table.render()
}
