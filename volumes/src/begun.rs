//! PVs that were begun: a disk becomes a PV under an identity that was written down before.
//!
//! A kill between the making of a PV and that of its group leaves a PV of nobody, which looks like any other one. What has
//! an identity that is written down here was made by this node, of a disk that was found empty.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use devices::filesystem::Uuid as Random;
use lvm::metadata::OrphanPv;
use lvm::ops::NewPv;
use lvm::{DevicePath, Lvm, Uuid};

use crate::{Error, Kind};

/// The identities, one file each.
#[derive(Debug)]
pub(crate) struct BegunPvs {
    directory: PathBuf,
}

impl BegunPvs {
    /// Those in a directory, which is made when the first one is written down.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, pv: &Uuid) -> PathBuf {
        self.directory.join(pv.compact())
    }

    /// Whether a PV was begun here.
    pub(crate) fn has(&self, pv: &Uuid) -> bool {
        self.path(pv).is_file()
    }

    /// Makes a disk a PV whose identity is on the disk of the host before; one that was begun here stays as it is, and one
    /// that somebody else made since the disk was looked at is refused.
    pub(crate) fn make(&self, lvm: &Lvm, disk: &DevicePath) -> Result<(), Error> {
        let tried = format!("make {disk} a PV");
        let uuid: Uuid = Random::new_v4().simple().to_string().parse().map_err(|cause: lvm::UuidError| {
            Error::new(Kind::Internal, &tried).with_answer(cause.to_string()).with_source(cause)
        })?;
        self.write(&uuid, disk).map_err(|cause| {
            Error::system(&tried, cause).with_advice(format!("make {} writable", self.directory.display()))
        })?;
        let made = lvm.create_pv(&NewPv::new(disk.clone()).uuid(uuid))?;
        if made.is_made() {
            return Ok(());
        }
        self.forget(&uuid);
        let real = disk.as_path().canonicalize().map_err(|cause| Error::system(&tried, cause))?;
        let is_begun = |orphan: &OrphanPv| {
            self.has(&orphan.uuid) && orphan.device.path.canonicalize().is_ok_and(|path| path == real)
        };
        if lvm.view()?.orphans.iter().any(is_begun) {
            return Ok(());
        }
        Err(Error::new(Kind::Refused, tried)
            .with_answer("it became a PV meanwhile, which this node did not make")
            .with_advice("remove the PV (pvremove) if it may go, or take its path out of the class"))
    }

    fn write(&self, uuid: &Uuid, disk: &DevicePath) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut file = File::create_new(self.path(uuid))?;
        // For people: the name alone is what counts.
        writeln!(file, "{disk}")?;
        file.sync_all()?;
        for directory in [Some(self.directory.as_path()), self.directory.parent()].into_iter().flatten() {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }

    /// The PV is in a group, or was never made. What stays behind where this fails is an identity that nothing has.
    pub(crate) fn forget(&self, pv: &Uuid) {
        let _ = fs::remove_file(self.path(pv));
    }
}
