//! Volume groups.

use std::sync::Arc;

use super::guard::Guard;
use super::pv::{NewPv, OldContent};
use super::seen::{Need, Seen};
use super::{Change, activate};
use crate::command::{
    VgChange, VgCreate, VgExtend, VgReduce, VgReduceMissing, VgRemove, VgRename, VgRestoreMissing,
};
use crate::metadata::{Vg, View};
use crate::run::Scope;
use crate::{DevicePath, Error, ExtentSize, Kind, LvName, Lvm, Tag, Uuid, VgName};

/// A volume group, held by its identity: it stays the same group whatever it is called.
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) lvm: Lvm,
    pub(crate) uuid: Uuid,
    /// What it was called when it was looked up, for error texts.
    name: VgName,
}

/// A group to be made.
///
/// ```
/// use lvm::DevicePath;
/// use lvm::ops::NewGroup;
///
/// let group = NewGroup::new("data".parse()?, [DevicePath::new("/dev/sdb")?]).tag("gabion".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NewGroup {
    name: VgName,
    devices: Vec<DevicePath>,
    extent_size: ExtentSize,
    old_content: OldContent,
    tags: Vec<Tag>,
}

impl NewGroup {
    /// A group on these devices, with extents of 4 MiB. Devices that are no PVs yet become PVs.
    pub fn new(name: VgName, devices: impl IntoIterator<Item = DevicePath>) -> Self {
        Self {
            name,
            devices: devices.into_iter().collect(),
            extent_size: ExtentSize::DEFAULT,
            old_content: OldContent::Refuse,
            tags: Vec::new(),
        }
    }

    /// With extents of this size: a power of two of at least 1 sector and at most 4 GiB.
    #[must_use]
    pub fn extent_size(self, extent_size: ExtentSize) -> Self {
        Self { extent_size, ..self }
    }

    /// With this done about signatures on its devices.
    #[must_use]
    pub fn old_content(self, old_content: OldContent) -> Self {
        Self { old_content, ..self }
    }

    /// With this tag, besides the others.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }
}

/// Largest extent of LVM, in bytes.
const EXTENT_MAX: u64 = 4 << 30;

impl Lvm {
    /// Every group on the devices in use, also those that are not ours.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] when nothing can be read at all.
    pub fn groups(&self) -> Result<Vec<Group>, Error> {
        let view = self.view()?;
        Ok(view.vgs.iter().map(|vg| self.held(vg)).collect())
    }

    /// The group of this name.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], and [`Kind::Inconsistent`] when two groups have the name.
    pub fn group(&self, name: &VgName) -> Result<Group, Error> {
        let view = self.view()?;
        self.by_name(&view, name, &format!("find group {name}"))
    }

    /// The group of this identity.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`].
    pub fn group_by_uuid(&self, uuid: Uuid) -> Result<Group, Error> {
        let view = self.view()?;
        view.vg_by_uuid(uuid).map(|vg| self.held(vg)).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("find the group with the uuid {uuid}"))
                .with_answer("it is not on the devices in use")
        })
    }

    fn held(&self, vg: &Vg) -> Group {
        Group { lvm: self.clone(), uuid: vg.uuid, name: vg.name.clone() }
    }

    fn by_name(&self, view: &View, name: &VgName, tried: &str) -> Result<Group, Error> {
        let named: Vec<&Vg> = view.vgs_named(name.as_str()).collect();
        match named[..] {
            [vg] => Ok(self.held(vg)),
            [] => Err(Error::new(Kind::NotFound, tried)
                .with_answer(format!("no group {name} is on the devices in use"))),
            _ => Err(Error::new(Kind::Inconsistent, tried)
                .with_answer(format!("{} groups are called {name}", named.len()))
                .with_advice("name the group by its uuid, or take the other one's devices away")),
        }
    }

    /// Makes a group that only we activate, and PVs of its devices first; or finds it made.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] without devices or for an extent size that cannot be; [`Kind::AlreadyExists`] when
    /// another group has the name; [`Kind::InUse`] for a device that is in another group or carries something;
    /// [`Kind::NotFound`] for one that is not there; and what LVM itself says.
    pub fn create_group(&self, new: &NewGroup) -> Result<Change<Group>, Error> {
        let tried = format!("create group {}", new.name);
        let size = new.extent_size.bytes().get();
        if !size.is_power_of_two() || size > EXTENT_MAX || new.devices.is_empty() {
            let answer = if new.devices.is_empty() {
                "no devices were given".to_owned()
            } else {
                format!(
                    "an extent size of {} was asked for; it is a power of two up to 4 GiB",
                    new.extent_size.bytes()
                )
            };
            return Err(Error::new(Kind::InvalidArgument, &tried).with_answer(answer));
        }
        let devices: Vec<DevicePath> =
            new.devices.iter().map(DevicePath::resolved).collect::<Result<_, _>>()?;
        let view = self.view()?;
        if view.vgs_named(new.name.as_str()).next().is_some() {
            return self.group_found(&view, new, &devices, &tried);
        }
        for device in &devices {
            let pv = NewPv::new(device.clone()).old_content(new.old_content);
            let _ = self.create_pv(&pv)?;
        }
        let owner = self.settings().owner.iter().filter(|owner| !new.tags.contains(owner));
        let tags: Vec<Tag> = owner.chain(&new.tags).cloned().collect();
        let command =
            VgCreate { name: &new.name, extent_size: new.extent_size, tags: &tags, devices: &devices };
        self.run(Scope::Free, &tried, &command)?;
        let view = self.view()?;
        self.by_name(&view, &new.name, &tried).map(Change::Made)
    }

    fn group_found(
        &self,
        view: &Arc<View>,
        new: &NewGroup,
        devices: &[DevicePath],
        tried: &str,
    ) -> Result<Change<Group>, Error> {
        let group = self.by_name(view, &new.name, tried)?;
        let seen = Seen::of(self, group.uuid, Need::Any, tried)?;
        let refuse = |answer: String| Err(Error::new(Kind::AlreadyExists, tried).with_answer(answer));
        if let Some(owner) = &self.settings().owner
            && !seen.vg().has_tag(owner.as_str())
        {
            return refuse(format!("a group of that name exists and lacks the tag {owner}"));
        }
        if seen.vg().extent_size != new.extent_size {
            let has = seen.vg().extent_size.bytes();
            return refuse(format!("a group of that name exists and has extents of {has}"));
        }
        if seen.resolve(devices, tried).is_err() || seen.vg().pvs.len() != devices.len() {
            return refuse("a group of that name exists on other devices".to_owned());
        }
        self.already(&seen, tried, group)
    }
}

impl Group {
    /// Its identity.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// What it was called when it was looked up; for people.
    #[must_use]
    pub const fn label(&self) -> &VgName {
        &self.name
    }

    /// The handle that it was found with.
    #[must_use]
    pub const fn lvm(&self) -> &Lvm {
        &self.lvm
    }

    /// How error texts call a volume of it.
    pub(crate) fn calls(&self, lv: &LvName) -> String {
        format!("{}/{lv}", self.name)
    }

    pub(crate) fn guard(&self, name: &LvName, tried: &str) -> Result<Guard, Error> {
        Guard::take(&self.lvm.settings().run_dir, self.uuid, name, tried)
    }

    /// Its metadata as they are now; no command runs.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is gone, [`Kind::Io`].
    pub fn look(&self) -> Result<Vg, Error> {
        let tried = format!("read group {}", self.name);
        self.lvm.view()?.vg_by_uuid(self.uuid).cloned().ok_or_else(|| {
            Error::new(Kind::NotFound, tried).with_answer("it is not on the devices in use any more")
        })
    }

    /// Adds devices to the group, as PVs made for it where they are none; what is in it already stays.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] for a device of another group or with something on it, [`Kind::NotFound`],
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn extend(&self, devices: &[DevicePath], old_content: OldContent) -> Result<Change, Error> {
        let tried = format!("extend group {}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let mut added = Vec::new();
        for device in devices {
            let device = device.resolved()?;
            if seen.resolve(std::slice::from_ref(&device), &tried).is_err() {
                let _ = self.lvm.create_pv(&NewPv::new(device.clone()).old_content(old_content))?;
                added.push(device);
            }
        }
        if added.is_empty() {
            return self.lvm.already(&seen, &tried, ());
        }
        self.run(&seen, &tried, &VgExtend { name: &seen.vg().name, devices: &added })?;
        Ok(Change::Made(()))
    }

    /// Takes an empty PV out of the group; it stays a PV.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while extents on it are allocated or it is the last one, [`Kind::NotFound`] for a device that
    /// is no PV at all, [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn reduce(&self, device: &DevicePath) -> Result<Change, Error> {
        let tried = format!("take {device} out of group {}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let resolved = device.resolved()?;
        let Ok(devices) = seen.resolve(std::slice::from_ref(&resolved), &tried) else {
            return self.lvm.already(&seen, &tried, ());
        };
        let pv = seen.pv_on(&resolved, &tried)?;
        let taken = pv.pe_count.get().saturating_sub(seen.vg().free_on(pv.uuid).get());
        if taken > 0 || seen.vg().pvs.len() == 1 {
            let answer = match taken {
                0 => "it is the last PV of the group".to_owned(),
                taken => format!("{taken} extents on it are in use"),
            };
            return Err(Error::new(Kind::InUse, &tried)
                .with_answer(answer)
                .with_advice("move its extents away, or remove the group"));
        }
        for device in &devices {
            self.run(&seen, &tried, &VgReduce { name: &seen.vg().name, device })?;
        }
        Ok(Change::Made(()))
    }

    /// Gives the group another name. Handles on it stay valid.
    ///
    /// # Errors
    ///
    /// [`Kind::AlreadyExists`] when another group has the name, [`Kind::InUse`], [`Kind::MissingPv`],
    /// [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn rename(&self, to: &VgName) -> Result<Change, Error> {
        let tried = format!("rename group {} to {to}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        if seen.vg().name == *to {
            return self.lvm.already(&seen, &tried, ());
        }
        if seen.view().vgs_named(to.as_str()).next().is_some() {
            return Err(Error::new(Kind::AlreadyExists, &tried).with_answer("another group has that name"));
        }
        self.lvm.run(seen.whole_scope(), &tried, &VgRename { from: &seen.vg().name, to })?;
        Ok(Change::Made(()))
    }

    /// Adds and removes tags of the group in one commit.
    ///
    /// # Errors
    ///
    /// [`Kind::MissingPv`], [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn tag(&self, add: &[Tag], remove: &[Tag]) -> Result<Change, Error> {
        self.tag_when(Need::Complete, add, remove)
    }

    /// Marks the group as ours, by the owner's tag of the handle. For a group made by others, after its owner agreed.
    ///
    /// Its volumes are not ours by that; each one needs the tag.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] where the handle has no owner; [`Kind::Busy`], and what LVM itself says.
    pub fn adopt(&self) -> Result<Change, Error> {
        let Some(owner) = &self.lvm.settings().owner else {
            return Err(Error::new(Kind::InvalidArgument, format!("adopt group {}", self.name))
                .with_answer("this handle has no owner's tag"));
        };
        self.tag_when(Need::Any, std::slice::from_ref(owner), &[])
    }

    fn tag_when(&self, need: Need, add: &[Tag], remove: &[Tag]) -> Result<Change, Error> {
        let tried = format!("tag group {}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, need, &tried)?;
        let (add, remove) = changed_tags(&seen.vg().tags, add, remove);
        if add.is_empty() && remove.is_empty() {
            return self.lvm.already(&seen, &tried, ());
        }
        let change = VgChange::Tags { add: &add, remove: &remove };
        self.run(&seen, &tried, &(change, &seen.vg().name))?;
        Ok(Change::Made(()))
    }

    /// Adds and removes tags of a volume in one commit.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::InvalidArgument`] for a tag of the library itself, such as that of unfinished volumes;
    /// [`Kind::Foreign`], [`Kind::MissingPv`], [`Kind::Busy`], and what LVM itself says.
    pub fn tag_volume(&self, name: &LvName, add: &[Tag], remove: &[Tag]) -> Result<Change, Error> {
        let tried = format!("tag volume {}", self.calls(name));
        super::own_tags(add.iter().chain(remove), &tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        let lv = seen.finished_lv(&self.lvm, name, &tried)?;
        let (add, remove) = changed_tags(&lv.tags, add, remove);
        if add.is_empty() && remove.is_empty() {
            return self.lvm.already(&seen, &tried, ());
        }
        let change = crate::command::LvChange::Tags { add: &add, remove: &remove };
        self.run(&seen, &tried, &(change, seen.target(name)))?;
        Ok(Change::Made(()))
    }

    /// Takes PVs that came back into service again, so that the group can be changed. RAID volumes on them are
    /// brought up to date by [refreshing](Group::refresh_volume) them.
    ///
    /// # Errors
    ///
    /// [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn restore_missing(&self) -> Result<Change, Error> {
        let tried = format!("restore PVs of group {}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        let mut devices = Vec::new();
        for pv in seen.vg().missing_pvs() {
            if let Some(device) = &pv.device {
                devices.push(DevicePath::new(&device.path)?.resolved()?);
            }
        }
        if devices.is_empty() {
            return self.lvm.already(&seen, &tried, ());
        }
        self.run(&seen, &tried, &VgRestoreMissing { name: &seen.vg().name, devices: &devices })?;
        Ok(Change::Made(()))
    }

    /// Forgets missing PVs on which no volume lies any more.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while a volume still lies on one; [`Kind::Foreign`], [`Kind::Busy`], and what LVM itself says.
    pub fn forget_missing(&self) -> Result<Change, Error> {
        let tried = format!("forget missing PVs of group {}", self.name);
        let seen = Seen::of(&self.lvm, self.uuid, Need::Ours, &tried)?;
        let vg = seen.vg();
        if vg.is_complete() {
            return self.lvm.already(&seen, &tried, ());
        }
        // LVM would count the PVs as missing even if it refuses, so it is not asked in vain.
        if let Some(lv) = vg.lvs.iter().find(|lv| !lv.is_internal() && vg.is_partial(lv)) {
            return Err(Error::new(Kind::InUse, &tried)
                .with_answer(format!("volume {} lies on a missing PV", lv.name))
                .with_advice("bring the PV back, or repair or remove the volume first"));
        }
        self.run(&seen, &tried, &VgReduceMissing { name: &vg.name })?;
        Ok(Change::Made(()))
    }

    /// Removes the group; its PVs stay PVs. One with volumes in it is not removed.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while there are volumes in it; [`Kind::Foreign`], [`Kind::MissingPv`], [`Kind::Busy`], and
    /// what LVM itself says.
    pub fn remove(&self) -> Result<Change, Error> {
        let tried = format!("remove group {}", self.name);
        let seen = match Seen::of(&self.lvm, self.uuid, Need::Complete, &tried) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(Change::Already(())),
            seen => seen?,
        };
        let volumes = seen.vg().visible_lvs().count();
        if volumes > 0 {
            return Err(Error::new(Kind::InUse, &tried)
                .with_answer(format!("{volumes} volumes are in it"))
                .with_advice("remove them first"));
        }
        self.lvm.run(seen.whole_scope(), &tried, &VgRemove { name: &seen.vg().name })?;
        Ok(Change::Made(()))
    }

    /// Starts a check or repair of a RAID volume's legs against each other; it goes on in the kernel.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a volume that is not RAID, [`Kind::NotFound`], [`Kind::Foreign`],
    /// [`Kind::Unsupported`] without device-mapper, and what LVM itself says.
    pub fn scrub_volume(&self, name: &LvName, scrub: activate::Scrub) -> Result<(), Error> {
        let tried = format!("scrub volume {}", self.calls(name));
        self.needs_kernel(&tried)?;
        let seen = Seen::of(&self.lvm, self.uuid, Need::Complete, &tried)?;
        if seen.finished_lv(&self.lvm, name, &tried)?.as_raid().is_none() {
            return Err(Error::new(Kind::InvalidArgument, tried).with_answer("it is not a RAID volume"));
        }
        let change = crate::command::LvChange::Scrub(scrub);
        self.run(&seen, &tried, &(change, seen.target(name)))
    }
}

/// What of a tag change is left to do.
pub(crate) fn changed_tags(has: &[Tag], add: &[Tag], remove: &[Tag]) -> (Vec<Tag>, Vec<Tag>) {
    let add = add.iter().filter(|tag| !has.contains(tag)).cloned().collect();
    let remove = remove.iter().filter(|tag| has.contains(tag)).cloned().collect();
    (add, remove)
}
