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

use crate::backend::Backend;
use crate::pools::Place;
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
        let table = match MountTable::read() {
            // Most nodes have nothing of the kind, and some have thousands of volumes.
            Ok(table) if !places::shows_nodes(&table) => return Vec::new(),
            Ok(table) => table,
            Err(error) => return vec![failed("what is published".to_owned(), &error.into())],
        };
        let (pools, mut repairs) = (self.pools(), Vec::new());
        for (class, place) in &pools.places {
            let Place::Ready(backend) = place else { continue };
            let volumes = match backend.volumes() {
                Ok(volumes) => volumes,
                Err(error) => {
                    repairs.push(failed(format!("what class {class} has published"), &error));
                    continue;
                }
            };
            for volume in volumes.iter().filter(|volume| volume.content == Content::Block) {
                if let Err(error) = self.keep_volume_open(&table, &**backend, volume) {
                    repairs.push(failed(volume.id.to_string(), &error));
                }
            }
        }
        repairs
    }

    fn keep_volume_open(
        &self,
        table: &MountTable,
        backend: &dyn Backend,
        volume: &Volume,
    ) -> Result<(), Error> {
        let places = places::of(table, &backend.medium(volume)?);
        if places.is_empty() {
            return Ok(());
        }
        let ready = backend.ready(volume, &format!("keep volume {} open", volume.id))?;
        if let Some(device) = ready.held {
            self.kept_open().keep(&volume.id, device, places);
        }
        Ok(())
    }
}
