//! Building pools of eligible disks, extending them, and bringing them in order after a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use devices::discovery::{Discovery, Disk, Inventory};
use devices::eligibility::{Assessor, Chosen, Policy, Reason};
use devices::erase::{Consent, Records};
use devices::gpt::{self, Condition};
use devices::selector::{ClassDisks, Selected};
use lvm::metadata::{OrphanPv, View};
use lvm::ops::{Change, Group, NewGroup, NewPool, OldContent, PoolSize};
use lvm::worker::conf::AutoExtend;
use lvm::{DevicePath, FillLimit, Lvm, Tag, VgName};

use super::{
    Place, Pools, Selectors, all_there, candidates, enough_disks, in_scope, is_here, lv_pool, lvm_builder,
    not_adopted, orphans, sharing, thick, thin, uncontested,
};
use crate::backend::directory::Directories;
use crate::backend::duplicate::Copies;
use crate::backend::lv::LvPool;
use crate::backend::partition::{self, Partitions, Sharing};
use crate::backend::{Backend, tags};
use crate::begun::BegunPvs;
use crate::class::{AutoSize, DeviceClass, DirectoryPool, DiscoveryMode, Pool, Size, ThinPool, Wipe};
use crate::{ClassName, ClassProblem, Error, Kind, Repair, Repairs, Settings};

/// Where the identities of PVs that were begun lie, in the directory of the state.
const BEGUN: &str = "begun-pvs";

/// How long a pool may be out of the kernel: LVM takes it away for a moment, and puts it back below its first volume.
const AWAY: Duration = Duration::from_secs(10);

/// One volume group and the classes that live in it.
struct GroupPlan<'a> {
    name: VgName,
    /// The class whose disks form it.
    class: &'a DeviceClass,
    /// Disks that it gets, in the order of their names.
    disks: Vec<DevicePath>,
    /// Disks that are in it already.
    present: Vec<DevicePath>,
    exists: bool,
}

/// Builds whatever the classes ask for, as far as it can be had.
pub(crate) fn open(settings: &Arc<Settings>, copies: &Copies) -> Result<(Pools, Repairs), Error> {
    let inventory = Discovery::host().inventory()?;
    let view = read_groups(settings)?;
    let (here, elsewhere): (Vec<&DeviceClass>, Vec<&DeviceClass>) =
        settings.classes.iter().partition(|class| is_here(class, settings, &view));
    let selectors = Selectors::of(here.iter().copied());
    let divided = selectors.divide(&inventory);
    let mut builder = Builder {
        settings,
        copies,
        inventory: &inventory,
        view: &view,
        places: elsewhere.iter().map(|class| (class.name.clone(), Place::Absent)).collect(),
        repairs: Repairs::default(),
    };
    let plans: Vec<GroupPlan<'_>> = here
        .iter()
        .copied()
        .zip(&divided)
        .filter(|(class, _)| class.volume_group().is_some() && class.spec.devices.shared_with.is_none())
        .filter_map(|(class, disks)| builder.plan_group(class, disks))
        .collect();
    let lvm = handle(settings, &plans)?;
    let mut groups = BTreeMap::new();
    for plan in &plans {
        match builder.build_group(&lvm, plan) {
            Ok(group) => {
                groups.insert(plan.class.name.clone(), group);
            }
            Err(error) => builder.down(plan.class, error),
        }
    }
    if !groups.is_empty() {
        builder.recover(&lvm)?;
    }
    for (class, disks) in here.iter().copied().zip(&divided) {
        builder.finish(class, disks, &groups);
    }
    let Builder { places, repairs, .. } = builder;
    Ok((Pools { places, lvm, settings: Arc::clone(settings) }, repairs))
}

/// The kernel's sign that a thin pool is nearly full: at the fill from which nothing new is made anyway, since LVM makes
/// nothing above it either. Growing begins earlier, by looking.
fn auto_extend(classes: &[DeviceClass]) -> AutoExtend {
    let refuse_at = classes.iter().filter_map(|class| match &class.spec.pool {
        Pool::Thin(pool) => Some(pool.refuse_at.data),
        _ => None,
    });
    let by = AutoExtend::default().by;
    AutoExtend { threshold: refuse_at.max().unwrap_or(100).clamp(50, 100), by }
}

/// The groups on the devices that may be looked at.
fn read_groups(settings: &Settings) -> Result<Arc<View>, Error> {
    Ok(lvm::metadata::read(candidates(settings)?, lvm::metadata::Options::default()))
}

fn handle(settings: &Settings, plans: &[GroupPlan<'_>]) -> Result<Lvm, Error> {
    let devices = plans.iter().flat_map(|plan| plan.present.iter().chain(&plan.disks)).cloned();
    let mut builder = lvm_builder(settings, devices)?
        .activation(settings.activation)
        .run_dir(settings.run_dir.join("lvm"))
        .backup_dir(settings.state_dir.join("backup"))
        .auto_extend(auto_extend(&settings.classes))
        // Each thin pool has limits of its own, which its backend keeps.
        .refuse_at(FillLimit { data: 100, metadata: 100 });
    if let Some(worker) = &settings.worker {
        builder = builder.worker(worker);
    }
    for directory in [settings.run_dir.join("lvm"), settings.state_dir.join("backup")] {
        std::fs::create_dir_all(&directory)
            .map_err(|cause| Error::system(format!("make directory {}", directory.display()), cause))?;
    }
    Ok(builder.build()?)
}

struct Builder<'a> {
    settings: &'a Settings,
    copies: &'a Copies,
    inventory: &'a Inventory,
    view: &'a View,
    places: BTreeMap<ClassName, Place>,
    repairs: Repairs,
}

impl<'a> Builder<'a> {
    fn down(&mut self, class: &DeviceClass, error: Error) {
        self.places.insert(class.name.clone(), Place::Down(error.to_string()));
        self.repairs.problems.push(ClassProblem { class: class.name.clone(), error });
    }

    fn in_scope(&self, disk: &Disk) -> bool {
        in_scope(self.settings, self.inventory, disk)
    }

    fn assessor(&self) -> Assessor {
        Assessor::new(Policy::default().with_minimum_size(self.settings.minimum_disk))
    }

    fn begun(&self) -> BegunPvs {
        BegunPvs::in_directory(self.settings.state_dir.join(BEGUN))
    }

    /// What a class's group is made of, or is to be made of; `None` where the class has nothing here or is down.
    fn plan_group(&mut self, class: &'a DeviceClass, disks: &ClassDisks<'_>) -> Option<GroupPlan<'a>> {
        match self.group_of(class, disks) {
            Ok(plan) if plan.present.is_empty() && plan.disks.is_empty() => {
                self.places.insert(class.name.clone(), Place::Absent);
                None
            }
            Ok(plan) => Some(plan),
            Err(error) => {
                self.down(class, error);
                None
            }
        }
    }

    fn group_of(&mut self, class: &'a DeviceClass, disks: &ClassDisks<'_>) -> Result<GroupPlan<'a>, Error> {
        let tried = format!("use the disks of class {}", class.name);
        let name =
            class.volume_group().ok_or_else(|| Error::invalid("spec.pool", "it has no volume group"))?;
        let found: Vec<_> = self.view.vgs_named(name.as_str()).collect();
        if found.len() > 1 {
            return Err(Error::new(Kind::Refused, tried)
                .with_answer(format!("{} volume groups are called {name}", found.len()))
                .with_advice("rename one by its uuid"));
        }
        let vg = found.first();
        let present: Vec<&PathBuf> =
            vg.iter().flat_map(|vg| &vg.pvs).filter_map(|pv| Some(&pv.device.as_ref()?.path)).collect();
        if vg.is_none() {
            all_there(disks, &tried)?;
        }
        uncontested(disks, &tried)?;
        let joins = |selected: &&Selected<'_>| {
            // A class that finds its disks by itself and only once keeps to those that it found.
            vg.is_none()
                || selected.chosen == Chosen::ByName
                || class.spec.devices.discovery == DiscoveryMode::Dynamic
        };
        let is_present = |disk: &Disk| {
            present.iter().any(|path| self.inventory.at(path).is_ok_and(|found| found.number == disk.number))
        };
        let mut new = Vec::new();
        for selected in disks.disks.iter().filter(joins) {
            if !self.in_scope(selected.disk) || is_present(selected.disk) {
                continue;
            }
            match self.begun_pv(selected) {
                Some(path) => new.push(path?),
                None => new.extend(self.usable(class, selected)?),
            }
        }
        let path = |path: &PathBuf| DevicePath::new(path).map_err(Error::from);
        let present = present.into_iter().map(path).collect::<Result<_, _>>()?;
        Ok(GroupPlan { name, class, disks: new, present, exists: vg.is_some() })
    }

    /// A disk that this node began to make a PV when it was killed, and that is nothing else.
    fn begun_pv(&mut self, selected: &Selected<'_>) -> Option<Result<DevicePath, Error>> {
        let disk = selected.disk;
        let orphan = self.orphan_pv(disk).filter(|orphan| !orphan.in_use_elsewhere)?;
        let begun = self.begun().has(&orphan.uuid);
        let eligibility = self.assessor().assess(self.inventory, disk);
        let is_only_that =
            eligibility.bars(selected.chosen).all(|why| matches!(why, Reason::LvmPv { group: None }));
        if !begun || !is_only_that {
            return None;
        }
        self.repaired(&disk.path, "took the PV that was made of it when its maker ended".to_owned());
        Some(DevicePath::new(&disk.path).map_err(Error::from))
    }

    /// The PV of no group that a disk is.
    fn orphan_pv(&self, disk: &Disk) -> Option<&'a OrphanPv> {
        let on = |orphan: &&OrphanPv| {
            self.inventory.at(&orphan.device.path).is_ok_and(|found| found.number == disk.number)
        };
        self.view.orphans.iter().find(on)
    }

    /// A disk if it may be used, wiped where that was agreed to. One that was named and may not be used is an error, any
    /// other is passed over.
    fn usable(&mut self, class: &DeviceClass, selected: &Selected<'_>) -> Result<Option<DevicePath>, Error> {
        let disk = selected.disk;
        let assessor = self.assessor();
        let mut eligibility = assessor.assess(self.inventory, disk);
        if !eligibility.allows(selected.chosen)
            && class.spec.devices.wipe == Wipe::OnceDestroyingData
            && let Some(key) = disk.key()
        {
            let records = Records::in_directory(self.settings.state_dir.join("wiped"))?;
            if records.wipe_once(&Discovery::host(), disk, &Consent::to_destroy(key))?.is_made() {
                let place = disk.path.display().to_string();
                self.repairs.repairs.push(Repair { place, done: format!("wiped for class {}", class.name) });
            }
            eligibility = assessor.assess(self.inventory, disk);
        }
        if eligibility.allows(selected.chosen) {
            return Ok(Some(DevicePath::new(&disk.path)?));
        }
        let required = class
            .spec
            .devices
            .paths
            .iter()
            .any(|path| self.inventory.at(path).is_ok_and(|found| found.number == disk.number));
        if !required {
            return Ok(None);
        }
        let advice = match self.orphan_pv(disk) {
            None => "free the disk, wipe it if what is on it may go, or take its path out of the class",
            Some(_) => {
                "nothing here proves that this node made the PV, which is in no group: remove it (pvremove) if it may \
                 go, or take its path out of the class"
            }
        };
        Err(Error::new(Kind::Refused, format!("use {} for class {}", disk.path.display(), class.name))
            .with_answer(eligibility.to_string())
            .with_advice(advice))
    }

    /// The group of a plan, made, taken over and extended where that is to be done.
    fn build_group(&mut self, lvm: &Lvm, plan: &GroupPlan<'_>) -> Result<Group, Error> {
        let group = self.take_or_make_group(lvm, plan)?;
        let begun = self.begun();
        for pv in &group.look()?.pvs {
            begun.forget(&pv.uuid);
        }
        Ok(group)
    }

    fn take_or_make_group(&mut self, lvm: &Lvm, plan: &GroupPlan<'_>) -> Result<Group, Error> {
        let mark = Tag::new(tags::OURS).map_err(|cause| Error::invalid("a tag", cause))?;
        let begun = self.begun();
        let make_pvs = || plan.disks.iter().try_for_each(|disk| begun.make(lvm, disk));
        if !plan.exists {
            enough_disks(plan.class, plan.disks.len())?;
            make_pvs()?;
            let new = NewGroup::new(plan.name.clone(), plan.disks.iter().cloned()).tag(mark);
            let group = lvm.create_group(&new)?.into_inner();
            self.note(&plan.name, format!("made of {} disks", plan.disks.len()));
            return Ok(group);
        }
        let group = lvm.group(&plan.name)?;
        let vg = group.look()?;
        if vg.tag_value(tags::OWNER) != Some(self.settings.owner.as_str()) {
            if !self.settings.adopt.contains(&plan.name) {
                return Err(not_adopted(&plan.name));
            }
            let _ = group.adopt()?;
            let _ = group.tag(&[mark], &[])?;
            self.note(&plan.name, "taken over".to_owned());
        }
        if !plan.disks.is_empty() {
            make_pvs()?;
            let _ = group.extend(&plan.disks, OldContent::Refuse)?;
            self.note(&plan.name, format!("extended by {} disks", plan.disks.len()));
        }
        Ok(group)
    }

    fn note(&mut self, group: &VgName, done: String) {
        self.repairs.repairs.push(Repair { place: format!("volume group {group}"), done });
    }

    /// Brings every group in order that a killed process left half-changed.
    fn recover(&mut self, lvm: &Lvm) -> Result<(), Error> {
        for result in lvm.recover_all()? {
            match result.result {
                Ok(recovered) => {
                    for step in recovered.steps {
                        self.note(&result.name, step.to_string());
                    }
                }
                Err(error) => self.note(&result.name, format!("recovery failed: {error}")),
            }
        }
        Ok(())
    }

    /// The backend of a class, its volumes activated and what is half-made removed.
    fn finish(&mut self, class: &DeviceClass, disks: &ClassDisks<'_>, groups: &BTreeMap<ClassName, Group>) {
        if self.places.contains_key(&class.name) {
            return;
        }
        let built = match self.backend(class, disks, groups) {
            Ok(Some(backend)) => Place::Ready(backend),
            Ok(None) => Place::Absent,
            Err(error) => return self.down(class, error),
        };
        self.places.insert(class.name.clone(), built);
    }

    fn backend(
        &mut self,
        class: &DeviceClass,
        disks: &ClassDisks<'_>,
        groups: &BTreeMap<ClassName, Group>,
    ) -> Result<Option<Box<dyn Backend>>, Error> {
        let owner = class.spec.devices.shared_with.as_ref().unwrap_or(&class.name);
        let group = groups.get(owner);
        match &class.spec.pool {
            Pool::Lvm(pool) => {
                let Some(group) = group else { return Ok(None) };
                let pool = thick(lv_pool(class, group, self.settings), pool, self.settings, self.copies);
                self.settle(&pool.pool)?;
                for name in pool.resume()? {
                    self.note(group.label(), format!("removed temporary snapshot {name}"));
                }
                Ok(Some(Box::new(pool)))
            }
            Pool::Thin(spec) => {
                let Some(group) = group else { return Ok(None) };
                self.thin_pool(group, class, spec)?;
                let pool = thin(lv_pool(class, group, self.settings), spec, AWAY);
                self.settle(&pool.pool)?;
                Ok(Some(Box::new(pool)))
            }
            Pool::Partition(spec) => {
                let pool = self.partitions(class, disks, sharing(spec.exclusive))?;
                Ok(pool.map(|pool| Box::new(pool) as _))
            }
            Pool::Directory(pool) => Ok(Some(Box::new(self.directories(class, pool)?))),
        }
    }

    /// Makes a class's thin pool, or grows it to its share of a group that has grown.
    fn thin_pool(&mut self, group: &Group, class: &DeviceClass, spec: &ThinPool) -> Result<(), Error> {
        let share = PoolSize::Share(spec.size_percent);
        let vg = group.look()?;
        if let Some(lv) = vg.lv(spec.pool_name.as_str()) {
            if lv.as_thin_pool().is_none() || lv.tag_value(tags::OWNER) != Some(self.settings.owner.as_str())
            {
                return Err(Error::new(
                    Kind::Refused,
                    format!("use thin pool {}/{}", group.label(), lv.name),
                )
                .with_answer("a logical volume of that name is there, and is no thin pool of this owner"));
            }
            match group.extend_pool(&spec.pool_name, share, &[]) {
                Ok(Change::Made(pool)) => {
                    self.note(group.label(), format!("thin pool grown to {}", pool.size));
                }
                Ok(Change::Already(_)) => {}
                // It works as it is; the rest of the group was given to others.
                Err(error) => self.note(group.label(), format!("the thin pool did not grow: {error}")),
            }
            return Ok(());
        }
        enough_disks(class, vg.pvs.len())?;
        let mut new = NewPool::new(spec.pool_name.clone(), share)
            .layout(spec.layout.to_lvm())
            .tag(tags::tag(tags::OURS)?);
        if let AutoSize::Fixed(Size(size)) = spec.chunk_size {
            new = new.chunk(size);
        }
        if let AutoSize::Fixed(Size(size)) = spec.metadata_size {
            new = new.metadata(size);
        }
        let made = group.create_pool(&new)?.into_inner();
        self.note(group.label(), format!("thin pool {} of {} made", made.name, made.size));
        Ok(())
    }

    /// The disks of a class of partitions, each with a table of ours.
    fn partitions(
        &mut self,
        class: &DeviceClass,
        disks: &ClassDisks<'_>,
        sharing: Sharing,
    ) -> Result<Option<Partitions>, Error> {
        let tried = format!("use the disks of class {}", class.name);
        all_there(disks, &tried)?;
        uncontested(disks, &tried)?;
        let owner = &self.settings.owner;
        let mut ours = Vec::new();
        for selected in &disks.disks {
            let path = &selected.disk.path;
            if !self.in_scope(selected.disk) {
                continue;
            }
            match partition::own_table(path, owner) {
                Ok(Some(condition)) => {
                    if matches!(condition, Condition::Damaged(_)) {
                        let (_, damages) = gpt::Disk::repair(path, owner.gpt())?;
                        let damages: Vec<String> = damages.iter().map(ToString::to_string).collect();
                        self.repaired(path, format!("mended the partition table: {}", damages.join("; ")));
                    }
                    ours.push(path.clone());
                }
                Ok(None) => {
                    if self.usable(class, selected)?.is_some() {
                        gpt::Disk::create(path, owner.gpt())?;
                        self.repaired(path, "made a partition table".to_owned());
                        ours.push(path.clone());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if ours.is_empty() {
            return Ok(None);
        }
        let pool = Partitions { class: class.clone(), owner: owner.clone(), disks: ours, sharing };
        for (path, done) in pool.repair(&self.settings.lock_dir)? {
            self.repaired(&path, done);
        }
        Ok(Some(pool))
    }

    /// The directory of a class, what is half-made in it removed.
    fn directories(&mut self, class: &DeviceClass, pool: &DirectoryPool) -> Result<Directories, Error> {
        let settings = self.settings;
        let pool = Directories::open(class, pool, &settings.owner, &settings.lock_dir)?;
        for done in pool.repair()? {
            self.repaired(pool.path(), done);
        }
        self.repairs.add_orphans(pool.orphans(|name| settings.has_class(name))?);
        Ok(pool)
    }

    fn repaired(&mut self, place: &Path, done: String) {
        self.repairs.repairs.push(Repair { place: place.display().to_string(), done });
    }

    /// Removes what a class has half-made, tells what belongs to nobody, and activates what a node needs to begin.
    fn settle(&mut self, pool: &LvPool) -> Result<(), Error> {
        for name in pool.remove_unfinished(&self.settings.lock_dir)? {
            self.note(pool.group.label(), format!("removed {name}, which was never completed"));
        }
        let look = pool.look()?;
        self.repairs.add_orphans(orphans(look.vg(), self.settings));
        if let Err(error) = pool.activate_first() {
            self.note(pool.group.label(), format!("not all volumes came up: {error}"));
        }
        Ok(())
    }
}
