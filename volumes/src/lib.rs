//! Device classes and volumes on one node, without gRPC and without Kubernetes.
//!
//! A [`DeviceClass`](class::DeviceClass) says which disks form which kind of pool; a [`Node`] makes the pools and the
//! volumes in them. What kind a volume is (thick or thin logical volume, partition, directory) nobody outside needs to
//! ask. All truth is on the disks: a node that lost everything else finds its volumes again when it is
//! [opened](Node::open); a [`Survey`] only tells them, and changes nothing.
//!
//! ```no_run
//! use devices::Bytes;
//! use volumes::class::DeviceClass;
//! use volumes::{CreateVolume, Mode, Node, Settings, SizeRange, Stage};
//!
//! let classes = DeviceClass::parse_all(&std::fs::read_to_string("/etc/gabion/classes.yaml")?)?;
//! let (node, repairs) = Node::open(Settings::new("my-host".parse()?, classes))?;
//! println!("{repairs}");
//! let volume = node.create(&CreateVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(10))))?;
//! node.stage(&Stage::new(volume.id, "/srv/db", Mode::Filesystem))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Calls block, and may come from several threads at once. A second operation on the same volume is refused as
//! [`Kind::Busy`], never queued; each one may be repeated after it failed or was killed, and ends what it began.

#![forbid(unsafe_code)]

mod asked;
mod backend;
mod begun;
pub(crate) mod changed;
mod changes;
pub mod class;
mod error;
mod health;
pub mod keeper;
mod kept_open;
mod limits;
mod lock;
mod mounts;
mod name;
mod node;
mod places;
mod pools;
mod repair;
mod request;
mod settings;
mod survey;
mod volume;

// The caches of tiered classes are made of it.
use bcache as _;

pub use changed::Blocks;
pub use devices::filesystem::FsType;
pub use error::{Error, Kind};
pub use health::{ClassHealth, HealthIssue, Severity, VolumeHealth};
pub use limits::{Limit, Limited, Limits};
pub use lvm::ops::SizeRange;
pub use mounts::{Stats, VolumeUsage};
pub use name::{ClassName, Owner, SnapshotId, VolumeId};
pub use node::Node;
pub use repair::{ClassProblem, Orphan, Repair, Repairs};
pub use request::{CreateSnapshot, CreateVolume, Mode, Publish, Sharing, Stage};
pub use settings::{DeviceScope, Settings};
pub use survey::Survey;
pub use volume::{Abilities, Capacity, Content, Lifecycle, Snapshot, SnapshotState, Source, Volume};

pub use devices::mount::Access;
