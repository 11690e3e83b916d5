//! The suites that are still to run, for machines side by side.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::case::Case;

/// Suites in their order. A suite stays together, so that what one of its tests leaves behind meets its neighbours.
#[derive(Debug)]
pub struct Queue(Mutex<VecDeque<Vec<Case>>>);

/// From which end a machine takes its suites: two machines then meet as late as can be, and each runs nearly the same
/// suites in the same order every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The first that is left.
    Front,
    /// The last that is left.
    Back,
}

impl Queue {
    /// Takes the tests suite by suite, as they come.
    #[must_use]
    pub fn new(cases: &[Case]) -> Self {
        Queue(Mutex::new(cases.chunk_by(|a, b| a.suite == b.suite).map(<[Case]>::to_vec).collect()))
    }

    /// The tests of one more suite, which are nobody else's then.
    #[must_use]
    pub fn take(&self, end: End) -> Option<Vec<Case>> {
        match end {
            End::Front => self.suites().pop_front(),
            End::Back => self.suites().pop_back(),
        }
    }

    /// How many suites nobody has taken.
    #[must_use]
    pub fn left(&self) -> usize {
        self.suites().len()
    }

    /// Nothing panics while it holds the suites, so a poisoned lock cannot hold half a change.
    fn suites(&self) -> MutexGuard<'_, VecDeque<Vec<Case>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tier::Tier;
    use super::*;

    fn case(suite: &str, name: &str) -> Case {
        Case { tier: Tier::System, suite: suite.to_owned(), program: suite.into(), name: name.to_owned() }
    }

    #[test]
    fn each_suite_is_taken_once_and_whole_from_either_end() {
        let cases = [case("a", "1"), case("a", "2"), case("b", "1"), case("c", "1"), case("c", "2")];
        let queue = Queue::new(&cases);
        assert_eq!(queue.left(), 3);
        assert_eq!(queue.take(End::Back).unwrap(), cases[3..]);
        assert_eq!(queue.take(End::Front).unwrap(), cases[..2]);
        assert_eq!(queue.take(End::Back).unwrap(), cases[2..3]);
        assert_eq!((queue.take(End::Front), queue.take(End::Back)), (None, None));
    }
}
