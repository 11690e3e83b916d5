//! The superblock (`struct thin_disk_superblock`).

use std::thread;
use std::time::Duration;

use devices::{Bytes, Sectors};

use super::block::{Block, Source, checked, u32_at, u64_at};
use super::fault::Fault;
use crate::dm::Fill;
use crate::{Error, Kind};

const MAGIC: u64 = 27_022_010;
/// Mixed into the checksum of superblocks.
pub(super) const SALT: u32 = 160_774;
/// `struct disk_device_details`.
pub(super) const DETAILS_SIZE: usize = 24;
/// The pool may be writing just this block.
const TRIES: u32 = 5;

/// The used parts of a superblock.
#[derive(Clone, Debug)]
pub(super) struct Superblock {
    pub(super) needs_check: bool,
    pub(super) version: u32,
    pub(super) time: u32,
    pub(super) transaction_id: u64,
    pub(super) held_root: u64,
    pub(super) data: Fill,
    pub(super) metadata: Fill,
    pub(super) mappings_root: u64,
    pub(super) details_root: u64,
    pub(super) chunk: Bytes,
    pub(super) incompatible: u32,
}

impl Superblock {
    /// Reads the superblock in block `number`, again if it is damaged.
    pub(super) fn read(source: &impl Source, number: u64) -> Result<Self, Fault> {
        let mut tries = 1;
        loop {
            match Self::read_once(source, number) {
                Err(Fault::Damaged { .. }) if tries < TRIES && number == 0 && source.blocks() > 0 => {
                    thread::sleep(Duration::from_millis(1));
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    fn read_once(source: &impl Source, number: u64) -> Result<Self, Fault> {
        let block = checked(source, number, SALT)?;
        let damaged = |what| Fault::Damaged { block: number, what };
        if u64_at(&block, 32) != MAGIC {
            return Err(damaged("it is no superblock"));
        }
        let chunk = Sectors::new(u32_at(&block, 336).into());
        let chunk = chunk.to_bytes().filter(|chunk| *chunk != Bytes::ZERO);
        Ok(Self {
            needs_check: u32_at(&block, 4) & 1 != 0,
            version: u32_at(&block, 40),
            time: u32_at(&block, 44),
            transaction_id: u64_at(&block, 48),
            held_root: u64_at(&block, 56),
            data: fill(&block, 64),
            metadata: fill(&block, 192),
            mappings_root: u64_at(&block, 320),
            details_root: u64_at(&block, 328),
            chunk: chunk.ok_or(damaged("its chunks are empty"))?,
            incompatible: u32_at(&block, 360),
        })
    }

    /// Refuses what this reader does not know.
    pub(super) fn supported(&self, tried: &str) -> Result<(), Error> {
        let answer = match (self.version, self.incompatible) {
            (1 | 2, 0) => return Ok(()),
            (1 | 2, features) => format!("it has the unknown incompatible features {features:#x}"),
            (version, _) => format!("it has version {version}; versions 1 and 2 are known"),
        };
        Err(Error::new(Kind::Unsupported, tried).with_answer(answer))
    }
}

/// The start of a space map's root (`struct disk_sm_root`): blocks in all, blocks in use.
fn fill(block: &Block, at: usize) -> Fill {
    Fill::new(u64_at(block, at + 8), u64_at(block, at))
}
