//! A node: its classes, and everything that can be done with volumes.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use devices::filesystem::FsType;
use devices::mount::MountTable;
use lvm::ops::SizeRange;

use crate::asked::{can_limit, large_enough, ready_to_use, same_or_exists, same_pool, with_minimum};
use crate::backend::duplicate::Copies;
use crate::backend::{Backend, NewVolume, Origin};
use crate::changed::Holds;
use crate::changes::Changes;
use crate::class::DeviceClass;
use crate::keeper::Growing;
use crate::kept_open::KeptOpen;
use crate::lock::{Held, Lock};
use crate::pools::{self, Place, Pools};
use crate::{
    Capacity, ClassName, CreateSnapshot, CreateVolume, Error, Kind, Repairs, Settings, Snapshot, SnapshotId,
    Source, Volume, VolumeId,
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
    /// What readers of blocks have their pools hold.
    holds: Holds,
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
                holds: Holds::default(),
            }),
        };
        repairs.repairs.extend(node.keep_published_open());
        repairs.problems.extend(node.hold_all_limits());
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
        let (pools, mut repairs) = pools::open(settings, &self.inner.copies)?;
        *self.inner.pools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pools);
        repairs.problems.extend(self.hold_all_limits());
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

    pub(crate) fn holds(&self) -> &Holds {
        &self.inner.holds
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.inner.changes
    }

    /// The thin pools that are to grow.
    pub(crate) fn growing(&self) -> Vec<Growing> {
        self.pools().backends().filter_map(Backend::growing).collect()
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
        self.pools().class(name).cloned()
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
        self.pools().capacity(class)
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
        self.pools().volumes()
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
        if !new.limits.is_empty() {
            can_limit(&class, &tried)?;
        }
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
            limits: new.limits,
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
        for backend in pools.backends() {
            backend.delete_unfinished(id, &tried)?;
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
        self.pools().snapshots()
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
        for backend in pools.backends() {
            backend.delete_unfinished_snapshot(id)?;
        }
        Ok(())
    }

    pub(crate) fn lock(&self, held: Held<'_>, tried: &str) -> Result<Lock, Error> {
        Lock::take(&self.settings().lock_dir, held, tried)
    }
}
