//! Unmounting.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::{Mount, MountTable, Present, Target};
use crate::{Change, DeviceNumber, Error, Kind};

/// How often a busy mount is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// What to do with a mount that stays in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhenBusy {
    /// It stays, and the error says so.
    Refuse,
    /// It loses its name at once and ends with its last user, where no data can be lost by that; elsewhere it
    /// stays. See [`unmount`] for where that is.
    DetachIfSafe,
}

/// How a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unmounted {
    /// It has gone, with all that it held.
    Gone,
    /// It has no name any more, but lives until whoever has something open in it closes that. Until then the
    /// device below is in use, and claiming it fails.
    Detached,
}

/// Unmounts the topmost mount at a target; nothing mounted there is no error.
///
/// Whether something is mounted is decided by the kernel's own table alone, so a filesystem whose device has died
/// is unmounted like any other. A busy mount is tried again until `patience` has passed. What stays busy is only
/// detached if the caller allows it, and only where that is safe:
///
/// * the same filesystem is mounted elsewhere too (a bind mount, a device's node): only a second name goes;
/// * the filesystem is dead: its device has gone, or its root no longer answers. Nothing more can be written to it.
///
/// Anywhere else a detached filesystem could still be written while its device is handed to somebody else.
///
/// ```no_run
/// use std::time::Duration;
/// use devices::mount::{Target, WhenBusy, unmount};
///
/// let target = Target::new("/srv/data".as_ref())?;
/// unmount(&target, WhenBusy::Refuse, Duration::from_secs(5))?;
/// # Ok::<(), devices::Error>(())
/// ```
///
/// # Errors
///
/// [`Kind::InUse`] when it stays in use.
pub fn unmount(target: &Target, when_busy: WhenBusy, patience: Duration) -> Result<Change<Unmounted>, Error> {
    unmount_if(target, when_busy, patience, |_| Ok(()))
}

/// Unmounts the topmost mount at a target if it is of the device given; another one there is refused.
///
/// # Errors
///
/// [`Kind::Foreign`] for another device's filesystem; else as for [`unmount`].
pub fn unmount_device(
    target: &Target,
    device: DeviceNumber,
    when_busy: WhenBusy,
    patience: Duration,
) -> Result<Change<Unmounted>, Error> {
    unmount_if(target, when_busy, patience, |mount| {
        if mount.block_device() == Some(device) {
            return Ok(());
        }
        Err(Error::new(Kind::Foreign, format!("unmount {}", target.given().display())).with_answer(format!(
            "{} ({}) is mounted there, not {device}",
            mount.source.display(),
            mount.device
        )))
    })
}

fn unmount_if(
    target: &Target,
    when_busy: WhenBusy,
    patience: Duration,
    agreed: impl Fn(&Mount) -> Result<(), Error>,
) -> Result<Change<Unmounted>, Error> {
    let deadline = Instant::now() + patience;
    let path = target.through_parent();
    loop {
        let Present::Mounted(mount) = target.present()? else { return Ok(Change::Already(Unmounted::Gone)) };
        agreed(&mount)?;
        match rustix::mount::unmount(&path, UnmountFlags::NOFOLLOW) {
            Ok(()) => return Ok(Change::Made(Unmounted::Gone)),
            Err(Errno::BUSY) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(Errno::BUSY) => {
                let safe = when_busy == WhenBusy::DetachIfSafe
                    && (has_other_name(&mount)? || is_dead(target, &mount));
                if !safe {
                    return Err(busy(target, &mount));
                }
                let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
                rustix::mount::unmount(&path, flags).map_err(|errno| target.failed("unmount", errno))?;
                return Ok(Change::Made(Unmounted::Detached));
            }
            // It went meanwhile: look again.
            Err(Errno::INVAL | Errno::NOENT) if Instant::now() < deadline => {}
            Err(errno) => return Err(target.failed("unmount", errno)),
        }
    }
}

fn has_other_name(mount: &Mount) -> Result<bool, Error> {
    let table = MountTable::read()?;
    Ok(table.iter().any(|other| other.device == mount.device && other.id != mount.id))
}

/// Whether the filesystem can no longer work: its device has gone, or its own root does not answer.
fn is_dead(target: &Target, mount: &Mount) -> bool {
    let device_gone =
        mount.device.major != 0 && !Path::new(&format!("/sys/dev/block/{}", mount.device)).exists();
    let asked = target
        .open()
        .and_then(|root| rustix::fs::statx(root, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS));
    device_gone
        || matches!(asked, Err(Errno::IO | Errno::NODEV | Errno::NXIO | Errno::STALE | Errno::NOTCONN))
}

fn busy(target: &Target, mount: &Mount) -> Error {
    let submounts = MountTable::read().map(|table| {
        let all = table.below(&mount.mount_point).map(|below| below.mount_point.display().to_string());
        all.take(3).collect::<Vec<_>>().join(", ")
    });
    let answer = match submounts {
        Ok(submounts) if !submounts.is_empty() => format!("other mounts lie in it: {submounts}"),
        _ => "files in it are open, or it is somebody's current directory".to_owned(),
    };
    let advice = format!("find who uses it with: fuser -vm {}", mount.mount_point.display());
    target.failed("unmount", Errno::BUSY).with_answer(answer).with_advice(advice)
}
