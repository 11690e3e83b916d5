//! Compares the library with spawning LVM's own command for the same result.
//!
//! Both sides see the same devices through the same configuration, take turns in one run, and are told apart in time,
//! system calls and bytes read from the devices. Times are never a test: nothing here fails for being slow.
//!
//! ```text
//!   main ── run ──┬─ reads ── fleet (1,000 volumes)      each case: ours and theirs by turns (rounds),
//!                 ├─ cache (bcache with and without)
//!                 ├─ driver (over its socket, and its memory)
//!                 ├─ fill                                then counted apart (count), so that counting
//!                 └─ changes ── profile                  slows no measurement
//!                      │
//!   site: devices, configuration, the spawned command    work: what the library does, also in a traced process
//! ```

mod cache;
mod changes;
mod count;
mod driver;
mod fill;
mod profile;
mod reads;
mod report;
mod rounds;
mod site;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};

use report::{Place, Report};
use site::Site;
use work::{Library, Work};

#[derive(Debug, Parser)]
#[command(name = "gabion-bench", about = "Compares the library with spawning LVM's own command")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every comparison that this place allows
    Run {
        /// What to call this place
        #[arg(long, default_value = "native")]
        place: String,
        /// Write the figures here as JSON
        #[arg(long)]
        json: Option<PathBuf>,
        /// How long to measure each case, in seconds
        #[arg(long, default_value_t = 6)]
        seconds: u64,
        /// Only this part
        #[arg(long)]
        only: Option<Part>,
    },
    /// Do one piece of work some times, for a tracer to count
    Work {
        /// What to do
        work: Work,
        /// Where, as `run` has written it
        #[arg(long)]
        site: PathBuf,
        /// How often
        #[arg(long)]
        times: u32,
    },
}

/// A part of the comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Cache,
    Changes,
    Driver,
    Fill,
    Reads,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run { place, json, seconds, only } => run(place, json, Duration::from_secs(seconds), only),
        Command::Work { work, site, times } => labour(work, &site, times),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(place: String, json: Option<PathBuf>, budget: Duration, only: Option<Part>) -> Result<()> {
    if rig::skip_unless_loop() {
        return Ok(());
    }
    let wanted = |part| only.is_none_or(|only| only == part);
    let mut report = Report::of(Place::here(place)?);
    report.print_head();
    if wanted(Part::Reads) {
        reads::run(&mut report, budget)?;
    }
    if let Some(disk) = site::spare_disk_for_changes().filter(|_| wanted(Part::Fill) || wanted(Part::Changes))
    {
        let site = Site::live(vec![disk])?;
        fill::make_pool(&site)?;
        if wanted(Part::Fill) {
            fill::run(&mut report, &site, budget)?;
        }
        if wanted(Part::Changes) {
            changes::run(&mut report, &site, budget)?;
        }
    } else if wanted(Part::Changes) {
        let disk = rig::Disk::new(devices::Bytes::gib(1))?;
        let site = Site::metadata_only(vec![disk.path().to_owned()])?;
        changes::run_inactive(&mut report, &site, budget)?;
    }
    if wanted(Part::Cache) && Path::new("/dev/mapper/control").exists() {
        cache::run(&mut report, budget)?;
    }
    if wanted(Part::Driver) {
        driver::run(&mut report, budget)?;
    }
    if let Some(path) = json {
        report.write(&path)?;
    }
    Ok(())
}

fn labour(work: Work, site: &Path, times: u32) -> Result<()> {
    let site = Site::load(site)?;
    let mut library = Library::start(&site)?;
    for nth in 0..times {
        library.labour(work, nth)?;
    }
    Ok(())
}
