//! Volumes in the form in which LVM writes nearly all of them to a metadata area, read at one go.
//!
//! LVM puts the entries of a volume in one order, one to a line, without indentation. Text of this form needs no tree: what
//! must come next is compared, and values are made as they are met, several times as fast as by the grammar. Anything
//! else (another layout than linear, striped or thin, an escape, a comment, a value that is wrong) is no volume here, and
//! is read by the grammar from its beginning, which then also has the word about what is wrong.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use devices::Sectors;

use super::decode::PvKeys;
use super::{AllocationPolicy, Area, Lv, LvFlag, ReadAhead, Segment, SegmentKind, Striped, Thin};
use crate::{Extents, LvName, Tag, Uuid};

/// Characters of an id with its hyphens.
const UUID_LEN: usize = 38;
/// Digits that no 64 bits are too few for.
const DIGITS_MAX: usize = 18;
/// PVs whose ids are kept at hand.
const PVS_MAX: usize = 16;
/// Most flags, tags, areas or segments of one volume here.
const MANY: u64 = 64;

/// What volumes of one group have in common, as it was met last.
#[derive(Debug, Default)]
pub(super) struct Common<'a> {
    /// The lines of `status` and `flags`, and what they say.
    flags: Option<(&'a str, Arc<[LvFlag]>)>,
    host: Option<(&'a str, Arc<str>)>,
    pvs: Vec<(&'a str, Uuid)>,
}

/// The volume with which `text` begins and how long it is; `None` where it has another form.
///
/// `like` is the volume before it, whose tags it mostly shares.
pub(super) fn volume<'a>(
    text: &'a str,
    common: &mut Common<'a>,
    keys: &PvKeys,
    like: Option<&Lv>,
) -> Option<(Lv, usize)> {
    let mut lines = Lines { rest: text };
    let name = lines.until(b' ')?;
    lines.pass(" {\nid = \"")?;
    let uuid = lines.take(UUID_LEN)?.parse().ok()?;
    lines.pass("\"\n")?;
    let flags = common.flags(&mut lines)?;
    let tags = tags(&mut lines, like.map_or(&[], |like| &like.tags))?;
    let mut creation_time = None;
    let mut creation_host = None;
    if lines.passes("creation_time = ") {
        creation_time = Some(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(lines.number()?))?);
        lines.pass("\ncreation_host = \"")?;
        creation_host = Some(common.host(&mut lines)?);
        lines.pass("\"\n")?;
    }
    let segments = segments(&mut lines, common, keys)?;
    lines.pass("}\n")?;
    let volume = Lv {
        name: LvName::existing(name).ok()?,
        uuid,
        flags,
        tags,
        creation_time,
        creation_host,
        allocation_policy: AllocationPolicy::Inherit,
        read_ahead: ReadAhead::Auto,
        profile: None,
        lock_args: None,
        fixed_major: None,
        fixed_minor: None,
        segments,
    };
    Some((volume, text.len() - lines.rest.len()))
}

impl<'a> Common<'a> {
    fn flags(&mut self, lines: &mut Lines<'a>) -> Option<Arc<[LvFlag]>> {
        if let Some((same, flags)) = &self.flags
            && lines.passes(same)
        {
            return Some(Arc::clone(flags));
        }
        let start = lines.rest;
        let mut flags = Vec::new();
        for beginning in ["status = [", "flags = ["] {
            lines.pass(beginning)?;
            lines.quoted_list(|_, word| {
                flags.push(LvFlag::from_word(word));
                Some(())
            })?;
        }
        let same = start.get(..start.len() - lines.rest.len())?;
        let flags = Arc::from(flags);
        self.flags = Some((same, Arc::clone(&flags)));
        Some(flags)
    }

    fn host(&mut self, lines: &mut Lines<'a>) -> Option<Arc<str>> {
        let host = lines.quoted()?;
        match &self.host {
            Some((same, shared)) if *same == host => Some(Arc::clone(shared)),
            // An empty one counts as none.
            _ if host.is_empty() => None,
            _ => {
                let shared = Arc::from(host);
                self.host = Some((host, Arc::clone(&shared)));
                Some(shared)
            }
        }
    }

    fn area(&mut self, name: &'a str, start: Extents, keys: &PvKeys) -> Option<Area> {
        if let Some((_, pv)) = self.pvs.iter().find(|(key, _)| *key == name) {
            return Some(Area::Pv { pv: *pv, start });
        }
        let Some(pv) = keys.get(name) else {
            return Some(Area::Lv { lv: LvName::existing(name).ok()?, start });
        };
        if self.pvs.len() < PVS_MAX {
            self.pvs.push((name, *pv));
        }
        Some(Area::Pv { pv: *pv, start })
    }
}

/// The tags, shared with those in the same places of `like` where they are the same.
fn tags(lines: &mut Lines<'_>, like: &[Tag]) -> Option<Vec<Tag>> {
    let mut tags = Vec::new();
    if lines.passes("tags = [") {
        tags.reserve_exact(like.len().max(1));
        lines.quoted_list(|nth, word| {
            tags.push(match like.get(nth) {
                Some(like) if like.as_str() == word => like.clone(),
                _ => Tag::new(word).ok()?,
            });
            Some(())
        })?;
        tags.shrink_to_fit();
    }
    Some(tags)
}

fn segments<'a>(lines: &mut Lines<'a>, common: &mut Common<'a>, keys: &PvKeys) -> Option<Vec<Segment>> {
    lines.pass("segment_count = ")?;
    let count = lines.number().filter(|count| *count <= MANY)?;
    lines.pass("\n")?;
    let mut segments = Vec::with_capacity(usize::try_from(count).ok()?);
    let mut next = Extents::ZERO;
    for _ in 0..count {
        lines.blank();
        lines.pass("segment")?;
        lines.number()?;
        lines.pass(" {\nstart_extent = ")?;
        let start = lines.number().map(Extents::new).filter(|start| *start == next)?;
        lines.pass("\nextent_count = ")?;
        let len = Extents::new(lines.number()?);
        next = start.checked_add(len)?;
        lines.pass("\n\ntype = \"")?;
        let kind = if lines.passes("striped\"\nstripe_count = ") {
            SegmentKind::Striped(striped(lines, len, common, keys)?)
        } else {
            lines.pass("thin\"\nthin_pool = \"")?;
            SegmentKind::Thin(thin(lines)?)
        };
        lines.pass("}\n")?;
        let (tags, type_flags) = (Vec::new(), Vec::new());
        segments.push(Segment { start, len, reshape_len: Extents::ZERO, tags, type_flags, kind });
    }
    Some(segments)
}

/// From the number of stripes on.
fn striped<'a>(
    lines: &mut Lines<'a>,
    len: Extents,
    common: &mut Common<'a>,
    keys: &PvKeys,
) -> Option<Striped> {
    let count = lines.number().filter(|count| (1..=MANY).contains(count))?;
    let mut stripe_size = None;
    if count > 1 {
        lines.pass("\nstripe_size = ")?;
        let size = Sectors::new(lines.number()?);
        size.to_bytes()?;
        stripe_size = Some(size);
    }
    if !len.get().is_multiple_of(count) {
        return None;
    }
    lines.pass("\n\nstripes = [\n\"")?;
    let mut areas = Vec::with_capacity(usize::try_from(count).ok()?);
    loop {
        let name = lines.quoted()?;
        lines.pass("\", ")?;
        let start = Extents::new(lines.number()?);
        areas.push(common.area(name, start, keys)?);
        if areas.len() as u64 == count {
            break;
        }
        lines.pass(",\n\"")?;
    }
    lines.pass("\n]\n")?;
    Some(Striped { stripe_size, areas })
}

/// From the name of the pool on.
fn thin(lines: &mut Lines<'_>) -> Option<Thin> {
    let pool = LvName::existing(lines.quoted()?).ok()?;
    lines.pass("\"\ntransaction_id = ")?;
    let transaction_id = lines.number()?;
    lines.pass("\ndevice_id = ")?;
    let device_id = u32::try_from(lines.number()?).ok()?;
    lines.pass("\n")?;
    let mut other = |key: &str| {
        if !lines.passes(key) {
            return Some(None);
        }
        let name = LvName::existing(lines.quoted()?).ok()?;
        lines.pass("\"\n")?;
        Some(Some(name))
    };
    let external_origin = other("external_origin = \"")?;
    let origin = other("origin = \"")?;
    let merge = other("merge = \"")?;
    Some(Thin { pool, device_id, transaction_id, origin, external_origin, merge })
}

/// What is left of the text.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Lines<'a> {
    /// Passes exactly this.
    #[inline]
    fn pass(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// Passes exactly this, if it comes next.
    #[inline]
    fn passes(&mut self, expected: &str) -> bool {
        self.pass(expected).is_some()
    }

    fn blank(&mut self) {
        while self.passes("\n") {}
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// What stands before the next `end`.
    #[inline]
    fn until(&mut self, end: u8) -> Option<&'a str> {
        let length = self.rest.bytes().position(|byte| byte == end)?;
        self.take(length)
    }

    /// A text up to the quote that ends it, which is not passed; nothing in it stands for something else.
    #[inline]
    fn quoted(&mut self) -> Option<&'a str> {
        let length = self.rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0))?;
        if self.rest.as_bytes().get(length) != Some(&b'"') {
            return None;
        }
        self.take(length)
    }

    /// Texts in quotes to the end of a list and of its line, each with its place handed to `each`.
    #[inline]
    fn quoted_list(&mut self, mut each: impl FnMut(usize, &'a str) -> Option<()>) -> Option<()> {
        if self.passes("]\n") {
            return Some(());
        }
        self.pass("\"")?;
        for nth in 0..usize::try_from(MANY).ok()? {
            each(nth, self.quoted()?)?;
            if self.passes("\"]\n") {
                return Some(());
            }
            self.pass("\", \"")?;
        }
        None
    }

    /// A number without a sign.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut length) = (0, 0);
        for byte in self.rest.bytes().take(DIGITS_MAX + 1).take_while(u8::is_ascii_digit) {
            number = number * 10 + u64::from(byte - b'0');
            length += 1;
        }
        if !(1..=DIGITS_MAX).contains(&length) {
            return None;
        }
        self.take(length)?;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::Forms;
    use super::super::{Defect, Vg};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    const PV: &str = "Pv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef";

    fn segment(nth: usize, start: u64, kind: &str) -> String {
        format!("segment{nth} {{\nstart_extent = {start}\nextent_count = 4\n\ntype = {kind}}}\n")
    }

    fn text_of(name: &str, head: &str, segments: &[String]) -> String {
        let (count, segments) = (segments.len(), segments.concat());
        format!(
            "{name} {{\nid = \"Lv3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef\"\n{head}segment_count = {count}\n\n{segments}}}\n"
        )
    }

    fn group(volumes: &str) -> String {
        format!(
            "vg {{\nid = \"Vg3bSo-1tY0-bq3V-5a2D-Zzzz-0000-abcdef\"\nseqno = 7\nstatus = []\nextent_size = 8192\n\
             physical_volumes {{\n\npv0 {{\nid = \"{PV}\"\npe_start = 2048\npe_count = 99\n}}\n}}\n\n\
             logical_volumes {{\n\n{volumes}}}\n\n}}\ncontents = \"Text Format Volume Group\"\nversion = 1\n"
        )
    }

    const HEAD: &str = "status = [\"READ\", \"WRITE\", \"VISIBLE\"]\nflags = []\ntags = [\"a\", \"gabion.dev/fs=ext4\"]\n\
                        creation_time = 1700000000\ncreation_host = \"node-1\"\n";
    const LINEAR: &str = "\"striped\"\nstripe_count = 1\n\nstripes = [\n\"pv0\", 8\n]\n";
    const STRIPED: &str =
        "\"striped\"\nstripe_count = 2\nstripe_size = 128\n\nstripes = [\n\"pv0\", 8,\n\"a_rimage\", 0\n]\n";
    const THIN: &str = "\"thin\"\nthin_pool = \"v0\"\ntransaction_id = 3\ndevice_id = 2\n";
    const SNAPSHOT: &str =
        "\"thin\"\nthin_pool = \"v0\"\ntransaction_id = 3\ndevice_id = 3\norigin = \"v0\"\nmerge = \"v0\"\n";

    fn usual(text: &str) -> Option<(Lv, usize)> {
        let keys = PvKeys::from([("pv0".into(), PV.parse().unwrap())]);
        volume(text, &mut Common::default(), &keys, None)
    }

    #[test]
    fn the_usual_form_is_what_lvm_writes_for_linear_striped_and_thin_volumes() {
        for kind in [LINEAR, STRIPED, THIN, SNAPSHOT] {
            let text = text_of("pvc-1", HEAD, &[segment(1, 0, kind), segment(2, 4, LINEAR)]);
            let (lv, length) = usual(&format!("{text}\nnext {{\n")).unwrap();
            assert_eq!((lv.name.as_str(), length), ("pvc-1", text.len()));
            assert_eq!((lv.flags.len(), lv.tags.len(), lv.segments.len()), (3, 2, 2));
        }
    }

    #[test]
    fn what_is_of_no_usual_form_is_left_to_the_grammar() {
        let text = text_of("v0", HEAD, &[segment(1, 0, LINEAR)]);
        assert!(usual(&text).is_some());
        let changes = [
            ("node-1", "a\\\"b"),
            ("node-1", ""),
            ("v0 ", "v0\t"),
            ("v0", "-v0"),
            ("\"a\"", "'a'"),
            ("\"a\"", "\"a b\""),
            ("flags = []", "flags = [ ]"),
            ("segment_count = 1", "segment_count = 2"),
            ("segment_count", "read_ahead = 256\nsegment_count"),
            ("start_extent = 0", "start_extent = 1"),
            ("extent_count = 4", "extent_count = -4"),
            ("extent_count = 4", "extent_count = 1234567890123456789"),
            ("stripe_count = 1", "stripe_count = 3"),
            ("\n]\n", "\n] # end\n"),
            ("}\n}\n", "}\n"),
        ];
        for (from, to) in changes {
            assert!(text.contains(from) && usual(&text.replacen(from, to, 1)).is_none(), "{from:?} {to:?}");
        }
    }

    fn volumes() -> impl Strategy<Value = String> {
        let statuses =
            vec!["status = [\"READ\"]\nflags = []\n", "status = []\nflags = [\"NEW\", \"VISIBLE\"]\n", ""];
        let tags = vec!["", "tags = [\"a\"]\n", "tags = [\"a\", \"b=c\"]\n", "tags = [\"b\",\"a\"]\n"];
        let made = "creation_time = 7\n";
        let hosts =
            vec!["creation_host = \"n\"\n", "creation_host = \"\"\n", "creation_host = \"a\\\"b\"\n", ""];
        let rest = vec!["", "", "", "read_ahead = 256\n", "allocation_policy = \"cling\"\n"];
        let head = (select(statuses), select(tags), any::<bool>(), select(hosts), select(rest)).prop_map(
            move |(status, tags, is_made, host, rest)| {
                let made = if is_made { made } else { "" };
                format!("{status}{tags}{made}{host}{rest}")
            },
        );
        let pool = "\"thin-pool\"\nmetadata = \"v0\"\npool = \"v0\"\ntransaction_id = 1\nchunk_size = 128\n";
        let kinds = [LINEAR, LINEAR, STRIPED, THIN, SNAPSHOT, pool, "\"zero\"\n"];
        vec((prop_oneof![Just(HEAD.to_owned()), head], vec(select(kinds.to_vec()), 0..3)), 1..5).prop_map(
            |volumes| {
                let volume = |(nth, (head, kinds)): (usize, &(String, Vec<&str>))| {
                    let segments =
                        kinds.iter().enumerate().map(|(at, kind)| segment(at + 1, 4 * at as u64, kind));
                    text_of(&format!("v{nth}"), head, &segments.collect::<Vec<_>>()) + "\n"
                };
                volumes.iter().enumerate().map(volume).collect::<String>().replace("a_rimage", "v0")
            },
        )
    }

    fn same(text: &str) -> Result<Vg, Defect> {
        let read = Vg::read(text, Forms::Usual);
        assert_eq!(read, Vg::read(text, Forms::Any), "{text}");
        read
    }

    proptest! {
        #[test]
        fn volumes_are_the_same_with_and_without_the_grammar(volumes in volumes()) {
            let _ = same(&group(&volumes));
        }

        #[test]
        fn so_are_damaged_ones(
            volumes in volumes(),
            damage in vec((any::<Index>(), 0_usize..3, select(&[
                "", "\"", "\\", "\\\"", " ", "\n", "}", "{", "]", ",", "0", "-", "#", "\0", "ü", "'", "x = 1\n", "tags = []\n",
                "id = \"a\"\n", "segment", "}\n}\n", "99999999999", "v1", "pv0",
            ][..])), 1..4),
        ) {
            let mut text = volumes;
            for (place, cut, insert) in damage {
                let at = place.index(text.len() + 1);
                let range = at..(at + cut).min(text.len());
                if text.get(range.clone()).is_some() {
                    text.replace_range(range, insert);
                }
            }
            let _ = same(&group(&text));
        }
    }

    #[test]
    fn a_good_group_is_read_both_ways() {
        let volume = |name| text_of(name, HEAD, &[segment(1, 0, LINEAR)]);
        let vg = same(&group(&format!("{}\n{}", volume("v0"), volume("v1")))).unwrap();
        assert_eq!(vg.lvs.len(), 2);
        assert!(Arc::ptr_eq(&vg.lvs[0].flags, &vg.lvs[1].flags));
        assert!(matches!(vg.lvs[1].segments[0].areas(), [Area::Pv { .. }]));
    }
}
