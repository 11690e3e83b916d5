//! Recovery on this host: the kernel's devices, the metadata on the disks, and a worker for what has to be changed.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use devices::Sectors;

use super::cookie;
use super::live::{LiveDevice, live_devices};
use super::lock::GroupLock;
use super::order::{Act, Order, World, still_closed};
use super::report::{GroupResult, Recovered, Step};
use crate::dm::Dm;
use crate::durable::with_metadata;
use crate::metadata::Vg;
use crate::ops::Guard;
use crate::run::{Flush, Reply, Request, ReturnCode, Runner, Scope};
use crate::thin_meta::release_left;
use crate::worker::conf::Activation;
use crate::worker::table::{Access, TableChange, TableStep};
use crate::worker::{Recover, StillClosed};
use crate::{Error, Kind, LvName, MetadataSource, Settings, Tag, Uuid, VgName, classify};

/// How long one step of a recovery is waited for.
const DEADLINE: Duration = Duration::from_secs(120);
/// How long another program's command may hold the group.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// Recovers groups for a [`Pool`](crate::worker::Pool) whose worker died, and at start-up.
///
/// It keeps the last report of each group.
#[derive(Debug)]
pub struct Recoverer {
    source: Arc<dyn MetadataSource>,
    settings: Arc<Settings>,
    locking_dir: PathBuf,
    reports: Mutex<HashMap<Uuid, Recovered>>,
}

impl Recoverer {
    /// A recoverer that reads metadata from `source` and takes LVM's locks in `locking_dir`.
    #[must_use]
    pub fn new(
        source: Arc<dyn MetadataSource>,
        settings: Arc<Settings>,
        locking_dir: impl Into<PathBuf>,
    ) -> Self {
        Self { source, settings, locking_dir: locking_dir.into(), reports: Mutex::default() }
    }

    /// What the last recovery of a group did and left.
    #[must_use]
    pub fn last_report(&self, vg: Uuid) -> Option<Recovered> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).get(&vg).cloned()
    }

    /// Brings a group in order as far as that can be done without a person.
    ///
    /// # Errors
    ///
    /// [`Kind::Inconsistent`] if something is left that closes the group, with all that is left and what failed;
    /// [`Kind::Busy`] if another program holds the group's lock; [`Kind::Unsupported`] if device-mapper is not there;
    /// what the
    /// worker says, with [`Effect::Unknown`](crate::Effect::Unknown) if it died once more.
    pub fn recover_group(&self, vg: Uuid, name: &VgName, runner: &dyn Runner) -> Result<Recovered, Error> {
        let scope = Scope::Vg { name: name.clone(), uuid: vg };
        let host = Host { recoverer: self, runner, dm: self.dm()?, scope };
        let mut report = Order::carry_out(&host, vg, name)?;
        host.drop_cookies(&mut report);
        let result = if report.is_open() { Ok(report.clone()) } else { Err(still_closed(name, &report)) };
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).insert(vg, report);
        result
    }

    /// The kernel's device-mapper; none where only metadata are changed, and a killed command leaves nothing else.
    fn dm(&self) -> Result<Option<Dm>, Error> {
        if self.settings.activation == Activation::MetadataOnly { Ok(None) } else { Dm::open().map(Some) }
    }

    /// As [`Recoverer::recover_group`] for every group that is ours, with the thin pools' held metadata snapshots
    /// released: for the start of a program, which knows of no worker that died.
    ///
    /// # Errors
    ///
    /// Of reading the metadata; each group has its own result.
    pub fn recover_all(&self, runner: &dyn Runner) -> Result<Vec<GroupResult>, Error> {
        let view = self.source.view()?;
        let owner = self.settings.owner.as_ref();
        let ours = view.vgs.iter().filter(|vg| owner.is_none_or(|owner| vg.has_tag(owner.as_str())));
        let recover = |vg: &Vg| {
            let recovered = self.recover_group(vg.uuid, &vg.name, runner).and_then(|mut report| {
                if let Some(dm) = self.dm()? {
                    release_held(&dm, vg, &mut report)?;
                }
                Ok(report)
            });
            GroupResult { name: vg.name.clone(), uuid: vg.uuid, result: recovered }
        };
        Ok(ours.map(|vg| recover(vg)).collect())
    }
}

/// Has each pool drop the snapshot of its metadata that an earlier process left held; one that is being read stays.
fn release_held(dm: &Dm, vg: &Vg, report: &mut Recovered) -> Result<(), Error> {
    for device in live_devices(dm, &vg.uuid)?.into_iter().filter(|device| device.holds_metadata) {
        let Some(pool) = vg.lv_by_uuid(device.serves.lv) else { continue };
        if release_left(dm, &vg.uuid, &pool.uuid)? {
            report.steps.push(Step::ReleasedMetadata { pool: pool.name.clone() });
        }
    }
    Ok(())
}

impl Recover for Recoverer {
    fn recover(&self, scope: &Scope, runner: &dyn Runner) -> Result<Vec<StillClosed>, Error> {
        match scope {
            Scope::Vg { name, uuid } | Scope::Whole { name, uuid } => {
                self.recover_group(*uuid, name, runner).map(|_| Vec::new())
            }
            Scope::Free | Scope::Alone => {
                let closed = |group: GroupResult| {
                    let scope = Scope::Vg { name: group.name, uuid: group.uuid };
                    group.result.err().map(|error| StillClosed { scope, error })
                };
                Ok(self.recover_all(runner)?.into_iter().filter_map(closed).collect())
            }
        }
    }
}

/// One group on this host.
struct Host<'a> {
    recoverer: &'a Recoverer,
    runner: &'a dyn Runner,
    dm: Option<Dm>,
    scope: Scope,
}

impl Host<'_> {
    fn change_tables(&self, tried: &str, steps: Vec<TableStep>) -> Result<(), Error> {
        let change =
            TableChange { scope: self.scope.clone(), tried: tried.to_owned(), steps, deadline: DEADLINE };
        succeeded(tried, &self.runner.change_tables(&change)?)
    }

    /// Nothing waits for such a cookie, so that one which cannot be removed is a failure to tell, and no more.
    fn drop_cookies(&self, report: &mut Recovered) {
        for cookie in cookie::left_behind() {
            match self
                .change_tables("remove a dead worker's udev cookie", vec![TableStep::DropCookie { cookie }])
            {
                Ok(()) => report.steps.push(Step::DroppedCookie { cookie }),
                Err(error) => report.failures.push(error.to_string()),
            }
        }
    }
}

fn succeeded(tried: &str, reply: &Reply) -> Result<(), Error> {
    if reply.code == ReturnCode::Succeeded { Ok(()) } else { Err(classify::failure(tried, reply)) }
}

impl World for Host<'_> {
    fn committed(&self, vg: Uuid) -> Result<Option<Vg>, Error> {
        Ok(self.recoverer.source.view()?.vg_by_uuid(vg).cloned())
    }

    fn live(&self, vg: Uuid) -> Result<Vec<LiveDevice>, Error> {
        self.dm.as_ref().map_or(Ok(Vec::new()), |dm| live_devices(dm, &vg))
    }

    fn lock(&self, vg: &VgName) -> Result<Box<dyn Any>, Error> {
        let tried = format!("recover group {vg}");
        let lock = GroupLock::take(&self.recoverer.locking_dir, vg, LOCK_PATIENCE, &tried)?;
        Ok(Box::new(lock))
    }

    fn change(&self, tried: &str, acts: &[Act]) -> Result<(), Error> {
        let step = |act: &Act| match act.clone() {
            Act::Clear(device) => TableStep::Clear { device },
            Act::Load { device, table } => TableStep::Load { device, table, access: Access::ReadWrite },
            Act::Resume(device) => TableStep::Resume { device },
            Act::Remove(device) => TableStep::Remove { device },
            Act::Message { device, text } => TableStep::Message { device, sector: Sectors::ZERO, text },
        };
        self.change_tables(tried, acts.iter().map(step).collect())
    }

    fn command(&self, tried: &str, words: &[&str]) -> Result<(), Error> {
        let request = Request {
            scope: self.scope.clone(),
            tried: tried.to_owned(),
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            deadline: DEADLINE,
            // The recovery flushes once, at its end.
            flush: Vec::new(),
        };
        succeeded(tried, &self.runner.run(&request)?)
    }

    fn flush(&self, tried: &str, vg: &Vg) -> Result<(), Error> {
        let flush = Flush {
            scope: self.scope.clone(),
            tried: tried.to_owned(),
            devices: with_metadata(vg),
            deadline: DEADLINE,
        };
        succeeded(tried, &self.runner.flush(&flush)?)
    }

    fn claim(&self, vg: Uuid, lv: &LvName) -> Result<Option<Box<dyn Any>>, Error> {
        let tried = format!("remove unfinished volume {lv}");
        match Guard::take(&self.recoverer.settings.run_dir, vg, lv, &tried) {
            Ok(guard) => Ok(Some(Box::new(guard))),
            Err(error) if error.kind() == Kind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn owner(&self) -> Option<&Tag> {
        self.recoverer.settings.owner.as_ref()
    }
}
