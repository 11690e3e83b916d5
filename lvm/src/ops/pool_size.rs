//! How large the chunks and the metadata of a thin pool are to be.

use devices::{Bytes, Sectors};

use crate::{Error, Kind};

/// Smallest chunk, and what chunks are multiples of (`DM_THIN_MIN_DATA_BLOCK_SIZE`).
const CHUNK_MIN: Bytes = Bytes::kib(64);
/// Largest chunk (`DM_THIN_MAX_DATA_BLOCK_SIZE`).
const CHUNK_MAX: Bytes = Bytes::gib(1);
/// Smallest metadata volume that LVM makes.
const METADATA_MIN: Bytes = Bytes::mib(2);
/// What a new pool gets at least: growing works, but only before the metadata are full.
const METADATA_FLOOR: Bytes = Bytes::mib(4);
/// Largest metadata volume that the kernel uses: 255 bitmaps of 16,320 blocks of 4 KiB, less LVM's cropping.
const METADATA_MAX: Bytes = Bytes::mib(15_811);
/// What chunks are doubled for: above this, larger chunks are the better price.
const METADATA_AIM: Bytes = Bytes::gib(1);
/// Metadata for one mapping: LVM's own estimate for a chunk that is mapped once.
const BYTES_PER_CHUNK: u64 = 64;

/// The chunk size for a pool of that size: as asked, or the smallest power of two from 64 KiB on with which the
/// metadata of the fully mapped pool are not above 1 GiB (so 64 KiB up to 1 TiB).
pub(crate) fn chunk(pool: Bytes, asked: Option<Bytes>, tried: &str) -> Result<Sectors, Error> {
    let chunk = match asked {
        Some(chunk) => {
            if chunk < CHUNK_MIN || chunk > CHUNK_MAX || !chunk.get().is_multiple_of(CHUNK_MIN.get()) {
                return Err(Error::new(Kind::InvalidArgument, tried).with_answer(format!(
                    "a chunk size of {chunk} was asked for; it is a multiple of {CHUNK_MIN} up to {CHUNK_MAX}"
                )));
            }
            chunk
        }
        None => {
            let mut chunk = CHUNK_MIN.get();
            while mappings(pool, Bytes::new(chunk)) > METADATA_AIM.get() && chunk < CHUNK_MAX.get() {
                chunk *= 2;
            }
            Bytes::new(chunk)
        }
    };
    if chunk > pool {
        return Err(Error::new(Kind::InvalidArgument, tried)
            .with_answer(format!("a pool of {pool} does not hold one chunk of {chunk}")));
    }
    super::size::check(chunk, tried)
}

/// The metadata size for a pool: as asked, or 64 bytes for each chunk and at least 4 MiB, before rounding to extents.
pub(crate) fn metadata(
    pool: Bytes,
    chunk: Sectors,
    asked: Option<Bytes>,
    tried: &str,
) -> Result<Bytes, Error> {
    match asked {
        Some(size) => {
            super::size::check(size, tried)?;
            if size < METADATA_MIN || size > METADATA_MAX {
                return Err(Error::new(Kind::InvalidArgument, tried).with_answer(format!(
                    "pool metadata of {size} were asked for; they are {METADATA_MIN} to {METADATA_MAX}"
                )));
            }
            Ok(size)
        }
        None => {
            let chunk = chunk.to_bytes().unwrap_or(CHUNK_MAX);
            Ok(Bytes::new(mappings(pool, chunk).next_multiple_of(Sectors::SIZE))
                .clamp(METADATA_FLOOR, METADATA_MAX))
        }
    }
}

fn mappings(pool: Bytes, chunk: Bytes) -> u64 {
    pool.get().div_ceil(chunk.get().max(1)).saturating_mul(BYTES_PER_CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_small_until_their_mappings_are_many() {
        let chunk = |pool| chunk(pool, None, "t").unwrap().to_bytes().unwrap();
        assert_eq!(chunk(Bytes::mib(64)), Bytes::kib(64));
        assert_eq!(chunk(Bytes::gib(1024)), Bytes::kib(64));
        assert_eq!(chunk(Bytes::gib(1025)), Bytes::kib(128));
        assert_eq!(chunk(Bytes::gib(16 * 1024)), Bytes::mib(1));
    }

    #[test]
    fn chunks_that_no_pool_can_have() {
        for (pool, asked) in [
            (Bytes::gib(1), Bytes::kib(32)),
            (Bytes::gib(1), Bytes::kib(65)),
            (Bytes::gib(9), Bytes::gib(2)),
            (Bytes::gib(1), Bytes::ZERO),
            (Bytes::mib(4), Bytes::mib(8)),
        ] {
            let error = chunk(pool, Some(asked), "create pool v/p").unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{pool} {asked}");
        }
    }

    #[test]
    fn metadata_hold_every_chunk_once() {
        let metadata = |pool, asked| {
            let chunk = chunk(pool, None, "t").unwrap();
            metadata(pool, chunk, asked, "t").map_err(|error| error.kind())
        };
        assert_eq!(metadata(Bytes::mib(64), None), Ok(Bytes::mib(4)));
        assert_eq!(metadata(Bytes::gib(100), None), Ok(Bytes::mib(100)));
        assert_eq!(metadata(Bytes::gib(1024), None), Ok(Bytes::gib(1)));
        assert_eq!(metadata(Bytes::gib(100), Some(Bytes::mib(8))), Ok(Bytes::mib(8)));
        for bad in [Bytes::ZERO, Bytes::mib(1), Bytes::gib(16), Bytes::new(Bytes::mib(8).get() + 1)] {
            assert_eq!(metadata(Bytes::gib(100), Some(bad)), Err(Kind::InvalidArgument), "{bad}");
        }
    }
}
