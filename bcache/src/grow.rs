//! Growth of a backing device.

use devices::{Bytes, Sectors};

use crate::attribute::Attributes;
use crate::host::Registered;
use crate::{Backing, Change, Error, Kind, Superblock};

/// How large a cached device is, and how large it could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// The size of the cached device now; `None` while it waits for its cache set.
    pub present: Option<Bytes>,
    /// The size that it would have after it was registered anew: that of the backing device, less the data offset.
    pub possible: Bytes,
}

impl Room {
    /// Whether growing would do anything.
    #[must_use]
    pub fn can_grow(&self) -> bool {
        self.present.is_some_and(|present| present < self.possible)
    }
}

impl Backing {
    /// How large the cached device is, and how large it could be.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it is not registered any more, [`Kind::Inconsistent`], [`Kind::Io`].
    pub fn room(&self) -> Result<Room, Error> {
        let path = self.path()?;
        let tried = format!("tell how large {} could be", self.uuid());
        let superblock = Superblock::read(&path)?;
        let Some(role) = superblock.as_ref().and_then(Superblock::backing) else {
            return Err(Error::new(Kind::Inconsistent, tried).with_answer("its superblock has gone"));
        };
        let sectors: u64 = Attributes::new(self.block_dir()).value("size")?;
        let possible = sectors.saturating_sub(role.data_offset.get());
        let possible = Sectors::new(possible).to_bytes().unwrap_or(Bytes::ZERO);
        Ok(Room { present: self.size()?, possible })
    }

    /// Lets the cached device have all of a backing device that has grown. **This is offline**: the cached device goes away and
    /// comes back, with the same data, and mostly with another number.
    ///
    /// There is no online way: the kernel reads the size of a backing device once, when it is registered, and has no attribute
    /// to change it. Tried on Linux 6.1.0-57 (Debian 12): the cached device kept its size when the loop device or the
    /// device-mapper device below it grew, while it was open as well as after the last close. Who wants to grow online puts the cache below a volume group, or a dm-linear window above it.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] while anybody uses the cached device (nothing has happened then), and those of [`Backing::stop`] and
    /// [`crate::Bcache::register`].
    pub fn grow_offline(&self) -> Result<Change<Backing>, Error> {
        if !self.room()?.can_grow() {
            return Ok(Change::Already(self.clone()));
        }
        let path = self.path()?;
        let _ = self.stop()?;
        match self.bcache.register(&path)?.into_inner() {
            Registered::Backing(backing) if backing.uuid() == self.uuid() => Ok(Change::Made(backing)),
            _ => Err(Error::new(Kind::Inconsistent, format!("register {} again", path.display()))
                .with_answer("another device has its place")),
        }
    }
}
