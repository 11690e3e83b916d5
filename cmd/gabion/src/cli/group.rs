//! `gabion group …` and `gabion pool …`

use clap::{Args, Subcommand};
use devices::Bytes;
use lvm::{DevicePath, VgName};

use super::layout::{LayoutDetails, LayoutKind};
use super::value::{self, VolumePath};

/// What is done to a group.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Make a group of disks
    Create {
        /// Its name
        group: VgName,
        /// The disks or partitions
        #[arg(required = true, value_parser = value::device)]
        devices: Vec<DevicePath>,
        /// Wipe what is found on the disks; all data on them are lost
        #[arg(long)]
        wipe: bool,
        /// Succeed if it is there already, on these disks
        #[arg(long)]
        if_absent: bool,
    },
    /// Add disks to a group
    Extend {
        /// The group
        group: VgName,
        /// The disks or partitions
        #[arg(required = true, value_parser = value::device)]
        devices: Vec<DevicePath>,
        /// Wipe what is found on the disks; all data on them are lost
        #[arg(long)]
        wipe: bool,
    },
    /// Take an empty disk out of a group
    Reduce {
        /// The group
        group: VgName,
        /// The disk or partition
        #[arg(value_parser = value::device)]
        device: DevicePath,
    },
    /// Delete a group that has no volumes
    Delete {
        /// The group
        group: VgName,
        /// Succeed if it is not there
        #[arg(long)]
        if_exists: bool,
    },
    /// Take over a group that something else made; its volumes stay as they are until each is adopted
    Adopt {
        /// The group
        group: VgName,
    },
    /// Put all volumes of a group into the kernel
    Activate {
        /// The group
        group: VgName,
    },
    /// Take all volumes of a group out of the kernel
    Deactivate {
        /// The group
        group: VgName,
    },
    /// Take disks that came back into service again, and bring the volumes on them up to date
    Restore {
        /// The group
        group: VgName,
        /// Wait until the volumes' copies are in step
        #[arg(long)]
        wait: bool,
    },
    /// Use the new size of disks that were grown
    Resize {
        /// The group
        group: VgName,
    },
    /// Bring a group in order after a command on it was cut off: tables, thin pools, half-made volumes
    Recover {
        /// The group
        group: VgName,
    },
}

/// What is done to a thin pool.
#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Make a thin pool
    Create(CreatePool),
    /// Make a thin pool's data or metadata larger, also while it is in use
    Grow(GrowPool),
    /// Delete a thin pool that has no volumes
    Delete {
        /// The pool, as GROUP/NAME
        pool: VolumePath,
        /// Succeed if it is not there
        #[arg(long)]
        if_exists: bool,
    },
    /// Write a damaged thin pool's metadata anew; its volumes are deactivated for that, so none may be in use
    Repair {
        /// The pool, as GROUP/NAME
        pool: VolumePath,
    },
    /// Grow thin pools when they fill, until this is ended
    Watch(WatchPools),
}

/// `gabion pool create`
#[derive(Debug, Args)]
pub(crate) struct CreatePool {
    /// The pool, as GROUP/NAME
    pub(crate) pool: VolumePath,
    /// Room for data, such as 100GiB; metadata come on top
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Bytes,
    /// How its data lie on disks; its metadata get as many copies
    #[arg(long = "type", value_enum, default_value = "linear", value_name = "TYPE")]
    pub(crate) kind: LayoutKind,
    #[command(flatten)]
    pub(crate) details: LayoutDetails,
    /// Size of the pieces in which space is given out, a multiple of 64KiB [default: by the pool's size]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub(crate) chunk_size: Option<Bytes>,
    /// Room for metadata [default: by the pool's size]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub(crate) metadata_size: Option<Bytes>,
    /// Succeed if it is there already and is as asked
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// Wait until its copies are in step
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `gabion pool grow`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("new_size").required(true).multiple(false)))]
pub(crate) struct GrowPool {
    /// The pool, as GROUP/NAME
    pub(crate) pool: VolumePath,
    /// The new room for data; a pool that is that large already stays as it is
    #[arg(long, short, group = "new_size", value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// How much more room for data
    #[arg(long, group = "new_size", value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) by: Option<Bytes>,
    /// The new room for metadata
    #[arg(long, group = "new_size", value_name = "SIZE", value_parser = value::size)]
    pub(crate) metadata_size: Option<Bytes>,
    /// How much more room for metadata
    #[arg(long, group = "new_size", value_name = "SIZE", value_parser = value::size)]
    pub(crate) metadata_by: Option<Bytes>,
}

/// `gabion pool watch`
#[derive(Debug, Args)]
pub(crate) struct WatchPools {
    /// The pools, as GROUP/NAME [default: all that are Gabion's]
    pub(crate) pools: Vec<VolumePath>,
    /// End after a pool has grown, or could not
    #[arg(long)]
    pub(crate) once: bool,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) limit: Option<u64>,
    /// Grow when so much of the data is used
    #[arg(long, default_value = "80%", value_name = "PERCENT", value_parser = value::percent)]
    pub(crate) at: u8,
    /// Grow when so much of the metadata is used
    #[arg(long, default_value = "50%", value_name = "PERCENT", value_parser = value::percent)]
    pub(crate) metadata_at: u8,
    /// Grow by so much of the present size
    #[arg(long, default_value = "20%", value_name = "PERCENT", value_parser = value::percent)]
    pub(crate) by: u8,
}
