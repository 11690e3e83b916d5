//! Chance that can be repeated.

/// Numbers that follow from a seed (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero; seeds that are near to each other must not give numbers that are.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The seed of this run: `GABION_SEED`, or the time. It is printed.
    #[must_use]
    pub fn seed() -> u64 {
        let given = std::env::var("GABION_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            u64::from(now.subsec_nanos()) << 32 ^ now.as_secs()
        });
        println!("the seed is {seed}; GABION_SEED={seed} repeats it");
        seed
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.number() >> 11).checked_rem(limit).unwrap_or(0)
    }
}
