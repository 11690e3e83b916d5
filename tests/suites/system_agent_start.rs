//! The driver serves before the volumes of a large group are active.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::time::Duration;

mod agent_start;

#[test]
fn a_driver_serves_before_all_volumes_of_its_groups_are_active() {
    agent_start::over(14, Duration::from_secs(60));
}
