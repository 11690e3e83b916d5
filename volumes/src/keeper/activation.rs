//! Volumes of large groups, which are activated while the node serves.

use std::time::Instant;

use super::{Event, Shared};
use crate::ClassName;

/// Activates what is not active whenever the node has other pools, one class after the other.
pub(super) fn run(shared: &Shared) {
    let changes = shared.node.changes();
    while !shared.is_stopped() {
        let seen = changes.count();
        let pools = shared.node.pools();
        for backend in pools.backends() {
            let class: &ClassName = &backend.class().name;
            let begun = Instant::now();
            let go_on = || !shared.is_stopped() && changes.count() == seen;
            match backend.activate_rest(&go_on) {
                Ok(0) => {}
                Ok(volumes) => {
                    let (class, took) = (class.clone(), begun.elapsed());
                    shared.report(&Event::Activated { class, volumes, took });
                }
                Err(error) => shared.report(&Event::NotActivated { class: class.clone(), error }),
            }
        }
        // What it holds must not outlive a change of the node's.
        drop(pools);
        changes.wait(seen, None);
    }
}
