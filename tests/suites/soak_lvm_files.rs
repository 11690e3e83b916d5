//! What thousands of volumes leave on a host besides the metadata on its disks.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

mod minutes_45 {
    use std::time::Duration;

    use anyhow::{Result, ensure};
    use rig::cycles::leave_no_file_behind;
    use rig::skip_unless_loop;

    /// How often a volume is made and removed.
    const TIMES: usize = 5000;
    /// How many times are looked at together, so that one slow moment is not taken for a trend.
    const SOME: usize = 50;

    fn median(took: &[Duration]) -> Duration {
        let mut sorted = took.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    /// LVM-11.
    #[test]
    fn five_thousand_volumes_leave_no_file_and_the_last_takes_no_longer_than_the_first() -> Result<()> {
        if skip_unless_loop() {
            return Ok(());
        }
        let took = leave_no_file_behind(TIMES)?;
        let (first, last) = (median(&took[10..10 + SOME]), median(&took[TIMES - SOME..]));
        println!(
            "FIGURES: a time took {first:?} at the beginning and {last:?} at the end (medians of {SOME})"
        );
        ensure!(last <= first * 2, "{first:?} at the beginning, {last:?} at the end");
        Ok(())
    }
}
