//! The kernel's log from a point in time on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// A reader of /dev/kmsg that starts at the newest record.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Starts listening now.
    ///
    /// # Errors
    /// When /dev/kmsg cannot be opened.
    pub fn from_now() -> io::Result<Self> {
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
        let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(KernelLog { file })
    }

    /// Everything logged since the last call, one line a record.
    pub fn drain(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => lines.extend(line(&String::from_utf8_lossy(&record[..length]))),
                // Records were overwritten before they were read: go on with the oldest that is left.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
                Err(_) => break,
            }
        }
        lines
    }
}

/// Turns a record `priority,sequence,microseconds,flags;text` (kernel: Documentation/ABI/testing/dev-kmsg) into a line.
fn line(record: &str) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next()?;
    Some(format!("[{:5}.{:06}] {text}", micros / 1_000_000, micros % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line_with_its_time() {
        let record = "4,1234,5000017,-;device-mapper: thin: reached low water mark\n SUBSYSTEM=block\n";
        assert_eq!(line(record).unwrap(), "[    5.000017] device-mapper: thin: reached low water mark");
        assert_eq!(line("no record"), None);
    }
}
