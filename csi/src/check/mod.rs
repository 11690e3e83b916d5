//! Looking at what callers wrote, field by field, before anything is done.
//!
//! Limits are those of the specification: 128 bytes for a text, 4 KiB for a map or the flags of a mount.

mod capability;
mod parameters;

use std::collections::BTreeMap;
use std::path::{Component, Path};

use devices::Bytes;
use tonic::{Code, Status};
use volumes::{SizeRange, VolumeId};

use crate::proto::CapacityRange;
use crate::status::{invalid, shown, status};

pub(crate) use capability::{Use, every_use, one_use};
pub(crate) use parameters::{mutable_parameters, volume_parameters, without_parameters};

/// Longest text, in bytes, where a field says nothing else.
const TEXT: usize = 128;
/// Longest map: keys and values together, in bytes.
const MAP: usize = 4096;
/// Longest path, in bytes, with its final NUL (`PATH_MAX`).
const PATH: usize = 4096;

/// A text that must be there: 1 to 128 bytes, no control characters.
pub(crate) fn text<'a>(field: &str, text: &'a str) -> Result<&'a str, Status> {
    if text.is_empty() {
        return Err(invalid(field, "it is missing"));
    }
    if text.len() > TEXT {
        return Err(invalid(field, format!("it has {} bytes; {TEXT} are taken", text.len())));
    }
    match text.chars().find(|character| character.is_control()) {
        Some(control) => Err(invalid(field, format!("it holds the control character {control:?}"))),
        None => Ok(text),
    }
}

/// An id that this driver may have given out. Whatever it never gave out is no error, and `None`: it does not exist.
pub(crate) fn id<T: std::str::FromStr>(field: &str, given: &str) -> Result<Option<T>, Status> {
    Ok(text(field, given)?.parse().ok())
}

/// The id of a volume on this node. Those of inline volumes are made by the kubelet, and may be longer than ours.
pub(crate) fn node_id(field: &str, given: &str) -> Result<VolumeId, Status> {
    VolumeId::for_name(text(field, given)?).map_err(|error| crate::status::of(&error))
}

/// A path at which something is to be put or taken away: absolute, without `..`.
pub(crate) fn path<'a>(field: &str, given: &'a str) -> Result<&'a Path, Status> {
    let path = any_path(field, given)?;
    if !is_plain(path) {
        return Err(invalid(field, format!("{} is not absolute, or has a part `..`", shown(given))));
    }
    Ok(path)
}

/// A path at which something is looked for. `None` where nothing of ours can be.
pub(crate) fn place<'a>(field: &str, given: &'a str) -> Result<Option<&'a Path>, Status> {
    any_path(field, given).map(|path| is_plain(path).then_some(path))
}

fn any_path<'a>(field: &str, given: &'a str) -> Result<&'a Path, Status> {
    if given.is_empty() {
        return Err(invalid(field, "it is missing"));
    }
    if given.len() >= PATH {
        return Err(invalid(field, format!("it has {} bytes; {} are taken", given.len(), PATH - 1)));
    }
    match given.chars().find(|character| character.is_control()) {
        Some(control) => Err(invalid(field, format!("it holds the control character {control:?}"))),
        None => Ok(Path::new(given)),
    }
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.components().count() > 1
}

/// A map of bounded size.
pub(crate) fn map(field: &str, given: &BTreeMap<String, String>) -> Result<(), Status> {
    let length: usize = given.iter().map(|(key, value)| key.len() + value.len()).sum();
    if length > MAP {
        return Err(invalid(field, format!("it has {length} bytes; {MAP} are taken")));
    }
    Ok(())
}

/// A range of sizes that says something.
pub(crate) fn size(field: &str, given: &CapacityRange) -> Result<SizeRange, Status> {
    let bytes = |part: &str, count: i64| {
        u64::try_from(count).map_err(|_| invalid(&format!("{field}.{part}"), format!("{count} is negative")))
    };
    let required = bytes("required_bytes", given.required_bytes)?;
    let limit = bytes("limit_bytes", given.limit_bytes)?;
    let range = SizeRange::at_least(Bytes::new(required));
    match (required, limit) {
        (0, 0) => Err(invalid(field, "it says nothing")),
        (_, 0) => Ok(range),
        _ if limit < required => Err(status(
            Code::OutOfRange,
            &format!("{field}: the limit of {limit} bytes is below the {required} bytes that are required"),
        )),
        _ => Ok(range.up_to(Bytes::new(limit))),
    }
}

/// How many entries a list may have: `None` for no limit.
pub(crate) fn max_entries(given: i32) -> Result<Option<usize>, Status> {
    let most = usize::try_from(given).map_err(|_| invalid("max_entries", format!("{given} is negative")))?;
    Ok((most > 0).then_some(most))
}

/// A place in a volume.
pub(crate) fn offset(field: &str, given: i64) -> Result<Bytes, Status> {
    u64::try_from(given).map(Bytes::new).map_err(|_| invalid(field, format!("{given} is negative")))
}

/// How many results a message may have.
pub(crate) fn max_results(given: i32) -> Result<usize, Status> {
    let most = usize::try_from(given).map_err(|_| invalid("max_results", format!("{given} is negative")))?;
    Ok(if most > 0 { most } else { usize::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
        result.unwrap_err().code()
    }

    #[test]
    fn texts_have_a_length_and_no_control_characters() {
        assert_eq!(text("name", &"é".repeat(64)).unwrap().len(), 128);
        for bad in ["", "a\nb", "\0", "a\u{85}", &"x".repeat(129), &"x".repeat(1 << 20)] {
            assert_eq!(code(text("name", bad)), Code::InvalidArgument);
        }
    }

    #[test]
    fn an_id_that_was_never_given_out_is_unknown_and_no_error() {
        let known: Option<VolumeId> = id("volume_id", "pvc-1").unwrap();
        assert_eq!(known.unwrap().as_str(), "pvc-1");
        for unknown in ["../../x", "A", "a b", "-", "/etc/passwd"] {
            assert_eq!(id::<VolumeId>("volume_id", unknown).unwrap(), None, "{unknown}");
        }
        let kubelets = format!("csi-{}", "0f".repeat(32));
        assert!(node_id("volume_id", &kubelets).unwrap().as_str().starts_with("gv-"));
        assert_eq!(node_id("volume_id", "pvc-1").unwrap().as_str(), "pvc-1");
    }

    #[test]
    fn paths_lead_straight_down_from_the_root() {
        assert_eq!(path("target_path", "/var/lib/x").unwrap(), Path::new("/var/lib/x"));
        for bad in
            ["", "x", "./x", "/", "/a/../b", "../../x", "/a\nb", "/a\0", &format!("/{}", "x".repeat(4095))]
        {
            assert_eq!(code(path("target_path", bad)), Code::InvalidArgument, "{bad:.20}");
        }
        for nowhere in ["some/path", "/a/../b", "/"] {
            assert_eq!(place("volume_path", nowhere).unwrap(), None);
        }
        assert_eq!(code(place("volume_path", "")), Code::InvalidArgument);
    }

    #[test]
    fn sizes_are_not_negative_and_say_something() {
        let range = |required_bytes, limit_bytes| {
            size("capacity_range", &CapacityRange { required_bytes, limit_bytes })
        };
        assert_eq!(range(5, 0).unwrap(), SizeRange::at_least(Bytes::new(5)));
        assert_eq!(range(5, 5).unwrap(), SizeRange::at_least(Bytes::new(5)).up_to(Bytes::new(5)));
        assert_eq!(range(0, 7).unwrap(), SizeRange::at_least(Bytes::ZERO).up_to(Bytes::new(7)));
        for (required, limit) in [(-1, 0), (0, -1), (i64::MIN, i64::MIN), (0, 0), (-1, 5)] {
            assert_eq!(code(range(required, limit)), Code::InvalidArgument);
        }
        assert_eq!(code(range(6, 5)), Code::OutOfRange);
    }

    #[test]
    fn maps_are_bounded_and_lists_have_no_negative_limit() {
        let with = |length| BTreeMap::from([("k".to_owned(), "v".repeat(length))]);
        assert!(map("parameters", &with(4095)).is_ok());
        assert_eq!(code(map("parameters", &with(4096))), Code::InvalidArgument);
        assert_eq!((max_entries(0).unwrap(), max_entries(2).unwrap()), (None, Some(2)));
        assert_eq!(code(max_entries(-1)), Code::InvalidArgument);
    }

    proptest! {
        #[test]
        fn what_is_taken_keeps_the_rules(given in "\\PC{0,140}|(/[a-z.]{0,5}){0,6}|[\\x00-\\x20]{1,3}", required: i64, limit: i64) {
            if let Ok(taken) = text("f", &given) {
                prop_assert!((1..=128).contains(&taken.len()) && !taken.contains(char::is_control));
            }
            if let Ok(taken) = path("f", &given) {
                prop_assert!(taken.is_absolute() && !given.split('/').any(|part| part == ".."));
            }
            if let Ok(range) = size("f", &CapacityRange { required_bytes: required, limit_bytes: limit }) {
                prop_assert!(required >= 0 && limit >= 0);
                prop_assert!(range.limit().is_none_or(|limit| limit >= range.required()));
            }
        }
    }
}
