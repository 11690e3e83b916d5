//! `gabion volume …`

use clap::{Args, Subcommand};
use devices::Bytes;
use lvm::{DevicePath, LvName};

use volumes::{ClassName, FsType};

use super::class::{Clone, Mount, Place, Unmount};
use super::layout::{LayoutDetails, VolumeKind};
use super::value::{self, VolumePath, VolumeRef};

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
    /// Make a volume of a class with the content of another one, or of a snapshot
    Clone(Clone),
    /// Mount a volume of a class, with a filesystem made at its first use
    Mount(Mount),
    /// Take a volume of a class off a directory
    Unmount(Unmount),
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
    /// The volume: GROUP/NAME for a volume of LVM, NAME for one in a device class
    pub(crate) volume: VolumeRef,
    /// Its size, such as 10GiB; rounded up to what its pool gives out
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
    /// The device class that it is in [default: the default class]
    #[arg(long)]
    pub(crate) class: Option<ClassName>,
    /// The filesystem that it gets when it is first mounted [default: that of its class]
    #[arg(long)]
    pub(crate) fs_type: Option<FsType>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// `gabion volume grow`
#[derive(Debug, Args)]
pub(crate) struct Grow {
    /// The volume: GROUP/NAME for a volume of LVM, NAME for one in a device class
    pub(crate) volume: VolumeRef,
    #[command(flatten)]
    pub(crate) to: NewSize,
    /// Write zeroes over what lay where the volume grows, before this command ends; thin volumes need none
    #[arg(long)]
    pub(crate) zero_added: bool,
    /// Disks of the group to use; may be repeated [default: whichever have room]
    #[arg(long = "on", value_name = "DEVICE", value_parser = value::device)]
    pub(crate) on: Vec<DevicePath>,
    #[command(flatten)]
    pub(crate) place: Place,
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
    /// The volume to cut it from: GROUP/NAME for a volume of LVM, NAME for one in a device class
    pub(crate) origin: VolumeRef,
    /// The snapshot's name, in the same group or class
    pub(crate) name: String,
    /// Space for what changes, for a snapshot of a thick volume; when it is full, the snapshot is lost
    #[arg(long, short, value_parser = value::size, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// Activate a thin snapshot at once, as a volume to use
    #[arg(long)]
    pub(crate) active: bool,
    /// Succeed if it is there already and is as asked
    #[arg(long)]
    pub(crate) if_absent: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// `gabion volume delete`
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The volume or snapshot: GROUP/NAME for one of LVM, NAME for one in a device class
    pub(crate) volume: VolumeRef,
    /// Of a device class: the snapshot of that name, not the volume
    #[arg(long)]
    pub(crate) snapshot: bool,
    /// Tell the disk first that the volume's blocks are not needed any more
    #[arg(long)]
    pub(crate) discard: bool,
    /// Write zeroes over the volume first
    #[arg(long, conflicts_with = "discard")]
    pub(crate) zero: bool,
    /// Succeed if it is not there
    #[arg(long)]
    pub(crate) if_exists: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}
