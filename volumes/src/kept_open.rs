//! Volumes that are published as devices, kept open for as long as they are.
//!
//! Linux gives the partitions of a disk new numbers when the disk's table is read again, and udevd has that done after
//! whoever wrote to the whole disk. A node that a pod was given would then lead nowhere, or to another volume. As long
//! as one partition of the disk is open, the kernel refuses to read the table again.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use devices::mount::MountTable;

use crate::repair::Repair;
use crate::{Content, Error, Node, Volume, VolumeId, places};

/// The devices that are kept open.
#[derive(Debug, Default)]
pub(crate) struct KeptOpen {
    volumes: Mutex<HashMap<VolumeId, Kept>>,
}

#[derive(Debug)]
struct Kept {
    _device: File,
    /// Where it is published.
    targets: BTreeSet<PathBuf>,
}

impl KeptOpen {
    fn volumes(&self) -> MutexGuard<'_, HashMap<VolumeId, Kept>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a device open while it is published at these places, too.
    pub(crate) fn keep(&self, id: &VolumeId, device: File, targets: impl IntoIterator<Item = PathBuf>) {
        let mut volumes = self.volumes();
        let kept =
            volumes.entry(id.clone()).or_insert_with(|| Kept { _device: device, targets: BTreeSet::new() });
        kept.targets.extend(targets);
    }

    /// Closes a device that is published at no other place.
    pub(crate) fn release(&self, id: &VolumeId, target: &Path) {
        let mut volumes = self.volumes();
        if let Some(kept) = volumes.get_mut(id) {
            kept.targets.remove(target);
            if kept.targets.is_empty() {
                volumes.remove(id);
            }
        }
    }

    /// Closes a device that is published nowhere, whatever was noted.
    pub(crate) fn release_all(&self, id: &VolumeId) {
        self.volumes().remove(id);
    }
}

impl Node {
    /// Opens again what an earlier process had published.
    pub(crate) fn keep_published_open(&self) -> Vec<Repair> {
        let failed =
            |place: String, error: &Error| Repair { place, done: format!("is not kept open: {error}") };
        let volumes = match self.volumes() {
            Ok(volumes) => volumes,
            Err(error) => return vec![failed("what is published".to_owned(), &error)],
        };
        let blocks = volumes.iter().filter(|volume| volume.content == Content::Block);
        let kept = blocks.map(|volume| (volume, self.keep_volume_open(volume)));
        kept.filter_map(|(volume, kept)| kept.err().map(|error| failed(volume.id.to_string(), &error)))
            .collect()
    }

    fn keep_volume_open(&self, volume: &Volume) -> Result<(), Error> {
        let tried = format!("keep volume {} open", volume.id);
        let pools = self.pools();
        let (backend, volume) = pools.find(&volume.id, &tried)?;
        let places = places::of(&MountTable::read()?, &backend.medium(&volume)?);
        if places.is_empty() {
            return Ok(());
        }
        let ready = backend.ready(&volume, &tried)?;
        if let Some(device) = ready.held {
            self.kept_open().keep(&volume.id, device, places);
        }
        Ok(())
    }
}
