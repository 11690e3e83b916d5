//! bcache again and again.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use rig::caching::{make_under_udevd, skip_unless_bcache};

mod minutes_4 {
    use super::*;

    #[test]
    fn twenty_devices_are_made_under_a_running_udevd() {
        if !skip_unless_bcache() {
            make_under_udevd(20).unwrap();
        }
    }
}
