//! Directories in a filesystem that is there, each limited by a project quota.
//!
//! ```text
//!   ROOT/ID/              the volume: in a project of its own, marked with owner and id by an attribute of the directory
//!   ROOT/.gabion/ID.json  its record
//!   ROOT/.gabion/ID.dir   the volume while it is being made or removed
//! ```
//!
//! | step | record | directory | killed here |
//! |---|---|---|---|
//! | create | creating | none, `ID.dir`, then `ID` | removed by whoever finds it |
//! | | ready | `ID` | a volume; its limit is set again from its record |
//! | delete | removing | `ID`, then `ID.dir`, then less and less | removed by whoever finds it |
//!
//! A directory that lacks the mark is never touched, whatever it is called.

mod place;
mod quota;
mod record;
mod tree;

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use devices::filesystem::{Project, ProjectQuotas, project_of_open, set_project_of_open};
use lvm::ops::SizeRange;
use rustix::fs::{AtFlags, Mode, RenameFlags, XattrFlags};
use rustix::io::Errno;

use self::place::{enforced, own_alone, place_of};
use self::record::{Phase, Record, Records};
use super::{Backend, DirectoryPlace, Medium, NewVolume, Ready, rounded};
use crate::class::{DeviceClass, DirectoryPool, Quota};
use crate::health::{HealthIssue, Severity};
use crate::lock::{Held, Lock};
use crate::mounts::VolumeUsage;
use crate::repair::Orphan;
use crate::{Capacity, Content, Error, FsType, Kind, Limits, Owner, Volume, VolumeId};

/// What sizes are multiples of.
const UNIT: Bytes = Bytes::mib(1);
/// The attribute of a directory that says whose volume it is: `OWNER/ID`. Only `CAP_SYS_ADMIN` sets and sees it.
const MARK: &str = "trusted.gabion.volume";
/// How long another one may take to choose its room and number.
const TURN: Duration = Duration::from_secs(30);
/// How long the filesystem may take to free what was removed; XFS does so in the background.
const FREEING: Duration = Duration::from_secs(5);

/// Directories below one.
#[derive(Debug)]
pub(crate) struct Directories {
    class: DeviceClass,
    owner: Owner,
    /// Where the locks of volumes lie.
    locks: PathBuf,
    path: PathBuf,
    /// Held open, so that it is the same directory of the same filesystem for as long as this lives.
    root: OwnedFd,
    records: Records,
    /// The same directory, as mounts of it are seen.
    place: DirectoryPlace,
    fs: FsType,
    /// Where the class wants sizes to be enforced.
    quotas: Option<ProjectQuotas>,
}

/// What a system call answered.
fn failed(tried: &str, errno: Errno) -> Error {
    let error = Error::system(tried, errno);
    let (kind, advice) = match errno {
        Errno::NOSPC | Errno::DQUOT => (Kind::NoSpace, "remove something from the filesystem"),
        Errno::BUSY | Errno::XDEV => (Kind::InUse, "something is mounted in it; unmount that first"),
        Errno::PERM => (Kind::Internal, "see whether something in it was made immutable (lsattr)"),
        _ => return error,
    };
    Error::new(kind, tried).with_answer(errno.to_string()).with_advice(advice).with_source(errno)
}

impl Directories {
    /// Takes a directory that exists, in a filesystem that can do what the class asks for.
    ///
    /// # Errors
    ///
    /// [`Kind::Unavailable`] when the directory is not there; [`Kind::Refused`] when others may change it;
    /// [`Kind::FailedPrecondition`] when its filesystem is of another kind, or does not enforce quotas.
    pub(crate) fn open(
        class: &DeviceClass,
        pool: &DirectoryPool,
        owner: &Owner,
        locks: &Path,
    ) -> Result<Self, Error> {
        Self::take(class, pool, owner, locks, |root, tried| Records::make(root.as_fd(), tried))
    }

    /// The same of one that was taken before; nothing is made.
    ///
    /// # Errors
    ///
    /// As [`Directories::open`]; [`Kind::Unavailable`] for one that was never taken.
    pub(crate) fn find(
        class: &DeviceClass,
        pool: &DirectoryPool,
        owner: &Owner,
        locks: &Path,
    ) -> Result<Self, Error> {
        Self::take(class, pool, owner, locks, |_, _| Ok(()))
    }

    fn take(
        class: &DeviceClass,
        pool: &DirectoryPool,
        owner: &Owner,
        locks: &Path,
        prepare: impl FnOnce(&File, &str) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let tried = format!("use directory {} for class {}", pool.path.display(), class.name);
        let path = pool.path.canonicalize().map_err(|cause| {
            Error::new(Kind::Unavailable, &tried)
                .with_answer(cause.to_string())
                .with_advice("mount its filesystem, or make the directory")
                .with_source(cause)
        })?;
        let root = File::open(&path).map_err(|cause| Error::system(&tried, cause))?;
        own_alone(&root, &tried)?;
        let (place, fs) = place_of(&path, &tried)?;
        if let Some(wanted) = class.spec.volume.fs_type.filter(|wanted| *wanted != fs) {
            return Err(Error::new(Kind::FailedPrecondition, tried)
                .with_answer(format!("it lies in {fs}, and the class asks for {wanted}"))
                .with_advice("take fsType out of the class, or use a directory in such a filesystem"));
        }
        let quotas = match pool.quota {
            Quota::None => None,
            Quota::Project => Some(enforced(&root, &path, &tried)?),
        };
        prepare(&root, &tried)?;
        let records = Records::open(root.as_fd(), &path, &tried)?;
        let (class, owner, locks) = (class.clone(), owner.clone(), locks.to_owned());
        Ok(Self { class, owner, locks, path, root: root.into(), records, place, fs, quotas })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn is_ours(&self, record: &Record) -> bool {
        record.owner == self.owner.as_str() && record.class == self.class.name.as_str()
    }

    fn own_record(&self, id: &VolumeId) -> Result<Option<Record>, Error> {
        Ok(self.records.read(id)?.filter(|record| self.is_ours(record)))
    }

    fn own_records(&self) -> Result<Vec<(VolumeId, Record)>, Error> {
        Ok(self.records.all()?.into_iter().filter(|(_, record)| self.is_ours(record)).collect())
    }

    fn must_be_ready(&self, id: &VolumeId, tried: &str) -> Result<Record, Error> {
        self.own_record(id)?.filter(|record| record.phase == Phase::Ready).ok_or_else(|| {
            Error::new(Kind::NotFound, tried)
                .with_answer(format!("{} has no record of it any more", self.path.display()))
        })
    }

    fn as_volume(&self, id: VolumeId, record: &Record) -> Volume {
        Volume {
            id,
            class: self.class.name.clone(),
            size: record.size(),
            content: Content::Filesystem(self.fs),
            fs_type: Some(self.fs),
            source: None,
            lifecycle: record.lifecycle(),
            limits: Limits::NONE,
        }
    }

    fn mark(&self, id: &VolumeId) -> String {
        format!("{}/{id}", self.owner)
    }

    /// Whether a directory is that volume, and no other and nobody else's.
    fn is_marked(&self, directory: BorrowedFd<'_>, id: &VolumeId) -> Result<bool, Errno> {
        let wanted = self.mark(id);
        // One byte more than fits: a longer one is another one.
        let mut found = vec![0; wanted.len() + 1];
        match rustix::fs::fgetxattr(directory, MARK, &mut found[..]) {
            Ok(length) => Ok(found.get(..length) == Some(wanted.as_bytes())),
            Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// The directory of a volume, if it is there.
    fn directory(&self, id: &VolumeId, tried: &str) -> Result<Option<OwnedFd>, Error> {
        let refused = |answer: &str| {
            Err(Error::new(Kind::Refused, tried)
                .with_answer(format!("{} {answer}", self.path.join(id.as_str()).display()))
                .with_advice("move it away, and bring back the volume's own directory if there is one"))
        };
        let directory = match tree::open(self.root.as_fd(), id.as_str()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return refused("is no directory"),
            Err(Errno::XDEV) => return Err(failed(tried, Errno::BUSY)),
            Err(errno) => return Err(failed(tried, errno)),
        };
        if self.is_marked(directory.as_fd(), id).map_err(|errno| failed(tried, errno))? {
            return Ok(Some(directory));
        }
        refused("is not the volume's directory: it lacks the mark of this owner and id")
    }

    fn must_have_directory(&self, id: &VolumeId, tried: &str) -> Result<OwnedFd, Error> {
        self.directory(id, tried)?.ok_or_else(|| {
            Error::new(Kind::Internal, tried)
                .with_answer(format!("its directory {} is gone", self.path.join(id.as_str()).display()))
                .with_advice("bring it back with its attributes, or delete the volume")
        })
    }

    fn still_enforced(&self) -> Result<(), Error> {
        Ok(self.quotas.as_ref().map_or(Ok(()), ProjectQuotas::require_enforced)?)
    }

    /// Room in all, and what may still be promised: what is free, less what other volumes may still write, less the
    /// reserve.
    fn room(&self) -> Result<(Bytes, Bytes), Error> {
        let tried = format!("measure {}", self.path.display());
        let usage = quota::usage_of(self.root.as_fd(), &tried)?;
        let left = match &self.quotas {
            Some(quotas) => usage.available.saturating_sub(quota::promised(quotas)?),
            // Nobody counts what each of them has: whatever is used is taken for theirs, and the rest of their sizes is
            // still to be written.
            None => {
                let sizes = self
                    .records
                    .all()?
                    .iter()
                    .fold(0_u64, |sum, (_, record)| sum.saturating_add(record.size().get()));
                usage.available.saturating_sub(Bytes::new(sizes).saturating_sub(usage.used))
            }
        };
        let left = left.saturating_sub(self.class.spec.reserve.of(usage.total));
        Ok((usage.total, left.round_down(UNIT).unwrap_or_default()))
    }

    fn has_room(&self, more: Bytes, tried: &str) -> Result<(), Error> {
        let (_, available) = self.room()?;
        if more <= available {
            return Ok(());
        }
        Err(Error::new(Kind::NoSpace, tried)
            .with_answer(format!("{more} are needed, and {available} are left at {}", self.path.display()))
            .with_advice("ask for less, remove something, or enlarge the filesystem"))
    }

    /// One at a time, in all processes, chooses room and a number.
    fn turn(&self, tried: &str) -> Result<Lock, Error> {
        let start = Instant::now();
        loop {
            match Lock::take(&self.locks, Held::Directories, tried) {
                Err(error) if error.kind() == Kind::Busy && start.elapsed() < TURN => {
                    thread::sleep(Duration::from_millis(5));
                }
                taken => return taken,
            }
        }
    }

    fn limit(&self, project: Option<Project>, size: Option<Bytes>) -> Result<(), Error> {
        match (&self.quotas, project) {
            (Some(quotas), Some(project)) => quota::limit(quotas, project, size),
            _ => Ok(()),
        }
    }

    /// Writes the record of a new volume and limits it, so that nobody else is promised its room.
    fn begin(&self, new: &NewVolume<'_>, size: Bytes, tried: &str) -> Result<Record, Error> {
        let _turn = self.turn(tried)?;
        self.has_room(size, tried)?;
        let refused = |what: PathBuf, answer: &str| {
            Err(Error::new(Kind::Refused, tried)
                .with_answer(format!("{} {answer}", what.display()))
                .with_advice("move it away, or choose another id"))
        };
        if self.records.read(new.id)?.is_some() {
            return refused(self.path.join(".gabion"), "has a record of that id of another owner or class");
        }
        match rustix::fs::statat(&self.root, new.id.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(tried, errno)),
            Ok(_) => return refused(self.path.join(new.id.as_str()), "exists, and is no volume"),
        }
        let project = match &self.quotas {
            None => None,
            Some(quotas) => {
                let recorded = self.records.all()?;
                let recorded = recorded.iter().filter_map(|(_, record)| record.project());
                let free = quota::free_project(quotas, recorded, (&self.owner, new.id))?;
                Some(free.ok_or_else(|| {
                    Error::new(Kind::NoSpace, tried).with_answer("every number of a project is taken")
                })?)
            }
        };
        let record = Record::new(&self.owner, &self.class.name, size, project, new.lifecycle);
        self.records.write(new.id, &record)?;
        self.limit(project, Some(size))?;
        Ok(record)
    }

    /// Makes the directory aside, complete with number and mark, and moves it to its place.
    fn make(&self, id: &VolumeId, record: &Record, tried: &str) -> Result<(), Error> {
        let (folder, aside) = (self.records.folder(), aside(id));
        let answered = |errno| failed(tried, errno);
        rustix::fs::mkdirat(folder, &aside, Mode::from_raw_mode(0o700)).map_err(answered)?;
        let directory = tree::open(folder, aside.as_c_str()).map_err(answered)?;
        if let Some(project) = record.project() {
            let _ = set_project_of_open(directory.as_fd(), &self.path.join(id.as_str()), project)?;
        }
        rustix::fs::fsetxattr(&directory, MARK, self.mark(id).as_bytes(), XattrFlags::CREATE)
            .map_err(answered)?;
        let mode = Mode::from_raw_mode(self.class.spec.volume.root_mode.0);
        rustix::fs::fchmod(&directory, mode).map_err(answered)?;
        rustix::fs::fsync(&directory).map_err(answered)?;
        match rustix::fs::renameat_with(folder, &aside, &self.root, id.as_str(), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(Error::new(Kind::Refused, tried)
                .with_answer("somebody else made a directory of that name meanwhile")
                .with_advice("move it away, or choose another id")),
            moved => moved.and_then(|()| rustix::fs::fsync(&self.root)).map_err(answered),
        }
    }

    /// Removes a volume with its directory, and its record last.
    fn remove(&self, id: &VolumeId, record: &Record, tried: &str) -> Result<(), Error> {
        let (folder, aside) = (self.records.folder(), aside(id));
        let answered = |errno| failed(tried, errno);
        let directory = match self.directory(id, tried) {
            // What is not complete may be aside alone, or gone already: then this one is somebody else's.
            Err(error) if error.kind() == Kind::Refused && record.phase != Phase::Ready => None,
            directory => directory?,
        };
        self.records.write(id, &record.in_phase(Phase::Removing))?;
        tree::remove(folder, &aside).map_err(answered)?;
        if directory.is_some() {
            // From here on nobody finds it under its name.
            rustix::fs::renameat_with(&self.root, id.as_str(), folder, &aside, RenameFlags::NOREPLACE)
                .and_then(|()| rustix::fs::fsync(&self.root))
                .map_err(answered)?;
            tree::remove(folder, &aside).map_err(answered)?;
        }
        drop(directory);
        self.wait_until_free(record)?;
        self.limit(record.project(), None)?;
        self.records.remove(id)
    }

    /// Waits a while until nothing is counted for a project any more: room that is not free yet is nobody's. What a
    /// program still has open is freed when that closes it, and keeps the number from being given out again.
    fn wait_until_free(&self, record: &Record) -> Result<(), Error> {
        let (Some(quotas), Some(project)) = (&self.quotas, record.project()) else { return Ok(()) };
        let start = Instant::now();
        while quotas.usage(project)?.inodes > 0 && start.elapsed() < FREEING {
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Removes what was never completed or was being removed, limits the rest as its records say, and tells what was
    /// done.
    pub(crate) fn repair(&self) -> Result<Vec<String>, Error> {
        let mut done = Vec::new();
        for (id, _) in self.own_records()? {
            let tried = format!("bring volume {id} in order");
            // Whoever holds it is at work.
            let Ok(_lock) = Lock::take(&self.locks, Held::Volume(&id), &tried) else { continue };
            let Some(record) = self.own_record(&id)? else { continue };
            if record.phase != Phase::Ready {
                self.remove(&id, &record, &tried)?;
                done.push(format!("removed volume {id}, which was half-made or half-removed"));
            } else if self.limit_again(&record)? {
                done.push(format!("limited volume {id} to {} again", record.size()));
            }
        }
        Ok(done)
    }

    fn limit_again(&self, record: &Record) -> Result<bool, Error> {
        let (Some(quotas), Some(project)) = (&self.quotas, record.project()) else { return Ok(false) };
        if quotas.usage(project)?.limits.space == Some(record.size()) {
            return Ok(false);
        }
        quota::limit(quotas, project, Some(record.size()))?;
        Ok(true)
    }

    /// Volumes of this owner that are here and belong to none of these classes.
    pub(crate) fn orphans(&self, known: impl Fn(&str) -> bool) -> Result<Vec<Orphan>, Error> {
        let orphan = |id: VolumeId| Orphan {
            place: format!("directory {}", self.path.display()),
            name: id.to_string(),
            volume: Some(id),
            snapshot: None,
        };
        let records = self.records.all()?;
        let of_nobody = |record: &Record| record.owner == self.owner.as_str() && !known(&record.class);
        Ok(records.into_iter().filter(|(_, record)| of_nobody(record)).map(|(id, _)| orphan(id)).collect())
    }
}

impl Backend for Directories {
    fn class(&self) -> &DeviceClass {
        &self.class
    }

    fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let ready = self.own_records()?.into_iter().filter(|(_, record)| record.phase == Phase::Ready);
        Ok(ready.map(|(id, record)| self.as_volume(id, &record)).collect())
    }

    fn volume(&self, id: &VolumeId) -> Result<Option<Volume>, Error> {
        let record = self.own_record(id)?.filter(|record| record.phase == Phase::Ready);
        Ok(record.map(|record| self.as_volume(id.clone(), &record)))
    }

    fn create(&self, new: &NewVolume<'_>, tried: &str) -> Result<Volume, Error> {
        if let Some(wanted) = new.fs_type.filter(|wanted| *wanted != self.fs) {
            return Err(Error::invalid(
                "fs_type",
                format!("{wanted} was asked for, and {} lies in {}", self.path.display(), self.fs),
            ));
        }
        self.still_enforced()?;
        let size = rounded(new.size, UNIT, tried)?;
        let record = self.begin(new, size, tried)?;
        let made = self.make(new.id, &record, tried).and_then(|()| {
            let record = record.in_phase(Phase::Ready);
            self.records.write(new.id, &record)?;
            Ok(self.as_volume(new.id.clone(), &record))
        });
        if made.is_err() {
            // It stays marked as incomplete where this fails.
            let _ = self.remove(new.id, &record, tried);
        }
        made
    }

    fn delete(&self, volume: &Volume, tried: &str) -> Result<(), Error> {
        let record = self.must_be_ready(&volume.id, tried)?;
        self.remove(&volume.id, &record, tried)
    }

    fn delete_unfinished(&self, id: &VolumeId, tried: &str) -> Result<(), Error> {
        match self.own_record(id)? {
            Some(record) if record.phase != Phase::Ready => self.remove(id, &record, tried),
            _ => Ok(()),
        }
    }

    fn grow(&self, volume: &Volume, size: SizeRange, tried: &str) -> Result<Volume, Error> {
        let size = rounded(size, UNIT, tried)?;
        let record = self.must_be_ready(&volume.id, tried)?;
        if size <= record.size() {
            return Ok(self.as_volume(volume.id.clone(), &record));
        }
        self.still_enforced()?;
        let grown = record.with_size(size);
        let _turn = self.turn(tried)?;
        self.has_room(size.saturating_sub(record.size()), tried)?;
        // A limit without its record is taken back by the next repair: nobody was told of it.
        self.limit(record.project(), Some(size))?;
        self.records.write(&volume.id, &grown)?;
        Ok(self.as_volume(volume.id.clone(), &grown))
    }

    fn ready(&self, volume: &Volume, tried: &str) -> Result<Ready, Error> {
        let record = self.must_be_ready(&volume.id, tried)?;
        self.still_enforced()?;
        let directory = self.must_have_directory(&volume.id, tried)?;
        let name = self.path.join(volume.id.as_str());
        if let (Some(_), Some(project)) = (&self.quotas, record.project())
            && project_of_open(directory.as_fd(), &name)? != Some(project)
        {
            return Err(Error::new(Kind::Internal, tried)
                .with_answer(format!("{} is not in project {project} any more", name.display()))
                .with_advice("put it back with all that is in it: xfs_io -c 'chproj -R', or chattr -R -p"));
        }
        Ok(Ready { medium: self.medium(volume)?, held: Some(directory.into()) })
    }

    fn medium(&self, volume: &Volume) -> Result<Medium, Error> {
        Ok(Medium::Directory(self.place.of(volume.id.as_str())))
    }

    fn set_content(&self, volume: &Volume, content: Content, tried: &str) -> Result<(), Error> {
        if content == volume.content {
            return Ok(());
        }
        Err(self.cannot(tried, "change what is on a volume"))
    }

    fn usage(&self, volume: &Volume) -> Result<Option<VolumeUsage>, Error> {
        let tried = format!("measure volume {}", volume.id);
        let filesystem = quota::usage_of(self.root.as_fd(), &tried)?;
        let record = self.must_be_ready(&volume.id, &tried)?;
        Ok(Some(match (&self.quotas, record.project()) {
            (Some(quotas), Some(project)) => {
                quota::usage_in(filesystem, &quotas.usage(project)?, record.size())
            }
            // Without a limit it has what the filesystem has.
            _ => filesystem,
        }))
    }

    fn health(&self, volume: &Volume) -> Result<Vec<HealthIssue>, Error> {
        let mut issues = self.pool_health()?;
        match self.directory(&volume.id, &format!("tell the health of volume {}", volume.id)) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let message =
                    format!("its directory {} is gone", self.path.join(volume.id.as_str()).display());
                issues.push(HealthIssue::new(Severity::DataLoss, "DirectoryMissing", message));
            }
            Err(error) => {
                issues.push(HealthIssue::new(Severity::Inaccessible, "DirectoryUnusable", error.to_string()));
            }
        }
        Ok(issues)
    }

    fn pool_health(&self) -> Result<Vec<HealthIssue>, Error> {
        Ok(match self.still_enforced() {
            Ok(()) => Vec::new(),
            Err(error) => vec![HealthIssue::new(Severity::Degraded, "QuotaNotEnforced", error.to_string())],
        })
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        let (total, available) = self.room()?;
        Ok(Capacity { total, available, largest: available, minimum: UNIT })
    }
}

/// The name of a volume's directory while it is no volume, in the folder of the records.
fn aside(id: &VolumeId) -> CString {
    // An id holds no zero byte.
    CString::new(format!("{id}.dir")).unwrap_or_default()
}
