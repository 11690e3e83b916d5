//! No changed block is missed over 200 histories by chance: `cargo xtask test --machine uml soak changed_blocks`.

use anyhow::Result;
use rig::histories::Histories;
use rig::{skip_unless_dm, skip_unless_installed};

mod minutes_60 {
    use super::*;

    #[test]
    fn no_change_is_missed_over_two_hundred_histories() -> Result<()> {
        if skip_unless_dm() || skip_unless_installed(&["thin_delta"]) {
            return Ok(());
        }
        Histories::new()?.run(200)
    }
}
