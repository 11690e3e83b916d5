//! What a disk holds where a partition table may be, judged without changing anything.

use std::fmt;
use std::io;

use super::header::{Fault, Header};
use super::mbr::{self, Mbr};
use super::medium::{self, Geometry, Medium};
use super::ours::Owner;
use super::table::Table;
use crate::{Bytes, Error, Kind, signature_ends};

/// One thing that [`Gpt::repair`](super::Gpt::repair) mends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The copy at the beginning of the disk cannot be used, the one at its end can.
    Primary(Fault),
    /// The copy at the end of the disk cannot be used, the one at its beginning can.
    Backup(Fault),
    /// Both copies are right in themselves, but not the same: a change was cut short. The first one counts.
    Differ,
    /// The protective MBR is missing: tools that know no GPT, and libblkid, take the disk for a blank one.
    ProtectiveMbr,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary(fault) => write!(f, "the first copy of the table cannot be used: {fault}"),
            Self::Backup(fault) => write!(f, "the copy at the end of the disk cannot be used: {fault}"),
            Self::Differ => f.write_str("the two copies of the table differ"),
            Self::ProtectiveMbr => f.write_str("the protective MBR is missing"),
        }
    }
}

/// What a disk holds, as far as partitions go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// No table, and zeroes at both ends.
    Blank,
    /// No table, but something else.
    Content,
    /// An MBR with partitions, perhaps beside a GPT.
    Mbr,
    /// A GPT; both copies are right and the same.
    Sound,
    /// The same, but the disk has become larger since.
    Grown,
    /// A GPT that can be repaired, since one copy is right.
    Damaged(Vec<Damage>),
    /// What was a GPT; no copy can be used.
    Destroyed,
    /// A GPT whose checksums match but which makes no sense; the reason.
    Contradictory(String),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("it is blank"),
            Self::Content => f.write_str("it has no partition table of ours, but it is not blank"),
            Self::Mbr => f.write_str("it has an MBR partition table"),
            Self::Sound => f.write_str("it has a sound GPT"),
            Self::Grown => f.write_str("it has a sound GPT, and has become larger since that was made"),
            Self::Damaged(damages) => {
                for (count, damage) in damages.iter().enumerate() {
                    write!(f, "{}{damage}", if count == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::Destroyed => f.write_str("it has remains of a GPT, of which no copy can be used"),
            Self::Contradictory(reason) => write!(f, "its GPT makes no sense: {reason}"),
        }
    }
}

/// One copy of the table, right in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableCopy {
    pub(super) header: Header,
    pub(super) array: Vec<u8>,
}

/// What was found on a disk.
///
/// ```no_run
/// use devices::gpt::{Condition, DiskFile, inspect};
///
/// let found = inspect(&DiskFile::open_to_read("/dev/sdb".as_ref())?)?;
/// if let (Condition::Sound, Some(table)) = (found.condition(), found.table()) {
///     for partition in table.partitions() {
///         println!("{} {} {}", partition.number, partition.size, partition.name);
///     }
/// }
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inspection {
    condition: Condition,
    mbr: Mbr,
    pub(super) primary: Result<TableCopy, Fault>,
    pub(super) backup: Result<TableCopy, Fault>,
    table: Option<Table>,
}

impl Inspection {
    /// The judgement.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// What sector 0 holds.
    #[must_use]
    pub fn mbr(&self) -> Mbr {
        self.mbr
    }

    /// The table of the copy that counts, whatever else is wrong.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Whether each copy that is right in itself was made for this owner, with all its partitions.
    #[must_use]
    pub fn is_ours(&self, owner: &Owner) -> bool {
        let ours = |copy: &Result<TableCopy, Fault>| {
            copy.as_ref().map_or(true, |copy| owner.owns_disk(copy.header.disk_guid))
        };
        let table = self.table.as_ref().is_some_and(|table| table.foreign(owner).is_empty());
        table && ours(&self.primary) && ours(&self.backup)
    }
}

/// Looks at both ends of a disk.
///
/// # Errors
///
/// When the disk cannot be read, or is of a size or sector that no table fits: never taken for a blank one.
pub fn inspect(medium: &dyn Medium) -> Result<Inspection, Error> {
    let geometry = Geometry::of(medium).ok_or_else(|| {
        Error::new(Kind::Unsupported, format!("look for a partition table on {}", medium.name())).with_answer(
            format!("{} with sectors of {} is too small for one", medium.size(), medium.sector()),
        )
    })?;
    look(medium, geometry)
        .map_err(|error| Error::system(format!("read the partition table of {}", medium.name()), error))
}

fn look(medium: &dyn Medium, geometry: Geometry) -> io::Result<Inspection> {
    let sector = usize::try_from(geometry.sector).map_err(io::Error::other)?;
    let mbr = mbr::look(&medium::read(medium, geometry, 0, sector)?);
    let primary = read_copy(medium, geometry, 1)?;
    let other = primary.as_ref().map_or(geometry.last(), |copy| copy.header.other);
    let backup =
        if other > geometry.last() { Err(Fault::Misplaced) } else { read_copy(medium, geometry, other)? };
    let table = table_of(geometry, &primary, &backup);
    let condition = match &table {
        None => without_copy(medium, geometry, mbr, &primary, &backup)?,
        Some(table) => with_copy(geometry, mbr, &primary, &backup, table),
    };
    Ok(Inspection { condition, mbr, primary, backup, table })
}

/// The table of the first copy that is right, with the header that the primary has or should have.
fn table_of(
    geometry: Geometry,
    primary: &Result<TableCopy, Fault>,
    backup: &Result<TableCopy, Fault>,
) -> Option<Table> {
    match (primary, backup) {
        (Ok(copy), _) => Some(Table { geometry, header: copy.header.clone(), array: copy.array.clone() }),
        (_, Ok(copy)) => {
            let backup = &copy.header;
            let header = Header { own: backup.other, other: backup.own, array: 2, ..backup.clone() };
            Some(Table { geometry, header, array: copy.array.clone() })
        }
        _ => None,
    }
}

fn without_copy(
    medium: &dyn Medium,
    geometry: Geometry,
    mbr: Mbr,
    primary: &Result<TableCopy, Fault>,
    backup: &Result<TableCopy, Fault>,
) -> io::Result<Condition> {
    let remains = |copy: &Result<TableCopy, Fault>| !matches!(copy, Err(Fault::Absent));
    if mbr == Mbr::Partitions {
        return Ok(Condition::Mbr);
    }
    if mbr == Mbr::Protective || remains(primary) || remains(backup) {
        return Ok(Condition::Destroyed);
    }
    let blank = mbr == Mbr::Blank && has_blank_ends(medium, geometry)?;
    Ok(if blank { Condition::Blank } else { Condition::Content })
}

fn with_copy(
    geometry: Geometry,
    mbr: Mbr,
    primary: &Result<TableCopy, Fault>,
    backup: &Result<TableCopy, Fault>,
    table: &Table,
) -> Condition {
    match mbr {
        Mbr::Partitions => return Condition::Mbr,
        Mbr::Other => return Condition::Content,
        Mbr::Blank | Mbr::Protective => {}
    }
    if let Some(reason) = table.contradiction() {
        return Condition::Contradictory(reason);
    }
    let mut damages = Vec::new();
    match (primary, backup) {
        (Ok(primary), Ok(backup)) if !agree(primary, backup) => damages.push(Damage::Differ),
        (Err(fault), _) => damages.push(Damage::Primary(*fault)),
        (_, Err(fault)) => damages.push(Damage::Backup(*fault)),
        _ => {}
    }
    if mbr == Mbr::Blank {
        damages.push(Damage::ProtectiveMbr);
    }
    if !damages.is_empty() {
        return Condition::Damaged(damages);
    }
    if table.header.other < geometry.last() { Condition::Grown } else { Condition::Sound }
}

/// Whether two copies say the same and point at each other.
pub(super) fn agree(primary: &TableCopy, backup: &TableCopy) -> bool {
    let (first, second) = (&primary.header, &backup.header);
    let as_primary = Header { own: second.other, other: second.own, array: first.array, ..second.clone() };
    *first == as_primary && primary.array == backup.array
}

/// Reads the copy whose header is in sector `lba`.
pub(super) fn read_copy(
    medium: &dyn Medium,
    geometry: Geometry,
    lba: u64,
) -> io::Result<Result<TableCopy, Fault>> {
    let sector = usize::try_from(geometry.sector).map_err(io::Error::other)?;
    let header = match Header::parse(&medium::read(medium, geometry, lba, sector)?, lba) {
        Ok(header) => header,
        Err(fault) => return Ok(Err(fault)),
    };
    if !is_possible(&header, geometry) {
        return Ok(Err(Fault::Misplaced));
    }
    let length = usize::try_from(header.array_bytes()).map_err(io::Error::other)?;
    let array = medium::read(medium, geometry, header.array, length)?;
    if crc32fast::hash(&array) != header.array_checksum {
        return Ok(Err(Fault::ArrayChecksum));
    }
    Ok(Ok(TableCopy { header, array }))
}

/// Whether everything that a header names is on the disk and apart from everything else that it names.
fn is_possible(header: &Header, geometry: Geometry) -> bool {
    let array_end = header.array.saturating_add(header.array_bytes().div_ceil(geometry.sector));
    // The other header may be behind the end of a disk that became smaller.
    let usable = header.first_usable <= header.last_usable;
    let array_apart = array_end <= header.first_usable || header.array > header.last_usable;
    let on_disk = header.array >= 2 && array_end <= geometry.sectors && header.array_bytes() > 0;
    let order = if header.own == 1 {
        header.other > header.last_usable && header.array > 1 && array_end <= header.first_usable
    } else {
        header.other == 1 && header.own > header.last_usable && array_end <= header.own
    };
    // A header that is not the first one tells where the first array was only by its size.
    let head_room = 2 + header.array_bytes().div_ceil(geometry.sector) <= header.first_usable;
    usable && array_apart && on_disk && order && head_room
}

/// Whether both ends of the disk hold nothing but zeroes: what a new table overwrites, and where signatures are.
fn has_blank_ends(medium: &dyn Medium, geometry: Geometry) -> io::Result<bool> {
    for end in signature_ends(geometry.bytes(geometry.sectors)) {
        if !is_blank(medium, geometry, end.start, end.end)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_blank(medium: &dyn Medium, geometry: Geometry, from: Bytes, to: Bytes) -> io::Result<bool> {
    let mut lba = from.get() / geometry.sector;
    let end = to.get().div_ceil(geometry.sector);
    // A mebibyte at a time bounds the memory.
    let step = (1 << 20) / geometry.sector;
    let zeroes = vec![0; 1 << 20];
    while lba < end {
        let count = step.min(end - lba);
        let length = usize::try_from(count * geometry.sector).map_err(io::Error::other)?;
        if medium::read(medium, geometry, lba, length)? != zeroes[..length] {
            return Ok(false);
        }
        lba += count;
    }
    Ok(true)
}
