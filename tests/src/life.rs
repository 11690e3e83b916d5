//! The life of a volume, the same for each kind of pool.

// What is not so fails the test, like in the suites themselves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use anyhow::{Result, ensure};
use devices::{Bytes, DeviceNumber};
use volumes::{
    Content, CreateSnapshot, CreateVolume, Error, Kind, Mode, SizeRange, SnapshotId, SnapshotState, Source,
    Stage, VolumeId,
};

use crate::node::{NodeLab, check, filesystem_uuid, write};

/// Bytes of the file, or of the device's beginning, that a test writes.
pub const FILE: usize = 6 << 20;

/// A volume id.
///
/// # Panics
///
/// If it is none.
#[must_use]
pub fn id(text: &str) -> VolumeId {
    text.parse().unwrap()
}

/// A snapshot id.
///
/// # Panics
///
/// If it is none.
#[must_use]
pub fn snapshot_id(text: &str) -> SnapshotId {
    text.parse().unwrap()
}

/// At least so many MiB.
#[must_use]
pub fn mib(least: u64) -> SizeRange {
    SizeRange::at_least(Bytes::mib(least))
}

/// A volume of at least so many MiB in the default class.
#[must_use]
pub fn new(text: &str, least: u64) -> CreateVolume {
    CreateVolume::new(id(text), mib(least))
}

/// The kind of a refusal.
///
/// # Panics
///
/// If it was no refusal.
pub fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> Kind {
    result.expect_err("it should have been refused").kind()
}

/// Whether a pool can copy its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// It can.
    Yes,
    /// It cannot.
    No,
}

/// Create, stage, publish, write, snapshot, overwrite, grow, restore, compare, clone, delete the source, compare,
/// unpublish, restart, publish again, compare, delete, and the space is back.
///
/// # Errors
///
/// If something is not as it should be.
///
/// # Panics
///
/// The same.
pub fn whole_life(lab: &mut NodeLab, copies: Copies) -> Result<()> {
    let before = lab.node().capacity(None)?;
    let (db, restored, cloned, cut) = (id("db"), id("restored"), id("cloned"), snapshot_id("cut"));
    let made = lab.node().create(&new("db", 64))?;
    ensure!(made.size >= Bytes::mib(64) && made.content == Content::New, "{made:?}");
    ensure!(lab.node().create(&new("db", 64))? == made);
    assert_eq!(kind(lab.node().create(&new("db", 100))), Kind::Exists);
    let file = lab.publish(&db, Mode::Filesystem)?.join("file");
    write(&file, "first", FILE)?;
    let mode = fs::metadata(lab.target(&db))?.permissions().mode() & 0o7777;
    assert_eq!(mode, 0o2777, "{mode:o}");
    if copies == Copies::Yes {
        let wanted = CreateSnapshot::new(cut.clone(), db.clone());
        let snapshot = lab.node().create_snapshot(&wanted)?;
        assert_eq!(lab.node().create_snapshot(&wanted)?, snapshot);
        assert_eq!((&snapshot.source, snapshot.size), (&db, made.size));
        wait_until_ready(lab, &cut);
    }
    write(&file, "second", FILE)?;
    let (total, grown) = (lab.node().stats(&db, &lab.target(&db))?, lab.node().grow(&db, mib(128))?);
    assert!(grown.size >= Bytes::mib(128));
    assert_eq!(lab.node().grow(&db, mib(128))?, grown);
    assert_eq!(kind(lab.node().grow(&db, mib(1).up_to(Bytes::mib(64)))), Kind::OutOfRange);
    lab.node().expand_filesystem(&db, &lab.target(&db))?;
    let more = lab.node().stats(&db, &lab.target(&db))?;
    ensure!(more.usage.unwrap().total > total.usage.unwrap().total, "{total:?} {more:?}");
    check(&file, "second", FILE)?;
    if copies == Copies::Yes {
        // Larger than its source, and beside it.
        let copy = new("restored", 160).source(Source::Snapshot(cut.clone()));
        let restored_volume = lab.node().create(&copy)?;
        assert_eq!(lab.node().create(&copy)?, restored_volume);
        assert_eq!(
            kind(lab.node().create(&new("small", 8).source(Source::Snapshot(cut.clone())))),
            Kind::OutOfRange
        );
        let there = lab.publish(&restored, Mode::Filesystem)?;
        check(&there.join("file"), "first", FILE)?;
        ensure!(lab.node().stats(&restored, &there)?.usage.unwrap().total > more.usage.unwrap().total);
        lab.node().create(&new("cloned", 128).source(Source::Volume(db.clone())))?;
        check(&lab.publish(&cloned, Mode::Filesystem)?.join("file"), "second", FILE)?;
        let uuids = [&db, &restored, &cloned].map(|id| uuid_at(lab, id).unwrap());
        ensure!(uuids[0] != uuids[1] && uuids[1] != uuids[2] && uuids[0] != uuids[2], "{uuids:?}");
    }
    assert_eq!(kind(lab.node().delete(&db)), Kind::InUse);
    if copies == Copies::Yes {
        lab.unpublish(&db)?;
        lab.node().delete(&db)?;
        lab.node().delete(&db)?;
        lab.node().delete_snapshot(&cut)?;
        lab.node().delete_snapshot(&cut)?;
        assert_eq!(kind(lab.node().volume(&db)), Kind::NotFound);
        check(&lab.target(&restored).join("file"), "first", FILE)?;
        check(&lab.target(&cloned).join("file"), "second", FILE)?;
    }
    let left = lab.node().volumes()?;
    for volume in &left {
        lab.unpublish(&volume.id)?;
    }
    lab.restart()?;
    assert_eq!(lab.node().volumes()?, left);
    for volume in &left {
        let content = if volume.id == restored { "first" } else { "second" };
        check(&lab.publish(&volume.id, Mode::Filesystem)?.join("file"), content, FILE)?;
        lab.unpublish(&volume.id)?;
        lab.node().delete(&volume.id)?;
    }
    assert_eq!(lab.node().capacity(None)?, before);
    Ok(())
}

/// A volume that is used as a block device is never formatted, and keeps its content over a restart.
///
/// # Errors
///
/// If something is not as it should be.
///
/// # Panics
///
/// The same.
pub fn block_life(lab: &mut NodeLab) -> Result<()> {
    let raw = id("raw");
    let made = lab.node().create(&new("raw", 32))?;
    let device = lab.publish(&raw, Mode::Block)?;
    write(&device, "raw", FILE)?;
    check(&device, "raw", FILE)?;
    let stats = lab.node().stats(&raw, &device)?;
    ensure!(stats.size == made.size && stats.usage.is_none(), "{stats:?}");
    let as_filesystem = Stage::new(raw.clone(), lab.path("elsewhere"), Mode::Filesystem);
    assert_eq!(kind(lab.node().stage(&as_filesystem)), Kind::FailedPrecondition);
    assert_eq!(kind(lab.node().delete(&raw)), Kind::InUse);
    lab.unpublish(&raw)?;
    lab.restart()?;
    assert_eq!(lab.node().volume(&raw)?.content, Content::Block);
    check(&lab.publish(&raw, Mode::Block)?, "raw", FILE)?;
    lab.unpublish(&raw)?;
    Ok(lab.node().delete(&raw)?)
}

/// Waits until a snapshot is ready.
///
/// # Panics
///
/// If it is not within a minute.
pub fn wait_until_ready(lab: &NodeLab, cut: &SnapshotId) {
    crate::eventually("the snapshot is ready", Duration::from_secs(60), || {
        lab.node().snapshot(cut).unwrap().state == SnapshotState::Ready
    });
}

fn uuid_at(lab: &NodeLab, id: &VolumeId) -> Result<String> {
    filesystem_uuid(DeviceNumber::from_rdev(fs::metadata(lab.target(id))?.dev()))
}

/// The class `lab`, which is the default, on so many disks.
#[must_use]
pub fn class(pool: &str, disks: usize, more: &str) -> String {
    let paths: Vec<String> = (0..disks).map(|disk| format!("DISK{disk}")).collect();
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, \
         spec: {{default: true, devices: {{paths: [{}]}}, pool: {pool}{more}}}}}",
        paths.join(", ")
    )
}
