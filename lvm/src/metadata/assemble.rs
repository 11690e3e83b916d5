//! From what each device holds to one view: newest metadata, PVs on their devices, and what does not fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use devices::Bytes;

use super::committed::Committed;
use super::label::Label;
use super::scan::{Content, Found, Scan};
use super::{Defect, OrphanPv, Problem, Pv, PvDevice, PvFlag, Vg, View};
use crate::Uuid;

/// A device with a good label.
struct Labelled<'a> {
    path: &'a Path,
    scan: &'a Scan,
    label: &'a Label,
}

/// A copy of a group's metadata.
struct Copy<'a> {
    path: &'a Path,
    /// The PV that it lies on.
    pv: Uuid,
    /// Where its area begins.
    start: Bytes,
    text: &'a Arc<Committed>,
}

/// Builds the view of all devices, given in the caller's order.
pub(super) fn assemble(found: &[(PathBuf, Found)]) -> View {
    let mut problems = Vec::new();
    let mut devices = Vec::new();
    for (path, found) in found {
        match found {
            Found::Scan(scan) => {
                report_areas(path, scan, &mut problems);
                match &scan.label {
                    Ok(Some(label)) => devices.push(Labelled { path, scan, label }),
                    Ok(None) => {}
                    Err(reason) => {
                        problems.push(Problem::BadLabel { device: path.clone(), reason: reason.clone() });
                    }
                }
            }
            Found::Suspended => problems.push(Problem::Suspended { device: path.clone() }),
            Found::Unreadable(error) => {
                problems.push(Problem::Unreadable { device: path.clone(), error: Arc::clone(error) });
            }
        }
    }
    let devices = without_duplicates(devices, &mut problems);
    let mut vgs = newest_vgs(&devices, &mut problems);
    vgs.sort_by(|a, b| (&a.name, a.uuid).cmp(&(&b.name, b.uuid)));
    report_names(&vgs, &mut problems);
    report_double_claims(&vgs, &mut problems);
    for vg in &vgs {
        report_pvs(vg, &devices, &mut problems);
    }
    let orphans = orphans(&vgs, &devices, &mut problems);
    View { vgs, orphans, problems }
}

fn report_areas(path: &Path, scan: &Scan, problems: &mut Vec<Problem>) {
    for area in &scan.areas {
        let (device, start) = (path.to_owned(), area.area.start);
        match &area.content {
            Content::BadHeader(reason) => {
                problems.push(Problem::BadHeader { device, start, reason: reason.clone() });
            }
            Content::BadText(reason) => {
                problems.push(Problem::BadText { device, start, reason: reason.clone() });
            }
            Content::Unused if area.area.ignored => problems.push(Problem::IgnoredArea { device, start }),
            Content::Unused | Content::Text(..) => {}
        }
    }
}

impl Labelled<'_> {
    fn copies(&self) -> impl Iterator<Item = Copy<'_>> {
        self.scan.areas.iter().filter_map(|area| match &area.content {
            Content::Text(text) => {
                let (path, pv, start) = (self.path, self.label.uuid, area.area.start);
                Some(Copy { path, pv, start, text })
            }
            _ => None,
        })
    }

    /// How well this device fits as the bearer of its PV, where several carry it: newest metadata first, then the size
    /// that those know, then the path where LVM last saw it.
    fn fitness(&self) -> (u64, bool, bool) {
        let newest = self.copies().max_by_key(|copy| copy.text.seqno);
        let Some(copy) = newest else { return (0, false, false) };
        let fitness = copy.text.with_vg(|vg| {
            let pv = vg.pv(self.label.uuid);
            let size = pv.and_then(|pv| pv.dev_size).and_then(devices::Sectors::to_bytes);
            let hint = pv.and_then(|pv| pv.hint.as_deref()).map(Path::new);
            (copy.text.seqno, size == Some(self.scan.size), hint == Some(self.path))
        });
        // The damage is told when the group is looked for.
        fitness.unwrap_or_default()
    }

    fn pv_device(&self) -> PvDevice {
        PvDevice {
            path: self.path.to_owned(),
            number: self.scan.number,
            size: self.scan.size,
            label_size: self.label.device_size,
            areas: self.scan.areas.iter().map(|area| area.area.clone()).collect(),
        }
    }
}

/// Keeps one device for each PV.
fn without_duplicates<'a>(devices: Vec<Labelled<'a>>, problems: &mut Vec<Problem>) -> Vec<Labelled<'a>> {
    let mut kept: Vec<Labelled<'a>> = Vec::new();
    for device in devices {
        let Some(rival) = kept.iter_mut().find(|kept| kept.label.uuid == device.label.uuid) else {
            kept.push(device);
            continue;
        };
        let loser =
            if device.fitness() > rival.fitness() { std::mem::replace(rival, device) } else { device };
        let (used, other) = (rival.path.to_owned(), loser.path.to_owned());
        problems.push(Problem::DuplicatePv { pv: rival.label.uuid, used, other });
    }
    kept
}

/// The newest metadata of each group; older and differing copies are problems.
fn newest_vgs(devices: &[Labelled<'_>], problems: &mut Vec<Problem>) -> Vec<Arc<Vg>> {
    let mut groups: BTreeMap<Uuid, Vec<Copy<'_>>> = BTreeMap::new();
    for copy in devices.iter().flat_map(Labelled::copies) {
        groups.entry(copy.text.vg).or_default().push(copy);
    }
    groups.into_values().filter_map(|copies| newest_vg(copies, devices, problems)).collect()
}

/// The newest of a group's copies that can be understood, with its PVs on their devices.
fn newest_vg(
    mut copies: Vec<Copy<'_>>,
    devices: &[Labelled<'_>],
    problems: &mut Vec<Problem>,
) -> Option<Arc<Vg>> {
    loop {
        // The first of the newest, in the order of the devices.
        let newest = Arc::clone(copies.iter().rev().max_by_key(|copy| copy.text.seqno)?.text);
        match newest
            .with_vg(|vg| names_its_bearer(vg, &copies, &newest).map(|()| on_devices(vg, devices)))
            .flatten()
        {
            Ok(vg) => {
                report_copies(&copies, &newest, problems);
                return Some(vg);
            }
            Err(reason) => {
                let (bad, good) = copies.into_iter().partition(|copy| copy.text.key == newest.key);
                copies = good;
                problems.extend(Vec::into_iter(bad).map(|copy: Copy<'_>| Problem::BadText {
                    device: copy.path.to_owned(),
                    start: copy.start,
                    reason: reason.clone(),
                }));
            }
        }
    }
}

/// LVM writes a group's text only to PVs that the text names. One that lies on others alone is no word about the group,
/// however new it says that it is: any disk could bear it.
fn names_its_bearer(vg: &Vg, copies: &[Copy<'_>], text: &Committed) -> Result<(), Defect> {
    let mut bearers = copies.iter().filter(|copy| copy.text.key == text.key);
    if bearers.any(|copy| vg.pv(copy.pv).is_some()) {
        return Ok(());
    }
    let what = "it does not name the PV that it lies on".to_owned();
    Err(Defect::Meaning { place: vg.name.to_string(), what })
}

fn report_copies(copies: &[Copy<'_>], newest: &Committed, problems: &mut Vec<Problem>) {
    for copy in copies {
        let (device, vg, seqno) = (copy.path.to_owned(), newest.vg, copy.text.seqno);
        if seqno < newest.seqno {
            problems.push(Problem::OutdatedCopy { device, vg, seqno, newest: newest.seqno });
        } else if copy.text.key != newest.key {
            problems.push(Problem::DifferingCopies { device, vg, seqno });
        }
    }
}

/// The group with its PVs on the devices that carry them. It is copied only where an older view has it with others.
fn on_devices(vg: &mut Arc<Vg>, devices: &[Labelled<'_>]) -> Arc<Vg> {
    let place = |pv: &Pv| {
        let device = devices.iter().find(|device| device.label.uuid == pv.uuid);
        device.map(Labelled::pv_device)
    };
    let places: Vec<Option<PvDevice>> = vg.pvs.iter().map(place).collect();
    if !vg.pvs.iter().map(|pv| &pv.device).eq(&places) {
        let vg = Arc::make_mut(vg);
        for (pv, device) in vg.pvs.iter_mut().zip(places) {
            pv.device = device;
        }
    }
    Arc::clone(vg)
}

fn report_names(vgs: &[Arc<Vg>], problems: &mut Vec<Problem>) {
    for same in vgs.chunk_by(|a, b| a.name == b.name) {
        if let [first, _, ..] = same {
            let vgs = same.iter().map(|vg| vg.uuid).collect();
            problems.push(Problem::SameName { name: first.name.clone(), vgs });
        }
    }
}

fn report_double_claims(vgs: &[Arc<Vg>], problems: &mut Vec<Problem>) {
    let mut claims: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for vg in vgs {
        for pv in &vg.pvs {
            claims.entry(pv.uuid).or_default().push(vg.uuid);
        }
    }
    let double = claims.into_iter().filter(|(_, vgs)| vgs.len() > 1);
    problems.extend(double.map(|(pv, vgs)| Problem::ClaimedTwice { pv, vgs }));
}

/// Tells of PVs that are missing, flagged, or of another size than the group knows.
fn report_pvs(vg: &Vg, devices: &[Labelled<'_>], problems: &mut Vec<Problem>) {
    for pv in &vg.pvs {
        let Some(device) = devices.iter().find(|device| device.label.uuid == pv.uuid) else {
            problems.push(Problem::MissingPv { vg: vg.uuid, pv: pv.uuid, hint: pv.hint.clone() });
            continue;
        };
        if pv.has(&PvFlag::Missing) {
            let device = device.path.to_owned();
            problems.push(Problem::FlaggedMissing { vg: vg.uuid, pv: pv.uuid, device });
        }
        report_size(pv, vg.extent_size, device, problems);
    }
}

/// Compares the device with what the group knows of it: a whole extent more can be used, an end too early cannot.
fn report_size(pv: &Pv, extent_size: crate::ExtentSize, device: &Labelled<'_>, problems: &mut Vec<Problem>) {
    let actual = device.scan.size;
    let data = extent_size.span(pv.pe_count);
    let end = pv.pe_start.to_bytes().and_then(|start| start.checked_add(data?));
    let recorded = pv.dev_size.and_then(devices::Sectors::to_bytes);
    let (Some(end), Some(recorded)) = (end, recorded) else { return };
    let path = device.path.to_owned();
    if actual < end {
        problems.push(Problem::DeviceShrank { pv: pv.uuid, device: path, recorded, actual });
    } else if actual > recorded && actual.saturating_sub(end) >= extent_size.bytes() {
        problems.push(Problem::DeviceGrew { pv: pv.uuid, device: path, recorded, actual });
    }
}

/// The PVs that no group names.
fn orphans(vgs: &[Arc<Vg>], devices: &[Labelled<'_>], problems: &mut Vec<Problem>) -> Vec<OrphanPv> {
    let mut orphans = Vec::new();
    for device in devices {
        let uuid = device.label.uuid;
        if vgs.iter().any(|vg| vg.pv(uuid).is_some()) {
            continue;
        }
        let in_use_elsewhere = device.label.in_use == Some(true);
        if in_use_elsewhere {
            problems.push(Problem::GroupNotFound { pv: uuid, device: device.path.to_owned() });
        }
        orphans.push(OrphanPv { uuid, device: device.pv_device(), in_use_elsewhere });
    }
    orphans
}
