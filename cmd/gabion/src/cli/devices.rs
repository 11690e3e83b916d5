//! `gabion devices`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use devices::Bytes;

/// What `gabion devices` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DevicesArguments {
    #[command(subcommand)]
    pub(crate) command: Option<DevicesCommand>,
    /// Only these: paths, links, or the kernel's names
    pub(crate) devices: Vec<PathBuf>,
    /// Also loop devices without a file, and memory disks
    #[arg(long)]
    pub(crate) all: bool,
    /// What is smaller is not usable
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) min_size: Bytes,
}

/// One variant a command.
#[derive(Debug, Subcommand)]
pub(crate) enum DevicesCommand {
    /// Tell what happens to devices, one line each: added, removed, resized, changed
    Watch {
        /// End after this time
        #[arg(long, value_name = "SECONDS")]
        limit: Option<u64>,
    },
}
