//! One device: its label, the headers of its metadata areas, and the texts in them.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use devices::{Bytes, DeviceNumber};

use super::area::{AreaHeader, HEADER, TextLocation};
use super::committed::{Committed, PREFIX, TextKey, Texts};
use super::crc::{checksum, checksum_more};
use super::label::{LABEL_AREA, Label, Stretch};
use super::source::Taken;
use super::{Buffer, Defect, MetadataArea, Options, Source};
use crate::{Error, Kind, Uuid, VgName};

/// The first read: the label, and the first area's header where LVM puts it.
const FIRST_READ: usize = 8192;

/// How reading a device went.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// It was read.
    Scan(Arc<Scan>),
    /// It is suspended and was not opened.
    Suspended,
    /// It could not be read.
    Unreadable(Arc<Error>),
}

impl Found {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let tried = format!("read the PV label of {}", path.display());
        let kind = if error.kind() == io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Io };
        Self::Unreadable(Arc::new(Error::new(kind, tried).with_answer(error.to_string())))
    }

    /// Decodes the texts of groups that are not among those `begun`, and adds these to them. What is wrong with a text is
    /// told when its group is looked for.
    pub(super) fn decode(&self, begun: &mut HashSet<Uuid>) {
        let Self::Scan(scan) = self else { return };
        for area in &scan.areas {
            if let Content::Text(text) = &area.content
                && begun.insert(text.vg)
            {
                let _ = text.with_vg(|_| ());
            }
        }
    }

    /// Whether this says the same as `other`, for a device that was not read.
    pub(super) fn is_same_failure(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Suspended, Self::Suspended) => true,
            (Self::Unreadable(own), Self::Unreadable(other)) => own.to_string() == other.to_string(),
            _ => false,
        }
    }
}

/// What one device holds.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) size: Bytes,
    pub(super) number: Option<DeviceNumber>,
    /// The bytes in which a label may stand, to notice a change.
    head: Vec<u8>,
    pub(super) label: Result<Option<Label>, Defect>,
    pub(super) areas: Vec<AreaScan>,
}

/// What one metadata area holds.
#[derive(Debug)]
pub(super) struct AreaScan {
    /// The header's bytes, to notice a change.
    header: Vec<u8>,
    pub(super) area: MetadataArea,
    pub(super) content: Content,
}

/// The use of a metadata area.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// No group was ever written here, or LVM was told to ignore the area.
    Unused,
    /// The committed metadata of a group.
    Text(Arc<Committed>),
    /// The header is wrong.
    BadHeader(Defect),
    /// The text is wrong.
    BadText(Defect),
}

/// What is needed to read a device.
pub(super) struct Scanner<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) buffer: &'a mut Buffer,
    pub(super) texts: &'a Texts,
    pub(super) options: &'a Options,
}

impl Scanner<'_> {
    /// Reads the device; `None` when label and headers are those of `before` and nothing was wrong with it.
    pub(super) fn scan(
        &mut self,
        number: Option<DeviceNumber>,
        before: Option<&Scan>,
    ) -> io::Result<Option<Scan>> {
        let first = self.source.read(Bytes::ZERO, FIRST_READ, self.buffer)?.to_vec();
        let size = self.source.size();
        let head = first.get(..LABEL_AREA.min(first.len())).unwrap_or_default();
        if let Some(before) = before
            && before.size == size
            && before.head == head
            && self.same_areas(&first, before)?
        {
            return Ok(None);
        }
        let label = Label::find(head);
        let places = label.iter().flatten().flat_map(|label| label.metadata_areas.clone());
        let areas = places.map(|place| self.area(&first, place)).collect::<io::Result<_>>()?;
        Ok(Some(Scan { size, number, head: head.to_vec(), label, areas }))
    }

    /// Whether every header is what it was, and was good.
    fn same_areas(&mut self, first: &[u8], before: &Scan) -> io::Result<bool> {
        for area in &before.areas {
            let good = matches!(area.content, Content::Unused | Content::Text(..));
            let same = good && {
                let (start, header) = (area.area.start, &area.header);
                with_header(self.source, self.buffer, first, start, |now| now == header.as_slice())?
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads an area, again and again while something is wrong with it: a commit may be under way.
    fn area(&mut self, first: &[u8], place: Stretch) -> io::Result<AreaScan> {
        let (mut scan, mut name) = self.area_once(first, place)?;
        let mut pause = Duration::from_millis(1);
        for _ in 0..self.options.retries {
            if !scan.is_bad() {
                return Ok(scan);
            }
            std::thread::sleep(pause);
            pause *= 2;
            (scan, name) = self.area_once(&[], place)?;
        }
        if scan.is_bad()
            && let (Some(dir), Some(name)) = (&self.options.locking_dir, name)
        {
            let _lock = shared_lock(dir, &name, self.options.lock_wait);
            scan = self.area_once(&[], place)?.0;
        }
        Ok(scan)
    }

    /// Reads an area once. The name is that of the group as far as a damaged text still tells it.
    fn area_once(&mut self, first: &[u8], place: Stretch) -> io::Result<(AreaScan, Option<VgName>)> {
        let bytes = with_header(self.source, self.buffer, first, place.start, <[u8]>::to_vec)?;
        let mut area = MetadataArea { start: place.start, size: place.size, ignored: false, text: None };
        let header = match AreaHeader::parse(&bytes, place) {
            Ok(header) => header,
            Err(defect) => {
                return Ok((AreaScan { header: bytes, area, content: Content::BadHeader(defect) }, None));
            }
        };
        area.size = header.area.size;
        area.ignored = header.ignored;
        area.text = header.text.map(|text| text.size);
        let (content, name) = match header.text {
            Some(text) if !header.ignored => self.text(&header, &text)?,
            _ => (Content::Unused, None),
        };
        Ok((AreaScan { header: bytes, area, content }, name))
    }

    fn text(&mut self, header: &AreaHeader, text: &TextLocation) -> io::Result<(Content, Option<VgName>)> {
        let [front, back] = header.pieces(text);
        let length = |stretch: Stretch| usize::try_from(stretch.size.get()).unwrap_or(usize::MAX);
        let computed = checksum(self.source.read(front.start, length(front), self.buffer)?);
        let bytes = self.buffer.take();
        // A front that is cut short must not be completed by the back.
        if length(back) == 0 || bytes.len() < length(front) {
            return Ok(content(text, bytes, computed, self.texts));
        }
        let back = self.source.read(back.start, length(back), self.buffer)?;
        let whole = [&bytes, back].concat();
        Ok(content(text, whole.into(), checksum_more(computed, back), self.texts))
    }
}

/// Hands a header's bytes to `use_them`, from the first read where they are in it.
fn with_header<T>(
    source: &dyn Source,
    buffer: &mut Buffer,
    first: &[u8],
    start: Bytes,
    use_them: impl FnOnce(&[u8]) -> T,
) -> io::Result<T> {
    let at = usize::try_from(start.get()).unwrap_or(usize::MAX);
    match first.get(at..at.saturating_add(HEADER)) {
        Some(header) if header.len() == HEADER => Ok(use_them(header)),
        _ => Ok(use_them(source.read(start, HEADER, buffer)?)),
    }
}

impl AreaScan {
    fn is_bad(&self) -> bool {
        matches!(self.content, Content::BadHeader(_) | Content::BadText(_))
    }
}

fn content(location: &TextLocation, bytes: Taken, computed: u32, texts: &Texts) -> (Content, Option<VgName>) {
    let name = leading_name(&bytes);
    let defect = if (bytes.len() as u64) < location.size.get() {
        Defect::Short("text")
    } else if computed != location.checksum {
        Defect::Checksum { found: location.checksum, computed }
    } else {
        match texts.share(TextKey::of(&bytes, computed, location.size), bytes) {
            Ok(text) => return (Content::Text(text), None),
            Err(defect) => defect,
        }
    };
    (Content::BadText(defect), name)
}

/// The group's name, with which LVM begins every text in an area.
fn leading_name(bytes: &[u8]) -> Option<VgName> {
    let end = bytes.iter().take(PREFIX).position(|byte| byte.is_ascii_whitespace() || *byte == b'{')?;
    VgName::new(std::str::from_utf8(bytes.get(..end)?).ok()?).ok()
}

/// Takes the group's lock as LVM's reading commands do; `None` when nobody can hold it or it was not had in time.
///
/// LVM removes the file on release, so a lock on a file that has lost its name is worth nothing.
fn shared_lock(dir: &Path, name: &VgName, wait: Duration) -> Option<File> {
    let path = dir.join(format!("V_{name}"));
    let deadline = Instant::now() + wait;
    loop {
        let file = File::open(&path).ok()?;
        if file.try_lock_shared().is_ok() {
            let same = file.metadata().ok()?.ino() == std::fs::metadata(&path).ok()?.ino();
            if same {
                return Some(file);
            }
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
