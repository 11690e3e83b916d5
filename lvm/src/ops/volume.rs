//! Thick volumes: linear, striped and RAID.

use std::path::PathBuf;

use devices::Bytes;

use super::create::{Recipe, size_matches};
use super::seen::{Need, Seen};
use super::{Change, FS_NEW, Group, Integrity, Layout, SizeRange, wipe};
use crate::command::{LvCreate, LvRename};
use crate::metadata::{Lv, RaidLevel, SegmentKind, Vg};
use crate::worker::conf::Activation;
use crate::{DevicePath, Error, Extents, Kind, LvName, Space, Tag, Uuid};

/// A volume as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volume {
    /// Its name in the group.
    pub name: LvName,
    /// Its identity in the group.
    pub uuid: Uuid,
    /// Its size, a multiple of the group's extents; virtual for a thin volume.
    pub size: Bytes,
    /// Where its device is while it is active.
    pub device: PathBuf,
    /// Its tags.
    pub tags: Vec<Tag>,
}

impl Volume {
    pub(crate) fn of(vg: &Vg, lv: &Lv) -> Self {
        // A name that is too long for device-mapper was never active.
        let dm_name = vg.dm_name(lv, None).unwrap_or_default();
        Self {
            name: lv.name.clone(),
            uuid: lv.uuid,
            size: vg.extent_size.span(lv.extents()).unwrap_or_default(),
            device: PathBuf::from("/dev/mapper").join(dm_name),
            tags: lv.tags.clone(),
        }
    }
}

/// What becomes of the bytes that lie where a new volume is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// They are wiped where any signature could be found. The volume is left active.
    Wiped,
    /// They stay. The volume is left inactive, and without the tag that says that it is blank.
    Untouched,
}

/// A thick volume to be made.
///
/// ```
/// use devices::Bytes;
/// use lvm::ops::{Layout, NewVolume, SizeRange};
///
/// let mirror = NewVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(10)))
///     .layout(Layout::Raid1 { copies: 2 })
///     .tag("gabion.dev/volume=db".parse()?);
/// # Ok::<(), lvm::NameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NewVolume {
    name: LvName,
    size: SizeRange,
    layout: Layout,
    integrity: Integrity,
    content: Content,
    tags: Vec<Tag>,
    devices: Vec<DevicePath>,
}

impl NewVolume {
    /// A linear volume, wiped.
    #[must_use]
    pub const fn new(name: LvName, size: SizeRange) -> Self {
        Self {
            name,
            size,
            layout: Layout::Linear,
            integrity: Integrity::None,
            content: Content::Wiped,
            tags: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// Laid out so.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// With checksums on its RAID legs.
    #[must_use]
    pub fn integrity(self, integrity: Integrity) -> Self {
        Self { integrity, ..self }
    }

    /// With this done to what lay there.
    #[must_use]
    pub fn content(self, content: Content) -> Self {
        Self { content, ..self }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }

    /// On this PV, besides the others named; without any, on whichever have room.
    #[must_use]
    pub fn on(mut self, device: DevicePath) -> Self {
        self.devices.push(device);
        self
    }
}

struct ThickRecipe<'a> {
    new: &'a NewVolume,
    content: Content,
}

impl Recipe for ThickRecipe<'_> {
    fn name(&self) -> &LvName {
        &self.new.name
    }

    fn tags(&self) -> &[Tag] {
        &self.new.tags
    }

    fn matches(&self, seen: &Seen, found: &Lv) -> Result<(), String> {
        if !is_laid_out(seen.vg(), found, self.new.layout) {
            return Err(format!("it is not laid out as {:?}", self.new.layout));
        }
        size_matches(seen.vg(), found, self.new.size)
    }

    fn make(&self, group: &Group, seen: &Seen, tags: &[Tag], tried: &str) -> Result<(), Error> {
        let (new, vg) = (self.new, seen.vg());
        new.layout.check(new.integrity, vg.extent_size, tried)?;
        let extents = new.size.extents(vg.extent_size, new.layout.data_stripes(), tried)?;
        let devices = seen.resolve(&new.devices, tried)?;
        seen.has_room(new.layout, extents, &devices, tried)?;
        let command = LvCreate {
            vg: &vg.name,
            name: &new.name,
            extents,
            layout: new.layout,
            integrity: new.integrity,
            content: self.content,
            tags,
            devices: &devices,
        };
        group.run(seen, tried, &command)
    }

    fn complete(&self, _: &Group, seen: &Seen, made: &Lv, tried: &str) -> Result<(), Error> {
        if let Some(pv) = seen.vg().pv_of_several_legs(made) {
            return Err(Error::new(Kind::NoSpace(Space::Legs), tried)
                .with_answer(format!("LVM put several legs on PV {pv}, whose loss would break them all"))
                .with_advice("add disks to the group, ask for less, or name the disks to use"));
        }
        match self.content {
            Content::Untouched => Ok(()),
            Content::Wiped => wipe::signatures(&Volume::of(seen.vg(), made).device, tried),
        }
    }

    fn content_tag(&self, _: &Group, _: &Seen) -> Option<Tag> {
        (self.content == Content::Wiped).then(|| Tag::literal(FS_NEW))
    }
}

/// Whether a volume of the group has that layout, as far as the layout says.
fn is_laid_out(vg: &Vg, lv: &Lv, layout: Layout) -> bool {
    let count = |legs: usize| u32::try_from(legs).unwrap_or(u32::MAX);
    match (layout, lv.kind()) {
        // A cached volume is what it caches.
        (layout, Some(SegmentKind::Cache(cache))) => {
            vg.lv(cache.origin.as_str()).is_some_and(|origin| is_laid_out(vg, origin, layout))
        }
        (layout, Some(SegmentKind::Writecache(cache))) => {
            vg.lv(cache.origin.as_str()).is_some_and(|origin| is_laid_out(vg, origin, layout))
        }
        (Layout::Linear, Some(SegmentKind::Striped(striped))) => striped.areas.len() == 1,
        (Layout::Striped { stripes, .. }, Some(SegmentKind::Striped(striped))) => {
            count(striped.areas.len()) == stripes
        }
        (layout, Some(SegmentKind::Raid(raid))) => {
            count(raid.legs.len()) == layout.legs()
                && matches!(
                    (layout, &raid.level),
                    (Layout::Raid1 { .. }, RaidLevel::Raid1)
                        | (Layout::Raid4 { .. }, RaidLevel::Raid4)
                        | (Layout::Raid5 { .. }, RaidLevel::Raid5(_))
                        | (Layout::Raid6 { .. }, RaidLevel::Raid6(_))
                        | (Layout::Raid10 { .. }, RaidLevel::Raid10(_))
                )
        }
        _ => false,
    }
}

impl Group {
    /// Makes a thick volume, or finds it made.
    ///
    /// It gets the smallest size that the extents and stripes allow. With [`Content::Wiped`] it ends active and
    /// without any signature.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a size or layout that cannot be; [`Kind::AlreadyExists`] when another volume has
    /// the name, or another size or layout; [`Kind::NoSpace`] with what is missing; [`Kind::MissingPv`],
    /// [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn create_volume(&self, new: &NewVolume) -> Result<Change<Volume>, Error> {
        let tried = format!("create volume {}", self.calls(&new.name));
        let content = match self.lvm.settings().activation {
            Activation::MetadataOnly => Content::Untouched,
            _ => new.content,
        };
        self.make(&ThickRecipe { new, content }, &tried)
    }

    /// Gives a volume another name.
    ///
    /// The volume is told by its identity ([`Volume::uuid`]), so that a renaming which is asked for again finds its own
    /// work done, and never takes another volume of the new name for it.
    ///
    /// # Errors
    ///
    /// [`Kind::AlreadyExists`] when another volume has the new name, [`Kind::NotFound`] when no volume has the identity,
    /// [`Kind::InvalidArgument`] for an internal volume, [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn rename_volume(&self, volume: Uuid, to: &LvName) -> Result<Change<Volume>, Error> {
        let tried = format!("rename the volume {volume} to {}", self.calls(to));
        let from =
            Seen::of(&self.lvm, self.uuid, Need::Any, &tried)?.renamed(volume, to, &tried)?.name.clone();
        let _from = self.guard(&from, &tried)?;
        let _to = (from != *to).then(|| self.guard(to, &tried)).transpose()?;
        // Only from here on nothing else happens to either name.
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        if seen.renamed(volume, to, &tried)?.name != from {
            return Err(Error::new(Kind::Busy, &tried)
                .with_answer(format!("it was called {from}, and has just got another name"))
                .with_advice("try again"));
        }
        let lv = seen.finished_lv(&self.lvm, &from, &tried)?;
        if from == *to {
            return self.lvm.already(&seen, &tried, Volume::of(seen.vg(), lv));
        }
        seen.dm_name_fits(to, &tried)?;
        self.run(&seen, &tried, &LvRename { vg: &seen.vg().name, from: &from, to })?;
        self.volume_after(to, &tried).map(Change::Made)
    }

    /// The volume of this name as it is now; no command runs.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`].
    pub fn volume(&self, name: &LvName) -> Result<Volume, Error> {
        let tried = format!("find volume {}", self.calls(name));
        let seen = Seen::of(&self.lvm, self.uuid, Need::Any, &tried)?;
        Ok(Volume::of(seen.vg(), seen.lv(name, &tried)?))
    }

    pub(crate) fn volume_after(&self, name: &LvName, tried: &str) -> Result<Volume, Error> {
        let seen = Seen::of(&self.lvm, self.uuid, Need::Any, tried)?;
        Ok(Volume::of(seen.vg(), seen.lv(name, tried)?))
    }
}

impl Seen {
    /// The volume of this identity, unless another one has the name that it is to get.
    fn renamed(&self, volume: Uuid, to: &LvName, tried: &str) -> Result<&Lv, Error> {
        if let Some(other) = self.vg().lv(to.as_str()).filter(|lv| lv.uuid != volume) {
            return Err(Error::new(Kind::AlreadyExists, tried)
                .with_answer(format!("{to} is another volume, with the uuid {}", other.uuid))
                .with_advice("choose another name"));
        }
        let found = self.vg().lvs.iter().find(|lv| lv.uuid == volume && lv.as_snapshot().is_none());
        found.ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("group {} has no volume with this uuid", self.vg().name))
        })
    }

    /// Whether so many extents of such a layout can be had, from `devices` or from all.
    ///
    /// Exact, as [`Vg::largest`] is: what LVM would refuse is refused here, and so is a RAID volume of which LVM would
    /// put two legs on one PV.
    pub(crate) fn has_room(
        &self,
        layout: Layout,
        extents: Extents,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<(), Error> {
        let free = self.free(devices);
        let total: u64 = free.iter().map(|free| free.get()).sum();
        let per_leg = extents.get() / u64::from(layout.data_stripes());
        let needed = match layout {
            Layout::Linear => extents.get(),
            layout => {
                per_leg.saturating_add(u64::from(layout.is_raid())).saturating_mul(u64::from(layout.legs()))
            }
        };
        if total < needed {
            return Err(self.no_space(Space::Data, needed, total, tried));
        }
        let legs_needed = u64::from(layout.legs());
        let with_room = free.iter().filter(|free| free.get() > 0).count() as u64;
        if layout.is_raid() && with_room < legs_needed {
            return Err(Error::new(Kind::NoSpace(Space::Legs), tried)
                .with_answer(format!(
                    "the layout needs {legs_needed} PVs with free extents, and group {} has {with_room}",
                    self.vg().name
                ))
                .with_advice("add disks to the group, or use a layout with fewer legs"));
        }
        if !self.vg().usage().fits(self.vg(), layout, extents, &self.allocatable(devices)) {
            return Err(Error::new(Kind::NoSpace(Space::Legs), tried)
                .with_answer(match layout {
                    Layout::Linear => {
                        format!("LVM's allocation policy for the group finds no place for {extents}")
                    }
                    Layout::Striped { stripes, .. } => {
                        format!("LVM finds no place for {stripes} stripes of {per_leg} extents side by side")
                    }
                    _ => format!(
                        "LVM finds no place for {legs_needed} legs of {per_leg} extents, each on PVs of its own"
                    ),
                })
                .with_advice("add disks to the group, ask for less, or name the disks to use"));
        }
        Ok(())
    }

    pub(crate) fn no_space(&self, space: Space, needed: u64, free: u64, tried: &str) -> Error {
        let size = self.vg().extent_size.bytes();
        Error::new(Kind::NoSpace(space), tried)
            .with_answer(format!(
                "{needed} extents of {size} are needed, and group {} has {free} free",
                self.vg().name
            ))
            .with_advice("ask for less, remove something, or add a disk to the group")
    }
}
