//! LVM's own word about a set of devices, compared with the library's view field by field.

mod report;
mod segments;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::metadata::{
    AllocationPolicy, Lv, LvFlag, MetadataArea, PvDevice, PvFlag, ReadAhead, Vg, VgFlag, View,
};
use lvm::{ExtentSize, Extents, Tag};

use crate::Sandbox;
use crate::leaves::{self, Leaves};
use report::{Report, Row, bool_word, compare, policy, time};

/// A value for each field of a report, as LVM prints it.
type Fields = Vec<(&'static str, String)>;

/// Checks that the view of the sandbox's devices says of every group what `lvm fullreport` and `vgcfgbackup` say.
///
/// # Errors
///
/// If LVM cannot be asked, or says anything else than the view; the error lists every differing field.
pub fn agree(sandbox: &Sandbox) -> Result<()> {
    let view = sandbox.view();
    let mut lines = report_differences(sandbox, &view)?;
    for vg in &view.vgs {
        lines.extend(backup_differences(sandbox, vg)?);
    }
    ensure!(lines.is_empty(), "the view differs from LVM's own word:\n{}", lines.join("\n"));
    Ok(())
}

/// The entries of the group's backup in which the view differs, one line each.
///
/// # Errors
///
/// If LVM cannot be asked.
pub fn backup_differences(sandbox: &Sandbox, vg: &Vg) -> Result<Vec<String>> {
    let theirs = leaves::of_text(&sandbox.backup(vg.name.as_str())?)?;
    let mut ours = leaves::of_vg(vg);
    write_down_devices(vg, &mut ours);
    Ok(leaves::differences(&theirs, &ours))
}

/// A backup is made from what LVM has in memory: devices where it found them just now, and a flag on a PV that it
/// cannot find, before the next commit writes both to the disks.
fn write_down_devices(vg: &Vg, leaves: &mut Leaves) {
    for pv in &vg.pvs {
        let path = |key: &str| format!("{}/physical_volumes/{}/{key}", vg.name, pv.key);
        let device =
            pv.device.as_ref().map_or("[unknown]".to_owned(), |device| device.path.display().to_string());
        leaves.insert(path("device"), format!("\"{device}\""));
        if pv.device.is_none() && !pv.has(&PvFlag::Missing) {
            leaves.entry(path("flags")).or_default().push_str(",\"MISSING\"");
        }
    }
}

/// The fields of `lvm fullreport` in which the view differs, one line each.
///
/// # Errors
///
/// If LVM cannot be asked.
pub fn report_differences(sandbox: &Sandbox, view: &View) -> Result<Vec<String>> {
    let report = Report::ask(sandbox)?;
    let mut lines = Vec::new();
    let uuids = report.vgs.iter().map(|vg| vg.row.text("vg_uuid")).collect::<Result<Vec<_>>>()?;
    let ours: Vec<_> = view.vgs.iter().map(|vg| vg.uuid.to_string()).collect();
    if uuids.len() != ours.len() || !ours.iter().all(|uuid| uuids.contains(&uuid.as_str())) {
        lines.push(format!("groups: LVM {uuids:?}, the view {ours:?}"));
        return Ok(lines);
    }
    for vg in &view.vgs {
        let uuid = vg.uuid.to_string();
        let theirs = report.vgs.iter().find(|theirs| theirs.row.text("vg_uuid").is_ok_and(|own| own == uuid));
        let theirs = theirs.context("the group's report")?;
        compare(&mut lines, &vg.name, &theirs.row, &vg_fields(vg));
        pv_differences(&mut lines, vg, &theirs.pvs)?;
        lv_differences(&mut lines, vg, &theirs.lvs)?;
        segments::differences(&mut lines, vg, &theirs.segments);
    }
    orphan_differences(&mut lines, view, &report.orphans)?;
    Ok(lines)
}

fn bytes(size: ExtentSize, extents: Extents) -> String {
    size.span(extents).map_or("?".to_owned(), |bytes| bytes.get().to_string())
}

fn tags(tags: &[Tag]) -> String {
    let mut tags: Vec<_> = tags.iter().map(ToString::to_string).collect();
    tags.sort();
    tags.join(",")
}

fn or_empty(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn vg_fields(vg: &Vg) -> Fields {
    let size = vg.extent_size;
    let free = vg.free_extents();
    let areas = || vg.pvs.iter().filter_map(|pv| pv.device.as_ref()).flat_map(|device| &device.areas);
    // A snapshot that is being merged is hidden, and counts all the same.
    let snapshots = vg.lvs.iter().filter(|lv| vg.snapshot_with_store(&lv.name).is_some()).count();
    vec![
        ("vg_name", vg.name.to_string()),
        ("vg_uuid", vg.uuid.to_string()),
        ("vg_fmt", or_empty(vg.format.as_deref())),
        ("vg_seqno", vg.seqno.to_string()),
        ("vg_size", bytes(size, vg.total_extents())),
        ("vg_free", bytes(size, free)),
        ("vg_extent_size", size.bytes().get().to_string()),
        ("vg_extent_count", vg.total_extents().get().to_string()),
        ("vg_free_count", free.get().to_string()),
        ("max_lv", vg.max_lv.unwrap_or(0).to_string()),
        ("max_pv", vg.max_pv.unwrap_or(0).to_string()),
        ("pv_count", vg.pvs.len().to_string()),
        ("vg_missing_pv_count", vg.missing_pvs().count().to_string()),
        ("lv_count", vg.visible_lvs().count().to_string()),
        ("snap_count", snapshots.to_string()),
        ("vg_tags", tags(&vg.tags)),
        ("vg_systemid", or_empty(vg.system_id.as_deref())),
        ("vg_lock_type", or_empty(vg.lock_type.as_deref())),
        ("vg_profile", or_empty(vg.profile.as_deref())),
        ("vg_allocation_policy", policy(&vg.allocation_policy)),
        ("vg_mda_count", areas().count().to_string()),
        ("vg_mda_used_count", areas().filter(|area| !area.ignored).count().to_string()),
        ("vg_mda_copies", vg.metadata_copies.map_or("unmanaged".to_owned(), |copies| copies.to_string())),
        ("vg_extendable", bool_word(vg.has(&VgFlag::Resizeable), "extendable")),
        ("vg_exported", bool_word(vg.has(&VgFlag::Exported), "exported")),
        ("vg_partial", bool_word(!vg.is_complete(), "partial")),
        ("vg_permissions", if vg.has(&VgFlag::Write) { "writeable" } else { "read-only" }.to_owned()),
        ("vg_autoactivation", bool_word(!vg.has(&VgFlag::NoAutoactivate), "enabled")),
    ]
}

fn pv_differences(lines: &mut Vec<String>, vg: &Vg, rows: &[Row]) -> Result<()> {
    if rows.len() != vg.pvs.len() {
        lines.push(format!("{}: LVM has {} PVs, the view {}", vg.name, rows.len(), vg.pvs.len()));
        return Ok(());
    }
    for pv in &vg.pvs {
        let row = Row::find(rows, "pv_uuid", &pv.uuid.to_string())?;
        let free = vg.free_on(pv.uuid);
        let used = Extents::new(pv.pe_count.get() - free.get());
        let mut fields: Fields = vec![
            ("pe_start", (pv.pe_start.get() * 512).to_string()),
            ("pv_size", bytes(vg.extent_size, pv.pe_count)),
            ("pv_free", bytes(vg.extent_size, free)),
            ("pv_used", bytes(vg.extent_size, used)),
            ("pv_pe_count", pv.pe_count.get().to_string()),
            ("pv_pe_alloc_count", used.get().to_string()),
            ("pv_tags", tags(&pv.tags)),
            ("pv_ba_start", pv.bootloader_area.map_or(0, |(start, _)| start.get() * 512).to_string()),
            ("pv_ba_size", pv.bootloader_area.map_or(0, |(_, size)| size.get() * 512).to_string()),
            ("pv_allocatable", bool_word(pv.has(&PvFlag::Allocatable), "allocatable")),
            ("pv_exported", bool_word(pv.has(&PvFlag::Exported), "exported")),
            ("pv_missing", bool_word(pv.is_missing(), "missing")),
        ];
        fields.extend(pv.device.as_ref().into_iter().flat_map(device_fields));
        compare(lines, &format!("{}/{}", vg.name, pv.key), row, &fields);
    }
    Ok(())
}

fn device_fields(device: &PvDevice) -> Fields {
    let number = |pick: fn(devices::DeviceNumber) -> u32| {
        device.number.map_or("-1".to_owned(), |n| pick(n).to_string())
    };
    let smallest = device.areas.iter().map(|area| area.size.get()).min().unwrap_or(0);
    vec![
        ("pv_name", device.path.display().to_string()),
        ("dev_size", device.size.get().to_string()),
        ("pv_major", number(|number| number.major)),
        ("pv_minor", number(|number| number.minor)),
        ("pv_mda_count", device.areas.len().to_string()),
        ("pv_mda_used_count", device.areas.iter().filter(|area| !area.ignored).count().to_string()),
        ("pv_mda_size", smallest.to_string()),
        ("pv_mda_free", areas_free(device).to_string()),
    ]
}

/// LVM counts whole sectors, and an area that it ignores has none free.
fn areas_free(device: &PvDevice) -> u64 {
    let free = |area: &MetadataArea| {
        let text = area.text.map_or(0, Bytes::get);
        let max = (area.size.get() - 512) / 2 - 512;
        if area.ignored { 0 } else { max.saturating_sub(text) / 512 * 512 }
    };
    device.areas.iter().map(free).min().unwrap_or(0)
}

fn orphan_differences(lines: &mut Vec<String>, view: &View, rows: &[Row]) -> Result<()> {
    if rows.len() != view.orphans.len() {
        lines.push(format!("orphans: LVM has {}, the view {}", rows.len(), view.orphans.len()));
        return Ok(());
    }
    for orphan in &view.orphans {
        let row = Row::find(rows, "pv_uuid", &orphan.uuid.to_string())?;
        compare(lines, &orphan.device.path.display().to_string(), row, &device_fields(&orphan.device));
    }
    Ok(())
}

fn lv_differences(lines: &mut Vec<String>, vg: &Vg, rows: &[Row]) -> Result<()> {
    // LVM's hidden ties of classic snapshots are no volumes to its reports.
    let ours: Vec<_> = vg.lvs.iter().filter(|lv| lv.as_snapshot().is_none()).collect();
    if rows.len() != ours.len() {
        let names: Vec<_> = rows.iter().map(|row| row.text("lv_name")).collect::<Result<_>>()?;
        lines.push(format!("{}: LVM has the volumes {names:?}, the view {} of them", vg.name, ours.len()));
        return Ok(());
    }
    for lv in ours {
        let row = Row::find(rows, "lv_uuid", &lv.uuid.to_string())?;
        let mut fields = lv_fields(vg, lv);
        fields.extend(segments::relations(vg, lv));
        compare(lines, &format!("{}/{}", vg.name, lv.name), row, &fields);
    }
    Ok(())
}

fn lv_fields(vg: &Vg, lv: &Lv) -> Fields {
    let read_ahead = match lv.read_ahead {
        ReadAhead::Auto => "auto".to_owned(),
        ReadAhead::None => "0".to_owned(),
        ReadAhead::Fixed(sectors) => (sectors.get() * 512).to_string(),
    };
    let number = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
    let mut fields: Fields = vec![
        ("lv_name", segments::marked(vg, &lv.name)),
        ("lv_size", bytes(vg.extent_size, lv.extents())),
        ("seg_count", lv.segments.len().to_string()),
        ("lv_tags", tags(&lv.tags)),
        ("lv_host", or_empty(lv.creation_host.as_deref())),
        ("lv_time", lv.creation_time.map(time).unwrap_or_default()),
        ("lv_profile", or_empty(lv.profile.as_deref())),
        ("lv_read_ahead", read_ahead),
        ("lv_major", number(lv.fixed_major)),
        ("lv_minor", number(lv.fixed_minor)),
        ("lv_skip_activation", bool_word(lv.has(&LvFlag::ActivationSkip), "skip activation")),
        ("lv_fixed_minor", bool_word(lv.has(&LvFlag::FixedMinor), "fixed minor")),
        ("lv_autoactivation", bool_word(!lv.has(&LvFlag::NoAutoactivate), "enabled")),
        ("lv_allocation_locked", bool_word(lv.has(&LvFlag::Locked), "allocation locked")),
    ];
    if lv.allocation_policy != AllocationPolicy::Inherit {
        fields.push(("lv_allocation_policy", policy(&lv.allocation_policy)));
    }
    fields
}
