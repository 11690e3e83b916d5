//! What thick and thin volumes have in common: they are logical volumes, known by their tags.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use devices::filesystem;
use devices::{Bytes, DeviceNumber};
use lvm::dm::Dm;
use lvm::metadata::{Lv, Vg, View};
use lvm::ops::{FS_PREFIX, Group, OnRemove};
use lvm::{LvName, Tag};

use super::tags;
use crate::class::{DeviceClass, OnDelete};
use crate::lock::{Held, Lock};
use crate::name::hashed;
use crate::{Content, Error, Kind, Limits, Owner, Snapshot, SnapshotId, SnapshotState, Volume, VolumeId};

/// The longest id, hyphens doubled, of which the name of a logical volume is made; device-mapper takes 127 bytes with
/// the group's name and what LVM adds.
const READABLE_MAX: usize = 64;

/// How long the programs may take that give a copied filesystem its own uuid.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many volumes are activated by one command: a caller who wants to change the group waits for no more.
const FEW: usize = 10;

/// The volumes of one class in a group.
#[derive(Clone, Debug)]
pub(crate) struct LvPool {
    pub(crate) group: Group,
    pub(crate) class: DeviceClass,
    pub(crate) owner: Owner,
}

/// A group as it is at one moment.
pub(crate) struct Look {
    view: Arc<View>,
    index: usize,
}

impl Look {
    pub(crate) fn vg(&self) -> &Vg {
        &self.view.vgs[self.index]
    }
}

impl LvPool {
    /// The group as it is now; no command runs.
    pub(crate) fn look(&self) -> Result<Look, Error> {
        let view = self.group.lvm().view()?;
        match view.vgs.iter().position(|vg| vg.uuid == self.group.uuid()) {
            Some(index) => Ok(Look { view, index }),
            None => Err(Error::new(Kind::Unavailable, format!("read volume group {}", self.group.label()))
                .with_answer("it is not on the disks of this node any more")
                .with_advice("bring its disks back")),
        }
    }

    /// What every logical volume of the group is made of.
    pub(super) fn extent(&self) -> Result<Bytes, Error> {
        Ok(self.look()?.vg().extent_size.bytes())
    }

    fn is_ours(&self, vg: &Vg, lv: &Lv) -> bool {
        self.has_our_tags(lv) && vg.is_visible(lv)
    }

    fn has_our_tags(&self, lv: &Lv) -> bool {
        lv.tag_value(tags::OWNER) == Some(self.owner.as_str())
            && tags::class_of(lv).as_ref() == Some(&self.class.name)
    }

    /// The logical volumes of this class that are ours, complete or not.
    pub(super) fn own<'a>(&'a self, vg: &'a Vg) -> impl Iterator<Item = &'a Lv> {
        // Visibility is asked of the group once: it is dear for each volume of a large group.
        vg.visible_lvs().filter(|lv| self.has_our_tags(lv))
    }

    /// What a logical volume is, if it is a volume and complete.
    fn as_volume(&self, vg: &Vg, lv: &Lv) -> Option<Volume> {
        let id = tags::volume_of(lv).filter(|_| !tags::is_unfinished(lv))?;
        Some(Volume {
            id,
            class: self.class.name.clone(),
            size: size_of(vg, lv),
            content: tags::content_of(lv),
            fs_type: tags::fs_type_of(lv),
            source: tags::origin_of(lv),
            lifecycle: tags::lifecycle_of(lv),
            limits: tags::limits_of(lv),
        })
    }

    pub(crate) fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let look = self.look()?;
        let vg = look.vg();
        Ok(self.own(vg).filter_map(|lv| self.as_volume(vg, lv)).collect())
    }

    pub(crate) fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        let look = self.look()?;
        let vg = look.vg();
        let tag = format!("{}{id}", tags::VOLUME);
        let mut found = vg.lvs_by_tag(&tag).filter(|lv| self.is_ours(vg, lv));
        Ok(found.find_map(|lv| self.as_volume(vg, lv)))
    }

    /// The name of a complete volume's logical volume.
    pub(crate) fn name_of(&self, id: &VolumeId, tried: &str) -> Result<LvName, Error> {
        self.name_by_tag(&format!("{}{id}", tags::VOLUME), tried)
    }

    fn name_by_tag(&self, tag: &str, tried: &str) -> Result<LvName, Error> {
        let look = self.look()?;
        let vg = look.vg();
        let found = vg.lvs_by_tag(tag).find(|lv| self.is_ours(vg, lv) && !tags::is_unfinished(lv));
        found.map(|lv| lv.name.clone()).ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("volume group {} does not have it any more", vg.name))
        })
    }

    /// A volume that was made or changed just now.
    pub(crate) fn made(&self, id: &VolumeId, tried: &str) -> Result<Volume, Error> {
        self.volume(id)?.ok_or_else(|| {
            Error::new(Kind::Internal, tried)
                .with_answer("it is not there although it was made")
                .with_advice("see whether somebody else removed it")
        })
    }

    /// Every snapshot that is complete.
    pub(crate) fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        let look = self.look()?;
        let vg = look.vg();
        Ok(self.own(vg).filter_map(|lv| self.as_snapshot(vg, lv)).collect())
    }

    /// What a logical volume is, if it is a snapshot and complete.
    fn as_snapshot(&self, vg: &Vg, lv: &Lv) -> Option<Snapshot> {
        let id = tags::snapshot_of(lv).filter(|_| !tags::is_unfinished(lv))?;
        Some(Snapshot {
            id,
            source: tags::source_of(lv)?,
            class: self.class.name.clone(),
            size: size_of(vg, lv),
            created: lv.creation_time.unwrap_or(SystemTime::UNIX_EPOCH),
            state: if lv.has_tag(tags::COPYING) {
                SnapshotState::Copying { done: Bytes::ZERO, total: size_of(vg, lv) }
            } else {
                SnapshotState::Ready
            },
        })
    }

    /// The name of a complete snapshot's logical volume.
    pub(crate) fn snapshot_name(&self, id: &SnapshotId, tried: &str) -> Result<LvName, Error> {
        self.name_by_tag(&format!("{}{id}", tags::SNAPSHOT), tried)
    }

    /// Removes every logical volume that was begun under a tag and never completed, and the temporary snapshots that
    /// serve it: as long as one is there, its origin can neither grow nor go.
    fn delete_unfinished(&self, tag: &str, temporary: &str) -> Result<(), Error> {
        let names: Vec<LvName> = {
            let look = self.look()?;
            let vg = look.vg();
            let unfinished = vg.lvs_by_tag(tag).filter(|lv| tags::is_unfinished(lv));
            let left = vg.lvs_by_tag(temporary).chain(unfinished).filter(|lv| self.is_ours(vg, lv));
            left.map(|lv| lv.name.clone()).collect()
        };
        for name in names {
            let _ = self.group.remove_volume(&name, OnRemove::Keep)?;
        }
        Ok(())
    }

    /// The same of a volume that was begun.
    pub(crate) fn delete_unfinished_volume(&self, id: &VolumeId) -> Result<(), Error> {
        self.delete_unfinished(&format!("{}{id}", tags::VOLUME), &format!("{}{id}", tags::FOR_VOLUME))
    }

    /// The same of a snapshot that was begun.
    pub(crate) fn delete_unfinished_snapshot(&self, id: &SnapshotId) -> Result<(), Error> {
        self.delete_unfinished(&format!("{}{id}", tags::SNAPSHOT), &format!("{}{id}", tags::FOR_SNAPSHOT))
    }

    /// Removes whatever of this class was never completed and is not being made at this moment, and tells its names.
    pub(crate) fn remove_unfinished(&self, locks: &Path) -> Result<Vec<LvName>, Error> {
        let found: Vec<(LvName, Option<VolumeId>, Option<SnapshotId>)> = {
            let look = self.look()?;
            let vg = look.vg();
            let unfinished = self.own(vg).filter(|lv| tags::is_unfinished(lv));
            unfinished.map(|lv| (lv.name.clone(), tags::volume_of(lv), tags::snapshot_of(lv))).collect()
        };
        let mut removed = Vec::new();
        for (name, volume, snapshot) in found {
            let tried = format!("remove {name}, which was never completed");
            let held = match (&volume, &snapshot) {
                (Some(id), _) => Held::Volume(id),
                (None, Some(id)) => Held::Snapshot(id),
                (None, None) => continue,
            };
            match Lock::take(locks, held, &tried) {
                Ok(_lock) => {
                    let _ = self.group.remove_volume(&name, OnRemove::Keep)?;
                    removed.push(name);
                }
                // Another process is making it.
                Err(error) if error.kind() == Kind::Busy => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    pub(crate) fn device(&self, name: &LvName) -> Result<PathBuf, Error> {
        Ok(self.group.volume(name)?.device)
    }

    /// Records what is on a logical volume, and takes other tags off it in the same commit.
    pub(super) fn mark_content(&self, name: &LvName, content: Content, off: &[Tag]) -> Result<(), Error> {
        let wanted = tags::content(content)?;
        let has = self.group.volume(name)?.tags.into_iter();
        let of_content = has.filter(|tag| tag.as_str().starts_with(FS_PREFIX) && *tag != wanted);
        let others: Vec<Tag> = of_content.chain(off.iter().cloned()).collect();
        let _ = self.group.tag_volume(name, &[wanted], &others)?;
        Ok(())
    }

    /// Records the limits of a volume.
    pub(super) fn mark_limits(&self, name: &LvName, limits: Limits) -> Result<(), Error> {
        let wanted = if limits.is_empty() { None } else { Some(tags::tag(&tags::of_limits(limits))?) };
        let has = self.group.volume(name)?.tags.into_iter();
        let others: Vec<Tag> = has
            .filter(|tag| tag.as_str().starts_with(tags::LIMITS) && Some(tag) != wanted.as_ref())
            .collect();
        let _ = self.group.tag_volume(name, wanted.as_slice(), &others)?;
        Ok(())
    }

    /// The number of a volume's device now; `None` where it is not active.
    pub(super) fn number_of(&self, id: &VolumeId) -> Result<Option<DeviceNumber>, Error> {
        let look = self.look()?;
        let vg = look.vg();
        let tag = format!("{}{id}", tags::VOLUME);
        let Some(lv) = vg.lvs_by_tag(&tag).find(|lv| self.is_ours(vg, lv)) else { return Ok(None) };
        Ok(Dm::open()?.lv_info(&vg.uuid, &lv.uuid)?.map(|info| info.number))
    }

    /// Makes a copy a volume of its own: its filesystem gets its own uuid, and the mark of the incomplete goes.
    pub(super) fn finish_copy(&self, name: &LvName, id: &VolumeId, tried: &str) -> Result<Volume, Error> {
        let copied = self.group.volume(name)?;
        let content = self.look()?.vg().lv(name.as_str()).map_or(Content::Block, tags::content_of);
        if let Content::Filesystem(fs) = content {
            let uuid = self.owner.filesystem_uuid(id)?;
            let _ = filesystem::set_uuid(&copied.device, fs, uuid, PATIENCE)?;
        }
        let _ = self.group.tag_volume(name, &[], &[tags::tag(tags::FILLING)?])?;
        self.made(id, tried)
    }

    pub(crate) fn delete(&self, name: &LvName) -> Result<(), Error> {
        let content = match self.class.spec.volume.on_delete {
            OnDelete::Discard => OnRemove::Discard,
            OnDelete::Zero => OnRemove::Zero,
            OnDelete::None => OnRemove::Keep,
        };
        match self.group.remove_volume(name, content) {
            // A disk that cannot discard has nothing to give back.
            Err(error) if content == OnRemove::Discard && error.kind() == lvm::Kind::Unsupported => {
                let _ = self.group.remove_volume(name, OnRemove::Keep)?;
                Ok(())
            }
            removed => {
                let _ = removed?;
                Ok(())
            }
        }
    }

    /// Activates the pools of the group, and its volumes where they are few. Many are left to
    /// [`activate_rest`](Self::activate_rest), so that they keep nobody waiting.
    pub(crate) fn activate_first(&self) -> Result<(), Error> {
        if self.group.inactive()?.len() > FEW {
            return Ok(self.group.activate_pools()?);
        }
        Ok(self.group.activate()?)
    }

    /// Activates what is not active, a few volumes at a time, as long as it may go on, and tells how many came up.
    pub(crate) fn activate_rest(&self, go_on: &dyn Fn() -> bool) -> Result<usize, Error> {
        let (mut up, mut result) = (0, Ok(()));
        let inactive = self.group.inactive()?;
        for some in inactive.chunks(FEW) {
            if !go_on() {
                break;
            }
            match self.group.activate_volumes(some) {
                Ok(()) => up += some.len(),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result?;
        Ok(up)
    }

    /// What is kept free of the group.
    pub(crate) fn reserved(&self, vg: &Vg) -> Bytes {
        let total = vg.extent_size.span(vg.total_extents()).unwrap_or_default();
        self.class.spec.reserve.of(total)
    }
}

/// The size of a logical volume.
pub(crate) fn size_of(vg: &Vg, lv: &Lv) -> Bytes {
    vg.extent_size.span(lv.extents()).unwrap_or_default()
}

/// The name of the logical volume of a volume (`v`) or a snapshot (`s`). The full stop keeps it from being one that LVM
/// reserves, and the letter keeps volumes and snapshots of one id apart.
pub(crate) fn lv_name(letter: char, id: &str, tried: &str) -> Result<LvName, Error> {
    let doubled = id.len() + id.bytes().filter(|byte| *byte == b'-').count();
    let name =
        if doubled <= READABLE_MAX { format!("{letter}.{id}") } else { format!("{letter}.{}", hashed(id)) };
    LvName::new(&name)
        .map_err(|cause| Error::new(Kind::Internal, tried).with_answer(cause.to_string()).with_source(cause))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_id_gives_a_name_that_lvm_and_device_mapper_take(id in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?") {
            let vg = lvm::VgName::new("gabion-quite-a-long-name").unwrap();
            let name = lv_name('v', &id, "t").unwrap();
            prop_assert!(name.dm_name(&vg, Some("tpool")).is_ok());
            prop_assert_ne!(name, lv_name('s', &id, "t").unwrap());
        }
    }

    #[test]
    fn words_that_lvm_reserves_are_names_all_the_same() {
        for id in ["snapshot1", "pvmove0", "tdata", "a-rimage-0"] {
            assert_eq!(lv_name('v', id, "t").unwrap().as_str(), format!("v.{id}"));
        }
    }
}
