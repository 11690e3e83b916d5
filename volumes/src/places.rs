//! Where on this host a volume is seen now, told by the kernel's mount table alone.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use devices::DeviceNumber;
use devices::mount::{Mount, MountTable};

use crate::backend::Medium;
use crate::mounts::number_of;
use crate::{Error, Kind};

/// Every place where a volume, or something of it, is seen.
pub(crate) fn of(table: &MountTable, medium: &Medium) -> Vec<PathBuf> {
    match medium {
        Medium::Device(device) => of_device(table, device),
        Medium::Directory(place) => {
            let mounts = table.iter().filter(|mount| place.is_used_by(mount));
            mounts.map(|mount| mount.mount_point.clone()).collect()
        }
    }
}

/// Every place where a device's filesystem, or the device itself, is mounted.
fn of_device(table: &MountTable, device: &Path) -> Vec<PathBuf> {
    // A device that has no node is seen nowhere.
    let Ok(number) = number_of(device) else { return Vec::new() };
    let shows = |mount: &&Mount| mount.block_device() == Some(number) || is_node(mount, number);
    table.iter().filter(shows).map(|mount| mount.mount_point.clone()).collect()
}

/// Whether any mount may show the node of a device.
pub(crate) fn shows_nodes(table: &MountTable) -> bool {
    table.iter().any(may_be_node)
}

/// Whether a mount is of something in a filesystem that has nodes of devices.
fn may_be_node(mount: &Mount) -> bool {
    ["devtmpfs", "tmpfs"].iter().any(|fs| mount.fs_type == *fs) && mount.root != Path::new("/")
}

/// Whether a mount shows a device's node: a file of the filesystem that has the nodes, at the place of another file.
fn is_node(mount: &Mount, number: DeviceNumber) -> bool {
    // Only there is it worth looking, and only there can looking not hang: a dead network mount would never answer.
    may_be_node(mount)
        && std::fs::symlink_metadata(&mount.mount_point).is_ok_and(|there| {
            there.file_type().is_block_device() && DeviceNumber::from_rdev(there.rdev()) == number
        })
}

/// Refuses a volume that is seen anywhere but at these places, for a user who wants it alone.
///
/// # Errors
///
/// [`Kind::FailedPrecondition`] with one of the other places.
pub(crate) fn must_be_alone(medium: &Medium, but: [&Path; 2], tried: &str) -> Result<(), Error> {
    let table = MountTable::read()?;
    match of(&table, medium).iter().find(|place| !but.contains(&place.as_path())) {
        None => Ok(()),
        Some(place) => Err(Error::new(Kind::FailedPrecondition, tried)
            .with_answer(format!("it is wanted alone, and is seen at {} too", place.display()))
            .with_advice("unpublish it there first")),
    }
}
