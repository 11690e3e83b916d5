//! One device's directory in sysfs.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The directory of a block device, its symbolic links followed.
#[derive(Clone, Debug)]
pub(super) struct Node {
    dir: PathBuf,
}

impl Node {
    /// The device of this name; `None` when there is none, or none any more.
    pub(super) fn find(class_dir: &Path, name: &str) -> Option<Self> {
        let dir = fs::canonicalize(class_dir.join(name)).ok()?;
        Some(Self { dir })
    }

    /// The directory, which shows the way from the bus to the device.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The disk that a partition is a part of.
    pub(super) fn parent(&self) -> Option<Self> {
        self.dir.parent().map(|dir| Self { dir: dir.to_owned() })
    }

    /// The kernel's name of the device, the last part of its directory.
    pub(super) fn name(&self) -> Option<String> {
        Some(self.dir.file_name()?.to_str()?.to_owned())
    }

    /// An attribute's text without white space around it; `None` when there is none or it is empty.
    ///
    /// Names and serial numbers come from the device itself: what is no UTF-8 is replaced, and control characters are
    /// left out, so that a table or a log cannot be upset by them.
    pub(super) fn text(&self, attribute: &str) -> Option<String> {
        let bytes = fs::read(self.dir.join(attribute)).ok()?;
        let text: String = String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// An attribute's bytes, as they are.
    pub(super) fn bytes(&self, attribute: &str) -> Option<Vec<u8>> {
        fs::read(self.dir.join(attribute)).ok()
    }

    /// An attribute that is a number.
    pub(super) fn number<T: FromStr>(&self, attribute: &str) -> Option<T> {
        self.text(attribute)?.parse().ok()
    }

    /// Whether an attribute is `1`.
    pub(super) fn is_set(&self, attribute: &str) -> bool {
        self.text(attribute).as_deref() == Some("1")
    }

    /// Whether there is an attribute or directory of this name.
    pub(super) fn has(&self, attribute: &str) -> bool {
        self.dir.join(attribute).exists()
    }

    /// The names in a directory below, sorted; empty when there is none.
    pub(super) fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.dir.join(directory))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// The names of the partitions, sorted.
    pub(super) fn partitions(&self) -> Vec<String> {
        let mut names = self.names("");
        names.retain(|name| self.dir.join(name).join("partition").exists());
        names
    }
}
