//! Checking filesystems that are not mounted.

use std::path::Path;
use std::time::Duration;

use super::FsType;
use super::claim::Claim;
use super::tool::{Ended, Tool};
use crate::held::Held;
use crate::{Effect, Error, Kind};

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// What belongs before each mount: ext4's journal is replayed, and all is looked at where the filesystem says that
    /// it has errors. XFS and btrfs do this themselves when they are mounted, so nothing is run for them.
    BeforeMount,
    /// Everything is looked at, which takes minutes on large filesystems. ext4 is repaired as far as that is safe;
    /// XFS and btrfs are only looked at.
    Thorough,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checked {
    /// Nothing is wrong.
    Clean,
    /// Something was, and it was mended without a loss that the program knows of.
    Repaired,
    /// The kernel looks at it when it is mounted, by replaying its log.
    AtMount,
}

/// Checks a filesystem that nobody uses.
///
/// # Errors
///
/// [`Kind::Inconsistent`] when it is damaged in a way that needs a person: nothing was repaired then, and the answer
/// holds what the program said. [`Kind::InUse`] when it is mounted. [`Kind::TimedOut`] with [`Effect::Unknown`] when
/// the program was killed at the time limit; checking again goes on from there.
pub fn check(device: &Path, fs: FsType, depth: Depth, patience: Duration) -> Result<Checked, Error> {
    let tried = format!("check {fs} on {}", device.display());
    // The programs claim it themselves, but say in many words that it is in use.
    let device = &Claim::new(device)?.release();
    let tool = |program| Tool::new(fs, program, patience);
    match (fs, depth) {
        (FsType::Ext4, Depth::BeforeMount) => {
            ext4_verdict(&tool("e2fsck").arg("-p").device(device).run(&tried)?, &tried)
        }
        (FsType::Ext4, Depth::Thorough) => ext4_thoroughly(device, patience, &tried),
        (FsType::Xfs | FsType::Btrfs, Depth::BeforeMount) => Ok(Checked::AtMount),
        (FsType::Xfs, Depth::Thorough) => {
            let ended = tool("xfs_repair").arg("-n").device(device).run(&tried)?;
            match ended.code {
                0 => Ok(Checked::Clean),
                // xfs_repair(8): a dirty log, of which nothing can be said before it was replayed.
                2 => Ok(Checked::AtMount),
                _ => Err(damaged(&tried, &ended, "restore it from a copy, or run xfs_repair by hand")),
            }
        }
        (FsType::Btrfs, Depth::Thorough) => {
            let ended = tool("btrfs").args(["check", "--readonly"]).device(device).run(&tried)?;
            match ended.code {
                0 => Ok(Checked::Clean),
                _ => Err(damaged(
                    &tried,
                    &ended,
                    "restore it from a copy; see btrfs-check(8) before repairing",
                )),
            }
        }
    }
}

pub(super) fn ext4_thoroughly(device: &Held, patience: Duration, tried: &str) -> Result<Checked, Error> {
    let tool = Tool::new(FsType::Ext4, "e2fsck", patience);
    ext4_verdict(&tool.args(["-f", "-p"]).device(device).run(tried)?, tried)
}

/// The exit status of e2fsck(8) is a sum of bits.
fn ext4_verdict(ended: &Ended, tried: &str) -> Result<Checked, Error> {
    match ended.code {
        0 => Ok(Checked::Clean),
        // 2 asks for a reboot, which concerns a mounted root alone.
        1..=3 => Ok(Checked::Repaired),
        code if code & 4 != 0 => {
            Err(damaged(tried, ended, "run e2fsck -f by hand, best on a snapshot or a copy first"))
        }
        code => Err(Error::new(Kind::Other, tried)
            .with_answer(format!("e2fsck ended with {code}: {}", ended.reason()))
            .with_effect(Effect::Unknown)),
    }
}

fn damaged(tried: &str, ended: &Ended, advice: &str) -> Error {
    Error::new(Kind::Inconsistent, tried).with_answer(ended.reason()).with_advice(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_status_of_e2fsck_has_its_meaning() {
        let verdict = |code| {
            let ended = Ended { code, output: String::new(), errors: "UNEXPECTED INCONSISTENCY".to_owned() };
            ext4_verdict(&ended, "check").map_err(|error| error.kind())
        };
        assert_eq!(verdict(0), Ok(Checked::Clean));
        assert_eq!([1, 2, 3].map(verdict), [Ok(Checked::Repaired); 3]);
        assert_eq!([4, 5, 12].map(verdict), [Err(Kind::Inconsistent); 3]);
        assert_eq!([8, 16, 32, 128].map(verdict), [Err(Kind::Other); 4]);
    }
}
