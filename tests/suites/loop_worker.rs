//! The worker processes over loop devices, with metadata-only LVM.

use anyhow::Result;
use devices::Bytes;
use lvm::run::ReturnCode;
use lvm::worker::Pool;
use lvm::worker::conf::Activation;
use rig::workers::{PATIENCE, ask, ask_in, must, scope_of};
use rig::{Disk, Workers, skip_unless_loop};

/// Two disks, a pool that sees them, and the group `vg` on both.
struct Bench {
    pool: Pool,
    disks: [Disk; 2],
    workers: Workers,
}

fn bench() -> Result<Bench> {
    let disks = [Disk::new(Bytes::mib(256))?, Disk::new(Bytes::mib(256))?];
    let workers = Workers::new()?;
    let conf = workers.conf(Activation::MetadataOnly, &[&disks[0], &disks[1]]);
    let pool = workers.pool(conf)?.build()?;
    let paths: Vec<String> = disks.iter().map(|disk| disk.path().display().to_string()).collect();
    must(&pool, &["pvcreate", "--metadatasize", "4m", &paths[0], &paths[1]])?;
    must(&pool, &["vgcreate", "vg", &paths[0], &paths[1]])?;
    Ok(Bench { pool, disks, workers })
}

#[test]
fn a_command_runs_through_a_worker_and_its_messages_come_back() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = bench()?;
    let scope = scope_of(&bench.pool, "vg")?;
    let words = ["lvcreate", "-an", "-Zn", "-Wn", "-L", "8m", "-n", "one", "vg"];
    let reply = ask_in(&bench.pool, scope, &words, PATIENCE)?;
    assert_eq!(reply.code, ReturnCode::Succeeded, "{:?}", reply.records);
    assert!(reply.records.iter().any(|record| record.message.contains("Logical volume \"one\" created")));
    assert!(!reply.truncated);
    assert!(bench.pool.lvm_version().is_some_and(|version| version.starts_with("2.03.")));
    assert_eq!(must(&bench.pool, &["lvs", "--noheadings", "-o", "lv_name", "vg"])?.join("").trim(), "one");
    let reply = ask(&bench.pool, &["lvs", "vg/absent"])?;
    assert_eq!(reply.code, ReturnCode::Failed);
    drop((bench.disks, bench.workers));
    Ok(())
}
