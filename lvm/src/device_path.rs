//! Paths of block devices, checked once when they are made.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::{Error, Kind};

/// Longest path that the kernel takes, in bytes, without the terminating zero.
const PATH_MAX: usize = 4095;

/// The path of a block device: absolute, under `/dev`, of printable ASCII without blanks, quotes or backslashes.
///
/// It says nothing about whether the device exists.
///
/// ```
/// use lvm::DevicePath;
///
/// assert_eq!(DevicePath::new("/dev/disk/by-id/nvme-x")?.to_string(), "/dev/disk/by-id/nvme-x");
/// assert!(DevicePath::new("/dev/../etc/passwd").is_err());
/// # Ok::<(), lvm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePath(String);

impl DevicePath {
    /// Checks a path without looking at the file system.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for a path that is relative, not below `/dev`, has `..` in it, or a character that a
    /// command line would not take as it stands.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refuse = |why: &str| {
            Err(Error::new(Kind::InvalidArgument, format!("use {path:?} as a device"))
                .with_answer(why)
                .with_advice("give an absolute path such as /dev/sdb or /dev/disk/by-id/…"))
        };
        let Some(text) = path.to_str() else { return refuse("the path is not UTF-8") };
        let allowed = |c: char| c.is_ascii_graphic() && !"\"'\\`$&|;<>()[]{}*?!^".contains(c);
        if let Some(character) = text.chars().find(|c| !allowed(*c)) {
            return refuse(&format!("a device path may not hold {character:?}"));
        }
        if text.len() > PATH_MAX {
            return refuse("the path is longer than 4,095 bytes");
        }
        let mut parts = path.components();
        let rooted = parts.next() == Some(Component::RootDir)
            && parts.next() == Some(Component::Normal("dev".as_ref()));
        let rest: Vec<Component<'_>> = parts.collect();
        if !rooted || rest.is_empty() || !rest.iter().all(|part| matches!(part, Component::Normal(_))) {
            return refuse("the path is not below /dev");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The same device by the name that symbolic links lead to.
    ///
    /// LVM reads a colon or an at sign in the path of a PV as the start of an extent range or a tag, so command
    /// lines only carry paths that went through here.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] where nothing is there, [`Kind::Io`] where it cannot be looked up, and
    /// [`Kind::InvalidArgument`] where the name still cannot stand in a command.
    pub(crate) fn resolved(&self) -> Result<Self, Error> {
        let tried = format!("look up device {self}");
        let target: PathBuf = self.as_path().canonicalize().map_err(|cause| {
            let kind = match cause.kind() {
                std::io::ErrorKind::NotFound => Kind::NotFound,
                _ => Kind::Io,
            };
            Error::new(kind, tried.clone()).with_answer(cause.to_string()).with_source(cause)
        })?;
        let target = Self::new(target)?;
        if target.0.contains([':', '@']) {
            return Err(Error::new(Kind::InvalidArgument, tried)
                .with_answer(format!("LVM would take a part of {target} as a range or a tag")));
        }
        Ok(target)
    }
}

impl fmt::Display for DevicePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DevicePath> for PathBuf {
    fn from(device: DevicePath) -> Self {
        Self::from(device.0)
    }
}

impl AsRef<Path> for DevicePath {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn devices_that_a_command_may_name() {
        for path in ["/dev/sda", "/dev/mapper/a--b-c", "/dev/disk/by-path/pci-0000:00:1f.2", "/dev/loop7"] {
            assert_eq!(DevicePath::new(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn paths_that_are_no_device_or_an_injection() {
        for path in [
            "",
            "sda",
            "/",
            "/dev",
            "/dev/",
            "/etc/passwd",
            "/dev/../etc/x",
            "/devx/sda",
            "/dev/a b",
            "--yes",
        ] {
            assert_eq!(DevicePath::new(path).unwrap_err().kind(), Kind::InvalidArgument, "{path:?}");
        }
        for character in "\n\t\"'\\;$`&|*?[]{}ü\0".chars() {
            let path = format!("/dev/a{character}b");
            assert_eq!(DevicePath::new(&path).unwrap_err().kind(), Kind::InvalidArgument, "{path:?}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_not_found() {
        let error = DevicePath::new("/dev/no-such-device").unwrap().resolved().unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        assert_eq!(DevicePath::new("/dev/null").unwrap().resolved().unwrap().as_str(), "/dev/null");
    }

    proptest! {
        #[test]
        fn no_accepted_path_needs_quoting(path in "/dev/\\PC{0,40}") {
            if let Ok(path) = DevicePath::new(&path) {
                prop_assert!(path.as_str().bytes().all(|b| b.is_ascii_graphic() && !b"\"'\\".contains(&b)));
                prop_assert!(!path.as_str().contains("/../"));
            }
        }
    }
}
