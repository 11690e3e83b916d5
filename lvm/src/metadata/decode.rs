//! From the tree of a metadata text to the typed group.

use std::collections::HashMap;
use std::sync::Arc;

use super::decode_segment::segment;
use super::fields::Fields;
use super::text::{Cursor, Item, Parser, Step, Tree};
use super::usage::Kept;
use super::usual::{self, Common};
use super::{
    AllocationPolicy, Area, Defect, Lv, LvFlag, Pv, PvFlag, ReadAhead, Segment, Vg, VgFlag, Written,
};
use crate::{ExtentSize, Extents, LvName, Uuid, VgName};

/// What LVM writes for the device of a PV that it could not find.
const NO_DEVICE: &str = "[unknown]";

/// Bytes that the text of a small volume has at the least, as LVM writes it; a guess for memory, no more.
const LV_LEN: usize = 256;

/// The PVs of a group by the short names that its segments use.
pub(super) type PvKeys = HashMap<Box<str>, Uuid>;

impl Vg {
    /// Reads a group from its metadata text, such as `vgcfgbackup -f FILE` writes or a metadata area holds.
    ///
    /// No PV of the result has a [`device`](Pv::device).
    ///
    /// # Errors
    ///
    /// [`Defect`]: the text does not follow the grammar, lacks what a group needs, or contradicts itself (a segment on an
    /// unknown PV or volume, a gap between segments, extents beyond a PV's end).
    ///
    /// # Examples
    ///
    /// ```
    /// use lvm::metadata::Vg;
    ///
    /// let vg = Vg::from_text(r#"
    ///     contents = "Text Format Volume Group"
    ///     version = 1
    ///     data {
    ///         id = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef"
    ///         seqno = 7
    ///         status = ["RESIZEABLE", "READ", "WRITE"]
    ///         extent_size = 8192
    ///     }"#)?;
    /// assert_eq!((vg.name.as_str(), vg.seqno), ("data", 7));
    /// # Ok::<(), lvm::metadata::Defect>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, Defect> {
        Self::read(text, Forms::Usual)
    }

    /// As [`Vg::from_text`], by the grammar alone: what fuzzing compares with.
    ///
    /// # Errors
    ///
    /// As [`Vg::from_text`].
    #[cfg(fuzzing)]
    #[doc(hidden)]
    pub fn from_text_by_grammar(text: &str) -> Result<Self, Defect> {
        Self::read(text, Forms::Any)
    }

    /// The same, with volumes of the usual form read by the grammar or without it.
    pub(super) fn read(text: &str, forms: Forms) -> Result<Self, Defect> {
        let mut parser = Parser::new(text);
        let mut early = Early { forms, ..Early::default() };
        loop {
            early.take_usual(&mut parser)?;
            match parser.step()? {
                Step::Entry => {}
                Step::Section => early.take(&mut parser)?,
                Step::End => return vg(&parser.into_tree(), early),
            }
        }
    }
}

/// PVs and volumes of a group.
#[derive(Debug, Default)]
struct Members {
    /// The place of the group's first entry.
    group: usize,
    pvs: Vec<Pv>,
    keys: PvKeys,
    lvs: Vec<Lv>,
}

impl Members {
    /// Those of a group whose entries begin at `group`, so far its PVs alone.
    fn of_pvs(group: usize, name: &str, section: Cursor<'_, '_>) -> Result<Self, Defect> {
        let mut members = Self { group, ..Self::default() };
        for (key, section) in sections_of(section, "physical_volumes") {
            let pv = pv(&Fields::new(section, name, key), key)?;
            members.keys.insert(key.into(), pv.uuid);
            members.pvs.push(pv);
        }
        Ok(members)
    }

    fn add_lv(&mut self, name: &str, key: &str, section: Cursor<'_, '_>) -> Result<(), Defect> {
        let lv = lv(&Fields::new(section, name, key), key, &self.keys, self.lvs.last())?;
        self.lvs.push(lv);
        Ok(())
    }
}

/// How volumes are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Forms {
    /// In the usual form without the grammar, others by it.
    #[default]
    Usual,
    /// All by the grammar, to compare.
    #[cfg(any(test, fuzzing))]
    Any,
}

/// Decodes the volumes of a group one by one while the text is parsed: the entries of thousands would not fit into the
/// processor's caches, and a first read would wait for the memory.
#[derive(Debug, Default)]
struct Early<'a> {
    forms: Forms,
    /// The place of the first entry in the section of volumes that was begun last.
    section: usize,
    /// Whether the volumes of that section are decoded here.
    decodes: bool,
    members: Option<Members>,
    common: Common<'a>,
}

impl<'a> Early<'a> {
    /// Decodes the volumes of the usual form that come next.
    #[inline]
    fn take_usual(&mut self, parser: &mut Parser<'a>) -> Result<(), Defect> {
        if parser.depth() != 2 {
            return Ok(());
        }
        let (Some((name, group)), Some(("logical_volumes", section))) = (parser.open(0), parser.open(1))
        else {
            return Ok(());
        };
        if self.section != section {
            self.section = section;
            self.begin(name, group, parser.before(0), parser.rest())?;
        }
        let (true, Some(members), Forms::Usual) = (self.decodes, &mut self.members, self.forms) else {
            return Ok(());
        };
        let (common, keys, lvs) = (&mut self.common, &members.keys, &mut members.lvs);
        while let Some(lv) = parser.pass_by(|text| usual::volume(text, common, keys, lvs.last())) {
            lvs.push(lv);
        }
        Ok(())
    }

    /// Decodes the section that has just ended, if it is a volume, and has the parser forget it.
    #[inline]
    fn take(&mut self, parser: &mut Parser<'_>) -> Result<(), Defect> {
        if parser.depth() != 2 || !self.decodes {
            return Ok(());
        }
        let (Some((name, _)), Some((_, section))) = (parser.open(0), parser.open(1)) else {
            return Ok(());
        };
        let (Some(members), Some((key, volume))) = (&mut self.members, parser.ended()) else {
            return Ok(());
        };
        if self.section == section {
            members.add_lv(name, key, volume)?;
            parser.forget();
        }
        Ok(())
    }

    /// Begins with a section of volumes; `before` is what the group has before it, `rest` how much text is left.
    fn begin(
        &mut self,
        name: &str,
        group: usize,
        before: Option<Cursor<'_, '_>>,
        rest: usize,
    ) -> Result<(), Defect> {
        // Of two such sections the first counts. Volumes that stand before their PVs, as LVM does not write them, wait.
        let may = |before: &Cursor<'_, '_>| {
            before.section("logical_volumes").is_none() && before.section("physical_volumes").is_some()
        };
        let before = before.filter(may);
        self.decodes = before.is_some();
        if let Some(before) = before {
            let mut members = Members::of_pvs(group, name, before)?;
            members.lvs.reserve(rest / LV_LEN);
            self.members = Some(members);
        }
        Ok(())
    }

    /// The members of this group.
    fn end(self, name: &str, section: Cursor<'_, '_>) -> Result<Members, Defect> {
        if let Some(members) = self.members.filter(|members| members.group == section.start()) {
            return Ok(members);
        }
        let mut members = Members::of_pvs(section.start(), name, section)?;
        for (key, volume) in sections_of(section, "logical_volumes") {
            members.add_lv(name, key, volume)?;
        }
        Ok(members)
    }
}

fn vg(tree: &Tree<'_>, early: Early<'_>) -> Result<Vg, Defect> {
    let root = Fields::new(tree.root(), "text", "text");
    if root.need_text("contents")? != "Text Format Volume Group" || root.need_number("version")? != 1 {
        return Err(root.defect("contents or version is not that of a volume group's text"));
    }
    let sections = root.cursor.iter().filter_map(|(key, item)| match item {
        Item::Section(section) => Some((key, section)),
        _ => None,
    });
    let (name, section) =
        sections.last().ok_or_else(|| root.defect("there is no section of a volume group"))?;
    let fields = Fields::new(section, name, name);
    let mut vg = bare_vg(&fields, name)?;
    vg.written = Written {
        description: root.some_text("description")?,
        host: root.some_text("creation_host")?,
        time: root.time("creation_time")?,
    };
    let members = early.end(name, section)?;
    vg.pvs = members.pvs;
    vg.lvs = members.lvs;
    // They were not counted before they were read.
    vg.lvs.shrink_to_fit();
    check_references(&fields, &vg)?;
    Ok(vg)
}

/// The sections within the section `key`; none where that is absent.
fn sections_of<'t, 'a>(cursor: Cursor<'t, 'a>, key: &str) -> impl Iterator<Item = (&'t str, Cursor<'t, 'a>)> {
    let entries = cursor.section(key).map(Cursor::iter);
    entries.into_iter().flatten().filter_map(|(key, item)| match item {
        Item::Section(section) => Some((key, section)),
        _ => None,
    })
}

/// The group without its PVs and volumes.
fn bare_vg(fields: &Fields<'_, '_>, name: &str) -> Result<Vg, Defect> {
    let extent_size = ExtentSize::new(fields.need_sectors("extent_size")?)
        .ok_or_else(|| fields.defect("extent_size is zero"))?;
    Ok(Vg {
        name: VgName::new(name).map_err(|error| fields.defect(error.to_string()))?,
        uuid: fields.need_uuid()?,
        seqno: fields.need_number("seqno")?,
        format: fields.some_text("format")?,
        flags: fields.flags(VgFlag::from_word)?,
        tags: fields.tags(&[])?,
        system_id: fields.some_text("system_id")?,
        lock_type: fields.some_text("lock_type")?,
        lock_args: fields.some_text("lock_args")?,
        extent_size,
        max_lv: fields.limit("max_lv")?,
        max_pv: fields.limit("max_pv")?,
        allocation_policy: allocation_policy(fields)?.unwrap_or(AllocationPolicy::Normal),
        profile: fields.some_text("profile")?,
        metadata_copies: fields.limit("metadata_copies")?,
        written: Written::default(),
        pvs: Vec::new(),
        lvs: Vec::new(),
        usage: Kept::default(),
    })
}

fn allocation_policy(fields: &Fields<'_, '_>) -> Result<Option<AllocationPolicy>, Defect> {
    Ok(fields.text("allocation_policy")?.map(|policy| match policy {
        "contiguous" => AllocationPolicy::Contiguous,
        "cling" => AllocationPolicy::Cling,
        "cling_by_tags" => AllocationPolicy::ClingByTags,
        "normal" => AllocationPolicy::Normal,
        "anywhere" => AllocationPolicy::Anywhere,
        "inherit" => AllocationPolicy::Inherit,
        other => AllocationPolicy::Other(other.into()),
    }))
}

fn pv(fields: &Fields<'_, '_>, key: &str) -> Result<Pv, Defect> {
    let bootloader_area = match (fields.some_sectors("ba_start")?, fields.some_sectors("ba_size")?) {
        (Some(start), Some(size)) => Some((start, size)),
        _ => None,
    };
    Ok(Pv {
        key: key.into(),
        uuid: fields.need_uuid()?,
        hint: fields.some_text("device")?.filter(|hint| **hint != *NO_DEVICE),
        device_id: fields.some_text("device_id")?,
        device_id_type: fields.some_text("device_id_type")?,
        dev_size: fields.some_sectors("dev_size")?,
        pe_start: fields.need_sectors("pe_start")?,
        pe_count: fields.need_extents("pe_count")?,
        bootloader_area,
        flags: fields.flags(PvFlag::from_word)?,
        tags: fields.tags(&[])?,
        device: None,
    })
}

/// A volume; `like` is the one before it, which mostly has the same tags and comes from the same host.
fn lv(fields: &Fields<'_, '_>, name: &str, keys: &PvKeys, like: Option<&Lv>) -> Result<Lv, Defect> {
    let read_ahead = match fields.get("read_ahead") {
        None => ReadAhead::Auto,
        Some(Item::Scalar(super::text::Scalar::Int(-1))) => ReadAhead::None,
        Some(_) => ReadAhead::Fixed(fields.need_sectors("read_ahead")?),
    };
    Ok(Lv {
        name: fields.lv_name(name)?,
        uuid: fields.need_uuid()?,
        flags: shared(fields.flags(LvFlag::from_word)?, like.map(|like| &like.flags)),
        tags: fields.tags(like.map_or(&[], |like| &like.tags))?,
        creation_time: fields.time("creation_time")?,
        creation_host: fields
            .shared_text("creation_host", like.and_then(|like| like.creation_host.as_ref()))?,
        allocation_policy: allocation_policy(fields)?.unwrap_or(AllocationPolicy::Inherit),
        read_ahead,
        profile: fields.some_text("profile")?,
        lock_args: fields.some_text("lock_args")?,
        fixed_major: fields.small("major")?,
        fixed_minor: fields.small("minor")?,
        segments: segments(fields, name, keys)?,
    })
}

/// The values, shared with `like` where that has the same.
fn shared<T: PartialEq>(values: Vec<T>, like: Option<&Arc<[T]>>) -> Arc<[T]> {
    like.filter(|like| ***like == *values).map_or_else(|| values.into(), Arc::clone)
}

/// The volume's segments by their starts, which must follow one another without a gap.
fn segments(fields: &Fields<'_, '_>, name: &str, keys: &PvKeys) -> Result<Vec<Segment>, Defect> {
    let sections = || {
        fields.cursor.iter().filter_map(|(key, item)| match item {
            Item::Section(section) if key.starts_with("segment") => Some((key, section)),
            _ => None,
        })
    };
    let mut segments = Vec::with_capacity(sections().count());
    for (key, section) in sections() {
        segments.push(segment(&Fields::new(section, name, key), keys)?);
    }
    segments.sort_by_key(|segment: &Segment| segment.start);
    let mut next = Extents::ZERO;
    for segment in &segments {
        if segment.start != next {
            return Err(fields.defect("there is a gap or an overlap between its segments"));
        }
        next = segment
            .start
            .checked_add(segment.len)
            .ok_or_else(|| fields.defect("it has more than 2^64 extents"))?;
    }
    let counted = fields.number("segment_count")?.is_none_or(|count| count == segments.len() as u64);
    if counted { Ok(segments) } else { Err(fields.defect("segment_count is not the number of segments")) }
}

/// Every name that a segment uses must exist, once, and every extent must lie within its PV.
fn check_references(fields: &Fields<'_, '_>, vg: &Vg) -> Result<(), Defect> {
    let mut names: Vec<&LvName> = vg.lvs.iter().map(|lv| &lv.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(fields.defect("two volumes have the same name"));
    }
    let mut sizes: Vec<(Uuid, u64)> = vg.pvs.iter().map(|pv| (pv.uuid, pv.pe_count.get())).collect();
    sizes.sort_unstable();
    if sizes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(fields.defect("two PVs have the same id"));
    }
    let size = |uuid: &Uuid| -> Option<u64> {
        let at = sizes.binary_search_by(|(own, _)| own.cmp(uuid)).ok()?;
        sizes.get(at).map(|(_, size)| *size)
    };
    for lv in &vg.lvs {
        for segment in &lv.segments {
            if let Some(part) = segment.parts().into_iter().find(|part| names.binary_search(part).is_err()) {
                return Err(fields.defect(format!("volume {} is built on {part}, which is absent", lv.name)));
            }
            let len = segment.area_len().unwrap_or_default().get();
            let beyond = segment.areas().iter().any(|area| match area {
                Area::Pv { pv, start } => {
                    let end = start.get().checked_add(len);
                    end.is_none_or(|end| size(pv).is_none_or(|count| end > count))
                }
                Area::Lv { .. } => false,
            });
            if beyond {
                return Err(fields.defect(format!("volume {} uses extents beyond a PV's end", lv.name)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"contents = "Text Format Volume Group" version = 1 "#;
    const GROUP: &str =
        r#"id = "Kt3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef" seqno = 7 status = ["READ"] extent_size = 8192"#;
    const PVS: &str = r#"physical_volumes { pv0 {
        id = "Pv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef" status = [] pe_start = 2048 pe_count = 10 } }"#;

    fn volumes(names: &[&str]) -> String {
        let volume = |(at, name): (usize, &&str)| {
            format!(
                r#"{name} {{ id = "Lv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcd{at:02}" status = ["VISIBLE"] segment_count = 1
                segment1 {{ start_extent = 0 extent_count = 1 type = "striped" stripe_count = 1 stripes = ["pv0", {at}] }} }}"#
            )
        };
        format!("logical_volumes {{ {} }}", names.iter().enumerate().map(volume).collect::<String>())
    }

    fn read(groups: &[&[&str]]) -> Result<Vg, Defect> {
        let groups =
            groups.iter().enumerate().map(|(at, parts)| format!("vg{at} {{ {} }}\n", parts.join("\n")));
        Vg::from_text(&format!("{HEAD}{}", groups.collect::<String>()))
    }

    fn names(vg: &Vg) -> Vec<&str> {
        vg.lvs.iter().map(|lv| lv.name.as_str()).collect()
    }

    #[test]
    fn volumes_are_the_same_before_and_behind_their_pvs() {
        let lvs = volumes(&["a", "b", "c"]);
        let usual = read(&[&[GROUP, PVS, &lvs]]).unwrap();
        assert_eq!((names(&usual), usual.pvs.len()), (vec!["a", "b", "c"], 1));
        assert_eq!(usual, read(&[&[GROUP, &lvs, PVS]]).unwrap());
        assert_eq!(usual, read(&[&[PVS, &lvs, GROUP]]).unwrap());
    }

    #[test]
    fn the_first_section_of_volumes_counts() {
        let (first, second) = (volumes(&["a"]), volumes(&["b", "c"]));
        for parts in [[PVS, &first, &second, ""], [&first, PVS, &second, ""], [PVS, &first, PVS, &second]] {
            let vg = read(&[&[&[GROUP], &parts[..]].concat()]).unwrap();
            assert_eq!((names(&vg), vg.pvs.len()), (vec!["a"], 1), "{parts:?}");
        }
    }

    #[test]
    fn the_last_group_counts() {
        let lvs = volumes(&["a"]);
        let vg = read(&[&[GROUP, PVS, &lvs], &[GROUP, PVS]]).unwrap();
        assert_eq!((vg.name.as_str(), names(&vg), vg.pvs.len()), ("vg1", vec![], 1));
        let vg = read(&[&[GROUP, PVS], &[GROUP, PVS, &lvs]]).unwrap();
        assert_eq!((vg.name.as_str(), names(&vg)), ("vg1", vec!["a"]));
    }

    #[test]
    fn a_volume_that_is_wrong_is_named() {
        let lvs = volumes(&["a"]).replace("stripe_count = 1", "stripe_count = 2 stripe_size = 128");
        let defect = read(&[&[GROUP, PVS, &lvs]]).unwrap_err();
        assert!(matches!(&defect, Defect::Meaning { place, .. } if place == "a/segment1"), "{defect:?}");
    }
}
