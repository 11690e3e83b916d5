//! The native metadata reader against LVM's own word, on loop devices and without device-mapper.

use anyhow::{Result, ensure};
use devices::Bytes;
use rig::{Disk, Sandbox, oracle, skip_unless_loop};

/// Disks of the sizes given in MiB, and an LVM that sees them.
fn disks(sizes: &[u64]) -> Result<(Vec<Disk>, Sandbox)> {
    let disks = sizes.iter().map(|size| Disk::new(Bytes::mib(*size))).collect::<Result<Vec<_>>>()?;
    let sandbox = Sandbox::metadata_only(disks.iter().map(Disk::path))?;
    Ok((disks, sandbox))
}

/// A group on all disks.
fn group(sandbox: &Sandbox, name: &str) -> Result<()> {
    let devices: Vec<_> = sandbox.devices().iter().map(|path| path.display().to_string()).collect();
    sandbox.run(&format!("vgcreate {name} {}", devices.join(" ")))?;
    Ok(())
}

/// Makes a volume without a live device: `words` say its size and layout.
fn volume(sandbox: &Sandbox, words: &str) -> Result<()> {
    sandbox.run(&format!("lvcreate -an -Zn -Wn -y {words}")).map(drop)
}

#[test]
fn an_empty_group_reads_as_lvm_reports_it() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[64, 64])?;
    group(&sandbox, "empty")?;
    oracle::agree(&sandbox)?;
    ensure!(sandbox.view().problems.is_empty());
    Ok(())
}

#[test]
fn linear_striped_and_scattered_volumes_read_as_lvm_reports_them() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let (_disks, sandbox) = disks(&[128, 128, 64])?;
    group(&sandbox, "data")?;
    volume(&sandbox, "-n linear -l 5 data")?;
    volume(&sandbox, "-n striped -i 3 -I 16k -l 9 data")?;
    volume(&sandbox, "-n gap -l 4 data")?;
    volume(&sandbox, "-n read-only -p r -l 2 data")?;
    sandbox.run("lvextend -l +4 data/linear")?;
    sandbox.run("lvextend -l +3 data/striped")?;
    sandbox.run("lvremove -y data/gap")?;
    sandbox.run("lvextend -l +30 data/linear")?;
    oracle::agree(&sandbox)?;
    let view = sandbox.view();
    let vg = view.vg("data").expect("the group");
    ensure!(vg.lv("linear").is_some_and(|lv| lv.segments.len() > 2), "the volume is in one piece");
    Ok(())
}
