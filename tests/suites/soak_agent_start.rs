//! The same over as many volumes as a node may well have.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

mod agent_start;

mod minutes_20 {
    use std::time::Duration;

    use super::agent_start;

    #[test]
    fn a_driver_serves_before_a_thousand_volumes_are_active() {
        agent_start::over(1000, Duration::from_secs(1000));
    }
}
