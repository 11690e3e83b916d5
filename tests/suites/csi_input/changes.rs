//! What is done to a request that is good, field by field, and the code that each must give.

use std::collections::BTreeMap;

use csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::proto::{CapacityRange, Topology, TopologyRequirement, VolumeCapability};
use rig::served::mount;
use tonic::Code;

/// One thing changed in a good request.
pub(crate) struct Change<R> {
    pub(crate) what: String,
    pub(crate) apply: Box<dyn Fn(&mut R)>,
    pub(crate) code: Code,
}

/// Some changes of a request.
pub(crate) type Changes<R> = Vec<Change<R>>;

/// One change.
pub(crate) fn change<R>(what: &str, code: Code, apply: impl Fn(&mut R) + 'static) -> Change<R> {
    Change { what: what.to_owned(), apply: Box::new(apply), code }
}

/// One change for each value of a field.
fn each<R: 'static, V: Clone + 'static>(
    field: &str,
    set: fn(&mut R, V),
    values: impl IntoIterator<Item = (String, V, Code)>,
) -> Changes<R> {
    let one = |(what, value, code): (String, V, Code)| {
        change(&format!("{field}: {what}"), code, move |request| set(request, value.clone()))
    };
    values.into_iter().map(one).collect()
}

const INVALID: Code = Code::InvalidArgument;

fn megabyte() -> String {
    "x".repeat(1 << 20)
}

/// Texts that no field takes.
fn hostile() -> [(String, String, Code); 4] {
    [
        ("a newline".into(), "a\nb".into(), INVALID),
        ("a NUL".into(), "a\0b".into(), INVALID),
        ("129 bytes".into(), "x".repeat(129), INVALID),
        ("1 MiB".into(), megabyte(), INVALID),
    ]
}

/// An id or a name: `missing` where there is none, `unknown` for one that climbs out of its directory.
pub(crate) fn texts<R: 'static>(
    field: &str,
    set: fn(&mut R, String),
    missing: Code,
    unknown: Code,
) -> Changes<R> {
    let some = [
        ("nothing".to_owned(), String::new(), missing),
        ("a way up".to_owned(), "../../x".to_owned(), unknown),
        ("an option".to_owned(), "--force".to_owned(), unknown),
        ("a command".to_owned(), "$(reboot);`reboot`".to_owned(), unknown),
    ];
    each(field, set, some.into_iter().chain(hostile()))
}

/// A path; `away` where it leads nowhere of ours.
pub(crate) fn paths<R: 'static>(
    field: &str,
    set: fn(&mut R, String),
    missing: Code,
    away: Code,
) -> Changes<R> {
    let some = [
        ("nothing", String::new(), missing),
        ("relative", "some/path".to_owned(), away),
        ("a way up", "../../x".to_owned(), away),
        ("a way up below", "/a/../../etc".to_owned(), away),
        ("the root", "/".to_owned(), away),
        ("a newline", "/a\nb".to_owned(), INVALID),
        ("a NUL", "/a\0b".to_owned(), INVALID),
        ("4096 bytes", format!("/{}", "x".repeat(4095)), INVALID),
        ("1 MiB", format!("/{}", megabyte()), INVALID),
    ];
    each(field, set, some.map(|(what, value, code)| (what.to_owned(), value, code)))
}

/// A range of sizes; `huge` where nobody can have that much.
pub(crate) fn ranges<R: 'static>(field: &str, set: fn(&mut R, CapacityRange), huge: Code) -> Changes<R> {
    let some = [
        (-1, 0, INVALID),
        (0, -1, INVALID),
        (i64::MIN, i64::MIN, INVALID),
        (0, 0, INVALID),
        (2 << 30, 1 << 30, Code::OutOfRange),
        (i64::MAX, 0, huge),
        (i64::MAX, i64::MAX, huge),
        // No multiple of an extent lies between them.
        ((64 << 20) + 1, (64 << 20) + 2, Code::OutOfRange),
    ];
    let named = some.map(|(required_bytes, limit_bytes, code)| {
        let range = CapacityRange { required_bytes, limit_bytes };
        (format!("{required_bytes} to {limit_bytes}"), range, code)
    });
    each(field, set, named)
}

/// A map of which every unknown key is refused.
pub(crate) fn maps<R: 'static>(field: &str, set: fn(&mut R, BTreeMap<String, String>)) -> Changes<R> {
    let class = "gabion.dev/device-class";
    let some = [
        ("an unknown key", "XXX_FakeKey", "1".to_owned()),
        ("an empty key", "", String::new()),
        ("a key with a newline", "a\nb", "1".to_owned()),
        ("a key that is almost ours", "gabion.dev/device-clas", "rig".to_owned()),
        ("too much", "csi.storage.k8s.io/pvc/name", megabyte()),
    ];
    let one = |(what, key, value): (&str, &str, String)| {
        (what.to_owned(), BTreeMap::from([(key.to_owned(), value)]), INVALID)
    };
    let values =
        ["", "../../x", "a\nb", "nobody's", "--force"].map(|value| ("a class", class, value.to_owned()));
    each(field, set, some.into_iter().chain(values).map(one))
}

/// A map that is not ours, and only must not be too large.
pub(crate) fn opaque<R: 'static>(field: &str, set: fn(&mut R, BTreeMap<String, String>)) -> Changes<R> {
    let huge = [
        BTreeMap::from([("k".to_owned(), megabyte())]),
        (0..1000).map(|key| (format!("key-{key}"), "v".to_owned())).collect(),
    ];
    each(field, set, huge.map(|map| ("too much".to_owned(), map, INVALID)))
}

/// How a volume is to be used.
pub(crate) fn capabilities<R: 'static>(
    field: &str,
    set: fn(&mut R, Option<VolumeCapability>),
    missing: Code,
    code: Code,
) -> Changes<R> {
    let mode = |mode| VolumeCapability { access_mode: Some(AccessMode { mode }), ..mount("", &[]) };
    let group = |group: &str| {
        let volume_mount_group = group.to_owned();
        let mount = MountVolume { volume_mount_group, ..Default::default() };
        VolumeCapability { access_type: Some(AccessType::Mount(mount)), ..mode(1) }
    };
    let long = megabyte();
    let some = [
        ("no mode", VolumeCapability { access_mode: None, ..mode(1) }),
        ("no access type", VolumeCapability { access_type: None, ..mode(1) }),
        ("mode 0", mode(0)),
        ("several nodes, reading", mode(3)),
        ("several nodes, one writer", mode(4)),
        ("several nodes, writing", mode(5)),
        ("an unknown mode", mode(77)),
        ("a negative mode", mode(i32::MIN)),
        ("another filesystem", mount("ntfs", &[])),
        ("a path for a filesystem", mount("../../x", &[])),
        ("an option for a filesystem", mount("ext4 -F /dev/vda", &[])),
        ("a filesystem of 1 MiB", mount(&long, &[])),
        ("a flag with a newline", mount("", &["a\nb"])),
        ("a flag that remounts", mount("", &["remount,rw"])),
        ("a flag of 1 MiB", mount("", &[&long])),
        ("a group", group("1000")),
        ("a group of 1 MiB", group(&long)),
    ];
    let named = some.map(|(what, capability)| (what.to_owned(), Some(capability), code));
    each(field, set, [("nothing".to_owned(), None, missing)].into_iter().chain(named))
}

/// Where something is to lie.
pub(crate) fn places<R: 'static>(field: &str, set: fn(&mut R, TopologyRequirement)) -> Changes<R> {
    let at = |key: &str, value: &str| Topology { segments: [(key.to_owned(), value.to_owned())].into() };
    let must = |requisite: Vec<Topology>| TopologyRequirement { requisite, preferred: Vec::new() };
    let key = "topology.gabion.dev/node";
    let elsewhere = Code::ResourceExhausted;
    let some = [
        ("another node", must(vec![at(key, "elsewhere")]), elsewhere),
        ("another key", must(vec![at("zone", "rig")]), elsewhere),
        ("a way up", must(vec![at(key, "../../x")]), elsewhere),
        ("a newline", must(vec![at("a\nb", "\0")]), elsewhere),
        ("1 MiB", must(vec![at(key, &megabyte())]), elsewhere),
        ("too many", must(vec![at(key, "rig"); 5000]), INVALID),
    ];
    each(field, set, some.map(|(what, wanted, code)| (what.to_owned(), wanted, code)))
}

/// A list's limit and token.
pub(crate) fn pages<R: 'static>(most: fn(&mut R, i32), token: fn(&mut R, String)) -> Changes<R> {
    let limits = [-1, i32::MIN].map(|limit| (limit.to_string(), limit, INVALID));
    let tokens = ["1", "invalid-token", "after:", "after:../../x", "a\nb"].map(str::to_owned);
    let tokens = tokens.into_iter().chain([megabyte()]);
    let mut all = each("max_entries", most, limits);
    all.extend(each(
        "starting_token",
        token,
        tokens.map(|token| {
            let shown: String = token.chars().take(20).collect();
            (format!("{shown:?}"), token, Code::Aborted)
        }),
    ));
    all
}
