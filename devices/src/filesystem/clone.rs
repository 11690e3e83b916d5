//! A uuid of its own for a copy of a filesystem.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::FsType;
use super::check::ext4_thoroughly;
use super::claim::{Claim, Found};
use super::scratch::Scratch;
use super::tool::Tool;
use crate::held::Held;
use crate::{Change, Effect, Error, Kind};

/// Gives a copy of a filesystem (a clone, a restored snapshot) another uuid, so that it can be mounted beside its
/// original. It must not be mounted. Already so is no error.
///
/// What belongs to it is done here: ext4 is checked, which replays the journal of a copy that was taken while the
/// original was in use; XFS is mounted for a moment (`nouuid`, in no directory), since its log must be replayed and its
/// program reports success even when it refuses; btrfs gets its new uuid in the superblock alone
/// (`metadata_uuid`, kernel 5.0), since the long way takes as long as its metadata are large. Success is what is found
/// afterwards, not what the programs say.
///
/// A copy of btrfs must not be mounted before this, nor its original be mounted through it: the kernel knows both by
/// the same uuid.
///
/// # Errors
///
/// [`Kind::NotFound`] when no such filesystem is there; [`Kind::InUse`] when it is mounted; [`Kind::Inconsistent`] when
/// it is damaged, has another uuid than asked for afterwards, or is btrfs of which an earlier change was cut off in the
/// middle: the kernel mounts no such one, and its program (6.2) does not go on with it, so the copy is to be made anew.
pub fn set_uuid(device: &Path, fs: FsType, uuid: Uuid, patience: Duration) -> Result<Change<Found>, Error> {
    let tried = format!("give {fs} on {} the uuid {uuid}", device.display());
    let claim = Claim::new(device)?;
    let found = claim.detect()?.filter(|found| found.fs == fs);
    let Some(found) = found else {
        return Err(Error::new(Kind::NotFound, tried).with_answer("no such filesystem is there"));
    };
    let mut held = claim.release();
    refuse_half_changed(&held, fs, &tried)?;
    if found.uuid == uuid {
        return Ok(Change::Already(found));
    }
    let tool = |program| Tool::new(fs, program, patience);
    let text = uuid.to_string();
    let ended = match fs {
        FsType::Ext4 => {
            ext4_thoroughly(&held, patience, &tried)?;
            tool("tune2fs").args(["-U", &text]).device(&held).succeed(&tried)?
        }
        FsType::Xfs => {
            drop(Scratch::mount(&held, fs, &|| tried.clone())?);
            // The program would write beside whoever has mounted it since.
            held = Claim::of(held)?.release();
            tool("xfs_admin").args(["-U", &text]).device(&held).succeed(&tried)?
        }
        FsType::Btrfs => tool("btrfstune").args(["-f", "-M", &text]).device(&held).succeed(&tried)?,
    };
    match Claim::of(held)?.detect()? {
        Some(now) if now.fs == fs && now.uuid == uuid => Ok(Change::Made(now)),
        _ => Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("the program reported success, and it has another uuid: {}", ended.reason()))
            .with_effect(Effect::Unknown)),
    }
}

/// Where btrfs has its first superblock, and in that its flags (`struct btrfs_super_block`).
const BTRFS_FLAGS: u64 = (64 << 10) + 56;
/// Flags of a uuid that is being changed: in all metadata (`BTRFS_SUPER_FLAG_CHANGING_FSID`), or in the superblocks alone (`…_V2`).
const BTRFS_CHANGING: u64 = 1 << 35 | 1 << 36;

/// Refuses a btrfs of which a change of the uuid was begun and never ended.
pub(super) fn refuse_half_changed(held: &Held, fs: FsType, tried: &str) -> Result<(), Error> {
    if fs != FsType::Btrfs {
        return Ok(());
    }
    let mut flags = [0; 8];
    held.file().read_exact_at(&mut flags, BTRFS_FLAGS).map_err(|cause| Error::system(tried, cause))?;
    if u64::from_le_bytes(flags) & BTRFS_CHANGING == 0 {
        return Ok(());
    }
    Err(Error::new(Kind::Inconsistent, tried)
        .with_answer("a change of its uuid was begun and never ended, and the kernel does not mount it so")
        .with_advice("make the copy anew; what it was copied from is as it was"))
}
