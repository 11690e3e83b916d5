//! What udevd has noted about a device: `/run/udev/data/b<major>:<minor>`.
//!
//! The file has one fact a line, after one letter and a colon: `S:` a symbolic link below `/dev`, `E:` a property,
//! `I:` when udevd was done with the device, and others that do not matter here (systemd's `device-private.c`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::DeviceNumber;

/// More than any device has: what is longer is not read.
const LONGEST: u64 = 1 << 20;

/// How far udevd is with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Udev {
    /// No udevd runs here, or none that this process can see.
    Absent,
    /// Its rules have not run yet, or not to the end: links may be missing.
    Pending,
    /// Its rules have run.
    Done,
}

/// A device's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    links: Vec<String>,
    properties: BTreeMap<String, String>,
    initialised: bool,
}

impl Record {
    /// Reads the record of a device from a directory like `/run/udev/data`.
    pub(super) fn read(data_dir: &Path, number: DeviceNumber) -> Option<Self> {
        let path = data_dir.join(format!("b{number}"));
        if fs::metadata(&path).ok()?.len() > LONGEST {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        Some(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut record = Self::default();
        for line in text.lines() {
            match line.split_once(':') {
                // Nothing that leads out of /dev.
                Some(("S", link)) if !link.is_empty() && !link.split('/').any(|part| part == "..") => {
                    record.links.push(link.trim_start_matches('/').to_owned());
                }
                Some(("E", property)) => {
                    if let Some((key, value)) = property.split_once('=') {
                        record.properties.insert(key.to_owned(), value.to_owned());
                    }
                }
                Some(("I", _)) => record.initialised = true,
                _ => {}
            }
        }
        record.links.sort_unstable();
        record.links.dedup();
        record
    }

    /// A property; `None` when it is not there or empty.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A property in which udev wrote unusual bytes as `\x20`, with these turned back.
    pub(super) fn decoded(&self, key: &str) -> Option<String> {
        let text = decode(self.get(key)?);
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The links, below the given directory.
    pub(super) fn links_in(&self, dev: &Path) -> Vec<PathBuf> {
        self.links.iter().map(|link| dev.join(link)).collect()
    }

    pub(super) fn is_initialised(&self) -> bool {
        self.initialised
    }
}

/// Turns `\xHH` back into bytes; everything else stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = rest.strip_prefix(b"\\x").and_then(|tail| tail.get(..2)).and_then(|hex| {
            u8::from_str_radix(std::str::from_utf8(hex).ok().filter(|hex| !hex.starts_with('+'))?, 16).ok()
        });
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = rest.get(4..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_gives_links_and_properties() {
        let record = Record::parse(
            "S:disk/by-id/scsi-0QEMU_rig-06\nS:disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0\nI:7251863\n\
             E:ID_MODEL_ENC=QEMU\\x20HARDDISK\\x20\\x20\nE:ID_SERIAL=a=b\nG:systemd\nQ:systemd\nV:1\nS:../etc/x\n",
        );
        assert!(record.is_initialised());
        assert_eq!(
            record.links_in(Path::new("/dev")),
            [
                Path::new("/dev/disk/by-id/scsi-0QEMU_rig-06"),
                Path::new("/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0")
            ]
        );
        assert_eq!(record.decoded("ID_MODEL_ENC").as_deref(), Some("QEMU HARDDISK"));
        assert_eq!(record.get("ID_SERIAL"), Some("a=b"));
        assert_eq!(record.get("ID_WWN"), None);
    }

    proptest! {
        #[test]
        fn whatever_the_record_holds_nothing_panics_and_no_link_leaves_dev(text in "[SEI:/.=\\\\xa-f0-9\n]{0,200}") {
            let record = Record::parse(&text);
            for link in record.links_in(Path::new("/dev")) {
                prop_assert!(link.starts_with("/dev"), "{link:?}");
                prop_assert!(!link.components().any(|part| part == std::path::Component::ParentDir));
            }
            let _ = record.decoded("a");
        }

        #[test]
        fn what_is_encoded_is_decoded(text in "[ -~]{0,40}") {
            let encoded: String = text
                .bytes()
                .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("\\x{b:02x}") })
                .collect();
            prop_assert_eq!(decode(&encoded), text);
        }
    }
}
