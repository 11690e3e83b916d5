//! The table on a disk in memory: what is refused, what a cut at every write leaves, what repair brings back.

mod cut;
mod memory;
mod refusal;

use super::*;
use memory::Memory;

fn owner() -> Owner {
    "6fe0bd3c-5df5-4f35-8a41-f85c4a2a0f4e".parse().unwrap()
}

fn volume(id: &str) -> VolumeId {
    id.parse().unwrap()
}

fn number(number: u32) -> PartitionNumber {
    PartitionNumber::new(number).unwrap()
}

fn created(mebibytes: u64, sector: u64) -> Gpt<Memory> {
    Gpt::create(Memory::new(mebibytes, sector), &owner()).unwrap()
}

#[test]
fn partitions_are_made_grown_and_removed_under_numbers_that_stay() {
    for sector in [512, 1024, 2048, 4096] {
        let mut gpt = created(64, sector);
        let first = gpt.add(&volume("a"), Bytes::mib(3), State::Creating).unwrap();
        let second = gpt.add(&volume("b"), Bytes::new(1), State::New).unwrap();
        let third = gpt.add(&volume("c"), Bytes::mib(4), State::New).unwrap();
        assert_eq!((first.number, second.number, third.number), (number(1), number(2), number(3)));
        assert_eq!((first.start, first.size), (Bytes::mib(1), Bytes::mib(3)));
        assert_eq!((second.start, second.size), (Bytes::mib(4), Bytes::mib(1)));
        assert_eq!(first.state(), State::Creating);

        gpt.remove(second.number).unwrap();
        assert_eq!(gpt.table().partition(third.number), Some(third.clone()));
        let grown = gpt.grow(first.number, Bytes::mib(4)).unwrap();
        assert_eq!((grown.start, grown.size, grown.guid), (first.start, Bytes::mib(4), first.guid));
        let error = gpt.grow(first.number, Bytes::mib(5)).unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace);
        assert!(error.to_string().contains("the largest that is possible is 4 MiB"), "{error}");

        let again = gpt.add(&volume("d"), Bytes::mib(1), State::New).unwrap();
        assert_eq!(again.number, second.number);
        gpt.set_state(first.number, State::Ext4).unwrap();
        let opened = Gpt::open(gpt.medium.clone(), &owner()).unwrap();
        assert_eq!(opened.table(), gpt.table());
        assert_eq!(opened.table().partition(number(1)).unwrap().state(), State::Ext4);
        assert_eq!(opened.table().find(&owner(), &volume("c")), Some(third));
    }
}

#[test]
fn the_smallest_gap_that_fits_is_used() {
    let mut gpt = created(64, 512);
    for (id, size) in [("a", 8), ("b", 1), ("c", 4), ("d", 1), ("e", 6), ("f", 1)] {
        gpt.add(&volume(id), Bytes::mib(size), State::New).unwrap();
    }
    for partition in [1, 3, 5] {
        gpt.remove(number(partition)).unwrap();
    }
    // Gaps of 8, 4, 6 and about 42 MiB.
    let places: Vec<_> = [("g", 5), ("h", 3), ("i", 8), ("j", 9)]
        .map(|(id, size)| gpt.add(&volume(id), Bytes::mib(size), State::New).unwrap().start)
        .into();
    assert_eq!(places, [Bytes::mib(15), Bytes::mib(10), Bytes::mib(1), Bytes::mib(22)]);
    let largest = gpt.table().largest();
    let error = gpt.plan(&volume("k"), Bytes::new(largest.get() + 1), State::New).unwrap_err();
    assert_eq!(error.kind(), Kind::NoSpace);
    gpt.add(&volume("k"), largest, State::New).unwrap();
    assert_eq!(gpt.table().free(), Bytes::mib(2));
}

#[test]
fn a_volume_has_one_partition_and_a_full_table_takes_no_more() {
    let mut gpt = created(160, 512);
    gpt.add(&volume("a"), Bytes::mib(1), State::New).unwrap();
    let error = gpt.add(&volume("a"), Bytes::mib(1), State::New).unwrap_err();
    assert_eq!(error.kind(), Kind::AlreadyExists);
    for count in 1..128 {
        gpt.add(&volume(&format!("v{count}")), Bytes::mib(1), State::New).unwrap();
    }
    assert_eq!(gpt.table().largest(), Bytes::ZERO);
    let error = gpt.add(&volume("z"), Bytes::mib(1), State::New).unwrap_err();
    assert!(error.to_string().contains("every entry of the table is used"), "{error}");
}

#[test]
fn a_new_partition_shows_nothing_of_what_was_there_before() {
    let mut gpt = created(32, 512);
    let first = gpt.add(&volume("a"), Bytes::mib(9), State::New).unwrap();
    let (start, end) = (first.start.get(), first.start.get() + first.size.get());
    let places = [start, start + (64 << 10), start + (4 << 20) - 512, end - (1 << 20), end - 512];
    for at in places {
        gpt.medium.write_at(Bytes::new(at), &[0xa5; 512]).unwrap();
    }
    gpt.remove(first.number).unwrap();
    for at in places {
        assert_eq!(gpt.medium.bytes(at, 512), [0; 512], "at {at}");
        gpt.medium.write_at(Bytes::new(at), &[0x5a; 512]).unwrap();
    }
    gpt.add(&volume("b"), Bytes::mib(9), State::New).unwrap();
    for at in places {
        assert_eq!(gpt.medium.bytes(at, 512), [0; 512], "at {at}");
    }
    // Its neighbours are not touched.
    let behind = gpt.add(&volume("c"), Bytes::mib(1), State::New).unwrap();
    gpt.medium.write_at(behind.start, &[0xa5; 512]).unwrap();
    gpt.remove(number(1)).unwrap();
    gpt.add(&volume("d"), Bytes::mib(9), State::New).unwrap();
    assert_eq!(gpt.medium.bytes(behind.start.get(), 512), [0xa5; 512]);
}

#[test]
fn a_disk_that_became_larger_is_used_as_far_as_asked_for() {
    for (old, sector) in [(8 << 20, 512), ((64 << 20) - 4096, 512), (64 << 20, 4096)] {
        let memory = Memory::of_bytes(old, sector);
        let mut gpt = Gpt::create(memory, &owner()).unwrap();
        gpt.add(&volume("a"), Bytes::mib(2), State::New).unwrap();
        let mut memory = gpt.into_medium();
        memory.grow(64 << 20);
        let found = inspect(&memory).unwrap();
        let unknown = found.table().unwrap().unknown_space();
        assert_eq!(unknown.get(), (64 << 20) - old);
        let grown = unknown > Bytes::ZERO;
        assert_eq!(*found.condition(), if grown { Condition::Grown } else { Condition::Sound });

        // What is there is still changed where it is.
        let mut gpt = Gpt::open(memory, &owner()).unwrap();
        gpt.grow(number(1), Bytes::mib(3)).unwrap();
        let before = gpt.table().largest();
        gpt.use_grown_disk().unwrap();
        assert!(gpt.table().largest() > before || unknown < ALIGNMENT);
        assert_eq!(gpt.table().unknown_space(), Bytes::ZERO);
        let largest = gpt.table().largest();
        gpt.add(&volume("b"), largest, State::New).unwrap();
        assert_eq!(*inspect(&gpt.medium).unwrap().condition(), Condition::Sound);
        if grown {
            // The old second copy is nowhere taken for a table.
            assert_ne!(gpt.medium.bytes(old - sector, 8), *b"EFI PART");
        }
    }
}

#[test]
fn what_another_program_changed_meanwhile_is_not_overwritten() {
    let mut gpt = created(32, 512);
    gpt.add(&volume("a"), Bytes::mib(2), State::New).unwrap();
    let mut other = Gpt::open(gpt.medium.clone(), &owner()).unwrap();
    other.add(&volume("b"), Bytes::mib(2), State::New).unwrap();
    gpt.medium = other.into_medium();
    let before = gpt.medium.clone();
    let error = gpt.add(&volume("c"), Bytes::mib(2), State::New).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy);
    assert_eq!(gpt.medium, before);
}

#[test]
fn a_state_of_a_later_version_is_left_alone() {
    let mut gpt = created(32, 512);
    gpt.add(&volume("a"), Bytes::mib(2), State::Unknown(999)).unwrap();
    for error in [
        gpt.remove(number(1)).unwrap_err(),
        gpt.grow(number(1), Bytes::mib(3)).unwrap_err(),
        gpt.set_state(number(1), State::New).unwrap_err(),
    ] {
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    }
    assert_eq!(gpt.remove(number(2)).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn what_a_partition_gains_has_no_old_signature_where_its_own_would_be() {
    let full: u64 = 96 << 20;
    for (before, after) in [(1, 2), (1, 30), (4, 9), (8, 9), (8, 40)] {
        let mut gpt = created(96, 512);
        let partition = gpt.add(&volume("a"), Bytes::mib(before), State::New).unwrap();
        // Its own content, and what was in the space behind it before, up to the second copy of the table.
        let mut medium = gpt.into_medium();
        let (start, end) = (partition.start.get(), full - (64 << 10));
        let old = vec![0xa5; usize::try_from(end - start).unwrap()];
        medium.write_at(partition.start, &old).unwrap();
        let mut gpt = Gpt::open(medium, &owner()).unwrap();
        let grown = gpt.grow(partition.number, Bytes::mib(after)).unwrap();
        assert_eq!(grown.size, Bytes::mib(after));
        let mut bytes = vec![0; usize::try_from(grown.size.get()).unwrap()];
        gpt.medium().read_at(grown.start, &mut bytes).unwrap();
        let kept = usize::try_from(partition.size.get()).unwrap();
        assert!(bytes[..kept].iter().all(|byte| *byte == 0xa5), "its own content was changed");
        for end in crate::signature_ends(grown.size) {
            let (from, to) =
                (usize::try_from(end.start.get()).unwrap(), usize::try_from(end.end.get()).unwrap());
            assert!(
                bytes[from.max(kept).min(to)..to].iter().all(|byte| *byte == 0),
                "{before} to {after}: {end:?}"
            );
        }
        // What is behind the new end is not touched.
        let mut behind = vec![0; 1 << 20];
        gpt.medium().read_at(Bytes::new(grown.start.get() + grown.size.get()), &mut behind).unwrap();
        assert!(behind.iter().all(|byte| *byte == 0xa5));
    }
}
