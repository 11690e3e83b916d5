//! What a cache was good for.

use crate::attribute::Attributes;
use crate::{Approximate, Backing, CacheSet, Error, Percent};

/// Over which time is counted. The kernel lets the shorter ones fade rather than cut them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// Since registration, or since they were cleared.
    Total,
    /// The last day.
    Day,
    /// The last hour.
    Hour,
    /// The last five minutes.
    FiveMinutes,
}

/// Counts of reads and writes: each of a whole request, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Reads and writes that the cache had.
    pub hits: u64,
    /// Those that it had not.
    pub misses: u64,
    /// Those that were to go past the cache, and that it had.
    pub bypass_hits: u64,
    /// Those that went past the cache.
    pub bypass_misses: u64,
    /// Reads whose blocks were written while they were fetched, and so were not cached.
    pub miss_collisions: u64,
    /// The share of hits among hits and misses.
    pub hit_ratio: Percent,
    /// How much went past the cache.
    pub bypassed: Approximate,
}

impl Window {
    const fn dir(self) -> &'static str {
        match self {
            Self::Total => "stats_total",
            Self::Day => "stats_day",
            Self::Hour => "stats_hour",
            Self::FiveMinutes => "stats_five_minute",
        }
    }
}

impl Backing {
    /// What the cache was good for to this device.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it is not registered any more, [`Kind::Io`](crate::Kind::Io).
    pub fn statistics(&self, window: Window) -> Result<Statistics, Error> {
        read(&self.attributes()?, window)
    }

    /// Begins to count anew.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it is not registered any more, [`Kind::Io`](crate::Kind::Io).
    pub fn clear_statistics(&self) -> Result<(), Error> {
        self.attributes()?.write("clear_stats", "1")
    }
}

impl CacheSet {
    /// What the cache was good for to all its backing devices.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it is not registered any more, [`Kind::Io`](crate::Kind::Io).
    pub fn statistics(&self, window: Window) -> Result<Statistics, Error> {
        read(&self.attributes(), window)
    }
}

fn read(attributes: &Attributes, window: Window) -> Result<Statistics, Error> {
    let attributes = Attributes::new(attributes.dir().join(window.dir()));
    let count = |name| attributes.value(name);
    Ok(Statistics {
        hits: count("cache_hits")?,
        misses: count("cache_misses")?,
        bypass_hits: count("cache_bypass_hits")?,
        bypass_misses: count("cache_bypass_misses")?,
        miss_collisions: count("cache_miss_collisions")?,
        hit_ratio: attributes.value("cache_hit_ratio")?,
        bypassed: attributes.size("bypassed")?,
    })
}
