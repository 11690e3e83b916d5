//! A group's metadata as a flat list of `path = value`, made once from LVM's own text and once from the library's
//! typed view, so that the two can be compared entry by entry.
//!
//! The text is cut by lines, as LVM prints it, and not by the library's parser. The two lists of flags that a text
//! keeps apart, `status` and `flags`, are one here.

#[cfg(test)]
mod generated;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use lvm::metadata::{
    AllocationPolicy, Area, CacheMode, CacheSettings, Discards, Lv, Node, Pv, ReadAhead, Section, Segment,
    SegmentKind, ThinMessage, Value, Vg,
};

/// Values by their paths.
pub type Leaves = BTreeMap<String, String>;

/// The differences between two lists, one line each; empty when they are equal.
#[must_use]
pub fn differences(theirs: &Leaves, ours: &Leaves) -> Vec<String> {
    let mut lines = Vec::new();
    for path in theirs.keys().chain(ours.keys().filter(|path| !theirs.contains_key(*path))) {
        let (theirs, ours) = (theirs.get(path), ours.get(path));
        if theirs != ours {
            lines.push(format!("{path}: LVM {theirs:?}, the view {ours:?}"));
        }
    }
    lines
}

/// The entries of a text that `vgcfgbackup` wrote, those about the making of the text left out.
///
/// # Errors
///
/// If the text is not as LVM prints it.
pub fn of_text(text: &str) -> Result<Leaves> {
    const ABOUT: [&str; 5] = ["contents", "version", "description", "creation_host", "creation_time"];
    let mut leaves = Leaves::new();
    let mut path: Vec<String> = Vec::new();
    let mut lines = text.lines().map(without_comment).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if line == "}" {
            path.pop().context("a section ends that has not begun")?;
        } else if let Some(name) = line.strip_suffix('{') {
            path.push(name.trim().to_owned());
        } else {
            let (key, value) = line.split_once('=').with_context(|| format!("{line:?} is no entry"))?;
            let mut value = value.trim().to_owned();
            while value.starts_with('[') && !value.ends_with(']') {
                value.push(' ');
                value.push_str(&lines.next().context("a list has no end")?);
            }
            if !(path.is_empty() && ABOUT.contains(&key.trim())) {
                insert(&mut leaves, &path, key.trim(), &value);
            }
        }
    }
    ensure!(path.is_empty(), "{path:?} is not closed");
    Ok(merge_flags(&leaves))
}

fn without_comment(line: &str) -> String {
    let mut quoted = false;
    let end = line.char_indices().find_map(|(index, c)| {
        quoted ^= c == '"';
        (c == '#' && !quoted).then_some(index)
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or(line).trim().to_owned()
}

fn insert(leaves: &mut Leaves, path: &[String], key: &str, value: &str) {
    let mut path = path.to_vec();
    path.push(key.to_owned());
    let list = value.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let value = list.map_or_else(|| value.to_owned(), |list| words(list).join(","));
    leaves.insert(path.join("/"), value);
}

fn words(list: &str) -> Vec<String> {
    list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Appends each `status` to the `flags` beside it.
fn merge_flags(leaves: &Leaves) -> Leaves {
    let mut merged = Leaves::new();
    for (path, value) in leaves {
        let Some(parent) = path.strip_suffix("/status") else {
            if !path.ends_with("/flags") {
                merged.insert(path.clone(), value.clone());
            }
            continue;
        };
        let flags = leaves.get(&format!("{parent}/flags")).map_or(Vec::new(), |flags| words(flags));
        merged.insert(
            format!("{parent}/flags"),
            words(value).into_iter().chain(flags).collect::<Vec<_>>().join(","),
        );
    }
    merged
}

/// The entries of the library's view of a group, in the words of LVM's text.
#[must_use]
pub fn of_vg(vg: &Vg) -> Leaves {
    let mut out = Printer { path: vec![vg.name.to_string()], leaves: Leaves::new() };
    out.text("id", Some(vg.uuid));
    out.number("seqno", Some(vg.seqno));
    out.text("format", vg.format.as_ref());
    out.list("flags", vg.flags.iter().map(quoted));
    out.some_list("tags", vg.tags.iter().map(quoted));
    out.text("system_id", vg.system_id.as_ref());
    out.text("lock_type", vg.lock_type.as_ref());
    out.text("lock_args", vg.lock_args.as_ref());
    out.number("extent_size", Some(vg.extent_size.sectors().get()));
    out.number("max_lv", Some(vg.max_lv.unwrap_or(0)));
    out.number("max_pv", Some(vg.max_pv.unwrap_or(0)));
    out.policy(&vg.allocation_policy, &AllocationPolicy::Normal);
    out.text("profile", vg.profile.as_ref());
    out.number("metadata_copies", Some(vg.metadata_copies.unwrap_or(0)));
    out.within("physical_volumes", |out| {
        for pv in &vg.pvs {
            out.within(&pv.key, |out| out.pv(pv));
        }
    });
    out.within("logical_volumes", |out| {
        for lv in &vg.lvs {
            out.within(lv.name.as_str(), |out| out.lv(vg, lv));
        }
    });
    out.leaves
}

fn quoted(text: impl Display) -> String {
    format!("\"{}\"", text.to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

struct Printer {
    path: Vec<String>,
    leaves: Leaves,
}

impl Printer {
    fn within(&mut self, section: &str, fill: impl FnOnce(&mut Self)) {
        self.path.push(section.to_owned());
        fill(self);
        self.path.pop();
    }

    fn raw(&mut self, key: &str, value: String) {
        self.leaves.insert(format!("{}/{key}", self.path.join("/")), value);
    }

    fn text(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.raw(key, quoted(value));
        }
    }

    fn number(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.raw(key, value.to_string());
        }
    }

    fn list(&mut self, key: &str, items: impl Iterator<Item = String>) {
        self.raw(key, items.collect::<Vec<_>>().join(","));
    }

    fn some_list(&mut self, key: &str, items: impl Iterator<Item = String>) {
        let items: Vec<_> = items.collect();
        if !items.is_empty() {
            self.list(key, items.into_iter());
        }
    }

    fn policy(&mut self, policy: &AllocationPolicy, default: &AllocationPolicy) {
        let word = match policy {
            AllocationPolicy::Contiguous => "contiguous",
            AllocationPolicy::Cling => "cling",
            AllocationPolicy::ClingByTags => "cling_by_tags",
            AllocationPolicy::Normal => "normal",
            AllocationPolicy::Anywhere => "anywhere",
            _ => "inherit",
        };
        if policy != default {
            self.text("allocation_policy", Some(word));
        }
    }

    fn pv(&mut self, pv: &Pv) {
        self.text("id", Some(pv.uuid));
        self.text("device", pv.hint.as_ref());
        self.text("device_id", pv.device_id.as_ref());
        self.text("device_id_type", pv.device_id_type.as_ref());
        self.list("flags", pv.flags.iter().map(quoted));
        self.some_list("tags", pv.tags.iter().map(quoted));
        self.number("dev_size", pv.dev_size.map(devices::Sectors::get));
        self.number("pe_start", Some(pv.pe_start.get()));
        self.number("pe_count", Some(pv.pe_count.get()));
        self.number("ba_start", pv.bootloader_area.map(|(start, _)| start.get()));
        self.number("ba_size", pv.bootloader_area.map(|(_, size)| size.get()));
    }

    fn lv(&mut self, vg: &Vg, lv: &Lv) {
        self.text("id", Some(lv.uuid));
        self.list("flags", lv.flags.iter().map(quoted));
        self.some_list("tags", lv.tags.iter().map(quoted));
        self.number("creation_time", lv.creation_time.map(seconds));
        self.text("creation_host", lv.creation_host.as_ref());
        self.text("lock_args", lv.lock_args.as_ref());
        self.policy(&lv.allocation_policy, &AllocationPolicy::Inherit);
        self.text("profile", lv.profile.as_ref());
        match lv.read_ahead {
            ReadAhead::Auto => {}
            ReadAhead::None => self.number("read_ahead", Some(-1)),
            ReadAhead::Fixed(sectors) => self.number("read_ahead", Some(sectors.get())),
        }
        self.number("major", lv.fixed_major);
        self.number("minor", lv.fixed_minor);
        self.number("segment_count", Some(lv.segments.len()));
        for (number, segment) in (1..).zip(&lv.segments) {
            self.within(&format!("segment{number}"), |out| out.segment(vg, segment));
        }
    }

    fn segment(&mut self, vg: &Vg, segment: &Segment) {
        self.number("start_extent", Some(segment.start.get()));
        self.number("extent_count", Some(segment.len.get()));
        self.number("reshape_count", Some(segment.reshape_len.get()).filter(|count| *count > 0));
        self.some_list("tags", segment.tags.iter().map(quoted));
        let kind = self.kind(vg, &segment.kind);
        let flags = segment.type_flags.iter().map(|flag| format!("+{flag}"));
        self.text("type", Some(kind + &flags.collect::<String>()));
    }

    /// Prints what is peculiar to the kind and returns its name.
    fn kind(&mut self, vg: &Vg, kind: &SegmentKind) -> String {
        let name = match kind {
            SegmentKind::Striped(striped) => {
                self.number("stripe_count", Some(striped.areas.len()));
                self.number("stripe_size", striped.stripe_size.map(devices::Sectors::get));
                self.areas("stripes", vg, &striped.areas);
                "striped"
            }
            SegmentKind::Mirror(mirror) => {
                self.number("mirror_count", Some(mirror.areas.len()));
                self.text("mirror_log", mirror.log.as_ref());
                self.number("region_size", mirror.region_size.map(devices::Sectors::get));
                self.number("extents_moved", mirror.extents_moved.map(lvm::Extents::get));
                self.areas("mirrors", vg, &mirror.areas);
                "mirror"
            }
            SegmentKind::Raid(raid) => return self.raid(raid),
            SegmentKind::ThinPool(pool) => {
                self.thin_pool(pool);
                "thin-pool"
            }
            SegmentKind::Thin(thin) => {
                self.text("thin_pool", Some(&thin.pool));
                self.number("device_id", Some(thin.device_id));
                self.number("transaction_id", Some(thin.transaction_id));
                self.text("origin", thin.origin.as_ref());
                self.text("external_origin", thin.external_origin.as_ref());
                self.text("merge", thin.merge.as_ref());
                "thin"
            }
            SegmentKind::Snapshot(snapshot) => {
                self.text("origin", Some(&snapshot.origin));
                let store = if snapshot.merging { "merging_store" } else { "cow_store" };
                self.text(store, Some(&snapshot.cow_store));
                self.number("chunk_size", Some(snapshot.chunk_size.get()));
                "snapshot"
            }
            other => return self.other_kind(other),
        };
        name.to_owned()
    }

    fn other_kind(&mut self, kind: &SegmentKind) -> String {
        let name = match kind {
            SegmentKind::Cache(cache) => {
                self.text("cache_pool", Some(&cache.cache));
                self.text("origin", Some(&cache.origin));
                self.number("cleaner", cache.cleaner.then_some(1));
                self.cache_settings(&cache.settings);
                if let Some(layout) = &cache.cache_vol {
                    self.number("metadata_start", Some(layout.metadata_start.get()));
                    self.number("metadata_len", Some(layout.metadata_len.get()));
                    self.number("data_start", Some(layout.data_start.get()));
                    self.number("data_len", Some(layout.data_len.get()));
                    self.text("metadata_id", layout.metadata_id);
                    self.text("data_id", layout.data_id);
                }
                "cache"
            }
            SegmentKind::CachePool(pool) => {
                self.text("data", Some(&pool.data));
                self.text("metadata", Some(&pool.metadata));
                self.cache_settings(&pool.settings);
                "cache-pool"
            }
            SegmentKind::Writecache(writecache) => {
                self.text("origin", Some(&writecache.origin));
                self.text("writecache", Some(&writecache.cache));
                self.number("writecache_block_size", writecache.block_size.map(devices::Bytes::get));
                self.section(&writecache.settings);
                "writecache"
            }
            SegmentKind::Integrity(integrity) => {
                self.text("origin", Some(&integrity.origin));
                self.text("meta_dev", integrity.metadata.as_ref());
                self.number("data_sectors", integrity.data_sectors.map(devices::Sectors::get));
                self.text("mode", integrity.mode.as_ref());
                self.section(&integrity.settings);
                "integrity"
            }
            SegmentKind::Error => "error",
            SegmentKind::Zero => "zero",
            SegmentKind::Unknown { name, raw } => {
                self.section(raw);
                name
            }
            other => return format!("{other:?}"),
        };
        name.to_owned()
    }

    fn areas(&mut self, key: &str, vg: &Vg, areas: &[Area]) {
        let pairs = areas.iter().flat_map(|area| match area {
            Area::Pv { pv, start } => {
                let key = vg.pv(*pv).map_or("?", |pv| &*pv.key);
                [quoted(key), start.get().to_string()]
            }
            Area::Lv { lv, start } => [quoted(lv), start.get().to_string()],
        });
        self.list(key, pairs);
    }

    fn raid(&mut self, raid: &lvm::metadata::Raid) -> String {
        let raid0 = raid.level == lvm::metadata::RaidLevel::Raid0;
        self.number(if raid0 { "stripe_count" } else { "device_count" }, Some(raid.legs.len()));
        self.number("stripe_size", raid.stripe_size.map(devices::Sectors::get));
        self.number("region_size", raid.region_size.map(devices::Sectors::get));
        self.number("data_copies", raid.data_copies);
        self.number("data_offset", raid.data_offset.map(devices::Sectors::get));
        self.number("writebehind", raid.write_behind);
        self.number("min_recovery_rate", raid.min_recovery_rate);
        self.number("max_recovery_rate", raid.max_recovery_rate);
        let legs = raid.legs.iter().flat_map(|leg| leg.meta.iter().chain([&leg.data])).map(quoted);
        let with_meta = raid0 && raid.legs.iter().any(|leg| leg.meta.is_some());
        self.list(if raid0 && !with_meta { "raid0_lvs" } else { "raids" }, legs);
        if with_meta { "raid0_meta".to_owned() } else { raid.level.to_string() }
    }

    fn thin_pool(&mut self, pool: &lvm::metadata::ThinPool) {
        self.text("metadata", Some(&pool.metadata));
        self.text("pool", Some(&pool.data));
        self.number("transaction_id", Some(pool.transaction_id));
        self.number("chunk_size", Some(pool.chunk_size.get()));
        let discards = pool.discards.map(|discards| match discards {
            Discards::NoPassdown => "nopassdown",
            Discards::Passdown => "passdown",
            _ => "ignore",
        });
        self.text("discards", discards);
        // Where chunks are not zeroed, the text says nothing of it.
        self.number("zero_new_blocks", pool.zero_new_blocks.then_some(1));
        self.number("crop_metadata", pool.crop_metadata.map(u8::from));
        for (number, message) in (1..).zip(&pool.messages) {
            self.within(&format!("message{number}"), |out| match message {
                ThinMessage::Create(name) => out.text("create", Some(name)),
                ThinMessage::Delete(id) => out.number("delete", Some(id)),
                other => out.raw("message", format!("{other:?}")),
            });
        }
    }

    fn cache_settings(&mut self, settings: &CacheSettings) {
        self.number("chunk_size", settings.chunk_size.map(devices::Sectors::get));
        let mode = settings.mode.as_ref().map(|mode| match mode {
            CacheMode::Writeback => "writeback",
            CacheMode::Passthrough => "passthrough",
            CacheMode::Other(other) => other,
            _ => "writethrough",
        });
        self.text("cache_mode", mode);
        self.text("policy", settings.policy.as_ref());
        self.number("metadata_format", settings.metadata_format);
        if let Some(policy) = &settings.policy_settings {
            self.within("policy_settings", |out| out.section(policy));
        }
    }

    fn section(&mut self, section: &Section) {
        for (key, node) in section.iter() {
            match node {
                Node::Value(value) => self.raw(key, printed(value)),
                Node::Section(section) => self.within(key, |out| out.section(section)),
            }
        }
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => quoted(text),
        Value::List(list) => list.iter().map(printed).collect::<Vec<_>>().join(","),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Generated by LVM2
contents = "Text Format Volume Group"
version = 1
data {
	id = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef"
	seqno = 7
	format = "lvm2"			# informational
	status = ["RESIZEABLE", "READ"]
	flags = ["NOAUTOACTIVATE"]
	tags = ["a#b", "c"]
	extent_size = 8192		# 4 Megabytes
	max_lv = 0
	max_pv = 0
	metadata_copies = 0
}
"#;

    #[test]
    fn a_text_and_its_view_have_the_same_entries() {
        let theirs = of_text(TEXT).unwrap();
        assert_eq!(theirs["data/flags"], "\"RESIZEABLE\",\"READ\",\"NOAUTOACTIVATE\"");
        assert_eq!(theirs["data/tags"], "\"a#b\",\"c\"");
        assert_eq!(differences(&theirs, &of_vg(&Vg::from_text(TEXT).unwrap())), Vec::<String>::new());
    }

    #[test]
    fn a_text_with_a_segment_of_every_kind_is_read_entry_by_entry() {
        let text = include_str!("../fuzz/seeds/text/every-kind");
        let vg = Vg::from_text(text).unwrap();
        assert_eq!(differences(&of_text(text).unwrap(), &of_vg(&vg)), Vec::<String>::new());
        let kinds =
            vg.lvs.iter().flat_map(|lv| &lv.segments).map(|segment| std::mem::discriminant(&segment.kind));
        assert_eq!(kinds.collect::<std::collections::HashSet<_>>().len(), 13);
    }

    #[test]
    fn every_difference_is_told() {
        let ours = of_vg(&Vg::from_text(TEXT).unwrap());
        for (from, to) in
            [("seqno = 7", "seqno = 8"), ("\"c\"", "\"d\""), ("max_lv = 0", "max_lv = 1\nnew = 1")]
        {
            let theirs = of_text(&TEXT.replace(from, to)).unwrap();
            assert!(!differences(&theirs, &ours).is_empty(), "{from}");
        }
    }
}
