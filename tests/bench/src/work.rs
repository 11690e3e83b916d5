//! What the library does in each case, in the measuring process or in a traced one.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use devices::Bytes;
use lvm::dm::{Dm, ThinPoolStatus};
use lvm::metadata::{Reader, View};
use lvm::ops::{Change, Group, NewThin, NewVolume, OnRemove, SizeRange};
use lvm::run::{Request, ReturnCode, Runner, Scope};
use lvm::{LvName, Lvm, Uuid};

use crate::changes::{Durability, Kind, Step};
use crate::site::Site;

/// Size of the volumes that are made.
pub(crate) const VOLUME: Bytes = Bytes::mib(64);
/// The thin pool of a live site.
pub(crate) const POOL: &str = "pool";
/// How long a command may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// One piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// List the volumes with a reader that has read nothing yet
    ListFirst,
    /// List the volumes again, with nothing changed
    ListAgain,
    /// Total and free bytes of the group, again, with nothing changed
    Capacity,
    /// Fill of the thin pool
    Fill,
    /// Make linear volumes, with all that makes it safe
    MakeLinear,
    /// Remove them
    RemoveLinear,
    /// Make thin volumes, with all that makes it safe
    MakeThin,
    /// Remove them
    RemoveThin,
}

/// A process's parts of the library, kept from one piece of work to the next as a program would.
pub(crate) struct Library<'a> {
    site: &'a Site,
    reader: Reader,
    lvm: Lvm,
    group: Group,
    scope: Scope,
    pool: Option<(Dm, Uuid, Uuid)>,
}

impl<'a> Library<'a> {
    pub(crate) fn start(site: &'a Site) -> Result<Self> {
        let reader = Reader::new(site.devices().iter().cloned(), site.reader_options());
        let view = reader.read();
        let vg = view.vg(site.vg()).context("the group is not there")?;
        let lvm = site.handle()?;
        let group = lvm.group(&vg.name)?;
        let scope = Scope::Vg { name: vg.name.clone(), uuid: vg.uuid };
        let pool = match vg.lv(POOL) {
            Some(pool) => Some((Dm::open()?, vg.uuid, pool.uuid)),
            None => None,
        };
        Ok(Self { site, reader, lvm, group, scope, pool })
    }

    /// Does a piece of work for the `nth` time.
    pub(crate) fn labour(&mut self, work: Work, nth: u32) -> Result<()> {
        match work {
            Work::ListFirst => {
                let fresh = Reader::new(self.site.devices().iter().cloned(), self.site.reader_options());
                self.list(&fresh.read())
            }
            Work::ListAgain => self.list(&self.reader.read()),
            Work::Capacity => self.capacity(),
            Work::Fill => self.fill(),
            Work::MakeLinear => self.safely(Kind::Linear, Step::Create, &volume(nth)?),
            Work::RemoveLinear => self.safely(Kind::Linear, Step::Remove, &volume(nth)?),
            Work::MakeThin => self.safely(Kind::Thin, Step::Create, &volume(nth)?),
            Work::RemoveThin => self.safely(Kind::Thin, Step::Remove, &volume(nth)?),
        }
    }

    fn list(&self, view: &View) -> Result<()> {
        let vg = view.vg(self.site.vg()).context("the group is not there")?;
        for lv in vg.visible_lvs() {
            black_box((&lv.name, lv.uuid, &lv.tags, lv.extents()));
        }
        ensure!(vg.lvs.len() == crate::reads::VOLUMES, "{} volumes were read", vg.lvs.len());
        Ok(())
    }

    fn capacity(&self) -> Result<()> {
        let view = self.reader.read();
        let vg = view.vg(self.site.vg()).context("the group is not there")?;
        let bytes = |extents| vg.extent_size.span(extents).context("more bytes than can be");
        black_box((bytes(vg.total_extents())?, bytes(vg.free_extents())?));
        Ok(())
    }

    fn fill(&self) -> Result<()> {
        let (dm, vg, pool) = self.pool.as_ref().context("there is no pool here")?;
        match dm.pool_status(vg, pool)? {
            Some(ThinPoolStatus::Working(used)) => {
                black_box((used.data, used.metadata));
                Ok(())
            }
            other => bail!("the pool says {other:?}"),
        }
    }

    /// One step by the library's own operation: created means tagged, wiped or checked, and handed out.
    pub(crate) fn safely(&self, kind: Kind, step: Step, name: &LvName) -> Result<()> {
        let size = SizeRange::at_least(VOLUME);
        match (step, kind) {
            (Step::Create, Kind::Linear) => {
                made(&self.group.create_volume(&NewVolume::new(name.clone(), size))?)
            }
            (Step::Create, Kind::Thin) => {
                made(&self.group.create_thin(&NewThin::new(POOL.parse()?, name.clone(), size))?)
            }
            (Step::Extend, _) => {
                let twice =
                    SizeRange::at_least(VOLUME.checked_add(VOLUME).context("more bytes than can be")?);
                made(&self.group.extend_volume(name, twice, &[])?)
            }
            (Step::Remove, _) => made(&self.group.remove_volume(name, OnRemove::Keep)?),
            (Step::Tag, _) => bail!("the library tags within its creation"),
        }
    }

    /// One command in a worker, by the words that a spawned one would get.
    pub(crate) fn command(&self, words: &[String], durability: Durability) -> Result<()> {
        let workers = self.lvm.workers().context("the handle has no worker pool")?;
        let reply = workers.run(&Request {
            scope: self.scope.clone(),
            tried: words.join(" "),
            argv: words.to_vec(),
            deadline: DEADLINE,
            flush: match durability {
                Durability::Flushed => self.site.devices().to_vec(),
                Durability::AsLvmDoes => Vec::new(),
            },
        })?;
        ensure!(reply.code == ReturnCode::Succeeded, "{}: {:?}", words.join(" "), reply.records);
        Ok(())
    }
}

fn made<T>(change: &Change<T>) -> Result<()> {
    ensure!(change.is_made(), "everything was so already, so nothing was measured");
    Ok(())
}

/// The name of the `nth` volume that is made.
pub(crate) fn volume(nth: u32) -> Result<LvName> {
    Ok(format!("v{nth}").parse()?)
}
