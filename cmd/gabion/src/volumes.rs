//! `gabion volumes`: volumes, what they are, and on which disks.

use devices::{Bytes, Sectors};
use lvm::VgName;
use lvm::dm::{SnapshotStatus, Status, ThinStatus};
use lvm::metadata::{Lv, Vg};
use serde::Serialize;

use crate::host::{Host, OWNER};
use crate::kind::kind_of;
use crate::output::{Output, Units};
use crate::pools::{bytes, owner, percent};
use crate::state::{State, is_out_of_step, parts_below};
use crate::table::{Align, Table};

/// Which volumes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that users work with.
    #[default]
    Users,
    /// Also thin pools and LVM's hidden volumes.
    All,
}

/// A volume.
#[derive(Debug, Serialize)]
pub(crate) struct Volume {
    /// `GROUP/NAME`.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) uuid: String,
    /// What it is made of; see [`kind_of`].
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Its device, which is there while the volume is active.
    pub(crate) path: String,
    pub(crate) state: &'static str,
    /// How far its copies are in step, of `synced_of_bytes`; absent where nothing is to be synchronised.
    pub(crate) synced_bytes: Option<u64>,
    pub(crate) synced_of_bytes: Option<u64>,
    pub(crate) ours: bool,
    pub(crate) size_bytes: u64,
    /// What a thin volume takes of its pool, or a classic snapshot of its store.
    pub(crate) used_bytes: Option<u64>,
    /// The thin pool that it is in, as `GROUP/POOL`; absent when its space is the group's.
    pub(crate) pool: Option<String>,
    /// The volume that it is a snapshot of, while that one exists.
    pub(crate) origin: Option<String>,
    /// How often it is open; absent when it is not active.
    pub(crate) open_count: Option<u32>,
    pub(crate) tags: Vec<String>,
    /// The disks that hold its data.
    pub(crate) devices: Vec<String>,
}

#[derive(Serialize)]
struct Body {
    volumes: Vec<Volume>,
}

/// Shows all volumes, or those of one group.
pub(crate) fn show(
    host: &Host,
    group: Option<&VgName>,
    which: Which,
    output: &mut Output<'_>,
) -> anyhow::Result<()> {
    let volumes: Vec<Volume> = match group {
        Some(group) => {
            let vg = host.vg(group.as_str(), &format!("show the volumes of group {group}"))?;
            of_group(host, vg, which)
        }
        None => host.view.vgs.iter().flat_map(|vg| of_group(host, vg, which)).collect(),
    };
    output.show(&Body { volumes }, |body, units| for_people(&body.volumes, host.view.vgs.is_empty(), units))
}

/// The volumes of a group in the order of their names.
pub(crate) fn of_group(host: &Host, vg: &Vg, which: Which) -> Vec<Volume> {
    let shown = |lv: &&Lv| match which {
        Which::Users => vg.is_visible(lv) && lv.as_thin_pool().is_none(),
        Which::All => lv.as_snapshot().is_none(),
    };
    let mut lvs: Vec<&Lv> = vg.lvs.iter().filter(shown).collect();
    lvs.sort_by(|a, b| a.name.cmp(&b.name));
    lvs.into_iter().map(|lv| volume(host, vg, lv)).collect()
}

/// One volume.
pub(crate) fn volume(host: &Host, vg: &Vg, lv: &Lv) -> Volume {
    let sync = sync_of(host, vg, lv);
    let thin = lv.as_thin();
    let tie = vg.snapshot_with_store(&lv.name);
    let origin = thin.and_then(|thin| thin.origin.as_ref()).or(tie.map(|tie| &tie.origin));
    let shown = |name: &lvm::LvName| format!("{}/{name}", vg.name);
    Volume {
        name: shown(&lv.name),
        group: vg.name.to_string(),
        uuid: lv.uuid.to_string(),
        kind: kind_of(vg, lv),
        path: format!("/dev/{}/{}", vg.name, lv.name),
        state: State::of(vg, lv, &host.live).as_word(),
        synced_bytes: sync.map(|(done, _)| done.get()),
        synced_of_bytes: sync.map(|(_, whole)| whole.get()),
        ours: lv.has_tag(OWNER),
        size_bytes: tie
            .and_then(|tie| vg.lv(tie.origin.as_str()))
            .map_or_else(|| bytes(vg, lv.extents()), |origin| bytes(vg, origin.extents()))
            .get(),
        used_bytes: used_of(host, vg, lv).map(Bytes::get),
        pool: thin.map(|thin| shown(&thin.pool)),
        origin: origin.map(shown),
        open_count: host.live.open_count(vg, lv),
        tags: lv.tags.iter().map(ToString::to_string).collect(),
        devices: devices_of(vg, lv),
    }
}

fn used_of(host: &Host, vg: &Vg, lv: &Lv) -> Option<Bytes> {
    let used: Sectors = host.live.status(vg, lv, |status| match status {
        Status::Thin(ThinStatus::Mapped { mapped, .. }) => Some(*mapped),
        Status::Snapshot(SnapshotStatus::Valid { used, .. }) => Some(*used),
        _ => None,
    })?;
    used.to_bytes()
}

/// How far the copies of a volume are in step, while they are not: of the part that lags most.
pub(crate) fn sync_of(host: &Host, vg: &Vg, lv: &Lv) -> Option<(Bytes, Bytes)> {
    let of_part = |part: &Lv| {
        host.live.status(vg, part, |status| match status {
            Status::Raid(raid) if is_out_of_step(raid) => {
                Some((raid.synced.to_bytes()?, raid.sync_end.to_bytes()?))
            }
            _ => None,
        })
    };
    let parts = parts_below(vg, lv);
    std::iter::once(lv)
        .chain(parts)
        .filter_map(of_part)
        .max_by_key(|(done, whole)| whole.saturating_sub(*done))
}

fn devices_of(vg: &Vg, lv: &Lv) -> Vec<String> {
    let mut devices: Vec<String> = vg
        .pvs_below(lv)
        .into_iter()
        .map(|uuid| {
            let path = vg.pv(uuid).and_then(|pv| Some(pv.device.as_ref()?.path.display().to_string()));
            path.unwrap_or_else(|| format!("missing:{uuid}"))
        })
        .collect();
    devices.sort_unstable();
    devices
}

fn for_people(volumes: &[Volume], no_groups: bool, units: Units) -> String {
    if volumes.is_empty() {
        let hint = if no_groups {
            "There are no volume groups here. `gabion group create NAME DISK…` makes one."
        } else {
            "There are no volumes here. `gabion volume create GROUP/NAME --size SIZE` makes one."
        };
        return format!("{hint}\n");
    }
    let mut table = Table::new(&[
        ("VOLUME", Align::Left),
        ("TYPE", Align::Left),
        ("SIZE", Align::Right),
        ("USED", Align::Right),
        ("POOL", Align::Left),
        ("ORIGIN", Align::Left),
        ("STATE", Align::Left),
        ("OPEN", Align::Right),
        ("OWNER", Align::Left),
        ("DISKS", Align::Left),
    ]);
    for volume in volumes {
        let state = match (volume.synced_bytes, volume.synced_of_bytes) {
            (Some(done), Some(whole)) => format!("{} {}", volume.state, percent(done, whole)),
            _ => volume.state.to_owned(),
        };
        table.row([
            volume.name.clone(),
            volume.kind.clone(),
            units.size(Bytes::new(volume.size_bytes)),
            volume.used_bytes.map(|used| units.size(Bytes::new(used))).unwrap_or_default(),
            volume.pool.clone().unwrap_or_default(),
            volume.origin.clone().unwrap_or_default(),
            state,
            volume.open_count.map(|count| count.to_string()).unwrap_or_default(),
            owner(volume.ours).to_owned(),
            volume.devices.join(" "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{host, host_at_rest, host_with};
    use crate::output::Format;

    fn shown(host: &Host, which: Which, format: Format) -> String {
        let mut written = Vec::new();
        show(host, None, which, &mut Output::new(format, Units::Human, &mut written)).unwrap();
        String::from_utf8(written).unwrap()
    }

    /// The names and states of all volumes.
    fn states(host: &Host, which: Which) -> Vec<(String, &'static str)> {
        let vg = &host.view.vgs[0];
        of_group(host, vg, which).into_iter().map(|volume| (volume.name, volume.state)).collect()
    }

    fn state(host: &Host, name: &str) -> &'static str {
        states(host, Which::All).into_iter().find(|(full, _)| full == name).unwrap().1
    }

    #[test]
    fn programs_get_every_volume_that_users_see() {
        let document: serde_json::Value =
            serde_json::from_str(&shown(&host(), Which::Users, Format::Json)).unwrap();
        let volumes = document["volumes"].as_array().unwrap();
        let words =
            |key: &str| volumes.iter().map(|volume| volume[key].as_str().unwrap_or("-")).collect::<Vec<_>>();
        assert_eq!(
            words("name"),
            [
                "data/cut",
                "data/half",
                "data/mirror",
                "data/par",
                "data/plain",
                "data/snap",
                "data/thin1",
                "data/wide"
            ]
        );
        assert_eq!(
            words("type"),
            ["thin", "linear", "raid1", "raid5", "linear", "snapshot", "thin", "striped"]
        );
        assert_eq!(words("pool"), ["data/pool", "-", "-", "-", "-", "-", "data/pool", "-"]);
        assert_eq!(words("origin"), ["data/thin1", "-", "-", "-", "-", "data/plain", "-", "-"]);
        let (snap, thin) = (&volumes[5], &volumes[6]);
        // A snapshot is as long as its origin; its store, half of it here, is not what a reader sees.
        assert_eq!((snap["size_bytes"].as_u64(), snap["used_bytes"].as_u64()), (Some(64 << 20), Some(8192)));
        assert_eq!(
            (thin["size_bytes"].as_u64(), thin["used_bytes"].as_u64()),
            (Some(1 << 30), Some(100 << 20))
        );
        assert_eq!((thin["path"].as_str(), thin["open_count"].as_u64()), (Some("/dev/data/thin1"), Some(0)));
        assert!(volumes[0]["open_count"].is_null());
        assert_eq!((volumes[7]["ours"].as_bool(), volumes[6]["ours"].as_bool()), (Some(false), Some(true)));
        assert_eq!(volumes[2]["devices"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn hidden_volumes_are_shown_when_asked_for_and_ties_of_snapshots_never() {
        let names: Vec<String> = states(&host(), Which::All).into_iter().map(|(name, _)| name).collect();
        for name in ["data/pool", "data/pool_tdata", "data/mirror_rimage_0", "data/lvol0_pmspare"] {
            assert!(names.iter().any(|shown| shown == name), "{name} is missing from {names:?}");
        }
        assert!(!names.iter().any(|name| name.starts_with("data/snapshot")), "{names:?}");
    }

    #[test]
    fn a_volume_is_as_bad_as_the_worst_below_it() {
        let (host, rest) = (host(), host_at_rest());
        for (name, running, at_rest) in [
            ("data/plain", "active", "inactive"),
            ("data/half", "unfinished", "unfinished"),
            ("data/cut", "inactive", "inactive"),
            ("data/pool", "active", "inactive"),
        ] {
            assert_eq!((state(&host, name), state(&rest, name)), (running, at_rest), "{name}");
        }
        let pool = "4096 - rw discard_passdown queue_if_no_space - 512 ";
        let tpool_busy = "thin-pool 2 221/2048 1600/4096 - rw";
        for (from, to, name, word) in [
            ("raid5_ls 3 AAA", "raid5_ls 3 ADA", "data/par", "degraded"),
            ("AA 131072/131072 idle", "Aa 4096/131072 recover", "data/mirror", "syncing"),
            ("raid1 2 AA 262144", "raid1 2 AD 262144", "data/rdata", "degraded"),
            (pool, "4096 - ro discard_passdown queue_if_no_space - 512", "data/pool", "read-only"),
            (pool, "4096 - ro discard_passdown queue_if_no_space needs_check", "data/pool", "needs-check"),
            (tpool_busy, "thin-pool 2 221/2048 4096/4096 - out_of_data_space", "data/pool", "out-of-space"),
            (
                "thin-pool 2 221/2048 1600/4096 - rw discard_passdown queue_if_no_space - 512",
                "thin-pool Fail",
                "data/pool",
                "failed",
            ),
            ("thin 204800 204799", "thin Fail", "data/thin1", "failed"),
            ("snapshot 16/65536 16", "snapshot Invalid", "data/snap", "invalid"),
            ("gIZueAQ1Z:0:Active", "gIZueAQ1Z:0:Suspended", "data/snap", "suspended"),
            ("65536 16", "65536 16\ndata-plain: 0 8 snapshot-merge 16/65536 16", "data/plain", "merging"),
        ] {
            assert_eq!(state(&host_with(&[], &[(from, to)]), name), word, "{to}");
        }
    }

    #[test]
    fn a_missing_disk_degrades_what_has_copies_and_makes_holes_in_the_rest() {
        let missing = host_with(
            &[(
                "device = \"/dev/vda\"\t# Hint only\n\n\t\t\tstatus = [\"ALLOCATABLE\"]\n\t\t\tflags = []",
                "device = \"/dev/vda\"\n\t\t\tstatus = [\"ALLOCATABLE\"]\n\t\t\tflags = [\"MISSING\"]",
            )],
            &[],
        );
        for (name, word) in [
            ("data/plain", "partial"),
            ("data/wide", "partial"),
            ("data/mirror", "degraded"),
            ("data/par", "degraded"),
            ("data/thin1", "partial"),
        ] {
            assert_eq!(state(&missing, name), word, "{name}");
        }
        let document: serde_json::Value =
            serde_json::from_str(&shown(&missing, Which::Users, Format::Json)).unwrap();
        let devices = document["volumes"][4]["devices"].to_string();
        assert!(devices.contains("missing:"), "{devices}");
    }

    #[test]
    fn the_way_to_go_is_that_of_the_part_that_lags_most() {
        let syncing = host_with(&[], &[("AA 131072/131072 idle", "Aa 4096/131072 recover")]);
        let vg = &syncing.view.vgs[0];
        assert_eq!(sync_of(&syncing, vg, vg.lv("mirror").unwrap()), Some((Bytes::mib(2), Bytes::mib(64))));
        assert_eq!(sync_of(&syncing, vg, vg.lv("par").unwrap()), None);
    }

    #[test]
    fn no_volumes_are_told_apart_from_no_groups() {
        assert!(shown(&Host::default(), Which::Users, Format::Table).contains("gabion group create"));
        let text = shown(&host_at_rest(), Which::Users, Format::Table);
        assert!(text.starts_with("VOLUME       TYPE        SIZE  USED  POOL"), "{text}");
    }
}
