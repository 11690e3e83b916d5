//! The end of a device's life with bcache.

use std::path::Path;

use crate::device::Device;
use crate::{Bcache, Change, Error, Kind, Role, State, Superblock, Uuid};

impl Bcache {
    /// Removes the superblock of a backing or cache device of this identity, so that neither the kernel nor udev takes it for
    /// one again. The data of a backing device stays where it is, from its data offset on.
    ///
    /// `others` are the devices that may be backing devices of a cache: as long as one of them is dirty and names the set of
    /// this cache device, the cache holds the only copy of something and is not retired. Backing devices that are not
    /// among them cannot be seen; so give all that there are.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while it is registered, [`Kind::Dirty`] when something exists only there, or nobody can use what is on it
    /// without the cache, [`Kind::Foreign`] when it is another device, [`Kind::Inconsistent`], [`Kind::Io`].
    pub fn retire<P: AsRef<Path>>(&self, path: &Path, uuid: Uuid, others: &[P]) -> Result<Change, Error> {
        let tried = format!("retire the bcache device {uuid} on {}", path.display());
        let device = Device::claim(path, &tried)?;
        let Some(superblock) = Superblock::read_from(&device, &tried)? else {
            return Ok(Change::Already(()));
        };
        if superblock.uuid != uuid {
            return Err(Error::new(Kind::Foreign, tried)
                .with_answer(format!("it is the bcache device {}", superblock.uuid)));
        }
        match &superblock.role {
            Role::Backing(role) if role.state == State::Dirty => {
                let set = superblock.set.map_or_else(|| "none".to_owned(), |set| set.to_string());
                return Err(Error::new(Kind::Dirty, tried)
                    .with_answer(format!("it is dirty: the cache set {set} has newer blocks of it"))
                    .with_advice("detach it from its cache set first"));
            }
            Role::Backing(_) => {}
            Role::Cache(_) => refuse_dirty(&superblock, others, &tried)?,
        }
        device.write(Superblock::OFFSET.get(), &[0; Superblock::LENGTH], &tried)?;
        Ok(Change::Made(()))
    }
}

fn refuse_dirty<P: AsRef<Path>>(cache: &Superblock, others: &[P], tried: &str) -> Result<(), Error> {
    for path in others {
        let path = path.as_ref();
        let Some(other) = Superblock::read(path)? else { continue };
        let dirty = other.backing().is_some_and(|role| role.state == State::Dirty);
        if dirty && other.set == cache.set {
            return Err(Error::new(Kind::Dirty, tried)
                .with_answer(format!(
                    "the backing device {} ({}) is dirty, and this cache has what it lacks",
                    other.uuid,
                    path.display()
                ))
                .with_advice("register both and detach the backing device first"));
        }
    }
    Ok(())
}
