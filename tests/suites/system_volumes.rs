//! What logical volumes are more than the whole lives of `fault_volumes_reboot` show: copies that were cut short, and use as
//! block devices.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use lvm::ops::{NewPv, NewSnapshot};
use lvm::worker::conf::Activation;
use rig::life::{FILE, block_life, class, id, kind, mib, new, snapshot_id, wait_until_ready};
use rig::node::{NodeLab, check, write};
use rig::{Handle, eventually, skip_unless_dm, tool};
use volumes::class::DeviceClass;
use volumes::{CreateSnapshot, FsType, HealthIssue, Kind, Mode, Node, Severity, SnapshotState, Source};

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
    fn a_pv_whose_maker_died_before_its_group_is_taken_and_no_other_one_is() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let lab = NodeLab::new(1, Bytes::mib(256), "")?;
        let disk = lab.disks[0].path().to_owned();
        let mut settings = lab.settings()?;
        let text = class("{lvm: {}}", 1, "").replace("DISK0", &disk.display().to_string());
        settings.classes = DeviceClass::parse_all(&text)?;
        let handle = Handle::on([lvm::DevicePath::new(&disk)?], Activation::Udev, |builder| builder)?;
        let _ = handle.lvm.create_pv(&NewPv::new(lvm::DevicePath::new(&disk)?))?;
        let label = || -> Result<Vec<u8>> {
            let mut label = vec![0; 1 << 20];
            File::open(&disk)?.read_exact_at(&mut label, 0)?;
            Ok(label)
        };
        let (pv, before) = (handle.lvm.view()?.orphans[0].uuid, label()?);
        let begun = lab.path("state/begun-pvs");
        fs::create_dir_all(&begun)?;
        fs::write(begun.join("a".repeat(32)), "another one")?;
        let (_, repairs) = Node::open(settings.clone())?;
        let error = &repairs.problems[0].error;
        println!("{error}");
        ensure!(error.kind() == Kind::Refused && error.to_string().contains("pvremove"));
        ensure!(label()? == before, "a PV that is not provably ours was changed");
        // What a node wrote down before it made the PV and was killed.
        fs::write(begun.join(pv.compact()), "")?;
        for _ in 0..2 {
            let (node, repairs) = Node::open(settings.clone())?;
            println!("{repairs}");
            ensure!(repairs.problems.is_empty(), "{repairs}");
            node.create(&new("db", 16))?;
            ensure!(!begun.join(pv.compact()).exists(), "what was written down stays");
            node.delete(&id("db"))?;
        }
        let _ = handle.lvm.group(&lvm::VgName::new("gabion-lab")?)?.remove()?;
        for orphan in &handle.lvm.view()?.orphans {
            ensure!(orphan.uuid == pv, "the PV was made anew");
        }
        Ok(())
    }

    #[test]
    fn a_missing_pv_is_told_of_the_class_and_of_the_volumes_that_lie_on_it() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        let lab = NodeLab::new(2, Bytes::mib(256), &class("{lvm: {}}", 2, ""))?;
        let node = lab.node();
        node.create(&new("one", 100))?;
        node.create(&new("both", 300))?;
        let lies_on = tool::run("lvs", ["--noheadings", "-o", "devices", "-S", "lv_name=v.one"])?;
        let without = lab.disks.iter().find(|disk| !lies_on.contains(&disk.path().display().to_string()));
        let disk =
            File::options().read(true).write(true).open(without.context("one lies on both")?.path())?;
        let reasons = |issues: &[HealthIssue]| -> Vec<(Severity, &str)> {
            issues.iter().map(|issue| (issue.severity, issue.reason)).collect()
        };
        ensure!(node.ill_volumes()?.is_empty() && node.ill_classes().is_empty());
        let mut label = vec![0; 4096];
        disk.read_exact_at(&mut label, 0)?;
        disk.write_all_at(&[0; 4096], 0)?;
        disk.sync_all()?;
        let (one, ill, classes) = (node.health(&id("one")), node.ill_volumes(), node.ill_classes());
        disk.write_all_at(&label, 0)?;
        disk.sync_all()?;
        println!("{ill:?}, {classes:?}");
        let (ill, missing) = (ill?, "PhysicalVolumeMissing");
        ensure!(one?.issues.is_empty() && ill.len() == 1 && ill[0].id == id("both"));
        ensure!(reasons(&ill[0].issues) == [(Severity::Inaccessible, missing)]);
        ensure!(classes.len() == 1 && reasons(&classes[0].issues) == [(Severity::Degraded, missing)]);
        ensure!(node.ill_volumes()?.is_empty() && node.ill_classes().is_empty(), "it came back");
        node.delete(&id("one"))?;
        node.delete(&id("both"))?;
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
