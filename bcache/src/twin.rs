//! Two devices with one identity: a copy of a disk, a snapshot, or two paths to it that nothing has joined.
//!
//! Which of them is the right one cannot be told from them, so neither is touched.

use std::collections::BTreeMap;
use std::path::Path;

use devices::DeviceNumber;

use crate::device::number_of;
use crate::{Bcache, Error, Kind, Superblock, Uuid};

/// What may exist once: a backing device, or the cache device of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    Backing(Uuid),
    Set(Uuid),
}

impl Identity {
    pub(crate) fn of(superblock: &Superblock) -> Self {
        match (superblock.cache(), superblock.set) {
            (Some(_), Some(set)) => Self::Set(set),
            _ => Self::Backing(superblock.uuid),
        }
    }

    fn refusal(self, tried: &str, one: &str, other: &str) -> Error {
        let what = match self {
            Self::Backing(uuid) => format!("the backing device {uuid}"),
            Self::Set(set) => format!("the cache device of the set {set}"),
        };
        Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("{one} and {other} both say that they are {what}"))
            .with_advice("find out which one is a copy, and take it away or wipe it")
    }
}

impl Bcache {
    /// Refuses a device while another one of its identity is registered.
    pub(crate) fn refuse_twin(
        &self,
        identity: Identity,
        number: DeviceNumber,
        tried: &str,
    ) -> Result<(), Error> {
        let registered: Vec<DeviceNumber> = match identity {
            Identity::Backing(uuid) => {
                let same = self.backings()?.into_iter().filter(|backing| backing.uuid() == uuid);
                same.map(|backing| backing.number()).collect()
            }
            Identity::Set(set) => match self.set(set) {
                Ok(set) => set.caches()?.into_iter().map(|cache| cache.number).collect(),
                Err(_) => Vec::new(),
            },
        };
        match registered.into_iter().find(|other| *other != number) {
            Some(other) => Err(identity.refusal(tried, &number.to_string(), &other.to_string())),
            None => Ok(()),
        }
    }
}

/// The devices among these that have an identity in common with another one, by their place, with the reason.
pub(crate) fn twins(found: &[(&Path, Option<&Superblock>)]) -> BTreeMap<usize, Error> {
    let identified = found.iter().enumerate().filter_map(|(place, (path, superblock))| {
        let number = number_of(path, "look for devices of one identity").ok()?;
        Some((place, *path, number, Identity::of((*superblock)?)))
    });
    let identified: Vec<_> = identified.collect();
    let mut refused = BTreeMap::new();
    for (place, path, number, identity) in &identified {
        let twin = identified.iter().find(|(_, _, other, same)| other != number && same == identity);
        if let Some((_, other, _, _)) = twin {
            let tried = format!("adopt {}", path.display());
            let error = identity.refusal(&tried, &path.display().to_string(), &other.display().to_string());
            refused.insert(*place, error);
        }
    }
    refused
}
