//! Groups made up at random, printed in LVM's grammar by other code than the library's, and read back.

use std::fmt::Write as _;

use lvm::metadata::Vg;
use proptest::prelude::*;

use super::{Leaves, differences, insert, merge_flags, of_vg};

/// A value as it stands in the text, or a section.
enum Node {
    Raw(String),
    List(Vec<String>),
    Section(Vec<(String, Node)>),
}

/// Small numbers that follow from one seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.roll(words.len() as u64)).unwrap()]
    }

    fn some<'a>(&mut self, words: &[&'a str]) -> Vec<&'a str> {
        words.iter().filter(|_| self.roll(2) == 0).copied().collect()
    }

    fn id(&mut self) -> String {
        let mut id = String::new();
        for length in [6, 4, 4, 4, 4, 4, 6] {
            let dash = if id.is_empty() { "" } else { "-" };
            id.push_str(dash);
            for _ in 0..length {
                id.push(char::from(
                    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#"
                        [usize::try_from(self.roll(64)).unwrap()],
                ));
            }
        }
        id
    }
}

fn text(value: impl AsRef<str>) -> Node {
    Node::Raw(quote(value))
}

fn quote(value: impl AsRef<str>) -> String {
    format!("\"{}\"", value.as_ref().replace('\\', "\\\\").replace('"', "\\\""))
}

fn number(value: impl Copy + ToString) -> Node {
    Node::Raw(value.to_string())
}

fn list<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Node {
    Node::List(words.into_iter().map(quote).collect())
}

struct Entries(Vec<(String, Node)>);

impl Entries {
    fn add(&mut self, key: impl Into<String>, node: Node) {
        self.0.push((key.into(), node));
    }

    fn maybe(&mut self, dice: &mut Dice, key: &str, node: Node) {
        if dice.roll(3) == 0 {
            self.add(key, node);
        }
    }

    fn tags(&mut self, dice: &mut Dice) {
        let tags = dice.some(&["gabion", "gabion.dev/volume=a#b&c", "x:y=z!", "+t_.-/"]);
        if !tags.is_empty() {
            self.add("tags", list(tags));
        }
    }
}

/// A group of 1 to 3 PVs and volumes of many kinds.
fn group(dice: &mut Dice) -> Vec<(String, Node)> {
    let mut vg = Entries(Vec::new());
    vg.add("id", text(dice.id()));
    vg.add("seqno", number(dice.roll(1 << 31)));
    vg.maybe(dice, "format", text("lvm2"));
    let status = dice.some(&["RESIZEABLE", "READ", "WRITE", "EXPORTED", "FROM_THE_FUTURE"]);
    vg.add("status", list(status));
    let flags = dice.some(&["NOAUTOACTIVATE", "ALSO_NEW"]);
    vg.add("flags", list(flags));
    vg.tags(dice);
    vg.maybe(dice, "system_id", text("host \"x\" \\ y"));
    vg.maybe(dice, "lock_type", text("sanlock"));
    vg.maybe(dice, "profile", text("a profile"));
    vg.add("extent_size", number(1 + dice.roll(1 << 20)));
    vg.add("max_lv", number(dice.roll(3)));
    vg.add("max_pv", number(dice.roll(3)));
    vg.maybe(dice, "allocation_policy", text("cling"));
    vg.add("metadata_copies", number(dice.roll(2)));
    let count = 1 + dice.roll(3);
    let pvs = (0..count).map(|n| (format!("pv{n}"), pv(dice)));
    let pvs = Node::Section(pvs.collect());
    vg.add("physical_volumes", pvs);
    let mut lvs = Entries(Vec::new());
    for n in 0..dice.roll(8) {
        volume(dice, &mut lvs, &format!("v{n}-x.Y+z_"), count);
    }
    if !lvs.0.is_empty() {
        vg.add("logical_volumes", Node::Section(lvs.0));
    }
    let name = dice.pick(&["vg", "my-vg", "A.b+c_d--e"]).to_owned();
    vec![(name, Node::Section(vg.0))]
}

const EXTENTS: u64 = 1000;

fn pv(dice: &mut Dice) -> Node {
    let mut pv = Entries(Vec::new());
    pv.add("id", text(dice.id()));
    pv.maybe(dice, "device", text("/dev/disk/by-id/a \"b\" c"));
    pv.maybe(dice, "device_id_type", text("sys_wwid"));
    pv.maybe(dice, "device_id", text("naa.5000c500a1b2c3d4"));
    let (status, flags) = (dice.some(&["ALLOCATABLE"]), dice.some(&["MISSING", "USED_SOMEHOW"]));
    pv.add("status", list(status));
    pv.add("flags", list(flags));
    pv.tags(dice);
    pv.maybe(dice, "dev_size", number(1 + dice.0 % (1 << 50)));
    pv.add("pe_start", number(dice.roll(1 << 20)));
    pv.add("pe_count", number(EXTENTS));
    if dice.roll(4) == 0 {
        pv.add("ba_start", number(1 + dice.roll(100)));
        pv.add("ba_size", number(1 + dice.roll(100)));
    }
    Node::Section(pv.0)
}

/// A volume with the segments given, each as its own entries.
fn lv(dice: &mut Dice, lvs: &mut Entries, name: &str, segments: Vec<Entries>) {
    let mut lv = Entries(Vec::new());
    lv.add("id", text(dice.id()));
    let (status, flags) =
        (dice.some(&["READ", "WRITE", "VISIBLE", "NEW_WORD"]), dice.some(&["ACTIVATION_SKIP"]));
    lv.add("status", list(status));
    lv.add("flags", list(flags));
    lv.tags(dice);
    lv.maybe(dice, "creation_time", number(dice.0 % (1 << 33)));
    lv.maybe(dice, "creation_host", text("höst"));
    lv.maybe(dice, "allocation_policy", text("anywhere"));
    lv.maybe(dice, "read_ahead", Node::Raw("-1".to_owned()));
    lv.add("segment_count", number(segments.len()));
    let mut start = 0;
    for (n, mut segment) in (1..).zip(segments) {
        let count =
            if segment.0.iter().any(|(key, _)| key == "stripe_count") { 12 } else { 1 + dice.roll(50) };
        segment.add("start_extent", number(start));
        segment.add("extent_count", number(count));
        start += count;
        lv.add(format!("segment{n}"), Node::Section(segment.0));
    }
    lvs.add(name, Node::Section(lv.0));
}

fn segment(kind: &str) -> Entries {
    let mut segment = Entries(Vec::new());
    segment.add("type", text(kind));
    segment
}

fn striped(dice: &mut Dice, pvs: u64) -> Entries {
    let mut entries = segment("striped");
    let stripes = 1 + dice.roll(4);
    entries.add("stripe_count", number(stripes));
    if stripes > 1 {
        entries.add("stripe_size", number(128));
    }
    let area = |_| [quote(format!("pv{}", dice.roll(pvs))), dice.roll(EXTENTS - 12).to_string()];
    let areas = (0..stripes).flat_map(area).collect();
    entries.add("stripes", Node::List(areas));
    entries
}

fn plain(dice: &mut Dice, lvs: &mut Entries, name: &str, pvs: u64) {
    let segments = (0..=dice.roll(3)).map(|_| striped(dice, pvs)).collect();
    lv(dice, lvs, name, segments);
}

/// Adds a volume of some kind, with the volumes that it is built on.
fn volume(dice: &mut Dice, lvs: &mut Entries, name: &str, pvs: u64) {
    match dice.roll(6) {
        0 | 1 => plain(dice, lvs, name, pvs),
        2 => raid(dice, lvs, name, pvs),
        3 => thin(dice, lvs, name, pvs),
        4 => {
            plain(dice, lvs, &format!("{name}store"), pvs);
            plain(dice, lvs, &format!("{name}origin"), pvs);
            let mut tie = segment("snapshot");
            tie.add("origin", text(format!("{name}origin")));
            tie.add(dice.pick(&["cow_store", "merging_store"]), text(format!("{name}store")));
            tie.add("chunk_size", number(1 + dice.roll(1024)));
            lv(dice, lvs, name, vec![tie]);
        }
        _ => {
            let mut unknown = segment("from-the-future");
            unknown.add("answer", number(42));
            unknown.add("words", list(["a", "b"]));
            unknown.add("inner", Node::Section(vec![("deep".to_owned(), text("x"))]));
            lv(dice, lvs, name, vec![unknown]);
        }
    }
}

fn raid(dice: &mut Dice, lvs: &mut Entries, name: &str, pvs: u64) {
    let mut names = Vec::new();
    for leg in 0..2 + dice.roll(3) {
        for part in ["rmeta", "rimage"] {
            names.push(format!("{name}_{part}_{leg}"));
            plain(dice, lvs, &names[names.len() - 1], pvs);
        }
    }
    let mut raid = segment(dice.pick(&["raid1", "raid4", "raid5_ls", "raid5_n", "raid6_zr", "raid10"]));
    raid.add("device_count", number(names.len() / 2));
    raid.maybe(dice, "region_size", number(4096));
    raid.maybe(dice, "stripe_size", number(128));
    raid.maybe(dice, "writebehind", number(7));
    raid.maybe(dice, "max_recovery_rate", number(1000));
    raid.add("raids", list(names));
    lv(dice, lvs, name, vec![raid]);
}

fn thin(dice: &mut Dice, lvs: &mut Entries, name: &str, pvs: u64) {
    let part = |part: &str| format!("{name}_{part}");
    plain(dice, lvs, &part("tmeta"), pvs);
    plain(dice, lvs, &part("tdata"), pvs);
    let mut pool = segment("thin-pool");
    pool.add("metadata", text(part("tmeta")));
    pool.add("pool", text(part("tdata")));
    pool.add("transaction_id", number(dice.roll(1 << 31)));
    pool.add("chunk_size", number(128));
    pool.maybe(dice, "discards", text("passdown"));
    // LVM writes it only where it holds.
    if dice.roll(2) == 1 {
        pool.add("zero_new_blocks", number(1));
    }
    pool.maybe(dice, "crop_metadata", number(1));
    if dice.roll(2) == 0 {
        pool.add("message1", Node::Section(vec![("delete".to_owned(), number(dice.roll(1 << 24)))]));
        pool.add("message2", Node::Section(vec![("create".to_owned(), text(part("thin")))]));
    }
    lv(dice, lvs, name, vec![pool]);
    let mut thin = segment("thin");
    thin.add("thin_pool", text(name));
    thin.add("transaction_id", number(dice.roll(100)));
    thin.add("device_id", number(dice.roll(1 << 24)));
    thin.maybe(dice, "external_origin", text(part("tdata")));
    lv(dice, lvs, &part("thin"), vec![thin]);
}

/// White space of every kind that the grammar allows, and comments.
fn space(dice: &mut Dice, out: &mut String) {
    out.push_str(dice.pick(&[" ", "\n", "\t", "\r\n", " # a { comment = [\"\n", "\n\n  "]));
}

fn print(dice: &mut Dice, nodes: &[(String, Node)], out: &mut String) {
    for (key, node) in nodes {
        space(dice, out);
        out.push_str(key);
        match node {
            Node::Raw(raw) => {
                let _ = write!(out, "{}={}{raw}", dice.pick(&["", " "]), dice.pick(&["", " ", "\n"]));
            }
            Node::List(items) => {
                out.push_str("=[");
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { "," });
                    space(dice, out);
                    out.push_str(item);
                }
                out.push_str(dice.pick(&["]", " ]", "\n]"]));
            }
            Node::Section(nodes) => {
                out.push_str(dice.pick(&["{", " {", "\n{"]));
                print(dice, nodes, out);
                out.push_str("\n}");
            }
        }
        out.push('\n');
    }
}

fn flatten(nodes: &[(String, Node)], path: &mut Vec<String>, leaves: &mut Leaves) {
    for (key, node) in nodes {
        match node {
            Node::Raw(raw) => insert(leaves, path, key, raw),
            Node::List(items) => insert(leaves, path, key, &format!("[{}]", items.join(","))),
            Node::Section(nodes) => {
                path.push(key.clone());
                flatten(nodes, path, leaves);
                path.pop();
            }
        }
    }
}

fn made_up(seed: u64) -> (String, Leaves) {
    let mut dice = Dice(seed);
    let group = group(&mut dice);
    let mut text = String::from("contents = \"Text Format Volume Group\"\nversion = 1\n");
    print(&mut dice, &group, &mut text);
    let mut leaves = Leaves::new();
    flatten(&group, &mut Vec::new(), &mut leaves);
    (text, merge_flags(&leaves))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_made_up_group_is_read_back_entry_by_entry(seed: u64) {
        let (text, theirs) = made_up(seed);
        let vg = Vg::from_text(&text);
        prop_assert!(vg.is_ok(), "{:?}\n{text}", vg);
        let lines = differences(&theirs, &of_vg(&vg.unwrap()));
        prop_assert!(lines.is_empty(), "{lines:?}\n{text}");
    }

    #[test]
    fn a_text_with_some_bytes_changed_is_read_or_refused_and_nothing_else(seed: u64, at: prop::sample::Index, byte: u8) {
        let (text, _) = made_up(seed);
        let mut bytes = text.into_bytes();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = Vg::from_text(&String::from_utf8_lossy(&bytes));
        let end = bytes.iter().rposition(|byte| *byte == b'}').unwrap_or(0);
        bytes.truncate(index.min(end));
        prop_assert!(Vg::from_text(&String::from_utf8_lossy(&bytes)).is_err());
    }
}
