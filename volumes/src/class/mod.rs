//! Device classes: which disks form which kind of pool, and what volumes in it are like.
//!
//! The YAML is the same on a machine of its own and in a cluster:
//!
//! ```
//! use volumes::class::DeviceClass;
//!
//! let classes = DeviceClass::parse_all(
//!     "
//! apiVersion: gabion.dev/v1alpha1
//! kind: DeviceClass
//! metadata: {name: fast}
//! spec:
//!   default: true
//!   devices: {paths: [/dev/disk/by-id/nvme-eui.0025385b71b0a2c3]}
//!   pool: {lvm: {volumeGroup: gabion-fast}}
//! ",
//! )?;
//! assert_eq!(classes[0].name.as_str(), "fast");
//! let error = DeviceClass::parse_all("kind: DeviceClass\nspec: {pool: {lvm: {volumegroup: x}}}").unwrap_err();
//! assert!(error.to_string().contains("spec.pool.lvm"), "{error}");
//! # Ok::<(), volumes::Error>(())
//! ```

mod change;
mod check;
mod quantity;
mod selection;
mod spec;
#[cfg(test)]
mod tests;

use devices::selector::{Match, Selector};
use lvm::VgName;
use serde::Deserialize;

pub use change::FieldChange;
pub(crate) use change::check_changes;
pub(crate) use check::check_together;
pub use quantity::{Reserve, Size};
pub(crate) use quantity::{Written, parse_quantity};
pub use selection::NodeLabels;
pub use spec::{
    AutoExtend, AutoSize, ClassSpec, DeviceMatch, Devices, DirectoryPool, DiscoveryMode, Integrity, Layout,
    Linear, LvmPool, NodeOperator, NodeRequirement, NodeSelector, NodeSelectorTerm, OnDelete, PartitionPool,
    Pool, Quota, Raid, RaidLevel, Ratio, RefuseAt, RootMode, SnapshotClass, StorageClass, Striped, ThinPool,
    TrimSchedule, VolumeDefaults, Wipe,
};

use crate::{Abilities, ClassName, Error};

/// What `apiVersion` says.
pub const API_VERSION: &str = "gabion.dev/v1alpha1";
/// What `kind` says.
pub const KIND: &str = "DeviceClass";

/// A device class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceClass {
    /// Its name.
    pub name: ClassName,
    /// What it says.
    pub spec: ClassSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: ClassSpec,
    /// What a cluster writes there is not ours to check.
    #[serde(default, rename = "status")]
    _status: serde_json::Value,
}

/// Kubernetes has many more fields here, which say nothing about the class.
#[derive(Deserialize)]
struct Metadata {
    name: ClassName,
}

impl DeviceClass {
    /// A class of that name and content.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`](crate::Kind::InvalidArgument) with the path of the field that cannot be right.
    pub fn new(name: ClassName, spec: ClassSpec) -> Result<Self, Error> {
        let class = Self { name, spec };
        check::check(&class)?;
        Ok(class)
    }

    /// Reads one class from the JSON that the Kubernetes API has of it.
    ///
    /// # Errors
    ///
    /// As [`DeviceClass::new`]; also for fields that are not known.
    pub fn from_json(document: &serde_json::Value) -> Result<Self, Error> {
        let read: Document = serde_path_to_error::deserialize(document).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "the document".to_owned() } else { path };
            Error::invalid(path, error.inner())
        })?;
        if read.api_version != API_VERSION {
            return Err(Error::invalid(
                "apiVersion",
                format!("it is {:?}, not {API_VERSION}", read.api_version),
            ));
        }
        if read.kind != KIND {
            return Err(Error::invalid("kind", format!("it is {:?}, not {KIND}", read.kind)));
        }
        Self::new(read.metadata.name, read.spec)
    }

    /// Reads the classes of a YAML text, one a document.
    ///
    /// # Errors
    ///
    /// As [`DeviceClass::from_json`]; for a text that is no YAML, with the place; for two classes of one name, two
    /// defaults, and a class that shares with one that is not there or has no volume group.
    pub fn parse_all(yaml: &str) -> Result<Vec<Self>, Error> {
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(yaml)
            .map_err(|error| Error::invalid("the classes", error.to_string()))?;
        let classes: Vec<Self> = documents
            .iter()
            .filter(|document| !document.is_null())
            .map(Self::from_json)
            .collect::<Result<_, _>>()?;
        check::check_together(&classes)?;
        Ok(classes)
    }

    /// The volume group of the class, where it has one of its own.
    #[must_use]
    pub fn volume_group(&self) -> Option<VgName> {
        let named = match &self.spec.pool {
            Pool::Lvm(pool) => pool.volume_group.as_ref(),
            Pool::Thin(pool) => pool.volume_group.as_ref(),
            Pool::Partition(_) | Pool::Directory(_) => return None,
        };
        named.cloned().or_else(|| VgName::new(&format!("gabion-{}", self.name)).ok())
    }

    /// What its volumes can do, whether or not its disks are here now. A snapshot or a copy of a thick volume takes as long
    /// as reading and writing every byte.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        match &self.spec.pool {
            // Their blocks are told by the pool's own metadata.
            Pool::Thin(_) => {
                Abilities { snapshots: true, copies: true, block: true, limits: true, changed_blocks: true }
            }
            Pool::Lvm(_) => {
                Abilities { snapshots: true, copies: true, block: true, limits: true, ..Abilities::default() }
            }
            // The kernel limits whole devices.
            Pool::Partition(_) => Abilities { block: true, ..Abilities::default() },
            Pool::Directory(_) => Abilities::default(),
        }
    }

    /// Whether its volumes can be written beyond their sizes.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        match &self.spec.pool {
            Pool::Directory(DirectoryPool { quota: Quota::None, .. }) => Sizes::Promised,
            Pool::Lvm(_) | Pool::Thin(_) | Pool::Partition(_) | Pool::Directory(_) => Sizes::Enforced,
        }
    }

    /// Whether each of its volumes gets a filesystem of its own.
    pub(crate) fn makes_filesystems(&self) -> bool {
        match &self.spec.pool {
            Pool::Directory(_) => false,
            Pool::Lvm(_) | Pool::Thin(_) | Pool::Partition(_) => true,
        }
    }

    /// Which disks of a host the class selects.
    #[must_use]
    pub fn selector(&self) -> Selector {
        let devices = &self.spec.devices;
        let selector = devices.paths.iter().fold(Selector::new(), |selector, path| selector.path(path));
        let selector =
            devices.optional_paths.iter().fold(selector, |selector, path| selector.optional_path(path));
        devices.matches.iter().fold(selector, |selector, wanted| selector.matching(wanted.to_match()))
    }
}

/// What the size of a volume is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Nobody can write more.
    Enforced,
    /// It is counted, but whoever writes more gets it at the cost of the other volumes.
    Promised,
}

impl DeviceMatch {
    fn to_match(&self) -> Match {
        let mut wanted = Match::new();
        if let Some(name) = &self.name {
            wanted = wanted.name(name.clone());
        }
        if let Some(model) = &self.model {
            wanted = wanted.model(model.clone());
        }
        if let Some(serial) = &self.serial {
            wanted = wanted.serial(serial.clone());
        }
        if let Some(wwn) = &self.wwn {
            wanted = wanted.wwn(wwn.clone());
        }
        if let Some(transport) = self.transport {
            wanted = wanted.transport(transport);
        }
        if let Some(rotational) = self.rotational {
            wanted = wanted.rotational(rotational);
        }
        if let Some(Size(size)) = self.min_size {
            wanted = wanted.min_size(size);
        }
        if let Some(Size(size)) = self.max_size {
            wanted = wanted.max_size(size);
        }
        wanted
    }
}

impl Layout {
    /// The same for LVM.
    #[must_use]
    pub fn to_lvm(self) -> lvm::ops::Layout {
        let size = |size: Option<Size>| size.map_or(devices::Bytes::kib(64), |Size(size)| size);
        match self {
            Self::Linear(Linear {}) => lvm::ops::Layout::Linear,
            Self::Striped(striped) => {
                lvm::ops::Layout::Striped { stripes: striped.stripes, stripe_size: size(striped.stripe_size) }
            }
            Self::Raid(raid) => {
                let stripe_size = size(raid.stripe_size);
                let copies = raid.mirrors.unwrap_or(1).saturating_add(1);
                let stripes = raid.stripes.unwrap_or(raid.level.fewest_stripes());
                match raid.level {
                    RaidLevel::One => lvm::ops::Layout::Raid1 { copies },
                    RaidLevel::Four => lvm::ops::Layout::Raid4 { stripes, stripe_size },
                    RaidLevel::Five => lvm::ops::Layout::Raid5 { stripes, stripe_size },
                    RaidLevel::Six => lvm::ops::Layout::Raid6 { stripes, stripe_size },
                    RaidLevel::Ten => lvm::ops::Layout::Raid10 { copies, stripes, stripe_size },
                }
            }
        }
    }
}

impl RaidLevel {
    /// The fewest disks' worth of data that LVM lays out so.
    const fn fewest_stripes(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Four | Self::Five | Self::Ten => 2,
            Self::Six => 3,
        }
    }
}

impl DeviceClass {
    /// How its volumes, or its thin pool, lie on the disks; `None` where nothing of LVM does.
    #[must_use]
    pub fn layout(&self) -> Option<lvm::ops::Layout> {
        match &self.spec.pool {
            Pool::Lvm(pool) => Some(pool.layout.to_lvm()),
            Pool::Thin(pool) => Some(pool.layout.to_lvm()),
            Pool::Partition(_) | Pool::Directory(_) => None,
        }
    }
}
