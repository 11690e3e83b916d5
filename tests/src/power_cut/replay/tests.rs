use std::io::Cursor;

use super::*;

const SECTOR: u64 = 512;

/// A log in memory: each entry has a place in sectors, the byte that fills one sector, and its durability.
fn log(entries: &[(u64, u8, Durability)]) -> Log<Cursor<Vec<u8>>> {
    let mut bytes = vec![0; 512];
    bytes[..8].copy_from_slice(&0x006a_7366_7773_6872_u64.to_le_bytes());
    bytes[8] = 1;
    bytes[16..24].copy_from_slice(&(entries.len() as u64).to_le_bytes());
    bytes[24..28].copy_from_slice(&512_u32.to_le_bytes());
    for (place, byte, durability) in entries {
        let empty = *durability == Durability::Flush;
        let flags = u64::from(durability.is_flush()) | u64::from(durability.is_forced()) << 1;
        bytes.extend([*place, u64::from(!empty), flags, 0].map(u64::to_le_bytes).concat());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        if !empty {
            bytes.resize(bytes.len() + 512, *byte);
        }
    }
    Log::read(Cursor::new(bytes)).unwrap()
}

fn slices() -> Vec<Slice> {
    [0, 1].map(|index| Slice { start: Bytes::new(index << 20), length: Bytes::mib(1) }).to_vec()
}

fn byte(images: &Images, slice: usize, sector: u64) -> u8 {
    images.read(slice, Bytes::new(sector * SECTOR), Bytes::new(1)).unwrap()[0]
}

const WRITTEN: [(u64, u8, Durability); 6] = [
    (0, 1, Durability::Cached),
    (1, 2, Durability::Forced),
    (0, 0, Durability::Flush),
    (0, 3, Durability::Cached),
    (2048, 4, Durability::Cached),
    (0, 0, Durability::Flush),
];

#[test]
fn each_flush_and_each_forced_write_is_a_point_with_what_came_before_it() {
    let mut replay = Replay::of(log(&WRITTEN), &slices(), Stops::Durable).unwrap();
    let mut seen = Vec::new();
    while let Some(point) = replay.next_point().unwrap() {
        let images = replay.images();
        seen.push((point.entry, byte(images, 0, 0), byte(images, 0, 1), byte(images, 1, 0)));
    }
    assert_eq!(seen, [(1, 1, 2, 0), (2, 1, 2, 0), (5, 3, 2, 4)]);
}

#[test]
fn a_disk_without_a_cache_has_a_point_after_each_write() {
    let mut replay = Replay::of(log(&WRITTEN), &slices(), Stops::EachWrite).unwrap();
    assert_eq!(replay.points(), 6);
    let mut seen = Vec::new();
    while let Some(point) = replay.next_point().unwrap() {
        seen.push((point.entry, byte(replay.images(), 0, 0), byte(replay.images(), 1, 0)));
    }
    assert_eq!(seen, [(0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 3, 0), (4, 3, 4), (5, 3, 4)]);
}

#[test]
fn before_a_flush_any_of_its_writes_can_be_lost_but_no_forced_one_and_nothing_older() {
    let mut replay = Replay::of(log(&WRITTEN), &slices(), Stops::Durable).unwrap();
    replay.next_point().unwrap();
    assert!(replay.with_losses(1, |_| true, |_| Ok(())).is_err(), "no flush");
    let mut seen = std::collections::BTreeSet::new();
    replay.next_point().unwrap();
    for seed in 0..50 {
        let state = replay.with_losses(seed, |_| true, |images| Ok((byte(images, 0, 0), byte(images, 0, 1))));
        seen.insert(state.unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(0, 2), (1, 2)]);
    replay.next_point().unwrap();
    let kept = replay.with_losses(1, |_| false, |images| Ok((byte(images, 0, 0), byte(images, 1, 0))));
    assert_eq!(kept.unwrap(), (3, 4));
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let state = replay.with_losses(seed, |_| true, |images| Ok((byte(images, 0, 0), byte(images, 1, 0))));
        seen.insert(state.unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 0), (1, 4), (3, 0), (3, 4)]);
    assert_eq!((byte(replay.images(), 0, 0), byte(replay.images(), 1, 0)), (3, 4), "as they were");
}

#[test]
fn a_flush_that_was_never_sent_leaves_its_writes_to_the_next_one() {
    let log = log(&WRITTEN).without_flush(2).unwrap();
    let mut replay = Replay::of(log, &slices(), Stops::Durable).unwrap();
    replay.next_point().unwrap();
    assert_eq!((byte(replay.images(), 0, 0), byte(replay.images(), 0, 1)), (0, 2));
    replay.next_point().unwrap();
    assert_eq!((byte(replay.images(), 0, 0), byte(replay.images(), 1, 0)), (3, 4));
    assert!(replay.next_point().unwrap().is_none());
}

#[test]
fn only_a_flush_can_be_dropped() {
    assert!(log(&WRITTEN).without_flush(1).is_err());
    assert!(log(&WRITTEN).without_flush(9).is_err());
    assert!(log(&WRITTEN).without_flushes(0..1).is_err());
}

/// A copy on a loop device has the image's content and holes.
#[test]
fn a_copy_of_the_images_can_be_written_and_the_images_stay() {
    if crate::skip_unless_loop() {
        return;
    }
    let mut replay = Replay::of(log(&WRITTEN), &slices(), Stops::Durable).unwrap();
    while replay.next_point().unwrap().is_some() {}
    let disks = replay.images().disks().unwrap();
    for (index, disk) in disks.iter().enumerate() {
        assert!(super::super::same_content(disk.image(), replay.images().path(index)).unwrap());
    }
    std::fs::write(disks[0].path(), [9; 512]).unwrap();
    assert_eq!(byte(replay.images(), 0, 0), 3);
}
