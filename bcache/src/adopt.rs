//! Finding everything again after a start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::Registered;
use crate::twin::twins;
use crate::{Backing, Bcache, CacheSet, Error, State, Superblock, Uuid, wait};

/// What became of one device.
#[derive(Debug)]
#[non_exhaustive]
pub struct Adopted {
    /// The device's path, as it was given.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a device that was to be adopted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It has no bcache superblock.
    NotBcache,
    /// It is the cache device of this set.
    Cache(CacheSet),
    /// It is a backing device, and the cached device is there.
    Running {
        /// The backing device.
        backing: Backing,
        /// The cached device, in this boot.
        device: PathBuf,
    },
    /// It is a backing device whose cache set is not there. It is not forced: with [`State::Dirty`] that would lose
    /// acknowledged writes. It starts by itself when the cache device is registered.
    Waiting {
        /// The backing device.
        backing: Backing,
        /// The cache set that it waits for.
        set: Option<Uuid>,
        /// How it stands to that set.
        state: State,
    },
    /// It could not be read or registered.
    Failed(Error),
}

impl Bcache {
    /// Registers everything among `paths` that has a bcache superblock: cache devices first, then backing devices, whatever
    /// udev has done of it already and whatever other signature hides a superblock from udev. Then waits up to `limit` for the
    /// cached devices.
    ///
    /// This is what a start of the machine needs; names and numbers may all be others than before. One device's error does
    /// not keep the others from being adopted. Of two devices with one identity neither is: both are [`Kind::Inconsistent`].
    ///
    /// [`Kind::Inconsistent`]: crate::Kind::Inconsistent
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use bcache::{Bcache, Outcome};
    ///
    /// for adopted in Bcache::new().adopt(&["/dev/sdb", "/dev/nvme0n1p3"], Duration::from_secs(10)) {
    ///     if let Outcome::Running { backing, device } = adopted.outcome {
    ///         println!("{} is {}", backing.uuid(), device.display());
    ///     }
    /// }
    /// ```
    pub fn adopt<P: AsRef<Path>>(&self, paths: &[P], limit: Duration) -> Vec<Adopted> {
        let read = |path: &P| Superblock::read(path.as_ref());
        let mut found: Vec<(&Path, Result<Option<Superblock>, Error>)> =
            paths.iter().map(|path| (path.as_ref(), read(path))).collect();
        found.sort_by_key(|(_, read)| !matches!(read, Ok(Some(superblock)) if superblock.cache().is_some()));
        let superblocks =
            found.iter().map(|(path, read)| (*path, read.as_ref().ok().and_then(Option::as_ref)));
        let mut twins = twins(&superblocks.collect::<Vec<_>>());
        let registered: Vec<(&Path, Outcome)> = found
            .into_iter()
            .enumerate()
            .map(|(place, (path, read))| {
                let outcome = match (read, twins.remove(&place)) {
                    (_, Some(error)) | (Err(error), None) => Outcome::Failed(error),
                    (Ok(None), None) => Outcome::NotBcache,
                    (Ok(Some(superblock)), None) => self.adopt_one(path, &superblock),
                };
                (path, outcome)
            })
            .collect();
        self.settle(registered, limit)
    }

    fn adopt_one(&self, path: &Path, superblock: &Superblock) -> Outcome {
        match self.register(path).map(crate::Change::into_inner) {
            Ok(Registered::Cache(set)) => Outcome::Cache(set),
            Ok(Registered::Backing(backing)) => {
                let state = superblock.backing().map_or(State::NoCache, |role| role.state);
                Outcome::Waiting { backing, set: superblock.set, state }
            }
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Waits for the devices that have their set, or need none; the others would be waited for in vain.
    fn settle(&self, registered: Vec<(&Path, Outcome)>, limit: Duration) -> Vec<Adopted> {
        let end = std::time::Instant::now() + limit;
        let settled = registered.into_iter().map(|(path, outcome)| {
            let outcome = match outcome {
                Outcome::Waiting { backing, set, .. } => {
                    let left = end.saturating_duration_since(std::time::Instant::now());
                    settled(self, backing, set, left).unwrap_or_else(Outcome::Failed)
                }
                other => other,
            };
            Adopted { path: path.to_owned(), outcome }
        });
        settled.collect()
    }
}

fn settled(bcache: &Bcache, backing: Backing, set: Option<Uuid>, limit: Duration) -> Result<Outcome, Error> {
    let hopeless = |state| {
        let runs_alone = matches!(state, State::NoCache | State::Inconsistent);
        !runs_alone && set.is_none_or(|set| bcache.set(set).is_err())
    };
    let device = wait::until(limit, || {
        let status = backing.status()?;
        match status.device {
            Some(device) => Ok(Some(Some(device))),
            None if hopeless(status.state) => Ok(Some(None)),
            None => Ok(None),
        }
    })?;
    match device.flatten() {
        Some(device) => {
            // Its set may have come after it, by udev's hand.
            let _ = backing.keep_in_cache()?;
            Ok(Outcome::Running { backing, device })
        }
        None => {
            let state = backing.status()?.state;
            Ok(Outcome::Waiting { backing, set, state })
        }
    }
}
