//! Thin pools.

use std::time::{Duration, Instant};

use anyhow::Result;
use lvm::autoextend::{Policy, Watcher};
use lvm::ops::{NewPool, OnRemove, PoolSize, SizeRange};
use lvm::{Error, Kind};
use serde::Serialize;

use super::{Done, Repeat, Settings, group, made, pool_now, tell, volume, wait_for_sync};
use crate::cli::{CreatePool, GrowPool, NewSize, PoolCommand, VolumePath, WatchPools};
use crate::host::{Host, OWNER};
use crate::output::Output;

/// Does what is asked to a thin pool.
pub(crate) fn run(command: &PoolCommand, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    match command {
        PoolCommand::Create(create) => self::create(create, settings, output),
        PoolCommand::Grow(grow) => self::grow(grow, settings, output),
        PoolCommand::Delete { pool, if_exists } => {
            volume::remove(pool, "thin pool", OnRemove::Keep, *if_exists, settings, output)
        }
        PoolCommand::Repair { pool } => repair(pool, settings, output),
        PoolCommand::Watch(watch) => self::watch(watch, settings, output),
    }
}

fn create(create: &CreatePool, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let pool = &create.pool;
    let tried = format!("create thin pool {pool}");
    let layout = create.details.layout(create.kind, &tried)?;
    let group = group(&Host::read()?, &pool.group, &[], settings, &tried)?;
    let size = PoolSize::Data(SizeRange::at_least(create.size));
    let mut new = NewPool::new(pool.name.clone(), size).layout(layout);
    if let Some(chunk) = create.chunk_size {
        new = new.chunk(chunk);
    }
    if let Some(metadata) = create.metadata_size {
        new = new.metadata(metadata);
    }
    let new = create.details.on.iter().cloned().fold(new, NewPool::on);
    let (changed, now) = made(group.create_pool(&new)?, Repeat::allowed_if(create.if_absent), &tried)?;
    if create.wait {
        wait_for_sync(&group, Some(&pool.name))?;
    }
    let text = match changed {
        true => format!("created thin pool {pool}: {} of data", now.size),
        false => format!("thin pool {pool} is there already: {} of data", now.size),
    };
    tell(output, &text, &Done { changed, pool: pool_now(&group, Some(&pool.name))?, volume: None })
}

fn grow(grow: &GrowPool, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let pool = &grow.pool;
    let tried = format!("grow thin pool {pool}");
    let group = group(&Host::read()?, &pool.group, &[], settings, &tried)?;
    let before = pool_now(&group, Some(&pool.name))?.ok_or_else(|| {
        Error::new(Kind::NotFound, &tried)
            .with_answer(format!("group {} has no thin pool {}", pool.group, pool.name))
    })?;
    let data = grow.size.is_some() || grow.by.is_some();
    let changed = if data {
        let wanted = NewSize { size: grow.size, by: grow.by };
        let size = wanted.from(devices::Bytes::new(before.size_bytes), &tried)?;
        group.extend_pool(&pool.name, PoolSize::Data(size), &[])?.is_made()
    } else {
        let wanted = NewSize { size: grow.metadata_size, by: grow.metadata_by };
        let now = devices::Bytes::new(before.metadata_size_bytes.unwrap_or_default());
        group.extend_pool_metadata(&pool.name, wanted.from(now, &tried)?.required())?.is_made()
    };
    let now = pool_now(&group, Some(&pool.name))?;
    let size = |pool: &crate::pools::Pool| {
        devices::Bytes::new(if data { pool.size_bytes } else { pool.metadata_size_bytes.unwrap_or_default() })
    };
    let part = if data { "data" } else { "metadata" };
    let after = now.as_ref().map(size).unwrap_or_default();
    let text = match changed {
        true => format!("grew the {part} of thin pool {pool} from {} to {after}", size(&before)),
        false => format!("the {part} of thin pool {pool} are that large already: {after}"),
    };
    tell(output, &text, &Done { changed, pool: now, volume: None })
}

/// Whatever was active is active again in the end, also when the repair fails.
fn repair(pool: &VolumePath, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let tried = format!("repair thin pool {pool}");
    let host = Host::read()?;
    let group = group(&host, &pool.group, &[], settings, &tried)?;
    let vg = host.vg(pool.group.as_str(), &tried)?;
    if vg.lv(pool.name.as_str()).is_none_or(|lv| lv.as_thin_pool().is_none()) {
        return Err(Error::new(Kind::NotFound, tried)
            .with_answer(format!("group {} has no thin pool {}", pool.group, pool.name))
            .into());
    }
    let inside = vg.lvs.iter().filter(|lv| lv.as_thin().is_some_and(|thin| thin.pool == pool.name));
    let (mut down, mut result) = (Vec::new(), Ok(()));
    for name in inside.map(|lv| &lv.name).chain([&pool.name]) {
        match group.deactivate_volume(name) {
            Ok(change) => down.extend(change.is_made().then_some(name)),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    result = result.and_then(|()| group.repair_pool(&pool.name));
    for name in down.into_iter().rev() {
        let up = group.activate_volume(name).map(|_| ());
        result = result.and(up);
    }
    result?;
    let text = format!(
        "repaired thin pool {pool}; its old metadata are the volume {pool}_meta0 or a later number: delete it when \
         all is well"
    );
    tell(output, &text, &Done { changed: true, pool: pool_now(&group, Some(&pool.name))?, volume: None })
}

/// One growth, for programs; a document a line.
#[derive(Serialize)]
struct Grown {
    pool: String,
    part: &'static str,
    used_percent: f64,
    from_bytes: Option<u64>,
    to_bytes: Option<u64>,
    error: Option<String>,
}

fn watch(watch: &WatchPools, settings: Settings, output: &mut Output<'_>) -> Result<()> {
    let host = Host::read()?;
    let paths = if watch.pools.is_empty() { all_pools(&host) } else { watch.pools.clone() };
    if paths.is_empty() {
        return Err(Error::new(Kind::NotFound, "watch thin pools")
            .with_answer("there is no thin pool of Gabion's here")
            .with_advice("`gabion pools` lists what there is")
            .into());
    }
    let mut pools = Vec::new();
    for path in paths {
        let tried = format!("watch thin pool {path}");
        let group = group(&host, &path.group, &[], settings, &tried)?;
        let found = host.vg(path.group.as_str(), &tried)?.lv(path.name.as_str());
        if found.is_none_or(|lv| lv.as_thin_pool().is_none()) {
            return Err(Error::new(Kind::NotFound, tried)
                .with_answer(format!("group {} has no thin pool {}", path.group, path.name))
                .into());
        }
        pools.push((group, path.name));
    }
    let policy =
        Policy { data_at: watch.at, metadata_at: watch.metadata_at, by: watch.by, ..Policy::default() };
    let mut watcher = Watcher::new(pools, policy)?;
    let end = watch.limit.and_then(|limit| Instant::now().checked_add(Duration::from_secs(limit)));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let outcomes = watcher.wait(left)?;
        for outcome in &outcomes {
            show(outcome, output)?;
        }
        let over = left == Some(Duration::ZERO) || (outcomes.is_empty() && end.is_some());
        if over || (watch.once && !outcomes.is_empty()) {
            let failed = outcomes.into_iter().find_map(|outcome| outcome.result.err());
            return failed.filter(|_| watch.once).map_or(Ok(()), |error| Err(error.into()));
        }
    }
}

fn show(outcome: &lvm::autoextend::Outcome, output: &mut Output<'_>) -> Result<()> {
    let sizes = outcome.result.as_ref().ok();
    let grown = Grown {
        pool: outcome.pool.clone(),
        part: match outcome.part {
            lvm::autoextend::Part::Data => "data",
            lvm::autoextend::Part::Metadata => "metadata",
        },
        used_percent: outcome.fill.percent(),
        from_bytes: sizes.map(|(from, _)| from.get()),
        to_bytes: sizes.map(|(_, to)| to.get()),
        error: outcome.result.as_ref().err().map(ToString::to_string),
    };
    output.show_next(&grown, |_, _| format!("{outcome}\n"))
}

/// The thin pools that are ours.
fn all_pools(host: &Host) -> Vec<VolumePath> {
    let ours = host.view.vgs.iter().filter(|vg| vg.has_tag(OWNER));
    ours.flat_map(|vg| {
        let pools = vg.thin_pools().filter(|lv| lv.has_tag(OWNER));
        pools.map(|lv| VolumePath { group: vg.name.clone(), name: lv.name.clone() })
    })
    .collect()
}
