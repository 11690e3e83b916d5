//! What logical volumes are more than the whole lives of `fault_volumes_reboot` show: copies that were cut short, and use as
//! block devices.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::ops::NewSnapshot;
use rig::life::{FILE, block_life, class, id, kind, mib, new, snapshot_id, wait_until_ready};
use rig::node::{NodeLab, check, write};
use rig::{eventually, skip_unless_dm};
use volumes::{CreateSnapshot, FsType, Kind, Mode, SnapshotState, Source};

/// Each is many commands of LVM, and mkfs besides, on an emulated machine that may have others beside it.
mod seconds_300 {
    use super::*;

    #[test]
    fn a_copy_that_ended_with_its_process_begins_anew_and_one_without_its_source_has_failed() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let mut lab = NodeLab::new(1, Bytes::mib(512), &class("{lvm: {}}", 1, ""))?;
        lab.node().create(&new("db", 32))?;
        write(&lab.publish(&id("db"), Mode::Block)?, "first", FILE)?;
        for cut in ["kept", "lost"] {
            lab.node().create_snapshot(&CreateSnapshot::new(snapshot_id(cut), id("db")))?;
            wait_until_ready(&lab, &snapshot_id(cut));
        }
        // What a process that is killed in the middle of two copies leaves, with the room of one used up.
        let group = lab.group("gabion-lab")?;
        // A copy is over with its temporary snapshot; before that, two programs would change the group at once.
        let is_temporary = |lv: &lvm::metadata::Lv| lv.name.as_str().starts_with("t.");
        let is_over = || group.look().is_ok_and(|vg| !vg.lvs.iter().any(is_temporary));
        eventually("the temporary snapshots go", Duration::from_secs(60), is_over);
        let copying = [lvm::Tag::new("gabion.dev/copying")?];
        for cut in ["s.kept", "s.lost"] {
            let _ = group.tag_volume(&lvm::LvName::new(cut)?, &copying, &[])?;
        }
        let tags =
            ["gabion", "gabion.dev/owner=the-lab", "gabion.dev/class=lab", "gabion.dev/for-snapshot=kept"];
        let temporary = NewSnapshot::new(lvm::LvName::new("v.db")?, lvm::LvName::new("t.kept")?, mib(32));
        let _ =
            group.snapshot(&tags.iter().fold(temporary, |new, tag| new.tag(lvm::Tag::new(tag).unwrap())))?;
        let device = fs::File::options().write(true).open(group.volume(&lvm::LvName::new("s.kept")?)?.device);
        assert!(device.is_err(), "a snapshot that is ready is not active");
        lab.open()?;
        wait_until_ready(&lab, &snapshot_id("kept"));
        let failed = lab.node().snapshot(&snapshot_id("lost"))?;
        ensure!(matches!(failed.state, SnapshotState::Failed(_)), "{failed:?}");
        let from_lost = new("copy", 32).source(Source::Snapshot(snapshot_id("lost")));
        assert_eq!(kind(lab.node().create(&from_lost)), Kind::FailedPrecondition);
        lab.node().create(&new("copy", 32).source(Source::Snapshot(snapshot_id("kept"))))?;
        check(&lab.publish(&id("copy"), Mode::Block)?, "first", FILE)?;
        for cut in ["kept", "lost"] {
            lab.node().delete_snapshot(&snapshot_id(cut))?;
        }
        ensure!(lab.node().snapshots()?.is_empty());
        Ok(())
    }

    #[test]
    fn block_devices_of_thick_and_thin_volumes_keep_what_is_written() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let thick = class("{lvm: {}}", 1, "");
        let thin = "{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {name: thin}, \
                    spec: {devices: {sharedWith: lab}, pool: {thin: {sizePercent: 40}}}}";
        let mut lab = NodeLab::new(1, Bytes::gib(1), &format!("{thick}\n---\n{thin}"))?;
        block_life(&mut lab)?;
        // The two share one group, and an id is one volume wherever it is.
        lab.node().create(&new("db", 32).class("thin".parse()?).fs_type(FsType::Ext4))?;
        assert_eq!(kind(lab.node().create(&new("db", 32))), Kind::Exists);
        lab.node().delete(&id("db"))?;
        Ok(())
    }
}
