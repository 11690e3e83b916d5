//! The pools of a node: found, built, and read.

mod build;
mod read;
mod survey;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use devices::discovery::{Disk, Inventory};
use devices::selector::{Class, ClassDisks, Selector, divide};
use lvm::metadata::{Vg, View};
use lvm::ops::{Group, Layout};
use lvm::worker::host::{HOST_DIR, HostSettings};
use lvm::{DevicePath, Lvm, LvmBuilder, VgName};

use crate::backend::duplicate::Copies;
use crate::backend::partition::Sharing;
use crate::backend::{Backend, Thick, Thin, lv::LvPool, tags};
use crate::class::{DeviceClass, LvmPool, NodeSelector, ThinPool};
use crate::{ClassName, DeviceScope, Error, Kind, Orphan, Settings};

pub(crate) use build::open;
pub(crate) use survey::survey;

/// What a class has on this node.
#[derive(Debug)]
pub(crate) enum Place {
    /// A pool.
    Ready(Box<dyn Backend>),
    /// None of its disks is here.
    Absent,
    /// It cannot be used now, for this reason.
    Down(String),
}

/// All pools, and the handle that they share.
#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) places: BTreeMap<ClassName, Place>,
    pub(crate) lvm: Lvm,
    /// What they were opened with.
    pub(crate) settings: Arc<Settings>,
}

/// What classes select, to divide the disks of a host among them.
pub(crate) struct Selectors<'a>(Vec<(&'a str, Selector)>);

impl<'a> Selectors<'a> {
    pub(crate) fn of(classes: impl Iterator<Item = &'a DeviceClass>) -> Self {
        Self(classes.map(|class| (class.name.as_str(), class.selector())).collect())
    }

    /// The disks of each class, in the order of the classes.
    pub(crate) fn divide<'b>(&'b self, inventory: &'b Inventory) -> Vec<ClassDisks<'b>> {
        let wanted: Vec<Class<'b>> = self.0.iter().map(|(name, selector)| Class { name, selector }).collect();
        divide(&wanted, inventory)
    }
}

/// Whether a class is for this node: it selects it, or has a group here already, since volumes do not go away when a node
/// gets other labels.
fn is_here(class: &DeviceClass, settings: &Settings, view: &View) -> bool {
    let is_selected = |selector: &NodeSelector| selector.selects(&settings.labels);
    let has_group = |name: VgName| {
        view.vgs_named(name.as_str()).any(|vg| vg.tag_value(tags::OWNER) == Some(settings.owner.as_str()))
    };
    class.spec.node_selector.as_ref().is_none_or(is_selected) || class.volume_group().is_some_and(has_group)
}

/// The devices that may be looked at for groups.
fn candidates(settings: &Settings) -> Result<Vec<PathBuf>, Error> {
    Ok(match &settings.scope {
        DeviceScope::Only(paths) => paths.clone(),
        DeviceScope::Host => lvm::Candidates::of_this_host()?.devices,
    })
}

/// What every handle of this node has: the devices, its owner's tag and the host's settings of LVM.
fn lvm_builder(
    settings: &Settings,
    devices: impl IntoIterator<Item = DevicePath>,
) -> Result<LvmBuilder, Error> {
    let host = match &settings.lvm_host {
        Some(host) => host.clone(),
        None => HostSettings::read(Path::new(HOST_DIR))?,
    };
    let owner = tags::tag(&format!("{}{}", tags::OWNER, settings.owner))?;
    Ok(Lvm::builder().devices(devices).owner(owner).host(host))
}

/// A group of that name is there and is not this owner's.
fn not_adopted(group: &VgName) -> Error {
    Error::new(Kind::Refused, format!("use volume group {group}"))
        .with_answer("it exists, and lacks the tag of this owner")
        .with_advice("agree to its adoption, or name another group")
}

fn in_scope(settings: &Settings, inventory: &Inventory, disk: &Disk) -> bool {
    match &settings.scope {
        DeviceScope::Host => true,
        DeviceScope::Only(paths) => {
            paths.iter().any(|path| inventory.at(path).is_ok_and(|found| found.number == disk.number))
        }
    }
}

/// Every path that must exist leads to a disk.
fn all_there(disks: &ClassDisks<'_>, tried: &str) -> Result<(), Error> {
    let Some(path) = disks.missing.first() else { return Ok(()) };
    Err(Error::new(Kind::Unavailable, tried)
        .with_answer(format!("there is no disk at {}", path.display()))
        .with_advice("bring the disk back, or take its path out of the class"))
}

/// Each leg of the class's layout can have a disk of its own.
fn enough_disks(class: &DeviceClass, disks: usize) -> Result<(), Error> {
    let legs = class.layout().map_or(1, Layout::legs);
    if disks as u64 >= u64::from(legs) {
        return Ok(());
    }
    Err(Error::new(Kind::Unavailable, format!("make the pool of class {}", class.name))
        .with_answer(format!("its layout takes {legs} disks, and {disks} can be used"))
        .with_advice("add disks to the class, or make another class with fewer legs"))
}

/// No other class wants the same disks.
fn uncontested(disks: &ClassDisks<'_>, tried: &str) -> Result<(), Error> {
    let Some(contested) = disks.contested.first() else { return Ok(()) };
    let others: Vec<&str> = contested.with.iter().map(|(name, _)| *name).collect();
    Err(Error::new(Kind::Refused, tried).with_answer(format!(
        "{} is selected by {} too, so no class gets it",
        contested.disk.path.display(),
        others.join(", ")
    )))
}

fn lv_pool(class: &DeviceClass, group: &Group, settings: &Settings) -> LvPool {
    LvPool { group: group.clone(), class: class.clone(), owner: settings.owner.clone() }
}

fn thick(pool: LvPool, spec: &LvmPool, settings: &Settings, copies: &Copies) -> Thick {
    let (copies, locks) = (copies.clone(), settings.lock_dir.clone());
    Thick { pool, layout: spec.layout.to_lvm(), copies, locks }
}

/// With how long the pool may be out of the kernel.
fn thin(pool: LvPool, spec: &ThinPool, away: Duration) -> Thin {
    Thin {
        pool,
        name: spec.pool_name.clone(),
        ratio: spec.overprovision_ratio,
        refuse_at: spec.refuse_at,
        auto_extend: spec.auto_extend,
        away,
    }
}

fn sharing(exclusive: bool) -> Sharing {
    if exclusive { Sharing::Exclusive } else { Sharing::Shared }
}

/// Volumes and snapshots of this owner in a group that belong to no class.
fn orphans(vg: &Vg, settings: &Settings) -> Vec<Orphan> {
    let mut found = Vec::new();
    for lv in vg.visible_lvs() {
        let ours = lv.tag_value(tags::OWNER) == Some(settings.owner.as_str());
        let (volume, snapshot) = (tags::volume_of(lv), tags::snapshot_of(lv));
        let is_one = volume.is_some() || snapshot.is_some();
        if ours && is_one && tags::class_of(lv).is_none_or(|class| !settings.has_class(class.as_str())) {
            let (place, name) = (format!("volume group {}", vg.name), lv.name.to_string());
            found.push(Orphan { place, name, volume, snapshot });
        }
    }
    found
}
