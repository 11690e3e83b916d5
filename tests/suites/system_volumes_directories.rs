//! Volumes that are directories with project quotas, end to end on real filesystems.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::filesystem::{Project, ProjectLimits};
use rig::life::{FILE, id, kind, mib, new};
use rig::node::{NodeLab, check, write};
use rig::projects::{Place, fill, usable};
use rig::{eventually, tool};
use volumes::class::DeviceClass;
use volumes::{
    Access, Capacity, Content, CreateSnapshot, CreateVolume, FsType, Kind, Mode, Node, Publish, SizeRange,
    Source, Stage,
};

/// A class of directories.
fn class(name: &str, path: &Path, more: &str) -> String {
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: {name}}}, \
         spec: {{default: {}, pool: {{directory: {{path: {}}}}}{more}}}}}",
        name == "lab",
        path.display()
    )
}

/// A node of directories in a filesystem. The filesystem outlives it.
fn lab(place: &Place, more: &str) -> Result<NodeLab> {
    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
    NodeLab::new(0, Bytes::ZERO, &class("lab", &place.root(), more))
}

/// The room of a class is what it was, but for what the filesystem keeps for its own directories.
fn is_back(node: &Node, before: &Capacity) {
    let least = before.available.saturating_sub(Bytes::mib(1));
    eventually("the space is back", Duration::from_secs(30), || {
        node.capacity(None).unwrap().available >= least
    });
}

fn whole_life(fs_type: FsType) -> Result<()> {
    if !usable().contains(&fs_type) {
        println!("SKIPPED: this machine has no project quotas on {fs_type}");
        return Ok(());
    }
    let place = Place::new(fs_type, &["prjquota"])?;
    let mut lab = lab(&place, "")?;
    let before = lab.node().capacity(None)?;
    let db = id("db");
    let made = lab.node().create(&new("db", 24))?;
    ensure!(made.size == Bytes::mib(24) && made.content == Content::Filesystem(fs_type), "{made:?}");
    ensure!(lab.node().create(&new("db", 24))? == made);
    assert_eq!(kind(lab.node().create(&new("db", 100))), Kind::Exists);
    let promised = before.available.saturating_sub(lab.node().capacity(None)?.available);
    ensure!((Bytes::mib(24)..=Bytes::mib(25)).contains(&promised), "{promised} are promised");
    let there = lab.publish(&db, Mode::Filesystem)?;
    write(&there.join("file"), "kept", FILE)?;
    ensure!(fs::metadata(&there)?.permissions().mode() & 0o7777 == 0o2777);
    // Its user gets what it is large, and not a block more.
    let got = fill(&there.join("more"), Bytes::mib(64))?;
    let usage = lab.node().stats(&db, &there)?.usage.context("no usage")?;
    println!("{fs_type}: {got} came to be, {usage:?}");
    ensure!(got > Bytes::mib(16) && got <= Bytes::mib(18), "{got}");
    ensure!(usage.total == Bytes::mib(24) && usage.used <= Bytes::mib(24) && usage.used >= Bytes::mib(22));
    let grown = lab.node().grow(&db, mib(48))?;
    ensure!(grown.size == Bytes::mib(48) && lab.node().grow(&db, mib(48))? == grown);
    assert_eq!(kind(lab.node().grow(&db, mib(1).up_to(Bytes::mib(24)))), Kind::OutOfRange);
    ensure!(lab.node().expand_filesystem(&db, &there)? == grown);
    let more = fill(&there.join("after"), Bytes::mib(64))?;
    ensure!(more > Bytes::mib(22) && more < Bytes::mib(26), "{more} after it grew");
    refusals(&lab, fs_type)?;
    lab.unpublish(&db)?;
    lab.restart()?;
    ensure!(lab.node().volumes()? == [grown]);
    check(&lab.publish(&db, Mode::Filesystem)?.join("file"), "kept", FILE)?;
    lab.unpublish(&db)?;
    for _ in 0..2 {
        lab.node().delete(&db)?;
    }
    assert_eq!(kind(lab.node().volume(&db)), Kind::NotFound);
    ensure!(!place.root().join("db").exists() && fs::read_dir(place.root().join(".gabion"))?.count() == 0);
    ensure!(place.quotas()?.report()?.is_empty(), "{:?}", place.quotas()?.report()?);
    is_back(lab.node(), &before);
    Ok(())
}

/// What a published directory refuses, and how it is shown to readers.
fn refusals(lab: &NodeLab, fs_type: FsType) -> Result<()> {
    let (node, db) = (lab.node(), id("db"));
    let read_only = lab.path("reader");
    let mut request = Publish::new(db.clone(), lab.path("staging/db"), &read_only, Mode::Filesystem);
    request.access = Access::ReadOnly;
    node.publish(&request)?;
    ensure!(fs::write(read_only.join("x"), "").is_err() && read_only.join("file").exists());
    node.unpublish(&db, &read_only)?;
    let stage = |mode| Stage::new(db.clone(), lab.path("elsewhere"), mode);
    assert_eq!(kind(node.stage(&stage(Mode::Block))), Kind::FailedPrecondition);
    let other = if fs_type == FsType::Xfs { FsType::Ext4 } else { FsType::Xfs };
    assert_eq!(kind(node.stage(&stage(Mode::Filesystem).fs_type(other))), Kind::InvalidArgument);
    assert_eq!(kind(node.stage(&stage(Mode::Filesystem).mount_options(["discard"]))), Kind::InvalidArgument);
    node.stage(&stage(Mode::Filesystem).mount_options(["noatime,nosuid"]).fs_type(fs_type))?;
    let options =
        tool::run("findmnt", ["-n", "-o", "OPTIONS", &lab.path("elsewhere").display().to_string()])?;
    ensure!(options.contains("noatime") && options.contains("nosuid"), "{options}");
    node.unstage(&db, &lab.path("elsewhere"))?;
    assert_eq!(kind(node.create(&new("other", 8).fs_type(other))), Kind::InvalidArgument);
    assert_eq!(
        kind(node.create(&new("copy", 48).source(Source::Volume(db.clone())))),
        Kind::FailedPrecondition
    );
    let cut = CreateSnapshot::new("cut".parse()?, db.clone());
    assert_eq!(kind(node.create_snapshot(&cut)), Kind::FailedPrecondition);
    assert_eq!(kind(node.trim(&db)), Kind::FailedPrecondition);
    assert_eq!(kind(node.delete(&db)), Kind::InUse);
    Ok(())
}

#[test]
fn a_directory_lives_a_whole_life_on_ext4() -> Result<()> {
    whole_life(FsType::Ext4)
}

#[test]
fn a_directory_lives_a_whole_life_on_xfs() -> Result<()> {
    whole_life(FsType::Xfs)
}

#[test]
fn the_largest_directory_that_is_promised_can_be_made_and_no_larger_one() -> Result<()> {
    for fs_type in usable() {
        let place = Place::new(fs_type, &["prjquota"])?;
        fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
        let second = place.made("second")?;
        fs::set_permissions(&second, PermissionsExt::from_mode(0o755))?;
        let text = format!(
            "{}\n---\n{}",
            class("lab", &place.root(), ", reserve: 60%"),
            class("second", &second, "")
        );
        let lab = NodeLab::new(0, Bytes::ZERO, &text)?;
        let node = lab.node();
        node.create(&new("first", 30))?;
        write(&lab.publish(&id("first"), Mode::Filesystem)?.join("file"), "first", FILE)?;
        // The other class has the same filesystem, so it counts what is promised here too.
        node.create(&new("other", 20).class("second".parse()?))?;
        let both = [None, Some("second".parse()?)];
        let [with_reserve, without] = both.each_ref().map(|name| node.capacity(name.as_ref()).unwrap());
        let kept = Bytes::new(with_reserve.total.get() / 10 * 6);
        let difference = without.available.saturating_sub(with_reserve.available);
        println!("{fs_type}: {with_reserve:?} {without:?}");
        ensure!(
            difference >= kept.saturating_sub(Bytes::mib(1))
                && difference <= kept.checked_add(Bytes::mib(1)).unwrap()
        );
        let exactly = |size: Bytes| SizeRange::at_least(size).up_to(size);
        let larger = with_reserve.largest.checked_add(with_reserve.minimum).unwrap();
        assert_eq!(kind(node.create(&CreateVolume::new(id("more"), exactly(larger)))), Kind::NoSpace);
        node.create(&CreateVolume::new(id("all"), exactly(with_reserve.largest)))?;
        assert_eq!(kind(node.create(&new("more", 1))), Kind::NoSpace);
        ensure!(node.capacity(None)?.available == Bytes::ZERO);
        // All of it can be written.
        let there = lab.publish(&id("all"), Mode::Filesystem)?;
        let got = fill(&there.join("file"), with_reserve.largest)?;
        ensure!(
            got >= with_reserve.largest.saturating_sub(Bytes::mib(2)),
            "{got} of {}",
            with_reserve.largest
        );
        for name in ["first", "all"] {
            lab.unpublish(&id(name))?;
        }
        for name in ["first", "all", "other"] {
            node.delete(&id(name))?;
        }
        ensure!(place.quotas()?.report()?.is_empty());
    }
    Ok(())
}

#[test]
fn numbers_of_others_are_left_to_them_and_lost_limits_come_back() -> Result<()> {
    for fs_type in usable() {
        let place = Place::new(fs_type, &["prjquota"])?;
        let mut lab = lab(&place, "")?;
        lab.node().create(&new("db", 8))?;
        let quotas = place.quotas()?;
        let of_db = quotas.report()?.first().context("no project")?.project;
        lab.node().delete(&id("db"))?;
        // Somebody else takes the number that the id would get, and the next but one.
        let limits = ProjectLimits { space: Some(Bytes::mib(1)), inodes: None };
        let _ = quotas.set_limits(of_db, limits)?;
        lab.node().create(&new("db", 8))?;
        let next = Project::new(of_db.get() + 1).context("no number")?;
        ensure!(quotas.usage(of_db)?.limits == limits && quotas.usage(next)?.inodes == 1);
        let _ = quotas.set_limits(next, ProjectLimits::default())?;
        lab.open()?;
        ensure!(quotas.usage(next)?.limits.space == Some(Bytes::mib(8)), "the limit was not set again");
        lab.node().delete(&id("db"))?;
        ensure!(quotas.usage(of_db)?.limits == limits);
    }
    Ok(())
}

#[test]
fn a_filesystem_that_does_not_enforce_quotas_is_refused_with_what_to_do() -> Result<()> {
    for fs_type in usable() {
        let place = Place::new(fs_type, &[])?;
        fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
        let lab = NodeLab::new(0, Bytes::ZERO, "")?;
        let mut settings = lab.settings()?;
        settings.classes = DeviceClass::parse_all(&class("lab", &place.root(), ""))?;
        let (node, repairs) = Node::open(settings)?;
        let problem = repairs.problems.first().context("no problem")?;
        println!("{}", problem.error);
        ensure!(
            problem.error.kind() == Kind::FailedPrecondition
                && problem.error.to_string().contains("prjquota")
        );
        assert_eq!(kind(node.create(&new("db", 8))), Kind::Unavailable);
        ensure!(fs::read_dir(place.root())?.all(|entry| entry.unwrap().file_name() == "lost+found"));
    }
    Ok(())
}
