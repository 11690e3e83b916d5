//! Data that can be recognised again, sector by sector, and the record of what was acknowledged.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::random::Random;

/// The unit that is written.
pub const BLOCK: usize = 4096;
const SECTOR: usize = 512;
/// Words of a sector before its filling: magic, area, block, sector, generation.
const HEAD: usize = 5;
const MAGIC: u64 = u64::from_le_bytes(*b"GABIONBL");
/// How the marks of acknowledgements begin.
const ACKNOWLEDGED: &str = "ack:";

/// Numbered blocks on a device or in a file. Each sector of a block carries the block's number, its generation and
/// bytes that follow from both, so that a torn, misplaced or outdated sector is seen.
#[derive(Debug)]
pub struct Blocks {
    area: u64,
    file: File,
    /// The generation that each block has reached; 0 was never written.
    generations: Vec<u64>,
    unconfirmed: Vec<usize>,
}

impl Blocks {
    /// So many blocks at the beginning of a device or a file that exists, none of them written yet. The number of the
    /// area tells the blocks of one volume from those of another one.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn on(path: &Path, area: u64, count: usize) -> Result<Self> {
        let file = File::options().write(true).open(path);
        let file = file.with_context(|| format!("open {}", path.display()))?;
        Ok(Self { area, file, generations: vec![0; count], unconfirmed: Vec::new() })
    }

    /// The same on blocks that an earlier run has written: each goes on from the generation that it holds.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or hold anything else.
    pub fn found_on(path: &Path, area: u64, count: usize) -> Result<Self> {
        let bytes = read_blocks(path, count)?;
        let mut blocks = Self::on(path, area, count)?;
        for (number, found) in bytes.chunks(SECTOR).enumerate() {
            let (block, sector) = (number / (BLOCK / SECTOR), number % (BLOCK / SECTOR));
            let reached = generation(found, area, block, sector).with_context(|| format!("block {block}"))?;
            blocks.generations[block] = blocks.generations[block].max(reached);
        }
        Ok(blocks)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.generations.len()
    }

    /// Writes the next generation of a block, into the page cache.
    ///
    /// # Errors
    ///
    /// If the device refuses.
    pub fn write(&mut self, block: usize) -> Result<()> {
        let generation = self.generations.get(block).context("no such block")? + 1;
        let bytes: Vec<u8> =
            (0..BLOCK / SECTOR).flat_map(|sector| content(self.area, block, sector, generation)).collect();
        self.file.write_all_at(&bytes, (block * BLOCK) as u64)?;
        self.generations[block] = generation;
        self.unconfirmed.push(block);
        Ok(())
    }

    /// Syncs, and gives the text of the mark that says what is acknowledged with that.
    ///
    /// # Errors
    ///
    /// If the device refuses.
    pub fn sync(&mut self) -> Result<String> {
        self.file.sync_data()?;
        let mut text = format!("{ACKNOWLEDGED}{}", self.area);
        self.unconfirmed.sort_unstable();
        self.unconfirmed.dedup();
        for block in self.unconfirmed.drain(..) {
            text += &format!(":{block}={}", self.generations[block]);
        }
        Ok(text)
    }

    /// Writes some blocks and syncs; the mark's text.
    ///
    /// # Errors
    ///
    /// If the device refuses.
    pub fn write_some(&mut self, random: &mut Random, count: usize) -> Result<String> {
        for _ in 0..count {
            let block = usize::try_from(random.below(self.generations.len() as u64))?;
            self.write(block)?;
        }
        self.sync()
    }
}

/// One sector of a block.
fn content(area: u64, block: usize, sector: usize, generation: u64) -> Vec<u8> {
    let head = [MAGIC, area, block as u64, sector as u64, generation];
    let seed =
        head.iter().fold(0, |seed: u64, word| seed.rotate_left(13) ^ word.wrapping_mul(0x0100_0000_01b3));
    let mut random = Random::new(seed);
    let filling = (HEAD..SECTOR / 8).map(|_| random.number());
    head.into_iter().chain(filling).flat_map(u64::to_le_bytes).collect()
}

/// What was acknowledged before a point: the generation of each block of each area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged(BTreeMap<(u64, usize), u64>);

impl Acknowledged {
    /// From the marks of a replay; other marks are passed over.
    ///
    /// # Errors
    ///
    /// If an acknowledgement has not the form that [`Blocks::sync`] gives it.
    pub fn of(marks: &[String]) -> Result<Self> {
        let mut known = Self::default();
        marks.iter().try_for_each(|mark| known.add(mark))?;
        Ok(known)
    }

    /// Adds what one mark says.
    ///
    /// # Errors
    ///
    /// As [`Acknowledged::of`].
    pub fn add(&mut self, mark: &str) -> Result<()> {
        let Some(text) = mark.strip_prefix(ACKNOWLEDGED) else { return Ok(()) };
        let mut parts = text.split(':');
        let area = parts.next().context("no area")?.parse().with_context(|| mark.to_owned())?;
        for part in parts {
            let (block, generation) = part.split_once('=').with_context(|| mark.to_owned())?;
            self.0.insert((area, block.parse()?), generation.parse()?);
        }
        Ok(())
    }

    /// How many blocks of an area were acknowledged.
    #[must_use]
    pub fn blocks(&self, area: u64) -> usize {
        self.0.range((area, 0)..=(area, usize::MAX)).count()
    }

    /// Fails unless each sector of an area's blocks, given whole, holds the acknowledged generation or a newer one, and none that
    /// was never acknowledged holds anything but zeroes or a block of its own.
    ///
    /// # Errors
    ///
    /// If a sector is lost, outdated, misplaced or damaged, or cannot be read.
    pub fn check(&self, area: u64, bytes: &[u8]) -> Result<()> {
        bytes.chunks(BLOCK).enumerate().try_for_each(|(block, found)| self.check_block(area, block, found))
    }

    /// The same for one block.
    ///
    /// # Errors
    ///
    /// As [`Acknowledged::check`].
    pub fn check_block(&self, area: u64, block: usize, bytes: &[u8]) -> Result<()> {
        let acknowledged = self.generation(area, block);
        for (sector, found) in bytes.chunks(SECTOR).enumerate() {
            let place = || format!("area {area}, block {block}, sector {sector}");
            let found = generation(found, area, block, sector).with_context(place)?;
            ensure!(
                found >= acknowledged,
                "{}: generation {found}, and {acknowledged} was acknowledged",
                place()
            );
        }
        Ok(())
    }

    /// Fails unless each block of an area is exactly as acknowledged: for a snapshot, which nothing changes.
    ///
    /// # Errors
    ///
    /// As [`Acknowledged::check`], and if a block is newer.
    pub fn check_exactly(&self, area: u64, bytes: &[u8]) -> Result<()> {
        self.check(area, bytes)?;
        for (block, found) in bytes.chunks(BLOCK).enumerate() {
            let acknowledged = self.generation(area, block);
            let found = generation(found.get(..SECTOR).unwrap_or_default(), area, block, 0)?;
            ensure!(found == acknowledged, "block {block}: generation {found}, and not {acknowledged}");
        }
        Ok(())
    }

    fn generation(&self, area: u64, block: usize) -> u64 {
        self.0.get(&(area, block)).copied().unwrap_or(0)
    }
}

/// The first blocks of a device, for [`Acknowledged::check`].
///
/// # Errors
///
/// If it cannot be read.
pub fn read_blocks(path: &Path, count: usize) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut bytes = vec![0; count * BLOCK];
    file.read_exact_at(&mut bytes, 0).with_context(|| format!("read {}", path.display()))?;
    Ok(bytes)
}

/// The generation that a sector holds; 0 if it is full of zeroes.
fn generation(found: &[u8], area: u64, block: usize, sector: usize) -> Result<u64> {
    if found.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    let at = (HEAD - 1) * 8;
    let generation = u64::from_le_bytes(found.get(at..at + 8).context("too short")?.try_into()?);
    let beginning = || found.iter().take(HEAD * 8).map(|byte| format!("{byte:02x}")).collect::<String>();
    ensure!(found == content(area, block, sector, generation), "it holds something else: {}", beginning());
    Ok(generation)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn some_blocks() -> (tempfile::TempDir, std::path::PathBuf, Blocks) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("blocks");
        File::create(&path).unwrap().set_len(8 * BLOCK as u64).unwrap();
        let blocks = Blocks::on(&path, 7, 8).unwrap();
        (dir, path, blocks)
    }

    #[test]
    fn what_was_acknowledged_is_found_and_newer_content_is_no_fault() {
        let (_dir, path, mut blocks) = some_blocks();
        blocks.write(3).unwrap();
        blocks.write(3).unwrap();
        let mark = blocks.sync().unwrap();
        assert_eq!(mark, "ack:7:3=2");
        let known = Acknowledged::of(&[mark, "other".into()]).unwrap();
        let found = read_blocks(&path, 8).unwrap();
        known.check(7, &found).unwrap();
        known.check_exactly(7, &found).unwrap();
        blocks.write(3).unwrap();
        let newer = read_blocks(&path, 8).unwrap();
        known.check(7, &newer).unwrap();
        assert!(known.check_exactly(7, &newer).is_err());
    }

    #[test]
    fn a_later_run_goes_on_from_what_the_blocks_hold() {
        let (_dir, path, mut blocks) = some_blocks();
        blocks.write(3).unwrap();
        blocks.write(3).unwrap();
        blocks.write(5).unwrap();
        let mut found = Blocks::found_on(&path, 7, 8).unwrap();
        assert_eq!(found.generations, blocks.generations);
        found.write(3).unwrap();
        assert_eq!(found.sync().unwrap(), "ack:7:3=3");
        assert!(Blocks::found_on(&path, 6, 8).is_err(), "of another area");
    }

    #[test]
    fn lost_torn_misplaced_and_damaged_sectors_are_found() {
        let (_dir, path, mut blocks) = some_blocks();
        blocks.write(0).unwrap();
        let old = fs::read(&path).unwrap();
        blocks.write(0).unwrap();
        let known = Acknowledged::of(&[blocks.sync().unwrap()]).unwrap();
        let new = fs::read(&path).unwrap();
        let check = |bytes: &[u8]| known.check(7, bytes);
        check(&new).unwrap();
        assert!(check(&old).is_err(), "lost");
        let mut torn = new.clone();
        torn[512..1024].copy_from_slice(&old[512..1024]);
        assert!(check(&torn).is_err(), "torn");
        let mut misplaced = new.clone();
        misplaced.copy_within(..BLOCK, BLOCK);
        assert!(check(&misplaced).is_err(), "misplaced");
        let mut damaged = new;
        damaged[600] ^= 1;
        assert!(check(&damaged).is_err(), "damaged");
    }
}
