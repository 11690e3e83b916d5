//! One worker over thousands of commands.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs;

use anyhow::Result;
use lvm::run::ReturnCode;
use rig::footprint::rollup;
use rig::skip_unless_loop;
use rig::workers::Bench;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    /// Memory of its own, in KiB: what is shared with nobody.
    private: i64,
    descriptors: usize,
}

fn footprint(pid: u32) -> Result<Footprint> {
    let private = rollup(pid, ["Private_Clean:", "Private_Dirty:"])?;
    let private = i64::try_from(private.get() / 1024)?;
    Ok(Footprint { private, descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count() })
}

#[test]
fn from_command_1000_to_3000_memory_grows_by_less_than_2_mib_and_descriptors_not_at_all() -> Result<()> {
    if skip_unless_loop() {
        return Ok(());
    }
    let bench = Bench::with(|pool| pool.recycle_after(1_000_000))?;
    let round: [&[&str]; 5] = [
        &["lvcreate", "-an", "-Zn", "-Wn", "-L", "8m", "-n", "soak", "vg"],
        &["lvchange", "--addtag", "gabion.dev/x=1", "vg/soak"],
        &["lvextend", "-L", "12m", "vg/soak"],
        &["lvs", "--reportformat", "json", "-o", "lv_all", "vg"],
        &["lvremove", "-y", "vg/soak"],
    ];
    let mut marks = Vec::new();
    for command in 1..=3000_usize {
        let words = round[(command - 1) % round.len()];
        let reply = bench.run(words)?;
        assert_eq!(reply.code, ReturnCode::Succeeded, "command {command}: {:?}", reply.records);
        if command == 1000 || command % 500 == 0 && command > 1000 {
            let pids = bench.worker_pids()?;
            assert_eq!(pids.len(), 1, "the same worker all the time");
            let mark = footprint(pids[0])?;
            println!("command {command}: {} KiB of its own, {} descriptors", mark.private, mark.descriptors);
            marks.push((pids[0], mark));
        }
    }
    let ((first_pid, first), (last_pid, last)) = (marks[0], *marks.last().unwrap());
    assert_eq!(first_pid, last_pid);
    assert!(last.private - first.private < 2048, "{first:?} to {last:?}");
    assert!(last.descriptors <= first.descriptors, "{first:?} to {last:?}");
    Ok(())
}
