//! Classic snapshots, and putting a snapshot's content back.

use super::create::Recipe;
use super::seen::{Need, Seen};
use super::{Change, FS_PREFIX, Group, SizeRange, Volume};
use crate::command::{Merge, SnapshotCreate};
use crate::metadata::Lv;
use crate::{DevicePath, Error, Kind, LvName, Space, Tag};

/// A classic snapshot to be made: what its origin had at that moment, for as long as the changes since then fit into
/// its space. While it exists every first write to the origin is done twice, and the origin cannot be extended.
#[derive(Clone, Debug)]
pub struct NewSnapshot {
    origin: LvName,
    name: LvName,
    space: SizeRange,
    tags: Vec<Tag>,
    devices: Vec<DevicePath>,
}

impl NewSnapshot {
    /// A snapshot of that thick volume with so much space for changes.
    #[must_use]
    pub const fn new(origin: LvName, name: LvName, space: SizeRange) -> Self {
        Self { origin, name, space, tags: Vec::new(), devices: Vec::new() }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }

    /// With its space on this PV, besides the others named.
    #[must_use]
    pub fn on(mut self, device: DevicePath) -> Self {
        self.devices.push(device);
        self
    }
}

struct SnapshotRecipe<'a> {
    new: &'a NewSnapshot,
}

impl Recipe for SnapshotRecipe<'_> {
    fn name(&self) -> &LvName {
        &self.new.name
    }

    fn tags(&self) -> &[Tag] {
        &self.new.tags
    }

    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String> {
        match seen.vg().snapshot_with_store(&found.name) {
            Some(tie) if tie.origin == self.new.origin => Ok(()),
            Some(tie) => Err(format!("it was cut from {}", tie.origin)),
            None => Err("it is no classic snapshot".to_owned()),
        }
    }

    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error> {
        group.needs_kernel(tried)?;
        let origin = seen.finished_lv(&group.lvm, &self.new.origin, tried)?;
        let refuse = |answer: String| Err(Error::new(Kind::InvalidArgument, tried).with_answer(answer));
        if origin.as_thin().is_some() {
            return refuse(format!("volume {} is thin; its snapshots need no space", origin.name));
        }
        if origin.as_thin_pool().is_some() || seen.vg().snapshot_with_store(&origin.name).is_some() {
            return refuse(format!("volume {} is a pool or a snapshot itself", origin.name));
        }
        let extents = self.new.space.extents(seen.vg().extent_size, 1, tried)?;
        let devices = seen.resolve(&self.new.devices, tried)?;
        let free: u64 = seen.free(&devices).iter().map(|free| free.get()).sum();
        if free < extents.get() {
            return Err(seen.no_space(Space::Data, extents.get(), free, tried));
        }
        let command = SnapshotCreate {
            origin: seen.target(&self.new.origin),
            name: &self.new.name,
            extents,
            tags,
            devices: &devices,
        };
        group.run(seen, tried, &command).map_err(|error| match error.kind() {
            Kind::Unsupported => error.with_advice("the kernel module dm_snapshot is needed; load it"),
            _ => error,
        })
    }

    fn complete(&self, _: &Group, _: &Seen, _: &Lv, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn content_tag(&self, _: &Group, seen: &Seen) -> Option<Tag> {
        let origin = seen.vg().lv(self.new.origin.as_str())?;
        origin.tags.iter().find(|tag| tag.as_str().starts_with(FS_PREFIX)).cloned()
    }
}

impl Group {
    /// Makes a classic snapshot of a thick volume, or finds it made. A mounted origin's filesystem is frozen for the
    /// moment of the cut.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for an origin that is thin, a pool or a snapshot; [`Kind::Unsupported`] where the
    /// kernel lacks dm-snapshot; [`Kind::NoSpace`], [`Kind::AlreadyExists`], [`Kind::NotFound`],
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn snapshot(&self, new: &NewSnapshot) -> Result<Change<Volume>, Error> {
        let tried = format!("snapshot {} as {}", self.calls(&new.origin), new.name);
        self.make(&SnapshotRecipe { new }, &tried)
    }

    /// Puts the content of a snapshot, thin or classic, back into its origin. The snapshot is used up by that; to
    /// keep it, cut a snapshot of the snapshot first.
    ///
    /// A thin one is done at once. A classic one is copied back by the kernel, and this call waits for it.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while the origin or the snapshot is open: LVM would put the merge off until the next
    /// activation; [`Kind::InvalidArgument`] for a volume that is no snapshot of an existing origin;
    /// [`Kind::NotFound`], [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn restore_snapshot(&self, snapshot: &LvName) -> Result<Volume, Error> {
        let tried = format!("restore snapshot {}", self.calls(snapshot));
        self.needs_kernel(&tried)?;
        let _guard = self.guard(snapshot, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.finished_lv(&self.lvm, snapshot, &tried)?;
        let thin = lv.as_thin().and_then(|thin| thin.origin.as_ref());
        let classic = seen.vg().snapshot_with_store(snapshot).map(|tie| &tie.origin);
        let Some(origin) = thin.or(classic) else {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer("it is no snapshot, or its origin was removed"));
        };
        let _origin = self.guard(origin, &tried)?;
        let origin = seen.finished_lv(&self.lvm, origin, &tried)?;
        seen.wait_until_closed(&[origin, lv], &tried)?;
        self.run(&seen, &tried, &Merge { snapshot: seen.target(snapshot) })?;
        let name = origin.name.clone();
        let after = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        if after.vg().lv(snapshot.as_str()).is_some() {
            return Err(Error::new(Kind::Busy, tried)
                .with_effect(crate::Effect::Done)
                .with_answer("the merge has begun and has not ended")
                .with_advice("wait for it, with both volumes closed"));
        }
        Ok(Volume::of(after.vg(), after.lv(&name, &tried)?))
    }
}
