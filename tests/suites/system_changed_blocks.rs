//! Which blocks snapshots hold, and which changed between two: against a comparison byte by byte, and against `thin_delta` on the
//! same held state.
//!
//! The long version is `soak_changed_blocks`, made by hand.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::thread;

use anyhow::{Result, ensure};
use csi::proto::*;
use devices::Bytes;
use lvm::dm::{Dm, DmUuid};
use rig::histories::{CLASS, GROUP, Histories, collect, scribble, wait_free};
use rig::life::{class, id, kind, new, snapshot_id, wait_until_ready};
use rig::node::NodeLab;
use rig::served::{Served, block, code, volume};
use rig::{skip_unless_dm, skip_unless_installed};
use tonic::Code;
use volumes::{CreateSnapshot, Kind, Mode};

/// Many commands of LVM, on an emulated machine that may have others beside it.
mod seconds_300 {
    use super::*;

    #[test]
    fn no_change_is_missed_over_histories_of_chance() -> Result<()> {
        if skip_unless_dm() || skip_unless_installed(&["thin_delta"]) {
            return Ok(());
        }
        // Each takes several commands of LVM; `soak_changed_blocks` has 200.
        Histories::new()?.run(5)
    }

    #[test]
    fn many_read_at_once_while_the_pool_is_written_and_looked_at_again() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let mut lab = NodeLab::new(1, Bytes::gib(1), &class(CLASS, 1, ""))?;
        lab.node().create(&new("db", 64))?;
        let device = lab.publish(&id("db"), Mode::Block)?;
        scribble(&device, 1, 300)?;
        for cut in ["one", "two"] {
            lab.node().create_snapshot(&CreateSnapshot::new(snapshot_id(cut), id("db")))?;
            scribble(&device, 2, 200)?;
        }
        let (one, two) = (snapshot_id("one"), snapshot_id("two"));
        let expected = collect(lab.node().delta(&one, &two, Bytes::ZERO)?)?;
        ensure!(!expected.is_empty());
        // Whoever does not go on holds nothing.
        let mut begun = lab.node().allocated(&one, Bytes::ZERO)?;
        let _ = begun.next().unwrap()?;
        let node = lab.node();
        thread::scope(|scope| -> Result<()> {
            let readers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        for _ in 0..20 {
                            let found = collect(node.delta(&one, &two, Bytes::ZERO)?)?;
                            ensure!(found == expected, "{found:?}");
                        }
                        Ok(())
                    })
                })
                .collect();
            for round in 0..3 {
                scribble(&device, 10 + round, 50)?;
                // It releases what dead processes left, and must not take these for such.
                let _ = node.refresh()?;
            }
            readers.into_iter().try_for_each(|reader| reader.join().unwrap())
        })?;
        let _ = begun.count();
        let group = lab.group(GROUP)?;
        let pool = DmUuid::of_lvm(&group.uuid(), &group.look()?.lv("pool").unwrap().uuid, Some("tpool"));
        let dm = Dm::open()?;
        ensure!(!dm.release_metadata(&pool)?, "the pool still holds its metadata");
        // What a process held that was killed goes with the next one's start.
        std::mem::forget(dm.hold_metadata(&pool)?);
        lab.open()?;
        ensure!(collect(lab.node().delta(&one, &two, Bytes::ZERO)?)? == expected);
        wait_free(&dm, &pool)
    }

    #[test]
    fn what_cannot_be_told_is_refused_and_a_removed_snapshot_ends_the_reading() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let thin = class(CLASS, 1, "");
        let thick = class("{lvm: {volumeGroup: thick}}", 2, "").replace("name: lab", "name: thick");
        let thick =
            thick.replace("default: true, devices: {paths: [DISK0, DISK1]}", "devices: {paths: [DISK1]}");
        let lab = NodeLab::new(2, Bytes::gib(1), &format!("{thin}\n---\n{thick}"))?;
        let node = lab.node();
        for volume in ["db", "other"] {
            node.create(&new(volume, 32))?;
            node.create_snapshot(&CreateSnapshot::new(snapshot_id(&format!("of-{volume}")), id(volume)))?;
        }
        let (db, other) = (snapshot_id("of-db"), snapshot_id("of-other"));
        assert_eq!(kind(node.allocated(&snapshot_id("none"), Bytes::ZERO)), Kind::NotFound);
        assert_eq!(kind(node.delta(&snapshot_id("none"), &db, Bytes::ZERO)), Kind::NotFound);
        assert_eq!(kind(node.delta(&other, &db, Bytes::ZERO)), Kind::InvalidArgument);
        assert_eq!(kind(node.allocated(&db, Bytes::new((32 << 20) + 1))), Kind::OutOfRange);
        ensure!(collect(node.allocated(&db, Bytes::mib(32))?)?.is_empty());
        ensure!(collect(node.delta(&db, &db, Bytes::ZERO)?)?.is_empty());
        node.create(&new("thick", 16).class("thick".parse()?))?;
        node.create_snapshot(&CreateSnapshot::new(snapshot_id("of-thick"), id("thick")))?;
        wait_until_ready(&lab, &snapshot_id("of-thick"));
        assert_eq!(kind(node.allocated(&snapshot_id("of-thick"), Bytes::ZERO)), Kind::FailedPrecondition);
        let mut begun = node.allocated(&db, Bytes::ZERO)?;
        node.delete_snapshot(&db)?;
        // Its name comes again, and is another snapshot.
        node.create_snapshot(&CreateSnapshot::new(db.clone(), id("db")))?;
        assert_eq!(begun.next().unwrap().unwrap_err().kind(), Kind::NotFound);
        ensure!(begun.next().is_none());
        Ok(())
    }

    #[test]
    fn streams_tell_the_blocks_on_the_socket_in_messages_of_the_wanted_length() {
        let thin = format!("pool: {CLASS}");
        let Some(served) = Served::with(&thin, &["--csi-alpha"]) else { return };
        let capabilities =
            served.csi.wait(served.csi.identity().get_plugin_capabilities(GetPluginCapabilitiesRequest {}));
        assert!(format!("{:?}", capabilities.unwrap()).contains("SnapshotMetadataService"));
        served.create(CreateVolumeRequest { volume_capabilities: vec![block()], ..volume("db") }).unwrap();
        let device = std::path::PathBuf::from("/dev/gabion-rig/v.db");
        served.snapshot("empty", "db").unwrap();
        scribble(&device, 1, 100).unwrap();
        served.snapshot("one", "db").unwrap();
        scribble(&device, 2, 100).unwrap();
        served.snapshot("two", "db").unwrap();
        let all = delta(&served, "one", "two", 0, 0).unwrap();
        assert!(all.len() == 1 && all[0].len() > 10, "{all:?}");
        let all = all.concat();
        for most in [1, 7] {
            let parts = delta(&served, "one", "two", 0, most).unwrap();
            assert!(parts.iter().all(|part| part.len() <= usize::try_from(most).unwrap()));
            assert_eq!(parts.concat(), all);
        }
        // On from the middle.
        let (half, rest) = all.split_at(all.len() / 2);
        let end = half.last().map(|(offset, length)| offset + length).unwrap();
        assert_eq!(delta(&served, "one", "two", end, 3).unwrap().concat(), rest);
        assert_eq!(
            delta(&served, "empty", "one", 0, 0).unwrap(),
            [allocated(&served, "one", 0).unwrap()].concat()
        );
        assert_eq!(allocated(&served, "empty", 0).unwrap(), [Vec::new()]);
        assert_eq!(code(delta(&served, "none", "two", 0, 0)), Code::NotFound);
        assert_eq!(code(delta(&served, "one", "two", -1, 0)), Code::InvalidArgument);
        assert_eq!(code(delta(&served, "one", "two", 0, -1)), Code::InvalidArgument);
        assert_eq!(code(allocated(&served, "one", i64::MAX)), Code::OutOfRange);
        for cut in ["empty", "one", "two"] {
            served.delete_snapshot(cut).unwrap();
        }
        served.delete("db").unwrap();
    }
}

type Messages = Vec<Vec<(i64, i64)>>;

fn delta(
    served: &Served,
    base: &str,
    target: &str,
    starting_offset: i64,
    max_results: i32,
) -> Result<Messages, tonic::Status> {
    let request = GetMetadataDeltaRequest {
        base_snapshot_id: base.into(),
        target_snapshot_id: target.into(),
        starting_offset,
        max_results,
        ..Default::default()
    };
    served.csi.run(async {
        let mut stream = served.csi.snapshot_metadata().get_metadata_delta(request).await?.into_inner();
        let mut messages = Messages::new();
        while let Some(message) = stream.message().await? {
            assert_eq!(message.block_metadata_type(), BlockMetadataType::VariableLength);
            assert_eq!(message.volume_capacity_bytes, rig::served::SIZE);
            messages
                .push(message.block_metadata.iter().map(|one| (one.byte_offset, one.size_bytes)).collect());
        }
        Ok(messages)
    })
}

fn allocated(served: &Served, snapshot: &str, starting_offset: i64) -> Result<Messages, tonic::Status> {
    let request =
        GetMetadataAllocatedRequest { snapshot_id: snapshot.into(), starting_offset, ..Default::default() };
    served.csi.run(async {
        let mut stream = served.csi.snapshot_metadata().get_metadata_allocated(request).await?.into_inner();
        let mut messages = Messages::new();
        while let Some(message) = stream.message().await? {
            messages
                .push(message.block_metadata.iter().map(|one| (one.byte_offset, one.size_bytes)).collect());
        }
        Ok(messages)
    })
}
