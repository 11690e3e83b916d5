//! Decoding what the kernel answers. Every length and offset is checked: a wrong answer is an error, not a panic.

use devices::{DeviceNumber, Sectors};

use super::ioctl::{HEADER, Header};

/// The kernel's answer does not have the form that linux/dm-ioctl.h gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is malformed: {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The data part of an answer, and its header.
pub(crate) fn split(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
    let header = Header::read(bytes).ok_or(Malformed("no header"))?;
    let start = usize::try_from(header.data_start).map_err(|_| Malformed("data start"))?;
    let size = usize::try_from(header.data_size).map_err(|_| Malformed("data size"))?;
    // A request without data in its answer may leave either field as it likes.
    let end = size.clamp(start.min(bytes.len()), bytes.len());
    let data = bytes.get(start.max(HEADER).min(end)..end).ok_or(Malformed("data start"))?;
    Ok((header, data))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The bytes up to the terminating zero.
fn text_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    rest.get(..rest.iter().position(|byte| *byte == 0)?)
}

/// One device in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameEntry {
    pub(crate) number: DeviceNumber,
    pub(crate) name: Vec<u8>,
    /// Since interface 4.37.
    pub(crate) event_nr: Option<u32>,
    /// Since interface 4.45; inner `None`: the device has no uuid.
    pub(crate) uuid: Option<Option<Vec<u8>>>,
}

/// `struct dm_name_list`, repeated.
pub(crate) fn names(header: &Header, data: &[u8]) -> Result<Vec<NameEntry>, Malformed> {
    const HAS_UUID: u32 = 1;
    const NO_UUID: u32 = 2;
    let minor = header.version[1];
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        let dev = u64_at(data, at).ok_or(Malformed("device list"))?;
        if dev == 0 {
            return Ok(entries);
        }
        let next = u32_at(data, at + 8).ok_or(Malformed("device list"))?;
        let name = text_at(data, at + 12).ok_or(Malformed("device name"))?;
        let after = (at + 12 + name.len() + 1).next_multiple_of(8);
        let event_nr = if minor >= 37 { u32_at(data, after) } else { None };
        let uuid = match u32_at(data, after + 4) {
            Some(flags) if minor >= 45 && flags & HAS_UUID != 0 => {
                Some(Some(text_at(data, after + 8).ok_or(Malformed("device uuid"))?.to_vec()))
            }
            Some(flags) if minor >= 45 && flags & NO_UUID != 0 => Some(None),
            _ => None,
        };
        entries.push(NameEntry { number: DeviceNumber::from_rdev(dev), name: name.to_vec(), event_nr, uuid });
        if next == 0 {
            return Ok(entries);
        }
        // `next` counts from this record, and is at least its fixed part, so the loop ends.
        at = advance(at, next, 12)?;
    }
}

/// Steps to the next record; refuses steps that would not move on.
fn advance(at: usize, step: u32, least: usize) -> Result<usize, Malformed> {
    let step = usize::try_from(step).map_err(|_| Malformed("step"))?;
    if step < least {
        return Err(Malformed("step"));
    }
    at.checked_add(step).ok_or(Malformed("step"))
}

/// One line of a table or of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetEntry {
    pub(crate) start: Sectors,
    pub(crate) len: Sectors,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// `struct dm_target_spec`, `target_count` times; `next` counts from the first.
pub(crate) fn targets(header: &Header, data: &[u8]) -> Result<Vec<TargetEntry>, Malformed> {
    const SPEC: usize = 40;
    let mut entries = Vec::new();
    let mut at = 0;
    for _ in 0..header.target_count {
        let start = u64_at(data, at).ok_or(Malformed("target"))?;
        let len = u64_at(data, at + 8).ok_or(Malformed("target"))?;
        let next = u32_at(data, at + 20).ok_or(Malformed("target"))?;
        let kind = data.get(at + 24..at + SPEC).ok_or(Malformed("target type"))?;
        let kind = kind.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = text_at(data, at + SPEC).ok_or(Malformed("target text"))?;
        entries.push(TargetEntry {
            start: Sectors::new(start),
            len: Sectors::new(len),
            kind: String::from_utf8_lossy(kind).into_owned(),
            text: String::from_utf8_lossy(text).trim_end().to_owned(),
        });
        let next = usize::try_from(next).map_err(|_| Malformed("step"))?;
        if next < at + SPEC && entries.len() < header.target_count as usize {
            return Err(Malformed("step"));
        }
        at = next;
    }
    Ok(entries)
}

/// `struct dm_target_deps`.
pub(crate) fn deps(data: &[u8]) -> Result<Vec<DeviceNumber>, Malformed> {
    let count = u32_at(data, 0).ok_or(Malformed("dependencies"))?;
    let count = usize::try_from(count).map_err(|_| Malformed("dependencies"))?;
    let devices = data.get(8..).unwrap_or_default().as_chunks::<8>().0;
    let devices = devices.get(..count).ok_or(Malformed("dependencies"))?;
    Ok(devices.iter().map(|dev| DeviceNumber::from_rdev(u64::from_ne_bytes(*dev))).collect())
}

/// `struct dm_target_versions`, repeated.
pub(crate) fn versions(data: &[u8]) -> Result<Vec<(String, [u32; 3])>, Malformed> {
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        let next = u32_at(data, at).ok_or(Malformed("target versions"))?;
        let field = |index: usize| u32_at(data, at + 4 + 4 * index).ok_or(Malformed("target versions"));
        let version = [field(0)?, field(1)?, field(2)?];
        let name = text_at(data, at + 16).ok_or(Malformed("target name"))?;
        entries.push((String::from_utf8_lossy(name).into_owned(), version));
        if next == 0 {
            return Ok(entries);
        }
        at = advance(at, next, 16)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(minor: u32, target_count: u32) -> Header {
        Header { version: [4, minor, 0], target_count, ..Header::default() }
    }

    fn name_record(dev: u64, name: &[u8], event: u32, uuid: Option<&[u8]>, last: bool) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(dev.to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record.extend(name);
        record.push(0);
        record.resize(record.len().next_multiple_of(8), 0);
        record.extend(event.to_ne_bytes());
        record.extend(if uuid.is_some() { 1_u32 } else { 2 }.to_ne_bytes());
        if let Some(uuid) = uuid {
            record.extend(uuid);
            record.push(0);
        }
        record.resize(record.len().next_multiple_of(8), 0);
        if !last {
            let next = u32::try_from(record.len()).unwrap();
            record[8..12].copy_from_slice(&next.to_ne_bytes());
        }
        record
    }

    #[test]
    fn a_list_gives_names_events_and_uuids() {
        let mut data = name_record(0xfd00, b"a", 3, Some(b"LVM-x"), false);
        data.extend(name_record(0xfd01, b"longer-name", 0, None, true));
        let entries = names(&header(45, 0), &data).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].number, DeviceNumber { major: 253, minor: 0 });
        assert_eq!(entries[0].event_nr, Some(3));
        assert_eq!(entries[0].uuid, Some(Some(b"LVM-x".to_vec())));
        assert_eq!(entries[1].uuid, Some(None));
        // Older kernels: what stands there is not looked at.
        let old = names(&header(36, 0), &data).unwrap();
        assert_eq!((old[0].event_nr, &old[0].uuid), (None, &None));
        assert_eq!(names(&header(45, 0), &[0; 16]).unwrap(), []);
    }

    #[test]
    fn steps_that_do_not_move_on_are_refused() {
        let mut data = name_record(0xfd00, b"a", 3, None, true);
        data[8] = 4;
        assert!(names(&header(45, 0), &data).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_us_panic_or_loop(data: Vec<u8>, minor in 0..50_u32, count: u32) {
            let header = header(minor, count);
            let _ = names(&header, &data);
            let _ = targets(&header, &data);
            let _ = deps(&data);
            let _ = versions(&data);
            let _ = split(&data);
        }

        #[test]
        fn damaged_lists_are_survived(at in 0..200_usize, byte: u8) {
            let mut data = name_record(0xfd00, b"first", 3, Some(b"LVM-x"), false);
            data.extend(name_record(0xfd01, b"second", 0, None, false));
            data.extend(name_record(0xfd02, b"third", 0, Some(b"u"), true));
            if let Some(slot) = data.get_mut(at) {
                *slot = byte;
            }
            let _ = names(&header(45, 0), &data);
        }
    }
}
