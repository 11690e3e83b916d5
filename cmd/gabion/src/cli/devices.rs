//! `gabion devices`.

use std::path::PathBuf;

use clap::Args;
use devices::Bytes;

/// What `gabion devices` takes.
#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Only these: paths, links, or the kernel's names
    pub(crate) devices: Vec<PathBuf>,
    /// Also loop devices without a file, and memory disks
    #[arg(long)]
    pub(crate) all: bool,
    /// What is smaller is not usable
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) min_size: Bytes,
}
