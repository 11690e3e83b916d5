//! A made-up system for unit tests: sysfs, udev's notes, mount tables and nodes in a temporary directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Discovery, Inventory};

/// A system in a directory; nothing in it is real.
pub(crate) struct MadeUp {
    root: tempfile::TempDir,
    minors: u32,
}

impl MadeUp {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["sys/class/block", "proc/self", "run/udev/data", "dev"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let made_up = Self { root, minors: 0 };
        made_up.write("proc/self/mountinfo", "");
        made_up.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        made_up
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device at a place below `/sys/devices`, with 20 GiB, and what else is said of it. Its number is `240:n`, where n
    /// counts up; it is given back.
    pub(crate) fn device(&mut self, place: &str, attributes: &[(&str, &str)]) -> u32 {
        let minor = self.minors;
        self.minors += 1;
        let dir = format!("sys/devices/{place}");
        let dev = format!("240:{minor}\n");
        let defaults = [("dev", dev.as_str()), ("size", "41943040\n"), ("ro", "0\n"), ("removable", "0\n")];
        for (attribute, value) in defaults.iter().chain(attributes) {
            self.write(&format!("{dir}/{attribute}"), value);
        }
        let name = place.rsplit('/').next().unwrap();
        symlink(self.root.path().join(&dir), self.root.path().join("sys/class/block").join(name)).unwrap();
        minor
    }

    pub(crate) fn udev(&self, minor: u32, record: &str) {
        self.write(&format!("run/udev/data/b240:{minor}"), record);
    }

    pub(crate) fn mount(&self, minor: u32, at: &str) {
        let line = format!("30 1 240:{minor} / {at} rw - ext4 /dev/x rw\n");
        let path = self.root.path().join("proc/self/mountinfo");
        let old = fs::read_to_string(path).unwrap();
        self.write("proc/self/mountinfo", old + &line);
    }

    pub(crate) fn swap(&self, name: &str) {
        self.write(
            "proc/swaps",
            format!("Filename Type Size Used Priority\n/made/up/{name} partition 1 0 -2\n"),
        );
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn discovery(&self) -> Discovery {
        Discovery::below(self.root())
    }

    pub(crate) fn inventory(&self) -> Inventory {
        self.discovery().inventory().unwrap()
    }
}
