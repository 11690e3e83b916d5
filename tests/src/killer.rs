//! A group whose worker can be killed at any of its kernel calls.
//!
//! `strace` starts the worker and kills it at its `k`-th ioctl. A script in the worker's place decides, at the start of
//! each worker, whether this one is counted, killed or left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::dm::{Activity, Dm};
use lvm::metadata::Vg;
use lvm::ops::{Group, NewGroup, OldContent};
use lvm::worker::host::HostSettings;
use lvm::{DevicePath, Effect, Error, Kind, Lvm, Tag, VgName};
use tempfile::TempDir;

use crate::workers::worker_binary;
use crate::{Disk, eventually, tool};

/// The tag of what the tests own.
pub const OWNER: &str = "gabion.dev/owner=kill-sweep";

/// Ioctls that change nothing. Whatever is not named here counts as a change.
const ONLY_READS: [&str; 17] = [
    "DM_VERSION",
    "DM_LIST_DEVICES",
    "DM_LIST_VERSIONS",
    "DM_GET_TARGET_VERSION",
    "DM_DEV_STATUS",
    "DM_TABLE_STATUS",
    "DM_TABLE_DEPS",
    "BLKGETSIZE",
    "BLKGETSIZE64",
    "BLKSSZGET",
    "BLKBSZGET",
    "BLKPBSZGET",
    "BLKALIGNOFF",
    "BLKIOMIN",
    "BLKIOOPT",
    "BLKROGET",
    "BLKDISCARDZEROES",
];
/// The other system calls by which a worker changes anything that a recovery could find.
const CHANGING: &str = "write,pwrite64,writev,pwritev,io_submit,semget,semop,semctl,unlink,unlinkat,rename,renameat,\
                        mkdir,mknod,symlink,fallocate,ftruncate,kill";

/// A group on loop devices, in an LVM of its own.
#[derive(Debug)]
pub struct Killer {
    dir: TempDir,
    disks: Vec<Disk>,
    group: Group,
}

/// How an operation ended whose worker was to be killed.
#[derive(Debug)]
pub enum Ended {
    /// The worker was killed.
    Killed,
    /// The operation was over before the worker came so far.
    Finished,
}

impl Killer {
    /// A group `v` on so many disks.
    ///
    /// # Errors
    ///
    /// If the disks or the group cannot be made.
    pub fn new(disks: usize, size: Bytes) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("gabion-kill-").tempdir()?;
        let disks = (0..disks).map(|_| Disk::new(size)).collect::<Result<Vec<_>>>()?;
        write_script(dir.path())?;
        let lvm = handle(dir.path(), &disks, &worker_binary()?)?;
        let paths = disks.iter().map(|disk| DevicePath::new(disk.path())).collect::<Result<Vec<_>, _>>()?;
        let new = NewGroup::new(VgName::new("v")?, paths)
            .old_content(OldContent::Refuse)
            .tag(OWNER.parse::<Tag>()?);
        let group = lvm.create_group(&new)?.into_inner();
        Ok(Self { dir, disks, group })
    }

    /// The group, through workers that nobody kills.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group's metadata.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn look(&self) -> Result<Vg> {
        Ok(self.group.look()?)
    }

    /// The disks.
    #[must_use]
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// A file in the directory of this test.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What a worker asks of the kernel before its first command.
    ///
    /// # Errors
    ///
    /// If no worker could be traced.
    pub fn start_calls(&self) -> Result<Calls> {
        self.trace(|group| {
            let pool = group.lvm().workers().context("no pool")?;
            crate::workers::must(pool, &["version"]).map(drop)
        })
    }

    /// What a worker asks of the kernel in all that carries out `act`, which must succeed.
    ///
    /// # Errors
    ///
    /// If `act` fails.
    pub fn calls(&self, act: impl FnOnce(&Group) -> Result<()>) -> Result<Calls> {
        self.trace(act)
    }

    fn trace(&self, act: impl FnOnce(&Group) -> Result<()>) -> Result<Calls> {
        fs::write(self.path("count"), "")?;
        let group = self.victim()?;
        act(&group)?;
        let pool = group.lvm().workers().context("no pool")?;
        ensure!(pool.drain(crate::workers::PATIENCE), "the traced worker did not end");
        let log = fs::read_to_string(self.path("strace.log"))?;
        Ok(Calls::of(&log))
    }

    /// Carries out `act` with a worker that is killed at its `k`-th ioctl, and returns the handle that saw it die.
    ///
    /// # Errors
    ///
    /// If `act` ends in any other way than by success or by a crash of unknown effect.
    pub fn kill_at(&self, k: usize, act: impl FnOnce(&Group) -> Result<(), Error>) -> Result<(Group, Ended)> {
        fs::write(self.path("kill"), k.to_string())?;
        let group = self.victim()?;
        let ended = match act(&group) {
            Ok(()) => Ended::Finished,
            Err(error) if error.kind() == Kind::Crashed && error.effect() == Effect::Unknown => Ended::Killed,
            Err(error) => {
                return Err(error).with_context(|| format!("killed at ioctl {k}, and it says otherwise"));
            }
        };
        ensure!(!self.path("kill").exists(), "no worker was started at all");
        Ok((group, ended))
    }

    /// Stops what runs of the group as the end of the machine does it: nothing of it is in the kernel any more, and no table
    /// that was not in use yet has come into use.
    ///
    /// # Errors
    ///
    /// If a device stays.
    pub fn stop_everything(&self) -> Result<()> {
        let dm = Dm::open()?;
        tool::run("dmsetup", ["udevcomplete_all", "--yes"])?;
        for device in dm.vg_devices(&self.group.uuid())? {
            let info = dm.info(device.device.number)?;
            let name = info.name.to_string();
            if info.has_inactive_table {
                tool::run("dmsetup", ["clear", &name])?;
            }
            if info.activity == Activity::Suspended && info.has_live_table {
                tool::run("dmsetup", ["resume", &name])?;
            }
        }
        eventually("nothing of the group runs", crate::workers::PATIENCE, || {
            let devices = dm.vg_devices(&self.group.uuid()).unwrap_or_default();
            let numbers = devices.iter().filter_map(|device| dm.info(device.device.number).ok());
            numbers.filter(|info| info.open_count == 0).for_each(|info| {
                let _ = tool::run("dmsetup", ["remove", &info.name.to_string()]);
            });
            devices.is_empty()
        });
        Ok(())
    }

    /// A handle that knows nothing of what others did: a program that starts anew.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn second_handle(&self) -> Result<Lvm> {
        handle(self.dir.path(), &self.disks, &worker_binary()?)
    }

    /// The group through a handle of its own, whose next worker is the script's to decide about.
    fn victim(&self) -> Result<Group> {
        let lvm = handle(self.dir.path(), &self.disks, &self.path("worker.sh"))?;
        Ok(lvm.group_by_uuid(self.group.uuid())?)
    }
}

/// A worker's ioctls, by their number from 1 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many there are.
    pub ioctls: usize,
    /// Those before which anything was changed since the ioctl before them: a kill at any other finds the devices, the
    /// metadata and the cookies as a kill at the ioctl before it does.
    pub distinct: Vec<usize>,
    /// The messages to targets.
    pub messages: Vec<usize>,
}

impl Calls {
    fn of(log: &str) -> Self {
        let mut calls = Self::default();
        let mut changed = true;
        for line in log.lines() {
            let Some(request) = line.split_once("ioctl(").map(|(_, arguments)| arguments) else {
                changed |= line.contains('(');
                continue;
            };
            calls.ioctls += 1;
            if changed {
                calls.distinct.push(calls.ioctls);
            }
            if names(request, "DM_TARGET_MSG") {
                calls.messages.push(calls.ioctls);
            }
            changed = !ONLY_READS.iter().any(|name| names(request, name));
        }
        calls
    }
}

/// Whether an ioctl's arguments name this request, alone or as one of those that share its number.
fn names(arguments: &str, request: &str) -> bool {
    let words = || arguments.split([',', ' ', '(', ')']);
    words().any(|word| word == request)
}

impl Drop for Killer {
    fn drop(&mut self) {
        if let Err(error) = self.group.deactivate() {
            eprintln!("deactivate group v: {error:#}");
        }
    }
}

fn handle(dir: &Path, disks: &[Disk], worker: &Path) -> Result<Lvm> {
    let paths = disks.iter().map(|disk| DevicePath::new(disk.path())).collect::<Result<Vec<_>, _>>()?;
    let host = HostSettings { locking_dir: dir.join("lock"), ..HostSettings::default() };
    let lvm = Lvm::builder()
        .devices(paths)
        .owner(OWNER.parse()?)
        .run_dir(dir.join("run"))
        .backup_dir(dir.join("backup"))
        .host(host)
        .worker(worker)
        .build()?;
    Ok(lvm)
}

fn write_script(dir: &Path) -> Result<()> {
    let script = format!(
        "#!/bin/sh\n\
         cd {dir}\n\
         trace='strace -qq -o strace.log -e trace='\n\
         if k=$(cat kill 2>/dev/null); then \
         rm kill; exec ${{trace}}ioctl -e inject=ioctl:signal=SIGKILL:when=$k {worker}; fi\n\
         if rm count 2>/dev/null; then exec ${{trace}}ioctl,{changing} {worker}; fi\n\
         exec {worker}\n",
        dir = dir.display(),
        changing = CHANGING,
        worker = worker_binary()?.display(),
    );
    let path = dir.join("worker.sh");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_ioctl_after_a_change_is_a_point_of_its_own() {
        let log = "ioctl(3, DM_VERSION, {version=4.0.0}) = 0\n\
                   ioctl(3, DM_DEV_STATUS, {name=\"v-x\"}) = -1 ENXIO\n\
                   ioctl(3, DM_DEV_CREATE, {name=\"v-x\"}) = 0\n\
                   ioctl(3, DM_TABLE_LOAD, {name=\"v-x\"}) = 0\n\
                   ioctl(4, BLKGETSIZE64, [4096]) = 0\n\
                   ioctl(4, BLKGETSIZE64, [4096]) = 0\n\
                   io_submit(0x7f, 1, [{}]) = 1\n\
                   ioctl(4, BLKROGET, [0]) = 0\n\
                   ioctl(4, BLKROGET, [0]) = 0\n\
                   ioctl(3, DM_TARGET_MSG, {name=\"v-pool-tpool\"}) = 0\n\
                   +++ exited with 0 +++\n";
        let expected = Calls { ioctls: 9, distinct: vec![1, 4, 5, 7], messages: vec![9] };
        assert_eq!(Calls::of(log), expected);
    }
}
