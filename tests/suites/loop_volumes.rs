//! Volumes that need no device-mapper, on real disks.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use anyhow::Result;
use devices::Bytes;
use rig::life::{block_life, class, id, kind, new};
use rig::node::NodeLab;
use rig::power_cut::Random;
use rig::room::layouts;
use rig::skip_unless_loop;
use volumes::{CreateVolume, Kind, SizeRange};

#[test]
fn a_partition_keeps_what_is_written_as_a_block_device() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let mut lab = NodeLab::new(2, Bytes::mib(512), &class("{partition: {}}", 2, ""))?;
    // A partition table has 128 entries.
    assert_eq!(lab.node().max_volumes()?, Some(256));
    block_life(&mut lab)
}

#[test]
fn an_exclusive_disk_takes_one_partition_and_the_promised_size_can_be_had() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let lab = NodeLab::new(2, Bytes::mib(128), &class("{partition: {exclusive: true}}", 2, ""))?;
    let capacity = lab.node().capacity(None)?;
    assert_eq!(capacity.available, capacity.total);
    assert_eq!(lab.node().max_volumes()?, Some(2));
    let more = SizeRange::at_least(capacity.largest.checked_add(capacity.minimum).unwrap());
    assert_eq!(kind(lab.node().create(&CreateVolume::new(id("more"), more))), Kind::NoSpace);
    let all = lab.node().create(&CreateVolume::new(id("all"), SizeRange::at_least(capacity.largest)))?;
    assert_eq!(all.size, capacity.largest);
    assert_eq!(lab.node().max_volumes()?, Some(2));
    lab.node().create(&new("small", 16))?;
    assert_eq!(lab.node().capacity(None)?.largest, Bytes::ZERO);
    assert_eq!(kind(lab.node().create(&new("third", 16))), Kind::NoSpace);
    lab.node().delete(&id("all"))?;
    lab.node().delete(&id("small"))?;
    assert_eq!(lab.node().capacity(None)?, capacity);
    Ok(())
}

#[test]
fn what_a_class_of_partitions_promises_can_be_had_and_no_more() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let seed = Random::seed();
    layouts("{partition: {}}", 70, seed, 12, 5)?;
    layouts("{partition: {exclusive: true}}", 70, seed, 4, 3)
}
