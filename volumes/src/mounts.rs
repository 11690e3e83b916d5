//! Handing volumes out: made ready at one place, shown at others, measured, and taken back.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use devices::filesystem::{self, Depth, Format, FsType, Inodes, MakeOptions, Record, State};
use devices::mount::{self, Access, Mount, MountOptions, MountTable, Present, Target, Unmounted, WhenBusy};
use devices::{Bytes, Change, DeviceNumber};

use crate::backend::{Backend, Medium};
use crate::class::DeviceClass;
use crate::lock::{Held, Lock};
use crate::{
    Content, Error, Kind, Mode, Node, Publish, Repair, Settings, Sharing, Stage, Volume, VolumeId, places,
};

/// How long a mount may stay busy before unmounting it is given up.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(10);
/// How long programs that check or make filesystems may take.
const TOOL_PATIENCE: Duration = Duration::from_secs(600);
/// How often mounts that lie on each other are taken off one place.
const STACKED_MAX: usize = 16;
/// Where new filesystems are mounted to get the mode of their root, in the directory of run files.
const NEW: &str = "new";

/// How full a published volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The volume's own size.
    pub size: Bytes,
    /// How full its filesystem is; `None` for a block device.
    pub usage: Option<VolumeUsage>,
}

/// How full a filesystem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeUsage {
    /// What it can hold.
    pub total: Bytes,
    /// What is in use.
    pub used: Bytes,
    /// What can still be written.
    pub available: Bytes,
    /// Its inodes, where it counts them.
    pub inodes: Option<Inodes>,
}

impl Node {
    /// Makes a volume ready: activates it, makes its filesystem if it has none yet, checks it, and mounts it. Already so
    /// is no error.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::InvalidArgument`] for a path or mount options that cannot be;
    /// [`Kind::FailedPrecondition`] when the volume's content does not fit the mode; [`Kind::Exists`] when something
    /// else is mounted there, or the same with another access; [`Kind::Refused`] when something is on the volume that
    /// nobody recorded; [`Kind::Busy`].
    pub fn stage(&self, request: &Stage) -> Result<Volume, Error> {
        let tried = format!("stage volume {} at {}", request.id, request.path.display());
        let _lock = self.lock(Held::Volume(&request.id), &tried)?;
        let pools = self.pools();
        let (backend, volume) = pools.find(&request.id, &tried)?;
        let ready = backend.ready(&volume, &tried)?;
        match (request.mode, &ready.medium) {
            (Mode::Block, Medium::Device(_)) => self.stage_block(backend, &volume, &tried)?,
            (Mode::Filesystem, Medium::Device(device)) => {
                self.stage_filesystem(backend, &volume, device, request, &tried)?;
            }
            (Mode::Filesystem, Medium::Directory(place)) => {
                let directory = ready.held.as_ref().map(AsFd::as_fd);
                self.stage_directory(backend, &volume, (&place.path, directory), request)?;
            }
            (Mode::Block, Medium::Directory(_)) => {
                return Err(backend.cannot(&tried, "hand out block devices"));
            }
        }
        drop(ready.held);
        self.hold_limits(backend, &volume)?;
        pools.find(&request.id, &tried).map(|(_, volume)| volume)
    }

    /// From here on nobody may format the volume: its content is its user's.
    fn stage_block(&self, backend: &dyn Backend, volume: &Volume, tried: &str) -> Result<(), Error> {
        match volume.content {
            Content::New => backend.set_content(volume, Content::Block, tried),
            Content::Block => Ok(()),
            Content::Formatting | Content::Filesystem(_) => Err(Error::new(Kind::FailedPrecondition, tried)
                .with_answer("it carries a filesystem, which was made for it when it was staged as one")
                .with_advice("hand it out as a filesystem, or copy it into another volume")),
        }
    }

    fn stage_filesystem(
        &self,
        backend: &dyn Backend,
        volume: &Volume,
        device: &Path,
        request: &Stage,
        tried: &str,
    ) -> Result<(), Error> {
        let target = self.target(&request.path)?;
        let fs = self.filesystem_for(backend.class(), volume, device, request, tried)?;
        let options = options_for(backend.class(), request)?;
        let is_mounted = matches!(target.present()?, Present::Mounted(_));
        if !is_mounted {
            if !matches!(volume.content, Content::Block) {
                self.ensure_filesystem(backend, volume, device, fs, tried)?;
            }
            // What is mounted elsewhere was checked before that.
            if mounted_device(&MountTable::read()?, device).is_none() {
                filesystem::check(device, fs, Depth::BeforeMount, TOOL_PATIENCE)?;
            }
        }
        let _ = target.make_directory()?;
        let _ = mount::mount(device, fs.as_str(), &options, &target)?;
        if options.access() == Access::ReadWrite {
            let _ = filesystem::grow_mounted(device, fs, &target)?;
        }
        Ok(())
    }

    /// Shows a directory where it was asked for, the one that was looked at and no other.
    fn stage_directory(
        &self,
        backend: &dyn Backend,
        volume: &Volume,
        (path, directory): (&Path, Option<BorrowedFd<'_>>),
        request: &Stage,
    ) -> Result<(), Error> {
        if let Content::Filesystem(has) = volume.content {
            not_another(request.fs_type, has)?;
        }
        let target = self.target(&request.path)?;
        let options = options_for(backend.class(), request)?;
        let _ = target.make_directory()?;
        let _ = match directory {
            Some(directory) => mount::bind_open(directory, path, &options, &target)?,
            None => mount::bind_with(path, &options, &target)?,
        };
        Ok(())
    }

    /// Which filesystem a volume has, or is to get.
    fn filesystem_for(
        &self,
        class: &DeviceClass,
        volume: &Volume,
        device: &Path,
        request: &Stage,
        tried: &str,
    ) -> Result<FsType, Error> {
        let has = match volume.content {
            Content::Filesystem(fs) => fs,
            Content::New | Content::Formatting => {
                let wanted = request.fs_type.or(volume.fs_type).or(class.spec.volume.fs_type);
                return Ok(wanted.unwrap_or(FsType::Ext4));
            }
            // A user of the block device may have made one, as virtual machines do. Nothing else is ever put there.
            Content::Block => filesystem::detect(device)?.map(|found| found.fs).ok_or_else(|| {
                Error::new(Kind::FailedPrecondition, tried)
                    .with_answer("it was used as a block device, and no filesystem that is known is on it")
                    .with_advice("hand it out as a block device")
            })?,
        };
        not_another(request.fs_type, has).map(|()| has)
    }

    fn ensure_filesystem(
        &self,
        backend: &dyn Backend,
        volume: &Volume,
        device: &Path,
        fs: FsType,
        tried: &str,
    ) -> Result<(), Error> {
        let class = backend.class();
        let uuid = self.settings().owner.filesystem_uuid(&volume.id)?;
        let mut format = Format::new(fs, uuid).with_patience(TOOL_PATIENCE);
        if class.spec.volume.fs_type.unwrap_or(FsType::Ext4) == fs {
            // The class's options are for its own filesystem.
            format = format.with_options(MakeOptions::parse(fs, &class.spec.volume.mkfs_options)?);
        }
        let content = volume.content;
        let mut record = OnVolume { node: self, backend, volume, device, tried, content, failed: None };
        let made = filesystem::ensure(device, &format, &mut record);
        // What the record could not be written for is told as it is: a pool may be back at the next try.
        match record.failed.take() {
            Some(error) => Err(error),
            None => Ok(made.map(drop)?),
        }
    }

    /// Shows a staged volume at another place. Already so is no error.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`]; [`Kind::FailedPrecondition`] when it is not staged there, or wanted alone and seen elsewhere;
    /// [`Kind::Exists`] when something else
    /// is at the target, or the same with another access; [`Kind::InvalidArgument`] for a path that cannot be;
    /// [`Kind::Busy`].
    pub fn publish(&self, request: &Publish) -> Result<Volume, Error> {
        let tried = format!("publish volume {} at {}", request.id, request.target.display());
        let _lock = self.lock(Held::Volume(&request.id), &tried)?;
        let pools = self.pools();
        let (backend, volume) = pools.find(&request.id, &tried)?;
        let ready = backend.ready(&volume, &tried)?;
        if request.sharing == Sharing::Alone {
            places::must_be_alone(&ready.medium, [&request.staging, &request.target], &tried)?;
        }
        match (request.mode, &ready.medium) {
            (Mode::Filesystem, medium) => {
                let shown = self.shows(&request.staging, medium)?;
                if !matches!(shown, Some(Shown::Filesystem(..) | Shown::Directory)) {
                    return Err(Error::new(Kind::FailedPrecondition, tried)
                        .with_answer(format!("it is not mounted at {}", request.staging.display()))
                        .with_advice("stage it there first"));
                }
                let target = self.target(&request.target)?;
                let _ = target.make_directory()?;
                let _ = mount::bind(&request.staging, request.access, &target)?;
            }
            (Mode::Block, Medium::Directory(_)) => {
                return Err(backend.cannot(&tried, "hand out block devices"));
            }
            (Mode::Block, Medium::Device(device)) => {
                if volume.content != Content::Block {
                    return Err(Error::new(Kind::FailedPrecondition, tried)
                        .with_answer("it was not staged as a block device")
                        .with_advice("stage it first"));
                }
                let target = self.target(&request.target)?;
                let _ = target.make_file()?;
                let _ = mount::bind_device(device, &target)?;
                if let Some(device) = ready.held {
                    self.kept_open().keep(&request.id, device, [request.target.clone()]);
                }
            }
        }
        Ok(volume)
    }

    /// Takes a volume away from one place, and removes the place. Nothing there is no error; the volume itself need not
    /// exist any more.
    ///
    /// # Errors
    ///
    /// [`Kind::Refused`] when something is there that was never a part of the volume; [`Kind::InUse`] when it cannot be
    /// unmounted; [`Kind::Busy`].
    pub fn unpublish(&self, id: &VolumeId, target: &Path) -> Result<(), Error> {
        let tried = format!("unpublish volume {id} at {}", target.display());
        let _lock = self.lock(Held::Volume(id), &tried)?;
        if let Some(place) = self.take_away(target, &tried)? {
            let _ = place.remove()?;
        }
        self.kept_open().release(id, target);
        Ok(())
    }

    /// Unmounts a volume from where it was staged; the place is its maker's. Nothing there is no error.
    ///
    /// # Errors
    ///
    /// As [`Node::unpublish`].
    pub fn unstage(&self, id: &VolumeId, path: &Path) -> Result<(), Error> {
        let tried = format!("unstage volume {id} at {}", path.display());
        let _lock = self.lock(Held::Volume(id), &tried)?;
        self.take_away(path, &tried).map(drop)
    }

    /// Takes everything off a place, and gives the place, if it is there.
    fn take_away(&self, path: &Path, tried: &str) -> Result<Option<Target>, Error> {
        let target = match Target::below(&self.settings().mount_base, path) {
            // The directory that held it is gone, and so is what was in it.
            Err(error) if error.kind() == devices::Kind::NotFound => return Ok(None),
            target => target?,
        };
        for _ in 0..STACKED_MAX {
            match mount::unmount(&target, WhenBusy::DetachIfSafe, UNMOUNT_PATIENCE)? {
                Change::Made(Unmounted::Gone | Unmounted::Detached) => {}
                Change::Already(_) => return Ok(Some(target)),
            }
        }
        Err(Error::new(Kind::Unavailable, tried)
            .with_answer("something is mounted there again and again")
            .with_advice("find out what does that, and try again"))
    }

    /// How full a volume is that is published or staged at a path.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the volume does not exist, or is not at that path.
    pub fn stats(&self, id: &VolumeId, path: &Path) -> Result<Stats, Error> {
        let tried = format!("measure volume {id} at {}", path.display());
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &tried)?;
        let Some(shown) = self.shows(path, &backend.medium(&volume)?)? else {
            return Err(Error::new(Kind::NotFound, tried).with_answer("it is not there"));
        };
        let usage = match shown {
            Shown::Block => None,
            Shown::Directory => backend.usage(&volume)?,
            Shown::Filesystem(target, _) => {
                let usage = filesystem::usage(&target)?;
                Some(VolumeUsage {
                    total: usage.total,
                    used: usage.used,
                    available: usage.available,
                    inodes: usage.inodes,
                })
            }
        };
        Ok(Stats { size: volume.size, usage })
    }

    /// Grows a volume's filesystem to the volume's size, where it is mounted at a path. A block device needs nothing.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the volume does not exist, or is not at that path; [`Kind::Busy`].
    pub fn expand_filesystem(&self, id: &VolumeId, path: &Path) -> Result<Volume, Error> {
        let tried = format!("grow the filesystem of volume {id} at {}", path.display());
        let _lock = self.lock(Held::Volume(id), &tried)?;
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &tried)?;
        let medium = backend.medium(&volume)?;
        match (self.shows(path, &medium)?, &medium) {
            (None, _) => Err(Error::new(Kind::NotFound, tried).with_answer("it is not there")),
            (Some(Shown::Filesystem(target, fs)), Medium::Device(device)) => {
                let _ = filesystem::grow_mounted(device, fs, &target)?;
                Ok(volume)
            }
            // A block device has none, and the limit of a directory was changed when the volume grew.
            (Some(_), _) => Ok(volume),
        }
    }

    /// Gives the blocks that no file of a mounted volume uses back to its pool, and tells how much that is.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] when the volume does not exist or is not mounted; [`Kind::FailedPrecondition`] when the disks
    /// below cannot discard.
    pub fn trim(&self, id: &VolumeId) -> Result<Bytes, Error> {
        let tried = format!("trim volume {id}");
        let pools = self.pools();
        let (backend, volume) = pools.find(id, &tried)?;
        let Medium::Device(device) = backend.medium(&volume)? else {
            return Err(backend.cannot(&tried, "trim volumes: they lie in a filesystem that others use too"));
        };
        let table = MountTable::read()?;
        let Some(mount) = mounted_device(&table, &device) else {
            return Err(Error::new(Kind::NotFound, tried).with_answer("it is not mounted"));
        };
        Ok(filesystem::trim(&Target::new(&mount.mount_point)?, Bytes::ZERO)?)
    }

    fn target(&self, path: &Path) -> Result<Target, Error> {
        Ok(Target::below_with_parents(&self.settings().mount_base, path)?)
    }

    /// What of a volume is shown at a path.
    fn shows(&self, path: &Path, medium: &Medium) -> Result<Option<Shown>, Error> {
        let target = match Target::below(&self.settings().mount_base, path) {
            Err(error) if error.kind() == devices::Kind::NotFound => return Ok(None),
            target => target?,
        };
        let Present::Mounted(mount) = target.present()? else { return Ok(None) };
        let device = match medium {
            Medium::Device(device) => device,
            Medium::Directory(place) => return Ok(place.is_shown_by(&mount).then_some(Shown::Directory)),
        };
        let Ok(number) = number_of(device) else { return Ok(None) };
        if mount.block_device() == Some(number) {
            let fs = mount.fs_type.to_string_lossy().parse().map_err(Error::from)?;
            return Ok(Some(Shown::Filesystem(target, fs)));
        }
        let node = std::fs::metadata(path).ok().filter(|there| there.file_type().is_block_device());
        Ok(node.filter(|there| DeviceNumber::from_rdev(there.rdev()) == number).map(|_| Shown::Block))
    }
}

/// Takes down what a process left mounted that was killed while it made a filesystem; what another process makes at this
/// moment stays.
pub(crate) fn take_down_new(settings: &Settings) -> Vec<Repair> {
    let directory = settings.run_dir.join(NEW);
    // Without the directory nothing was ever made.
    let Ok(entries) = std::fs::read_dir(&directory) else { return Vec::new() };
    let mut repairs = Vec::new();
    for entry in entries.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<VolumeId>().ok()) else {
            continue;
        };
        let Ok(_lock) = Lock::take(&settings.lock_dir, Held::Volume(&id), "take down a new filesystem")
        else {
            continue;
        };
        let place = entry.path();
        let down = Target::below(&directory, &place).and_then(|target| {
            let _ = mount::unmount(&target, WhenBusy::Refuse, UNMOUNT_PATIENCE)?;
            target.remove()
        });
        let done = match down {
            Ok(_) => "taken down, left by a process that was killed while it made a filesystem".to_owned(),
            Err(error) => error.to_string(),
        };
        repairs.push(Repair { place: place.display().to_string(), done });
    }
    repairs
}

/// What of a volume is at a path.
#[derive(Debug)]
enum Shown {
    Filesystem(Target, FsType),
    Directory,
    Block,
}

/// The filesystem that a volume has is the one that is asked for, if one is.
fn not_another(wanted: Option<FsType>, has: FsType) -> Result<(), Error> {
    match wanted {
        Some(wanted) if wanted != has => {
            Err(Error::invalid("fs_type", format!("{wanted} was asked for, and the volume carries {has}")))
        }
        _ => Ok(()),
    }
}

/// The class's mount options and the caller's after them.
fn options_for(class: &DeviceClass, request: &Stage) -> Result<MountOptions, Error> {
    let all = class.spec.volume.mount_options.iter().chain(&request.mount_options);
    let mut options = MountOptions::parse(all).map_err(|error| Error::invalid("mount_options", error))?;
    if request.access == Access::ReadOnly {
        options = options.read_only();
    }
    Ok(options)
}

/// The number of a device's node.
pub(crate) fn number_of(device: &Path) -> Result<DeviceNumber, Error> {
    let there = std::fs::metadata(device)
        .map_err(|cause| Error::system(format!("look at {}", device.display()), cause))?;
    Ok(DeviceNumber::from_rdev(there.rdev()))
}

/// Where a device's filesystem is mounted.
pub(crate) fn mounted_device<'a>(table: &'a MountTable, device: &Path) -> Option<&'a Mount> {
    // A device that has no node is not mounted.
    let number = number_of(device).ok()?;
    table.of_device(number).next()
}

/// The record of a volume's filesystem, kept where its pool keeps such things.
struct OnVolume<'a> {
    node: &'a Node,
    backend: &'a dyn Backend,
    volume: &'a Volume,
    device: &'a Path,
    tried: &'a str,
    content: Content,
    /// Why the record could not be written.
    failed: Option<Error>,
}

impl OnVolume<'_> {
    fn record(&mut self, content: Content) -> Result<(), Error> {
        self.backend.set_content(self.volume, content, self.tried)?;
        self.content = content;
        Ok(())
    }

    /// Gives the new root directory its mode, before the filesystem counts as made: what is killed here is made again.
    fn set_root_mode(&self, fs: FsType) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt;
        let directory = self.node.settings().run_dir.join(NEW);
        std::fs::create_dir_all(&directory).map_err(|cause| Error::system(self.tried, cause))?;
        let place = directory.join(self.volume.id.as_str());
        let target = Target::below(&directory, &place)?;
        // Of an attempt that was killed.
        let _ = mount::unmount(&target, WhenBusy::Refuse, UNMOUNT_PATIENCE)?;
        let _ = target.make_directory()?;
        let _ = mount::mount(self.device, fs.as_str(), &MountOptions::new(), &target)?;
        let mode = std::fs::Permissions::from_mode(self.backend.class().spec.volume.root_mode.0);
        let changed =
            std::fs::set_permissions(&place, mode).map_err(|cause| Error::system(self.tried, cause));
        let _ = mount::unmount(&target, WhenBusy::Refuse, UNMOUNT_PATIENCE)?;
        let _ = target.remove()?;
        changed
    }
}

impl Record for OnVolume<'_> {
    fn state(&self) -> Result<State, devices::Error> {
        Ok(match self.content {
            Content::New => State::New,
            Content::Formatting => State::Formatting,
            Content::Filesystem(fs) => State::Made(fs),
            Content::Block => {
                return Err(devices::Error::new(devices::Kind::Foreign, self.tried)
                    .with_answer("it was used as a block device"));
            }
        })
    }

    fn set_state(&mut self, state: State) -> Result<(), devices::Error> {
        let done = match state {
            State::New => self.record(Content::New),
            State::Formatting => self.record(Content::Formatting),
            State::Made(fs) => self.set_root_mode(fs).and_then(|()| self.record(Content::Filesystem(fs))),
        };
        done.map_err(|error| {
            let told = devices::Error::new(devices::Kind::Other, self.tried).with_answer(error.to_string());
            self.failed = Some(error);
            told
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_taken_down_and_what_another_makes_stays() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new("o".parse().unwrap(), Vec::new()).below(dir.path());
        assert!(take_down_new(&settings).is_empty());
        let place = |id: &str| settings.run_dir.join(NEW).join(id);
        for id in ["left", "made"] {
            std::fs::create_dir_all(place(id)).unwrap();
        }
        let made = "made".parse().unwrap();
        let _lock = Lock::take(&settings.lock_dir, Held::Volume(&made), "t").unwrap();
        let repairs = take_down_new(&settings);
        assert_eq!(repairs.len(), 1, "{repairs:?}");
        assert!(!place("left").exists() && place("made").exists());
    }
}
