//! Everything that changes something.

mod group;
mod pool;
mod volume;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use lvm::metadata::{Problem, Vg};
use lvm::ops::{Change, Group};
use lvm::worker::conf::AutoExtend;
use lvm::worker::host::{HOST_DIR, HostSettings};
use lvm::{DevicePath, Error, Kind, LvName, Lvm, LvmBuilder, Tag, VgName};
use serde::Serialize;

use crate::host::{Host, OWNER};
use crate::output::Output;
use crate::pools::{self, Pool};
use crate::progress;
use crate::volumes::{self, Volume};

pub(crate) use group::run as run_group;
pub(crate) use pool::run as run_pool;
pub(crate) use volume::run as run_volume;

/// Fill at which pools that are activated here give a sign, and by how much they grow then.
const AUTO_EXTEND: AutoExtend = AutoExtend { threshold: 80, by: 20 };

/// What holds for every change of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long to wait for one command of LVM.
    pub(crate) timeout: Duration,
}

/// Whether a result that was there already is a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Allowed,
    Refused,
}

impl Repeat {
    const fn allowed_if(flag: bool) -> Self {
        if flag { Self::Allowed } else { Self::Refused }
    }
}

/// What a change gave, for programs: what there is now, as `pools` and `volumes` show it.
#[derive(Debug, Default, Serialize)]
struct Done {
    /// Whether anything was changed.
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<Volume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Pool>,
}

/// Tells a person in `text`, or a program in `done`.
fn tell(output: &mut Output<'_>, text: &str, done: &Done) -> Result<()> {
    output.show(done, |_, _| format!("{text}\n"))
}

/// The owner's tag.
fn owner() -> Result<Tag, Error> {
    OWNER.parse().map_err(|cause: lvm::NameError| {
        Error::new(Kind::InvalidArgument, "use the owner's tag")
            .with_answer(cause.to_string())
            .with_source(cause)
    })
}

/// A handle on exactly these devices, that changes only what is ours.
fn handle(devices: Vec<DevicePath>, settings: Settings) -> Result<Lvm, Error> {
    builder(devices, settings, Path::new(HOST_DIR))?.owner(owner()?).build()
}

/// A handle on exactly these devices, that changes whatever is asked; for taking things over.
fn handle_of_anybody(devices: Vec<DevicePath>, settings: Settings) -> Result<Lvm, Error> {
    builder(devices, settings, Path::new(HOST_DIR))?.build()
}

/// With the locks and the system id of LVM on this host, as its own configuration has them.
fn builder(devices: Vec<DevicePath>, settings: Settings, lvm: &Path) -> Result<LvmBuilder, Error> {
    let host = HostSettings::read(lvm)?;
    Ok(Lvm::builder().devices(devices).auto_extend(AUTO_EXTEND).deadline(settings.timeout).host(host))
}

/// The devices of a group that are here.
fn devices_of(vg: &Vg) -> Result<Vec<DevicePath>, Error> {
    vg.pvs.iter().filter_map(|pv| pv.device.as_ref()).map(|device| DevicePath::new(&device.path)).collect()
}

/// A group to change: seen by LVM with exactly its own devices and `more`.
fn group(
    host: &Host,
    name: &VgName,
    more: &[DevicePath],
    settings: Settings,
    tried: &str,
) -> Result<Group, Error> {
    let vg = host.vg(name.as_str(), tried)?;
    unambiguous(host, vg, tried)?;
    let mut devices = devices_of(vg)?;
    devices.extend(more.iter().filter(|device| !devices.contains(device)).cloned().collect::<Vec<_>>());
    handle(devices, settings)?.group_by_uuid(vg.uuid)
}

/// LVM sees the group's own devices alone, so a copy of one elsewhere on this host must be noticed here.
fn unambiguous(host: &Host, vg: &Vg, tried: &str) -> Result<(), Error> {
    let twice = host.view.problems.iter().find(|problem| match problem {
        Problem::DuplicatePv { pv, .. } | Problem::ClaimedTwice { pv, .. } => vg.pv(*pv).is_some(),
        _ => false,
    });
    twice.map_or(Ok(()), |problem| {
        Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(problem.to_string())
            .with_advice("`gabion doctor` says what to do"))
    })
}

/// What was found made already is an error, unless that was allowed.
fn made<T>(change: Change<T>, repeat: Repeat, tried: &str) -> Result<(bool, T), Error> {
    match change {
        Change::Made(now) => Ok((true, now)),
        Change::Already(now) if repeat == Repeat::Allowed => Ok((false, now)),
        Change::Already(_) => Err(Error::new(Kind::AlreadyExists, tried)
            .with_answer("it is there already, and is as asked")
            .with_advice("add --if-absent where that is a success")),
    }
}

/// The volume as the lists show it.
fn volume_now(group: &Group, name: &LvName) -> Result<Option<Volume>, Error> {
    let host = Host::read()?;
    let vg = host.view.vg_by_uuid(group.uuid());
    Ok(vg.and_then(|vg| Some(volumes::volume(&host, vg, vg.lv(name.as_str())?))))
}

/// The group, or a thin pool in it, as the lists show it.
fn pool_now(group: &Group, pool: Option<&LvName>) -> Result<Option<Pool>, Error> {
    let host = Host::read()?;
    let Some(vg) = host.view.vg_by_uuid(group.uuid()) else { return Ok(None) };
    let wanted = pool.map_or_else(|| vg.name.to_string(), |pool| format!("{}/{pool}", vg.name));
    Ok(pools::of_group(&host, vg).into_iter().find(|pool| pool.name == wanted))
}

/// Waits until the copies of a volume, or of all volumes of the group, are in step.
fn wait_for_sync(group: &Group, name: Option<&LvName>) -> Result<(), Error> {
    let begun = Instant::now();
    progress::until_done(|| {
        let host = Host::read()?;
        let Some(vg) = host.view.vg_by_uuid(group.uuid()) else { return Ok(None) };
        let lvs = vg.lvs.iter().filter(|lv| name.is_none_or(|name| lv.name == *name));
        let lagging = lvs.filter_map(|lv| Some((lv, volumes::sync_of(&host, vg, lv)?))).next();
        Ok(lagging.map(|(lv, (done, whole))| {
            let part = pools::percent(done.get(), whole.get());
            format!("{}/{}: copies in step {part}, {} s", vg.name, lv.name, begun.elapsed().as_secs())
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hosts_own_lvm_is_told_about_locks_and_system_ids_holds_here_too() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { timeout: Duration::from_secs(1) };
        let built = || builder(Vec::new(), settings, dir.path());
        let plain = format!("{:?}", built().unwrap());
        std::fs::write(
            dir.path().join("lvm.conf"),
            "global { locking_dir = \"/run/other\" system_id_source = \"uname\" }",
        )
        .unwrap();
        let told = format!("{:?}", built().unwrap());
        assert!(
            told.contains("/run/other") && told.contains("uname") && !plain.contains("/run/other"),
            "{told}"
        );
        std::fs::write(dir.path().join("lvm.conf"), "global { locking_dir = ").unwrap();
        assert_eq!(built().unwrap_err().kind(), Kind::InvalidArgument);
    }
}
