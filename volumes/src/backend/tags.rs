//! What the tags of a logical volume say of the volume or snapshot that it is.
//!
//! | tag | means |
//! |---|---|
//! | `gabion`, `gabion.dev/owner=…` | it is ours |
//! | `gabion.dev/volume=…` | the volume's id |
//! | `gabion.dev/snapshot=…`, `gabion.dev/source=…` | the snapshot's id, and the volume that it was cut from |
//! | `gabion.dev/class=…` | its class |
//! | `gabion.dev/fs=…` | what is on it: `new`, `formatting`, `ext4`, `xfs`, `btrfs`, `block` |
//! | `gabion.dev/fstype=…` | the filesystem asked for |
//! | `gabion.dev/from-snapshot=…`, `gabion.dev/from-volume=…` | what its content was copied from |
//! | `gabion.dev/qos=…` | its limits of reading and writing |
//! | `gabion.dev/ephemeral` | it goes with its pod |
//! | `gabion.dev/copying` | a snapshot that was acknowledged, and is being copied |
//! | `gabion.dev/for-snapshot=…`, `gabion.dev/for-volume=…` | a temporary snapshot, and whose copy is made of it |
//! | `gabion.dev/filling` | its content is still being copied, or made its own: it is not complete |

use devices::filesystem::FsType;
use lvm::Tag;
use lvm::metadata::Lv;
use lvm::ops::{CREATING, FS_PREFIX};

use super::NewVolume;
use crate::{ClassName, Content, Error, Lifecycle, Limits, SnapshotId, Source, VolumeId};

/// The mark of all that this product makes.
pub(crate) const OURS: &str = "gabion";
pub(crate) const OWNER: &str = "gabion.dev/owner=";
pub(crate) const VOLUME: &str = "gabion.dev/volume=";
const CLASS: &str = "gabion.dev/class=";
const FS_TYPE: &str = "gabion.dev/fstype=";
const FROM_SNAPSHOT: &str = "gabion.dev/from-snapshot=";
const FROM_VOLUME: &str = "gabion.dev/from-volume=";
pub(crate) const LIMITS: &str = "gabion.dev/qos=";
const EPHEMERAL: &str = "gabion.dev/ephemeral";
pub(crate) const FILLING: &str = "gabion.dev/filling";
pub(crate) const COPYING: &str = "gabion.dev/copying";
pub(crate) const FOR_SNAPSHOT: &str = "gabion.dev/for-snapshot=";
pub(crate) const FOR_VOLUME: &str = "gabion.dev/for-volume=";
pub(crate) const SNAPSHOT: &str = "gabion.dev/snapshot=";
pub(crate) const SOURCE: &str = "gabion.dev/source=";

/// A tag of this text.
pub(crate) fn tag(text: &str) -> Result<Tag, Error> {
    Tag::new(text).map_err(|error| Error::invalid(format!("{text:?} for a tag"), error))
}

/// The tag that says what is on a volume.
pub(crate) fn content(content: Content) -> Result<Tag, Error> {
    tag(&format!("{FS_PREFIX}{}", content.as_word()))
}

/// The tag of a class.
pub(crate) fn of_class(class: &ClassName) -> Result<Tag, Error> {
    tag(&format!("{CLASS}{class}"))
}

/// Whose copy is made of a temporary snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    Snapshot(SnapshotId),
    Volume(VolumeId),
}

/// Whose copy is made of it, if it is a temporary snapshot.
pub(crate) fn served_by(lv: &Lv) -> Option<Served> {
    let snapshot = lv.tag_value(FOR_SNAPSHOT).and_then(|id| id.parse().ok()).map(Served::Snapshot);
    snapshot.or_else(|| Some(Served::Volume(lv.tag_value(FOR_VOLUME)?.parse().ok()?)))
}

/// What is on a volume; a word that is not known is left alone like a block device's content.
pub(crate) fn content_of(lv: &Lv) -> Content {
    match lv.tag_value(FS_PREFIX) {
        Some("new") => Content::New,
        Some("formatting") => Content::Formatting,
        Some(word) => word.parse().map_or(Content::Block, Content::Filesystem),
        None => Content::Block,
    }
}

/// The tags of a new volume, without those that LVM's library adds itself.
pub(crate) fn of_new(new: &NewVolume<'_>, class: &ClassName) -> Result<Vec<Tag>, Error> {
    let NewVolume { id, fs_type, source, lifecycle, limits, .. } = *new;
    let mut texts = vec![OURS.to_owned(), format!("{VOLUME}{id}"), format!("{CLASS}{class}")];
    texts.extend(fs_type.map(|fs| format!("{FS_TYPE}{fs}")));
    texts.extend(source.map(|source| match source {
        Source::Snapshot(id) => format!("{FROM_SNAPSHOT}{id}"),
        Source::Volume(id) => format!("{FROM_VOLUME}{id}"),
    }));
    texts.extend((!limits.is_empty()).then(|| of_limits(limits)));
    texts.extend((lifecycle == Lifecycle::Ephemeral).then(|| EPHEMERAL.to_owned()));
    texts.iter().map(|text| tag(text)).collect()
}

/// The tags of a new snapshot.
pub(crate) fn of_snapshot(id: &SnapshotId, source: &VolumeId, class: &ClassName) -> Result<Vec<Tag>, Error> {
    [OURS.to_owned(), format!("{SNAPSHOT}{id}"), format!("{SOURCE}{source}"), format!("{CLASS}{class}")]
        .iter()
        .map(|text| tag(text))
        .collect()
}

/// The id of the volume that it is, complete or not.
pub(crate) fn volume_of(lv: &Lv) -> Option<VolumeId> {
    lv.tag_value(VOLUME)?.parse().ok()
}

/// The id of the snapshot that it is, complete or not.
pub(crate) fn snapshot_of(lv: &Lv) -> Option<SnapshotId> {
    lv.tag_value(SNAPSHOT)?.parse().ok()
}

/// The volume that a snapshot was cut from.
pub(crate) fn source_of(lv: &Lv) -> Option<VolumeId> {
    lv.tag_value(SOURCE)?.parse().ok()
}

/// The class that it says it is of.
pub(crate) fn class_of(lv: &Lv) -> Option<ClassName> {
    lv.tag_value(CLASS)?.parse().ok()
}

/// The filesystem that was asked for.
pub(crate) fn fs_type_of(lv: &Lv) -> Option<FsType> {
    lv.tag_value(FS_TYPE)?.parse().ok()
}

/// What its content was copied from.
pub(crate) fn origin_of(lv: &Lv) -> Option<Source> {
    let snapshot = lv.tag_value(FROM_SNAPSHOT).and_then(|id| id.parse().ok()).map(Source::Snapshot);
    snapshot.or_else(|| Some(Source::Volume(lv.tag_value(FROM_VOLUME)?.parse().ok()?)))
}

/// The text of the tag that holds limits.
pub(crate) fn of_limits(limits: Limits) -> String {
    format!("{LIMITS}{}", limits.to_tag())
}

/// Its limits. A tag that is not understood says nothing.
pub(crate) fn limits_of(lv: &Lv) -> Limits {
    lv.tag_value(LIMITS).and_then(Limits::from_tag).unwrap_or_default()
}

/// How long it is to live.
pub(crate) fn lifecycle_of(lv: &Lv) -> Lifecycle {
    if lv.has_tag(EPHEMERAL) { Lifecycle::Ephemeral } else { Lifecycle::Persistent }
}

/// Whether it was never completed.
pub(crate) fn is_unfinished(lv: &Lv) -> bool {
    lv.has_tag(CREATING) || lv.has_tag(FILLING)
}
