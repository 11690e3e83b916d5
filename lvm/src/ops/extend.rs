//! Extending volumes, also while they are in use.

use super::activate::is_active;
use super::legs::Step;
use super::seen::{Need, Seen};
use super::{Change, Group, SizeRange, Volume, wipe};
use crate::command::{LvChange, LvExtend};
use crate::metadata::{Lv, RaidLevel, SegmentKind};
use crate::{DevicePath, Effect, Error, Extents, Kind, LvName, Space, Tag};

/// How the tag begins that says from which extent on zeroes are still to be written.
pub(super) const ZERO_FROM: &str = "gabion.dev/zero-from=";

/// What becomes of the bytes that lie where a thick volume is extended.
///
/// The extents of a thin volume that were added hold nothing and read as zeroes either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Added {
    /// They stay, and can be read through the volume. Unless removed volumes were discarded or zeroed, who holds the
    /// volume as a raw device sees what was in them.
    #[default]
    Untouched,
    /// Zeroes are written over them before the operation ends, which takes as long as writing them. Until then nothing
    /// may use the device beyond its old end, however long it shows itself to be.
    Zeroed,
}

/// How a volume is to be extended.
///
/// ```
/// use devices::Bytes;
/// use lvm::ops::{Added, Extension, SizeRange};
///
/// let extension = Extension::to(SizeRange::at_least(Bytes::gib(20))).added(Added::Zeroed);
/// # let _ = extension;
/// ```
#[derive(Clone, Debug)]
pub struct Extension {
    size: SizeRange,
    added: Added,
    devices: Vec<DevicePath>,
}

impl Extension {
    /// To that size, with extents from any PV, untouched.
    #[must_use]
    pub const fn to(size: SizeRange) -> Self {
        Self { size, added: Added::Untouched, devices: Vec::new() }
    }

    /// With this done to what lay on the new extents.
    #[must_use]
    pub fn added(self, added: Added) -> Self {
        Self { added, ..self }
    }

    /// With extents from these PVs; none meaning any.
    #[must_use]
    pub fn on(self, devices: impl IntoIterator<Item = DevicePath>) -> Self {
        Self { devices: devices.into_iter().collect(), ..self }
    }
}

impl Group {
    /// As [`Group::extend_volume_by`], with what lies on the new extents untouched.
    ///
    /// # Errors
    ///
    /// As [`Group::extend_volume_by`].
    pub fn extend_volume(
        &self,
        name: &LvName,
        size: SizeRange,
        on: &[DevicePath],
    ) -> Result<Change<Volume>, Error> {
        self.extend_volume_by(name, &Extension::to(size).on(on.iter().cloned()))
    }

    /// Makes a volume at least as large as asked; one that is large enough already stays as it is.
    ///
    /// Works on thick and thin volumes, also while they are in use; the filesystem on it is the caller's. Where zeroes
    /// were to be written and a crash came between, the volume keeps a tag that says from where on, and the next
    /// extension of it writes them; nothing else may have used the new extents until then.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::InvalidArgument`] where the size cannot be, or the limit lies below the present
    /// size; [`Kind::InUse`] for the origin of a classic snapshot, which cannot be extended while it is active;
    /// [`Kind::NoSpace`]; [`Kind::Inconsistent`] where zeroes of an earlier extension are still to be written, and none
    /// are asked for; [`Kind::Unsupported`] for zeroes without device-mapper; [`Kind::MissingPv`], [`Kind::Foreign`],
    /// [`Kind::Busy`], and what LVM itself says.
    pub fn extend_volume_by(&self, name: &LvName, extension: &Extension) -> Result<Change<Volume>, Error> {
        let tried = format!("extend volume {}", self.calls(name));
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let vg = seen.vg();
        let lv = seen.finished_lv(&self.lvm, name, &tried)?;
        let wanted = extension.size.extents(vg.extent_size, stripes_of(lv), &tried)?;
        let has = vg.extent_size.span(lv.extents()).unwrap_or_default();
        if let Some(limit) = extension.size.limit()
            && has > limit
        {
            return Err(Error::new(Kind::InvalidArgument, &tried)
                .with_answer(format!("it has {has:#} already, and the limit is {limit:#}")));
        }
        let pending = zero_from(lv);
        if pending.is_some() && extension.added == Added::Untouched {
            return Err(Error::new(Kind::Inconsistent, &tried)
                .with_answer("an earlier extension of it was to write zeroes, and did not come to its end")
                .with_advice("extend it with zeroes once more"));
        }
        let large_enough = lv.extents() >= wanted;
        if large_enough && pending.is_none() {
            return self.lvm.already(&seen, &tried, Volume::of(vg, lv));
        }
        let zeroes = extension.added == Added::Zeroed && lv.as_thin().is_none();
        if zeroes {
            self.needs_kernel(&tried)?;
        }
        if !large_enough {
            let devices = self.can_be_extended(&seen, lv, wanted, extension, &tried)?;
            // Whether it can reach its size is known before anything is done.
            let first = seen.next_step(lv, wanted, &devices, &tried)?;
            if zeroes && pending.is_none() {
                self.note_zeroes(&seen, lv, &tried)?;
            }
            self.extend_by_steps(name, name, first, wanted, &devices, &tried)?;
        }
        if zeroes {
            self.zero_added(name, pending.unwrap_or(lv.extents()), &tried)?;
        }
        self.volume_after(name, &tried).map(Change::Made)
    }

    /// Extends a volume to its size, as far as each command carries. `part` is what LVM extends when it is told to extend
    /// the volume: a pool's data.
    pub(super) fn extend_by_steps(
        &self,
        name: &LvName,
        part: &LvName,
        first: Step,
        wanted: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<(), Error> {
        let mut step = first;
        loop {
            let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, tried)?;
            let command = LvExtend { target: seen.target(name), extents: step.to, places: &step.places };
            self.run(&seen, tried, &command)?;
            let before = seen;
            let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
            let lv = seen.lv(part, tried)?;
            seen.legs_stayed_apart(&before, lv, tried)?;
            if step.to >= wanted || lv.extents() >= wanted {
                return Ok(());
            }
            step = seen
                .next_step(lv, wanted, devices, tried)
                .map_err(|error| error.with_effect(Effect::Done))?;
        }
    }

    fn can_be_extended(
        &self,
        seen: &Seen,
        lv: &Lv,
        wanted: Extents,
        extension: &Extension,
        tried: &str,
    ) -> Result<Vec<DevicePath>, Error> {
        seen.can_extend(lv, tried)?;
        let devices = seen.resolve(&extension.devices, tried)?;
        if lv.as_thin().is_none() {
            seen.has_room_to_extend(lv, wanted, &devices, tried)?;
        }
        Ok(devices)
    }

    /// Notes on the volume from where on zeroes are to be written, before there is anything.
    fn note_zeroes(&self, seen: &Seen, lv: &Lv, tried: &str) -> Result<(), Error> {
        let note = Tag::new(&format!("{ZERO_FROM}{}", lv.extents().get())).map_err(|cause| {
            Error::new(Kind::Other, tried).with_answer(cause.to_string()).with_source(cause)
        })?;
        self.run(seen, tried, &(LvChange::Tags { add: &[note], remove: &[] }, seen.target(&lv.name)))
    }

    /// Writes zeroes from an extent of the volume to its end, and takes the note off that asked for them.
    fn zero_added(&self, name: &LvName, from: Extents, tried: &str) -> Result<(), Error> {
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
        let lv = seen.lv(name, tried)?;
        let was_active = is_active(&seen, lv)?;
        let _ = self.activate_one(&seen, lv, tried)?;
        let start = seen.vg().extent_size.span(from).unwrap_or_default();
        wipe::zero_from(&Volume::of(seen.vg(), lv).device, start, tried)?;
        if !was_active {
            self.run(&seen, tried, &(LvChange::Deactivate, seen.target(name)))?;
        }
        let notes: Vec<Tag> =
            lv.tags.iter().filter(|tag| tag.as_str().starts_with(ZERO_FROM)).cloned().collect();
        self.run(&seen, tried, &(LvChange::Tags { add: &[], remove: &notes }, seen.target(name)))
    }
}

/// The extent from which on zeroes are still to be written.
fn zero_from(lv: &Lv) -> Option<Extents> {
    lv.tags.iter().find_map(|tag| tag.as_str().strip_prefix(ZERO_FROM)?.parse().ok()).map(Extents::new)
}

/// Extents in which a volume grows.
pub(crate) fn stripes_of(lv: &Lv) -> u32 {
    match lv.segments.last().map(|segment| &segment.kind) {
        Some(SegmentKind::Striped(striped)) => u32::try_from(striped.areas.len()).unwrap_or(u32::MAX),
        Some(SegmentKind::Raid(raid)) => {
            let legs = u32::try_from(raid.legs.len()).unwrap_or(u32::MAX);
            match &raid.level {
                RaidLevel::Raid1 => 1,
                RaidLevel::Raid10(_) => legs / raid.data_copies.unwrap_or(2).max(1),
                level => legs.saturating_sub(level.parity_legs()),
            }
        }
        _ => 1,
    }
    .max(1)
}

impl Seen {
    fn can_extend(&self, lv: &Lv, tried: &str) -> Result<(), Error> {
        let refuse = |kind, answer: String| Error::new(kind, tried).with_answer(answer);
        if let Some(snapshot) = self.vg().snapshots_of(&lv.name).next() {
            return Err(refuse(
                Kind::InUse,
                format!("{} has the classic snapshot {}", lv.name, snapshot.cow_store),
            )
            .with_advice("remove the snapshot first, or use thin volumes, whose origins can grow"));
        }
        match lv.kind() {
            Some(SegmentKind::ThinPool(_)) => {
                Err(refuse(Kind::InvalidArgument, format!("{} is a thin pool", lv.name))
                    .with_advice("extend it as a pool"))
            }
            Some(SegmentKind::Raid(raid)) if self.has_integrity(raid) => Err(refuse(
                Kind::Unsupported,
                format!("{} has checksums on its legs, and LVM does not extend those", lv.name),
            )),
            _ => Ok(()),
        }
    }

    fn has_integrity(&self, raid: &crate::metadata::Raid) -> bool {
        raid.legs.iter().any(|leg| {
            let leg = self.vg().lv(leg.data.as_str());
            matches!(leg.and_then(Lv::kind), Some(SegmentKind::Integrity(_)))
        })
    }

    pub(crate) fn has_room_to_extend(
        &self,
        lv: &Lv,
        wanted: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<(), Error> {
        let more = wanted.get().saturating_sub(lv.extents().get());
        let copies = match lv.as_raid() {
            Some(raid) => (raid.legs.len() as u64).div_ceil(u64::from(stripes_of(lv))),
            None => 1,
        };
        let needed = more.saturating_mul(copies);
        let total: u64 = self.free(devices).iter().map(|free| free.get()).sum();
        if total < needed { Err(self.no_space(Space::Data, needed, total, tried)) } else { Ok(()) }
    }
}
