//! Disks that are not changed, each with its reason.

use super::*;

/// A disk with one partition of ours, as bytes to spoil.
fn ours() -> Memory {
    let mut gpt = created(8, 512);
    gpt.add(&volume("a"), Bytes::mib(2), State::New).unwrap();
    gpt.into_medium()
}

fn condition(memory: &Memory) -> Condition {
    inspect(memory).unwrap().condition().clone()
}

/// Says that nothing changes the disk, and why.
fn refuses(memory: &Memory, kind: Kind, why: &str) {
    let opened = Gpt::open(memory.clone(), &owner()).unwrap_err();
    assert_eq!(opened.kind(), kind, "{opened}");
    assert!(opened.to_string().contains(why), "{opened}");
    let created = Gpt::create(memory.clone(), &owner()).unwrap_err();
    assert!(created.to_string().contains("make a partition table"), "{created}");
}

/// Changes the entry of a partition and puts all checksums right again, as a tool would.
fn edited(mut memory: Memory, change: impl FnOnce(&mut Table)) -> Memory {
    let found = inspect(&memory).unwrap();
    let mut table = found.table().unwrap().clone();
    let array = found.backup.unwrap().header.array;
    change(&mut table);
    table.seal();
    write_backup(&mut memory, &table, array).unwrap();
    write_primary(&mut memory, &table).unwrap();
    memory
}

fn edit_entry(memory: Memory, change: impl FnOnce(&mut entry::Entry)) -> Memory {
    edited(memory, |table| {
        let mut entry = entry::Entry::parse(&table.array).unwrap();
        change(&mut entry);
        table.array[..128].copy_from_slice(&entry.encode());
    })
}

#[test]
fn a_blank_disk_has_no_table() {
    let blank = Memory::new(8, 512);
    assert_eq!(condition(&blank), Condition::Blank);
    assert_eq!(Gpt::open(blank, &owner()).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_disk_with_anything_at_its_ends_gets_no_table() {
    for at in [0, 510, 4096, (4 << 20) - 1, (7 << 20), (8 << 20) - 1] {
        let mut memory = Memory::new(8, 512);
        memory.bytes_mut(at, 1)[0] = 1;
        assert_eq!(condition(&memory), Condition::Content, "at {at}");
        refuses(&memory, Kind::Foreign, "it is not blank");
    }
}

#[test]
fn an_mbr_with_partitions_is_refused_with_or_without_a_gpt() {
    for mut memory in [Memory::new(8, 512), ours()] {
        memory.bytes_mut(446 + 16 + 4, 1)[0] = 0x83;
        memory.bytes_mut(510, 2).copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(condition(&memory), Condition::Mbr);
        refuses(&memory, Kind::Foreign, "it has an MBR partition table");
        assert_eq!(Gpt::repair(memory, &owner()).unwrap_err().kind(), Kind::Foreign);
    }
}

#[test]
fn a_gpt_under_a_boot_sector_of_another_kind_is_refused() {
    let mut memory = ours();
    memory.bytes_mut(446, 66).fill(0);
    memory.bytes_mut(0, 4).copy_from_slice(b"XFSB");
    assert_eq!(condition(&memory), Condition::Content);
    refuses(&memory, Kind::Foreign, "not blank");
}

#[test]
fn a_partition_or_a_table_of_another_is_refused() {
    let linux = uuid::Uuid::from_u128(0x0fc6_3daf_8483_4772_8e79_3d69_d847_7de4);
    let foreign = edit_entry(ours(), |entry| entry.type_guid = linux);
    refuses(&foreign, Kind::Foreign, "partition 1 (\"a\") was made by another program");
    let other: Owner = "another".parse().unwrap();
    let theirs = edit_entry(ours(), |entry| entry.guid = other.partition_guid(&volume("a")));
    refuses(&theirs, Kind::Foreign, "partition 1 (\"a\") was made by Gabion for another owner");
    let empty = Gpt::create(Memory::new(8, 512), &other).unwrap().into_medium();
    refuses(&empty, Kind::Foreign, "its table was not made for the owner");
    // Nor is it repaired.
    for mut memory in [foreign, theirs, empty] {
        memory.bytes_mut(512, 512).fill(0);
        let before = memory.clone();
        assert_eq!(Gpt::repair(memory.clone(), &owner()).unwrap_err().kind(), Kind::Foreign);
        assert_eq!(memory, before);
    }
}

#[test]
fn a_table_that_contradicts_itself_is_refused_although_its_checksums_match() {
    let backwards = edit_entry(ours(), |entry| entry.last = entry.first - 1);
    refuses(&backwards, Kind::Inconsistent, "partition 1 ends before it begins");
    let outside = edit_entry(ours(), |entry| entry.last = 1 << 40);
    refuses(&outside, Kind::Inconsistent, "reaches over the ends");
    let overlapping = edited(ours(), |table| table.array.copy_within(0..128, 256));
    refuses(&overlapping, Kind::Inconsistent, "partition 3 overlaps another");
    let twice = edited(ours(), |table| {
        let mut entry = entry::Entry::parse(&table.array).unwrap();
        (entry.first, entry.last) = (8192, 8200);
        table.array[128..256].copy_from_slice(&entry.encode());
    });
    refuses(&twice, Kind::Inconsistent, "two partitions have the GUID");
}

/// What the fuzzer found: such a table is refused, but whoever inspects the disk may ask it anything.
#[test]
fn a_table_that_contradicts_itself_answers_every_question() {
    for (first, last) in [(u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX), (1 << 50, 1 << 40), (0, 0)] {
        let memory = edit_entry(ours(), |entry| (entry.first, entry.last) = (first, last));
        let found = inspect(&memory).unwrap();
        let table = found.table().unwrap();
        assert!(table.free() <= Bytes::mib(8) && table.largest() <= table.free());
        assert_eq!(table.largest_growth(number(1)).is_some(), table.partition(number(1)).is_some());
        assert_eq!(Gpt::open(memory, &owner()).unwrap_err().kind(), Kind::Inconsistent);
    }
}

#[test]
fn every_damaged_byte_of_either_copy_is_found_and_mended_on_request_only() {
    let good = ours();
    let last = (8_u64 << 20) - 512;
    let mut places = vec![];
    for header in [512, last] {
        places.extend((0..92).map(|at| header + at));
    }
    places.extend((1024..1024 + 16384).step_by(61));
    places.extend((last - 16384..last).step_by(61));
    for at in places {
        let mut memory = good.clone();
        memory.bytes_mut(at, 1)[0] ^= 0x40;
        let found = condition(&memory);
        assert!(matches!(&found, Condition::Damaged(damages) if damages.len() == 1), "at {at}: {found}");
        let error = Gpt::open(memory.clone(), &owner()).unwrap_err();
        assert!(error.to_string().contains("ask for a repair"), "{error}");
        let (gpt, damages) = Gpt::repair(memory, &owner()).unwrap();
        assert_eq!(damages.len(), 1);
        assert_eq!(gpt.into_medium(), good, "at {at}");
    }
}

#[test]
fn a_missing_protective_mbr_is_mended_on_request() {
    let good = ours();
    let mut memory = good.clone();
    memory.bytes_mut(0, 512).fill(0);
    assert_eq!(condition(&memory), Condition::Damaged(vec![Damage::ProtectiveMbr]));
    refuses(&memory, Kind::Inconsistent, "the protective MBR is missing");
    let (gpt, _) = Gpt::repair(memory, &owner()).unwrap();
    assert_eq!(gpt.into_medium(), good);
}

#[test]
fn when_no_copy_is_right_there_is_nothing_to_mend() {
    let mut memory = ours();
    memory.bytes_mut(512 + 20, 1)[0] ^= 1;
    memory.bytes_mut((8 << 20) - 492, 1)[0] ^= 1;
    assert_eq!(condition(&memory), Condition::Destroyed);
    refuses(&memory, Kind::Inconsistent, "no copy can be used");
    assert_eq!(Gpt::repair(memory, &owner()).unwrap_err().kind(), Kind::Inconsistent);
}

#[test]
fn a_disk_that_became_smaller_is_refused_and_not_mended() {
    let mut memory = ours();
    memory.shrink(7 << 20);
    assert_eq!(condition(&memory), Condition::Damaged(vec![Damage::Backup(Fault::Misplaced)]));
    refuses(&memory, Kind::Inconsistent, "cannot be used");
    let error = Gpt::repair(memory, &owner()).unwrap_err();
    assert!(error.to_string().contains("make it as large as it was"), "{error}");
}

#[test]
fn a_disk_that_cannot_be_read_is_not_taken_for_a_blank_one() {
    for sick in [0, 512, (8 << 20) - 1, 1 << 20] {
        let mut memory = Memory::new(8, 512);
        memory.sick = Some(sick);
        assert_eq!(inspect(&memory).unwrap_err().kind(), Kind::Io, "at {sick}");
        assert_eq!(Gpt::create(memory, &owner()).unwrap_err().kind(), Kind::Io);
    }
    let mut memory = ours();
    memory.sick = Some(1024);
    assert_eq!(Gpt::repair(memory, &owner()).unwrap_err().kind(), Kind::Io);
}

#[test]
fn a_write_that_fails_leaves_its_effect_open_and_is_mended_afterwards() {
    let mut gpt = Gpt::open(ours(), &owner()).unwrap();
    // The copy at the end was written by then, the first one was not.
    gpt.medium.sick = None;
    let before = gpt.table().clone();
    let mut memory = gpt.medium.clone();
    memory.fail_writes_at = Some(1024);
    gpt.medium = memory;
    let error = gpt.remove(number(1)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (Kind::Io, Effect::Unknown));
    assert_eq!(*gpt.table(), before);
    gpt.medium.fail_writes_at = None;
    assert_eq!(condition(&gpt.medium), Condition::Damaged(vec![Damage::Differ]));
    let (gpt, _) = Gpt::repair(gpt.into_medium(), &owner()).unwrap();
    assert_eq!(*gpt.table(), before);
}

#[test]
fn disks_too_small_or_with_odd_sectors_have_no_table() {
    for (size, sector) in [(0, 512), (33 * 1024, 512), (1 << 20, 256), (1 << 20, 8192), (1 << 20, 768)] {
        let error = inspect(&Memory::of_bytes(size, sector)).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{size} {sector}");
    }
}
