//! The power fails at every write: of what was written since the last flush, any sectors may be on the disk.

use super::memory::Act;
use super::*;

/// Every disk that a cut within these acts can leave, made from the disk before them.
///
/// A flush makes what went before it certain. Of the sectors written after the last flush that differ from what is
/// there, each subset may have arrived; a sector arrives whole or not at all, as disks promise.
fn cuts(before: &Memory, acts: &[Act], look: &mut dyn FnMut(&Memory)) -> usize {
    let mut certain = before.clone();
    let mut count = 0;
    let mut since: Vec<(u64, Vec<u8>)> = Vec::new();
    for act in acts.iter().chain([&Act::Flush]) {
        match act {
            Act::Write { at, bytes } => {
                let sector = usize::try_from(certain.sector().get()).unwrap();
                for (index, piece) in bytes.chunks(sector).enumerate() {
                    since.push((at + (index * sector) as u64, piece.to_vec()));
                }
            }
            Act::Flush => {
                since.retain(|(at, bytes)| certain.bytes(*at, bytes.len()) != &bytes[..]);
                assert!(since.len() <= 12, "{} sectors between two flushes", since.len());
                for subset in 0..1_u32 << since.len() {
                    let mut disk = certain.clone();
                    let arrived = since.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1);
                    for (_, (at, bytes)) in arrived {
                        disk.bytes_mut(*at, bytes.len()).copy_from_slice(bytes);
                    }
                    look(&disk);
                    count += 1;
                }
                for (at, bytes) in since.drain(..) {
                    certain.bytes_mut(at, bytes.len()).copy_from_slice(&bytes);
                }
            }
        }
    }
    count
}

/// Cuts a change at every point. The disk then holds the old or the new table, in a copy that is right, and a repair
/// brings just that one back, with both copies the same.
fn survives(gpt: Gpt<Memory>, what: &str, change: impl FnOnce(&mut Gpt<Memory>)) -> Gpt<Memory> {
    let mut gpt = gpt;
    gpt.medium.acts.clear();
    let (old, before) = (gpt.table().clone(), gpt.medium.clone());
    change(&mut gpt);
    let (new, acts) = (gpt.table().clone(), gpt.medium.acts.clone());
    let (mut olds, mut news) = (0, 0);
    let count = cuts(&before, &acts, &mut |disk| {
        let found = inspect(disk).unwrap();
        match found.condition() {
            Condition::Sound | Condition::Grown => {}
            Condition::Damaged(damages) => {
                assert_eq!(damages.len(), 1, "{what}: {damages:?}");
                assert_eq!(Gpt::open(disk.clone(), &owner()).unwrap_err().kind(), Kind::Inconsistent);
            }
            other => panic!("{what}: {other:?}"),
        }
        let (repaired, _) = Gpt::repair(disk.clone(), &owner()).unwrap();
        let is = |table: &Table| {
            let now = repaired.table();
            (&now.header, &now.array) == (&table.header, &table.array)
        };
        assert!(is(&old) || is(&new), "{what}: neither the old nor the new table");
        if is(&old) {
            olds += 1;
        } else {
            news += 1;
        }
        let again = inspect(&repaired.into_medium()).unwrap();
        assert!(matches!(again.condition(), Condition::Sound | Condition::Grown), "{what}");
    });
    assert!(count > 8 && olds > 0 && news > 0, "{what}: {count} cuts, {olds} old, {news} new");
    gpt
}

#[test]
fn whatever_write_a_change_is_cut_at_one_copy_is_right() {
    for sector in [512, 4096] {
        let mut gpt = created(9, sector);
        for id in ["a", "b", "c"] {
            gpt = survives(gpt, "add", |gpt| drop(gpt.add(&volume(id), Bytes::mib(1), State::New).unwrap()));
        }
        gpt = survives(gpt, "remove", |gpt| drop(gpt.remove(number(2)).unwrap()));
        gpt = survives(gpt, "grow", |gpt| drop(gpt.grow(number(1), Bytes::mib(2)).unwrap()));
        gpt = survives(gpt, "set_state", |gpt| drop(gpt.set_state(number(3), State::Xfs).unwrap()));
        gpt.add(&volume("d"), Bytes::mib(1), State::Creating).unwrap();
    }
}

#[test]
fn whatever_write_the_move_to_the_new_end_is_cut_at_one_copy_is_right() {
    // By less than the copy's own length, by just that, and by far more.
    for (sector, by) in
        [(512, 512), (512, 4096), (512, 33 * 512), (512, 2 << 20), (4096, 4096), (4096, 2 << 20)]
    {
        let mut gpt = created(6, sector);
        gpt.add(&volume("a"), Bytes::mib(2), State::New).unwrap();
        let mut memory = gpt.into_medium();
        memory.grow((6 << 20) + by);
        let gpt = Gpt::open(memory, &owner()).unwrap();
        survives(gpt, "move", |gpt| gpt.use_grown_disk().unwrap());
    }
}

#[test]
fn a_table_that_is_cut_while_it_is_made_is_none_or_can_be_completed() {
    for sector in [512, 4096] {
        let before = Memory::new(6, sector);
        let made = Gpt::create(before.clone(), &owner()).unwrap();
        let mut blank = 0;
        cuts(&before, &made.medium.acts, &mut |disk| match inspect(disk).unwrap().condition() {
            Condition::Blank => blank += 1,
            Condition::Sound => {}
            Condition::Damaged(_) => {
                let (repaired, _) = Gpt::repair(disk.clone(), &owner()).unwrap();
                assert_eq!(repaired.into_medium(), made.medium);
            }
            other => panic!("{other:?}"),
        });
        assert!(blank > 0);
    }
}

#[test]
fn a_repair_that_is_cut_is_repaired_again() {
    let mut gpt = created(6, 512);
    gpt.add(&volume("a"), Bytes::mib(2), State::New).unwrap();
    let good = gpt.into_medium();
    for (at, length) in [(512, 512), (1024, 512), (0, 1024), ((6 << 20) - 512, 512), ((6 << 20) - 16896, 512)]
    {
        let mut broken = good.clone();
        broken.bytes_mut(at, length).fill(0);
        broken.acts.clear();
        let (mended, _) = Gpt::repair(broken.clone(), &owner()).unwrap();
        cuts(&broken, &mended.medium.acts, &mut |disk| {
            let (again, _) = Gpt::repair(disk.clone(), &owner()).unwrap();
            assert_eq!(again.into_medium(), good);
        });
    }
}

/// The test must be able to fail: with the flush between the two copies left out, some cut leaves none.
#[test]
fn without_the_flush_between_the_copies_a_cut_can_lose_both() {
    let mut gpt = created(6, 512);
    gpt.medium.acts.clear();
    let before = gpt.medium.clone();
    gpt.add(&volume("a"), Bytes::mib(1), State::New).unwrap();
    let acts: Vec<_> = gpt.medium.acts.iter().filter(|act| **act != Act::Flush).cloned().collect();
    let mut lost = 0;
    cuts(&before, &acts, &mut |disk| {
        lost += usize::from(*inspect(disk).unwrap().condition() == Condition::Destroyed);
    });
    assert!(lost > 0);
}
