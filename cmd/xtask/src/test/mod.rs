//! `cargo xtask test`: every test that there is, tier by tier, and one line that sums them up.

pub mod case;
pub mod here;
pub mod in_machine;
pub mod tally;
pub mod tier;
pub mod unit;
pub mod verdict;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use case::Case;
use tally::Tally;
use tier::{Selection, Tier};

/// What `cargo xtask test` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Tiers (unit, loop, system, fault, soak), `full` for all of them, and parts of test names; without a tier:
    /// what continuous integration runs
    words: Vec<String>,
    /// Run the suites on this very host instead of the machine: only what is marked host-safe
    #[arg(long)]
    here: bool,
    /// Only list what would run
    #[arg(long)]
    list: bool,
}

/// Runs the selected tests; fails when any test failed or none was found.
///
/// # Errors
/// When something cannot be built, or the machine cannot be started at all.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let selection = Selection::parse(&arguments.words);
    let mut tally = Tally::default();
    for tier in Tier::ALL {
        if let Some(why) = selection.leaves_out(tier) {
            tally.leave_out(format!("the tier {}", tier.name()), why);
        }
    }
    if selection.has(Tier::Unit) && !arguments.list {
        unit::run(&selection, &mut tally)?;
    }
    let cases = case::select(&selection)?;
    if arguments.list {
        for case in &cases {
            println!("{}", case.full_name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (on_loop, rest): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.tier == Tier::Loop);
    here::run_loop_tier(&on_loop, &mut tally)?;
    if arguments.here {
        here::run_host_safe(&rest, &mut tally)?;
    } else if !rest.is_empty() {
        in_machine::run(&rest, &mut tally)?;
    }
    print!("{}", tally.report());
    Ok(if tally.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
