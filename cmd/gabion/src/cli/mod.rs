//! The command line.

mod class;
mod devices;
mod group;
mod layout;
mod node;
mod value;
mod volume;

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use lvm::VgName;

use crate::output::{Format, Units};

pub(crate) use class::{ClassCommand, Clone, Mount, Place, Unmount};
pub(crate) use devices::{DevicesArguments, DevicesCommand};
pub(crate) use group::{CreatePool, GroupCommand, GrowPool, PoolCommand, WatchPools};
pub(crate) use layout::VolumeKind;
pub(crate) use node::{ControllerMode, NodeArguments};
pub(crate) use value::{VolumePath, VolumeRef};
pub(crate) use volume::{Create, Delete, Grow, NewSize, Snapshot, VolumeCommand};

/// Local storage: groups of disks, and volumes on them.
#[derive(Debug, Parser)]
#[command(name = "gabion", version, about, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 ok, 1 other, 2 usage, 3 not found, 4 exists, 5 no space, 6 busy, \
    7 refused or foreign, 8 degraded, 9 unavailable.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shown: Shown,
    /// How long to wait for each command of LVM; one that takes longer goes on, and its group stays busy meanwhile
    #[arg(long, global = true, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) timeout: Duration,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// How results are shown.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// Write results (and errors) for people or for programs
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
    /// Write sizes in tables as exact bytes
    #[arg(long, global = true)]
    pub(crate) bytes: bool,
}

impl Shown {
    /// How sizes are written in tables.
    pub(crate) fn units(&self) -> Units {
        if self.bytes { Units::Exact } else { Units::Human }
    }
}

/// One variant a command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show block devices, what they are, and whether they may be used or why not
    Devices(DevicesArguments),
    /// Show groups and thin pools: size, free space, fill, health
    Pools {
        /// Only this group
        group: Option<VgName>,
    },
    /// Show volumes, what they are, and on which disks
    Volumes {
        /// Only this group
        group: Option<VgName>,
        /// Also thin pools and LVM's hidden volumes
        #[arg(long)]
        all: bool,
        /// Those of device classes, of whatever kind, by their ids
        #[arg(long, conflicts_with_all = ["group", "all"])]
        classes: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show the snapshots of volumes of device classes
    Snapshots {
        #[command(flatten)]
        place: Place,
    },
    /// Show device classes, and what room they have here
    Classes {
        #[command(flatten)]
        place: Place,
    },
    /// Change device classes
    #[command(subcommand)]
    Class(ClassCommand),
    /// Make, grow, snapshot, restore and delete volumes
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Make, grow and watch thin pools
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Make groups of disks, and look after them
    #[command(subcommand)]
    Group(GroupCommand),
    /// Serve the volumes of device classes as a CSI driver, until SIGTERM
    Node(NodeArguments),
    /// Say what is wrong, what it means, and what to do; ends with code 8 if data are in danger
    Doctor,
}
