//! What is done with device classes and the volumes in them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use csi::Endpoint;
use devices::Bytes;
use volumes::{ClassName, FsType, Owner, VolumeId};

use super::value;

/// Where the classes are, and who serves them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Device classes")]
pub(crate) struct Place {
    /// The file with the device classes
    #[arg(long, env = "GABION_CONFIG", value_name = "FILE", default_value = "/etc/gabion/classes.yaml")]
    pub(crate) config: PathBuf,
    /// The socket of `gabion node`; where it answers, it does the work
    #[arg(
        long,
        env = "CSI_ENDPOINT",
        value_name = "unix:///PATH",
        default_value = "unix:///run/gabion/csi.sock"
    )]
    pub(crate) csi_endpoint: Endpoint,
    /// Whose volumes these are; the machine's id where it is not given
    #[arg(long, env = "GABION_OWNER", value_name = "ID")]
    pub(crate) owner: Option<Owner>,
}

/// What is done to a class.
#[derive(Debug, Subcommand)]
pub(crate) enum ClassCommand {
    /// Check classes, show what changes, and put them into the file that `gabion node` follows
    Apply {
        /// The classes: DeviceClass objects in YAML
        #[arg(long, short, value_name = "FILE")]
        file: PathBuf,
        /// Only check, and show what would change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        place: Place,
    },
}

/// `gabion volume clone`
#[derive(Debug, Args)]
pub(crate) struct Clone {
    /// What its content is copied from: a volume of a class, or a snapshot with --snapshot
    pub(crate) source: String,
    /// The new volume
    pub(crate) volume: VolumeId,
    /// The source is a snapshot
    #[arg(long)]
    pub(crate) snapshot: bool,
    /// Its size [default: that of the source]
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// Its class, which is that of the source [default: the default class]
    #[arg(long)]
    pub(crate) class: Option<ClassName>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// `gabion volume mount` and `unmount`
#[derive(Debug, Args)]
pub(crate) struct Mount {
    /// The volume, which is in a class
    pub(crate) volume: VolumeId,
    /// The directory, which is made where it is not there
    pub(crate) directory: PathBuf,
    /// The filesystem that is expected, and made on a volume that was never used
    #[arg(long)]
    pub(crate) fs_type: Option<FsType>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// `gabion volume unmount`
#[derive(Debug, Args)]
pub(crate) struct Unmount {
    /// The volume, which is in a class
    pub(crate) volume: VolumeId,
    /// Where it is mounted
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
}
