//! What is in the pools of a node: classes, room, volumes and snapshots.

use devices::Bytes;
use devices::filesystem::FsType;

use super::{Place, Pools};
use crate::backend::Backend;
use crate::class::DeviceClass;
use crate::{Capacity, ClassName, Error, Kind, Snapshot, SnapshotId, Volume, VolumeId};

impl Pools {
    /// The class that a request names, or the default one.
    pub(crate) fn class(&self, name: Option<&ClassName>) -> Result<&DeviceClass, Error> {
        let classes = &self.settings.classes;
        match name {
            Some(name) => classes.iter().find(|class| class.name == *name).ok_or_else(|| {
                Error::new(Kind::NotFound, format!("find class {name}"))
                    .with_answer("this node has no such class")
            }),
            None => classes
                .iter()
                .find(|class| class.spec.default)
                .ok_or_else(|| Error::invalid("class", "none was named, and no class is the default")),
        }
    }

    pub(crate) fn capacity(&self, class: Option<&ClassName>) -> Result<Capacity, Error> {
        let class = self.class(class)?;
        match self.places.get(&class.name) {
            Some(Place::Ready(backend)) => Ok(with_least(backend.capacity()?, class)),
            Some(Place::Down(why)) => {
                Err(down(format!("tell the capacity of class {}", class.name), class, why))
            }
            Some(Place::Absent) | None => Ok(Capacity::default()),
        }
    }

    /// The pools that can be used.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &dyn Backend> {
        self.places.values().filter_map(|place| match place {
            Place::Ready(backend) => Some(&**backend),
            Place::Absent | Place::Down(_) => None,
        })
    }

    /// Every volume that is complete, by id.
    pub(crate) fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let mut all = Vec::new();
        for backend in self.backends() {
            all.extend(backend.volumes()?);
        }
        all.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }

    /// Every snapshot, by id.
    pub(crate) fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        let mut all = Vec::new();
        for backend in self.backends() {
            all.extend(backend.snapshots()?);
        }
        all.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }

    pub(crate) fn ready(&self, class: &DeviceClass, tried: &str) -> Result<&dyn Backend, Error> {
        match self.places.get(&class.name) {
            Some(Place::Ready(backend)) => Ok(&**backend),
            Some(Place::Down(why)) => Err(down(tried.to_owned(), class, why)),
            Some(Place::Absent) | None => Err(Error::new(Kind::NoSpace, tried)
                .with_answer(format!("this node has no disk of class {}", class.name))
                .with_advice("make it on another node, or give this one a disk")),
        }
    }

    /// The volume and its pool, `None` when it is in no class.
    pub(crate) fn find_anywhere(
        &self,
        id: &VolumeId,
        tried: &str,
    ) -> Result<Option<(&dyn Backend, Volume)>, Error> {
        for backend in self.backends() {
            if let Some(volume) = backend.volume(id)? {
                return Ok(Some((backend, volume)));
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

    pub(crate) fn find_snapshot_anywhere(
        &self,
        id: &SnapshotId,
        tried: &str,
    ) -> Result<Option<(&dyn Backend, Snapshot)>, Error> {
        for backend in self.backends() {
            if let Some(snapshot) = backend.snapshots()?.into_iter().find(|snapshot| snapshot.id == *id) {
                return Ok(Some((backend, snapshot)));
            }
        }
        self.all_were_asked(tried).map(|()| None)
    }

    pub(crate) fn find_snapshot(
        &self,
        id: &SnapshotId,
        tried: &str,
    ) -> Result<(&dyn Backend, Snapshot), Error> {
        self.find_snapshot_anywhere(id, tried)?.ok_or_else(|| {
            Error::new(Kind::NotFound, tried).with_answer(format!("there is no snapshot {id} on this node"))
        })
    }
}

/// The room as the class's own filesystem leaves it: a volume that is too small for that is never made.
fn with_least(room: Capacity, class: &DeviceClass) -> Capacity {
    let fs = class.spec.volume.fs_type.unwrap_or(FsType::Ext4);
    let minimum = fs.minimum_size().round_up(room.minimum).unwrap_or(room.minimum).max(room.minimum);
    let largest = if room.largest < minimum { Bytes::ZERO } else { room.largest };
    Capacity { largest, minimum, ..room }
}

fn down(tried: String, class: &DeviceClass, why: &str) -> Error {
    Error::new(Kind::Unavailable, tried)
        .with_answer(format!("class {} cannot be used now: {why}", class.name))
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
