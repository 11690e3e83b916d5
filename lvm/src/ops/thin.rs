//! Thin volumes and thin snapshots.

use devices::Bytes;

use super::create::{Recipe, size_matches};
use super::seen::Seen;
use super::{CREATING, Change, FS_NEW, FS_PREFIX, Group, SizeRange, Volume};
use crate::command::{LvChange, LvExtend, ThinCreate, ThinSnapshotCreate};
use crate::dm::{Dm, ThinStatus};
use crate::metadata::Lv;
use crate::{Error, Kind, LvName, Tag};

/// The tag of a thin volume that came up with old data under its number; nobody may use it.
pub const STALE: &str = "gabion.dev/stale";

/// Whether a snapshot is left alone when its group is activated by other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActivationSkip {
    /// It is not activated, now or later, unless [asked for by name](Group::activate_volume): for snapshots to keep.
    #[default]
    Skipped,
    /// It is activated at once: for a clone to use.
    Never,
}

/// A thin volume to be made.
#[derive(Clone, Debug)]
pub struct NewThin {
    pool: LvName,
    name: LvName,
    size: SizeRange,
    tags: Vec<Tag>,
}

impl NewThin {
    /// A thin volume in that pool; its size is virtual, and rounded up to the group's extents.
    #[must_use]
    pub const fn new(pool: LvName, name: LvName, size: SizeRange) -> Self {
        Self { pool, name, size, tags: Vec::new() }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }
}

struct ThinRecipe<'a> {
    new: &'a NewThin,
}

impl Recipe for ThinRecipe<'_> {
    fn name(&self) -> &LvName {
        &self.new.name
    }

    fn tags(&self) -> &[Tag] {
        &self.new.tags
    }

    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String> {
        match found.as_thin() {
            Some(thin) if thin.pool == self.new.pool => size_matches(seen.vg(), found, self.new.size),
            Some(thin) => Err(format!("it is in pool {}", thin.pool)),
            None => Err("it is no thin volume".to_owned()),
        }
    }

    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error> {
        let extents = self.new.size.extents(seen.vg().extent_size, 1, tried)?;
        let pool = seen.own_pool(group, &self.new.pool, tried)?;
        group.pool_ready(seen, pool, tried)?;
        let command = ThinCreate {
            vg: &seen.vg().name,
            pool: &self.new.pool,
            name: &self.new.name,
            size: seen.sectors(extents, tried)?,
            tags,
        };
        group.run(seen, tried, &command)
    }

    fn complete(&self, group: &Group, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error> {
        group.is_blank(seen, made, tried)
    }

    fn content_tag(&self, _: &Group, _: &Seen) -> Option<Tag> {
        Some(Tag::literal(FS_NEW))
    }
}

/// A thin snapshot to be made, or a clone, which is the same with another purpose.
#[derive(Clone, Debug)]
pub struct NewThinSnapshot {
    origin: LvName,
    name: LvName,
    size: Option<SizeRange>,
    skip: ActivationSkip,
    tags: Vec<Tag>,
}

impl NewThinSnapshot {
    /// A snapshot of that thin volume, as large as it, and skipped by activation.
    #[must_use]
    pub const fn new(origin: LvName, name: LvName) -> Self {
        Self { origin, name, size: None, skip: ActivationSkip::Skipped, tags: Vec::new() }
    }

    /// A volume of its own with the origin's content, activated at once and at least as large as `size`. Growing the
    /// filesystem on it is the caller's.
    #[must_use]
    pub const fn clone_of(origin: LvName, name: LvName, size: SizeRange) -> Self {
        Self { origin, name, size: Some(size), skip: ActivationSkip::Never, tags: Vec::new() }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }
}

struct ThinSnapshotRecipe<'a> {
    new: &'a NewThinSnapshot,
}

impl Recipe for ThinSnapshotRecipe<'_> {
    fn name(&self) -> &LvName {
        &self.new.name
    }

    fn tags(&self) -> &[Tag] {
        &self.new.tags
    }

    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String> {
        let Some(thin) = found.as_thin() else { return Err("it is no thin volume".to_owned()) };
        // LVM forgets the origin when it is removed; then only the caller can know.
        if let Some(origin) = &thin.origin
            && *origin != self.new.origin
        {
            return Err(format!("it was cut from {origin}"));
        }
        match self.new.size {
            Some(size) => size_matches(seen.vg(), found, size),
            None => Ok(()),
        }
    }

    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error> {
        let origin = seen.finished_lv(&group.lvm, &self.new.origin, tried)?;
        let Some(thin) = origin.as_thin() else {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("volume {} is not thin", origin.name))
                .with_advice("make a classic snapshot of it, with space of its own"));
        };
        if let Some(size) = self.new.size {
            let extents = size.extents(seen.vg().extent_size, 1, tried)?.max(origin.extents());
            let least = seen.vg().extent_size.span(extents).unwrap_or(Bytes::ZERO);
            if size.limit().is_some_and(|limit| least > limit) {
                return Err(Error::new(Kind::InvalidArgument, tried)
                    .with_answer(format!("its origin has {least:#}, which is above the limit")));
            }
        }
        let pool = seen.own_pool(group, &thin.pool, tried)?;
        group.pool_ready(seen, pool, tried)?;
        let command = ThinSnapshotCreate {
            origin: seen.target(&self.new.origin),
            name: &self.new.name,
            skip: self.new.skip,
            tags,
        };
        group.run(seen, tried, &command)
    }

    fn complete(&self, group: &Group, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error> {
        let Some(size) = self.new.size else { return Ok(()) };
        let wanted = size.extents(seen.vg().extent_size, 1, tried)?;
        if made.extents() >= wanted {
            return Ok(());
        }
        let command = LvExtend { target: seen.target(&made.name), extents: wanted, places: &[] };
        group.run(seen, tried, &command)
    }

    fn content_tag(&self, _: &Group, seen: &Seen) -> Option<Tag> {
        let origin = seen.vg().lv(self.new.origin.as_str())?;
        origin.tags.iter().find(|tag| tag.as_str().starts_with(FS_PREFIX)).cloned()
    }
}

impl Group {
    /// Makes a thin volume, or finds it made. It ends active and empty: no sector of it is mapped.
    ///
    /// # Errors
    ///
    /// [`Kind::NoSpace`] when the pool is full up to the handle's limits; [`Kind::Inconsistent`] when the pool's
    /// transaction ids disagree, it needs repair, or the new volume came up with old data (it is then kept inactive
    /// under the tag [`STALE`]); [`Kind::AlreadyExists`], [`Kind::InvalidArgument`], [`Kind::NotFound`] for the pool;
    /// [`Kind::Unsupported`], [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn create_thin(&self, new: &NewThin) -> Result<Change<Volume>, Error> {
        let tried = format!("create thin volume {}", self.calls(&new.name));
        self.make(&ThinRecipe { new }, &tried)
    }

    /// Makes a thin snapshot or a clone, or finds it made. A mounted origin's filesystem is frozen for the moment of
    /// the cut. Where the origin says which filesystem is on it, so does the snapshot.
    ///
    /// # Errors
    ///
    /// As [`Group::create_thin`]; [`Kind::InvalidArgument`] also for an origin that is not thin.
    pub fn snapshot_thin(&self, new: &NewThinSnapshot) -> Result<Change<Volume>, Error> {
        let tried = format!("snapshot {} as {}", self.calls(&new.origin), new.name);
        self.make(&ThinSnapshotRecipe { new }, &tried)
    }

    /// Checks that no sector of a new thin volume is mapped: LVM takes a device that the pool has already under the
    /// new number for a success, and it would show whatever was written to it before.
    fn is_blank(&self, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error> {
        let status = Dm::open()?.thin_status(&seen.vg().uuid, &made.uuid)?;
        let Some(ThinStatus::Mapped { mapped, .. }) = status else {
            return Err(Error::new(Kind::Inconsistent, tried)
                .with_answer(format!("the kernel does not say whether it is empty: {status:?}")));
        };
        if mapped.get() == 0 {
            return Ok(());
        }
        let (add, remove) = ([Tag::literal(STALE)], [Tag::literal(CREATING)]);
        let change = LvChange::Tags { add: &add, remove: &remove };
        self.run(seen, tried, &(change, seen.target(&made.name)))?;
        self.run(seen, tried, &(LvChange::Deactivate, seen.target(&made.name)))?;
        Err(Error::new(Kind::Inconsistent, tried)
            .with_effect(crate::Effect::Done)
            .with_answer(format!(
                "the pool had a device under the new volume's number, with {mapped} of old data"
            ))
            .with_advice("look at the volume, which is kept inactive, and remove it"))
    }
}
