//! `gabion pools`: groups and thin pools, their space and their health.

use devices::Bytes;
use lvm::VgName;
use lvm::dm::{Status, ThinPoolStatus, ThinPoolUse};
use lvm::metadata::{Lv, Pv, Vg, VgFlag};
use serde::Serialize;

use crate::host::{Host, OWNER};
use crate::kind::kind_of;
use crate::output::{Output, Units};
use crate::state::State;
use crate::table::{Align, Table};

/// What gives space to volumes.
#[derive(Debug, Serialize)]
pub(crate) struct Pool {
    /// `GROUP`, or `GROUP/POOL` for a thin pool.
    pub(crate) name: String,
    /// `group` or `thin`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The volume group.
    pub(crate) group: String,
    pub(crate) uuid: String,
    /// How a thin pool's data lie on disks; groups have none of their own.
    pub(crate) layout: Option<String>,
    pub(crate) state: &'static str,
    /// Whether it carries Gabion's tag; what does not is never changed.
    pub(crate) ours: bool,
    pub(crate) size_bytes: u64,
    /// Absent where only the kernel could tell, and it does not run the pool.
    pub(crate) used_bytes: Option<u64>,
    pub(crate) free_bytes: Option<u64>,
    /// Of one copy of a group's metadata, or of a thin pool's metadata volume.
    pub(crate) metadata_size_bytes: Option<u64>,
    pub(crate) metadata_used_bytes: Option<u64>,
    /// The sum of the sizes of a thin pool's volumes, snapshots among them.
    pub(crate) provisioned_bytes: Option<u64>,
    /// The unit in which space is given out: an extent or a chunk.
    pub(crate) unit_bytes: u64,
    /// Volumes in it that users see; thin volumes count in their pool alone.
    pub(crate) volumes: usize,
    pub(crate) tags: Vec<String>,
    /// The disks of a group.
    pub(crate) devices: Vec<Device>,
}

/// A PV.
#[derive(Debug, Serialize)]
pub(crate) struct Device {
    /// Absent when it is missing.
    pub(crate) path: Option<String>,
    pub(crate) uuid: String,
    pub(crate) size_bytes: u64,
    pub(crate) free_bytes: u64,
    /// `ok`, `missing`, or `not-restored`: it is back, and the group does not use it yet.
    pub(crate) state: &'static str,
}

#[derive(Serialize)]
struct Body {
    pools: Vec<Pool>,
}

/// Shows all pools, or those of one group.
pub(crate) fn show(host: &Host, group: Option<&VgName>, output: &mut Output<'_>) -> anyhow::Result<()> {
    let pools = match group {
        Some(group) => of_group(host, host.vg(group.as_str(), &format!("show the pools of group {group}"))?),
        None => host.view.vgs.iter().flat_map(|vg| of_group(host, vg)).collect(),
    };
    output.show(&Body { pools }, |body, units| for_people(&body.pools, units))
}

/// The group, then its thin pools.
pub(crate) fn of_group(host: &Host, vg: &Vg) -> Vec<Pool> {
    std::iter::once(group(vg)).chain(vg.thin_pools().map(|pool| thin_pool(host, vg, pool))).collect()
}

fn group(vg: &Vg) -> Pool {
    let usage = vg.usage();
    let size = bytes(vg, vg.total_extents());
    let free = bytes(vg, usage.free());
    let metadata = metadata_of(vg);
    Pool {
        name: vg.name.to_string(),
        kind: "group",
        group: vg.name.to_string(),
        uuid: vg.uuid.to_string(),
        layout: None,
        state: group_state(vg),
        ours: vg.has_tag(OWNER),
        size_bytes: size.get(),
        used_bytes: Some(size.saturating_sub(free).get()),
        free_bytes: Some(free.get()),
        metadata_size_bytes: metadata.map(|(_, size)| size.get()),
        metadata_used_bytes: metadata.map(|(used, _)| used.get()),
        provisioned_bytes: None,
        unit_bytes: vg.extent_size.bytes().get(),
        volumes: vg.visible_lvs().filter(|lv| lv.as_thin_pool().is_none() && lv.as_thin().is_none()).count(),
        tags: vg.tags.iter().map(ToString::to_string).collect(),
        devices: vg.pvs.iter().map(|pv| device(vg, pv, bytes(vg, usage.free_on(pv.uuid)))).collect(),
    }
}

fn device(vg: &Vg, pv: &Pv, free: Bytes) -> Device {
    Device {
        path: pv.device.as_ref().map(|device| device.path.display().to_string()),
        uuid: pv.uuid.to_string(),
        size_bytes: bytes(vg, pv.pe_count).get(),
        free_bytes: free.get(),
        state: match &pv.device {
            None => "missing",
            Some(_) if pv.is_missing() => "not-restored",
            Some(_) => "ok",
        },
    }
}

fn group_state(vg: &Vg) -> &'static str {
    if !vg.is_complete() {
        "partial"
    } else if vg.has(&VgFlag::Exported) {
        "exported"
    } else {
        "ok"
    }
}

fn thin_pool(host: &Host, vg: &Vg, lv: &Lv) -> Pool {
    let size = bytes(vg, lv.extents());
    let parts = lv.as_thin_pool();
    let part = |name: &lvm::LvName| vg.lv(name.as_str());
    let metadata_size = parts.and_then(|pool| part(&pool.metadata)).map(|lv| bytes(vg, lv.extents()));
    let chunk = parts.and_then(|pool| pool.chunk_size.to_bytes()).unwrap_or_default();
    let fill = pool_use(host, vg, lv);
    let used = fill.and_then(|fill| chunk.checked_mul(fill.data.used()));
    let metadata_used = fill.and_then(|fill| Bytes::kib(4).checked_mul(fill.metadata.used()));
    let thins: Vec<&Lv> = vg.thins_of(&lv.name).collect();
    let provisioned = thins.iter().fold(0_u64, |sum, lv| sum.saturating_add(bytes(vg, lv.extents()).get()));
    Pool {
        name: format!("{}/{}", vg.name, lv.name),
        kind: "thin",
        group: vg.name.to_string(),
        uuid: lv.uuid.to_string(),
        layout: parts.and_then(|pool| part(&pool.data)).map(|data| kind_of(vg, data)),
        state: State::of(vg, lv, &host.live).as_word(),
        ours: lv.has_tag(OWNER),
        size_bytes: size.get(),
        used_bytes: used.map(Bytes::get),
        free_bytes: used.map(|used| size.saturating_sub(used).get()),
        metadata_size_bytes: metadata_size.map(Bytes::get),
        metadata_used_bytes: metadata_used.map(Bytes::get),
        provisioned_bytes: Some(provisioned),
        unit_bytes: chunk.get(),
        volumes: thins.len(),
        tags: lv.tags.iter().map(ToString::to_string).collect(),
        devices: Vec::new(),
    }
}

/// What the kernel says about a working thin pool.
pub(crate) fn pool_use<'a>(host: &'a Host, vg: &Vg, lv: &Lv) -> Option<&'a ThinPoolUse> {
    host.live.status(vg, lv, |status| match status {
        Status::ThinPool(ThinPoolStatus::Working(fill)) => Some(fill),
        _ => None,
    })
}

/// Used and usable bytes of the copy of the metadata that has the least room.
///
/// A new text is written beside the old one, so that a text may take up to half of its area, which begins with a
/// header of one sector (`lib/format_text/layout.h` of LVM).
pub(crate) fn metadata_of(vg: &Vg) -> Option<(Bytes, Bytes)> {
    let areas = vg.pvs.iter().filter_map(|pv| pv.device.as_ref()).flat_map(|device| &device.areas);
    areas
        .filter(|area| !area.ignored)
        .filter_map(|area| {
            let usable = Bytes::new(area.size.saturating_sub(Bytes::new(512)).get() / 2);
            Some((area.text?, usable))
        })
        .min_by_key(|(used, usable)| usable.saturating_sub(*used))
}

/// What extents of a group hold.
pub(crate) fn bytes(vg: &Vg, extents: lvm::Extents) -> Bytes {
    vg.extent_size.span(extents).unwrap_or(Bytes::new(u64::MAX))
}

/// A part of a whole in percent with one decimal, rounded down, so that 100 means full.
pub(crate) fn percent(used: u64, whole: u64) -> String {
    let permille = if whole == 0 { 0 } else { u128::from(used) * 1000 / u128::from(whole) };
    format!("{}.{}%", permille / 10, permille % 10)
}

fn for_people(pools: &[Pool], units: Units) -> String {
    if pools.is_empty() {
        return "There are no pools here. `gabion group create NAME DISK…` makes a group of disks.\n"
            .to_owned();
    }
    let mut table = Table::new(&[
        ("POOL", Align::Left),
        ("TYPE", Align::Left),
        ("LAYOUT", Align::Left),
        ("SIZE", Align::Right),
        ("FREE", Align::Right),
        ("USED", Align::Right),
        ("META", Align::Right),
        ("VOLUMES", Align::Right),
        ("STATE", Align::Left),
        ("OWNER", Align::Left),
    ]);
    let size = |bytes: Option<u64>| bytes.map(|bytes| units.size(Bytes::new(bytes))).unwrap_or_default();
    let part = |used: Option<u64>, whole: Option<u64>| match (used, whole) {
        (Some(used), Some(whole)) => percent(used, whole),
        _ => String::new(),
    };
    for pool in pools {
        table.row([
            pool.name.clone(),
            pool.kind.to_owned(),
            pool.layout.clone().unwrap_or_default(),
            size(Some(pool.size_bytes)),
            size(pool.free_bytes),
            part(pool.used_bytes, Some(pool.size_bytes)),
            part(pool.metadata_used_bytes, pool.metadata_size_bytes),
            pool.volumes.to_string(),
            pool.state.to_owned(),
            owner(pool.ours).to_owned(),
        ]);
    }
    let mut text = table.render();
    if pools.iter().any(|pool| !pool.ours) {
        text.push_str(
            "\nWhat is not Gabion's is shown and never changed; `gabion group adopt` takes a group over.\n",
        );
    }
    text
}

/// Whose a group or a volume is.
pub(crate) const fn owner(ours: bool) -> &'static str {
    if ours { "gabion" } else { "other" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{host, host_at_rest};
    use crate::output::Format;

    fn shown(host: &Host, group: Option<&str>, format: Format, units: Units) -> String {
        let mut written = Vec::new();
        let group = group.map(|name| name.parse().unwrap());
        show(host, group.as_ref(), &mut Output::new(format, units, &mut written)).unwrap();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn the_table_shows_groups_with_their_thin_pools() {
        assert_eq!(
            shown(&host(), None, Format::Table, Units::Human),
            "\
POOL        TYPE   LAYOUT      SIZE      FREE   USED   META  VOLUMES  STATE   OWNER
data        group  -       5.94 GiB  4.96 GiB  16.5%      -        6  ok      gabion
data/pool   thin   linear   256 MiB   156 MiB  39.0%  10.7%        2  active  gabion
data/rdata  thin   raid1    128 MiB   128 MiB   0.0%  10.4%        0  active  other

What is not Gabion's is shown and never changed; `gabion group adopt` takes a group over.
"
        );
    }

    #[test]
    fn exact_sizes_are_bytes_without_a_unit() {
        let text = shown(&host(), Some("data"), Format::Table, Units::Exact);
        assert!(text.contains("268435456   163577856  39.0%"), "{text}");
    }

    #[test]
    fn what_only_the_kernel_knows_is_a_dash_when_it_is_silent() {
        let text = shown(&host_at_rest(), None, Format::Table, Units::Human);
        assert!(
            text.contains("data/pool   thin   linear   256 MiB         -      -     -        2  inactive"),
            "{text}"
        );
    }

    #[test]
    fn programs_get_bytes_and_nulls() {
        let document: serde_json::Value =
            serde_json::from_str(&shown(&host_at_rest(), None, Format::Json, Units::Human)).unwrap();
        assert_eq!(document["schema"], "gabion.dev/cli/v1");
        let (group, pool) = (&document["pools"][0], &document["pools"][1]);
        assert_eq!(
            (group["type"].as_str(), group["size_bytes"].as_u64()),
            (Some("group"), Some(6_379_536_384))
        );
        assert_eq!(group["devices"].as_array().map(Vec::len), Some(3));
        assert_eq!(group["devices"][0]["state"], "ok");
        assert_eq!((pool["name"].as_str(), pool["type"].as_str()), (Some("data/pool"), Some("thin")));
        assert_eq!(
            (pool["size_bytes"].as_u64(), pool["unit_bytes"].as_u64()),
            (Some(256 << 20), Some(64 << 10))
        );
        assert_eq!(pool["provisioned_bytes"].as_u64(), Some(2 << 30));
        assert!(pool["used_bytes"].is_null() && pool["layout"] == "linear");
        let document: serde_json::Value =
            serde_json::from_str(&shown(&host(), None, Format::Json, Units::Human)).unwrap();
        assert_eq!(document["pools"][1]["used_bytes"].as_u64(), Some(1600 * 65536));
        assert_eq!(document["pools"][1]["metadata_used_bytes"].as_u64(), Some(221 * 4096));
        assert_eq!(document["pools"][1]["metadata_size_bytes"].as_u64(), Some(8 << 20));
    }

    #[test]
    fn a_host_without_groups_says_how_to_make_one() {
        assert!(shown(&Host::default(), None, Format::Table, Units::Human).contains("gabion group create"));
        let document: serde_json::Value =
            serde_json::from_str(&shown(&Host::default(), None, Format::Json, Units::Human)).unwrap();
        assert_eq!(document["pools"], serde_json::json!([]));
    }

    #[test]
    fn a_group_that_is_not_there_is_not_found() {
        let mut written = Vec::new();
        let mut output = Output::new(Format::Table, Units::Human, &mut written);
        let error = show(&host(), Some(&"nowhere".parse().unwrap()), &mut output).unwrap_err();
        assert_eq!(crate::failure::exit_of(&error), crate::exit::Exit::NotFound);
    }

    #[test]
    fn percentages_are_rounded_down() {
        assert_eq!(
            (percent(999_999, 1_000_000), percent(1, 1), percent(0, 0)),
            ("99.9%".to_owned(), "100.0%".to_owned(), "0.0%".to_owned())
        );
    }
}
