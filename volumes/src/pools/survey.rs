//! The pools of a node as they are: nothing is built, activated or repaired.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use devices::discovery::{Discovery, Inventory};
use devices::selector::ClassDisks;
use lvm::ops::Group;
use lvm::{DevicePath, Lvm};

use super::{
    Place, Pools, Selectors, all_there, candidates, in_scope, is_here, lv_pool, lvm_builder, not_adopted,
    orphans, sharing, thick, thin, uncontested,
};
use crate::backend::directory::Directories;
use crate::backend::duplicate::Copies;
use crate::backend::partition::{self, Partitions};
use crate::backend::{Backend, tags};
use crate::class::{DeviceClass, Pool};
use crate::repair::ClassProblem;
use crate::{Error, Kind, Repairs, Settings};

/// How long a thin pool may be out of the kernel because somebody changes it. One that is not active is no news here.
const AWAY: Duration = Duration::from_secs(1);

/// Finds whatever of the classes is there.
pub(crate) fn survey(settings: &Arc<Settings>) -> Result<(Pools, Repairs), Error> {
    let inventory = Discovery::host().inventory()?;
    let lvm = handle(settings)?;
    let view = lvm.view()?;
    let (here, elsewhere): (Vec<&DeviceClass>, Vec<&DeviceClass>) =
        settings.classes.iter().partition(|class| is_here(class, settings, &view));
    let selectors = Selectors::of(here.iter().copied());
    let surveyor = Surveyor { settings, inventory: &inventory, lvm: &lvm };
    let mut told = Repairs::default();
    for vg in &view.vgs {
        told.add_orphans(orphans(vg, settings));
    }
    let mut places: BTreeMap<_, _> =
        elsewhere.iter().map(|class| (class.name.clone(), Place::Absent)).collect();
    for (class, disks) in here.iter().copied().zip(selectors.divide(&inventory)) {
        let place = match surveyor.backend(class, &disks, &mut told) {
            Ok(Some(backend)) => Place::Ready(backend),
            Ok(None) => Place::Absent,
            Err(error) => {
                let why = error.to_string();
                told.problems.push(ClassProblem { class: class.name.clone(), error });
                Place::Down(why)
            }
        };
        places.insert(class.name.clone(), place);
    }
    Ok((Pools { places, lvm, settings: Arc::clone(settings) }, told))
}

/// A handle that runs no command.
fn handle(settings: &Settings) -> Result<Lvm, Error> {
    let paths = candidates(settings)?.into_iter();
    let devices = paths.map(DevicePath::new).collect::<Result<Vec<_>, _>>()?;
    Ok(lvm_builder(settings, devices)?.build_to_read())
}

struct Surveyor<'a> {
    settings: &'a Settings,
    inventory: &'a Inventory,
    lvm: &'a Lvm,
}

impl Surveyor<'_> {
    fn backend(
        &self,
        class: &DeviceClass,
        disks: &ClassDisks<'_>,
        told: &mut Repairs,
    ) -> Result<Option<Box<dyn Backend>>, Error> {
        match &class.spec.pool {
            Pool::Lvm(spec) => {
                let Some(group) = self.group(class, disks)? else { return Ok(None) };
                let pool = lv_pool(class, &group, self.settings);
                Ok(Some(Box::new(thick(pool, spec, self.settings, &Copies::default()))))
            }
            Pool::Thin(spec) => {
                let Some(group) = self.group(class, disks)? else { return Ok(None) };
                let pool = thin(lv_pool(class, &group, self.settings), spec, AWAY);
                Ok(Some(Box::new(pool)))
            }
            Pool::Partition(spec) => {
                let pool = self.partitions(class, disks, sharing(spec.exclusive))?;
                Ok(pool.map(|pool| Box::new(pool) as _))
            }
            Pool::Directory(spec) => {
                let (owner, locks) = (&self.settings.owner, &self.settings.lock_dir);
                let pool = Directories::find(class, spec, owner, locks)?;
                told.add_orphans(pool.orphans(|name| self.settings.has_class(name))?);
                Ok(Some(Box::new(pool)))
            }
        }
    }

    /// The group in which a class lives, if it is this owner's.
    fn group(&self, class: &DeviceClass, disks: &ClassDisks<'_>) -> Result<Option<Group>, Error> {
        let named = class.spec.devices.shared_with.as_ref();
        let owner = self.settings.classes.iter().find(|other| Some(&other.name) == named).unwrap_or(class);
        let name =
            owner.volume_group().ok_or_else(|| Error::invalid("spec.pool", "it has no volume group"))?;
        let group = match self.lvm.group(&name) {
            Ok(group) => group,
            Err(error) if error.kind() == lvm::Kind::NotFound => {
                return not_made(class, disks).map(|()| None);
            }
            Err(error) => return Err(error.into()),
        };
        if group.look()?.tag_value(tags::OWNER) == Some(self.settings.owner.as_str()) {
            return Ok(Some(group));
        }
        Err(not_adopted(&name))
    }

    /// The disks of a class of partitions that have a table of ours.
    fn partitions(
        &self,
        class: &DeviceClass,
        disks: &ClassDisks<'_>,
        sharing: partition::Sharing,
    ) -> Result<Option<Partitions>, Error> {
        all_there(disks, &format!("use the disks of class {}", class.name))?;
        let owner = &self.settings.owner;
        let mut ours = Vec::new();
        for disk in disks.disks.iter().map(|selected| selected.disk) {
            if in_scope(self.settings, self.inventory, disk)
                && partition::own_table(&disk.path, owner)?.is_some()
            {
                ours.push(disk.path.clone());
            }
        }
        if ours.is_empty() {
            return not_made(class, disks).map(|()| None);
        }
        Ok(Some(Partitions { class: class.clone(), owner: owner.clone(), disks: ours, sharing }))
    }
}

/// A class whose pool is not there is absent where it has no disk, and else one that nobody has used yet.
fn not_made(class: &DeviceClass, disks: &ClassDisks<'_>) -> Result<(), Error> {
    let tried = format!("find the pool of class {}", class.name);
    all_there(disks, &tried)?;
    uncontested(disks, &tried)?;
    if disks.disks.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Unavailable, tried)
        .with_answer(format!("it was not made yet; the class selects {} disks", disks.disks.len()))
        .with_advice("start gabion node, or make the first volume: that makes the pool"))
}
