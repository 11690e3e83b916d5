//! A mount for a moment, where nobody else looks.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::FsType;
use crate::Error;
use crate::mount::{MountOptions, Target, WhenBusy, mount, unmount};

/// How long programs that look at every new mount may keep it busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A filesystem mounted in a directory of its own; both go with [`Scratch::end`], or when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    target: Target,
    directory: PathBuf,
    ended: bool,
}

impl Scratch {
    pub(super) fn mount(device: &Path, fs: FsType, below: &Path) -> Result<Self, Error> {
        let directory = below.join(format!("gabion-{}", Uuid::new_v4().simple()));
        let tried = || format!("make directory {}", directory.display());
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(|cause| Error::system(tried(), cause))?;
        let place = directory.join("fs");
        let mounted = Target::below(below, &place).and_then(|target| {
            let _ = target.make_directory()?;
            // A clone may still bear the uuid of its original, which may be mounted.
            let options: &[&str] = if fs == FsType::Xfs { &["nouuid", "noexec"] } else { &["noexec"] };
            let _ = mount(device, fs.as_str(), &MountOptions::parse(options)?, &target)?;
            Ok(target)
        });
        match mounted {
            Ok(target) => Ok(Self { target, directory, ended: false }),
            Err(error) => {
                // Both are empty; what cannot be removed is a directory in a scratch space.
                let _ = std::fs::remove_dir(&place).and_then(|()| std::fs::remove_dir(&directory));
                Err(error)
            }
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Unmounts it.
    pub(super) fn end(mut self) -> Result<(), Error> {
        self.ended = true;
        self.take_down()
    }

    fn take_down(&self) -> Result<(), Error> {
        let _ = unmount(&self.target, WhenBusy::Refuse, PATIENCE)?;
        let _ = self.target.remove()?;
        let tried = || format!("remove directory {}", self.directory.display());
        std::fs::remove_dir(&self.directory).map_err(|cause| Error::system(tried(), cause))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.ended {
            // There is an error already on its way, and a mount in a scratch space harms nobody.
            let _ = self.take_down();
        }
    }
}
