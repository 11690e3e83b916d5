//! GPT partition tables: read, made, changed and repaired, and told to the kernel.
//!
//! A table exists twice, at both ends of the disk. A change is written to the copy at the end and flushed, then to
//! the copy at the beginning and flushed, so that a power cut at any write leaves at least one copy that is right:
//! the old table or the new one, never a mixture. What a cut left behind is reported by [`inspect`] and mended by
//! [`Gpt::repair`], only when asked for. A change is refused on any disk that holds anything that is not ours.
//!
//! ```no_run
//! use devices::Bytes;
//! use devices::gpt::{Disk, Owner, State, VolumeId};
//!
//! let owner: Owner = "my-cluster".parse()?;
//! let volume: VolumeId = "db".parse()?;
//! let mut disk = Disk::create("/dev/sdb".as_ref(), &owner)?;
//! let partition = disk.add(&volume, Bytes::gib(10), State::New)?;
//! println!("{}", disk.node(partition.number)?.display());
//! disk.grow(partition.number, Bytes::gib(20))?;
//! disk.remove(partition.number)?;
//! # Ok::<(), devices::Error>(())
//! ```
//!
//! The format is that of the UEFI specification 2.10, chapter 5.

mod disk;
mod entry;
mod file;
mod header;
mod inspect;
mod kernel;
mod lock;
mod mbr;
mod medium;
mod ours;
mod repair;
mod table;
#[cfg(test)]
mod tests;

use crate::{Bytes, Effect, Error, Kind, signature_ends};
use header::Header;
use medium::Geometry;
use table::Refusal;

pub use disk::Disk;
pub use file::DiskFile;
pub use header::Fault;
pub use inspect::{Condition, Damage, Inspection, inspect};
#[cfg(feature = "erase")]
pub(crate) use kernel::{forget_all as forget_partitions, open_partitions};
pub use mbr::Mbr;
pub use medium::Medium;
pub use ours::{Owner, Ownership, State, TYPE, VolumeId};
pub use table::{ALIGNMENT, Partition, PartitionNumber, Table};

/// A sound table of ours on a medium, and the changes to it.
///
/// This knows nothing of the kernel's own view; [`Disk`] does both.
#[derive(Debug)]
pub struct Gpt<M> {
    medium: M,
    owner: Owner,
    table: Table,
    /// Where the array of the copy at the end lies.
    backup_array: u64,
}

impl<M: Medium> Gpt<M> {
    /// Reads the table.
    ///
    /// # Errors
    ///
    /// [`Kind::Foreign`] when the table, a partition or anything else on the disk is not this owner's,
    /// [`Kind::NotFound`] when the disk is blank, [`Kind::Inconsistent`] when the table is damaged; each with the
    /// reason.
    pub fn open(medium: M, owner: &Owner) -> Result<Self, Error> {
        let tried = format!("use the partition table of {}", medium.name());
        let found = inspect(&medium)?;
        refuse_unless_ours(&found, owner, &tried)?;
        match (found.condition(), found.table(), &found.backup) {
            (Condition::Sound | Condition::Grown, Some(table), Ok(backup)) => Ok(Self {
                medium,
                owner: owner.clone(),
                table: table.clone(),
                backup_array: backup.header.array,
            }),
            (condition, ..) => Err(refused(condition, tried)),
        }
    }

    /// Makes an empty table of 128 entries on a blank disk: zeroes wherever signatures can lie
    /// ([`signature_ends`]).
    ///
    /// # Errors
    ///
    /// When the disk is not blank, with what it holds; and of the disk.
    pub fn create(mut medium: M, owner: &Owner) -> Result<Self, Error> {
        let tried = format!("make a partition table on {}", medium.name());
        match inspect(&medium)?.condition() {
            Condition::Blank => {}
            condition => {
                return Err(refused(condition, tried).with_advice("wipe it first, if that is meant"));
            }
        }
        let Some(geometry) = Geometry::of(&medium) else {
            return Err(Error::new(Kind::Unsupported, tried).with_answer("its size changed meanwhile"));
        };
        let table = empty(geometry, owner);
        let backup_array = geometry.last() - geometry.array_sectors();
        let written = write_backup(&mut medium, &table, backup_array)
            .and_then(|()| write_primary(&mut medium, &table))
            .and_then(|()| write_sector_0(&mut medium, geometry));
        written.map_err(|error| Error::system(tried, error).with_effect(Effect::Unknown))?;
        Ok(Self { medium, owner: owner.clone(), table, backup_array })
    }

    /// The table as it is now.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whose table this is.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What it is on.
    #[must_use]
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The medium back.
    #[must_use]
    pub fn into_medium(self) -> M {
        self.medium
    }

    /// Where [`Self::add`] would put a partition; nothing is written.
    ///
    /// # Errors
    ///
    /// As [`Self::add`].
    pub fn plan(&self, volume: &VolumeId, size: Bytes, state: State) -> Result<Partition, Error> {
        self.added(volume, size, state).map(|(_, partition)| partition)
    }

    /// Adds a partition for a volume: in the smallest gap that holds it, aligned to and of a multiple of
    /// [`ALIGNMENT`]. Both ends of it are zeroed before it comes to be, so that no signature of what was there
    /// before appears in it.
    ///
    /// # Errors
    ///
    /// [`Kind::AlreadyExists`] if the volume has a partition here, [`Kind::NoSpace`] if no gap is large enough, and
    /// of the disk.
    pub fn add(&mut self, volume: &VolumeId, size: Bytes, state: State) -> Result<Partition, Error> {
        let (next, partition) = self.added(volume, size, state)?;
        let tried = format!("add a partition for {volume} to {}", self.medium.name());
        self.unchanged_on_disk(&tried)?;
        let (start, size) = (partition.start, partition.size);
        zero_ends(&mut self.medium, start, size).map_err(|error| Error::system(tried.clone(), error))?;
        self.commit(next, tried)?;
        Ok(partition)
    }

    fn added(&self, volume: &VolumeId, size: Bytes, state: State) -> Result<(Table, Partition), Error> {
        let tried = || format!("add a partition of {size} for {volume} to {}", self.medium.name());
        if let Some(there) = self.table.find(&self.owner, volume) {
            return Err(Error::new(Kind::AlreadyExists, tried())
                .with_answer(format!("it is partition {} already", there.number)));
        }
        let mut next = self.table.clone();
        match next.add(&self.owner, volume, size, state) {
            Ok(partition) => Ok((next, partition)),
            Err(refusal) => Err(impossible(refusal, tried())),
        }
    }

    /// Makes a partition larger where it is; a size that it already has changes nothing. What it gains is zeroed before,
    /// as far as signatures in it would be taken for the partition's own.
    ///
    /// # Errors
    ///
    /// [`Kind::NoSpace`] if what follows it is not free, [`Kind::NotFound`] if there is none, and of the disk.
    pub fn grow(&mut self, number: PartitionNumber, to: Bytes) -> Result<Partition, Error> {
        let tried = format!("grow partition {number} of {} to {to}", self.medium.name());
        self.refuse_unknown(number, &tried)?;
        let mut next = self.table.clone();
        let before = next.partition(number).map_or(Bytes::ZERO, |partition| partition.size);
        let grown = next.grow(number, to).map_err(|refusal| impossible(refusal, tried.clone()))?;
        if grown.size > before {
            self.unchanged_on_disk(&tried)?;
            // Space that nobody has as yet, so a cut in between harms nothing.
            zero_ends_behind(&mut self.medium, grown.start, grown.size, before)
                .map_err(|error| Error::system(tried.clone(), error))?;
            self.commit(next, tried)?;
        }
        Ok(grown)
    }

    /// Removes a partition, and zeroes both ends of what it was, so that no signature of it comes back in a partition
    /// that another program makes there. The others keep their numbers.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is none, and of the disk.
    pub fn remove(&mut self, number: PartitionNumber) -> Result<Partition, Error> {
        let tried = format!("remove partition {number} of {}", self.medium.name());
        self.refuse_unknown(number, &tried)?;
        let gone = self.change(tried, |table| table.remove(number))?;
        zero_ends(&mut self.medium, gone.start, gone.size).map_err(|error| {
            let tried = format!("wipe what was partition {number} of {}", self.medium.name());
            Error::system(tried, error).with_effect(Effect::Done)
        })?;
        Ok(gone)
    }

    /// Notes how far a partition is.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is none, and of the disk.
    pub fn set_state(&mut self, number: PartitionNumber, state: State) -> Result<Partition, Error> {
        let tried = format!("mark partition {number} of {}", self.medium.name());
        self.refuse_unknown(number, &tried)?;
        self.change(tried, |table| table.set_state(number, state))
    }

    /// Moves the second copy to the end of a disk that has become larger, and makes the new space usable.
    ///
    /// # Errors
    ///
    /// Of the disk.
    pub fn use_grown_disk(&mut self) -> Result<(), Error> {
        let tried = format!("move the second partition table to the new end of {}", self.medium.name());
        self.unchanged_on_disk(&tried)?;
        let geometry = self.table.geometry;
        let (old, last) = (self.table.header.other, geometry.last());
        if old >= last {
            return Ok(());
        }
        let array = last - self.table.header.array_bytes().div_ceil(geometry.sector);
        let mut next = self.table.clone();
        next.header.other = last;
        next.header.last_usable = array - 1;
        let medium = &mut self.medium;
        let mut move_it = || {
            write_backup(medium, &next, array)?;
            write_primary(medium, &next)?;
            write_sector_0(medium, geometry)?;
            // The old header would be taken for a table by who looks for remains.
            if old < array {
                write(medium, geometry, old, &[])?;
            }
            medium.flush()
        };
        move_it().map_err(|error| Error::system(tried, error).with_effect(Effect::Unknown))?;
        (self.table, self.backup_array) = (next, array);
        Ok(())
    }

    fn refuse_unknown(&self, number: PartitionNumber, tried: &str) -> Result<(), Error> {
        match self.table.partition(number).map(|partition| partition.state()) {
            Some(State::Unknown(code)) => Err(Error::new(Kind::Unsupported, tried)
                .with_answer(format!("its state {code} is of a later version"))
                .with_advice("use that version")),
            _ => Ok(()),
        }
    }

    fn change(
        &mut self,
        tried: String,
        change: impl FnOnce(&mut Table) -> Result<Partition, Refusal>,
    ) -> Result<Partition, Error> {
        let mut next = self.table.clone();
        let partition = change(&mut next).map_err(|refusal| impossible(refusal, tried.clone()))?;
        if next != self.table {
            self.unchanged_on_disk(&tried)?;
            self.commit(next, tried)?;
        }
        Ok(partition)
    }

    /// Other tools know nothing of us: what they did since we read the table is not overwritten.
    fn unchanged_on_disk(&mut self, tried: &str) -> Result<(), Error> {
        let found = inspect(&self.medium)?;
        refuse_unless_ours(&found, &self.owner, tried)?;
        let sound = matches!(found.condition(), Condition::Sound | Condition::Grown);
        let Some(table) = found.table().filter(|_| sound) else {
            return Err(refused(found.condition(), tried));
        };
        if (&table.header, &table.array) != (&self.table.header, &self.table.array) {
            return Err(Error::new(Kind::Busy, tried)
                .with_answer("another program changed the table meanwhile")
                .with_advice("read it again"));
        }
        // The disk may have grown since.
        self.table.geometry = table.geometry;
        Ok(())
    }

    fn commit(&mut self, next: Table, tried: String) -> Result<(), Error> {
        write_backup(&mut self.medium, &next, self.backup_array)
            .and_then(|()| write_primary(&mut self.medium, &next))
            .map_err(|error| {
                Error::system(tried, error)
                    .with_effect(Effect::Unknown)
                    .with_advice("inspect the disk: one copy of the table is right, and can mend the other")
            })?;
        self.table = next;
        Ok(())
    }
}

fn empty(geometry: Geometry, owner: &Owner) -> Table {
    let array_sectors = geometry.array_sectors();
    let header = Header {
        own: 1,
        other: geometry.last(),
        first_usable: 2 + array_sectors,
        last_usable: geometry.last() - array_sectors - 1,
        disk_guid: owner.new_disk_guid(),
        array: 2,
        count: 128,
        entry_size: 128,
        array_checksum: 0,
    };
    let mut table = Table { geometry, header, array: vec![0; 128 * 128] };
    table.seal();
    table
}

/// Writes the copy at the end of the disk and waits for it.
fn write_backup(medium: &mut dyn Medium, table: &Table, array: u64) -> std::io::Result<()> {
    let primary = &table.header;
    let header = Header { own: primary.other, other: primary.own, array, ..primary.clone() };
    write(medium, table.geometry, array, &table.array)?;
    write(medium, table.geometry, header.own, &header.encode(table.geometry.sector))?;
    medium.flush()
}

/// Writes the copy at the beginning of the disk and waits for it.
fn write_primary(medium: &mut dyn Medium, table: &Table) -> std::io::Result<()> {
    write(medium, table.geometry, table.header.array, &table.array)?;
    write(medium, table.geometry, table.header.own, &table.header.encode(table.geometry.sector))?;
    medium.flush()
}

/// Writes the protective MBR and waits for it; code that boots from the sector stays.
fn write_sector_0(medium: &mut dyn Medium, geometry: Geometry) -> std::io::Result<()> {
    let length = usize::try_from(geometry.sector).map_err(std::io::Error::other)?;
    let old = medium::read(medium, geometry, 0, length)?;
    write(medium, geometry, 0, &mbr::protective(old, geometry))?;
    medium.flush()
}

/// Writes whole sectors from `lba` on, filled up with zeroes.
fn write(medium: &mut dyn Medium, geometry: Geometry, lba: u64, bytes: &[u8]) -> std::io::Result<()> {
    let sector = usize::try_from(geometry.sector).map_err(std::io::Error::other)?;
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().max(1).next_multiple_of(sector), 0);
    medium.write_at(geometry.bytes(lba), &whole)
}

/// Zeroes both ends of a range, where signatures of what it is to be could lie.
pub(crate) fn zero_ends(medium: &mut dyn Medium, start: Bytes, size: Bytes) -> std::io::Result<()> {
    zero_ends_behind(medium, start, size, Bytes::ZERO)
}

/// The same for what of the ends lies behind the first `kept` bytes of the range.
fn zero_ends_behind(medium: &mut dyn Medium, start: Bytes, size: Bytes, kept: Bytes) -> std::io::Result<()> {
    let zeroes = vec![0; 1 << 20];
    let sector = medium.sector().get();
    for end in signature_ends(size) {
        // Whole sectors, also at the odd end of an image.
        let from = end.start.max(kept).get();
        let mut at = start.get() + (from - from % sector);
        let to = start.get() + end.end.get();
        while at < to {
            let length = (to - at).min(1 << 20);
            let piece = usize::try_from(length).map_err(std::io::Error::other)?;
            medium.write_at(Bytes::new(at), &zeroes[..piece])?;
            at += length;
        }
    }
    medium.flush()
}

/// An error that says why a disk in this condition is not changed.
fn refused(condition: &Condition, tried: impl Into<String>) -> Error {
    let (kind, advice) = match condition {
        Condition::Blank => (Kind::NotFound, "make a table first"),
        Condition::Mbr | Condition::Content => (Kind::Foreign, "use another disk"),
        Condition::Damaged(_) => {
            (Kind::Inconsistent, "look what happened to the disk, then ask for a repair")
        }
        Condition::Destroyed | Condition::Contradictory(_) => {
            (Kind::Inconsistent, "restore the table by hand from what is known of the disk")
        }
        Condition::Sound | Condition::Grown => (Kind::AlreadyExists, "use the table that is there"),
    };
    Error::new(kind, tried).with_answer(condition.to_string()).with_advice(advice)
}

/// Refuses what has a table that another made, whole or in part.
fn refuse_unless_ours(found: &Inspection, owner: &Owner, tried: &str) -> Result<(), Error> {
    let has_table = matches!(
        found.condition(),
        Condition::Sound | Condition::Grown | Condition::Damaged(_) | Condition::Contradictory(_)
    );
    let Some(table) = found.table().filter(|_| has_table && !found.is_ours(owner)) else {
        return Ok(());
    };
    let answer = match table.foreign(owner).first() {
        Some(foreign) => {
            let number = foreign.number;
            let whose = match table.ownership(owner, number) {
                Some(Ownership::OtherOwner) => "was made by Gabion for another owner",
                _ => "was made by another program",
            };
            format!("partition {number} ({:?}) {whose}", foreign.name)
        }
        None => format!("its table was not made for the owner {owner}"),
    };
    Err(Error::new(Kind::Foreign, tried).with_answer(answer).with_advice("use another disk"))
}

fn impossible(refusal: Refusal, tried: String) -> Error {
    match refusal {
        Refusal::TooLarge(largest) => Error::new(Kind::NoSpace, tried)
            .with_answer(format!("the largest that is possible is {largest}"))
            .with_advice("ask for less, or remove what follows"),
        Refusal::TableFull => {
            Error::new(Kind::NoSpace, tried).with_answer("every entry of the table is used")
        }
        Refusal::Absent => Error::new(Kind::NotFound, tried).with_answer("there is no such partition"),
    }
}
