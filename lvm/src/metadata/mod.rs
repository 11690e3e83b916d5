//! The native reader of LVM's metadata: labels, metadata areas, text, and the typed view of them.
//!
//! Nothing here runs a command or takes a lock to begin with, so a sick disk, a busy group or a guest's own LVM
//! cannot get in the way.

mod allocate;
mod area;
mod assemble;
mod bytes;
mod capacity;
mod committed;
mod crc;
mod decode;
mod decode_segment;
mod fields;
mod flags;
mod label;
mod lex;
mod lv;
mod reader;
mod scan;
mod segment;
mod source;
mod text;
mod usage;
mod usual;
mod vg;
mod view;
mod worker;

pub use area::{AreaHeader, TextLocation};
pub use capacity::MetadataRoom;
pub use crc::checksum;
pub use flags::{LvFlag, PvFlag, VgFlag};
pub use label::{Label, Stretch};
pub use lv::{AllocationPolicy, Lv, ReadAhead};
pub use reader::{Cost, Options, Reader, read, read_images};
pub use segment::{
    Area, Cache, CacheMode, CachePool, CacheSettings, CacheVolLayout, Discards, Integrity, Mirror, Raid,
    RaidLeg, RaidLevel, Segment, SegmentKind, Snapshot, Striped, Thin, ThinMessage, ThinPool, Writecache,
};
pub use source::{Buffer, Device, Image, Source};
pub use text::{Node, Section, Value};
pub use usage::Usage;
pub use vg::{MetadataArea, OrphanPv, Pv, PvDevice, Vg, Written};
pub use view::{Defect, Problem, View};
