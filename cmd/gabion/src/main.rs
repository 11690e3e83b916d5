//! The `gabion` command.

#![forbid(unsafe_code)]

mod change;
mod classes;
mod cli;
mod disks;
mod doctor;
mod exit;
mod failure;
#[cfg(test)]
mod fixture;
mod follow;
mod host;
mod kind;
mod live;
mod output;
mod pools;
mod progress;
mod serve;
mod state;
mod table;
mod volumes;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use self::volumes::Which;
use cli::{Cli, Command};
use exit::Exit;
use host::Host;
use output::{Format, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error).into(),
    };
    let mut stdout = std::io::stdout().lock();
    let mut output = Output::new(cli.shown.output, cli.shown.units(), &mut stdout);
    let exit = run(&cli, &mut output).unwrap_or_else(|error| {
        tell(&failure::text(&error, cli.shown.output));
        failure::exit_of(&error)
    });
    exit.into()
}

fn run(cli: &Cli, output: &mut Output<'_>) -> Result<Exit> {
    let settings = change::Settings { timeout: cli.timeout };
    match &cli.command {
        Command::Devices(arguments) => disks::run(arguments, output)?,
        Command::Pools { group } => pools::show(&Host::read()?, group.as_ref(), output)?,
        Command::Volumes { classes: true, place, .. } => classes::show_volumes(place, output)?,
        Command::Volumes { group, all, .. } => {
            let which = if *all { Which::All } else { Which::Users };
            volumes::show(&Host::read()?, group.as_ref(), which, output)?;
        }
        Command::Snapshots { place } => classes::show_snapshots(place, output)?,
        Command::Classes { place } => classes::show_classes(place, output)?,
        Command::Class(command) => classes::run_class(command, output)?,
        Command::Volume(command) => change::run_volume(command, settings, output)?,
        Command::Pool(command) => change::run_pool(command, settings, output)?,
        Command::Group(command) => change::run_group(command, settings, output)?,
        Command::Node(arguments) => serve::run(arguments)?,
        Command::Doctor => {
            let host = Host::read()?;
            return doctor::show(&host, &doctor::System::look(), &doctor::compare(&host)?, output);
        }
    }
    Ok(Exit::Ok)
}

/// A command line that was not understood, or that asked for help or the version.
fn refused(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // Who asked for help and closed the pipe has seen enough.
        let _ = error.print();
        return Exit::Ok;
    }
    let document = failure::usage(&error.to_string(), asked_format(std::env::args_os().skip(1)));
    tell(&document.unwrap_or_else(|| error.render().to_string()));
    Exit::Usage
}

/// The format that a command line asks for which could not be understood as a whole.
fn asked_format(words: impl Iterator<Item = std::ffi::OsString>) -> Format {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let asks = |format: &str| {
        let together = ["-o", "-o=", "--output="].map(|option| format!("{option}{format}"));
        let apart = |pair: &[String]| ["-o", "--output"].contains(&pair[0].as_str()) && pair[1] == format;
        words.iter().any(|word| together.contains(word)) || words.windows(2).any(apart)
    };
    match () {
        () if asks("json") => Format::Json,
        () if asks("yaml") => Format::Yaml,
        () => Format::Table,
    }
}

/// Writes to standard error; where that is closed, nobody listens, and the exit code tells all the same.
fn tell(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
