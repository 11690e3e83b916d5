//! `gabion volume …`

use clap::{Args, Subcommand};
use devices::Bytes;
use lvm::{DevicePath, LvName};

use super::layout::{LayoutDetails, VolumeKind};
use super::value::{self, VolumePath};

/// What is done to a volume.
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Make a volume: wiped (thick) or empty (thin), and active
    Create(Create),
    /// Make a volume larger, also while it is mounted; the filesystem on it is grown by its own tool
    Grow(Grow),
    /// Cut a snapshot; a mounted filesystem is frozen for that moment
    Snapshot(Snapshot),
    /// Put a snapshot's content back into its origin; the snapshot is used up by that
    Restore {
        /// The snapshot, as GROUP/NAME
        snapshot: VolumePath,
    },
    /// Delete a volume or a snapshot, and all that is on it
    Delete(Delete),
    /// Put a volume into the kernel
    Activate {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
    },
    /// Take a volume out of the kernel
    Deactivate {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
    },
    /// Load a volume's tables anew, as after a disk of it that was away for a moment came back
    Refresh {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
        /// Wait until its copies are in step
        #[arg(long)]
        wait: bool,
    },
    /// Replace the failed legs of a RAID volume by new ones on other disks of the group
    Repair {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
        /// Disks for the new legs; may be repeated [default: whichever have room]
        #[arg(long = "on", value_name = "DEVICE", value_parser = value::device)]
        on: Vec<DevicePath>,
        /// Wait until its copies are in step
        #[arg(long)]
        wait: bool,
    },
    /// Compare the copies of a RAID volume with each other, and wait for the result
    Scrub {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
        /// Make good what differs, from parity or the first copy
        #[arg(long)]
        repair: bool,
    },
    /// Take over a volume that something else made, so that it can be changed here
    Adopt {
        /// The volume, as GROUP/NAME
        volume: VolumePath,
    },
}

/// `gabion volume create`
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The volume, as GROUP/NAME
    pub(crate) volume: VolumePath,
    /// Its size, such as 10GiB; rounded up to the group's extents
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Bytes,
    /// What it is to be [default: linear; with --pool: thin]
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) kind: Option<VolumeKind>,
    /// The thin pool of its group that it is to be in
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<LvName>,
    #[command(flatten)]
    pub(crate) details: LayoutDetails,
    /// Succeed if it is there already and is as asked
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// Wait until its copies are in step
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `gabion volume grow`
#[derive(Debug, Args)]
pub(crate) struct Grow {
    /// The volume, as GROUP/NAME
    pub(crate) volume: VolumePath,
    #[command(flatten)]
    pub(crate) to: NewSize,
    /// Write zeroes over what lay where the volume grows, before this command ends; thin volumes need none
    #[arg(long)]
    pub(crate) zero_added: bool,
    /// Disks of the group to use; may be repeated [default: whichever have room]
    #[arg(long = "on", value_name = "DEVICE", value_parser = value::device)]
    pub(crate) on: Vec<DevicePath>,
}

/// A size, or how much more.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NewSize {
    /// The new size; what is that large already stays as it is
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// How much larger
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) by: Option<Bytes>,
}

/// `gabion volume snapshot`
#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    /// The volume to cut it from, as GROUP/NAME
    pub(crate) origin: VolumePath,
    /// The snapshot's name in the same group
    pub(crate) name: LvName,
    /// Space for what changes, for a snapshot of a thick volume; when it is full, the snapshot is lost
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// Activate a thin snapshot at once, as a volume to use
    #[arg(long)]
    pub(crate) active: bool,
    /// Succeed if it is there already and is as asked
    #[arg(long)]
    pub(crate) if_absent: bool,
}

/// `gabion volume delete`
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The volume or snapshot, as GROUP/NAME
    pub(crate) volume: VolumePath,
    /// Tell the disk first that the volume's blocks are not needed any more
    #[arg(long)]
    pub(crate) discard: bool,
    /// Write zeroes over the volume first
    #[arg(long, conflicts_with = "discard")]
    pub(crate) zero: bool,
    /// Succeed if it is not there
    #[arg(long)]
    pub(crate) if_exists: bool,
}
