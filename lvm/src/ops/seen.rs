//! What was seen of a group just before something is done to it, and the refusals that need no command.

use std::sync::Arc;

use crate::command::Target;
use crate::metadata::{Lv, LvFlag, Problem, Pv, Vg, VgFlag, View};
use crate::run::Scope;
use crate::{DevicePath, Error, Extents, Kind, LvName, Lvm, Uuid};

/// A group at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    view: Arc<View>,
    index: usize,
}

/// What a change needs to hold before it may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The group is ours, and all its PVs are there.
    Complete,
    /// The group is ours; PVs may be missing.
    Ours,
    /// Only that the name is unique: the volume itself is looked at for the owner's tag.
    Any,
}

/// Whether a volume has a tag. Of a pool that was just made out of two volumes, its data may still have it, since LVM
/// leaves their tags with them.
pub(crate) fn is_marked(vg: &Vg, lv: &Lv, tag: &str) -> bool {
    let data = lv.as_thin_pool().and_then(|pool| vg.lv(pool.data.as_str()));
    lv.has_tag(tag) || data.is_some_and(|data| data.has_tag(tag))
}

/// Whether a volume that users see was never completed.
pub(crate) fn is_unfinished(vg: &Vg, lv: &Lv) -> bool {
    is_marked(vg, lv, super::CREATING) || (lv.has_tag(super::PART) && vg.is_visible(lv))
}

impl Seen {
    /// Looks at the group of this identity.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::Inconsistent`] where its name or a PV of it exists twice; and what `need` says.
    pub(crate) fn of(lvm: &Lvm, uuid: Uuid, need: Need, tried: &str) -> Result<Self, Error> {
        let view = lvm.view()?;
        let Some(index) = view.vgs.iter().position(|vg| vg.uuid == uuid) else {
            return Err(Error::new(Kind::NotFound, tried)
                .with_answer(format!("no group with the uuid {uuid} is on the devices in use")));
        };
        let seen = Self { view, index };
        seen.unambiguous(tried)?;
        seen.usable(tried)?;
        if need != Need::Any {
            seen.ours(lvm, tried)?;
        }
        if need == Need::Complete {
            seen.complete(tried)?;
        }
        Ok(seen)
    }

    pub(crate) fn vg(&self) -> &Vg {
        &self.view.vgs[self.index]
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// This group as a whole, for its renaming and its removal.
    pub(crate) fn whole_scope(&self) -> Scope {
        Scope::Whole { name: self.vg().name.clone(), uuid: self.vg().uuid }
    }

    /// The queue of this group.
    pub(crate) fn scope(&self) -> Scope {
        Scope::Vg { name: self.vg().name.clone(), uuid: self.vg().uuid }
    }

    pub(crate) fn target<'a>(&'a self, lv: &'a LvName) -> Target<'a> {
        Target { vg: &self.vg().name, lv }
    }

    /// LVM takes groups by name, so a name that two groups have must not reach it.
    fn unambiguous(&self, tried: &str) -> Result<(), Error> {
        let vg = self.vg();
        let same = self.view.vgs_named(vg.name.as_str()).count();
        if same > 1 {
            return Err(Error::new(Kind::Inconsistent, tried)
                .with_answer(format!("{same} groups are called {}", vg.name))
                .with_advice("take the other group's devices away, or rename one group by its uuid"));
        }
        for problem in &self.view.problems {
            if let Problem::DuplicatePv { pv, .. } | Problem::ClaimedTwice { pv, .. } = problem
                && vg.pv(*pv).is_some()
            {
                return Err(Error::new(Kind::Inconsistent, tried).with_answer(problem.to_string()));
            }
        }
        Ok(())
    }

    fn usable(&self, tried: &str) -> Result<(), Error> {
        let vg = self.vg();
        let refuse = |answer: &str| Err(Error::new(Kind::Unsupported, tried).with_answer(answer));
        if vg.has(&VgFlag::Exported) {
            return refuse("the group is exported");
        }
        if vg.lock_type.as_deref().is_some_and(|lock| lock != "none") {
            return refuse("the group is shared between hosts");
        }
        Ok(())
    }

    fn ours(&self, lvm: &Lvm, tried: &str) -> Result<(), Error> {
        match &lvm.settings().owner {
            Some(owner) if !self.vg().has_tag(owner.as_str()) => Err(Error::new(Kind::Foreign, tried)
                .with_answer(format!("group {} lacks the tag {owner}", self.vg().name))
                .with_advice("adopt the group first if it is to be used")),
            _ => Ok(()),
        }
    }

    fn complete(&self, tried: &str) -> Result<(), Error> {
        let missing: Vec<String> = self
            .vg()
            .missing_pvs()
            .map(|pv| match (&pv.device, &pv.hint) {
                (Some(device), _) => {
                    format!("{} (back on {}, not restored)", pv.uuid, device.path.display())
                }
                (None, Some(hint)) => format!("{} (last seen on {hint})", pv.uuid),
                (None, None) => pv.uuid.to_string(),
            })
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::MissingPv, tried)
            .with_answer(format!("group {} misses PV {}", self.vg().name, missing.join(", ")))
            .with_advice("bring the PV back and restore it, or repair the volumes on it and remove it"))
    }

    /// The volume of this name, internal ones among them.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`].
    pub(crate) fn lv(&self, name: &LvName, tried: &str) -> Result<&Lv, Error> {
        self.vg().lv(name.as_str()).filter(|lv| lv.as_snapshot().is_none()).ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("group {} has no volume {name}", self.vg().name))
        })
    }

    /// As [`is_marked`], in this group.
    pub(crate) fn is_marked(&self, lv: &Lv, tag: &str) -> bool {
        is_marked(self.vg(), lv, tag)
    }

    /// As [`is_unfinished`], in this group.
    pub(crate) fn is_unfinished(&self, lv: &Lv) -> bool {
        is_unfinished(self.vg(), lv)
    }

    /// The volume of this name, which a caller may change: visible, ours, and not half-made.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`], [`Kind::InvalidArgument`] for an internal volume, [`Kind::Foreign`], and
    /// [`Kind::Busy`] for one that is being made.
    pub(crate) fn own_lv(&self, lvm: &Lvm, name: &LvName, tried: &str) -> Result<&Lv, Error> {
        let lv = self.lv(name, tried)?;
        if !self.vg().is_visible(lv) {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("{name} is an internal volume of LVM")));
        }
        if let Some(owner) = &lvm.settings().owner
            && !self.is_marked(lv, owner.as_str())
        {
            return Err(
                Error::new(Kind::Foreign, tried).with_answer(format!("volume {name} lacks the tag {owner}"))
            );
        }
        Ok(lv)
    }

    /// Like [`Seen::own_lv`], and complete.
    pub(crate) fn finished_lv(&self, lvm: &Lvm, name: &LvName, tried: &str) -> Result<&Lv, Error> {
        let lv = self.own_lv(lvm, name, tried)?;
        if self.is_unfinished(lv) {
            return Err(Error::new(Kind::Busy, tried)
                .with_answer(format!("volume {name} is not complete"))
                .with_advice("create it again, or remove what is unfinished"));
        }
        if lv.has(&LvFlag::Locked) {
            return Err(Error::new(Kind::Busy, tried)
                .with_answer(format!("extents of volume {name} are being moved"))
                .with_advice("wait for the move to end, or resume it"));
        }
        Ok(lv)
    }

    /// The devices by the names that a command may carry, each one a PV of this group.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] for a device that is no PV of the group.
    pub(crate) fn resolve(&self, devices: &[DevicePath], tried: &str) -> Result<Vec<DevicePath>, Error> {
        let here: Vec<DevicePath> = self
            .vg()
            .pvs
            .iter()
            .filter_map(|pv| DevicePath::new(&pv.device.as_ref()?.path).ok()?.resolved().ok())
            .collect();
        devices
            .iter()
            .map(|device| {
                let resolved = device.resolved()?;
                if here.contains(&resolved) {
                    return Ok(resolved);
                }
                Err(Error::new(Kind::NotFound, tried)
                    .with_answer(format!("{device} is no PV of group {}", self.vg().name)))
            })
            .collect()
    }

    /// Free extents of each PV that may be allocated from, of `devices` or of all.
    pub(crate) fn free(&self, devices: &[DevicePath]) -> Vec<Extents> {
        let usage = self.vg().usage();
        self.allocatable(devices).into_iter().map(|pv| usage.free_on(pv)).collect()
    }

    /// The PVs that may be allocated from, in the order in which LVM looks at them: that of `devices`, or of the group.
    pub(crate) fn allocatable(&self, devices: &[DevicePath]) -> Vec<Uuid> {
        let place = |pv: &Pv| {
            let path = &pv.device.as_ref()?.path;
            if devices.is_empty() {
                return Some(0);
            }
            let path = DevicePath::new(path).and_then(|path| path.resolved()).ok()?;
            devices.iter().position(|device| *device == path)
        };
        let allocatable = self.vg().pvs.iter().filter(|pv| pv.is_allocatable());
        let mut pvs: Vec<(usize, Uuid)> = allocatable.filter_map(|pv| Some((place(pv)?, pv.uuid))).collect();
        pvs.sort_by_key(|(place, _)| *place);
        pvs.into_iter().map(|(_, uuid)| uuid).collect()
    }
}
