//! Power cuts whose order of writes is real.
//!
//! Killing a virtual machine loses nothing that its kernel has written, so it never shows a missing flush. Here all disks
//! of a test are slices of one device whose writes dm-log-writes records. The recording is replayed into images, up to
//! each flush and each write with FUA; between two flushes any choice of the writes can be lost. Marks in the recording
//! tell what was acknowledged before each point.
//!
//! ```no_run
//! use devices::Bytes;
//! use rig::power_cut::{Acknowledged, Blocks, Random, Recorder, Replay, Stops, read_blocks};
//!
//! let recorder = Recorder::new(&[Bytes::mib(64)])?;
//! let mut blocks = Blocks::on(recorder.slice(0), 0, 100)?;
//! recorder.mark(&blocks.write_some(&mut Random::new(1), 10)?)?;
//! drop(blocks);
//! let mut replay = Replay::new(&recorder.finish()?, Stops::Durable)?;
//! while replay.next_point()?.is_some() {
//!     let found = read_blocks(replay.images().path(0), 100)?;
//!     Acknowledged::of(replay.marks())?.check(0, &found)?;
//! }
//! # Ok::<(), anyhow::Error>(())
//! ```

mod blocks;
mod cached;
mod frame;
mod group;
mod images;
mod log;
mod random;
mod record;
mod replay;

pub use blocks::{Acknowledged, BLOCK, Blocks, read_blocks};
pub use cached::OfflineBcache;
pub use group::{OfflineGroup, PoolMetadata};
pub use images::{Images, same_content};
pub use log::{Action, Durability, Entry, Log};
pub use random::Random;
pub use record::{Recorder, Recording, Slice};
pub use replay::{Point, Replay, Stops};
