//! The developer's commands: `cargo xtask COMMAND`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{bench, bindings, conformance, demo, setup, test, tidy, vm};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The developer's commands of Gabion")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One variant a command, one module a variant.
#[derive(Subcommand)]
enum Command {
    /// Make lvm-sys/src/bindings.rs from vendor-headers, or check it
    Bindings(bindings::Arguments),
    /// Compare the library with spawning LVM's own command
    Bench(bench::Arguments),
    /// Make the table in csi/CONFORMANCE.md from the results of the last conformance tests, or check it
    ConformanceTable(conformance::Arguments),
    /// Show on real disks what Gabion does, in a few minutes
    Demo(demo::Arguments),
    /// Install what the rig needs, and fetch the guest's kernel
    Setup(setup::Arguments),
    /// Run the tests
    Test(test::Arguments),
    /// Check what the compiler does not: file lengths, dependencies between packages, forbidden words
    Tidy,
    /// Open a shell or run a command in the disposable virtual machine
    Vm(vm::Arguments),
}

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Bindings(arguments) => bindings::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::ConformanceTable(arguments) => conformance::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy => tidy::run(),
        Command::Vm(arguments) => vm::run(&arguments),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
