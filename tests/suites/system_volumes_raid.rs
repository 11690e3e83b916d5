//! Volumes on RAID legs: a lost disk, and classes that have too few disks. `fault_volumes_reboot` has their whole lives.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use devices::Bytes;
use lvm::LvName;
use rig::faulty::Faulty;
use rig::life::{FILE, class, id, new};
use rig::node::{NodeLab, check, write};
use rig::{Disk, eventually, skip_unless_dm, skip_unless_installed};
use volumes::{Mode, Node, Severity, VolumeId};

const MIRRORED: &str = "{lvm: {layout: {raid: {level: 1}}}}";
const THIN_MIRRORED: &str = "{thin: {layout: {raid: {level: 1}}}}";

/// Each is many commands of LVM, and mkfs besides, on an emulated machine that may have others beside it.
mod seconds_300 {
    use super::*;

    /// Every leg of one disk dies under thick and thin volumes that are written to, and comes back.
    #[test]
    fn a_lost_disk_is_told_and_harms_no_volume_with_copies() -> Result<()> {
        if skip_unless_dm() || skip_unless_installed(&["mkfs.ext4"]) {
            return Ok(());
        }
        let disks: Vec<Faulty> =
            (0..2).map(|_| Faulty::over(Disk::new(Bytes::mib(400))?)).collect::<Result<_>>()?;
        let paths: Vec<PathBuf> = disks.iter().map(|disk| disk.path().to_owned()).collect();
        let thick = class(MIRRORED, 2, "")
            .replace("DISK0", &paths[0].display().to_string())
            .replace("DISK1", &paths[1].display().to_string());
        let thin = "{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {name: thin}, spec: {devices: \
                    {sharedWith: lab}, pool: {thin: {sizePercent: 50, layout: {raid: {level: 1}}}}}}";
        let mut lab = NodeLab::on(paths, &format!("{thick}\n---\n{thin}"))?;
        let ids = [id("thick"), id("thin")];
        lab.node().create(&new("thick", 32))?;
        lab.node().create(&new("thin", 32).class("thin".parse()?))?;
        for id in &ids {
            write(&lab.publish(id, Mode::Filesystem)?.join("file"), "first", FILE)?;
        }
        let reasons = |lab: &NodeLab, id: &VolumeId| -> Result<Vec<(Severity, &str)>> {
            let issues = lab.node().health(id)?.issues;
            Ok(issues.iter().map(|issue| (issue.severity, issue.reason)).collect())
        };
        for id in &ids {
            ensure!(reasons(&lab, id)?.is_empty(), "{id}: {:?}", lab.node().health(id)?);
        }
        disks[1].fail()?;
        for id in &ids {
            let file = lab.target(id).join("file");
            write(&file, "second", FILE)?;
            check(&file, "second", FILE)?;
            let issues = lab.node().health(id)?.issues;
            println!("{issues:?}");
            ensure!(reasons(&lab, id)? == [(Severity::Degraded, "RaidDegraded")], "{id}: {issues:?}");
        }
        let classes = lab.node().ill_classes();
        let told =
            |reason| classes.iter().all(|class| class.issues.iter().any(|issue| issue.reason == reason));
        ensure!(classes.len() == 2 && told("PhysicalVolumeMissing") && told("RaidDegraded"), "{classes:?}");
        disks[1].recover()?;
        let group = lab.group("gabion-lab")?;
        let _ = group.restore_missing()?;
        for name in ["v.thick", "pool"] {
            group.refresh_volume(&LvName::new(name)?)?;
        }
        for id in &ids {
            eventually("the legs are in step again", Duration::from_secs(60), || {
                lab.node().health(id).is_ok_and(|health| health.issues.is_empty())
            });
            check(&lab.target(id).join("file"), "second", FILE)?;
            lab.unpublish(id)?;
            lab.node().delete(id)?;
        }
        lab.restart()
    }

    #[test]
    fn a_class_with_too_few_disks_makes_no_group_and_says_how_many_it_takes() -> Result<()> {
        if skip_unless_dm() {
            return Ok(());
        }
        for pool in [MIRRORED, THIN_MIRRORED] {
            let lab = NodeLab::new(1, Bytes::mib(256), "")?;
            let disk = lab.disks[0].path().display().to_string();
            let mut settings = lab.settings()?;
            settings.classes =
                volumes::class::DeviceClass::parse_all(&class(pool, 1, "").replace("DISK0", &disk))?;
            let (_node, repairs) = Node::open(settings)?;
            println!("{repairs}");
            let text = repairs.problems[0].error.to_string();
            ensure!(text.contains("takes 2 disks, and 1 can be used"), "{text}");
            ensure!(rig::tool::run("pvs", ["--noheadings", &disk]).is_err(), "a PV was made");
        }
        Ok(())
    }
}
