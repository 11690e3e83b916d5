//! Room that is promised, on many layouts of disks by chance: the largest volume can be made, one step more cannot.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};
use devices::Bytes;
use devices::filesystem::FsType;
use rig::node::NodeLab;
use rig::power_cut::Random;
use rig::projects::{Place, usable};
use rig::room::{LINEAR, RAIDS, STRIPED, THIN, THIN_RAIDS, churn, layouts};
use rig::skip_unless_dm;

/// Layouts of each kind of pool.
const LAYOUTS: u64 = 5;
/// Looks at the promise on each, between changes.
const ROUNDS: u64 = 3;

fn of(pool: &str) -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    layouts(pool, 100, Random::seed(), LAYOUTS, ROUNDS)
}

/// The same on one filesystem of chance.
fn of_directory(usable: &[FsType], random: &mut Random) -> Result<()> {
    let fs = usable[usize::try_from(random.below(usable.len() as u64))?];
    // XFS begins at 300 MiB.
    let size = Bytes::new((320 << 20) + random.below(1 << 10) * (1 << 20) + random.below(8) * 4096);
    let reserve = ["\"0\"", "\"5%\"", "37Mi"][usize::try_from(random.below(3))?];
    let place = Place::sized(fs, size, &["prjquota"])?;
    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
    let class = format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, spec: {{default: true, \
         reserve: {reserve}, pool: {{directory: {{path: {}}}}}}}}}",
        place.root().display()
    );
    let told = || format!("{fs} of {size}, reserve {reserve}");
    let lab = NodeLab::new(0, Bytes::ZERO, &class).with_context(told)?;
    churn(&lab, random, ROUNDS).with_context(told)
}

mod minutes_30 {
    use super::*;

    #[test]
    fn what_linear_classes_promise_can_be_had_and_no_more() -> Result<()> {
        of(LINEAR)
    }

    #[test]
    fn what_striped_classes_promise_can_be_had_and_no_more() -> Result<()> {
        of(STRIPED)
    }

    #[test]
    fn what_thin_classes_promise_can_be_had_and_no_more() -> Result<()> {
        of(THIN)
    }

    #[test]
    fn what_classes_with_redundancy_promise_can_be_had_and_no_more() -> Result<()> {
        RAIDS.iter().try_for_each(|pool| of(pool))
    }

    #[test]
    fn what_thin_classes_with_redundancy_promise_can_be_had_and_no_more() -> Result<()> {
        THIN_RAIDS.iter().try_for_each(|pool| of(pool))
    }

    #[test]
    fn what_classes_of_directories_promise_can_be_had_and_no_more() -> Result<()> {
        let usable = usable();
        if usable.is_empty() {
            return Ok(());
        }
        let mut random = Random::new(Random::seed());
        for _ in 0..LAYOUTS {
            of_directory(&usable, &mut random)?;
        }
        println!("FIGURES: {LAYOUTS} filesystems, {} promises kept", LAYOUTS * (ROUNDS + 1));
        Ok(())
    }
}
