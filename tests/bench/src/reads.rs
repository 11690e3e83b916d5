//! Reading: the list of many volumes, and the capacity of their group.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use devices::Bytes;
use rig::Disk;

use crate::count;
use crate::report::{Report, Side};
use crate::rounds::{by_turns, timed};
use crate::site::{Site, spawn};
use crate::work::{Library, Work};

/// What `lvs` tells of that which our view has, without anything that would make it ask the kernel.
const VOLUME_FIELDS: &str = "lv_uuid,lv_name,vg_uuid,vg_name,lv_tags,lv_size,lv_permissions,lv_allocation_policy,\
    lv_read_ahead,lv_time,lv_host,lv_layout,lv_role,segtype,seg_start_pe,seg_size_pe,stripes,stripe_size,\
    seg_pe_ranges,pool_lv,origin";
/// What `vgs` tells of a group's capacity.
const GROUP_FIELDS: &str = "vg_uuid,vg_name,vg_extent_size,vg_extent_count,vg_free_count,vg_size,vg_free";
/// How many volumes the group has.
pub(crate) const VOLUMES: usize = 1000;
/// How often the library's side runs in a round, at most: it is far quicker, and its samples shall not be fewer.
const BURST: usize = 20;
/// How often a piece of work is repeated to be counted.
const COUNTED: u32 = 10;

/// Compares all reads, on a group of one disk and on one of four.
pub(crate) fn run(report: &mut Report, budget: Duration) -> Result<()> {
    for count in [1, 4] {
        let disks = Disks::take(count)?;
        let site = Site::metadata_only(disks.paths.clone())?;
        rig::fleet::fill(|words| site.lvm(words), site.dir(), site.vg(), count, VOLUMES)?;
        let disks = if count == 1 { "1 disk".to_owned() } else { format!("{count} disks") };
        let mut lvs = site.command("lvm")?;
        lvs.args([
            "lvs",
            "--reportformat",
            "json",
            "--units",
            "b",
            "--nosuffix",
            "-o",
            VOLUME_FIELDS,
            site.vg(),
        ]);
        let mut vgs = site.command("lvm")?;
        vgs.args([
            "vgs",
            "--reportformat",
            "json",
            "--units",
            "b",
            "--nosuffix",
            "-o",
            GROUP_FIELDS,
            site.vg(),
        ]);
        let listed = format!("list {} volumes on {disks}", VOLUMES);
        compare(report, budget, &site, &format!("{listed}, first"), &mut lvs, Work::ListFirst)?;
        compare(report, budget, &site, &format!("{listed}, unchanged"), &mut lvs, Work::ListAgain)?;
        let capacity = format!("capacity of the group on {disks}, unchanged");
        compare(report, budget, &site, &capacity, &mut vgs, Work::Capacity)?;
    }
    Ok(())
}

/// Times both sides by turns, then counts each.
pub(crate) fn compare(
    report: &mut Report,
    budget: Duration,
    site: &Site,
    name: &str,
    theirs: &mut Command,
    work: Work,
) -> Result<()> {
    let verb = match theirs.get_args().next().and_then(std::ffi::OsStr::to_str) {
        Some("status") => "dmsetup status",
        verb => verb.unwrap_or_default(),
    };
    let verb = verb.to_owned();
    let mut library = Library::start(site)?;
    let samples = by_turns(
        budget,
        &mut [
            Box::new(|| {
                (0..BURST).map(|_| Ok(("read", timed(|| library.labour(work, 0))?))).collect::<Result<_>>()
            }),
            Box::new(|| Ok(vec![("read", timed(|| spawn(theirs))?)])),
        ],
    )?;
    let [ours, their] = samples.as_slice() else { return Ok(()) };
    let ours_cost = count::library(site, work, COUNTED, &|_| Ok(()))?;
    let their_cost = count::counted(site, theirs)?;
    let ours = Side::new(ours.get("read"), Some(ours_cost));
    report.compare(name, &verb, ours, Side::new(their.get("read"), Some(their_cost)));
    Ok(())
}

/// Disks for one group: the machine's spare ones, else loop devices of our own.
struct Disks {
    paths: Vec<PathBuf>,
    _loops: Vec<Disk>,
}

impl Disks {
    fn take(count: usize) -> Result<Self> {
        let spare = rig::virtual_disks();
        if !spare.is_empty() {
            // The first for a group of one disk, the next four for a group of four.
            let first = if count == 1 { 0 } else { 1 };
            let paths =
                spare.get(first..first + count).context("the machine has too few spare disks")?.to_vec();
            return Ok(Self { paths, _loops: Vec::new() });
        }
        let size = Bytes::gib(20 / count as u64 + 1);
        let loops: Vec<Disk> = (0..count).map(|_| Disk::new(size)).collect::<Result<_>>()?;
        Ok(Self { paths: loops.iter().map(|disk| disk.path().to_owned()).collect(), _loops: loops })
    }
}
