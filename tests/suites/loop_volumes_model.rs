//! Eight callers at random against a model of what must be true, on this host: partitions as block devices, with kill -9 of
//! the driver. `fault_volumes_model` is the same in the machine.

use std::path::PathBuf;

use anyhow::Result;
use devices::Bytes;
use rig::model::{Backing, Plan, Uses, run};
use rig::{Disk, skip_unless_loop};

#[test]
fn partitions_are_what_the_model_says_while_the_driver_is_killed() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disks: Vec<Disk> =
        (0..2).map(|_| Disk::partitioned(Bytes::gib(4), Bytes::new(512))).collect::<Result<_>>()?;
    let paths: Vec<PathBuf> = disks.iter().map(|disk| disk.path().to_owned()).collect();
    let classes = format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: rig}}, spec: {{default: true, devices: \
         {{paths: [{}, {}]}}, pool: {{partition: {{}}}}}}}}",
        paths[0].display(),
        paths[1].display()
    );
    run(&Plan {
        classes,
        backing: Backing::Disks(paths),
        unit: Bytes::mib(1),
        copies: false,
        uses: Uses::Blocks,
        operations: 200,
        round: 100,
    })
}
