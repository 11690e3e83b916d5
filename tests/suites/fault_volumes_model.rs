//! 1,000 random operations from eight callers at once against a model of what must be true, while the driver and its LVM
//! workers are killed at random: no lost volume, no orphan, no wrong size, no leaked mount, no wrong error code.
//!
//! `GABION_SEED=N` repeats the choices of the run that printed it. These runs, one for each backend, are made by hand:
//! `cargo xtask test --machine uml fault fault_volumes_model::minutes`. A short one without filesystems is
//! `loop_volumes_model`.

use std::path::PathBuf;

use anyhow::Result;
use devices::Bytes;
use rig::model::{Backing, Plan, Uses, run};
use rig::{Disk, skip_unless_dm, skip_unless_loop};

/// After so many operations everything is compared.
const ROUND: u64 = 125;

fn classes(pool: &str, disks: &[PathBuf]) -> String {
    let paths: Vec<String> = disks.iter().map(|disk| disk.display().to_string()).collect();
    format!(
        "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec: {{default: true, \
         devices: {{paths: [{}]}}, pool: {pool}}}\n",
        paths.join(", ")
    )
}

fn thin(operations: u64) -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, paths) = disks()?;
    let classes = classes("{thin: {}}", &paths);
    let backing = Backing::Group("gabion-rig".to_owned());
    run(&Plan {
        classes,
        backing,
        unit: Bytes::mib(4),
        copies: true,
        uses: Uses::Both,
        operations,
        round: ROUND,
    })
}

fn partition(operations: u64) -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, paths) = disks()?;
    let classes = classes("{partition: {}}", &paths);
    let backing = Backing::Disks(paths);
    run(&Plan {
        classes,
        backing,
        unit: Bytes::mib(1),
        copies: false,
        uses: Uses::Both,
        operations,
        round: ROUND,
    })
}

/// Two disks, which last as long as the first of what is returned.
fn disks() -> Result<(Vec<Disk>, Vec<PathBuf>)> {
    let disks: Vec<Disk> =
        (0..2).map(|_| Disk::partitioned(Bytes::gib(4), Bytes::new(512))).collect::<Result<_>>()?;
    let paths = disks.iter().map(|disk| disk.path().to_owned()).collect();
    Ok((disks, paths))
}

mod minutes_30 {
    use super::*;

    #[test]
    fn a_thousand_operations_on_thin_volumes() -> Result<()> {
        thin(1000)
    }

    #[test]
    fn a_thousand_operations_on_partitions() -> Result<()> {
        partition(1000)
    }
}
