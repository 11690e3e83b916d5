//! `lvm fullreport` as rows of text.

use std::fmt::Display;
use std::time::SystemTime;

use anyhow::{Context, Result};
use lvm::metadata::AllocationPolicy;
use serde_json::Value;

use super::Fields;
use crate::Sandbox;

/// The fields asked for, by section.
const SECTIONS: [(&str, &str); 4] = [
    (
        "vg",
        "vg_name,vg_uuid,vg_fmt,vg_seqno,vg_size,vg_free,vg_extent_size,vg_extent_count,vg_free_count,max_lv,max_pv,\
         pv_count,vg_missing_pv_count,lv_count,snap_count,vg_tags,vg_systemid,vg_lock_type,vg_profile,\
         vg_allocation_policy,vg_mda_count,vg_mda_used_count,vg_mda_copies,vg_mda_size,vg_mda_free,vg_extendable,\
         vg_exported,vg_partial,vg_permissions,vg_autoactivation",
    ),
    (
        "pv",
        "pv_name,pv_uuid,dev_size,pv_major,pv_minor,pe_start,pv_size,pv_free,pv_used,pv_pe_count,pv_pe_alloc_count,\
         pv_tags,pv_ba_start,pv_ba_size,pv_allocatable,pv_exported,pv_missing,pv_mda_count,pv_mda_used_count,\
         pv_mda_size,pv_mda_free",
    ),
    (
        "lv",
        "lv_name,lv_uuid,lv_size,seg_count,lv_tags,lv_host,lv_time,lv_profile,lv_read_ahead,lv_major,lv_minor,\
         lv_skip_activation,lv_fixed_minor,lv_autoactivation,lv_allocation_locked,lv_allocation_policy,origin,pool_lv,\
         data_lv,metadata_lv,mirror_log,raid_write_behind,raid_min_recovery_rate,raid_max_recovery_rate,lv_when_full",
    ),
    (
        "seg",
        "lv_name,lv_uuid,segtype,seg_start_pe,seg_size_pe,stripes,stripe_size,region_size,chunk_size,thin_count,\
         discards,zero,transaction_id,thin_id,cache_mode,cache_policy,cache_settings,cache_metadata_format,seg_tags,\
         devices,metadata_devices,seg_pe_ranges,reshape_len_le",
    ),
];

/// The report of all groups, and the PVs that belong to none.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) vgs: Vec<VgReport>,
    pub(super) orphans: Vec<Row>,
}

/// The report of one group.
#[derive(Debug)]
pub(super) struct VgReport {
    pub(super) row: Row,
    pub(super) pvs: Vec<Row>,
    pub(super) lvs: Vec<Row>,
    pub(super) segments: Vec<Row>,
}

/// Values by field.
#[derive(Debug)]
pub(super) struct Row(serde_json::Map<String, Value>);

impl Report {
    pub(super) fn ask(sandbox: &Sandbox) -> Result<Self> {
        let options = "-a --reportformat json --units b --nosuffix --configreport pvseg -o pv_uuid";
        let mut args: Vec<&str> = options.split(' ').collect();
        for (section, fields) in SECTIONS {
            args.extend(["--configreport", section, "-o", fields]);
        }
        let text = sandbox.lvm("fullreport", args)?;
        let document: Value = serde_json::from_str(&text).with_context(|| format!("parse {text}"))?;
        let mut report = Self { vgs: Vec::new(), orphans: Vec::new() };
        for part in document.get("report").and_then(Value::as_array).context("the report")? {
            let rows = |section| -> Result<Vec<Row>> {
                let rows = part.get(section).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                rows.iter().map(|row| row.as_object().cloned().map(Row).context("a row")).collect()
            };
            let pvs = rows("pv")?;
            match rows("vg")?.into_iter().next() {
                Some(row) => {
                    report.vgs.push(VgReport { row, pvs, lvs: rows("lv")?, segments: rows("seg")? });
                }
                None => report.orphans.extend(pvs),
            }
        }
        Ok(report)
    }
}

impl Row {
    /// The row of which `field` is `value`.
    pub(super) fn find<'a>(rows: &'a [Self], field: &str, value: &str) -> Result<&'a Self> {
        let found = rows.iter().find(|row| row.is(field, value));
        found.with_context(|| format!("LVM has no row with {field} {value}"))
    }

    pub(super) fn text(&self, field: &str) -> Result<&str> {
        self.0.get(field).and_then(Value::as_str).with_context(|| format!("field {field}"))
    }

    pub(super) fn is(&self, field: &str, value: &str) -> bool {
        self.text(field).is_ok_and(|own| own == value)
    }
}

/// Adds a line for each field in which LVM says something else.
pub(super) fn compare(lines: &mut Vec<String>, what: &impl Display, theirs: &Row, ours: &Fields) {
    for (field, ours) in ours {
        match theirs.text(field) {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) => lines.push(format!("{what} {field}: LVM {theirs:?}, the view {ours:?}")),
            Err(error) => lines.push(format!("{what} {field}: {error}")),
        }
    }
}

/// LVM prints a word where something holds, and nothing where it does not.
pub(super) fn bool_word(holds: bool, word: &str) -> String {
    if holds { word.to_owned() } else { String::new() }
}

pub(super) fn policy(policy: &AllocationPolicy) -> String {
    let word = match policy {
        AllocationPolicy::Contiguous => "contiguous",
        AllocationPolicy::Cling => "cling",
        AllocationPolicy::ClingByTags => "cling_by_tags",
        AllocationPolicy::Normal => "normal",
        AllocationPolicy::Anywhere => "anywhere",
        AllocationPolicy::Inherit => "inherit",
        other => return format!("{other:?}"),
    };
    word.to_owned()
}

/// A time as LVM prints it in UTC: `2026-11-30 00:44:03 +0000`.
pub(super) fn time(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} +0000")
}

/// The date of a day counted from 1970, by stepping through the years and months.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let divides = |year: u64, n: u64| year.is_multiple_of(n);
    let leap = |year| u64::from(divides(year, 4) && !divides(year, 100) || divides(year, 400));
    let mut year = 1970;
    while days >= 365 + leap(year) {
        days -= 365 + leap(year);
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_printed_as_lvm_does() {
        let printed = |seconds| time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(printed(1_795_999_443), "2026-11-30 00:44:03 +0000");
        assert_eq!(printed(951_782_399), "2000-02-28 23:59:59 +0000");
        assert_eq!(printed(951_868_800), "2000-03-01 00:00:00 +0000");
        assert_eq!(printed(946_684_799), "1999-12-31 23:59:59 +0000");
    }
}
