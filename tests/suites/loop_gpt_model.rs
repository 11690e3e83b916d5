//! Partition tables against a model, on disks in memory: no root and no device is needed.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::collections::BTreeMap;
use std::io;

use devices::gpt::{Condition, Gpt, Medium, Owner, PartitionNumber, State, VolumeId, inspect};
use devices::{Bytes, Kind};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rig::{skip_unless_installed, tool};

const MIB: u64 = 1 << 20;

#[derive(Clone)]
struct Memory {
    sector: u64,
    image: Vec<u8>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.image.len())
    }
}

impl Medium for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn sector(&self) -> Bytes {
        Bytes::new(self.sector)
    }

    fn size(&self) -> Bytes {
        Bytes::new(self.image.len() as u64)
    }

    fn read_at(&self, at: Bytes, into: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(at.get()).unwrap();
        into.copy_from_slice(&self.image[at..at + into.len()]);
        Ok(())
    }

    fn write_at(&mut self, at: Bytes, from: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at.get()).unwrap();
        self.image[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One step. Which volume, partition and size are meant is taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Add { volume: u8, kib: u64 },
    Grow { volume: u8, kib: u64 },
    Remove { volume: u8 },
    Reopen,
    Enlarge { mib: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly small, so that many partitions lie beside each other; now and then absurd.
    let kib =
        || prop_oneof![8 => 0..5 * 1024_u64, 1 => 0..40 * 1024_u64, 1 => (u64::MAX >> 12)..(u64::MAX >> 10)];
    prop_oneof![
        5 => (0..12_u8, kib()).prop_map(|(volume, kib)| Step::Add { volume, kib }),
        3 => (0..12_u8, kib()).prop_map(|(volume, kib)| Step::Grow { volume, kib }),
        3 => (0..12_u8).prop_map(|volume| Step::Remove { volume }),
        1 => Just(Step::Reopen),
        1 => (0..4_u64).prop_map(|mib| Step::Enlarge { mib }),
    ]
}

/// What the table should be, counted in mebibytes: who has which, and under which number.
struct Model {
    mebibytes: Vec<Option<u8>>,
    numbers: BTreeMap<u8, u32>,
}

impl Model {
    /// The first mebibyte and the last hold the table's copies.
    fn new(mib: u64) -> Self {
        Self { mebibytes: vec![None; usize::try_from(mib - 2).unwrap()], numbers: BTreeMap::new() }
    }

    /// The runs of free mebibytes: first and length.
    fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (at, _) in self.mebibytes.iter().enumerate().filter(|(_, owner)| owner.is_none()) {
            match runs.last_mut() {
                Some((first, length)) if *first + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }

    fn place(&self, volume: u8) -> Option<(usize, usize)> {
        let first = self.mebibytes.iter().position(|owner| *owner == Some(volume))?;
        Some((first, self.mebibytes.iter().filter(|owner| **owner == Some(volume)).count()))
    }

    fn add(&mut self, volume: u8, mib: u64) -> Result<(), Kind> {
        if self.numbers.contains_key(&volume) {
            return Err(Kind::AlreadyExists);
        }
        let wanted = usize::try_from(mib).unwrap_or(usize::MAX);
        let fits = self.runs().into_iter().filter(|(_, length)| *length >= wanted);
        let (first, _) = fits.min_by_key(|(first, length)| (*length, *first)).ok_or(Kind::NoSpace)?;
        if wanted == 0 {
            return Err(Kind::NoSpace);
        }
        self.mebibytes[first..first + wanted].fill(Some(volume));
        let number = (1..).find(|number| !self.numbers.values().any(|used| used == number)).unwrap();
        self.numbers.insert(volume, number);
        Ok(())
    }

    fn grow(&mut self, volume: u8, mib: u64) -> Result<(), Kind> {
        let (first, length) = self.place(volume).unwrap();
        let wanted = usize::try_from(mib).unwrap_or(usize::MAX);
        let behind = self.mebibytes[first + length..].iter().take_while(|owner| owner.is_none()).count();
        if wanted > length + behind {
            return Err(Kind::NoSpace);
        }
        self.mebibytes[first..first + wanted.max(length)].fill(Some(volume));
        Ok(())
    }

    fn remove(&mut self, volume: u8) {
        self.mebibytes.iter_mut().filter(|owner| **owner == Some(volume)).for_each(|owner| *owner = None);
        self.numbers.remove(&volume);
    }
}

struct World {
    owner: Owner,
    gpt: Option<Gpt<Memory>>,
    model: Model,
}

fn id(volume: u8) -> VolumeId {
    // Ids of all three kinds: one that is a name, one that is shortened, one that is hashed.
    match volume % 3 {
        0 => format!("volume-{volume}"),
        1 => format!("pvc-00000000-0000-4000-8000-0000000000{volume:02}"),
        _ => format!("{}-{volume}", "long".repeat(12)),
    }
    .parse()
    .unwrap()
}

impl World {
    fn new(mib: u64, sector: u64) -> Self {
        let owner: Owner = "a-model".parse().unwrap();
        let image = vec![0; usize::try_from(mib * MIB).unwrap()];
        let gpt = Gpt::create(Memory { sector, image }, &owner).unwrap();
        Self { owner, gpt: Some(gpt), model: Model::new(mib) }
    }

    fn number(&self, volume: u8) -> PartitionNumber {
        PartitionNumber::new(self.model.numbers.get(&volume).copied().unwrap_or(99)).unwrap()
    }

    fn take(&mut self, step: &Step) {
        let mut gpt = self.gpt.take().unwrap();
        match *step {
            Step::Add { volume, kib } => {
                let size = Bytes::kib(kib);
                let said = gpt.add(&id(volume), size, State::New).map(drop).map_err(|error| error.kind());
                assert_eq!(said, self.model.add(volume, size.get().div_ceil(MIB)), "{step:?}");
            }
            Step::Grow { volume, kib } => {
                let size = Bytes::kib(kib);
                let said = gpt.grow(self.number(volume), size).map(drop).map_err(|error| error.kind());
                let should = match self.model.numbers.contains_key(&volume) {
                    true => self.model.grow(volume, size.get().div_ceil(MIB)),
                    false => Err(Kind::NotFound),
                };
                assert_eq!(said, should, "{step:?}");
            }
            Step::Remove { volume } => {
                let said = gpt.remove(self.number(volume)).map(drop).map_err(|error| error.kind());
                let should = self.model.numbers.contains_key(&volume).then_some(()).ok_or(Kind::NotFound);
                assert_eq!(said, should, "{step:?}");
                self.model.remove(volume);
            }
            Step::Reopen => gpt = Gpt::open(gpt.into_medium(), &self.owner).unwrap(),
            Step::Enlarge { mib } => {
                let mut memory = gpt.into_medium();
                let more = usize::try_from(mib).unwrap();
                memory.image.resize(memory.image.len() + (more << 20), 0);
                gpt = Gpt::open(memory, &self.owner).unwrap();
                gpt.use_grown_disk().unwrap();
                self.model.mebibytes.extend(vec![None; more]);
            }
        }
        self.check(&gpt);
        self.gpt = Some(gpt);
    }

    /// The disk, and not only the memory of it, holds just what the model says.
    fn check(&self, gpt: &Gpt<Memory>) {
        let found = inspect(gpt.medium()).unwrap();
        assert_eq!(*found.condition(), Condition::Sound);
        let table = found.table().unwrap();
        assert_eq!(table, gpt.table());
        let partitions = table.partitions();
        assert_eq!(partitions.len(), self.model.numbers.len());
        for (volume, number) in &self.model.numbers {
            let partition = table.find(&self.owner, &id(*volume)).unwrap();
            let (first, length) = self.model.place(*volume).unwrap();
            let should = (*number, (first as u64 + 1) * MIB, length as u64 * MIB);
            assert_eq!((partition.number.get(), partition.start.get(), partition.size.get()), should);
        }
        for (at, one) in partitions.iter().enumerate() {
            for other in &partitions[at + 1..] {
                let apart = one.start.get() + one.size.get() <= other.start.get()
                    || other.start.get() + other.size.get() <= one.start.get();
                assert!(apart, "{one:?} and {other:?} overlap");
            }
        }
        let runs = self.model.runs();
        let largest = runs.iter().map(|(_, length)| *length).max().unwrap_or(0) as u64;
        let free = runs.iter().map(|(_, length)| *length).sum::<usize>() as u64;
        assert_eq!((table.largest(), table.free()), (Bytes::mib(largest), Bytes::mib(free)));
    }
}

fn sequence() -> impl Strategy<Value = (u64, u64, Vec<Step>)> {
    let sector = prop_oneof![Just(512_u64), Just(4096)];
    (3..20_u64, sector, prop::collection::vec(step(), 1..24))
}

fn play(mib: u64, sector: u64, steps: &[Step]) -> World {
    let mut world = World::new(mib, sector);
    for step in steps {
        world.take(step);
    }
    world
}

mod minutes_10 {
    use super::*;

    proptest! {
        #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn ten_thousand_random_sequences_of_changes_end_as_the_model_says((mib, sector, steps) in sequence()) {
            play(mib, sector, &steps);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 60, failure_persistence: None, ..Config::default() })]

    #[test]
    fn sgdisk_verifies_what_random_sequences_left((mib, _, steps) in sequence()) {
        if skip_unless_installed(&["sgdisk"]) {
            return Ok(());
        }
        let world = play(mib, 512, &steps);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &world.gpt.unwrap().into_medium().image).unwrap();
        let path = file.path().to_str().unwrap();
        let said = tool::run("sgdisk", ["--verify", path]).unwrap();
        prop_assert!(said.contains("No problems found"), "{}", said);
        let listed = tool::run("sgdisk", ["--print", path]).unwrap();
        let lines = listed.lines().skip_while(|line| !line.starts_with("Number")).skip(1).count();
        prop_assert_eq!(lines, world.model.numbers.len(), "{}", listed);
    }
}
