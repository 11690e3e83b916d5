//! Taking turns: every round runs each side once, in an order that alternates, so that a busy moment of the machine
//! falls on all of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

/// Rounds below which no median is worth anything.
const LEAST: usize = 3;
/// Rounds above which nothing more is learnt.
const MOST: usize = 200;

/// What one side took for one step.
pub(crate) type Sample = (&'static str, Duration);

/// One side: runs its steps once, or a quick one many times, and tells what each took.
pub(crate) type Side<'a> = Box<dyn FnMut() -> Result<Vec<Sample>> + 'a>;

/// All samples of one side, by step.
pub(crate) type Samples = BTreeMap<&'static str, Vec<Duration>>;

/// Runs all sides by turns until the budget is used up, after one round that does not count.
pub(crate) fn by_turns(budget: Duration, sides: &mut [Side<'_>]) -> Result<Vec<Samples>> {
    let mut all: Vec<Samples> = vec![Samples::new(); sides.len()];
    for side in sides.iter_mut() {
        side()?;
    }
    let end = Instant::now() + budget;
    for round in 0..MOST {
        if round >= LEAST && Instant::now() >= end {
            break;
        }
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            for (step, took) in sides[index]()? {
                all[index].entry(step).or_default().push(took);
            }
        }
    }
    Ok(all)
}

/// How long a step took.
pub(crate) fn timed<T>(step: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let start = Instant::now();
    step()?;
    Ok(start.elapsed())
}

/// Median and spread of some samples, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median_ns: u64,
    pub(crate) p10: u64,
    pub(crate) p90: u64,
    pub(crate) samples: usize,
}

impl Spread {
    pub(crate) fn of(samples: &[Duration]) -> Self {
        let mut sorted: Vec<u64> =
            samples.iter().map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)).collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let last = sorted.len().saturating_sub(1);
            sorted.get((last * percent + 50) / 100).copied().unwrap_or_default()
        };
        Self { median_ns: at(50), p10: at(10), p90: at(90), samples: sorted.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_the_tenths_near_the_ends() {
        let samples: Vec<Duration> = (0..=100).rev().map(Duration::from_nanos).collect();
        let spread = Spread::of(&samples);
        assert_eq!((spread.p10, spread.median_ns, spread.p90, spread.samples), (10, 50, 90, 101));
        assert_eq!(Spread::of(&[Duration::from_nanos(7)]).p90, 7);
    }

    #[test]
    fn sides_take_turns_and_the_first_round_does_not_count() {
        let log = std::cell::RefCell::new(String::new());
        let side = |name: &'static str| -> Side<'_> {
            let log = &log;
            Box::new(move || {
                log.borrow_mut().push_str(name);
                Ok(vec![("step", Duration::from_nanos(1))])
            })
        };
        let all = by_turns(Duration::ZERO, &mut [side("a"), side("b")]).unwrap();
        assert_eq!(*log.borrow(), "ababbaab");
        assert_eq!(all[0]["step"].len(), LEAST);
    }
}
