//! Growing thin pools before they are full.

use std::time::Duration;

use lvm::LvName;
use lvm::autoextend::{Policy, Watcher};
use lvm::ops::Group;

use super::{Event, Shared};
use crate::Error;

/// How long a pool that could not be watched is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// A thin pool that is to grow within its group.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    pub(crate) group: Group,
    pub(crate) pool: LvName,
    pub(crate) policy: Policy,
}

/// Watches every pool of the node, each in a thread of its own, so that one whose disk is sick delays no other.
pub(super) fn run(shared: &Shared) {
    let changes = shared.node.changes();
    while !shared.is_stopped() {
        let seen = changes.count();
        let growing = shared.node.growing();
        std::thread::scope(|scope| {
            for pool in growing {
                let _ = scope.spawn(|| watch(shared, pool, seen));
            }
        });
        changes.wait(seen, None);
    }
}

/// Until the node has other pools.
fn watch(shared: &Shared, pool: Growing, seen: u64) {
    let changes = shared.node.changes();
    let Growing { group, pool, policy } = pool;
    let label = format!("{}/{pool}", group.label());
    // What was told last, so that it is not told at every try.
    let mut told = String::new();
    let mut watcher = None;
    while !shared.is_stopped() && changes.count() == seen {
        let result = watcher.take().map_or_else(|| Watcher::new([(group.clone(), pool.clone())], policy), Ok);
        let waited = result.and_then(|mut ready: Watcher| {
            changes.wake(ready.waker(), seen);
            let outcomes = ready.wait(None)?;
            watcher = Some(ready);
            Ok(outcomes)
        });
        let events = match waited {
            Ok(outcomes) => outcomes.into_iter().map(Event::Pool).collect(),
            Err(error) => vec![Event::PoolUnwatched { pool: label.clone(), error: Error::from(error) }],
        };
        let unwatched = watcher.is_none();
        for event in events {
            let text = why(&event);
            if text.as_ref().is_none_or(|text| *text != told) {
                shared.report(&event);
            }
            told = text.unwrap_or_default();
        }
        if unwatched {
            changes.wait(seen, Some(AFTER_FAILURE));
        }
    }
}

/// The reason of a failure, without how full the pool was.
fn why(event: &Event) -> Option<String> {
    match event {
        Event::Pool(outcome) => outcome.result.as_ref().err().map(ToString::to_string),
        Event::PoolUnwatched { error, .. } => Some(error.to_string()),
        _ => None,
    }
}
