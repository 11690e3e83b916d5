//! The fields of a device class, as they are written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use devices::discovery::Transport;
use devices::filesystem::FsType;
use devices::selector::Pattern;
use lvm::VgName;
use serde::{Deserialize, Deserializer, de};

use super::quantity::{Reserve, Size, Written};
use crate::{ClassName, Limits};

/// What a class says: which disks form its pool, and what volumes in it are like.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ClassSpec {
    /// Whether volumes that name no class are made in this one.
    pub default: bool,
    /// The nodes that have this class; all of them where it is absent.
    pub node_selector: Option<NodeSelector>,
    /// The disks of the pool.
    pub devices: Devices,
    /// What the disks form; thin with defaults where it is absent.
    pub pool: Pool,
    /// What is kept free of the pool, in bytes or percent.
    pub reserve: Reserve,
    /// What volumes are like.
    pub volume: VolumeDefaults,
    /// The StorageClass that is made of it in a cluster.
    pub storage_class: StorageClass,
    /// The VolumeSnapshotClass that is made of it in a cluster.
    pub snapshot_class: SnapshotClass,
    /// Whether volumes can be cut together at one moment, which no pool offers yet.
    pub group_snapshots: bool,
}

/// core/v1 NodeSelector: a node is selected by any of the terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeSelector {
    /// Of which one must hold.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// One term of a node selector: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeSelectorTerm {
    /// About the node's labels.
    pub match_expressions: Vec<NodeRequirement>,
    /// About the node's fields, of which there is `metadata.name`.
    pub match_fields: Vec<NodeRequirement>,
}

/// One requirement of a node selector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRequirement {
    /// The label or field.
    pub key: String,
    /// How it is compared.
    pub operator: NodeOperator,
    /// With what.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum NodeOperator {
    /// It is one of the values.
    In,
    /// It is absent, or none of the values.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
    /// It is a number above the value.
    Gt,
    /// It is a number below the value.
    Lt,
}

/// Which disks belong to the pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Devices {
    /// Disks that must exist and be eligible.
    pub paths: Vec<PathBuf>,
    /// Disks that are used where they are present.
    pub optional_paths: Vec<PathBuf>,
    /// Disks by what they are.
    #[serde(rename = "match")]
    pub matches: Vec<DeviceMatch>,
    /// Whether disks that are found later join.
    pub discovery: DiscoveryMode,
    /// Whether what is on the disks may be destroyed.
    pub wipe: Wipe,
    /// The class in whose volume group this one lives, in the place of disks of its own.
    pub shared_with: Option<ClassName>,
}

/// What a disk must be like; every property that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeviceMatch {
    /// The whole name of the kernel.
    #[serde(deserialize_with = "some_parsed")]
    pub name: Option<Pattern>,
    /// The model.
    #[serde(deserialize_with = "some_parsed")]
    pub model: Option<Pattern>,
    /// The serial number.
    #[serde(deserialize_with = "some_parsed")]
    pub serial: Option<Pattern>,
    /// The world-wide name.
    #[serde(deserialize_with = "some_parsed")]
    pub wwn: Option<Pattern>,
    /// How it is reached.
    #[serde(deserialize_with = "some_transport")]
    pub transport: Option<Transport>,
    /// Whether its medium turns.
    pub rotational: Option<bool>,
    /// The least size.
    pub min_size: Option<Size>,
    /// The largest size.
    pub max_size: Option<Size>,
}

/// Whether disks that are found later join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DiscoveryMode {
    /// The disks that were there when the pool was made, and those that are named by path.
    #[default]
    Static,
    /// Later ones join.
    Dynamic,
}

/// Whether what is on the disks may be destroyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Wipe {
    /// A disk with anything on it is not used.
    #[default]
    Never,
    /// Each disk is wiped once, when it joins.
    OnceDestroyingData,
}

/// What the disks form.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pool {
    /// A volume group with thick volumes.
    Lvm(LvmPool),
    /// A thin pool in a volume group.
    Thin(ThinPool),
    /// Partitions.
    Partition(PartitionPool),
    /// Directories in a filesystem that is there.
    Directory(DirectoryPool),
}

impl Default for Pool {
    fn default() -> Self {
        Self::Thin(ThinPool::default())
    }
}

/// A volume group with thick volumes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LvmPool {
    /// The group's name; `gabion-` and the class's name where it is absent.
    #[serde(deserialize_with = "some_parsed")]
    pub volume_group: Option<VgName>,
    /// How volumes lie on the disks.
    pub layout: Layout,
}

/// How volumes lie on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Layout {
    /// One after the other.
    Linear(Linear),
    /// In stripes over several disks.
    Striped(Striped),
    /// With redundancy: disks may fail.
    Raid(Raid),
}

impl Default for Layout {
    fn default() -> Self {
        Self::Linear(Linear {})
    }
}

/// Without fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {}

/// Stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Striped {
    /// How many disks.
    pub stripes: u32,
    /// How much lies on one before the next: a power of two from 4 KiB up; 64 KiB where it is absent.
    pub stripe_size: Option<Size>,
}

/// RAID legs, each on disks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Raid {
    /// 1, 4, 5, 6 or 10.
    pub level: RaidLevel,
    /// Copies besides the first one, of levels 1 and 10 only; one where it is absent.
    #[serde(default)]
    pub mirrors: Option<u32>,
    /// Disks' worth of data, of every level but 1; the fewest that the level takes where it is absent.
    #[serde(default)]
    pub stripes: Option<u32>,
    /// How much lies on one leg before the next, of every level but 1: a power of two from 4 KiB up; 64 KiB where it is
    /// absent.
    #[serde(default)]
    pub stripe_size: Option<Size>,
    /// Checksums of blocks.
    #[serde(default)]
    pub integrity: Integrity,
}

/// What a RAID keeps besides the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u8")]
pub enum RaidLevel {
    /// 1: copies.
    One,
    /// 4: parity on a disk of its own.
    Four,
    /// 5: parity in turn on all disks.
    Five,
    /// 6: two parities in turn on all disks.
    Six,
    /// 10: stripes of copies.
    Ten,
}

impl TryFrom<u8> for RaidLevel {
    type Error = String;

    fn try_from(level: u8) -> Result<Self, String> {
        match level {
            1 => Ok(Self::One),
            4 => Ok(Self::Four),
            5 => Ok(Self::Five),
            6 => Ok(Self::Six),
            10 => Ok(Self::Ten),
            other => Err(format!("it is {other}; 1, 4, 5, 6 or 10 can be had")),
        }
    }
}

/// Whether the legs carry checksums of their blocks (dm-integrity).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Integrity {
    /// None.
    #[default]
    None,
    /// With a bitmap of what may be out of step after a crash; not offered yet.
    Bitmap,
    /// In a journal; not offered yet.
    Journal,
}

/// A thin pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ThinPool {
    /// The group's name; `gabion-` and the class's name where it is absent.
    #[serde(deserialize_with = "some_parsed")]
    pub volume_group: Option<VgName>,
    /// The pool's name in the group.
    #[serde(deserialize_with = "parsed")]
    pub pool_name: lvm::LvName,
    /// How much of the group the pool takes, 1 to 100.
    pub size_percent: u8,
    /// The pool's chunks.
    pub chunk_size: AutoSize,
    /// The pool's metadata.
    pub metadata_size: AutoSize,
    /// How the pool lies on the disks.
    pub layout: Layout,
    /// How often the pool's space may be promised.
    pub overprovision_ratio: Ratio,
    /// When the pool grows within its group.
    pub auto_extend: AutoExtend,
    /// From which fill on nothing new is made.
    pub refuse_at: RefuseAt,
}

impl Default for ThinPool {
    fn default() -> Self {
        Self {
            volume_group: None,
            pool_name: default_pool_name(),
            size_percent: 90,
            chunk_size: AutoSize::Auto,
            metadata_size: AutoSize::Auto,
            layout: Layout::default(),
            overprovision_ratio: Ratio::default(),
            auto_extend: AutoExtend::default(),
            refuse_at: RefuseAt::default(),
        }
    }
}

/// `pool`, which is a name.
#[allow(clippy::expect_used)]
fn default_pool_name() -> lvm::LvName {
    lvm::LvName::new("pool").expect("a constant that is a name")
}

/// A size, or `Auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoSize {
    /// It follows from the pool's size.
    #[default]
    Auto,
    /// So much.
    Fixed(Size),
}

/// How often a pool's space may be promised, in hundredths: 1,000 is ten times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(pub u32);

impl Default for Ratio {
    fn default() -> Self {
        Self(1000)
    }
}

/// When a pool grows within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AutoExtend {
    /// From so many percent of use on, 50 to 100; 100 is never.
    pub threshold: u8,
    /// By so many percent of its size.
    pub by: u8,
}

impl Default for AutoExtend {
    fn default() -> Self {
        Self { threshold: 80, by: 20 }
    }
}

/// From which fill on nothing new is made in a pool, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RefuseAt {
    /// Of its data.
    pub data: u8,
    /// Of its metadata.
    pub metadata: u8,
}

impl Default for RefuseAt {
    fn default() -> Self {
        Self { data: 95, metadata: 80 }
    }
}

/// Partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PartitionPool {
    /// Whether each disk takes one volume alone.
    pub exclusive: bool,
}

/// Directories in a filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryPool {
    /// The directory below which volumes are made.
    pub path: PathBuf,
    /// How sizes are enforced.
    #[serde(default)]
    pub quota: Quota,
}

/// How the sizes of directories are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Quota {
    /// By project quota of xfs or ext4.
    #[default]
    Project,
    /// Not at all: sizes are counted, so that no more is promised than there is, but a volume can be written beyond its own
    /// at the cost of the others, and has the filesystem's room in its statistics.
    None,
}

/// What volumes of a class are like.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct VolumeDefaults {
    /// The filesystem where the caller names none; ext4 where the class names none either.
    #[serde(deserialize_with = "some_parsed")]
    pub fs_type: Option<FsType>,
    /// Options for making it.
    pub mkfs_options: Vec<String>,
    /// Options for mounting it, before the caller's.
    pub mount_options: Vec<String>,
    /// The mode of a new filesystem's root directory, in octal.
    pub root_mode: RootMode,
    /// What becomes of the bytes of a deleted volume.
    pub on_delete: OnDelete,
    /// How often mounted filesystems are trimmed.
    pub trim: TrimSchedule,
    /// What each of its volumes may read and write in a second, where the volume itself does not say otherwise.
    pub qos: Limits,
}

/// The mode of a directory, at most 7777 in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootMode(pub u32);

impl Default for RootMode {
    fn default() -> Self {
        Self(0o2777)
    }
}

/// What becomes of the bytes of a deleted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OnDelete {
    /// The disk is told that they are not needed.
    #[default]
    Discard,
    /// Zeroes are written over them.
    Zero,
    /// They stay until something else is written there.
    None,
}

/// How often mounted filesystems are trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TrimSchedule {
    /// Never.
    Never,
    /// Every day.
    Daily,
    /// Every week.
    #[default]
    Weekly,
}

/// The StorageClass of a device class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StorageClass {
    /// Whether one is made.
    pub create: bool,
    /// Its name; `gabion-` and the class's name where it is absent.
    pub name: Option<String>,
    /// `Delete` or `Retain`.
    pub reclaim_policy: Option<String>,
    /// `WaitForFirstConsumer` or `Immediate`.
    pub volume_binding_mode: Option<String>,
    /// Whether claims may grow.
    pub allow_volume_expansion: bool,
    /// Mount options for its volumes.
    pub mount_options: Vec<String>,
    /// Topologies in which it is used.
    pub allowed_topologies: Vec<serde_json::Value>,
    /// Labels of it.
    pub labels: BTreeMap<String, String>,
    /// More parameters of it.
    pub parameters: BTreeMap<String, String>,
}

impl Default for StorageClass {
    fn default() -> Self {
        Self {
            create: true,
            name: None,
            reclaim_policy: None,
            volume_binding_mode: None,
            allow_volume_expansion: true,
            mount_options: Vec::new(),
            allowed_topologies: Vec::new(),
            labels: BTreeMap::new(),
            parameters: BTreeMap::new(),
        }
    }
}

/// The VolumeSnapshotClass of a device class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SnapshotClass {
    /// Whether one is made, where the pool can snapshot.
    pub create: bool,
    /// `Delete` or `Retain`.
    pub deletion_policy: Option<String>,
}

impl Default for SnapshotClass {
    fn default() -> Self {
        Self { create: true, deletion_policy: None }
    }
}

fn parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(de::Error::custom)
}

/// A text of its own type; an empty one is none.
fn some_parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty());
    text.map(|text| text.parse()).transpose().map_err(de::Error::custom)
}

fn some_transport<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Transport>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let known = Transport::ALL.into_iter().find(|transport| transport.as_word() == text);
    known.map(Some).ok_or_else(|| {
        let words: Vec<&str> = Transport::ALL.iter().map(|transport| transport.as_word()).collect();
        de::Error::custom(format!("{text:?} is no transport; there are {}", words.join(", ")))
    })
}

impl<'de> Deserialize<'de> for ClassName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl<'de> Deserialize<'de> for AutoSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self::Fixed(Size(devices::Bytes::new(bytes)))),
            Written::Text(text) if text == "Auto" => Ok(Self::Auto),
            Written::Text(text) => super::quantity::parse_quantity(&text)
                .map(|size| Self::Fixed(Size(size)))
                .map_err(|why| de::Error::custom(format!("{why}, or Auto"))),
        }
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ratio = f64::deserialize(deserializer)?;
        if !(1.0..=1000.0).contains(&ratio) {
            return Err(de::Error::custom(format!("{ratio} is no ratio; write 1 to 1000")));
        }
        // Within 100 to 100,000, so that nothing is lost.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self((ratio * 100.0).round() as u32))
    }
}

impl<'de> Deserialize<'de> for RootMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match u32::from_str_radix(&text, 8) {
            Ok(mode @ 0..=0o7777) if text.len() <= 5 => Ok(Self(mode)),
            _ => Err(de::Error::custom(format!(
                "{text:?} is no mode; write it in octal and in quotes: \"2777\""
            ))),
        }
    }
}
