//! How full a thin pool is.

use std::time::Duration;

use anyhow::Result;
use devices::Bytes;
use lvm::ops::{NewPool, PoolSize, SizeRange};

use crate::reads::compare;
use crate::report::Report;
use crate::site::Site;
use crate::work::{POOL, Work};

/// Makes the site's pool.
pub(crate) fn make_pool(site: &Site) -> Result<()> {
    let group = site.handle()?.group(&site.vg().parse()?)?;
    let size = PoolSize::Data(SizeRange::at_least(Bytes::gib(2)));
    let _ = group.create_pool(&NewPool::new(POOL.parse()?, size))?;
    Ok(())
}

/// Compares asking the kernel for the pool's fill with both commands that tell it.
pub(crate) fn run(report: &mut Report, site: &Site, budget: Duration) -> Result<()> {
    let mut lvs = site.command("lvm")?;
    lvs.args(["lvs", "--reportformat", "json", "-o", "data_percent,metadata_percent"]);
    lvs.arg(format!("{}/{POOL}", site.vg()));
    let name = "fill of a thin pool";
    compare(report, budget, site, name, &mut lvs, Work::Fill)?;
    let mut dmsetup = site.command("dmsetup")?;
    dmsetup.args(["status", "--noflush", &format!("{}-{POOL}", site.vg())]);
    compare(report, budget, site, name, &mut dmsetup, Work::Fill)
}
