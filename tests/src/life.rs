//! The life of a volume, the same for each kind of pool.

// What is not so fails the test, like in the suites themselves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use anyhow::{Result, ensure};
use devices::{Bytes, DeviceNumber};
use serde::{Deserialize, Serialize};
use volumes::{
    Capacity, Content, CreateSnapshot, CreateVolume, Error, FsType, Kind, Mode, Node, SizeRange, SnapshotId,
    SnapshotState, Source, Stage, Stats, Volume, VolumeId,
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

/// The life of a volume in one class, whose name its ids begin with: create, stage, publish, write, snapshot, overwrite,
/// grow, restore, compare, clone, delete the source, compare, unpublish, restart, publish again, compare, delete, and the
/// space is back.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// The class.
    pub class: &'static str,
    /// The filesystem.
    pub fs: FsType,
    /// Whether the pool can copy its volumes.
    pub copies: Copies,
}

/// What there was before a restart, and must be there after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The room of the class while it had no volume.
    room: String,
    /// What was available of it, in bytes.
    available: u64,
    /// Its volumes.
    volumes: String,
}

impl Life {
    /// Its class, with what is said of it.
    #[must_use]
    pub fn class(&self, spec: &str) -> String {
        format!(
            "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: {}}}, spec: {{{spec}}}}}",
            self.class
        )
    }

    /// MiB of the first volume: a filesystem of each kind fits, and a copy that is a whole one takes no longer than it must.
    const fn least(&self) -> u64 {
        match self.fs {
            FsType::Ext4 => 32,
            FsType::Btrfs => 128,
            // No smaller one is made by mkfs.xfs.
            _ => 320,
        }
    }

    fn id(&self, name: &str) -> VolumeId {
        id(&format!("{}-{name}", self.class))
    }

    fn cut(&self) -> SnapshotId {
        snapshot_id(&format!("{}-cut", self.class))
    }

    /// A volume of this class, so many MiB larger than the first one.
    fn wish(&self, name: &str, more: u64) -> CreateVolume {
        let new = CreateVolume::new(self.id(name), mib(self.least() + more));
        new.class(self.class.parse().unwrap()).fs_type(self.fs)
    }

    fn is_block(&self, node: &Node) -> Result<bool> {
        Ok(node.class(Some(&self.class.parse()?))?.abilities().block)
    }

    fn room(&self, node: &Node) -> Result<Capacity> {
        Ok(node.capacity(Some(&self.class.parse()?))?)
    }

    fn volumes(&self, node: &Node) -> Result<Vec<Volume>> {
        let all = node.volumes()?.into_iter();
        Ok(all.filter(|volume| volume.class.as_str() == self.class).collect())
    }

    /// All of it up to the restart.
    ///
    /// # Errors
    ///
    /// If something is not as it should be.
    ///
    /// # Panics
    ///
    /// The same.
    pub fn until_restart(&self, lab: &NodeLab) -> Result<Before> {
        let node = lab.node();
        let (room, db) = (self.room(node)?, self.id("db"));
        let made = node.create(&self.wish("db", 0))?;
        ensure!(
            node.create(&self.wish("db", 0))? == made && made.size >= Bytes::mib(self.least()),
            "{made:?}"
        );
        assert_eq!(kind(node.create(&self.wish("db", 20))), Kind::Exists);
        let file = lab.publish(&db, Mode::Filesystem)?.join("file");
        write(&file, "first", FILE)?;
        let mode = fs::metadata(lab.target(&db))?.permissions().mode() & 0o7777;
        assert_eq!(mode, 0o2777, "{mode:o}");
        if self.copies == Copies::Yes {
            self.snapshot(lab, &made)?;
        }
        write(&file, "second", FILE)?;
        let grown = self.grow(lab)?;
        check(&file, "second", FILE)?;
        assert_eq!(kind(node.delete(&db)), Kind::InUse);
        if self.copies == Copies::Yes {
            self.copy(lab, &grown)?;
        }
        if self.is_block(node)? {
            let raw = CreateVolume::new(self.id("raw"), mib(8)).class(self.class.parse()?);
            node.create(&raw)?;
            write(&lab.publish(&raw.id, Mode::Block)?, "raw", FILE)?;
        }
        for volume in self.volumes(node)? {
            lab.unpublish(&volume.id)?;
        }
        let volumes = format!("{:?}", self.volumes(node)?);
        Ok(Before { room: format!("{room:?}"), available: room.available.get(), volumes })
    }

    fn snapshot(&self, lab: &NodeLab, source: &Volume) -> Result<()> {
        let wanted = CreateSnapshot::new(self.cut(), source.id.clone());
        let snapshot = lab.node().create_snapshot(&wanted)?;
        assert_eq!(lab.node().create_snapshot(&wanted)?, snapshot);
        assert_eq!((&snapshot.source, snapshot.size), (&source.id, source.size));
        wait_until_ready(lab, &self.cut());
        Ok(())
    }

    fn grow(&self, lab: &NodeLab) -> Result<Volume> {
        let (node, db) = (lab.node(), self.id("db"));
        let (least, more) = (Bytes::mib(self.least()), mib(self.least() + 32));
        let total = |stats: Stats| stats.usage.unwrap().total;
        let before = total(node.stats(&db, &lab.target(&db))?);
        // A copy that is ready may still have its temporary snapshot.
        crate::eventually(
            "the volume is free",
            Duration::from_secs(60),
            || !matches!(node.grow(&db, more), Err(error) if error.kind() == Kind::Busy),
        );
        let grown = node.grow(&db, more)?;
        ensure!(grown.size >= more.required() && node.grow(&db, more)? == grown, "{grown:?}");
        assert_eq!(kind(node.grow(&db, mib(1).up_to(least))), Kind::OutOfRange);
        node.expand_filesystem(&db, &lab.target(&db))?;
        let after = total(node.stats(&db, &lab.target(&db))?);
        ensure!(after > before, "{before} was the filesystem, {after} it is");
        Ok(grown)
    }

    /// A restored volume that is larger than its source and beside it, and a clone; the source goes.
    fn copy(&self, lab: &NodeLab, source: &Volume) -> Result<()> {
        let (node, cut) = (lab.node(), self.cut());
        let (db, restored, cloned) = (self.id("db"), self.id("restored"), self.id("cloned"));
        let from = Source::Snapshot(cut.clone());
        let larger = self.wish("restored", 48).source(from.clone());
        let made = node.create(&larger)?;
        assert_eq!(node.create(&larger)?, made);
        let mut smaller = self.wish("small", 0).source(from);
        smaller.size = mib(8);
        assert_eq!(kind(node.create(&smaller)), Kind::OutOfRange);
        check(&lab.publish(&restored, Mode::Filesystem)?.join("file"), "first", FILE)?;
        let total = |id: &VolumeId| node.stats(id, &lab.target(id)).unwrap().usage.unwrap().total;
        ensure!(total(&restored) > total(&db), "the restored filesystem did not grow");
        node.create(&self.wish("cloned", 32).source(Source::Volume(db.clone())))?;
        check(&lab.publish(&cloned, Mode::Filesystem)?.join("file"), "second", FILE)?;
        let uuids = [&db, &restored, &cloned].map(|id| uuid_at(lab, id).unwrap());
        ensure!(uuids[0] != uuids[1] && uuids[1] != uuids[2] && uuids[0] != uuids[2], "{uuids:?}");
        lab.unpublish(&source.id)?;
        for _ in 0..2 {
            node.delete(&db)?;
        }
        for _ in 0..2 {
            node.delete_snapshot(&cut)?;
        }
        assert_eq!(kind(node.volume(&db)), Kind::NotFound);
        check(&lab.target(&restored).join("file"), "first", FILE)?;
        check(&lab.target(&cloned).join("file"), "second", FILE)
    }

    /// What was there before is there after a restart, and is published.
    ///
    /// # Errors
    ///
    /// If something is not as it should be.
    pub fn is_there(&self, lab: &NodeLab, before: &Before) -> Result<()> {
        let there = self.volumes(lab.node())?;
        ensure!(format!("{there:?}") == before.volumes, "{there:?} are there, {} were", before.volumes);
        for volume in &there {
            if volume.content == Content::Block {
                check(&lab.publish(&volume.id, Mode::Block)?, "raw", FILE)?;
                continue;
            }
            let content = if volume.id == self.id("restored") { "first" } else { "second" };
            check(&lab.publish(&volume.id, Mode::Filesystem)?.join("file"), content, FILE)?;
        }
        Ok(())
    }

    /// The rest of it.
    ///
    /// # Errors
    ///
    /// If something is not as it should be.
    pub fn after_restart(&self, lab: &NodeLab, before: &Before) -> Result<()> {
        self.is_there(lab, before)?;
        for volume in self.volumes(lab.node())? {
            lab.unpublish(&volume.id)?;
            lab.node().delete(&volume.id)?;
        }
        let snapshots = lab.node().snapshots()?;
        ensure!(snapshots.iter().all(|snapshot| snapshot.class.as_str() != self.class), "{snapshots:?}");
        self.is_back(lab.node(), before)
    }

    /// The room is what it was. A filesystem of directories keeps some of it for its own, and gives back what is freed
    /// when it finds the time.
    fn is_back(&self, node: &Node, before: &Before) -> Result<()> {
        if self.is_block(node)? {
            let room = format!("{:?}", self.room(node)?);
            ensure!(room == before.room, "{room} is the room, {} it was", before.room);
            return Ok(());
        }
        let least = Bytes::new(before.available).saturating_sub(Bytes::mib(1));
        crate::eventually("the space is back", Duration::from_secs(30), || {
            self.room(node).unwrap().available >= least
        });
        Ok(())
    }

    /// The whole of it with a restart of the node, without one of the machine.
    ///
    /// # Errors
    ///
    /// If something is not as it should be.
    pub fn whole(&self, lab: &mut NodeLab) -> Result<()> {
        let before = self.until_restart(lab)?;
        lab.restart()?;
        self.after_restart(lab, &before)
    }
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
