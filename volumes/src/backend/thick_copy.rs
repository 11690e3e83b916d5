//! Copies of thick volumes: a temporary snapshot of the source, and every byte copied into a logical volume of its own.
//!
//! ```text
//!   s.ID  filling ── cut t.ID ──► copying ── every byte, in a thread ──► (no mark): ready; t.ID is removed
//!   v.ID  filling ── cut t.ID, every byte, a filesystem uuid of its own ──► (no mark); t.ID is removed
//! ```
//!
//! What is `filling` was never acknowledged, and is removed by whoever finds it. What is `copying` was: as long as its
//! temporary snapshot is there, the copy begins anew; once that is gone, the snapshot has failed.

use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use devices::erase::Cancel;
use lvm::metadata::Vg;
use lvm::ops::{Content as OldBytes, NewSnapshot, NewVolume as NewLv, OnRemove, SizeRange};
use lvm::{LvName, Tag};

use super::duplicate;
use super::lv::{LvPool, lv_name, size_of};
use super::lv_backend::{LvBackend, whole};
use super::{NewVolume, Origin, Thick, tags};
use crate::lock::{Held, Lock};
use crate::{Content, Error, Kind, Snapshot, SnapshotId, SnapshotState, Volume, VolumeId};

/// How long a copy that was stopped may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// How long a copy that could not be made waits before the next attempt; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How soon a copy that waits is stopped.
const STEP_OF_PAUSE: Duration = Duration::from_millis(100);

/// Whom a temporary snapshot serves.
#[derive(Clone, Copy, Debug)]
enum For<'a> {
    Snapshot(&'a SnapshotId),
    Volume(&'a VolumeId),
}

impl For<'_> {
    fn tag(self) -> Result<Tag, Error> {
        tags::tag(&match self {
            Self::Snapshot(id) => format!("{}{id}", tags::FOR_SNAPSHOT),
            Self::Volume(id) => format!("{}{id}", tags::FOR_VOLUME),
        })
    }

    fn name(self, tried: &str) -> Result<LvName, Error> {
        match self {
            Self::Snapshot(id) => lv_name('t', id.as_str(), tried),
            Self::Volume(id) => lv_name('u', id.as_str(), tried),
        }
    }
}

impl Thick {
    /// Cuts a temporary snapshot of a logical volume and tells its name.
    fn cut(&self, origin: &LvName, whose: For<'_>, tried: &str) -> Result<LvName, Error> {
        let space = {
            let look = self.pool.look()?;
            let vg = look.vg();
            let size = vg.lv(origin.as_str()).map_or(Bytes::ZERO, |lv| size_of(vg, lv));
            self.space_for_changes(vg, size, tried)?
        };
        let name = whose.name(tried)?;
        let mut new = NewSnapshot::new(origin.clone(), name.clone(), SizeRange::at_least(space));
        for tag in [whose.tag()?, tags::tag(tags::OURS)?, tags::of_class(&self.pool.class.name)?] {
            new = new.tag(tag);
        }
        let _ = self.pool.group.snapshot(&new)?;
        Ok(name)
    }

    /// Room for what is written to the source during the copy: all of it, where that is to be had, and at least a tenth.
    fn space_for_changes(&self, vg: &Vg, size: Bytes, tried: &str) -> Result<Bytes, Error> {
        let extent = vg.extent_size.bytes();
        let free = vg.extent_size.span(vg.free_extents()).unwrap_or_default();
        let available = free.saturating_sub(self.pool.reserved(vg)).round_down(extent).unwrap_or_default();
        // An exception takes 16 bytes for each chunk of 4 KiB (dm-snap-persistent.c).
        let all = Bytes::new(size.get().saturating_add(size.get() / 128)).round_up(extent).unwrap_or(size);
        let least = Bytes::new(size.get() / 10).max(extent).round_up(extent).unwrap_or(extent);
        if available < least {
            return Err(Error::new(Kind::NoSpace, tried)
                .with_answer(format!(
                    "{least} are needed for what is written during the copy, and {available} are left in volume group {}",
                    vg.name
                ))
                .with_advice("remove something, or add a disk to the class"));
        }
        Ok(all.min(available))
    }

    /// Removes the temporary snapshot of an id, if there is one.
    fn remove_temporary(&self, whose: For<'_>) -> Result<(), Error> {
        self.pool.remove_tagged(&whose.tag()?)
    }

    /// A logical volume to copy into.
    fn target(&self, name: &LvName, size: Bytes, mut tags: Vec<Tag>) -> Result<(), Error> {
        tags.push(tags::tag(tags::FILLING)?);
        let exactly = SizeRange::at_least(size).up_to(size);
        let new = NewLv::new(name.clone(), exactly).layout(self.layout).content(OldBytes::Wiped);
        let _ = self.pool.group.create_volume(&tags.into_iter().fold(new, NewLv::tag))?;
        Ok(())
    }

    /// Begins a snapshot: once this returns it is known, and being copied.
    pub(super) fn begin_snapshot(&self, id: &SnapshotId, source: &Volume, tried: &str) -> Result<(), Error> {
        let from = self.pool.name_of(&source.id, tried)?;
        let name = lv_name('s', id.as_str(), tried)?;
        self.pool.delete_unfinished_snapshot(id)?;
        self.has_room(Bytes::ZERO, source.size, tried)?;
        let begun = self
            .target(&name, source.size, tags::of_snapshot(id, &source.id, &self.pool.class.name)?)
            .and_then(|()| self.cut(&from, For::Snapshot(id), tried))
            .and_then(|_| {
                let (copying, filling) = (tags::tag(tags::COPYING)?, tags::tag(tags::FILLING)?);
                let _ = self.pool.group.tag_volume(&name, &[copying], &[filling])?;
                Ok(())
            });
        if let Err(error) = begun {
            // What of this fails stays marked as incomplete.
            let _ = self.pool.delete_unfinished_snapshot(id);
            return Err(error);
        }
        self.start_copy(id, source.size)
    }

    /// Has a thread copy a snapshot, unless one does already.
    fn start_copy(&self, id: &SnapshotId, total: Bytes) -> Result<(), Error> {
        let Some(cancel) = self.copies.begin(id, total) else { return Ok(()) };
        let thick = self.clone();
        let (job, copies, named) = (id.clone(), self.copies.clone(), id.clone());
        let spawned = thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            thick.copy_until_over(&job, &cancel);
            copies.end(&job);
        });
        spawned.map(drop).map_err(|cause| {
            self.copies.end(&named);
            Error::system(format!("copy snapshot {named}"), cause)
        })
    }

    /// Copies until the snapshot is ready, has failed, or was given up: a group that is busy or in quarantine now will be
    /// usable later, and another process that is at it may die. How it ended is on the disk.
    fn copy_until_over(&self, id: &SnapshotId, cancel: &Cancel) {
        let mut pause = FIRST_PAUSE;
        while self.copy_snapshot(id, cancel).is_err() && !cancel.is_cancelled() {
            let end = Instant::now() + pause;
            while Instant::now() < end && !cancel.is_cancelled() {
                thread::sleep(STEP_OF_PAUSE);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Copies a snapshot, if it has not been copied and can be.
    fn copy_snapshot(&self, id: &SnapshotId, cancel: &Cancel) -> Result<(), Error> {
        let tried = format!("copy snapshot {id}");
        // Another process may be at it.
        let _lock = Lock::take(&self.locks, Held::Copy(id), &tried)?;
        if !self.is_to_be_copied(id)? {
            // What it was copied from may be left: its removal is all that was to be done.
            return self.remove_temporary(For::Snapshot(id));
        }
        let name = self.pool.snapshot_name(id, &tried)?;
        let temporary = For::Snapshot(id).name(&tried)?;
        let content = self.content_of(&temporary, &tried)?;
        let group = &self.pool.group;
        for lv in [&name, &temporary] {
            let _ = group.activate_volume(lv)?;
        }
        let (from, to) = (self.pool.device(&temporary)?, self.pool.device(&name)?);
        let copied =
            duplicate::copy(&from, &to, cancel, &mut |progress| self.copies.advance(id, progress), &tried);
        if let Err(error) = copied {
            if cancel.is_cancelled() || error.kind() == Kind::InUse {
                return Err(error);
            }
            // Most likely more was written than it has room for; without it the snapshot counts as failed.
            return self.remove_temporary(For::Snapshot(id));
        }
        self.pool.mark_content(&name, content, &[tags::tag(tags::COPYING)?])?;
        self.remove_temporary(For::Snapshot(id))?;
        let _ = group.deactivate_volume(&name)?;
        Ok(())
    }

    /// Whether a snapshot is still to be copied, and what it is copied from is there.
    fn is_to_be_copied(&self, id: &SnapshotId) -> Result<bool, Error> {
        let source = For::Snapshot(id).tag()?;
        let look = self.pool.look()?;
        let vg = look.vg();
        let mut own = self.pool.own(vg);
        let copying = own.any(|lv| tags::snapshot_of(lv).as_ref() == Some(id) && lv.has_tag(tags::COPYING));
        Ok(copying && vg.lv_by_tag(source.as_str()).is_some())
    }

    fn content_of(&self, name: &LvName, tried: &str) -> Result<Content, Error> {
        let look = self.pool.look()?;
        look.vg().lv(name.as_str()).map(tags::content_of).ok_or_else(|| {
            Error::new(Kind::NotFound, tried).with_answer(format!("{name} is not there any more"))
        })
    }

    /// Every snapshot, with how far it is.
    pub(super) fn snapshots_with_state(&self) -> Result<Vec<Snapshot>, Error> {
        let mut snapshots = self.pool.snapshots()?;
        let look = self.pool.look()?;
        for snapshot in &mut snapshots {
            let source = For::Snapshot(&snapshot.id).tag()?;
            let SnapshotState::Copying { total, .. } = snapshot.state else {
                // As long as its temporary snapshot is there, the volume can neither grow nor go.
                if look.vg().lv_by_tag(source.as_str()).is_some() {
                    snapshot.state = SnapshotState::Copying { done: snapshot.size, total: snapshot.size };
                }
                continue;
            };
            snapshot.state = match self.copies.progress(&snapshot.id) {
                Some(progress) => SnapshotState::Copying { done: progress.done, total: progress.total },
                None if look.vg().lv_by_tag(source.as_str()).is_some() => {
                    SnapshotState::Copying { done: Bytes::ZERO, total }
                }
                None => SnapshotState::Failed(
                    "more was written to the volume during the copy than there was room for, or the copy met a disk error"
                        .to_owned(),
                ),
            };
        }
        Ok(snapshots)
    }

    pub(super) fn remove_snapshot(&self, snapshot: &Snapshot, tried: &str) -> Result<(), Error> {
        let id = &snapshot.id;
        self.copies.cancel(id);
        let start = Instant::now();
        while self.copies.progress(id).is_some() {
            if start.elapsed() > STOP_PATIENCE {
                return Err(Error::new(Kind::Busy, tried).with_answer("its copy has not ended yet"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _lock = Lock::take(&self.locks, Held::Copy(id), tried)?;
        self.remove_temporary(For::Snapshot(id))?;
        let name = self.pool.snapshot_name(id, tried)?;
        self.pool.delete(&name)
    }

    /// Makes a volume with the content of another one or of a snapshot.
    pub(super) fn copy_volume(
        &self,
        new: &NewVolume<'_>,
        size: Bytes,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<Volume, Error> {
        self.remove_temporary(For::Volume(new.id))?;
        self.has_room(Bytes::ZERO, size, tried)?;
        let name = lv_name('v', new.id.as_str(), tried)?;
        let made = self
            .target(&name, size, tags::of_new(new, &self.pool.class.name)?)
            .and_then(|()| self.fill(&name, new.id, origin, held, tried))
            .and_then(|()| self.pool.finish_copy(&name, new.id, tried));
        let removed = self.remove_temporary(For::Volume(new.id));
        match made.and_then(|volume| removed.map(|()| volume)) {
            Ok(volume) => Ok(volume),
            Err(error) => {
                // It stays marked as incomplete where this fails.
                let _ = self.pool.delete_unfinished_volume(new.id);
                Err(error)
            }
        }
    }

    /// Copies the content of an origin, which is held as long as it is needed.
    fn fill(
        &self,
        name: &LvName,
        id: &VolumeId,
        origin: Origin<'_>,
        held: Lock,
        tried: &str,
    ) -> Result<(), Error> {
        let (from, held) = match origin {
            Origin::Volume(volume) => {
                let source = self.pool.name_of(&volume.id, tried)?;
                whole(volume.content, tried)?;
                let cut = self.cut(&source, For::Volume(id), tried)?;
                // It can be used from now on; the temporary snapshot keeps it from being grown or removed.
                drop(held);
                (cut, None)
            }
            Origin::Snapshot(snapshot) => (self.pool.snapshot_name(&snapshot.id, tried)?, Some(held)),
        };
        let content = self.content_of(&from, tried)?;
        let group = &self.pool.group;
        let _ = group.activate_volume(&from)?;
        let (source, target) = (self.pool.device(&from)?, self.pool.device(name)?);
        duplicate::copy(&source, &target, &Cancel::new(), &mut |_| {}, tried)?;
        self.pool.mark_content(name, content, &[])?;
        if held.is_some() {
            let _ = group.deactivate_volume(&from)?;
        }
        Ok(())
    }

    /// Goes on with copies that ended with their process, and removes temporary snapshots that serve nobody.
    pub(crate) fn resume(&self) -> Result<Vec<LvName>, Error> {
        let mut copying = Vec::new();
        let mut temporary = Vec::new();
        {
            let look = self.pool.look()?;
            let vg = look.vg();
            for lv in self.pool.own(vg) {
                if let Some(id) = tags::snapshot_of(lv).filter(|_| lv.has_tag(tags::COPYING)) {
                    copying.push((id, size_of(vg, lv)));
                }
                if let Some(whose) = tags::served_by(lv) {
                    temporary.push((lv.name.clone(), whose));
                }
            }
        }
        let mut removed = Vec::new();
        for (name, whose) in temporary {
            let held = match &whose {
                tags::Served::Snapshot(id) if copying.iter().any(|(copied, _)| copied == id) => continue,
                tags::Served::Snapshot(id) => Held::Snapshot(id),
                tags::Served::Volume(id) => Held::Volume(id),
            };
            // Whoever holds it is at work with the temporary snapshot.
            let Ok(_lock) = Lock::take(&self.locks, held, "remove a temporary snapshot") else { continue };
            let _ = self.pool.group.remove_volume(&name, OnRemove::Keep)?;
            removed.push(name);
        }
        for (id, size) in copying {
            let has_source = For::Snapshot(&id).tag()?;
            if self.pool.look()?.vg().lv_by_tag(has_source.as_str()).is_some() {
                self.start_copy(&id, size)?;
            }
        }
        Ok(removed)
    }

    /// Whether a temporary snapshot of a volume is there, which keeps it from being grown and removed.
    pub(super) fn is_being_copied(&self, name: &LvName) -> Result<bool, Error> {
        Ok(self.pool.look()?.vg().snapshots_of(name).next().is_some())
    }
}

impl LvPool {
    /// Removes every logical volume of ours with a tag.
    pub(super) fn remove_tagged(&self, tag: &Tag) -> Result<(), Error> {
        let names: Vec<LvName> = {
            let look = self.look()?;
            let vg = look.vg();
            self.own(vg).filter(|lv| lv.has_tag(tag.as_str())).map(|lv| lv.name.clone()).collect()
        };
        for name in names {
            let _ = self.group.remove_volume(&name, OnRemove::Keep)?;
        }
        Ok(())
    }
}
