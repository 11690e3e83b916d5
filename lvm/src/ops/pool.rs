//! Thin pools.

use devices::Bytes;

use super::create::Recipe;
use super::seen::{Need, Seen};
use super::{Change, Content, Group, Integrity, Layout, PART, SizeRange, Volume, pool_size};
use crate::command::{LvChange, LvCreate, PoolCreate, PoolFromVolumes, PoolMetadataExtend};
use crate::dm::WhenFull;
use crate::metadata::{Discards, Lv, LvFlag};
use crate::{DevicePath, Error, Extents, Kind, LvName, Space, Tag};

/// How large a pool's data are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolSize {
    /// So many bytes of data; metadata and their spare come on top.
    Data(SizeRange),
    /// So many percent of the group's extents, 1 to 100, for data, metadata and spare together, rounded down.
    /// Asked again, it settles: a pool within one extent (of each stripe) of its share is left as it is.
    Share(u8),
}

/// A thin pool to be made.
///
/// ```
/// use devices::Bytes;
/// use lvm::ops::{Layout, NewPool, PoolSize, SizeRange};
///
/// let pool = NewPool::new("pool".parse()?, PoolSize::Share(90)).layout(Layout::Raid1 { copies: 2 });
/// let small = NewPool::new("small".parse()?, PoolSize::Data(SizeRange::at_least(Bytes::gib(1))));
/// # Ok::<(), lvm::NameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NewPool {
    name: LvName,
    size: PoolSize,
    layout: Layout,
    chunk: Option<Bytes>,
    metadata: Option<Bytes>,
    discards: Discards,
    when_full: WhenFull,
    tags: Vec<Tag>,
    devices: Vec<DevicePath>,
}

impl NewPool {
    /// A pool on linear data and metadata; chunk and metadata sizes follow from its size, discards are passed down,
    /// and writes wait when it is full.
    #[must_use]
    pub const fn new(name: LvName, size: PoolSize) -> Self {
        Self {
            name,
            size,
            layout: Layout::Linear,
            chunk: None,
            metadata: None,
            discards: Discards::Passdown,
            when_full: WhenFull::Queue,
            tags: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// With data laid out so; metadata get as many copies as the data have.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// With chunks of this size: a multiple of 64 KiB up to 1 GiB.
    #[must_use]
    pub fn chunk(self, chunk: Bytes) -> Self {
        Self { chunk: Some(chunk), ..self }
    }

    /// With so much room for metadata, 2 MiB to 15.4 GiB.
    #[must_use]
    pub fn metadata(self, metadata: Bytes) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// With this done about discards.
    #[must_use]
    pub fn discards(self, discards: Discards) -> Self {
        Self { discards, ..self }
    }

    /// With this done about writes that find no free chunk.
    #[must_use]
    pub fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }

    /// On this PV, besides the others named.
    #[must_use]
    pub fn on(mut self, device: DevicePath) -> Self {
        self.devices.push(device);
        self
    }

    /// The volume that becomes the metadata of a pool on RAID legs.
    fn metadata_name(&self, tried: &str) -> Result<LvName, Error> {
        LvName::new(&format!("{}.meta", self.name)).map_err(|cause| {
            Error::new(Kind::InvalidArgument, tried).with_answer(cause.to_string()).with_source(cause)
        })
    }

    /// The layout of the metadata: as redundant as the data, never striped.
    const fn metadata_layout(&self) -> Layout {
        match self.layout {
            Layout::Linear | Layout::Striped { .. } => Layout::Linear,
            Layout::Raid1 { copies } | Layout::Raid10 { copies, .. } => Layout::Raid1 { copies },
            Layout::Raid4 { .. } | Layout::Raid5 { .. } => Layout::Raid1 { copies: 2 },
            Layout::Raid6 { .. } => Layout::Raid1 { copies: 3 },
        }
    }
}

/// The sizes of a pool, in extents of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) data: Extents,
    pub(crate) metadata: Extents,
    pub(crate) chunk: devices::Sectors,
}

impl Seen {
    /// Works out a pool's sizes.
    fn plan(&self, new: &NewPool, tried: &str) -> Result<Plan, Error> {
        let extent = self.vg().extent_size;
        let stripes = new.layout.data_stripes();
        let (data, sized_by) = match new.size {
            PoolSize::Data(size) => {
                let data = size.extents(extent, stripes, tried)?;
                (Some(data), extent.span(data).unwrap_or_default())
            }
            PoolSize::Share(percent) => (None, extent.span(self.share(percent, tried)?).unwrap_or_default()),
        };
        let chunk = pool_size::chunk(sized_by, new.chunk, tried)?;
        let metadata = extent.holding(pool_size::metadata(sized_by, chunk, new.metadata, tried)?);
        let data = match (data, new.size) {
            (Some(data), _) => data,
            (None, PoolSize::Share(percent)) => self.data_in_share(new, percent, metadata, tried)?,
            (None, PoolSize::Data(_)) => Extents::ZERO,
        };
        Ok(Plan { data, metadata, chunk })
    }

    /// So many percent of the group's extents.
    fn share(&self, percent: u8, tried: &str) -> Result<Extents, Error> {
        if !(1..=100).contains(&percent) {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("a share of {percent} percent was asked for; it is 1 to 100")));
        }
        let total = u128::from(self.vg().total_extents().get());
        let share = u64::try_from(total * u128::from(percent) / 100).unwrap_or(u64::MAX);
        Ok(Extents::new(share))
    }

    /// What of a share is left for data once metadata and spare have theirs.
    fn data_in_share(
        &self,
        new: &NewPool,
        percent: u8,
        metadata: Extents,
        tried: &str,
    ) -> Result<Extents, Error> {
        let share = self.share(percent, tried)?.get();
        let spare = self.vg().pool_metadata_spare().map_or(0, |spare| spare.extents().get());
        let overhead =
            legs_cost(new.metadata_layout(), metadata.get()).saturating_add(spare.max(metadata.get()));
        let data = data_within(new.layout, share.saturating_sub(overhead));
        if data == 0 {
            return Err(self.no_space(Space::Data, overhead + 1, share, tried));
        }
        Ok(Extents::new(data))
    }
}

/// Extents on PVs that so many extents of a layout take.
fn legs_cost(layout: Layout, extents: u64) -> u64 {
    if layout.is_raid() {
        let per_leg = extents.div_ceil(u64::from(layout.data_stripes())).saturating_add(1);
        per_leg.saturating_mul(u64::from(layout.legs()))
    } else {
        extents
    }
}

/// The most extents of a layout that so many extents on PVs hold.
fn data_within(layout: Layout, budget: u64) -> u64 {
    let stripes = u64::from(layout.data_stripes());
    if layout.is_raid() {
        (budget / u64::from(layout.legs())).saturating_sub(1).saturating_mul(stripes)
    } else {
        budget - budget % stripes
    }
}

struct PoolRecipe<'a> {
    new: &'a NewPool,
}

impl Recipe for PoolRecipe<'_> {
    fn name(&self) -> &LvName {
        &self.new.name
    }

    fn tags(&self) -> &[Tag] {
        &self.new.tags
    }

    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String> {
        let Some(pool) = found.as_thin_pool() else { return Err("it is no thin pool".to_owned()) };
        if let Some(chunk) = self.new.chunk
            && pool.chunk_size.to_bytes() != Some(chunk)
        {
            return Err(format!("its chunks are {}", pool.chunk_size));
        }
        match self.new.size {
            // It may have grown since, as pools do; only less than asked for is another pool.
            PoolSize::Data(size) => {
                let has = seen.vg().extent_size.span(found.extents()).unwrap_or_default();
                if has < size.required() { Err(format!("it has {has:#} of data")) } else { Ok(()) }
            }
            PoolSize::Share(_) => Ok(()),
        }
    }

    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error> {
        group.needs_kernel(tried)?;
        let new = self.new;
        new.layout.check(Integrity::None, seen.vg().extent_size, tried)?;
        let plan = seen.plan(new, tried)?;
        let devices = seen.resolve(&new.devices, tried)?;
        let spare = seen.vg().pool_metadata_spare().map_or(0, |spare| spare.extents().get());
        let overhead = legs_cost(new.metadata_layout(), plan.metadata.get())
            .saturating_add(plan.metadata.get().saturating_sub(spare));
        let needed = legs_cost(new.layout, plan.data.get()).saturating_add(overhead);
        let free: u64 = seen.free(&devices).iter().map(|free| free.get()).sum();
        if free < needed {
            return Err(seen.no_space(Space::Data, needed, free, tried));
        }
        seen.has_room(new.layout, plan.data, &devices, tried)?;
        if matches!(new.layout, Layout::Linear) {
            let command = PoolCreate {
                vg: &seen.vg().name,
                name: &new.name,
                data: plan.data,
                metadata: seen.sectors(plan.metadata, tried)?,
                chunk: plan.chunk,
                discards: new.discards,
                tags,
                devices: &devices,
            };
            return group.run(seen, tried, &command);
        }
        group.pool_from_volumes(seen, new, plan, tags, &devices, tried)
    }

    fn complete(&self, group: &Group, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error> {
        // New chunks are zeroed by the pool, and its metadata by LVM.
        let has = if made.has(&LvFlag::ErrorWhenFull) { WhenFull::Error } else { WhenFull::Queue };
        if has == self.new.when_full {
            return Ok(());
        }
        group.run(seen, tried, &(LvChange::WhenFull(self.new.when_full), seen.target(&made.name)))
    }

    fn content_tag(&self, _: &Group, _: &Seen) -> Option<Tag> {
        None
    }
}

impl Seen {
    pub(crate) fn sectors(&self, extents: Extents, tried: &str) -> Result<devices::Sectors, Error> {
        super::size::check(self.vg().extent_size.span(extents).unwrap_or_default(), tried)
    }

    /// The pool of this name, which a caller may change.
    ///
    /// # Errors
    ///
    /// As [`Seen::finished_lv`], and [`Kind::InvalidArgument`] for a volume that is no pool.
    pub(crate) fn own_pool(&self, group: &Group, name: &LvName, tried: &str) -> Result<&Lv, Error> {
        let lv = self.finished_lv(&group.lvm, name, tried)?;
        match lv.as_thin_pool() {
            Some(_) => Ok(lv),
            None => Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("volume {name} is no thin pool"))),
        }
    }
}

impl Group {
    /// Makes a thin pool, or finds it made.
    ///
    /// It gets a spare for repairing its metadata, which is one for the whole group, and zeroes new chunks.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for sizes or a layout that cannot be; [`Kind::AlreadyExists`] when the name is taken
    /// by something else or by a smaller pool; [`Kind::NoSpace`]; [`Kind::Unsupported`] without device-mapper;
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn create_pool(&self, new: &NewPool) -> Result<Change<Volume>, Error> {
        let tried = format!("create thin pool {}", self.calls(&new.name));
        self.make(&PoolRecipe { new }, &tried)
    }

    /// Makes data and metadata volumes of their layouts, and a pool out of them.
    fn pool_from_volumes(
        &self,
        seen: &Seen,
        new: &NewPool,
        plan: Plan,
        tags: &[Tag],
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<(), Error> {
        let metadata = new.metadata_name(tried)?;
        let vg = &seen.vg().name;
        if let Some(left) = seen.vg().lv(metadata.as_str()) {
            if !seen.is_unfinished(left) {
                return Err(Error::new(Kind::AlreadyExists, tried)
                    .with_answer(format!("the name {metadata}, needed meanwhile, is taken")));
            }
            seen.own_lv(&self.lvm, &metadata, tried)?;
            self.remove_one(seen, &metadata, tried)?;
        }
        let owner = self.lvm.settings().owner.iter().cloned();
        let part_tags: Vec<Tag> = owner.chain([Tag::literal(PART)]).collect();
        let part = |name, extents, layout, tags| LvCreate {
            vg,
            name,
            extents,
            layout,
            integrity: Integrity::None,
            content: Content::Wiped,
            tags,
            devices,
        };
        self.run(seen, tried, &part(&new.name, plan.data, new.layout, tags))?;
        let convert = PoolFromVolumes {
            data: seen.target(&new.name),
            metadata: &metadata,
            chunk: plan.chunk,
            discards: new.discards,
        };
        let made = self
            .run(seen, tried, &part(&metadata, plan.metadata, new.metadata_layout(), &part_tags))
            .and_then(|()| self.run(seen, tried, &convert))
            .and_then(|()| self.move_tags_up(&new.name, tags, tried));
        // The data volume is removed by whoever called; what is left of the metadata volume is known here only.
        made.map_err(|error| self.undo(&metadata, error, tried))
    }

    /// Gives a pool the tags of the volume that became its data, and takes them off that.
    fn move_tags_up(&self, name: &LvName, tags: &[Tag], tried: &str) -> Result<(), Error> {
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
        let pool = seen.lv(name, tried)?;
        let change = LvChange::Tags { add: tags, remove: &[] };
        self.run(&seen, tried, &(change, seen.target(name)))?;
        let data = pool.as_thin_pool().and_then(|pool| seen.vg().lv(pool.data.as_str()));
        match data {
            Some(data) if !data.tags.is_empty() => {
                let change = LvChange::Tags { add: &[], remove: &data.tags };
                self.run(&seen, tried, &(change, seen.target(&data.name)))
            }
            _ => Ok(()),
        }
    }

    /// Grows a pool's data; a pool that is large enough already stays as it is. Works while it is in use.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::InvalidArgument`] for a size that cannot be, [`Kind::NoSpace`],
    /// [`Kind::Inconsistent`] for a pool that has failed or needs a check, [`Kind::MissingPv`], [`Kind::Foreign`],
    /// [`Kind::Busy`], and what LVM itself says.
    pub fn extend_pool(
        &self,
        name: &LvName,
        size: PoolSize,
        on: &[DevicePath],
    ) -> Result<Change<Volume>, Error> {
        let tried = format!("extend thin pool {}", self.calls(name));
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.own_pool(self, name, &tried)?;
        let data = lv.as_thin_pool().and_then(|pool| seen.vg().lv(pool.data.as_str())).unwrap_or(lv);
        let wanted = match size {
            PoolSize::Data(size) => {
                size.extents(seen.vg().extent_size, super::extend::stripes_of(data), &tried)?
            }
            PoolSize::Share(percent) => seen.grown_to_share(lv, percent, &tried)?,
        };
        if lv.extents() >= wanted {
            return self.lvm.already(&seen, &tried, Volume::of(seen.vg(), lv));
        }
        self.pool_can_grow(&seen, lv, &tried)?;
        let devices = seen.resolve(on, &tried)?;
        seen.has_room_to_extend(data, wanted, &devices, &tried)?;
        let first = seen.next_step(data, wanted, &devices, &tried)?;
        self.extend_by_steps(name, &data.name, first, wanted, &devices, &tried)?;
        self.volume_after(name, &tried).map(Change::Made)
    }

    /// Grows a pool's metadata, and the group's spare with it. Works while the pool is in use; they cannot shrink.
    ///
    /// # Errors
    ///
    /// As [`Group::extend_pool`]; a size above 15.4 GiB is [`Kind::InvalidArgument`].
    pub fn extend_pool_metadata(&self, name: &LvName, size: Bytes) -> Result<Change, Error> {
        let tried = format!("extend the metadata of thin pool {}", self.calls(name));
        let _guard = self.guard(name, &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.own_pool(self, name, &tried)?;
        let size = pool_size::metadata(Bytes::ZERO, devices::Sectors::ZERO, Some(size), &tried)?;
        let wanted = seen.vg().extent_size.holding(size);
        let part = lv.as_thin_pool().and_then(|pool| seen.vg().lv(pool.metadata.as_str()));
        let metadata = part.ok_or_else(|| {
            Error::new(Kind::Inconsistent, &tried).with_answer("its metadata volume is not in the group")
        })?;
        if metadata.extents() >= wanted {
            return self.lvm.already(&seen, &tried, ());
        }
        self.pool_can_grow(&seen, lv, &tried)?;
        seen.has_room_to_extend(metadata, wanted, &[], &tried)?;
        self.extend_metadata_by_steps(name, &metadata.name, wanted, &[], &tried)?;
        Ok(Change::Made(()))
    }

    /// Extends a pool's metadata to their size, as far as each command carries. The group's spare grows with them, on PVs
    /// of its own choice.
    pub(super) fn extend_metadata_by_steps(
        &self,
        pool: &LvName,
        metadata: &LvName,
        wanted: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<(), Error> {
        loop {
            let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, tried)?;
            let step = seen.next_step_and_more(seen.lv(metadata, tried)?, wanted, devices, tried)?;
            let size = seen.sectors(step.to, tried)?;
            let command = PoolMetadataExtend { pool: seen.target(pool), size, places: &step.places };
            self.run(&seen, tried, &command)?;
            let before = seen;
            let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, tried)?;
            let lv = seen.lv(metadata, tried)?;
            seen.legs_stayed_apart(&before, lv, tried)?;
            if step.to >= wanted || lv.extents() >= wanted {
                return Ok(());
            }
        }
    }
}

impl Seen {
    /// The data size of an existing pool that makes its share full; its present size when less than an extent for
    /// each stripe is to be won.
    fn grown_to_share(&self, lv: &Lv, percent: u8, tried: &str) -> Result<Extents, Error> {
        let vg = self.vg();
        let pool = lv.as_thin_pool();
        let part = |name: Option<&LvName>| name.and_then(|name| vg.lv(name.as_str()));
        let metadata = part(pool.map(|pool| &pool.metadata));
        let taken = |lv: Option<&Lv>| lv.map_or(0, |lv| self.cost_of(lv));
        let spare = vg.pool_metadata_spare().map_or(0, |spare| spare.extents().get());
        let share = self.share(percent, tried)?.get();
        let budget = share.saturating_sub(taken(metadata)).saturating_sub(spare);
        let data = part(pool.map(|pool| &pool.data)).unwrap_or(lv);
        let has = lv.extents().get();
        // What a leg takes besides its data stays as it is.
        let (stripes, legs) = match data.as_raid() {
            Some(raid) => (u64::from(super::extend::stripes_of(data)), raid.legs.len() as u64),
            None => (u64::from(super::extend::stripes_of(data)), u64::from(super::extend::stripes_of(data))),
        };
        let more_per_leg = budget.saturating_sub(self.cost_of(data)) / legs.max(1);
        let more = more_per_leg.saturating_mul(stripes);
        Ok(Extents::new(if more <= stripes { has } else { has.saturating_add(more) }))
    }

    /// Extents on PVs that a volume takes, its legs' metadata among them.
    fn cost_of(&self, lv: &Lv) -> u64 {
        match lv.as_raid() {
            None => lv.extents().get(),
            Some(raid) => raid
                .legs
                .iter()
                .flat_map(|leg| [Some(&leg.data), leg.meta.as_ref()])
                .flatten()
                .filter_map(|part| self.vg().lv(part.as_str()))
                .map(|part| part.extents().get())
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_cost_what_their_legs_take_and_hold_what_was_paid_for() {
        let stripe_size = Bytes::kib(64);
        for layout in [
            Layout::Linear,
            Layout::Striped { stripes: 3, stripe_size },
            Layout::Raid1 { copies: 2 },
            Layout::Raid5 { stripes: 2, stripe_size },
            Layout::Raid10 { copies: 2, stripes: 2, stripe_size },
        ] {
            for budget in 0..200 {
                let data = data_within(layout, budget);
                let one_more = data + u64::from(layout.data_stripes());
                assert!(data == 0 || legs_cost(layout, data) <= budget, "{layout:?} {budget}");
                assert!(legs_cost(layout, one_more) > budget, "{layout:?} {budget}");
            }
        }
        assert_eq!(legs_cost(Layout::Raid1 { copies: 2 }, 10), 22);
    }
}
