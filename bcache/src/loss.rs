//! What would be lost, and the refusal to lose it.

use std::fmt;

use devices::Bytes;

use crate::{Approximate, Backing, Error, Kind, Label, State, Superblock, Uuid};

/// What would be lost if a dirty backing device were used without its cache set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The backing device.
    pub backing: Uuid,
    /// Its label.
    pub label: Option<Label>,
    /// The cache set that has the dirty blocks.
    pub set: Option<Uuid>,
    /// How much is dirty. Only the cache set knows, so `None` without it.
    pub dirty: Option<Approximate>,
    /// How large the whole device is: no more than that can be dirty.
    pub size: Bytes,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the backing device {}", self.backing)?;
        if let Some(label) = &self.label {
            write!(f, " ({label})")?;
        }
        match self.dirty {
            Some(dirty) => write!(f, " has {dirty} that exists only")?,
            None => write!(
                f,
                " has writes, of an amount that only its cache set knows (at most {}), that exist only",
                self.size
            )?,
        }
        match self.set {
            Some(set) => write!(f, " on the cache set {set}")?,
            None => f.write_str(" on a cache set")?,
        }
        f.write_str(": without them acknowledged writes are undone and the filesystem on it is damaged")
    }
}

impl Backing {
    /// What would be lost if this device were used without its cache set now; `None` when nothing.
    ///
    /// The state is read from the superblock on the device, not from what the kernel remembers.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when it has gone, [`Kind::Inconsistent`], [`Kind::Io`].
    pub fn loss(&self) -> Result<Option<Loss>, Error> {
        let path = self.path()?;
        let superblock = Superblock::read(&path)?.filter(|superblock| superblock.uuid == self.uuid());
        let Some((superblock, role)) = superblock.as_ref().and_then(|all| Some((all, all.backing()?))) else {
            return Err(Error::new(Kind::Inconsistent, format!("read the state of {}", path.display()))
                .with_answer(format!("it is not the backing device {} any more", self.uuid())));
        };
        let status = self.status()?;
        if role.state != State::Dirty && status.state != State::Dirty {
            return Ok(None);
        }
        let sectors: u64 = crate::attribute::Attributes::new(self.block_dir()).value("size")?;
        Ok(Some(Loss {
            backing: self.uuid(),
            label: superblock.label.clone(),
            set: status.set.or(superblock.set),
            dirty: status.dirty,
            size: devices::Sectors::new(sectors).to_bytes().unwrap_or(Bytes::ZERO),
        }))
    }

    /// Refuses what would use the device without the blocks that only its cache set has, unless that is the set meant.
    pub(crate) fn refuse_loss(&self, meant: Option<Uuid>, tried: &str) -> Result<(), Error> {
        match self.loss()? {
            Some(loss) if meant.is_none() || loss.set != meant => Err(Error::new(Kind::Dirty, tried)
                .with_answer(loss.to_string())
                .with_advice("register the cache device of that set; nothing is done without it")),
            _ => Ok(()),
        }
    }
}
