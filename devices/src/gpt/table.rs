//! A table in memory: what is where, what is free, and the changes that keep both true.

use std::fmt;
use std::num::NonZeroU32;

use uuid::Uuid;

use super::entry::Entry;
use super::header::Header;
use super::medium::Geometry;
use super::ours::{Owner, Ownership, State, VolumeId};
use crate::Bytes;

/// Partitions begin and end at multiples of this, whatever the disk's sectors are.
pub const ALIGNMENT: Bytes = Bytes::mib(1);

/// The number of a partition, from 1 on. It stays the same for the partition's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionNumber(NonZeroU32);

impl PartitionNumber {
    /// `None` for zero.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    fn of_slot(slot: usize) -> Option<Self> {
        Self::new(u32::try_from(slot).ok()?.checked_add(1)?)
    }

    fn slot(self) -> usize {
        usize::try_from(self.get() - 1).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for PartitionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One partition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number.
    pub number: PartitionNumber,
    /// Where it begins on the disk.
    pub start: Bytes,
    /// Its length.
    pub size: Bytes,
    /// Its type.
    pub type_guid: Uuid,
    /// Its own GUID, which `/dev/disk/by-partuuid` shows.
    pub guid: Uuid,
    /// Its name, at most 36 characters.
    pub name: String,
    /// Its attribute bits.
    pub attributes: u64,
}

impl Partition {
    /// How far it is, if it is ours.
    #[must_use]
    pub fn state(&self) -> State {
        State::of(self.attributes)
    }
}

/// A table that one copy on the disk held, or that is about to be written.
#[derive(Clone, PartialEq, Eq)]
pub struct Table {
    pub(super) geometry: Geometry,
    /// The primary copy's.
    pub(super) header: Header,
    /// The array as it is on the disk: what an entry holds beyond what we know stays.
    pub(super) array: Vec<u8>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("header", &self.header).field("partitions", &self.partitions()).finish()
    }
}

/// Why a partition cannot be added or grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No gap is large enough; this is the largest partition that can be had there.
    TooLarge(Bytes),
    /// Each entry is used.
    TableFull,
    /// There is no such partition.
    Absent,
}

impl Table {
    /// The table's own GUID.
    #[must_use]
    pub fn disk_guid(&self) -> Uuid {
        self.header.disk_guid
    }

    /// Every partition, by number.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        self.entries().filter_map(|(slot, entry)| self.describe(slot, &entry)).collect()
    }

    /// The partition of that number.
    #[must_use]
    pub fn partition(&self, number: PartitionNumber) -> Option<Partition> {
        self.describe(number.slot(), &self.entry(number.slot())?)
    }

    /// The partition of a volume.
    #[must_use]
    pub fn find(&self, owner: &Owner, volume: &VolumeId) -> Option<Partition> {
        let guid = owner.partition_guid(volume);
        let mut entries = self.entries();
        let (slot, entry) =
            entries.find(|(_, entry)| entry.guid == guid && owner.ownership(entry).is_ours())?;
        self.describe(slot, &entry)
    }

    /// Whether a partition is ours; `None` if there is none of that number.
    #[must_use]
    pub fn ownership(&self, owner: &Owner, number: PartitionNumber) -> Option<Ownership> {
        Some(owner.ownership(&self.entry(number.slot())?))
    }

    /// The partitions that this owner did not make.
    #[must_use]
    pub fn foreign(&self, owner: &Owner) -> Vec<Partition> {
        self.entries()
            .filter(|(_, entry)| !owner.ownership(entry).is_ours())
            .filter_map(|(slot, entry)| self.describe(slot, &entry))
            .collect()
    }

    /// The largest partition that can be added: the largest gap, aligned. Zero when every entry is used.
    #[must_use]
    pub fn largest(&self) -> Bytes {
        if self.free_slot().is_none() {
            return Bytes::ZERO;
        }
        let largest = self.gaps().iter().map(|gap| gap.length()).max().unwrap_or(0);
        self.geometry.bytes(largest)
    }

    /// All that partitions can still be made of, aligned, as a sum over the gaps.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.geometry.bytes(self.gaps().iter().map(|gap| gap.length()).sum())
    }

    /// How many more partitions have an entry in the table.
    #[must_use]
    pub fn free_entries(&self) -> usize {
        self.slots() - self.entries().count()
    }

    /// The largest size to which a partition can grow where it is; `None` if there is none of that number.
    #[must_use]
    pub fn largest_growth(&self, number: PartitionNumber) -> Option<Bytes> {
        let entry = self.entry(number.slot())?;
        // Whoever only inspected the disk may ask this of a table that contradicts itself.
        let room = self.end_of_room(&entry).saturating_sub(entry.first);
        let aligned = self.geometry.bytes(room - room % self.alignment());
        Some(aligned.max(self.describe(number.slot(), &entry)?.size))
    }

    /// How much larger the disk is than the table knows; zero for most.
    #[must_use]
    pub fn unknown_space(&self) -> Bytes {
        self.geometry.bytes(self.geometry.last().saturating_sub(self.header.other))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, Entry)> + '_ {
        (0..self.slots()).filter_map(|slot| Some((slot, self.entry(slot)?)))
    }

    fn slots(&self) -> usize {
        usize::try_from(self.header.count).unwrap_or(0)
    }

    fn place(&self, slot: usize) -> Option<std::ops::Range<usize>> {
        let size = usize::try_from(self.header.entry_size).ok()?;
        let start = slot.checked_mul(size)?;
        let end = start.checked_add(size)?;
        (end <= self.array.len()).then_some(start..end)
    }

    fn entry(&self, slot: usize) -> Option<Entry> {
        Entry::parse(&self.array[self.place(slot)?])
    }

    fn describe(&self, slot: usize, entry: &Entry) -> Option<Partition> {
        let length = entry.last.checked_sub(entry.first)?.checked_add(1)?;
        Some(Partition {
            number: PartitionNumber::of_slot(slot)?,
            start: self.geometry.bytes(entry.first),
            size: self.geometry.bytes(length),
            type_guid: entry.type_guid,
            guid: entry.guid,
            name: entry.name(),
            attributes: entry.attributes,
        })
    }

    fn free_slot(&self) -> Option<usize> {
        (0..self.slots()).find(|slot| self.place(*slot).is_some() && self.entry(*slot).is_none())
    }

    fn alignment(&self) -> u64 {
        ALIGNMENT.get() / self.geometry.sector
    }

    /// The used sectors, in order; each end is the first sector behind.
    fn used(&self) -> Vec<(u64, u64)> {
        let mut used: Vec<_> =
            self.entries().map(|(_, entry)| (entry.first, entry.last.saturating_add(1))).collect();
        used.sort_unstable();
        used
    }

    /// What an aligned partition can be made in, by place.
    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut from = self.header.first_usable;
        let end = self.header.last_usable.saturating_add(1);
        for (start, behind) in self.used().into_iter().chain([(end, end)]) {
            let Some(first) = from.checked_next_multiple_of(self.alignment()) else { break };
            let start = start.min(end);
            let last = start - start % self.alignment();
            if first < last {
                gaps.push(Gap { first, end: last });
            }
            from = from.max(start).max(behind);
        }
        gaps
    }

    /// The first sector behind `entry` that it cannot have.
    fn end_of_room(&self, entry: &Entry) -> u64 {
        let next = self.used().into_iter().map(|(start, _)| start).find(|start| *start > entry.last);
        next.unwrap_or_else(|| self.header.last_usable.saturating_add(1))
    }

    /// Sectors of a partition of at least this size, aligned; `None` if that is out of range.
    fn sectors(&self, size: Bytes) -> Option<u64> {
        let aligned = size.round_up(ALIGNMENT)?.get() / self.geometry.sector;
        (aligned > 0).then_some(aligned)
    }

    /// Puts a new partition into the smallest gap that holds it, under the lowest free number.
    pub(super) fn add(
        &mut self,
        owner: &Owner,
        volume: &VolumeId,
        size: Bytes,
        state: State,
    ) -> Result<Partition, Refusal> {
        let slot = self.free_slot().ok_or(Refusal::TableFull)?;
        let no_space = Refusal::TooLarge(self.largest());
        let length = self.sectors(size).ok_or(no_space)?;
        let gaps = self.gaps().into_iter().filter(|gap| gap.length() >= length);
        let gap = gaps.min_by_key(|gap| (gap.length(), gap.first)).ok_or(no_space)?;
        let entry = Entry {
            type_guid: super::TYPE,
            guid: owner.partition_guid(volume),
            first: gap.first,
            last: gap.first + length - 1,
            attributes: state.within(0),
            name: super::entry::encode_name(&owner.name_of(volume)),
        };
        self.put(slot, &entry);
        self.describe(slot, &entry).ok_or(Refusal::TableFull)
    }

    /// Moves the end of a partition; a size that it already has changes nothing.
    pub(super) fn grow(&mut self, number: PartitionNumber, size: Bytes) -> Result<Partition, Refusal> {
        let slot = number.slot();
        let mut entry = self.entry(slot).ok_or(Refusal::Absent)?;
        let now = self.describe(slot, &entry).ok_or(Refusal::Absent)?;
        if size <= now.size {
            return Ok(now);
        }
        let no_space = Refusal::TooLarge(self.largest_growth(number).unwrap_or(now.size));
        let length = self.sectors(size).ok_or(no_space)?;
        if length > self.end_of_room(&entry).saturating_sub(entry.first) {
            return Err(no_space);
        }
        entry.last = entry.first + length - 1;
        self.put(slot, &entry);
        self.describe(slot, &entry).ok_or(Refusal::Absent)
    }

    pub(super) fn set_state(&mut self, number: PartitionNumber, state: State) -> Result<Partition, Refusal> {
        let slot = number.slot();
        let mut entry = self.entry(slot).ok_or(Refusal::Absent)?;
        entry.attributes = state.within(entry.attributes);
        self.put(slot, &entry);
        self.describe(slot, &entry).ok_or(Refusal::Absent)
    }

    pub(super) fn remove(&mut self, number: PartitionNumber) -> Result<Partition, Refusal> {
        let gone = self.partition(number).ok_or(Refusal::Absent)?;
        if let Some(place) = self.place(number.slot()) {
            self.array[place].fill(0);
        }
        self.seal();
        Ok(gone)
    }

    fn put(&mut self, slot: usize, entry: &Entry) {
        if let Some(place) = self.place(slot) {
            let bytes = entry.encode();
            self.array[place.start..place.start + bytes.len()].copy_from_slice(&bytes);
        }
        self.seal();
    }

    pub(super) fn seal(&mut self) {
        self.header.array_checksum = crc32fast::hash(&self.array);
    }

    /// What is wrong with the table although its checksums match, in words; `None` if nothing is.
    pub(super) fn contradiction(&self) -> Option<String> {
        let mut end = self.header.first_usable;
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_unstable_by_key(|(_, entry)| (entry.first, entry.last));
        for (slot, entry) in &entries {
            let number = slot + 1;
            if entry.last < entry.first {
                return Some(format!("partition {number} ends before it begins"));
            }
            if entry.first < self.header.first_usable || entry.last > self.header.last_usable {
                return Some(format!("partition {number} reaches over the ends of what is usable"));
            }
            if entry.first < end {
                return Some(format!("partition {number} overlaps another"));
            }
            end = entry.last + 1;
        }
        let mut guids: Vec<_> = entries.iter().map(|(_, entry)| entry.guid).collect();
        guids.sort_unstable();
        let twice = guids.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(format!("two partitions have the GUID {}", twice[0]))
    }
}

/// Aligned free sectors.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u64,
    /// The first sector behind.
    end: u64,
}

impl Gap {
    fn length(self) -> u64 {
        self.end - self.first
    }
}
