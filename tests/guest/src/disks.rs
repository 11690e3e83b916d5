//! The spare virtual disks: found by serial number, blanked between tests.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::protocol::{Content, Disk};

/// Serial numbers of spare disks start so.
pub const SERIAL_PREFIX: &str = "rig-";

/// The spare disks that the kernel has now, in the order of their serial numbers.
#[must_use]
pub fn spare() -> Vec<Disk> {
    let mut disks: Vec<Disk> = fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let serial = serial(&entry.path()).filter(|serial| serial.starts_with(SERIAL_PREFIX))?;
            let sectors: u64 = read(&entry.path().join("size"))?.parse().ok()?;
            let node = format!("/dev/{}", entry.file_name().to_string_lossy());
            Some(Disk { serial, node, bytes: sectors * 512 })
        })
        .collect();
    disks.sort_by(|a, b| a.serial.cmp(&b.serial));
    disks
}

/// virtio and NVMe show the serial number as text, SCSI as vital product data page 0x80 behind a header of four bytes.
/// The disks of user-mode Linux have none; they are all ours, in the order of their letters.
fn serial(block: &Path) -> Option<String> {
    let name = block.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some([letter @ b'a'..=b'p']) = name.strip_prefix("ubd").map(str::as_bytes) {
        return Some(format!("{SERIAL_PREFIX}{:02}", letter - b'a'));
    }
    let text = |path: &str| read(&block.join(path)).filter(|text| !text.is_empty());
    text("serial").or_else(|| text("device/serial")).or_else(|| {
        let page = fs::read(block.join("device/vpd_pg80")).ok()?;
        Some(String::from_utf8_lossy(page.get(4..)?).trim().to_owned())
    })
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Remembers how much was written to each disk, so that only what changed is blanked again.
#[derive(Debug, Default)]
pub struct Blanker {
    written: HashMap<String, String>,
}

impl Blanker {
    /// Discards every spare disk that was written to since the last call, after which it reads as zeroes (the host's
    /// files are sparse); says which could not be, and why.
    pub fn blank(&mut self, at_start: Content) -> Vec<String> {
        let mut failed = Vec::new();
        let mut touched = false;
        for disk in spare() {
            let now = counters(&disk);
            let last = self.written.get(&disk.serial);
            let untouched = last
                .map_or(at_start == Content::Blank && now.as_deref() == Some(UNTOUCHED), |last| {
                    now.as_ref() == Some(last)
                });
            if untouched {
                continue;
            }
            touched = true;
            if let Err(why) = blank(&disk) {
                failed.push(format!("blanking {} ({}): {why}", disk.node, disk.serial));
            }
            if let Some(counters) = counters(&disk) {
                self.written.insert(disk.serial, counters);
            }
        }
        if touched {
            // Without udev there is nothing to settle; the disks are blank all the same.
            let _ = tool("udevadm", &["settle", "--timeout=20"]);
        }
        failed
    }
}

fn blank(disk: &Disk) -> Result<(), String> {
    tool("blkdiscard", &["-f", &disk.node])?;
    let has_partitions = fs::read_dir(format!("/sys/block/{}", disk.node.trim_start_matches("/dev/")))
        .is_ok_and(|entries| entries.flatten().any(|entry| entry.path().join("partition").exists()));
    if has_partitions {
        tool("blockdev", &["--rereadpt", &disk.node])?;
    }
    Ok(())
}

/// The counters of a disk that nobody has written to.
const UNTOUCHED: &str = "0 0 0 0";

/// Writes and discards so far (kernel: Documentation/block/stat.rst, fields 5, 7, 12 and 14).
fn counters(disk: &Disk) -> Option<String> {
    let stat = read(Path::new(&format!("/sys/block/{}/stat", disk.node.trim_start_matches("/dev/"))))?;
    let fields: Vec<&str> = stat.split_whitespace().collect();
    Some([4, 6, 11, 13].iter().filter_map(|at| fields.get(*at).copied()).collect::<Vec<_>>().join(" "))
}

/// Runs one of the system's tools for at most 20 seconds; the error is what it wrote.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout")
        .args(["-s", "KILL", "20", program])
        .args(arguments)
        .output()
        .map_err(|error| format!("{program} did not start: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {} {said}", arguments.join(" "), output.status))
}
