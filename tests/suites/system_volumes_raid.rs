//! Volumes on RAID legs: a whole life, and classes that have too few disks. `fault_volumes_reboot` has more lives.

use anyhow::{Result, ensure};
use devices::Bytes;
use devices::filesystem::FsType;
use rig::life::{Copies, Life, class};
use rig::node::NodeLab;
use rig::{skip_unless_dm, skip_unless_installed};
use volumes::Node;

const MIRRORED: &str = "{lvm: {layout: {raid: {level: 1}}}}";
const THIN_MIRRORED: &str = "{thin: {layout: {raid: {level: 1}}}}";

fn life(name: &'static str, pool: &str, disks: usize) -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["mkfs.ext4"]) {
        return Ok(());
    }
    let life = Life { class: name, fs: FsType::Ext4, copies: Copies::Yes };
    let paths: Vec<String> = (0..disks).map(|disk| format!("DISK{disk}")).collect();
    let spec = format!("devices: {{paths: [{}]}}, pool: {pool}", paths.join(", "));
    life.whole(&mut NodeLab::new(disks, Bytes::mib(512), &life.class(&spec))?)
}

/// Each is many commands of LVM, and mkfs besides, on an emulated machine that may have others beside it.
mod seconds_300 {
    use super::*;

    #[test]
    fn thick_volumes_live_whole_lives_on_two_copies() -> Result<()> {
        life("raid1", MIRRORED, 2)
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
