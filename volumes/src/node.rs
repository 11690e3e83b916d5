//! A node: its classes, and everything that can be done with volumes.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use devices::Bytes;
use devices::filesystem::FsType;
use devices::mount::MountTable;
use lvm::ops::SizeRange;

use crate::backend::duplicate::Copies;
use crate::backend::{Backend, NewVolume, Origin};
use crate::changes::Changes;
use crate::class::DeviceClass;
use crate::keeper::Growing;
use crate::kept_open::KeptOpen;
use crate::lock::{Held, Lock};
use crate::pools::{self, Place, Pools};
use crate::{
    Capacity, ClassName, CreateSnapshot, CreateVolume, Error, Kind, Repairs, Settings, Snapshot, SnapshotId,
    SnapshotState, Source, Volume, VolumeId,
};
use crate::{mounts, places};

/// The volumes of this host. Clones are cheap and share everything.
#[derive(Clone, Debug)]
pub struct Node {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Replaced as a whole, so that a long operation on the old ones keeps nobody from looking again.
    pools: RwLock<Arc<Pools>>,
    /// Tells those who follow the pools that they were replaced.
    changes: Changes,
    /// Copies of snapshots that run in this process.
    copies: Copies,
    kept_open: KeptOpen,
}

impl Node {
    /// Builds the pools of the classes or finds them built, brings what a crash left in order, and activates what is
    /// there. A class that cannot be used now keeps no other one from being used; it is told in the repairs.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for classes that cannot be together; [`Kind::Busy`] while another process is opening its
    /// pools; [`Kind::Internal`] when the devices of the host cannot be listed, or LVM's worker is not there.
    pub fn open(settings: Settings) -> Result<(Self, Repairs), Error> {
        crate::class::check_together(&settings.classes)?;
        let settings = Arc::new(settings);
        let copies = Copies::default();
        let (pools, mut repairs) = {
            let _lock = Lock::take(&settings.lock_dir, Held::Pools, "open the pools of this node")?;
            let (pools, mut repairs) = pools::open(&settings, &copies)?;
            repairs.repairs.extend(mounts::take_down_new(&settings));
            (pools, repairs)
        };
        let node = Self {
            inner: Arc::new(Inner {
                pools: RwLock::new(Arc::new(pools)),
                changes: Changes::default(),
                copies,
                kept_open: KeptOpen::default(),
            }),
        };
        repairs.repairs.extend(node.keep_published_open());
        Ok((node, repairs))
    }

    /// Looks at the disks again: classes whose disks came back are used again, and pools that may take new disks do.
    ///
    /// # Errors
    ///
    /// As [`Node::open`]; then everything stays as it was.
    pub fn refresh(&self) -> Result<Repairs, Error> {
        let tried = "look at the disks of this node again";
        let _lock = self.lock(Held::Pools, tried)?;
        // Read under the lock: another thread may have brought other classes.
        self.open_again(&self.settings())
    }

    /// Takes other classes without a restart. What a pool is built of stays as it was: such a change is refused as a whole.
    /// The volumes of a class that is not there any more stay, and nothing touches them.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] with each field that may not change, or for classes that cannot be together; as
    /// [`Node::open`]. Then everything stays as it was.
    pub fn reload(&self, classes: Vec<DeviceClass>) -> Result<Repairs, Error> {
        crate::class::check_together(&classes)?;
        let _lock = self.lock(Held::Pools, "take other classes")?;
        let settings = self.settings();
        crate::class::check_changes(&settings.classes, &classes)?;
        self.open_again(&Arc::new(Settings { classes, ..(*settings).clone() }))
    }

    /// With the lock of the pools.
    fn open_again(&self, settings: &Arc<Settings>) -> Result<Repairs, Error> {
        let (pools, repairs) = pools::open(settings, &self.inner.copies)?;
        *self.inner.pools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pools);
        self.inner.changes.announce();
        Ok(repairs)
    }

    /// What it was opened with, and the classes that it has now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.pools().settings)
    }

    pub(crate) fn kept_open(&self) -> &KeptOpen {
        &self.inner.kept_open
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.inner.changes
    }

    /// The thin pools that are to grow.
    pub(crate) fn growing(&self) -> Vec<Growing> {
        let pools = self.pools();
        let ready = pools.places.values().filter_map(|place| match place {
            Place::Ready(backend) => Some(backend),
            Place::Absent | Place::Down(_) => None,
        });
        ready.filter_map(|backend| backend.growing()).collect()
    }

    pub(crate) fn pools(&self) -> Arc<Pools> {
        Arc::clone(&self.inner.pools.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes no more changes, and waits until those of LVM that run have ended: for a program's end. Returns whether they
    /// have.
    #[must_use]
    pub fn drain(&self, patience: Duration) -> bool {
        self.pools().lvm.workers().is_none_or(|workers| workers.drain(patience))
    }

    /// The class that a request names, or the default one.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] for a class that is not there; [`Kind::InvalidArgument`] when there is no default.
    pub fn class(&self, name: Option<&ClassName>) -> Result<DeviceClass, Error> {
        let settings = self.settings();
        let classes = &settings.classes;
        match name {
            Some(name) => classes.iter().find(|class| class.name == *name).cloned().ok_or_else(|| {
                Error::new(Kind::NotFound, format!("find class {name}"))
                    .with_answer("this node has no such class")
            }),
            None => classes
                .iter()
                .find(|class| class.spec.default)
                .cloned()
                .ok_or_else(|| Error::invalid("class", "none was named, and no class is the default")),
        }
    }

    /// Every class.
    #[must_use]
    pub fn classes(&self) -> Vec<DeviceClass> {
        self.settings().classes.clone()
    }

    /// Room in a class, the default one where none is named. A class of which this node has no disk has none.
    ///
    /// # Errors
    ///
    /// As [`Node::class`]; [`Kind::Unavailable`] while the class cannot be used.
    pub fn capacity(&self, class: Option<&ClassName>) -> Result<Capacity, Error> {
        let class = self.class(class)?;
        let tried = format!("tell the capacity of class {}", class.name);
        let pools = self.pools();
        match pools.places.get(&class.name) {
            Some(Place::Ready(backend)) => Ok(with_least(backend.capacity()?, &class)),
            Some(Place::Down(why)) => Err(down(tried, &class, why)),
            Some(Place::Absent) | None => Ok(Capacity::default()),
        }
    }

    /// How many volumes this node can have in all, the present ones included: so many entries its partition tables have,
    /// and so much text the metadata of its groups hold. `None` where a class has no such limit, or cannot be asked now.
    ///
    /// # Errors
    ///
    /// When a pool cannot be read.
    pub fn max_volumes(&self) -> Result<Option<u64>, Error> {
        let pools = self.pools();
        let mut most = None;
        for place in pools.places.values() {
            let backend = match place {
                Place::Ready(backend) => backend,
                Place::Absent => continue,
                Place::Down(_) => return Ok(None),
            };
            let mut of_class = backend.volumes()?.len() as u64;
            // Classes in one group share its room, which is counted with the class that has the disks.
            if backend.class().spec.devices.shared_with.is_none() {
                let Some(more) = backend.more_volumes()? else { return Ok(None) };
                of_class = of_class.saturating_add(more);
            }
            most = Some(most.unwrap_or(0_u64).saturating_add(of_class));
        }
        Ok(most)
    }

    /// Every volume that is complete, by id.
    ///
    /// # Errors
    ///
    /// When a pool cannot be read: a list with holes would be taken for the truth.
    pub fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let pools = self.pools();
        let mut all = Vec::new();
        for place in pools.places.values() {
            if let Place::Ready(backend) = place {
                all.extend(backend.volumes()?);
            }
        }
        all.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }

    /// One volume.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::Unavailable`] when it is not there while a class cannot be used, since it may be in
    /// that one.
    pub fn volume(&self, id: &VolumeId) -> Result<Volume, Error> {
        let pools = self.pools();
        pools.find(id, &format!("find volume {id}")).map(|(_, volume)| volume)
    }

    /// Makes a volume, or finds it made. It is not mounted, and has no filesystem yet.
    ///
    /// # Errors
    ///
    /// [`Kind::Exists`] when a volume of that id differs from what is asked for; [`Kind::NotFound`] for a class or a
    /// source that is not there; [`Kind::OutOfRange`] for sizes that cannot be; [`Kind::NoSpace`]; [`Kind::Busy`];
    /// [`Kind::FailedPrecondition`] for a class that cannot copy volumes; [`Kind::Unavailable`].
    pub fn create(&self, new: &CreateVolume) -> Result<Volume, Error> {
        let tried = format!("create volume {}", new.id);
        let class = self.class(new.class.as_ref())?;
        let asked = new.fs_type.or(class.spec.volume.fs_type);
        let own = class.makes_filesystems().then(|| asked.unwrap_or(FsType::Ext4));
        let size = with_minimum(new.size, own, &tried)?;
        let _lock = self.lock(Held::Volume(&new.id), &tried)?;
        let pools = self.pools();
        if let Some((_, there)) = pools.find_anywhere(&new.id, &tried)? {
            return same_or_exists(there, new, &class.name, tried);
        }
        let backend = pools.ready(&class, &tried)?;
        backend.delete_unfinished(&new.id, &tried)?;
        let wanted = NewVolume {
            id: &new.id,
            size,
            fs_type: own.or(asked),
            source: new.source.as_ref(),
            lifecycle: new.lifecycle,
        };
        match &new.source {
            None => backend.create(&wanted, &tried),
            Some(Source::Volume(id)) => {
                let held = self.lock(Held::Volume(id), &tried)?;
                let (there, source) = pools.find(id, &tried)?;
                same_pool(backend, there, &tried)?;
                large_enough(size, source.size, &tried)?;
                backend.copy(&wanted, Origin::Volume(&source), held, &tried)
            }
            Some(Source::Snapshot(id)) => {
                let held = self.lock(Held::Snapshot(id), &tried)?;
                let (there, source) = pools.find_snapshot(id, &tried)?;
                same_pool(backend, there, &tried)?;
                large_enough(size, source.size, &tried)?;
                ready_to_use(&source, &tried)?;
                backend.copy(&wanted, Origin::Snapshot(&source), held, &tried)
            }
        }
    }

    /// Removes a volume; one that does not exist is removed already.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while it is mounted or open; [`Kind::Busy`]; [`Kind::Unavailable`], also when it is not there
    /// while a class cannot be used.
    pub fn delete(&self, id: &VolumeId) -> Result<(), Error> {
        let tried = format!("delete volume {id}");
        let _lock = self.lock(Held::Volume(id), &tried)?;
        let pools = self.pools();
        for place in pools.places.values() {
            if let Place::Ready(backend) = place {
                backend.delete_unfinished(id, &tried)?;
            }
        }
        let Some((backend, volume)) = pools.find_anywhere(id, &tried)? else { return Ok(()) };
        if let Some(place) = places::of(&MountTable::read()?, &backend.medium(&volume)?).first() {
            return Err(Error::new(Kind::InUse, tried)
                .with_answer(format!("it is mounted at {}", place.display()))
                .with_advice("unpublish and unstage it first"));
        }
        self.kept_open().release_all(id);
        backend.delete(&volume, &tried)
    }

    /// Makes a volume larger, also while it is in use. Its filesystem is grown by
    /// [`expand_filesystem`](Node::expand_filesystem), and by the next [`stage`](Node::stage).
    ///
    /// A volume that is large enough already stays as it is.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::OutOfRange`] when the limit is below its present size, or cannot be met;
    /// [`Kind::NoSpace`]; [`Kind::Busy`]; [`Kind::Unavailable`].
    pub fn grow(&self, id: &VolumeId, size: SizeRange) -> Result<Volume, Error> {
        let tried = format!("grow volume {id}");
        let _lock = self.lock(Held::Volume(id), &tried)?;
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &tried)?;
        if let Some(limit) = size.limit().filter(|limit| *limit < volume.size) {
            return Err(Error::new(Kind::OutOfRange, tried)
                .with_answer(format!("it has {:#}, which is above the limit of {limit:#}", volume.size)));
        }
        if size.required() <= volume.size {
            return Ok(volume);
        }
        backend.grow(&volume, size, &tried)
    }

    /// Every snapshot, by id.
    ///
    /// # Errors
    ///
    /// As [`Node::volumes`].
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        let pools = self.pools();
        let mut all = Vec::new();
        for place in pools.places.values() {
            if let Place::Ready(backend) = place {
                all.extend(backend.snapshots()?);
            }
        }
        all.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }

    /// One snapshot.
    ///
    /// # Errors
    ///
    /// As [`Node::volume`].
    pub fn snapshot(&self, id: &SnapshotId) -> Result<Snapshot, Error> {
        let pools = self.pools();
        pools.find_snapshot(id, &format!("find snapshot {id}")).map(|(_, snapshot)| snapshot)
    }

    /// Cuts a snapshot, or finds it cut. It may still be [copying](SnapshotState::Copying) when this returns.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] for the volume; [`Kind::Exists`] when a snapshot of that id is of another volume;
    /// [`Kind::FailedPrecondition`] for a class that cannot; [`Kind::NoSpace`]; [`Kind::Busy`]; [`Kind::Unavailable`].
    pub fn create_snapshot(&self, new: &CreateSnapshot) -> Result<Snapshot, Error> {
        let tried = format!("snapshot volume {} as {}", new.source, new.id);
        let _lock = self.lock(Held::Snapshot(&new.id), &tried)?;
        let pools = self.pools();
        if let Some((_, there)) = pools.find_snapshot_anywhere(&new.id, &tried)? {
            if there.source == new.source {
                return Ok(there);
            }
            return Err(Error::new(Kind::Exists, tried)
                .with_answer(format!("a snapshot of that id is of volume {}", there.source)));
        }
        let _source = self.lock(Held::Volume(&new.source), &tried)?;
        let (backend, source) = pools.find(&new.source, &tried)?;
        backend.snapshot(&new.id, &source, &tried)
    }

    /// Waits until no copy of that snapshot runs in this process, and tells whether one did. It is the one call that may be
    /// waited for without a thread; how the copy ended tells [`Node::snapshot`].
    pub async fn copied(&self, id: &SnapshotId) -> bool {
        self.inner.copies.ended(id).await
    }

    /// Removes a snapshot; one that does not exist is removed already.
    ///
    /// # Errors
    ///
    /// As [`Node::delete`].
    pub fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), Error> {
        let tried = format!("delete snapshot {id}");
        let _lock = self.lock(Held::Snapshot(id), &tried)?;
        let pools = self.pools();
        if let Some((backend, snapshot)) = pools.find_snapshot_anywhere(id, &tried)? {
            return backend.delete_snapshot(&snapshot, &tried);
        }
        for place in pools.places.values() {
            if let Place::Ready(backend) = place {
                backend.delete_unfinished_snapshot(id)?;
            }
        }
        Ok(())
    }

    pub(crate) fn lock(&self, held: Held<'_>, tried: &str) -> Result<Lock, Error> {
        Lock::take(&self.settings().lock_dir, held, tried)
    }
}

fn down(tried: String, class: &DeviceClass, why: &str) -> Error {
    Error::new(Kind::Unavailable, tried)
        .with_answer(format!("class {} cannot be used now: {why}", class.name))
}

/// The room as the class's own filesystem leaves it: a volume that is too small for that is never made.
fn with_least(room: Capacity, class: &DeviceClass) -> Capacity {
    let fs = class.spec.volume.fs_type.unwrap_or(FsType::Ext4);
    let minimum = fs.minimum_size().round_up(room.minimum).unwrap_or(room.minimum).max(room.minimum);
    let largest = if room.largest < minimum { Bytes::ZERO } else { room.largest };
    Capacity { largest, minimum, ..room }
}

/// The range with the least size of its filesystem.
fn with_minimum(size: SizeRange, fs: Option<FsType>, tried: &str) -> Result<SizeRange, Error> {
    if let Some(limit) = size.limit()
        && limit < size.required()
    {
        return Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("the limit {limit:#} is below the size required, {:#}", size.required())));
    }
    let Some(fs) = fs else { return Ok(size) };
    let least = size.required().max(fs.minimum_size());
    if let Some(limit) = size.limit().filter(|limit| *limit < least) {
        return Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("{fs} needs {:#}, and the limit is {limit:#}", fs.minimum_size())));
    }
    let range = SizeRange::at_least(least);
    Ok(size.limit().map_or(range, |limit| range.up_to(limit)))
}

/// A copy is not smaller than what it is copied from.
fn large_enough(size: SizeRange, source: Bytes, tried: &str) -> Result<(), Error> {
    match size.limit() {
        Some(limit) if limit < source => Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("its source has {source:#}, and the limit is {limit:#}"))),
        _ if size.required() < source => Err(Error::new(Kind::OutOfRange, tried)
            .with_answer(format!("its source has {source:#}, and {:#} were asked for", size.required()))),
        _ => Ok(()),
    }
}

fn ready_to_use(snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
    match &snapshot.state {
        SnapshotState::Ready => Ok(()),
        SnapshotState::Copying { done, total } => Err(Error::new(Kind::Unavailable, tried)
            .with_answer(format!("snapshot {} is being copied: {done} of {total} are done", snapshot.id))
            .with_advice("try again when it is ready")),
        SnapshotState::Failed(why) => Err(Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("snapshot {} has failed: {why}", snapshot.id))
            .with_advice("delete it, and cut another one")),
    }
}

fn same_pool(wanted: &dyn Backend, source: &dyn Backend, tried: &str) -> Result<(), Error> {
    let (wanted, source) = (&wanted.class().name, &source.class().name);
    if wanted == source {
        return Ok(());
    }
    Err(Error::new(Kind::FailedPrecondition, tried)
        .with_answer(format!("its source is in class {source}, and it was asked for in class {wanted}"))
        .with_advice("make it in the class of its source"))
}

/// The volume that is there, if it is what is asked for.
fn same_or_exists(
    there: Volume,
    new: &CreateVolume,
    class: &ClassName,
    tried: String,
) -> Result<Volume, Error> {
    let size = &new.size;
    let differs = if there.class != *class {
        format!("it is in class {}", there.class)
    } else if there.size < size.required() || size.limit().is_some_and(|limit| there.size > limit) {
        format!("it has {:#}", there.size)
    } else if there.source != new.source {
        match &there.source {
            None => "it was made blank".to_owned(),
            Some(Source::Snapshot(id)) => format!("it was copied from snapshot {id}"),
            Some(Source::Volume(id)) => format!("it was copied from volume {id}"),
        }
    } else if let (Some(wanted), Some(has)) = (new.fs_type, there.fs_type)
        && wanted != has
    {
        format!("it is for {has}")
    } else {
        return Ok(there);
    };
    Err(Error::new(Kind::Exists, tried)
        .with_answer(format!("a volume of that id exists: {differs}"))
        .with_advice("choose another id, or delete the other volume first"))
}

impl Pools {
    fn ready(&self, class: &DeviceClass, tried: &str) -> Result<&dyn Backend, Error> {
        match self.places.get(&class.name) {
            Some(Place::Ready(backend)) => Ok(&**backend),
            Some(Place::Down(why)) => Err(down(tried.to_owned(), class, why)),
            Some(Place::Absent) | None => Err(Error::new(Kind::NoSpace, tried)
                .with_answer(format!("this node has no disk of class {}", class.name))
                .with_advice("make it on another node, or give this one a disk")),
        }
    }

    /// The volume and its pool, `None` when it is in no class.
    fn find_anywhere(&self, id: &VolumeId, tried: &str) -> Result<Option<(&dyn Backend, Volume)>, Error> {
        for place in self.places.values() {
            if let Place::Ready(backend) = place
                && let Some(volume) = backend.volume(id)?
            {
                return Ok(Some((&**backend, volume)));
            }
        }
        self.all_were_asked(tried).map(|()| None)
    }

    /// What was not found may still be in a class that cannot be asked.
    fn all_were_asked(&self, tried: &str) -> Result<(), Error> {
        let down = self.places.iter().find_map(|(name, place)| match place {
            Place::Down(why) => Some((name, why)),
            Place::Ready(_) | Place::Absent => None,
        });
        match down {
            None => Ok(()),
            Some((class, why)) => Err(Error::new(Kind::Unavailable, tried)
                .with_answer(format!("it may be in class {class}, which cannot be used now: {why}"))),
        }
    }

    pub(crate) fn find(&self, id: &VolumeId, tried: &str) -> Result<(&dyn Backend, Volume), Error> {
        self.find_anywhere(id, tried)?.ok_or_else(|| {
            Error::new(Kind::NotFound, tried).with_answer(format!("there is no volume {id} on this node"))
        })
    }

    fn find_snapshot_anywhere(
        &self,
        id: &SnapshotId,
        tried: &str,
    ) -> Result<Option<(&dyn Backend, Snapshot)>, Error> {
        for place in self.places.values() {
            if let Place::Ready(backend) = place
                && let Some(snapshot) = backend.snapshots()?.into_iter().find(|snapshot| snapshot.id == *id)
            {
                return Ok(Some((&**backend, snapshot)));
            }
        }
        self.all_were_asked(tried).map(|()| None)
    }

    fn find_snapshot(&self, id: &SnapshotId, tried: &str) -> Result<(&dyn Backend, Snapshot), Error> {
        self.find_snapshot_anywhere(id, tried)?.ok_or_else(|| {
            Error::new(Kind::NotFound, tried).with_answer(format!("there is no snapshot {id} on this node"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_is_promised_that_no_filesystem_fits_into() {
        let class = |fs: &str| {
            let text = format!(
                "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: a}}, spec: {{devices: {{paths: \
                 [/dev/x]}}, volume: {{fsType: {fs}}}}}}}"
            );
            DeviceClass::parse_all(&text).unwrap().remove(0)
        };
        let room = |largest| Capacity {
            largest: Bytes::mib(largest),
            minimum: Bytes::mib(7),
            ..Capacity::default()
        };
        let told = |largest, fs| {
            let told = with_least(room(largest), &class(fs));
            (told.largest, told.minimum)
        };
        assert_eq!(told(20, "ext4"), (Bytes::ZERO, Bytes::mib(21)));
        assert_eq!(told(21, "ext4"), (Bytes::mib(21), Bytes::mib(21)));
        assert_eq!(told(280, "xfs"), (Bytes::ZERO, Bytes::mib(301)));
    }
}
