//! Volumes that are directories, where no quota is needed: what was left by a kill, what others put there, and what
//! users put inside.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use rig::life::{FILE, id, kind, new};
use rig::node::{NodeLab, check, write};
use rig::{Disk, Mounted, filesystem, skip_unless_installed, skip_unless_loop, tool};
use volumes::class::{DeviceClass, Sizes};
use volumes::{CreateVolume, Kind, Lifecycle, Mode, Node, SizeRange};

fn class(path: &Path) -> String {
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, \
         spec: {{default: true, pool: {{directory: {{path: {}, quota: None}}}}}}}}",
        path.display()
    )
}

/// A node of directories in a filesystem of its own. What comes first is dropped first.
struct Lab {
    node: NodeLab,
    root: PathBuf,
    _mounted: Mounted,
    _disk: Disk,
}

impl Lab {
    /// `None` where this machine cannot have one; the reason is printed.
    fn new() -> Result<Option<Self>> {
        if skip_unless_loop() || skip_unless_installed(&["mkfs.ext4"]) {
            return Ok(None);
        }
        let disk = Disk::new(Bytes::mib(64))?;
        filesystem::format("ext4", disk.path())?;
        let mounted = Mounted::new("ext4", disk.path())?;
        let root = mounted.path().canonicalize()?.join("volumes");
        fs::create_dir(&root)?;
        fs::set_permissions(&root, PermissionsExt::from_mode(0o755))?;
        let node = NodeLab::new(0, Bytes::ZERO, &class(&root))?;
        Ok(Some(Self { node, root, _mounted: mounted, _disk: disk }))
    }

    fn record(&self, id: &str) -> PathBuf {
        self.root.join(".gabion").join(format!("{id}.json"))
    }

    /// Has a record say that a volume is in another phase of its life.
    fn in_phase(&self, id: &str, phase: &str) -> Result<()> {
        let text = fs::read_to_string(self.record(id))?;
        ensure!(text.contains("\"ready\""), "{text}");
        Ok(fs::write(self.record(id), text.replace("\"ready\"", &format!("\"{phase}\"")))?)
    }
}

#[test]
fn a_directory_keeps_what_is_written_until_it_is_deleted() -> Result<()> {
    let Some(mut lab) = Lab::new()? else { return Ok(()) };
    let before = lab.node.node().capacity(None)?;
    let made = lab.node.node().create(&new("db", 4))?;
    let mut pod = new("pod", 4);
    pod.lifecycle = Lifecycle::Ephemeral;
    ensure!(lab.node.node().create(&pod)?.lifecycle == Lifecycle::Ephemeral);
    ensure!(lab.node.node().max_volumes()?.is_none());
    let there = lab.node.publish(&id("db"), Mode::Filesystem)?;
    write(&there.join("file"), "kept", FILE)?;
    // A pod may be given a directory of the volume alone.
    let part = lab.node.path("part");
    fs::create_dir_all(&part)?;
    fs::create_dir(there.join("sub"))?;
    let (from, to) = (there.join("sub").display().to_string(), part.display().to_string());
    tool::run("mount", ["--bind", &from, &to])?;
    lab.node.unpublish(&id("db"))?;
    assert_eq!(kind(lab.node.node().delete(&id("db"))), Kind::InUse);
    tool::run("umount", [&to])?;
    lab.node.restart()?;
    ensure!(lab.node.node().volume(&id("db"))? == made && lab.node.node().volumes()?.len() == 2);
    check(&lab.node.publish(&id("db"), Mode::Filesystem)?.join("file"), "kept", FILE)?;
    lab.node.unpublish(&id("db"))?;
    // Something mounted in it is neither entered nor removed.
    let inside = lab.root.join("db/sub").display().to_string();
    tool::run("mount", ["-t", "tmpfs", "none", &inside])?;
    assert_eq!(kind(lab.node.node().delete(&id("db"))), Kind::InUse);
    tool::run("umount", [&inside])?;
    for name in ["db", "pod"] {
        lab.node.node().delete(&id(name))?;
    }
    ensure!(fs::read_dir(&lab.root)?.count() == 1 && lab.node.node().capacity(None)? == before);
    Ok(())
}

#[test]
fn without_a_quota_sizes_are_counted_but_enforced_by_nobody_and_no_statistics_say_otherwise() -> Result<()> {
    let Some(lab) = Lab::new()? else { return Ok(()) };
    let node = lab.node.node();
    ensure!(node.class(None)?.sizes() == Sizes::Promised);
    let room = || -> Result<Bytes> { Ok(node.capacity(None)?.largest) };
    let (before, size) = (room()?, Bytes::mib(16));
    node.create(&new("db", 16))?;
    // What it has not written yet is promised to nobody else.
    let taken = before.saturating_sub(room()?);
    ensure!(taken > Bytes::mib(15) && taken <= size, "{taken} of {size} are kept for it");
    let there = lab.node.publish(&id("db"), Mode::Filesystem)?;
    fs::write(there.join("file"), vec![7; 12 << 20])?;
    File::open(there.join("file"))?.sync_all()?;
    let taken = before.saturating_sub(room()?);
    ensure!(taken > Bytes::mib(15) && taken < Bytes::mib(18), "{taken} when it has written most of it");
    let left = room()?;
    let all = CreateVolume::new(id("more"), SizeRange::at_least(Bytes::new(left.get() + 1)));
    assert_eq!(kind(node.create(&all)), Kind::NoSpace);
    node.create(&CreateVolume::new(id("more"), SizeRange::at_least(left)))?;
    ensure!(room()? == Bytes::ZERO);
    node.delete(&id("more"))?;
    // Beyond its size it takes what the others could have been promised.
    fs::write(there.join("more"), vec![7; 20 << 20])?;
    File::open(there.join("more"))?.sync_all()?;
    let usage = node.stats(&id("db"), &there)?.usage.context("no usage")?;
    ensure!(usage.used > Bytes::mib(31) && usage.total > Bytes::mib(40), "{usage:?} is not the filesystem's");
    let left = room()?;
    ensure!(before.saturating_sub(left) > Bytes::mib(31), "{left} of {before} are left");
    lab.node.unpublish(&id("db"))?;
    node.delete(&id("db"))?;
    ensure!(room()? == before);
    Ok(())
}

#[test]
fn what_a_kill_left_is_removed_and_what_others_put_there_is_not() -> Result<()> {
    let Some(mut lab) = Lab::new()? else { return Ok(()) };
    let names = ["begun", "aside", "placed", "removing", "half-gone", "whole"];
    for name in names {
        lab.node.node().create(&new(name, 1))?;
        fs::write(lab.root.join(name).join("file"), name)?;
    }
    let aside = |name: &str| lab.root.join(".gabion").join(format!("{name}.dir"));
    // Killed after the record, and a stranger made a directory of that name since.
    fs::remove_dir_all(lab.root.join("begun"))?;
    fs::create_dir(lab.root.join("begun"))?;
    fs::write(lab.root.join("begun/file"), "a stranger's")?;
    fs::rename(lab.root.join("aside"), aside("aside"))?;
    fs::rename(lab.root.join("half-gone"), aside("half-gone"))?;
    for name in ["begun", "aside", "placed"] {
        lab.in_phase(name, "creating")?;
    }
    for name in ["removing", "half-gone"] {
        lab.in_phase(name, "removing")?;
    }
    fs::write(lab.record("whole").with_extension("json.new"), "{")?;
    // One of them is met by its own caller before the node is opened again.
    lab.node.node().create(&new("aside", 2))?;
    ensure!(!lab.root.join("aside/file").exists());
    lab.node.node().delete(&id("half-gone"))?;
    ensure!(!aside("half-gone").exists());
    lab.node.open()?;
    let left: Vec<String> =
        lab.node.node().volumes()?.into_iter().map(|volume| volume.id.to_string()).collect();
    ensure!(left == ["aside", "whole"], "{left:?}");
    ensure!(fs::read_to_string(lab.root.join("begun/file"))? == "a stranger's");
    ensure!(fs::read_to_string(lab.root.join("whole/file"))? == "whole");
    for name in ["placed", "removing"] {
        ensure!(!lab.root.join(name).exists() && !lab.record(name).exists(), "{name} is still there");
    }
    assert_eq!(kind(lab.node.node().create(&new("begun", 1))), Kind::Refused);
    ensure!(!lab.record("begun").exists() && lab.root.join("begun/file").exists());
    Ok(())
}

#[test]
fn nothing_that_is_not_the_volume_is_shown_or_removed_in_its_place() -> Result<()> {
    let Some(lab) = Lab::new()? else { return Ok(()) };
    let outside = lab.root.parent().context("no parent")?.join("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("file"), "theirs")?;
    let node = lab.node.node();
    symlink(&outside, lab.root.join("link"))?;
    fs::create_dir(lab.root.join("theirs"))?;
    for name in ["link", "theirs"] {
        assert_eq!(kind(node.create(&new(name, 1))), Kind::Refused);
        ensure!(!lab.record(name).exists());
        node.delete(&id(name))?;
        ensure!(fs::symlink_metadata(lab.root.join(name)).is_ok());
    }
    node.create(&new("db", 1))?;
    fs::rename(lab.root.join("db"), lab.root.join("elsewhere"))?;
    // A link, a plain directory, and the directory of another volume.
    node.create(&new("other", 1))?;
    fs::write(lab.root.join("other/file"), "other's")?;
    for put in ["link", "directory", "other"] {
        match put {
            "link" => symlink(&outside, lab.root.join("db"))?,
            "directory" => fs::create_dir(lab.root.join("db"))?,
            _ => fs::rename(lab.root.join("other"), lab.root.join("db"))?,
        }
        let error = lab.node.publish(&id("db"), Mode::Filesystem).unwrap_err();
        println!("{error:#}");
        ensure!(error.downcast_ref::<volumes::Error>().context("another error")?.kind() == Kind::Refused);
        assert_eq!(kind(node.delete(&id("db"))), Kind::Refused);
        match put {
            "link" => fs::remove_file(lab.root.join("db"))?,
            "directory" => fs::remove_dir(lab.root.join("db"))?,
            _ => fs::rename(lab.root.join("db"), lab.root.join("other"))?,
        }
    }
    ensure!(fs::read_to_string(outside.join("file"))? == "theirs");
    ensure!(fs::read_to_string(lab.root.join("other/file"))? == "other's");
    // What a user links to stays when the volume goes.
    fs::rename(lab.root.join("elsewhere"), lab.root.join("db"))?;
    symlink(&outside, lab.root.join("db/out"))?;
    symlink(lab.root.join("other"), lab.root.join("db/other"))?;
    node.delete(&id("db"))?;
    ensure!(outside.join("file").exists() && lab.root.join("other/file").exists());
    Ok(())
}

#[test]
fn a_directory_that_others_may_change_and_one_that_is_not_there_are_refused() -> Result<()> {
    let Some(lab) = Lab::new()? else { return Ok(()) };
    let open = |path: &Path| -> Result<volumes::Error> {
        let mut settings = lab.node.settings()?;
        settings.classes = DeviceClass::parse_all(&class(path))?;
        let (_, repairs) = Node::open(settings)?;
        repairs.problems.into_iter().next().map(|problem| problem.error).context("it is taken")
    };
    let public = lab.root.join("public");
    fs::create_dir(&public)?;
    for mode in [0o777, 0o1777, 0o775] {
        fs::set_permissions(&public, PermissionsExt::from_mode(mode))?;
        let error = open(&public)?;
        println!("{error}");
        ensure!(error.kind() == Kind::Refused);
    }
    fs::set_permissions(&public, PermissionsExt::from_mode(0o755))?;
    std::os::unix::fs::chown(&public, Some(1234), None)?;
    ensure!(open(&public)?.kind() == Kind::Refused);
    ensure!(open(&lab.root.join("gone"))?.kind() == Kind::Unavailable);
    ensure!(open(Path::new("/proc"))?.kind() == Kind::FailedPrecondition);
    Ok(())
}

#[test]
fn the_sizes_of_directories_without_quotas_are_promised_once() -> Result<()> {
    let Some(lab) = Lab::new()? else { return Ok(()) };
    let node = lab.node.node();
    let capacity = node.capacity(None)?;
    let exactly = |size: Bytes| SizeRange::at_least(size).up_to(size);
    let larger = capacity.largest.checked_add(capacity.minimum).context("too large")?;
    assert_eq!(kind(node.create(&CreateVolume::new(id("more"), exactly(larger)))), Kind::NoSpace);
    node.create(&CreateVolume::new(id("all"), exactly(capacity.largest)))?;
    assert_eq!(kind(node.create(&new("more", 16))), Kind::NoSpace);
    node.delete(&id("all"))?;
    ensure!(node.capacity(None)? == capacity);
    Ok(())
}
