//! The reader of thin metadata against the thin-provisioning tools: they write what it reads, and read what it
//! reads.

#![allow(clippy::unwrap_used)] // a test suite

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use lvm::Kind;
use lvm::thin_meta::{Change, Chunks, Device, Difference, MappedRange, Root, ThinId, ThinMetadata};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rig::{skip_unless_installed, tool};
use tempfile::TempDir;

/// Chunks in the pools of this suite.
const CHUNKS: u64 = 100_000;

/// Thin volumes by id, each a list of ranges in order.
type Pool = BTreeMap<u32, Vec<MappedRange>>;

/// Ranges with gaps between them, in runs and scattered, as a volume has them after a while.
fn ranges(most: usize) -> impl Strategy<Value = Vec<MappedRange>> {
    let one = (1..40_u64, 1..60_u64, 0..CHUNKS - 60, 0..4_u32);
    prop::collection::vec(one, 0..most).prop_map(|parts| {
        let mut begin = 0;
        let range = |(gap, len, data, time)| {
            begin += gap;
            let range = MappedRange {
                begin: Chunks::new(begin),
                data: Chunks::new(data),
                len: Chunks::new(len),
                time,
            };
            begin += len;
            range
        };
        parts.into_iter().map(range).collect()
    })
}

fn pools(most: usize) -> impl Strategy<Value = Pool> {
    prop::collection::btree_map(0..1_u32 << 24, ranges(most), 1..4)
}

/// Two volumes of which the second is the first with some ranges taken away, moved or added.
fn related() -> impl Strategy<Value = Pool> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, 0..CHUNKS - 60), 0..20);
    (ranges(400), edits).prop_map(|(left, edits)| {
        let mut right = left.clone();
        for (index, what, data) in edits {
            if right.is_empty() {
                break;
            }
            let at = index.index(right.len());
            match what {
                0 => drop(right.remove(at)),
                1 => right[at].data = Chunks::new(data),
                2 => right[at].time += 1,
                _ => right[at].len = Chunks::new(1),
            }
        }
        Pool::from([(1, left), (2, right)])
    })
}

fn xml(pool: &Pool) -> String {
    let mut text = format!(
        "<superblock uuid=\"\" time=\"9\" transaction=\"77\" version=\"2\" data_block_size=\"128\" nr_data_blocks=\"{CHUNKS}\">\n"
    );
    for (id, ranges) in pool {
        let mapped: u64 = ranges.iter().map(|range| range.len.get()).sum();
        writeln!(
            text,
            "<device dev_id=\"{id}\" mapped_blocks=\"{mapped}\" transaction=\"3\" creation_time=\"1\" snap_time=\"2\">"
        )
        .unwrap();
        for range in ranges {
            writeln!(
                text,
                "<range_mapping origin_begin=\"{}\" data_begin=\"{}\" length=\"{}\" time=\"{}\"/>",
                range.begin.get(),
                range.data.get(),
                range.len.get(),
                range.time
            )
            .unwrap();
        }
        text.push_str("</device>\n");
    }
    text.push_str("</superblock>\n");
    text
}

/// The metadata of `pool`, written by `thin_restore`.
fn restored(folder: &TempDir, pool: &Pool) -> std::path::PathBuf {
    let (input, image) = (folder.path().join("in.xml"), folder.path().join("metadata"));
    std::fs::write(&input, xml(pool)).unwrap();
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(16 << 20).unwrap();
    tool::run("thin_restore", ["-i".as_ref(), input.as_os_str(), "-o".as_ref(), image.as_os_str()]).unwrap();
    image
}

fn open(image: &Path) -> ThinMetadata<Device> {
    ThinMetadata::read(Device::open(image).unwrap(), Root::Current).unwrap()
}

fn id(number: u32) -> ThinId {
    ThinId::new(number).unwrap()
}

/// The attributes of one element, which the tools write one a line.
fn attributes(line: &str) -> BTreeMap<&str, u64> {
    let pairs = line.split(' ').filter_map(|word| word.split_once("=\""));
    pairs.filter_map(|(name, rest)| Some((name, rest.split('"').next()?.parse().ok()?))).collect()
}

/// What `thin_dump` says, in our terms.
fn dumped(image: &Path) -> Pool {
    let text = tool::run("thin_dump", [image]).unwrap();
    let mut pool = Pool::new();
    let mut current = 0;
    for line in text.lines().map(str::trim) {
        let of = attributes(line);
        let range = |begin: &str, len: u64| MappedRange {
            begin: Chunks::new(of[begin]),
            data: Chunks::new(*of.get("data_begin").or_else(|| of.get("data_block")).unwrap()),
            len: Chunks::new(len),
            time: u32::try_from(of["time"]).unwrap(),
        };
        if line.starts_with("<device") {
            current = u32::try_from(of["dev_id"]).unwrap();
            pool.insert(current, Vec::new());
        } else if line.starts_with("<range_mapping") {
            pool.get_mut(&current).unwrap().push(range("origin_begin", of["length"]));
        } else if line.starts_with("<single_mapping") {
            pool.get_mut(&current).unwrap().push(range("origin_block", 1));
        }
    }
    pool
}

/// What `thin_delta` says, without what is the same.
fn compared(image: &Path, left: u32, right: u32) -> Vec<Change> {
    let (left, right) = (left.to_string(), right.to_string());
    let arguments = ["--snap1", &left, "--snap2", &right, image.to_str().unwrap()];
    let text = tool::run("thin_delta", arguments).unwrap();
    let change = |line: &str| {
        let difference = match line.trim().split_once(' ')?.0 {
            "<different" => Difference::Differs,
            "<left_only" => Difference::LeftOnly,
            "<right_only" => Difference::RightOnly,
            _ => return None,
        };
        let of = attributes(line);
        Some(Change { begin: Chunks::new(of["begin"]), len: Chunks::new(of["length"]), difference })
    };
    text.lines().filter_map(change).collect()
}

fn check(cases: u32, pools: impl Strategy<Value = Pool>, test: impl Fn(&Pool, &Path)) {
    let mut runner =
        TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let result = runner.run(&pools, |pool| {
        let folder = tempfile::tempdir().unwrap();
        test(&pool, &restored(&folder, &pool));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn mapped_ranges_are_those_of_thin_dump() {
    if skip_unless_installed(&["thin_restore", "thin_dump"]) {
        return;
    }
    check(24, pools(600), |_, image| {
        let metadata = open(image);
        for (number, ranges) in dumped(image) {
            let read: Vec<_> = metadata.mapped(id(number)).unwrap().map(Result::unwrap).collect();
            assert_eq!(read, ranges, "thin volume {number}");
        }
    });
}

#[test]
fn changes_are_those_of_thin_delta() {
    if skip_unless_installed(&["thin_restore", "thin_delta"]) {
        return;
    }
    check(24, related(), |_, image| {
        let metadata = open(image);
        let read: Vec<_> = metadata.changes(id(1), id(2)).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, compared(image, 1, 2));
    });
}

#[test]
fn volumes_are_those_of_thin_ls() {
    if skip_unless_installed(&["thin_restore", "thin_ls"]) {
        return;
    }
    check(12, pools(50), |pool, image| {
        let metadata = open(image);
        let columns = "DEV,MAPPED_BLOCKS,TRANSACTION,CREATE_TIME,SNAP_TIME";
        let text = tool::run("thin_ls", ["--no-headers", "-o", columns, image.to_str().unwrap()]).unwrap();
        let listed: Vec<Vec<u64>> = text
            .lines()
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        let read: Vec<Vec<u64>> = metadata
            .devices()
            .map(Result::unwrap)
            .map(|thin| {
                let times = [thin.created.into(), thin.snapshotted.into()];
                [vec![thin.id.get().into(), thin.mapped.get(), thin.transaction_id], times.to_vec()].concat()
            })
            .collect();
        assert_eq!(read, listed);
        assert_eq!(read.len(), pool.len());
        assert_eq!((metadata.transaction_id(), metadata.time()), (77, 9));
        assert_eq!(metadata.data().total(), CHUNKS);
    });
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is_read() {
    if skip_unless_installed(&["thin_restore"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ranges = (0..2000).map(|index| MappedRange {
        begin: Chunks::new(index * 3),
        data: Chunks::new(index * 2),
        len: Chunks::new(1),
        time: 0,
    });
    let image = restored(&folder, &Pool::from([(5, ranges.collect())]));
    let sound = std::fs::read(&image).unwrap();
    let read = |bytes: Vec<u8>| {
        let metadata = ThinMetadata::read(lvm::thin_meta::Image(bytes), Root::Current)?;
        metadata.mapped(id(5))?.collect::<Result<Vec<_>, _>>()
    };
    let expected = read(sound.clone()).unwrap();
    assert_eq!(expected.len(), 2000);
    let mut found = 0;
    for block in 0..40 {
        let mut bytes = sound.clone();
        bytes[block * 4096 + 2048] ^= 1;
        match read(bytes) {
            Ok(ranges) => assert_eq!(ranges, expected, "block {block} is not part of this volume"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Inconsistent, "{error}");
                found += 1;
            }
        }
    }
    // The superblock, the two roots, and at least the sixteen leaves that 2,000 mappings need.
    assert!(found >= 18, "{found} of the damaged blocks were noticed");
}
