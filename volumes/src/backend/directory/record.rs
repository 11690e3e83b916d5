//! The records of directory volumes: one small file each, beside the volume and never in it.
//!
//! A record is written whole under another name, brought to the disk, and renamed into its place, so that it is always
//! the old one or the new one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use devices::Bytes;
use devices::filesystem::Project;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{failed, tree};
use crate::{ClassName, Error, Kind, Lifecycle, Owner, VolumeId};

/// The directory of the records, in that of the volumes. No volume can be called so.
const FOLDER: &str = ".gabion";
/// What a record has at most; it is some hundred bytes.
const LONGEST: u64 = 64 << 10;
/// What this version writes. Another one is not touched.
const VERSION: u32 = 1;

/// What is known of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Record {
    version: u32,
    pub(super) owner: String,
    pub(super) class: String,
    /// In bytes.
    size: u64,
    /// The number under which the filesystem counts what is in it.
    project: Option<u32>,
    pub(super) phase: Phase,
    ephemeral: bool,
}

/// Where in its life a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Phase {
    /// It was never complete.
    Creating,
    /// It is a volume.
    Ready,
    /// It is none any more.
    Removing,
}

impl Record {
    /// Of a volume that is about to be made.
    pub(super) fn new(
        owner: &Owner,
        class: &ClassName,
        size: Bytes,
        project: Option<Project>,
        lifecycle: Lifecycle,
    ) -> Self {
        Self {
            version: VERSION,
            owner: owner.to_string(),
            class: class.to_string(),
            size: size.get(),
            project: project.map(Project::get),
            phase: Phase::Creating,
            ephemeral: lifecycle == Lifecycle::Ephemeral,
        }
    }

    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    pub(super) fn project(&self) -> Option<Project> {
        Project::new(self.project?)
    }

    pub(super) fn lifecycle(&self) -> Lifecycle {
        if self.ephemeral { Lifecycle::Ephemeral } else { Lifecycle::Persistent }
    }

    pub(super) fn in_phase(&self, phase: Phase) -> Self {
        Self { phase, ..self.clone() }
    }

    pub(super) fn with_size(&self, size: Bytes) -> Self {
        Self { size: size.get(), ..self.clone() }
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        // A later version may well have other fields.
        let Versioned { version } = serde_json::from_slice(text).map_err(|cause| cause.to_string())?;
        if version != VERSION {
            return Err(format!("it is of version {version}, and this program knows version {VERSION}"));
        }
        serde_json::from_slice(text).map_err(|cause| cause.to_string())
    }
}

/// All records of one directory.
#[derive(Debug)]
pub(super) struct Records {
    folder: OwnedFd,
    path: PathBuf,
}

impl Records {
    /// Makes the folder of the records in a directory, where there is none.
    pub(super) fn make(root: BorrowedFd<'_>, tried: &str) -> Result<(), Error> {
        match rustix::fs::mkdirat(root, FOLDER, Mode::from_raw_mode(0o700)) {
            Ok(()) => rustix::fs::fsync(root).map_err(|errno| failed(tried, errno)),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(tried, errno)),
        }
    }

    /// Those in a directory.
    pub(super) fn open(root: BorrowedFd<'_>, path: &Path, tried: &str) -> Result<Self, Error> {
        let folder = tree::open(root, FOLDER).map_err(|errno| match errno {
            Errno::NOENT => Error::new(Kind::Unavailable, tried)
                .with_answer("it was not used yet")
                .with_advice("start gabion node, or make the first volume"),
            errno => failed(tried, errno),
        })?;
        Ok(Self { folder, path: path.join(FOLDER) })
    }

    /// The folder itself, in which directories are made and removed too.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The record of a volume, whosever it is.
    pub(super) fn read(&self, id: &VolumeId) -> Result<Option<Record>, Error> {
        let name = file_name(id);
        let tried = || format!("read {}", self.path.join(&name).display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, &name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(&tried(), errno)),
        };
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).map_err(|cause| Error::system(tried(), cause))?;
        Record::parse(&text).map(Some).map_err(|why| {
            Error::new(Kind::Internal, tried())
                .with_answer(format!("it is no record of a volume: {why}"))
                .with_advice("restore it, or move it and its volume away")
        })
    }

    /// Every record, by id.
    pub(super) fn all(&self) -> Result<Vec<(VolumeId, Record)>, Error> {
        let mut records = Vec::new();
        for name in self.names()? {
            let Some(id) = name.strip_suffix(".json").and_then(|id| id.parse().ok()) else { continue };
            // It may have been removed since the folder was read.
            if let Some(record) = self.read(&id)? {
                records.push((id, record));
            }
        }
        records.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(records)
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let listed = |errno| failed(&format!("list {}", self.path.display()), errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder).map_err(listed)? {
            // What is no text was not written by this program.
            if let Ok(name) = entry.map_err(listed)?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Replaces a record, and returns when it is on the disk.
    pub(super) fn write(&self, id: &VolumeId, record: &Record) -> Result<(), Error> {
        let name = file_name(id);
        let tried = format!("write {}", self.path.join(&name).display());
        let new = format!("{name}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let replace = || -> std::io::Result<()> {
            let mut file =
                File::from(rustix::fs::openat(&self.folder, &new, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.folder, &new, &self.folder, &name)?;
            Ok(rustix::fs::fsync(&self.folder)?)
        };
        replace().map_err(|cause| match Errno::from_io_error(&cause) {
            Some(errno) => failed(&tried, errno),
            None => Error::system(&tried, cause),
        })
    }

    /// Removes a record, and returns when that is on the disk.
    pub(super) fn remove(&self, id: &VolumeId) -> Result<(), Error> {
        let name = file_name(id);
        let tried = format!("remove {}", self.path.join(&name).display());
        for name in [format!("{name}.new"), name] {
            match rustix::fs::unlinkat(&self.folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(failed(&tried, errno)),
            }
        }
        rustix::fs::fsync(&self.folder).map_err(|errno| failed(&tried, errno))
    }
}

/// An id holds no full stop, so no two names can be the same.
fn file_name(id: &VolumeId) -> String {
    format!("{id}.json")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn record() -> Record {
        let (owner, class) = ("me".parse().unwrap(), "dirs".parse().unwrap());
        Record::new(&owner, &class, Bytes::mib(3), Project::new(7), Lifecycle::Ephemeral)
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_removed_for_good() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::File::open(place.path()).unwrap();
        assert_eq!(Records::open(root.as_fd(), place.path(), "t").unwrap_err().kind(), Kind::Unavailable);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "who only looks makes nothing");
        Records::make(root.as_fd(), "t").unwrap();
        let records = Records::open(root.as_fd(), place.path(), "t").unwrap();
        let id: VolumeId = "db".parse().unwrap();
        assert_eq!(records.read(&id).unwrap(), None);
        records.write(&id, &record()).unwrap();
        let ready = record().in_phase(Phase::Ready).with_size(Bytes::mib(4));
        records.write(&id, &ready).unwrap();
        assert_eq!(records.read(&id).unwrap().as_ref(), Some(&ready));
        assert_eq!((ready.size(), ready.project()), (Bytes::mib(4), Project::new(7)));
        fs::write(place.path().join(".gabion/no-record"), "").unwrap();
        fs::write(place.path().join(".gabion/db.json.new"), "half").unwrap();
        let again = Records::open(root.as_fd(), place.path(), "t").unwrap();
        assert_eq!(again.all().unwrap(), [(id.clone(), ready)]);
        again.remove(&id).unwrap();
        again.remove(&id).unwrap();
        assert_eq!((again.all().unwrap(), again.names().unwrap().len()), (Vec::new(), 3));
    }

    #[test]
    fn what_is_no_record_is_an_error_and_never_taken_for_none() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::File::open(place.path()).unwrap();
        Records::make(root.as_fd(), "t").unwrap();
        let records = Records::open(root.as_fd(), place.path(), "t").unwrap();
        let later = r#"{"version": 2, "more": true}"#;
        for text in ["", "{}", "{\"version\":1}", later, "\0\0"] {
            fs::write(place.path().join(".gabion/db.json"), text).unwrap();
            let error = records.all().unwrap_err();
            assert!(error.kind() == Kind::Internal && error.to_string().contains("db.json"), "{error}");
        }
        fs::remove_file(place.path().join(".gabion/db.json")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", place.path().join(".gabion/db.json")).unwrap();
        assert!(records.read(&"db".parse().unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(text: Vec<u8>, cut in 0_usize..200) {
            let _ = Record::parse(&text);
            let whole = serde_json::to_vec_pretty(&record()).unwrap();
            prop_assert!(Record::parse(&whole).is_ok());
            prop_assert!(Record::parse(&whole[..cut.min(whole.len() - 1)]).is_err());
        }
    }
}
