//! Pools whose metadata volume was enlarged by a command that died before it committed that.
//!
//! LVM lets the enlarged metadata volume run before it commits its size, with the pool suspended above it. A pool that
//! is resumed over it takes the new size for its own at once, in its superblock, and refuses to run over the committed
//! size ever after (tried: `metadata device too small`). So the committed size comes first.

use devices::{DeviceNumber, Sectors};

use super::expected::{Expected, Found, Line};
use super::live::LiveDevice;
use crate::dm::{Activity, Place, Target, TargetLine};
use crate::metadata::Vg;
use crate::worker::table::TableLine;

/// A pool that must not run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grown {
    /// The pool's device.
    pub(super) pool: DeviceNumber,
    /// The device of its metadata, by name.
    pub(super) metadata: String,
    /// The metadata's table at its committed size; `None` where it is not simply the beginning of the present one.
    pub(super) committed: Option<Vec<TableLine>>,
}

/// The suspended pools whose metadata device is larger than what is committed.
pub(super) fn pools_over_grown_metadata(vg: &Vg, live: &[LiveDevice]) -> Vec<Grown> {
    let expected = Expected::of(vg);
    let suspended = live.iter().filter(|device| device.info.activity == Activity::Suspended);
    let over_grown = |pool: &LiveDevice| {
        let metadata = live.iter().find(|device| Some(device.info.number) == metadata_of(pool))?;
        let Found::Device(key) = expected.identify(&metadata.serves) else { return None };
        let size = expected
            .device(key)?
            .lines
            .as_deref()
            .and_then(<[Line]>::last)
            .map(|line| end(line.start, line.len))?;
        let last = metadata.table.segments.last()?;
        (end(last.start, last.len) > size).then(|| Grown {
            pool: pool.info.number,
            metadata: metadata.name(),
            committed: beginning(&metadata.table.segments, size),
        })
    };
    suspended.filter_map(over_grown).collect()
}

fn metadata_of(pool: &LiveDevice) -> Option<DeviceNumber> {
    match &pool.table.segments.first()?.target {
        Target::ThinPool(pool) => Some(pool.metadata),
        _ => None,
    }
}

fn end(start: Sectors, len: Sectors) -> u64 {
    start.get().saturating_add(len.get())
}

/// The first `size` sectors of a table that leads straight to disks.
fn beginning(segments: &[TargetLine], size: u64) -> Option<Vec<TableLine>> {
    let within = segments.iter().filter(|line| line.start.get() < size);
    within
        .map(|line| {
            let length = Sectors::new(line.len.get().min(size - line.start.get()));
            let (target, parameters) = straight(&line.target)?;
            Some(TableLine { start: line.start, length, target: target.to_owned(), parameters })
        })
        .collect()
}

fn straight(target: &Target) -> Option<(&'static str, String)> {
    let place = |place: &Place| format!("{} {}", place.device, place.start.get());
    match target {
        Target::Linear(at) => Some(("linear", place(at))),
        Target::Striped { chunk, stripes } => {
            let places: Vec<String> = stripes.iter().map(place).collect();
            Some(("striped", format!("{} {} {}", stripes.len(), chunk.get(), places.join(" "))))
        }
        _ => None,
    }
}
