//! Whether an operation changed anything.

/// What an operation did to reach the state that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a repeated operation is no error, but it did not change anything"]
pub enum Change<T = ()> {
    /// It changed something.
    Made(T),
    /// Everything was so already.
    Already(T),
}

impl<T> Change<T> {
    /// Whether something was changed.
    #[must_use]
    pub const fn is_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }

    /// What there is now.
    pub fn into_inner(self) -> T {
        match self {
            Self::Made(now) | Self::Already(now) => now,
        }
    }

    /// What there is now, by reference.
    #[must_use]
    pub const fn get(&self) -> &T {
        match self {
            Self::Made(now) | Self::Already(now) => now,
        }
    }
}
