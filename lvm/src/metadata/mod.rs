//! The native reader of LVM's metadata: labels, metadata areas, text, and the typed view of them.
//!
//! Nothing here runs a command or takes a lock to begin with, so a sick disk, a busy group or a guest's own LVM
//! cannot get in the way.

mod flags;
mod lv;
mod segment;
mod text;
mod usage;
mod vg;
mod view;

pub use flags::{LvFlag, PvFlag, VgFlag};
pub use lv::{AllocationPolicy, Lv, ReadAhead};
pub use segment::{
    Area, Cache, CacheMode, CachePool, CacheSettings, CacheVolLayout, Discards, Integrity, Mirror, Raid,
    RaidLeg, RaidLevel, Segment, SegmentKind, Snapshot, Striped, Thin, ThinMessage, ThinPool, Writecache,
};
pub use text::{Node, Section, Value};
pub use usage::Usage;
pub use vg::{MetadataArea, OrphanPv, Pv, PvDevice, Vg, Written};
pub use view::{Defect, Problem, View};
