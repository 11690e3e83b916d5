//! From real failing commands to typed errors, and from words to LVM's own words, over loop devices.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};
use devices::Bytes;
use lvm::run::ReturnCode;
use lvm::worker::conf::{Activation, Conf};
use lvm::{Effect, Kind};
use rig::workers::{Bench, CREATE, ask, ask_in, create, must};
use rig::{Disk, Workers, skip_unless_loop};

#[test]
fn every_refusal_that_needs_no_kernel_is_a_typed_error() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    use lvm::Space::{Data, Legs};
    let bench = Bench::new()?;
    must(&bench.pool, &create("one"))?;
    must(&bench.pool, &create("two"))?;
    let (first, second) = (bench.disk(0), bench.disk(1));
    let cases: Vec<(Vec<&str>, Kind)> = vec![
        (vec!["lvremove", "-y", "absent/x"], Kind::NotFound),
        (vec!["lvremove", "-y", "vg/absent"], Kind::NotFound),
        (vec!["lvextend", "-L", "+4m", "vg/absent"], Kind::NotFound),
        (vec!["lvrename", "vg", "absent", "x"], Kind::NotFound),
        (vec!["lvcreate", "-an", "-V", "4m", "-T", "vg/absent", "-n", "x"], Kind::NotFound),
        (vec!["vgextend", "vg", "/dev/absent"], Kind::NotFound),
        (vec!["pvresize", "/dev/absent"], Kind::NotFound),
        (create("one"), Kind::AlreadyExists),
        (vec!["lvrename", "vg", "one", "two"], Kind::AlreadyExists),
        (vec!["vgcreate", "vg", &first], Kind::AlreadyExists),
        ([CREATE[..4].as_ref(), &["-L", "8g", "-n", "x", "vg"]].concat(), Kind::NoSpace(Data)),
        (vec!["lvextend", "-L", "+8g", "vg/one"], Kind::NoSpace(Data)),
        (
            [CREATE.as_slice(), &["--type", "striped", "-i", "4", "-n", "x", "vg"]].concat(),
            Kind::NoSpace(Legs),
        ),
        (
            vec!["lvcreate", "-an", "-Zn", "-Wn", "-C", "y", "-L", "300m", "-n", "x", "vg"],
            Kind::NoSpace(Legs),
        ),
        (vec!["vgcreate", "other", &second], Kind::InUse),
        (vec!["pvcreate", "-y", &first], Kind::InUse),
        (vec!["pvremove", "-y", &first], Kind::InUse),
        (vec!["vgreduce", "vg", &first], Kind::InUse),
        ([CREATE.as_slice(), &["-n", "snapshot-1", "vg"]].concat(), Kind::InvalidArgument),
        ([CREATE.as_slice(), &["-n", "a_tdata", "vg"]].concat(), Kind::InvalidArgument),
        (vec!["lvchange", "--addtag", "a@b", "vg/one"], Kind::InvalidArgument),
        (vec!["lvextend", "-L", "4m", "vg/one"], Kind::InvalidArgument),
        (vec!["vgs", "a b"], Kind::InvalidArgument),
        (vec!["lvcreate", "-an", "--type", "raid1", "-L", "4m", "-n", "x", "vg"], Kind::Unsupported),
        (vec!["frobnicate"], Kind::Unsupported),
    ];
    for (words, kind) in cases {
        let error = bench.refused(&words)?;
        assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error:?}");
        assert!(error.answer().is_some(), "{error:?}");
    }
    let held = bench.hold_lock()?;
    let error = ask_in(&bench.pool, bench.scope.clone(), &create("x"), Duration::from_secs(3)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Busy, Effect::None), "{error:?}");
    drop(held);
    bench.pool.reconfigure(&bench.workers.conf(Activation::MetadataOnly, &[&bench.disks[0]]))?;
    let error = bench.refused(&create("x"))?;
    assert_eq!((error.kind(), error.effect()), (Kind::MissingPv, Effect::None), "{error:?}");
    Ok(())
}

#[test]
fn a_group_of_another_host_is_foreign() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    must(&bench.pool, &["vgchange", "-y", "--systemid", "elsewhere", "vg"])?;
    for words in [create("x"), vec!["vgremove", "-y", "vg"], vec!["vgchange", "--addtag", "x", "vg"]] {
        assert_eq!(bench.refused(&words)?.kind(), Kind::Foreign);
    }
    Ok(())
}

#[test]
fn a_new_group_carries_the_hosts_system_id() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(64))?;
    let workers = Workers::new()?;
    let mut conf = workers.conf(Activation::MetadataOnly, &[&disk]);
    conf.host.system_id_source = "lvmlocal".to_owned();
    conf.host.system_id = Some("node-1".to_owned());
    let pool = workers.pool(conf.clone())?.build()?;
    must(&pool, &["vgcreate", "own", &disk.path().display().to_string()])?;
    assert_eq!(must(&pool, &["vgs", "--noheadings", "-o", "systemid", "own"])?.join("").trim(), "node-1");
    conf.host.system_id = Some("node-2".to_owned());
    pool.reconfigure(&conf)?;
    let reply = ask(&pool, &["vgchange", "--addtag", "x", "own"])?;
    assert_eq!(lvm::classify::failure("tag", &reply).kind(), Kind::Foreign);
    conf.host.extra_system_ids = vec!["node-1".to_owned()];
    pool.reconfigure(&conf)?;
    must(&pool, &["vgchange", "--addtag", "x", "own"])?;
    Ok(())
}

#[test]
fn only_the_devices_of_the_configuration_are_seen_also_by_a_link_with_odd_characters() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disks = [Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(64))?];
    let workers = Workers::new()?;
    let link = format!("/dev/gabion.test+{}(x)", std::process::id());
    std::os::unix::fs::symlink(disks[0].path(), &link)?;
    let outcome = (|| {
        let conf = Conf { devices: vec![link.clone().into()], ..workers.conf(Activation::MetadataOnly, &[]) };
        let pool = workers.pool(conf)?.build()?;
        must(&pool, &["pvcreate", &link])?;
        let seen = must(&pool, &["pvs", "--noheadings", "-o", "pv_name"])?;
        let other = ask(&pool, &["pvcreate", &disks[1].path().display().to_string()])?;
        Ok::<_, anyhow::Error>((seen, lvm::classify::failure("make a PV", &other)))
    })();
    fs::remove_file(&link)?;
    let (seen, other) = outcome?;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(matches!(other.kind(), Kind::Foreign | Kind::NotFound), "{other:?}");
    Ok(())
}

#[test]
fn a_group_without_one_of_its_disks_is_missing_a_pv() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    must(&bench.pool, &create("one"))?;
    bench.pool.reconfigure(&bench.workers.conf(Activation::MetadataOnly, &[&bench.disks[0]]))?;
    for words in [create("x"), vec!["lvextend", "-L", "+4m", "vg/one"]] {
        let error = bench.refused(&words)?;
        assert_eq!(error.kind(), Kind::MissingPv, "{error:?}");
    }
    Ok(())
}

#[test]
fn two_groups_of_one_name_and_two_copies_of_a_pv_are_inconsistent() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disks = [Disk::new(Bytes::mib(64))?, Disk::new(Bytes::mib(64))?];
    let workers = Workers::new()?;
    let pool = workers.pool(workers.conf(Activation::MetadataOnly, &[&disks[0]]))?.build()?;
    must(&pool, &["vgcreate", "twin", &disks[0].path().display().to_string()])?;
    must(&pool, &[CREATE.as_slice(), &["-n", "one", "twin"]].concat())?;
    pool.reconfigure(&workers.conf(Activation::MetadataOnly, &[&disks[1]]))?;
    must(&pool, &["vgcreate", "twin", &disks[1].path().display().to_string()])?;
    must(&pool, &[CREATE.as_slice(), &["-n", "one", "twin"]].concat())?;
    pool.reconfigure(&workers.conf(Activation::MetadataOnly, &[&disks[0], &disks[1]]))?;
    let words = ["lvchange", "--addtag", "x", "twin/one"];
    let error = lvm::classify::failure("tag twin/one", &ask(&pool, &words)?);
    assert_eq!(error.kind(), Kind::Inconsistent, "{error:?}");

    fs::write(disks[1].path(), fs::read(disks[0].path())?)?;
    let error = lvm::classify::failure("tag twin/one", &ask(&pool, &words)?);
    assert_eq!(error.kind(), Kind::Inconsistent, "{error:?}");
    Ok(())
}

#[test]
fn a_full_metadata_area_is_no_space_for_metadata() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let disk = Disk::new(Bytes::mib(256))?;
    let workers = Workers::new()?;
    let pool = workers.pool(workers.conf(Activation::MetadataOnly, &[&disk]))?.build()?;
    let path = disk.path().display().to_string();
    must(&pool, &["pvcreate", "--metadatasize", "64k", &path])?;
    must(&pool, &["vgcreate", "small", &path])?;
    let tags: Vec<String> =
        (0..12).map(|index| format!("--addtag=t{index:02}{}", "x".repeat(1000))).collect();
    for index in 0..60 {
        let name = format!("lv{index}");
        let words = CREATE.into_iter().chain(["-n", &name]).chain(tags.iter().map(String::as_str));
        let words: Vec<&str> = words.chain(["small"]).collect();
        let reply = ask(&pool, &words)?;
        if reply.code != ReturnCode::Succeeded {
            let error = lvm::classify::failure("create", &reply);
            assert_eq!(error.kind(), Kind::NoSpace(lvm::Space::Metadata), "{error:?}");
            return Ok(());
        }
    }
    bail!("the metadata area never filled")
}

#[test]
fn no_word_becomes_an_option_or_a_second_word() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    // LVM repeats a name that it does not take, so its own splitter is seen at work.
    for word in
        ["a b", "it's", "\"quoted", "'quoted", "#hash", "", "a\\b", "$(x);y|z", "ü b", "a'b c", "a\"b c"]
    {
        let reply = ask(&bench.pool, &["vgs", word, "sentinel"])?;
        let said: Vec<String> = reply.records.iter().map(ToString::to_string).collect();
        let named = format!("name \"{word}\" has invalid characters");
        assert!(said.iter().any(|line| line.contains(&named)), "{word:?}: {said:?}");
        assert!(said.iter().any(|line| line.contains("\"sentinel\" not found")), "{word:?}: {said:?}");
    }
    for word in ["a\nb", "a 'b\" c", "a\0b"] {
        let error = ask(&bench.pool, &["vgs", word]).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::InvalidArgument, Effect::None), "{word:?}");
    }
    let most: Vec<&str> = std::iter::once("vgs").chain(std::iter::repeat_n("vg", 62)).collect();
    assert_eq!(ask(&bench.pool, &most)?.code, ReturnCode::Succeeded);
    let too_many: Vec<&str> = std::iter::once("vgs").chain(std::iter::repeat_n("vg", 63)).collect();
    assert_eq!(ask(&bench.pool, &too_many).unwrap_err().kind(), Kind::InvalidArgument);
    Ok(())
}

#[test]
fn a_message_that_the_library_cuts_is_told() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    bench.run(&create("one"))?;
    for index in 0..6 {
        let tag = format!("t{index}{}", "x".repeat(1000));
        bench.run(&["lvchange", "--addtag", &tag, "vg/one"])?;
    }
    assert!(bench.run(&["lvs", "--noheadings", "-o", "lv_tags", "vg/one"])?.truncated);
    assert!(!bench.run(&["lvs", "--noheadings", "-o", "lv_name", "vg/one"])?.truncated);
    Ok(())
}

#[test]
fn what_getopt_says_past_the_log_is_in_the_records() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::new()?;
    for _ in 0..2 {
        let reply = ask(&bench.pool, &["lvs", "--nosuchoption"])?;
        assert_eq!(reply.code, ReturnCode::InvalidParameters);
        let said: Vec<_> =
            reply.records.iter().filter(|record| record.message.contains("nosuchoption")).collect();
        assert_eq!(said.len(), 1, "{:?}", reply.records);
    }
    Ok(())
}
