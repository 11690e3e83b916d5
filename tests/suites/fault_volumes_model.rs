//! 1,000 random operations from eight callers at once against a model of what must be true, while the driver and its LVM
//! workers are killed at random: no lost volume, no orphan, no wrong size, no leaked mount, no wrong error code.
//!
//! `GABION_SEED=N` repeats the choices of the run that printed it. These runs, one for each backend, are made by hand:
//! `cargo xtask test --machine uml fault fault_volumes_model::minutes`. A short one without filesystems is
//! `loop_volumes_model`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;
use devices::Bytes;
use rig::model::{Backing, Plan, Uses, run};
use rig::projects::{Place, usable};
use rig::{Disk, skip_unless_dm, skip_unless_loop};

/// After so many operations everything is compared.
const ROUND: u64 = 125;
/// Where the volumes of classes on volume groups lie.
const GROUP: &str = "gabion-rig";

/// A class with what is between `spec: {default: true, ` and its end.
fn class(spec: &str) -> String {
    format!(
        "apiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: rig}}\nspec: {{default: true, {spec}}}\n"
    )
}

/// Two disks, and a class on them.
fn on_disks(pool: &str) -> Result<(Vec<Disk>, Vec<PathBuf>, String)> {
    let disks: Vec<Disk> =
        (0..2).map(|_| Disk::partitioned(Bytes::gib(4), Bytes::new(512))).collect::<Result<_>>()?;
    let paths: Vec<PathBuf> = disks.iter().map(|disk| disk.path().to_owned()).collect();
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let class = class(&format!("devices: {{paths: [{}]}}, pool: {pool}", names.join(", ")));
    Ok((disks, paths, class))
}

fn in_group(pool: &str, operations: u64) -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let (_disks, _, classes) = on_disks(pool)?;
    run(&Plan {
        classes,
        backing: Backing::Group(GROUP.to_owned()),
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
    let (_disks, paths, classes) = on_disks("{partition: {}}")?;
    run(&Plan {
        classes,
        backing: Backing::Disks(paths),
        unit: Bytes::mib(1),
        copies: false,
        uses: Uses::Both,
        operations,
        round: ROUND,
    })
}

fn directory(operations: u64) -> Result<()> {
    let Some(fs_type) = usable().first().copied() else { return Ok(()) };
    let place = Place::sized(fs_type, Bytes::gib(4), &["prjquota"])?;
    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
    run(&Plan {
        classes: class(&format!("pool: {{directory: {{path: {}}}}}", place.root().display())),
        backing: Backing::Directory(place.root()),
        unit: Bytes::mib(1),
        copies: false,
        uses: Uses::Filesystems,
        operations,
        round: ROUND,
    })
}

mod minutes_60 {
    use super::*;

    #[test]
    fn a_thousand_operations_on_thin_volumes() -> Result<()> {
        in_group("{thin: {}}", 1000)
    }

    #[test]
    fn a_thousand_operations_on_thick_volumes() -> Result<()> {
        in_group("{lvm: {}}", 1000)
    }

    #[test]
    fn a_thousand_operations_on_partitions() -> Result<()> {
        partition(1000)
    }

    #[test]
    fn a_thousand_operations_on_directories() -> Result<()> {
        directory(1000)
    }
}
